//! `clade import`: where the groups go, and what is left out.

use serde_json::{Value, json};

use crate::program::{Done, run};

const ROOT: &str = "00000000-0000-4000-8000-000000000000";

fn root() -> Value {
    json!({"name": "All Nodes", "id": ROOT, "parent": ROOT, "classes": {"profile::base": {"a": 1}}})
}

/// The root group, changed, and a group below it.
fn export(change: impl Fn(&mut Value)) -> Value {
    let mut root = root();
    change(&mut root);
    let web = json!({"name": "Web", "id": "11111111-1111-4111-8111-111111111111", "parent": ROOT, "classes": {}});
    json!([root, web])
}

/// Imports an export into a directory with files in it.
fn import(export: &Value, files: &[(&str, &str)], more: &[&str]) -> (tempfile::TempDir, Done) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.json");
    std::fs::write(&file, export.to_string()).unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arguments = ["import", file.to_str().unwrap(), directory.path().to_str().unwrap()];
    let done = run(&[&arguments, more].concat());
    (directory, done)
}

#[test]
fn an_invalid_root_group_is_never_replaced_by_another() {
    let set = |key: &'static str, value: Value| move |root: &mut Value| root[key] = value.clone();
    for (export, fault) in [
        (export(set("foo", json!(1))), "unknown key `foo`"),
        (export(set("rule", json!(["=", "name", "web1"]))), "rule"),
        (export(set("classes", json!([]))), "expected a mapping, found a list"),
        (export(set("id", Value::Null)), "`id`"),
    ] {
        for more in [&[][..], &["--skip-invalid"]] {
            let (directory, done) = import(&export, &[], more);
            assert_eq!(done.status, 1, "{fault}: {}", done.stderr);
            let last = "nothing is written: the root group is among these, and all others are below it: correct it in the export";
            let lines: Vec<&str> = done.stderr.lines().collect();
            assert!(lines[0].starts_with("error: group") && lines[0].contains(fault), "{lines:?}");
            assert_eq!(lines.last(), Some(&last));
            assert!(!directory.path().join("groups").exists());
        }
    }
    // One of two with its id is still the root group.
    let twice = json!([root(), root()]);
    let (directory, done) = import(&twice, &[], &["--skip-invalid"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let text = std::fs::read_to_string(directory.path().join("groups/all-nodes.yaml")).unwrap();
    assert!(text.contains("profile::base"), "{text}");
}

#[test]
fn what_cannot_be_read_or_committed_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let made = |name: &str| directory.path().join(name);
    let export = export(|it| it["variables"] = json!({"x": "${os}"})).to_string();
    std::fs::write(made("export.json"), export).unwrap();
    let import = |repository: &str| {
        let [file, path] = ["export.json", repository].map(made);
        run(&["import", file.to_str().unwrap(), path.to_str().unwrap()])
    };
    std::fs::create_dir_all(made("outside")).unwrap();
    for repository in ["linked", "below/groups", "git", "settings", "kept"] {
        std::fs::create_dir_all(made(repository)).unwrap();
    }
    std::os::unix::fs::symlink(made("outside"), made("linked/a")).unwrap();
    std::os::unix::fs::symlink(made("outside"), made("below/groups/web")).unwrap();
    std::fs::write(made("linked/clade.yaml"), "groups: a/b\n").unwrap();
    std::fs::write(made("git/clade.yaml"), "groups: .git/g\n").unwrap();
    // It is found only after the groups are written.
    std::fs::create_dir_all(made("settings/clade.yaml")).unwrap();
    std::fs::create_dir_all(made("settings/groups")).unwrap();
    std::fs::write(made("settings/groups/README.md"), "# Groups\n").unwrap();
    for (repository, expected) in [
        ("linked", "/linked/a` is not a directory, and Clade follows no links"),
        ("below", "/below/groups` has YAML files or links already"),
        ("git", "/git/.git` is git's own"),
        ("settings", "/settings/clade.yaml`"),
    ] {
        let done = import(repository);
        assert!(done.status == 2 && done.stderr.contains(expected), "{}", done.stderr);
    }
    assert_eq!(std::fs::read_dir(made("outside")).unwrap().count(), 0);
    assert!(!made("git/.git").exists());
    assert_eq!(std::fs::read_dir(made("settings/groups")).unwrap().count(), 1);
    std::fs::create_dir_all(made("kept/groups")).unwrap();
    std::fs::write(made("kept/groups/.gitkeep"), "").unwrap();
    let done = import("kept");
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(made("kept/groups/.gitkeep").exists() && made("kept/groups/all-nodes.yaml").exists());
}

#[test]
fn groups_go_where_the_layout_says() {
    let export = export(|_| {});
    for (settings, groups) in [
        ("groups: mygroups\n", "mygroups"),
        ("groups: a/b/\ntests: a\n", "a/b"),
        ("nodes: groups\ngroups: g\n", "g"),
        ("policy: {require_ids: false}\n", "groups"),
    ] {
        let (directory, done) = import(&export, &[("clade.yaml", settings)], &[]);
        let target = directory.path().join(groups);
        let said = format!("2 groups written below {}\n", target.display());
        assert_eq!((done.status, done.stderr.as_str()), (0, said.as_str()), "{settings}");
        let checked = run(&["validate", directory.path().to_str().unwrap()]);
        assert_eq!(checked.status, 0, "{settings}: {}", checked.stdout);
        assert!(target.join("all-nodes.yaml").exists());
    }
    for (files, expected) in [
        (
            &[("clade.yaml", "groups: mine\n"), ("mine/a.yaml", "name: A\n")][..],
            "/mine` has YAML files or links already: remove them",
        ),
        (&[("clade.yaml", "groups: /srv\n")], "/clade.yaml:1:9: `/srv` is not a directory below"),
        (&[("clade.yaml", "groups: [\n")], "/clade.yaml:1:9: "),
        (&[("clade.yaml", "groups: g\nnodes: g/web\n")], ""),
    ] {
        let (directory, done) = import(&export, files, &[]);
        if expected.is_empty() {
            // No group has a file below `web` here.
            assert_eq!(done.status, 0, "{}", done.stderr);
            continue;
        }
        assert!(done.status == 2 && done.stderr.contains(expected), "{}", done.stderr);
        assert!(!directory.path().join("groups").exists());
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let dollar = export(|root| root["classes"]["profile::base"]["a"] = json!("$os"));
    let directory = tempfile::tempdir().unwrap();
    let (file, target) = (directory.path().join("export.json"), directory.path().join("r"));
    std::fs::write(&file, dollar.to_string()).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::os::unix::fs::symlink("../outside.yaml", target.join("clade.yaml")).unwrap();
    let done = run(&["import", file.to_str().unwrap(), target.to_str().unwrap()]);
    assert!(
        done.stderr.contains("which is not read, by a file with `interpolate: true`"),
        "{}",
        done.stderr
    );
    assert!(!directory.path().join("outside.yaml").exists());
}

#[test]
fn no_group_is_written_where_the_layout_has_files_of_another_kind() {
    let mut export = export(|_| {});
    let below = json!({
        "name": "Below", "id": "22222222-2222-4222-8222-222222222222",
        "parent": "11111111-1111-4111-8111-111111111111", "classes": {}
    });
    export.as_array_mut().unwrap().push(below);
    let settings = [("clade.yaml", "groups: g\nnodes: g/web\n")];
    let (directory, done) = import(&export, &settings, &[]);
    let said = "error: `clade.yaml` says that `g/web/below.yaml` is not a file of groups: choose a directory for `groups` without others in it\n";
    assert_eq!((done.status, done.stderr.as_str()), (2, said));
    assert!(!directory.path().join("g").exists());
}

#[test]
fn of_many_groups_with_one_fault_the_first_are_named() {
    let group = |number: u32| {
        json!({
            "name": format!("G{number}"), "id": format!("00000000-0000-4000-8000-{number:012}"),
            "parent": ROOT, "classes": {}, "colour": "red",
        })
    };
    let groups: Vec<Value> = std::iter::once(root()).chain((1..43).map(group)).collect();
    let (_directory, done) = import(&Value::from(groups), &[], &[]);
    assert_eq!(done.status, 1);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 22, "{lines:?}");
    assert!(lines[19].starts_with("error: group 21 `G20`: unknown key `colour`"), "{}", lines[19]);
    assert!(lines[20].starts_with("error: 22 groups more: unknown key `colour`"), "{}", lines[20]);
}
