//! Directories that a daemon does not take: one inside of a repository for the repository, and data directories of others.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::program::{Done, GitRepository, clade};

/// The last line of what a daemon says that does not start; it is the same with `--check`.
fn refused(directory: &Path, arguments: &[&str]) -> String {
    let run = |more: &[&str]| {
        let usual = ["serve", "--listen", "127.0.0.1:0"];
        let mut program = clade(&[&usual[..], arguments, more].concat());
        Done::from(program.current_dir(directory).output().unwrap())
    };
    let (checked, served) = (run(&["--check"]), run(&[]));
    assert_eq!((checked.status, served.status), (2, 2), "{arguments:?}: {}", served.stderr);
    assert_eq!((&checked.stdout, &served.stdout), (&String::new(), &String::new()));
    let last = |done: &Done| done.stderr.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(&checked), last(&served));
    last(&served)
}

fn accepted(directory: &Path, arguments: &[&str]) {
    let mut program = clade(&[&["serve", "--check"], arguments].concat());
    let done = Done::from(program.current_dir(directory).output().unwrap());
    assert_eq!(done.status, 0, "{arguments:?}: {}", done.stderr);
}

#[test]
fn a_directory_inside_a_repository_is_not_taken_for_it() {
    let repository = GitRepository::new();
    let staging = "name: Staging\nclasses: {staging: {}}\n";
    let files = [("groups/a.yaml", "name: Prod\n"), ("staging/groups/a.yaml", staging)];
    repository.commit("first", &files);
    let top = repository.path().canonicalize().unwrap();
    git2::Repository::open(&top).unwrap().checkout_head(None).unwrap();
    std::fs::create_dir_all(top.join("staging/sp ace/groups")).unwrap();
    let shown = top.display();
    for (repo, more, instead) in [
        ("staging", &[][..], "--path staging"),
        ("staging/", &["--data-dir", "../data"], "--path staging"),
        // Its groups are those of the repository around it.
        ("staging/groups", &[], "--path staging"),
        ("staging", &["--path", "./sp ace/"], "--path 'staging/sp ace'"),
        ("./staging", &["--writes", "commit"], "--path staging"),
    ] {
        let said = refused(&top, &[&["--repo", repo], more].concat());
        let expected = format!(
            "error: `--repo {repo}` is inside the git repository `{shown}`: write `--repo {shown} {instead}`"
        );
        assert_eq!(said, expected);
    }
    let url = format!("file://{shown}");
    for (repo, more, instead) in [
        ("staging", &["--data-dir", "../data"][..], "--path staging"),
        ("staging/sp%20ace", &["--data-dir", "../data"], "--path 'staging/sp ace'"),
    ] {
        let said = refused(&top, &[&["--repo", &format!("{url}/{repo}")], more].concat());
        assert!(said.ends_with(&format!(": write `--repo {url} {instead}`")), "{said}");
    }
    let said = refused(&top, &["--repo", ".git/refs"]);
    assert!(said.ends_with(&format!(": write `--repo {shown}`")), "{said}");
    let data = tempfile::tempdir().unwrap();
    accepted(&top, &["--repo", &url, "--data-dir", data.path().to_str().unwrap()]);
    for repo in [".", ".git", "staging/.."] {
        accepted(&top, &["--repo", repo]);
        accepted(&top, &["--repo", repo, "--path", "staging"]);
    }
}

#[test]
fn a_data_directory_is_neither_the_repository_nor_one_of_others() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let directory = tempfile::tempdir().unwrap();
    let shared = directory.path().join("shared");
    std::fs::create_dir_all(shared.join("other")).unwrap();
    let mode = |mode| std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode));
    let path = repository.text_path();
    let data = |data| refused(directory.path(), &["--repo", &path, "--data-dir", data]);
    let said = data(&path);
    assert!(said.contains("is the repository itself"), "{said}");
    mode(0o1777).unwrap();
    assert_eq!(
        data("shared"),
        "error: `--data-dir shared` can be written by other users and has files of others, such as `other`: \
         the daemon takes its data directory for itself; name one of its own, such as `shared/clade`"
    );
    let left = std::fs::metadata(&shared).unwrap().permissions().mode() & 0o7777;
    assert_eq!(left, 0o1777);
    let accept = || accepted(directory.path(), &["--repo", &path, "--data-dir", "shared"]);
    mode(0o755).unwrap();
    accept();
    mode(0o1777).unwrap();
    std::fs::write(shared.join("journal"), "").unwrap();
    accept();
}

#[test]
fn a_level_that_does_not_exist_is_refused_from_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let run = |more: &[&str], level: Option<&str>| {
        let mut program = clade(&[&["serve"], more].concat());
        program.current_dir(here).envs(level.map(|it| ("CLADE_LOG", it)));
        let done = Done::from(program.output().unwrap());
        assert_eq!(done.status, 2, "{more:?}: {}", done.stderr);
        let help = "expected `error`, `warn`, `info`, `debug`, `trace` or `off`, or a module with its level, such as `clade::access=debug`";
        assert!(done.stderr.contains(help), "{}", done.stderr);
        done.stderr
    };
    for level in ["warning", "verbose", "", "info,"] {
        for check in [&["--repo", "."][..], &["--repo", ".", "--check"]] {
            run(&[check, &["--log", level]].concat(), None);
            run(check, Some(level));
        }
    }
    std::fs::write(here.join("clade.yaml"), "repo: .\nlog: warning\n").unwrap();
    let said = run(&["--config", "clade.yaml"], None);
    assert!(said.contains("clade.yaml:2:6: "), "{said}");
    accepted(here, &["--repo", ".", "--log", "warn,clade::access=debug"]);
}
