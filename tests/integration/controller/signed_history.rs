//! Signatures of histories: what counts as verified when keys change, clocks differ and objects are damaged.

use std::path::{Path, PathBuf};

use super::signatures::{Key, Signed, have, run, wait_until_rejected};
use super::{has, live, wait_for};
use crate::program::Daemon;

/// Flips some bytes of a commit in the packs of a mirror.
fn damage(mirror: &Path, commit: &str) {
    let packs = std::fs::read_dir(mirror.join("objects/pack")).unwrap();
    for pack in packs.map(|it| it.unwrap().path()).filter(|it| it.extension().unwrap() == "pack") {
        let listed = run(mirror, "git", &["verify-pack", "-v", pack.to_str().unwrap()]);
        let Some(line) = listed.lines().find(|it| it.starts_with(commit)) else { continue };
        let offset: usize = line.split_whitespace().nth(4).unwrap().parse().unwrap();
        let mut bytes = std::fs::read(&pack).unwrap();
        for byte in &mut bytes[offset + 40..offset + 48] {
            *byte ^= 0xff;
        }
        std::fs::remove_file(&pack).unwrap();
        std::fs::write(&pack, bytes).unwrap();
        return;
    }
    panic!("no pack has {commit}");
}

/// A repository with two keys, and a file of those that are allowed.
struct Keys {
    signed: Signed,
    ada: PathBuf,
    eve: PathBuf,
}

impl Keys {
    fn new() -> Option<Self> {
        if !have(&["git", "ssh-keygen"]) {
            return None;
        }
        let signed = Signed::new();
        let (ada, eve) = (signed.ssh_key("ada"), signed.ssh_key("eve"));
        Some(Self { signed, ada, eve })
    }

    fn allow(&self, keys: &[&Path]) {
        let line = |key: &&Path| {
            let key = std::fs::read_to_string(key.with_extension("pub")).unwrap();
            format!("* {key}")
        };
        let text: String = keys.iter().map(line).collect();
        std::fs::write(self.signed.path().join("new"), format!("# keys\n{text}")).unwrap();
        let (new, allowed) = (self.signed.path().join("new"), self.signed.path().join("allowed"));
        std::fs::rename(new, allowed).unwrap();
    }

    /// Writes so many groups that building them takes seconds.
    fn write_many(&self) {
        let groups = self.signed.path().join("repository/groups");
        for file in 0..20 {
            let group = |it| {
                format!("name: group {file} {it}\nrule: ['~', 'name', '^{file}[a-f]+{it}$']\n")
            };
            let documents: Vec<String> = (0..500).map(group).collect();
            std::fs::write(groups.join(format!("{file}.yaml")), documents.join("---\n")).unwrap();
        }
    }

    fn commit(&self, name: &str, key: &Path) -> String {
        self.signed.commit(name, Key::Ssh(key))
    }

    /// Starts a daemon that reads the repository in place.
    fn start(&self) -> Daemon {
        let allowed = self.signed.path().join("allowed");
        let allowed = allowed.to_str().unwrap();
        let verify = ["--branch", "main", "--verify", "range", "--allowed-signers-file", allowed];
        self.signed.start(&verify)
    }

    /// Starts a daemon that follows the repository in a mirror.
    fn follow(&self) -> Daemon {
        let at = |name: &str| self.signed.path().join(name).to_str().unwrap().to_owned();
        let url = format!("file://{}", at("repository"));
        Daemon::start(&[
            "--repo",
            &url,
            "--allow-insecure-remotes",
            "--branch",
            "main",
            "--data-dir",
            &at("data"),
            "--verify",
            "range",
            "--allowed-signers-file",
            &at("allowed"),
        ])
    }
}

fn is_verified(daemon: &Daemon) -> bool {
    let status = daemon.get("/controller/status").json();
    let conditions = status["conditions"].as_array().unwrap();
    conditions.iter().any(|it| it["type"] == "SourceVerified" && it["status"] == "True")
}

