//! Repositories that store their references in a format that libgit2 does not read.

use std::path::Path;
use std::process::Command;

use crate::program::{Daemon, GitRepository, run};
use crate::table::each_row;

const A: &str = "name: A\nid: aaaaaaaa-0000-4000-8000-00000000000a\n";

/// What people read, with what to do.
const MESSAGE: &str = "it stores its references as reftable, which is not supported: convert it with `git refs migrate --ref-format=files`";

/// Converts the references of a repository, or makes its settings say so where this git cannot.
fn convert(path: &Path, format: &str) {
    let git = |arguments: &[&str]| {
        let done = Command::new("git").arg("-C").arg(path).args(arguments).output();
        done.is_ok_and(|it| it.status.success())
    };
    if git(&["refs", "migrate", &format!("--ref-format={format}")]) {
        return;
    }
    let config = path.join(".git/config");
    let text = std::fs::read_to_string(&config).unwrap();
    let (old, new) = ("repositoryformatversion = 0", "repositoryformatversion = 1");
    let added = "[extensions]\n\trefstorage = reftable\n";
    let text = match format {
        "files" => text.replace(new, old).replace(added, ""),
        _ => text.replace(old, new) + added,
    };
    std::fs::write(config, text).unwrap();
}

#[test]
fn a_repository_with_reftable_is_named_at_the_start() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", A)]);
    convert(&repository.path(), "reftable");
    let (path, data) = (repository.text_path(), tempfile::tempdir().unwrap());
    let data = data.path().to_str().unwrap();
    let below = format!("{path}/groups");
    let rows = [
        &["serve", "--repo", &path][..],
        &["serve", "--repo", &below],
        &["serve", "--repo", &path, "--data-dir", data],
        &["export", &path, "--rev", "HEAD"],
    ];
    each_row(rows, |arguments| {
        let done = run(arguments);
        assert_ne!(done.status, 0);
        assert!(done.stderr.contains(MESSAGE), "{}", done.stderr);
    });
}

#[test]
fn a_repository_that_becomes_one_with_reftable_is_named_in_the_status() {
    let rows = [(false, false), (true, false), (true, true)];
    each_row(rows, |(has_mirror, is_url)| {
        let repository = GitRepository::new();
        let first = repository.commit("first", &[("groups/a.yaml", A)]);
        let (path, data) = (repository.text_path(), tempfile::tempdir().unwrap());
        let data = data.path().to_str().unwrap();
        let address = if is_url { format!("file://{path}") } else { path };
        let mirror = ["--data-dir", data];
        let more = if has_mirror { &mirror[..] } else { &[] };
        let usual = ["--repo", &address, "--branch", "main"];
        let daemon = Daemon::start(&[&usual, more].concat());
        convert(&repository.path(), "reftable");
        let status = || daemon.get("/controller/status").body;
        daemon.wait_until("the fetch fails", |_| status().contains("refs migrate"));
        assert!(status().contains(MESSAGE), "{}", status());
        let live = daemon.get("/v1/groups");
        assert_eq!(live.header("X-Clade-Commit"), Some(first.as_str()), "{}", status());
        convert(&repository.path(), "files");
        daemon.wait_until("it is fetched again", |_| !status().contains("reftable"));
    });
}
