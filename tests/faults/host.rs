//! Neighbours on the machine, and what clients of the daemon keep and send.

use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Daemon, Done, GitRepository, clade, serve};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "host::root-cache-links",
        promise: "`clade enc` as root writes through no link of another user and gives no file away",
        injection: "links of user 1234 in the place of the cache directory, `answers`, its files, and a directory above",
        speed: Speed::Fast,
        run: root_cache_links,
    },
    Fault {
        name: "host::planted-answer",
        promise: "a last good answer that another user wrote never classifies a node",
        injection: "an answer of user 1235 in the cache of user 1234, in a directory open to all",
        speed: Speed::Fast,
        run: planted_answer,
    },
    Fault {
        name: "host::token-in-clear-text",
        promise: "no command sends a token over plain `http://` to another host",
        injection: "`--server http://192.0.2.1:4433 --token-file`, a password in the URL, and `--forge-url http://`",
        speed: Speed::Fast,
        run: token_in_clear_text,
    },
    Fault {
        name: "host::empty-secrets",
        promise: "the daemon refuses secrets that are publicly known, and names that add lines",
        injection: "the webhook secret `whsec_`, a token whose hash is that of nothing, a token name with a line break",
        speed: Speed::Fast,
        run: empty_secrets,
    },
];

/// A user that owns nothing else.
const USER: u32 = 1234;

/// Returns what a fault needs to be injected, if it is missing.
fn missing_root(directory: &Path) -> Option<Seen> {
    let probe = directory.join("probe");
    std::fs::write(&probe, "").unwrap();
    let needs = Seen::Skipped("root and setpriv");
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    (chown(&probe, Some(USER), Some(USER)).is_err() || !has_setpriv).then_some(needs)
}

/// A directory that every user may enter.
fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    directory
}

fn set_mode(path: &Path, mode: u32) {
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).unwrap();
}

/// A daemon with a group for every node.
fn daemon() -> (GitRepository, Daemon) {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\nrule: name ~ w\nclasses: {ntp: }\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    (repository, daemon)
}

fn enc_as(user: Option<u32>, server: &str, cache: &Path) -> Done {
    let cache = cache.to_str().unwrap();
    // The Puppet of this machine, if there is one, has no say.
    let facts = tempfile::tempdir().unwrap();
    set_mode(facts.path(), 0o755);
    let facts = facts.path().to_str().unwrap();
    let elsewhere = ["--facts-dir", facts, "--signed-dir", "/nonexistent"];
    let enc = ["enc", "web1", "--server", server, "--cache-dir", cache];
    let enc = clade(&[&enc[..], &elsewhere].concat());
    let Some(user) = user else { return { enc }.output().unwrap().into() };
    let id = user.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    command.arg(enc.get_program()).args(enc.get_args()).output().unwrap().into()
}

/// Returns every file below a directory with its owner.
fn owners(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        found.push((path.clone(), metadata.uid()));
        if metadata.is_dir() {
            found.extend(owners(&path));
        }
    }
    found.sort();
    found
}

fn root_cache_links() -> Seen {
    let directory = open_directory();
    if let Some(skipped) = missing_root(directory.path()) {
        return skipped;
    }
    let (_repository, daemon) = daemon();
    let server = format!("http://{}", daemon.address);
    // What root owns, and what must not change.
    let system = directory.path().join("system");
    std::fs::create_dir_all(system.join("answers")).unwrap();
    std::fs::write(system.join("shadow"), "root:*").unwrap();
    let before = owners(&system);
    let data = directory.path().join("puppetserver");
    let place = |name: &str, target: &str| {
        std::fs::remove_dir_all(&data).ok();
        let link = data.join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(system.join(target), &link).unwrap();
        for path in [Some(data.as_path()), link.parent()].into_iter().flatten() {
            chown(path, Some(USER), Some(USER)).unwrap();
        }
        std::os::unix::fs::lchown(&link, Some(USER), Some(USER)).unwrap();
    };
    let mut places = 0;
    for (link, target, cache) in [
        ("clade", "", "clade"),
        ("clade/answers", "answers", "clade"),
        ("clade/answers/web1.json", "shadow", "clade"),
        ("clade/servers.json", "shadow", "clade"),
        ("above", "", "above/clade"),
    ] {
        place(link, target);
        let theirs = owners(&data);
        let done = enc_as(None, &server, &data.join(cache));
        assert_eq!(done.status, 0, "{link}: {}", done.stderr);
        assert!(done.stdout.contains("\"ntp\""), "{link}: {}", done.stdout);
        let reason = format!("belongs to user {USER}, and root uses no cache");
        assert!(done.stderr.contains(&reason), "{link}: {}", done.stderr);
        assert_eq!(owners(&system), before, "{link}");
        assert_eq!(std::fs::read_to_string(system.join("shadow")).unwrap(), "root:*");
        assert_eq!(owners(&data), theirs, "{link}: root made nothing there");
        places += 1;
    }
    // Puppet Server itself keeps running.
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::create_dir(&data).unwrap();
    chown(&data, Some(USER), Some(USER)).unwrap();
    enc_as(None, &server, &data.join("clade"));
    let done = enc_as(Some(USER), &server, &data.join("clade"));
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    assert!(owners(&data).iter().all(|(_, owner)| *owner == USER));
    assert!(data.join("clade/answers/web1.json").is_file());
    Seen::Held(format!("{places} places of a link, nothing written or given away"))
}