#[test]
fn damage_in_the_history_is_not_taken_for_a_bad_signature() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada]);
    keys.commit("first", &keys.ada);
    let second = keys.commit("second", &keys.ada);
    // The largest of them: the others are stored as differences from it.
    let third = keys.commit("third-and-largest", &keys.ada);
    let daemon = keys.follow();
    wait_for(&daemon, &third);
    assert_eq!(daemon.terminate(), 0);
    damage(&keys.signed.path().join("data/mirror.git"), &second);
    let daemon = keys.follow();
    wait_for(&daemon, &third);
    assert!(is_verified(&daemon));
    let fourth = keys.commit("fourth", &keys.ada);
    wait_for(&daemon, &fourth);
    assert!(!has(&daemon, "CandidateRejected"));
    daemon.wait_until("the failure is over", |it| !has(it, "FetchFailed"));
    let fresh = keys.signed.path().join("data/mirror.git.broken");
    assert!(fresh.exists(), "everything was fetched again");
}

#[test]
fn commits_of_a_removed_key_are_rejected_although_a_request_had_them_verified() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada, &keys.eve]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &first);
    keys.signed.git(&["checkout", "--quiet", "-b", "side"]);
    let removed = keys.commit("removed", &keys.eve);
    let head = keys.commit("head", &keys.ada);
    daemon.wait_until("the side branch is here and verified", |it| {
        it.get(&format!("/enc/n?commit={head}")).status == 200
    });
    keys.allow(&[&keys.ada]);
    assert_eq!(daemon.get(&format!("/enc/n?commit={head}")).status, 422);
    keys.signed.git(&["branch", "--force", "main", &head]);
    let said = wait_until_rejected(&daemon, &head, "SignerNotAllowed");
    assert!(said.starts_with(&format!("the commit {removed} is signed by the key")), "{said}");
    assert_eq!(live(&daemon), Some(first));
    keys.allow(&[&keys.ada, &keys.eve]);
    wait_for(&daemon, &head);
}

#[test]
fn what_a_verified_commit_contains_is_verified_whatever_its_dates_are() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada]);
    let commit_at = |date: &str, name: &str| {
        let date = format!("GIT_COMMITTER_DATE={date}T00:00:00Z");
        let git = "git -C repository -c user.name=A -c user.email=a@example.com commit --quiet --allow-empty";
        let command = format!("{git} --message {name}");
        run(keys.signed.path(), "env", &[&date, "sh", "-c", &command]);
    };
    commit_at("2026-11-01", "root");
    let root = keys.signed.git(&["rev-parse", "HEAD"]);
    for day in 1..=9 {
        commit_at(&format!("2001-01-0{day}"), "old");
    }
    let head = keys.commit("head", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &head);
    keys.signed.git(&["checkout", "--quiet", "-b", "side", &root]);
    keys.commit("side", &keys.ada);
    keys.signed.git(&["checkout", "--quiet", "main"]);
    let merged = keys.signed.merge("side", &keys.ada);
    wait_for(&daemon, &merged);
    keys.signed.git(&["checkout", "--quiet", "-b", "bad", &root]);
    let hidden = keys.signed.commit("hidden", Key::None);
    keys.signed.git(&["checkout", "--quiet", "main"]);
    let bad = keys.signed.merge("bad", &keys.ada);
    let said = wait_until_rejected(&daemon, &bad, "SignatureMissing");
    assert_eq!(said, format!("the commit {hidden} is not signed"));
}

#[test]
fn keys_that_change_count_while_the_remote_cannot_be_fetched() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.follow();
    wait_for(&daemon, &first);
    let at = |name: &str| keys.signed.path().join(name);
    std::fs::rename(at("repository"), at("away")).unwrap();
    daemon.wait_until("the fetch fails", |it| has(it, "FetchFailed"));
    keys.allow(&[&keys.eve]);
    daemon.wait_until("the removed key is noticed", |it| !is_verified(it));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    keys.allow(&[&keys.ada]);
    daemon.wait_until("the key is back", is_verified);
    keys.allow(&[&keys.eve]);
    daemon.wait_until("the removed key is noticed again", |it| !is_verified(it));
    assert_eq!(daemon.terminate(), 0);
    let daemon = keys.follow();
    wait_until_rejected(&daemon, &first, "SignerNotAllowed");
    assert_eq!(live(&daemon), None);
    keys.allow(&[&keys.ada]);
    wait_for(&daemon, &first);
}

