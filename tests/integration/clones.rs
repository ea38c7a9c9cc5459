//! What commands say of clones that lack what they are asked for.

use std::process::Command;

use crate::program::{GitRepository, run};

/// A repository of two commits, and a clone of it with more arguments.
struct Cloned {
    directory: tempfile::TempDir,
    _repository: GitRepository,
}

impl Cloned {
    fn new(arguments: &[&str]) -> Self {
        let (repository, directory) = (GitRepository::new(), tempfile::tempdir().unwrap());
        repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
        repository.commit("two", &[("groups/a.yaml", "name: A\nclasses: {ntp: {}}\n")]);
        let url = format!("file://{}", repository.text_path());
        let mut command = Command::new("git");
        command.args(["clone", "-q"]).args(arguments).arg(url).arg(directory.path().join("c"));
        assert!(command.status().unwrap().success());
        Self { directory, _repository: repository }
    }

    fn path(&self) -> String {
        self.directory.path().join("c").to_str().unwrap().to_owned()
    }
}

#[test]
fn a_commit_that_a_shallow_clone_lacks_can_be_fetched() {
    let clone = Cloned::new(&["--depth", "1"]);
    let path = clone.path();
    let why = "error: `HEAD~1` is not a commit of the repository, which is a shallow clone: fetch older commits and other branches, by `git fetch --unshallow`, or `fetch-depth: 0` of `actions/checkout`\n";
    for arguments in [
        &["diff", "HEAD~1", "HEAD", "--repo", &path, "--facts", &path][..],
        &["validate", &path, "--rev", "HEAD~1"],
    ] {
        let done = run(arguments);
        assert_eq!((done.status, done.stderr.as_str()), (2, why), "{arguments:?}");
    }
    let whole = Cloned::new(&[]);
    let done = run(&["validate", &whole.path(), "--rev", "HEAD~5"]);
    assert_eq!(done.stderr, "error: `HEAD~5` is not a commit of the repository\n");
    let done = run(&["diff", "origin/topic~2", "HEAD", "--repo", &whole.path(), "--facts", &path]);
    let why = "error: `origin/topic~2` is not a commit of the repository: if the remote has this branch, fetch it: `git fetch origin topic`\n";
    assert_eq!((done.status, done.stderr.as_str()), (2, why));
}

#[test]
fn a_bare_repository_has_no_files_to_read() {
    let clone = Cloned::new(&["--bare"]);
    let path = clone.path();
    for arguments in [
        &["validate", &path][..],
        &["fmt", &path],
        &["test", &path],
        &["export", &path],
        &["classify", "n1", &path],
    ] {
        let done = run(arguments);
        let why = format!("error: `{path}` is a bare git repository, which has no working tree: ");
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(done.stderr.starts_with(&why), "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(run(&["validate", &path, "--rev", "HEAD"]).status, 0);
}

/// Runs git in a directory.
fn git(directory: &str, arguments: &[&str]) {
    let mut command = Command::new("git");
    let status = command.arg("-C").arg(directory).args(arguments).status().unwrap();
    assert!(status.success(), "{arguments:?}");
}

#[test]
fn a_working_tree_has_no_files_that_git_ignores() {
    let repository = GitRepository::new();
    let path = repository.text_path();
    let parent = "name: Parent\n";
    repository.commit(
        "one",
        &[
            (".gitignore", "*.local.yaml\n/generated/\n"),
            ("groups/a.yaml", "name: A\nparent: Parent\n"),
        ],
    );
    std::fs::write(repository.path().join("groups/parent.local.yaml"), parent).unwrap();
    for more in [&["--rev", "HEAD"][..], &[]] {
        let done = run(&[&["validate", &path], more].concat());
        assert!(done.stdout.contains("missing-parent"), "{more:?}: {}", done.stdout);
    }
    // What git does not ignore will be committed, and what it has is committed.
    std::fs::write(repository.path().join("groups/parent.yaml"), parent).unwrap();
    assert_eq!(run(&["validate", &path]).status, 0);
    std::fs::remove_file(repository.path().join("groups/parent.yaml")).unwrap();
    repository.commit("forced", &[("groups/parent.local.yaml", parent)]);
    assert_eq!(run(&["validate", &path]).status, 0);
    // Nor does one whose files git ignores, each of them.
    let generated = repository.path().join("made");
    std::fs::create_dir_all(generated.join("groups")).unwrap();
    std::fs::write(generated.join(".gitignore"), "*\n").unwrap();
    std::fs::write(generated.join("groups/a.yaml"), parent).unwrap();
    let exported = run(&["export", generated.to_str().unwrap()]);
    assert!(exported.stdout.contains("\"Parent\""), "{} {}", exported.stdout, exported.stderr);
    // A directory that git ignores as a whole does not belong to this repository.
    let generated = repository.path().join("generated");
    std::fs::create_dir_all(generated.join("groups")).unwrap();
    std::fs::write(generated.join("groups/a.local.yaml"), parent).unwrap();
    let exported = run(&["export", generated.to_str().unwrap()]);
    assert!(exported.stdout.contains("\"Parent\""), "{} {}", exported.stdout, exported.stderr);
}

#[test]
fn a_sparse_checkout_is_not_a_commit_of_it() {
    let repository = GitRepository::new();
    let path = repository.text_path();
    repository.commit(
        "one",
        &[
            ("groups/x/a.yaml", "name: A\n"),
            ("groups/y/b.yaml", "name: B\n"),
            ("docs/z/d.md", "D\n"),
        ],
    );
    for index in ["--no-sparse-index", "--sparse-index"] {
        git(&path, &["sparse-checkout", "set", "--cone", index, "groups/x"]);
        let done = run(&["validate", &path]);
        let advice =
            ": pass a revision, such as `--rev HEAD`, or run `git sparse-checkout disable`\n";
        assert!(done.status == 2 && done.stderr.ends_with(advice), "{index}: {}", done.stderr);
        assert_eq!(run(&["validate", &path, "--rev", "HEAD"]).status, 0, "{index}");
        assert_eq!(run(&["fmt", &path, "--check"]).status, 0, "{index}");
    }
    git(&path, &["sparse-checkout", "disable"]);
    repository.commit(
        "two",
        &[("clade.yaml", "schemas: {classes: {c: schemas/c.json}}\n"), ("schemas/c.json", "{}\n")],
    );
    for left_out in ["/clade.yaml", "/schemas/"] {
        let no = format!("!{left_out}");
        git(&path, &["sparse-checkout", "set", "--no-cone", "--no-sparse-index", "/*", &no]);
        let done = run(&["validate", &path]);
        let says = done.stderr.contains("is not in this sparse checkout");
        assert!(done.status == 2 && says, "{left_out}: {}{}", done.stdout, done.stderr);
        assert_eq!(run(&["fmt", &path, "--check"]).status, 0, "{left_out}");
    }
    git(&path, &["sparse-checkout", "disable"]);
    // Files that have no part in the groups may be left out.
    git(&path, &["sparse-checkout", "set", "--cone", "--no-sparse-index", "groups", "schemas"]);
    let done = run(&["validate", &path]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
}
