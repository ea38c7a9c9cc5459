//! Secrets in the addresses of services and of the repository: nothing that is printed, logged or answered has them.

use std::path::Path;

use super::repository;
use crate::program::{Daemon, run};
use crate::table::each_row;

/// In lower case, since hosts are shown in it.
const SECRET: &str = "s3cr3t";

/// Addresses of services that hold the secret; nothing listens at port 1.
const ADDRESSES: [&str; 7] = [
    "https://127.0.0.1:1/?token=s3cr3t",
    "https://127.0.0.1:1/x?environment=p&apikey=s3cr3t#s3cr3t",
    "https://u:s3cr3t@127.0.0.1:1",
    "https://u:a/s3cr3t@127.0.0.1:1",
    "https://u:1/s3cr3t@127.0.0.1:1",
    "https://u:a?s3cr3t@127.0.0.1:1/?token=s3cr3t",
    "https://u:a#s3cr3t@127.0.0.1:1",
];

/// Addresses of repositories that hold the secret.
const REPOSITORIES: [&str; 9] = [
    "https://u:s3cr3t@127.0.0.1:1/x",
    "https://u:a/s3cr3t@127.0.0.1:1/x",
    "https://u:1/s3cr3t@127.0.0.1:1/x",
    "https://u:a?s3cr3t@127.0.0.1:1/x",
    "https://u:a#s3cr3t@127.0.0.1:1/x",
    "https://127.0.0.1:1/x?token=s3cr3t",
    "https://u:s3cr3t/x",
    "ssh://git:a/s3cr3t@127.0.0.1:1/x",
    "git:a/s3cr3t@127.0.0.1:x",
];

#[track_caller]
fn assert_hidden(what: &str, texts: &[&str]) {
    for text in texts {
        assert!(!text.to_lowercase().contains(SECRET), "{what}: {text}");
    }
}

#[test]
fn commands_show_no_secret_of_an_address() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("imported");
    let (target, commit) = (target.to_str().unwrap(), "1".repeat(40));
    let groups = repository(&[]);
    let path = groups.text_path();
    each_row(ADDRESSES, |address| {
        for arguments in [
            &["status", "--server", address][..],
            &["why", &commit, "--server", address],
            &["wait", &commit, "--server", address, "--timeout", "1s"],
            &["nodes", "--server", address],
            &["query", "web", "--puppetdb", address],
            &["blame", "web1", "--server", address],
            &["history", "web1", "--server", address],
            &["explain", "web1", "--server", address],
            &["reconcile", "--server", address],
            &["query", "web", "--server", address],
            &["enc", "web1", "--server", address],
            &["validate", &path, "--server", address],
            &["validate", &path, "--puppetdb", address],
            &["import", address, target],
            &["classes", "pull", &path, "--server", address],
        ] {
            let done = run(arguments);
            assert_ne!(done.status, 0, "{arguments:?}: {}", done.stdout);
            assert_hidden(&format!("{arguments:?}"), &[&done.stdout, &done.stderr]);
        }
    });
}

#[test]
fn the_settings_of_a_daemon_are_shown_without_secrets() {
    let groups = repository(&[]);
    let path = groups.text_path();
    let check = |flag: &str, value: &str| {
        let mut arguments = vec!["serve", "--check", "--allow-insecure-remotes", flag, value];
        if flag != "--repo" {
            arguments.extend(["--repo", &path, "--writes", "commit"]);
        }
        let done = run(&arguments);
        assert_hidden(&format!("{flag} {value}"), &[&done.stdout, &done.stderr]);
    };
    for flag in ["--puppetdb", "--puppet-server", "--forge-url", "--git-proxy", "--public-url"] {
        each_row(ADDRESSES, |address| {
            check(flag, address);
            // Without a scheme, as a proxy is often written.
            check(flag, address.trim_start_matches("https://"));
        });
    }
    each_row(ADDRESSES, |address| check("--store", &address.replace("https:", "postgres:")));
    each_row(REPOSITORIES, |address| check("--repo", address));
}

#[test]
fn a_daemon_answers_without_the_secrets_of_its_services() {
    let groups = repository(&[]);
    let path = groups.text_path();
    each_row(&ADDRESSES[..3], |address| {
        let usual = ["--repo", &path, "--writes", "commit"];
        let services = ["--puppetdb", address, "--puppet-server", address];
        let daemon = Daemon::start(&[&usual[..], &services].concat());
        let classes = daemon.request("POST", "/v1/update-classes?environment=production", "");
        assert_eq!(classes.status, 503, "{}", classes.body);
        let node = daemon.get("/enc/zork");
        assert_eq!(node.status, 503, "{}", node.body);
        assert!(node.body.contains("https://127.0.0.1:1"), "{}", node.body);
        let status = daemon.get("/controller/status").body;
        let log = daemon.log_lines().join("\n");
        assert_hidden(address, &[&classes.body, &node.body, &status, &log]);
    });
}

#[test]
fn a_repository_is_refused_or_shown_without_its_secret() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (key, hosts) = (file("key", "k"), file("hosts", ""));
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let usual = ["--data-dir", data, "--ssh-key-file", &key, "--ssh-known-hosts-file", &hosts];
    each_row(&REPOSITORIES[1..], |address| {
        let done = run(&[&["serve", "--repo", address], &usual[..]].concat());
        assert!(done.stderr.contains("not a URL to fetch from"), "{}", done.stderr);
        assert_eq!(done.status, 2, "{address}: {}", done.stderr);
        assert_hidden(address, &[&done.stdout, &done.stderr]);
    });
    assert!(!Path::new(data).exists());
    let daemon = Daemon::start(&["--repo", REPOSITORIES[0], "--data-dir", data]);
    daemon.wait_until("the fetch fails", |it| {
        it.get("/controller/status").body.contains("cannot be fetched")
    });
    let status = daemon.get("/controller/status").body;
    assert!(status.contains("https://127.0.0.1:1/x"), "{status}");
    let refused = daemon.request("POST", "/v1/groups", "{}").body;
    assert_hidden("status", &[&status, &refused, &daemon.log_lines().join("\n")]);
}