#[test]
fn a_held_commit_of_a_removed_key_waits_no_longer() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada, &keys.eve]);
    let first = keys.commit("first", &keys.ada);
    let second = keys.commit("second", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &second);
    keys.signed.git(&["checkout", "--quiet", "-b", "side", &first]);
    let rewritten = keys.commit("rewritten", &keys.eve);
    keys.signed.git(&["branch", "--force", "main", &rewritten]);
    daemon.wait_until("it is held", |it| has(it, "PromotionHeld"));
    keys.allow(&[&keys.ada]);
    wait_until_rejected(&daemon, &rewritten, "SignerNotAllowed");
    assert!(!has(&daemon, "PromotionHeld"));
    keys.allow(&[&keys.ada, &keys.eve]);
    daemon.wait_until("it is held again", |it| has(it, "PromotionHeld"));
    assert_eq!(live(&daemon), Some(second));
}

#[test]
fn a_key_that_is_removed_while_its_commit_is_built_counts_no_more() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada, &keys.eve]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &first);
    keys.write_many();
    let many = keys.commit("many", &keys.eve);
    daemon.wait_until("it is built", |it| {
        let lines = it.log_lines();
        lines.iter().any(|it| it.contains("the signature is valid") && it.contains(&many))
    });
    keys.allow(&[&keys.ada]);
    wait_until_rejected(&daemon, &many, "SignerNotAllowed");
    assert_eq!(live(&daemon), Some(first));
    // Nor does it vouch for what is built upon it.
    let last = keys.commit("last", &keys.ada);
    let said = wait_until_rejected(&daemon, &last, "SignerNotAllowed");
    assert!(said.contains(&many), "{said}");
    let lines = daemon.log_lines();
    let says = |what: &str| lines.iter().any(|it| it.contains(what) && it.contains(&many));
    assert!(says("keys changed since the commit was verified") && !says("the commit is live"));
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains("clade_snapshot_builds_total{result=\"live\"} 1\n"), "{metrics}");
}

#[test]
fn a_key_that_is_removed_while_a_pinned_commit_is_built_counts_no_more() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada, &keys.eve]);
    let first = keys.commit("first", &keys.ada);
    keys.signed.git(&["checkout", "--quiet", "-b", "side"]);
    let few = keys.commit("few", &keys.eve);
    keys.write_many();
    let many = keys.commit("many", &keys.eve);
    let daemon = keys.start();
    wait_for(&daemon, &first);
    daemon.wait_until("the side branch is here", |it| {
        it.get(&format!("/enc/n?commit={few}")).status == 200
    });
    let pinned = std::thread::scope(|scope| {
        let body = format!(r#"{{"commit": "{many}", "reason": "test"}}"#);
        let daemon = &daemon;
        let pin = scope.spawn(move || daemon.request("POST", "/controller/pin", &body));
        std::thread::sleep(std::time::Duration::from_millis(300));
        keys.allow(&[&keys.ada]);
        pin.join().unwrap()
    });
    assert_eq!(pinned.status, 422, "{}", pinned.body);
    assert_eq!(live(&daemon), Some(first));
    let status = daemon.get("/controller/status").json();
    assert!(status["pinned"].is_null(), "{status}");
}

