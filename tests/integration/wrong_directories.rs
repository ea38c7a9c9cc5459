//! A directory in or around a group repository that is named in its place, and files that belong elsewhere.

use std::path::Path;

use crate::program::{Daemon, Done, GitRepository, clade};

const GROUP: &str = "name: Web\nrule: name = web1\nvariables: {a: 1}\n";

fn run_in(directory: &Path, arguments: &[&str]) -> Done {
    clade(arguments).current_dir(directory).output().unwrap().into()
}

/// A repository with the settings and a group in a directory of it.
fn repository(inside: &str) -> GitRepository {
    let repository = GitRepository::new();
    let [settings, group, test] = ["clade.yaml", "groups/web.yaml", "tests/t.yaml"]
        .map(|it| if inside.is_empty() { it.to_owned() } else { format!("{inside}/{it}") });
    let tests = "- {name: t, node: web1, expect: {groups: [Web]}}\n";
    repository.commit("first", &[(&settings, "{}\n"), (&group, GROUP), (&test, tests)]);
    repository
}

#[test]
fn the_directory_of_the_groups_is_not_taken_for_the_repository() {
    let repository = repository("");
    let top = repository.path();
    for (inside, arguments, named) in [
        ("groups", &["validate"][..], ".."),
        ("", &["validate", "groups"], "."),
        ("", &["validate", "groups", "--rev", "HEAD"], "."),
        ("tests", &["validate"], ".."),
    ] {
        let done = run_in(&top.join(inside), arguments);
        assert_eq!(done.status, 1, "{arguments:?}: {}", done.stderr);
        let help = format!("name that directory, as in `clade validate {named}`");
        assert!(done.stdout.contains(&help), "{arguments:?}: {}", done.stdout);
        assert!(!done.stdout.contains("unread-file"), "{}", done.stdout);
        assert!(done.stdout.contains("1 error in 0 groups"), "{}", done.stdout);
    }
    for arguments in [&["fmt", "groups"][..], &["fmt", "--check", "groups"]] {
        let done = run_in(&top, arguments);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""));
        assert_eq!(
            done.stderr,
            "error: there is no file of a group repository in `groups`: this is a part of the repository `.`: \
             name that directory, as in `clade fmt .`\n"
        );
    }
}

#[test]
fn the_directory_around_the_repository_is_not_taken_for_it() {
    let repository = repository("infra/estate");
    let help = |command: &str| {
        format!(
            "this may be the directory around the repository `infra/estate`: name that directory, as in `{command} infra/estate`"
        )
    };
    let done = run_in(&repository.path(), &["validate"]);
    let said = done.stdout.contains(&help("clade validate"));
    assert!(done.status == 1 && said, "{}", done.stdout);
    let done = run_in(&repository.path(), &["fmt", "--check"]);
    let said = done.stderr.contains(&help("clade fmt"));
    assert!(done.status == 2 && said, "{}", done.stderr);
}

#[test]
fn a_new_directory_has_nothing_to_format() {
    let directory = tempfile::tempdir().unwrap();
    let said = "note: there is no file of a group repository in `.`\n0 files would change\n";
    // The directory of another program is not a repository, with and without groups beside it.
    for made in ["", "roles/users/groups", "groups"] {
        std::fs::create_dir_all(directory.path().join(made)).unwrap();
        let conf = directory.path().join("roles/users/groups/main.conf");
        if made.starts_with("roles") {
            std::fs::write(conf, "a\n").unwrap();
        }
        let done = run_in(directory.path(), &["fmt", "--check"]);
        assert_eq!((done.status, done.stderr.as_str()), (0, said), "{made}");
    }
}

#[test]
fn the_log_of_the_daemon_says_which_path_was_meant() {
    for (inside, path, named) in [
        (
            "",
            "groups",
            "`groups` seems to be the directory of the groups: name the one of the repository, `--path .`",
        ),
        (
            "estate",
            ".",
            "`.` seems to be the directory around the repository: name the one of the repository, `--path estate`",
        ),
    ] {
        let repository = repository(inside);
        let daemon = Daemon::start(&["--repo", &repository.text_path(), "--path", path]);
        let log = daemon.log_lines().join("\n");
        assert!(log.contains(named), "{log}");
    }
}

