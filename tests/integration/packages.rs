//! What the packages install, by their metadata in `Cargo.toml`.

use std::process::Command;

use crate::program::root;

#[test]
fn the_environment_of_the_unit_is_not_for_every_user() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    // It may hold the password of a URL.
    let lines: Vec<&str> =
        manifest.lines().filter(|it| it.contains("packaging/clade.default")).collect();
    assert_eq!(lines.len(), 2, "one of each package: {lines:?}");
    for line in lines {
        assert!(line.contains(r#""640""#), "{line}");
    }
}

/// Without `setpriority` the threads that follow the repository would hold up those that answer.
#[test]
fn the_unit_may_set_priorities_and_the_guide_states_its_exposure() {
    let unit = root().join("examples/systemd/clade.service");
    let done =
        Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(&unit).output();
    let Ok(done) = done else {
        eprintln!("skipped: needs systemd-analyze");
        return;
    };
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.contains("@resources is included (e.g. setpriority is allowed)"), "{said}");
    for group in ["@privileged", "@setuid", "@raw-io", "@debug"] {
        let shut = said.lines().find(|it| it.contains(&format!("SystemCallFilter=~{group} ")));
        assert!(shut.is_none_or(|it| it.starts_with('✓')), "{shut:?}");
    }
    let (_, exposure) = said.split_once("exposure level for clade.service: ").unwrap();
    let exposure = exposure.split(' ').next().unwrap();
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let shown = format!("`systemd-analyze security clade` says **{exposure} OK**");
    assert!(read("docs/guides/security.md").contains(&shown), "{shown}");
    assert!(read("packaging/check").contains(&format!("exposure={exposure}\n")), "{exposure}");
}

#[test]
fn the_guide_names_the_directories_that_the_unit_makes() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (unit, guide) = (read("examples/systemd/clade.service"), read("docs/guides/operations.md"));
    let setting = |key: String| {
        let found = unit.lines().find_map(|it| it.strip_prefix(key.as_str())?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("the unit has no {key}"))
    };
    for (kind, parent) in [("State", "/var/lib"), ("Runtime", "/run"), ("Logs", "/var/log")] {
        let name = setting(format!("{kind}Directory"));
        let mode = setting(format!("{kind}DirectoryMode"));
        let start = format!("| `{parent}/{name}` |");
        let row = guide.lines().find(|it| it.starts_with(&start));
        assert!(row.is_some_and(|it| it.ends_with(&format!("| {mode} |"))), "{start} {row:?}");
    }
}