#[test]
fn a_rejected_head_stays_so_where_the_commit_that_answers_is_damaged() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.follow();
    wait_for(&daemon, &first);
    keys.signed.commit("unsigned", Key::None);
    let head = keys.commit("head", &keys.ada);
    wait_until_rejected(&daemon, &head, "SignatureMissing");
    let at = |name: &str| keys.signed.path().join(name);
    let failures = |it: &Daemon| {
        let metrics = it.get("/metrics").body;
        let series = "clade_source_consecutive_failures ";
        metrics.lines().find_map(|it| it.strip_prefix(series)?.parse::<u32>().ok())
    };
    std::fs::rename(at("repository"), at("away")).unwrap();
    damage(&at("data/mirror.git"), &first);
    daemon.wait_until("keys were applied some times", |it| failures(it) >= Some(3));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    std::fs::rename(at("away"), at("repository")).unwrap();
    daemon.wait_until("the mirror is fresh", |it| {
        at("data/mirror.git.broken").exists() && failures(it) == Some(0)
    });
    wait_until_rejected(&daemon, &head, "SignatureMissing");
    assert_eq!(live(&daemon), Some(first));
}

/// Has the journal of a daemon that has ended say that a commit was seen at another time.
fn set_seen(keys: &Keys, commit: &str, time: &str) {
    let journal = keys.signed.path().join("data/journal");
    let text = std::fs::read_to_string(&journal).unwrap();
    let lines = text.lines().map(|line| match line.contains(commit) {
        true => format!("{{\"time\":\"{time}T00:00:00Z\"{}\n", &line[line.find(',').unwrap()..]),
        false => format!("{line}\n"),
    });
    let changed: String = lines.collect();
    assert_ne!(changed, text);
    std::fs::write(journal, changed).unwrap();
}

#[test]
fn a_clock_that_was_wrong_rejects_no_commit_once_it_is_right() {
    for (options, seen, is_allowed) in [
        ("valid-before=\"20980101Z\"", "2099-01-01", true),
        ("valid-after=\"20200101Z\"", "2001-01-01", true),
        ("valid-after=\"20200101Z\",valid-before=\"20200102Z\"", "2001-01-01", false),
    ] {
        let Some(keys) = Keys::new() else { return };
        keys.allow(&[&keys.eve]);
        let first = keys.commit("first", &keys.eve);
        let daemon = keys.start();
        wait_for(&daemon, &first);
        let second = keys.commit("second", &keys.ada);
        wait_until_rejected(&daemon, &second, "SignerNotAllowed");
        assert_eq!(daemon.terminate(), 0);
        set_seen(&keys, &second, seen);
        keys.allow(&[&keys.ada, &keys.eve]);
        let allowed = keys.signed.path().join("allowed");
        let text = std::fs::read_to_string(&allowed).unwrap();
        std::fs::write(&allowed, text.replacen("* ", &format!("* {options} "), 1)).unwrap();
        let daemon = keys.start();
        if is_allowed {
            wait_for(&daemon, &second);
        } else {
            wait_until_rejected(&daemon, &second, "SignerNotAllowed");
        }
    }
}

/// Has a daemon hold a rewritten branch, and returns the live commit and the one that waits. It is of Eve's key, and
/// without an ancestor that is valid.
fn hold_rewrite(keys: &Keys, key: &Path) -> (Daemon, String, String) {
    keys.allow(&[&keys.ada, &keys.eve]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &first);
    keys.signed.git(&["checkout", "--quiet", "--orphan", "side"]);
    let waiting = keys.commit("waiting", key);
    keys.signed.git(&["branch", "--force", "main", &waiting]);
    daemon.wait_until("it is held", |it| has(it, "PromotionHeld"));
    (daemon, first, waiting)
}

#[test]
fn a_resume_activates_a_commit_whose_key_is_added_later() {
    let Some(keys) = Keys::new() else { return };
    let (daemon, first, waiting) = hold_rewrite(&keys, &keys.eve);
    let unsigned = keys.signed.commit("unsigned", Key::None);
    keys.signed.git(&["branch", "--force", "main", &unsigned]);
    wait_until_rejected(&daemon, &unsigned, "SignatureMissing");
    assert!(has(&daemon, "PromotionHeld"));
    keys.allow(&[&keys.ada]);
    daemon.wait_until("it waits no longer", |it| !has(it, "PromotionHeld"));
    keys.allow(&[&keys.ada, &keys.eve]);
    daemon.wait_until("it waits again", |it| has(it, "PromotionHeld"));
    keys.allow(&[&keys.ada]);
    daemon.wait_until("it waits no longer", |it| !has(it, "PromotionHeld"));
    assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
    wait_until_rejected(&daemon, &unsigned, "SignatureMissing");
    assert_eq!(live(&daemon), Some(first));
    keys.allow(&[&keys.ada, &keys.eve]);
    wait_for(&daemon, &waiting);
}