#[test]
fn a_setting_in_the_other_clade_yaml_is_said_to_belong_there() {
    let repository = repository("");
    let top = repository.path();
    std::fs::write(top.join("clade.yaml"), "data_dir: /var/lib/clade\n").unwrap();
    let done = run_in(&top, &["validate"]);
    let help = "it is a setting of `clade serve`: it belongs in the file that `--config` names, which is another one";
    assert!(done.status == 1 && done.stdout.contains(help), "{}", done.stdout);
    std::fs::write(top.join("daemon.yaml"), "repo: .\npolicy: {require_ids: true}\n").unwrap();
    let done = run_in(&top, &["serve", "--check", "--config", "daemon.yaml"]);
    let said = "error: daemon.yaml:2:1: unknown setting `policy`; it belongs in the `clade.yaml` of the group repository, which is another file\n";
    assert_eq!((done.status, done.stderr.as_str()), (2, said));
}

#[test]
fn a_check_of_the_settings_opens_the_repository() {
    let repository = repository("");
    let top = repository.path();
    let empty = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| run_in(&top, &[&["serve", "--check"], arguments].concat());
    for (arguments, expected) in [
        (&["--repo", "/nope"][..], "`--repo` must be a git repository"),
        (
            &["--repo", ".", "--branch", "nope"],
            "the repository has no branch `nope`; it has `main`",
        ),
        (&["--repo", ".", "--path", "nope"], "`--path nope`: the commit"),
    ] {
        let done = run(arguments);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
    // Where a daemon has run, only the repository itself may be gone for now.
    let used = tempfile::tempdir().unwrap();
    std::fs::write(used.path().join("journal"), "").unwrap();
    let data = ["--data-dir", used.path().to_str().unwrap()];
    assert_eq!(run(&[&["--repo", "/nope"], &data[..]].concat()).status, 0);
    for wrong in [["--branch", "nope"], ["--path", "nope"]] {
        let done = run(&[&["--repo", "."], &wrong[..], &data[..]].concat());
        assert_eq!(done.status, 2, "{wrong:?}: {}", done.stderr);
    }
    // The repository may be made later.
    let empty = empty.path().to_str().unwrap();
    assert_eq!(run(&["--repo", empty]).status, 0);
    git2::Repository::init(empty).unwrap();
    for repository in [".", empty] {
        assert_eq!(run(&["--repo", repository]).status, 0, "{repository}");
    }
}

#[test]
fn data_in_the_working_tree_stay_out_of_commits() {
    let repository = repository("");
    let data = repository.path().join("data");
    let arguments = ["--repo", &repository.text_path(), "--data-dir", data.to_str().unwrap()];
    let daemon = Daemon::start(&arguments);
    let log = daemon.log_lines().join("\n");
    assert!(log.contains("is inside the git working tree"), "{log}");
    drop(daemon);
    assert!(data.join(".gitignore").exists());
    let mut options = git2::StatusOptions::new();
    options.include_untracked(true);
    let changed = repository.git().statuses(Some(&mut options)).unwrap();
    let names: Vec<_> = changed.iter().map(|it| it.path().unwrap().to_owned()).collect();
    assert!(names.iter().all(|it| !it.starts_with("data")), "{names:?}");
    // It starts there again.
    drop(Daemon::start(&arguments));
}

#[test]
fn where_there_is_no_commit_revisions_are_answered_with_what_to_do() {
    let repository = GitRepository::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(repository.path().join("groups")).unwrap();
    for (directory, expected) in [
        (repository.path(), "which has none yet: commit the files first"),
        (
            outside.path().to_owned(),
            "name a directory of a clone, or run `git init` and commit the files",
        ),
    ] {
        let done = run_in(&directory, &["validate", "--rev", "HEAD"]);
        assert!(done.status == 2 && done.stderr.contains(expected), "{}", done.stderr);
    }
}

/// What `clade init` writes, committed, with a directory more.
fn initialised() -> GitRepository {
    let repository = GitRepository::new();
    let top = repository.path();
    assert_eq!(run_in(&top, &["init"]).status, 0);
    let files = ["clade.yaml", "groups/all-nodes.yaml", "groups/webservers.yaml"];
    let read = |it: &str| std::fs::read_to_string(top.join(it)).unwrap();
    let texts = files.map(read);
    let changes: Vec<(&str, &str)> =
        files.into_iter().zip(texts.iter().map(String::as_str)).collect();
    repository.commit("first", &changes);
    repository
}

#[test]
fn files_of_the_group_repository_are_not_taken_for_facts() {
    let repository = initialised();
    let top = repository.path();
    let help = "facts files are in a directory of their own, such as `";
    for (inside, arguments, named) in [
        ("", &["diff", "HEAD", "--facts", "groups"][..], "facts`"),
        ("", &["query", "name ~ .", "--facts", "groups"], "facts`"),
        ("", &["validate", "--facts", "tests"], "facts`"),
        ("", &["validate", "--facts", "."], "facts`"),
        ("groups", &["query", "name ~ .", "--facts", "."], "../facts`"),
        ("", &["classify", "web1", "--facts", "groups/webservers.yaml"], "facts`"),
    ] {
        let done = run_in(&top.join(inside), arguments);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{arguments:?}: {}", done.stderr);
        let expected = format!("{help}{named}");
        assert!(done.stderr.contains(&expected), "{arguments:?}: {}", done.stderr);
    }
    let first = "error: `groups/all-nodes.yaml` is a file of the group repository `.`, and does not have the facts of a node: ";
    let done = run_in(&top, &["diff", "HEAD", "--facts", "groups"]);
    assert!(done.stderr.starts_with(first), "{}", done.stderr);
    // JSON is none of its files, and other directories are not its own.
    std::fs::create_dir(top.join("tests/facts")).unwrap();
    std::fs::write(top.join("tests/facts/web1.json"), "{}").unwrap();
    for facts in ["facts", "tests/facts"] {
        let done = run_in(&top, &["diff", "HEAD", "--facts", facts]);
        assert_eq!(done.status, 0, "{facts}: {}", done.stderr);
    }
}

#[test]
fn beside_the_groups_the_repository_above_is_named() {
    let repository = initialised();
    let top = repository.path();
    for inside in ["facts", "ci"] {
        let done = run_in(&top.join(inside), &["validate"]);
        let help =
            "this is a part of the repository `..`: name that directory, as in `clade validate ..`";
        assert!(done.status == 1 && done.stdout.contains(help), "{inside}: {}", done.stdout);
    }
    for arguments in [
        &["diff", "HEAD", "--facts", "../facts"][..],
        &["blame", "web1.example.com", "--facts", "../facts/web1.example.com.json"],
        &["history", "web1.example.com", "--facts", "../facts/web1.example.com.json"],
    ] {
        let done = run_in(&top.join("groups"), arguments);
        let help = "this is a part of the repository `..`: name that directory with `--repo ..`\n";
        assert!(done.status == 2 && done.stderr.ends_with(help), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn serving_a_part_of_the_repository_names_a_command_that_works() {
    for inside in ["", "estate/"] {
        let repository = repository(inside.trim_end_matches('/'));
        let top = repository.path().canonicalize().unwrap();
        let from = top.join(format!("{inside}groups"));
        let done = run_in(&from, &["serve", "--check", "--repo", "."]);
        let path = if inside.is_empty() { "" } else { " --path estate" };
        let help = format!("write `--repo {}{path}`\n", top.display());
        assert!(done.status == 2 && done.stderr.ends_with(&help), "{}", done.stderr);
        let words =
            [&["serve", "--check", "--repo", top.to_str().unwrap()][..], &["--path", "estate"]];
        let words = if inside.is_empty() { words[0].to_vec() } else { words.concat() };
        assert_eq!(run_in(&from, &words).status, 0, "{words:?}");
    }
}

#[test]
fn a_part_of_a_repository_does_not_become_one() {
    let repository = initialised();
    let top = repository.path();
    for (inside, arguments) in
        [("groups", &["init"][..]), ("", &["init", "groups/new"]), ("tests", &["init", "."])]
    {
        let done = run_in(&top.join(inside), arguments);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{arguments:?}");
        let help = "run it in a directory outside of that one\n";
        assert!(done.stderr.ends_with(help), "{}", done.stderr);
    }
    assert!(!top.join("groups/clade.yaml").exists() && !top.join("groups/new").exists());
}