fn planted_answer() -> Seen {
    let directory = open_directory();
    if let Some(skipped) = missing_root(directory.path()) {
        return skipped;
    }
    let (_repository, daemon) = daemon();
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    set_mode(&shared, 0o777);
    let done = enc_as(Some(USER), &format!("http://{}", daemon.address), &shared);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let kept = std::fs::read_to_string(shared.join("answers/web1.json")).unwrap();
    drop(daemon);
    let gone = "http://127.0.0.1:1";
    let done = enc_as(Some(USER), gone, &shared);
    assert_eq!(done.status, 0, "its own answer stands in: {}", done.stderr);
    // In a directory open to all a neighbour may move ours away and put another in its place.
    std::fs::remove_dir_all(shared.join("answers")).unwrap();
    std::fs::create_dir(shared.join("answers")).unwrap();
    std::fs::write(shared.join("answers/web1.json"), kept).unwrap();
    for path in [shared.join("answers"), shared.join("answers/web1.json")] {
        chown(&path, Some(1235), Some(1235)).unwrap();
        set_mode(&path, 0o755);
    }
    let done = enc_as(Some(USER), gone, &shared);
    assert_eq!(done.status, 1, "{}", done.stdout);
    assert!(done.stderr.contains("belongs to user 1235"), "{}", done.stderr);
    Seen::Held("exit status 1, the owner is named".to_owned())
}

fn token_in_clear_text() -> Seen {
    let directory = open_directory();
    let token = directory.path().join("token");
    std::fs::write(&token, "correct-horse-battery-staple").unwrap();
    let token = token.to_str().unwrap();
    // An address for documentation: nothing answers there.
    let server = "http://192.0.2.1:4433";
    let mut asked = 0;
    for arguments in [
        &["enc", "web1", "--server", server, "--token-file", token, "--max-stale", "0"][..],
        &["enc", "web1", "--server", "http://ada:secret@192.0.2.1:4433", "--max-stale", "0"],
        &["why", "HEAD", "--server", server, "--token-file", token],
        &["import", server, "/nonexistent/new", "--token-file", token],
    ] {
        let done: Done = clade(arguments).output().unwrap().into();
        assert_ne!(done.status, 0, "{arguments:?}");
        let reason = "`http://192.0.2.1:4433` would get the token in clear text";
        assert!(done.stderr.contains(reason), "{arguments:?}: {}", done.stderr);
        assert!(!done.stderr.contains("secret"), "{arguments:?}: {}", done.stderr);
        asked += 1;
    }
    let repository = GitRepository::new();
    let path = repository.text_path();
    let done = refused(&[
        "--repo",
        &path,
        "--forge",
        "github",
        "--forge-url",
        "http://192.0.2.1",
        "--forge-repository",
        "a/b",
        "--forge-token-file",
        token,
    ]);
    assert!(done.contains("in clear text"), "{done}");
    // This machine is another matter.
    let (_repository, daemon) = daemon();
    let local = format!("http://{}", daemon.address);
    let done: Done =
        clade(&["why", "main", "--server", &local, "--token-file", token]).output().unwrap().into();
    assert!(!done.stderr.contains("clear text"), "{}", done.stderr);
    Seen::Held(format!("{asked} commands and a daemon refused, loopback asked"))
}

/// Runs a daemon that must refuse to start and returns its message.
fn refused(arguments: &[&str]) -> String {
    let done: Done = serve(arguments).output().unwrap().into();
    assert_eq!(done.status, 2, "{}", done.stderr);
    done.stderr
}

fn empty_secrets() -> Seen {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let file = repository.path().join("file");
    let name = file.to_str().unwrap();
    for secret in ["", "whsec_\n", "a good secret of some length\nwhsec_AAAA\n", "x"] {
        std::fs::write(&file, secret).unwrap();
        let said = refused(&["--repo", &path, "--webhook-secret-file", name]);
        assert!(said.contains("the webhook secrets in"), "{secret:?}: {said}");
    }
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    for (token, hash, reason) in [
        ("ci", nothing, "is that of an empty token"),
        ("ci\\nClade-Actor: root", hello, "without control characters"),
    ] {
        let tokens = format!("- name: \"{token}\"\n  sha256: {hash}\n  roles: [read]\n");
        std::fs::write(&file, tokens).unwrap();
        let said = refused(&["--repo", &path, "--tokens-file", name]);
        assert!(said.contains(reason), "{said}");
    }
    Seen::Held("6 files refused at start".to_owned())
}