#[test]
fn a_resume_activates_the_newest_valid_commit_behind_a_damaged_head() {
    let Some(keys) = Keys::new() else { return };
    let (daemon, first, waiting) = hold_rewrite(&keys, &keys.ada);
    let at = |name: &str| keys.signed.path().join(name);
    let lines: Vec<String> = (0..400).map(|it| (it * it * 7919 % 10007).to_string()).collect();
    let text = format!("# {}\n", lines.join("\n# "));
    std::fs::write(at("repository/groups/large.yaml"), format!("name: large\n{text}")).unwrap();
    let head = keys.commit("head", &keys.ada);
    let large = keys.signed.git(&["rev-parse", "HEAD:groups/large.yaml"]);
    keys.signed.git(&["branch", "--force", "main", &head]);
    daemon.wait_until("the head waits", |it| {
        let status = it.get("/controller/status").json();
        let conditions = status["conditions"].as_array().unwrap().clone();
        conditions.iter().any(|it| it["message"].as_str().unwrap().starts_with(&head))
    });
    assert_eq!(daemon.terminate(), 0);
    std::fs::rename(at("repository"), at("away")).unwrap();
    std::fs::create_dir(at("repository")).unwrap();
    damage(&at("data/mirror.git"), &large);
    let daemon = keys.start();
    daemon.wait_until("the head cannot be read", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == head
    });
    assert_eq!(live(&daemon), Some(first));
    assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
    wait_for(&daemon, &waiting);
}

#[test]
fn the_status_says_what_is_wrong_with_a_signature_now() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada]);
    let first = keys.commit("first", &keys.ada);
    let daemon = keys.start();
    wait_for(&daemon, &first);
    std::fs::remove_file(keys.signed.path().join("allowed")).unwrap();
    let second = keys.commit("second", &keys.eve);
    let said = wait_until_rejected(&daemon, &second, "SignatureInvalid");
    assert!(said.contains("No such file"), "{said}");
    keys.allow(&[&keys.ada]);
    daemon.wait_until("the file is read", |it| {
        let status = it.get("/controller/status").json();
        let conditions = status["conditions"].as_array().unwrap().clone();
        conditions.iter().any(|it| it["reason"] == "SignerNotAllowed")
    });
    let said = wait_until_rejected(&daemon, &second, "SignerNotAllowed");
    assert!(said.ends_with("it is not in the file of allowed signers"), "{said}");
    assert_eq!(live(&daemon), Some(first));
}

/// Returns what the condition `Ready` says.
fn readiness(daemon: &Daemon) -> String {
    let status = daemon.get("/controller/status").json();
    let conditions = status["conditions"].as_array().unwrap().iter();
    let ready = conditions.clone().find(|it| it["type"] == "Ready").unwrap();
    ready["message"].as_str().unwrap().to_owned()
}

/// Adds a commit that is signed and not valid.
fn commit_invalid(keys: &Keys, name: &str, key: &Path) -> String {
    let groups = keys.signed.path().join("repository/groups");
    std::fs::write(groups.join("invalid.yaml"), "name: invalid\nparent: nowhere\n").unwrap();
    keys.commit(name, key)
}

