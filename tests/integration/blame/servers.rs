//! The daemon that a command asks: `--server`, else `CLADE_SERVER`, unless the command line says which
//! repository is meant.

use crate::program::{Done, GitRepository, clade};

/// A port where nothing listens.
const OF_ENVIRONMENT: &str = "http://127.0.0.1:9";

fn run_with_variable(repository: &GitRepository, arguments: &[&str]) -> Done {
    let mut command = clade(arguments);
    command.current_dir(repository.path()).env("CLADE_SERVER", OF_ENVIRONMENT);
    command.output().unwrap().into()
}

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\nrule: name ~ web\nclasses: {a: {}}\n")]);
    repository
}

#[test]
fn the_variable_alone_selects_a_daemon_for_every_command_that_asks_one() {
    let repository = repository();
    for arguments in [
        &["blame", "web1"][..],
        &["blame", "web1", "a", "--format", "json"],
        &["explain", "web1"],
        &["explain", "web1", "--group", "A"],
        &["diff", "HEAD"],
        &["status"],
        &["why", "HEAD"],
        &["wait", "HEAD", "--timeout", "1s"],
        &["reconcile"],
        &["pin", "HEAD"],
        &["resume"],
    ] {
        let done = run_with_variable(&repository, arguments);
        let first = format!("asking {OF_ENVIRONMENT}");
        assert!(done.stderr.lines().any(|it| it == first), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{arguments:?}");
        assert!(done.status > 0, "{arguments:?}");
        let with_flag = [arguments, &["--server", "http://127.0.0.1:1"]].concat();
        let done = run_with_variable(&repository, &with_flag);
        assert!(
            done.stderr.contains("asking http://127.0.0.1:1\n"),
            "{arguments:?}: {}",
            done.stderr
        );
    }
}

#[test]
fn what_the_command_line_says_of_a_repository_wins_over_the_variable() {
    let repository = repository();
    let path = repository.text_path();
    let facts = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(facts.path(), "{\"certname\": \"web1\"}").unwrap();
    let facts = facts.path().to_str().unwrap();
    for arguments in [
        &["blame", "web1", "--repo", "."][..],
        &["blame", "web1", "--repo", &path],
        &["blame", "web1", "--rev", "HEAD"],
        &["blame", "web1", "--facts", facts],
        &["blame", "web1", "--trusted", facts],
        &["explain", "web1", "."],
        &["explain", "web1", "--rev", "HEAD"],
        &["explain", "web1", "--facts", facts],
        &["classify", "web1"],
        &["validate"],
    ] {
        let done = run_with_variable(&repository, arguments);
        assert!(!done.stderr.contains("asking"), "{arguments:?}: {}", done.stderr);
        assert_ne!(done.stdout, "", "{arguments:?}: {}", done.stderr);
    }
}
