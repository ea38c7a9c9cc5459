//! `clade init`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::program::{Done, clade};

fn run(directory: &Path, arguments: &[&str]) -> Done {
    clade(arguments).current_dir(directory).output().unwrap().into()
}

#[test]
fn a_first_repository_is_valid_and_its_test_passes() {
    for (ci, pipeline) in [
        ("github", Some(".github/workflows/clade.yml")),
        ("gitlab", Some(".gitlab-ci.yml")),
        ("none", None),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().join("groups repo");
        let made = run(directory.path(), &["init", "groups repo", "--ci", ci]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        for path in made.stdout.lines() {
            assert!(directory.path().join(path).is_file(), "{path}");
        }
        assert_eq!(made.stdout.contains("check.sh"), pipeline.is_some());
        if let Some(path) = pipeline {
            let text = std::fs::read_to_string(work.join(path)).unwrap();
            assert!(text.contains("ci/check.sh") && !text.contains("Copy to"), "{text}");
            let mode = work.join("ci/check.sh").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o100, 0o100, "the script can be run");
        }
        let validated = run(&work, &["validate"]);
        assert_eq!(validated.status, 0, "{}{}", validated.stdout, validated.stderr);
        assert!(!validated.stdout.contains("warning"), "{}", validated.stdout);
        let tested = run(&work, &["test"]);
        assert_eq!(tested.status, 0, "{}{}", tested.stdout, tested.stderr);
        assert!(tested.stdout.contains("1 "), "{}", tested.stdout);
        let formatted = run(&work, &["fmt", "--check"]);
        assert_eq!(formatted.status, 0, "{}{}", formatted.stdout, formatted.stderr);
        // The fleet of the pipeline has the node of the test.
        let with_facts = run(&work, &["validate", "--facts", "facts"]);
        assert_eq!(with_facts.status, 0, "{}", with_facts.stdout);
    }
}

#[test]
fn nothing_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join("README.md"), "mine\n").unwrap();
    std::fs::write(path.join("clade.yaml"), "allow_empty: true\n").unwrap();
    let refused = run(path, &["init"]);
    assert_eq!((refused.status, &*refused.stdout), (2, ""));
    assert_eq!(
        refused.stderr,
        "error: `.` has clade.yaml already, and `clade init` overwrites nothing\n"
    );
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 2);
    std::fs::remove_file(path.join("clade.yaml")).unwrap();
    // Other files stay.
    let made = run(path, &["init", "--ci", "none"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    assert_eq!(std::fs::read_to_string(path.join("README.md")).unwrap(), "mine\n");
    assert_eq!(run(path, &["validate"]).status, 0);
    let again = run(path, &["init", "--ci", "none"]);
    assert_eq!(again.status, 2);
    assert!(again.stderr.contains("clade.yaml, groups/all-nodes.yaml, "), "{}", again.stderr);
}

#[test]
fn a_group_repository_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::create_dir(path.join("groups")).unwrap();
    std::fs::write(path.join("groups/web.yaml"), "name: Web\n").unwrap();
    let refused = run(path, &["init"]);
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("it may be a group repository"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 1);
}

#[test]
fn files_in_the_way_and_misplaced_files_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::create_dir(path.join("tests")).unwrap();
    std::fs::write(path.join("tests/other.yaml"), "not: a test\n").unwrap();
    let made = run(path, &["init", "--ci", "none"]);
    assert_eq!(made.status, 1, "{}", made.stderr);
    assert!(made.stderr.contains("tests/other.yaml"), "{}", made.stderr);
    git2::Repository::init(path).unwrap();
    let below = run(path, &["init", "estate"]);
    assert_eq!(below.status, 0, "{}", below.stderr);
    assert!(below.stderr.contains("at the top of the git repository alone"), "{}", below.stderr);
}

#[test]
fn what_to_do_next_names_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let next = |arguments: &[&str]| {
        let made = run(&path, &[&["init"], arguments, &["--ci", "none"]].concat());
        assert_eq!(made.status, 0, "{}", made.stderr);
        made.stderr.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        next(&["one"]),
        "next: `clade test one`, `git init one`, commit the files, then `clade serve --repo one`"
    );
    git2::Repository::init(&path).unwrap();
    let top = path.display();
    assert_eq!(
        next(&["two"]),
        format!(
            "next: `clade test two`, commit the files, then `clade serve --repo {top} --path two`"
        )
    );
    assert_eq!(
        next(&["sp ace"]),
        format!(
            "next: `clade test 'sp ace'`, commit the files, then `clade serve --repo {top} --path 'sp ace'`"
        )
    );
    assert_eq!(next(&[]), "next: `clade test`, commit the files, then `clade serve --repo .`");
}

#[test]
fn what_the_check_writes_is_ignored_wherever_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let repository = git2::Repository::init(path).unwrap();
    assert_eq!(run(path, &["init"]).status, 0);
    for file in ["clade-diff.md", "ci/clade-diff.md", "ci/clade-tests.xml"] {
        assert!(repository.is_path_ignored(file).unwrap(), "{file}");
    }
}

#[test]
fn what_a_repository_ignores_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(path.join(".gitignore"), "/mine\n").unwrap();
    let made = run(path, &["init"]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    assert!(
        made.stderr.contains("`.gitignore` stays as it is: add `clade-diff.md`, "),
        "{}",
        made.stderr
    );
    assert_eq!(std::fs::read_to_string(path.join(".gitignore")).unwrap(), "/mine\n");
}