#[test]
fn the_commit_of_before_the_restart_answers_when_its_key_is_back() {
    let Some(keys) = Keys::new() else { return };
    keys.allow(&[&keys.ada, &keys.eve]);
    let last = keys.commit("last", &keys.ada);
    let daemon = keys.follow();
    wait_for(&daemon, &last);
    let head = commit_invalid(&keys, "head", &keys.eve);
    let is_rejected =
        |it: &Daemon| it.get("/controller/status").json()["last_failed"]["commit"] == head.as_str();
    daemon.wait_until("the head is rejected", is_rejected);
    assert_eq!(daemon.terminate(), 0);
    keys.allow(&[&keys.eve]);
    let daemon = keys.follow();
    daemon.wait_until("the head is rejected", is_rejected);
    assert!(readiness(&daemon).contains(&format!("the commit {last} is signed by the key")));
    std::fs::remove_file(keys.signed.path().join("allowed")).unwrap();
    daemon.wait_until("the status says why now", |it| readiness(it).contains("No such file"));
    assert_eq!(live(&daemon), None);
    keys.allow(&[&keys.ada, &keys.eve]);
    wait_for(&daemon, &last);
    daemon.wait_until("the head stays rejected", is_rejected);
    assert!(is_verified(&daemon) && readiness(&daemon).starts_with("serving"));
    // Also where the remote cannot be fetched.
    assert_eq!(daemon.terminate(), 0);
    keys.allow(&[&keys.eve]);
    let at = |name: &str| keys.signed.path().join(name);
    std::fs::rename(at("repository"), at("away")).unwrap();
    let daemon = keys.follow();
    daemon.wait_until("the fetch fails", |it| has(it, "FetchFailed"));
    assert_eq!(live(&daemon), None);
    keys.allow(&[&keys.ada, &keys.eve]);
    wait_for(&daemon, &last);
}

/// Starts a daemon that demands signatures of heads, by SSH and OpenPGP keys.
fn start_with_both(keys: &Keys) -> Daemon {
    let at = |name: &str| keys.signed.path().join(name).to_str().unwrap().to_owned();
    let (allowed, openpgp) = (at("allowed"), at("keys.asc"));
    let files = ["--allowed-signers-file", &allowed, "--openpgp-keys-file", &openpgp];
    keys.signed.start(&[&files[..], &["--verify", "head"]].concat())
}

#[test]
fn a_resume_waits_for_keys_that_cannot_be_read() {
    for (is_head, logged) in [(false, "searched again when keys change"), (true, "is rejected")] {
        let Some(keys) = Keys::new().filter(|_| have(&["gpg"])) else { return };
        let bob = keys.signed.openpgp_key("bob");
        let file = keys.signed.path().join("keys.asc");
        let export = || {
            let text = run(keys.signed.path(), "gpg", &["--armor", "--export", &bob]);
            std::fs::write(&file, text).unwrap();
        };
        keys.allow(&[&keys.ada]);
        export();
        let first = keys.commit("first", &keys.ada);
        let daemon = start_with_both(&keys);
        wait_for(&daemon, &first);
        let pin = format!(r#"{{"commit": "{first}", "reason": "test"}}"#);
        assert_eq!(daemon.request("POST", "/controller/pin", &pin).status, 200);
        let older = keys.commit("older", &keys.ada);
        let newer = keys.signed.commit("newer", Key::OpenPgp(&bob));
        let head = if is_head { newer.clone() } else { commit_invalid(&keys, "head", &keys.ada) };
        let is_rejected = |it: &Daemon| {
            it.get("/controller/status").json()["last_failed"]["commit"] == head.as_str()
        };
        daemon.wait_until("the head is decided", |it| is_rejected(it) || has(it, "PromotionHeld"));
        std::fs::remove_file(&file).unwrap();
        daemon.wait_until("the head is rejected", is_rejected);
        let count = |it: &Daemon, what: &str, commit: &str| {
            let lines = it.log_lines();
            lines.iter().filter(|it| it.contains(what) && it.contains(commit)).count()
        };
        let before = count(&daemon, logged, &newer);
        assert_eq!(daemon.request("POST", "/controller/resume", "").status, 202);
        daemon.wait_until("the resume waits", |it| count(it, logged, &newer) > before);
        assert_eq!(live(&daemon), Some(first));
        export();
        wait_for(&daemon, &newer);
        assert_eq!(count(&daemon, "the commit is live", &older), 0);
        run(keys.signed.path(), "gpgconf", &["--kill", "all"]);
    }
}
