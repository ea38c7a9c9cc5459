//! What a stolen push token can do where commits must be signed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::{condition, kind, live, pin, wait_for};
use crate::program::Daemon;
use crate::{Fault, Seen, Speed};

pub(crate) const UNSIGNED_ASKED_FOR: Fault = Fault {
    name: "activation::unsigned-asked-for",
    promise: "with `--verify`, an unsigned commit never answers, however it is asked for",
    injection: "an unsigned commit on a side branch, asked for by pin, `?commit=`, header and `?at=`",
    speed: Speed::Fast,
    run: unsigned_asked_for,
};

pub(crate) const UNSIGNED_AT_THE_START: Fault = Fault {
    name: "activation::unsigned-at-the-start",
    promise: "with `--verify`, the commit that answered before a restart answers only if it is signed",
    injection: "an unsigned commit that answers, and a restart with `--verify`",
    speed: Speed::Fast,
    run: unsigned_at_the_start,
};

pub(crate) const UNSIGNED_BEHIND_MERGES: Fault = Fault {
    name: "activation::unsigned-behind-merges",
    promise: "`--verify range` requires a signature of every commit that no verified one contains",
    injection: "signed merges of side branches that are not signed, or begin before the first verified commit",
    speed: Speed::Fast,
    run: unsigned_behind_merges,
};

pub(crate) const EXPIRED_KEY_BACKDATED: Fault = Fault {
    name: "activation::expired-key-backdated",
    promise: "an expired key signs nothing, at any time that the commit names",
    injection: "a commit with the date of years ago, signed with a key that expired since",
    speed: Speed::Fast,
    run: expired_key_backdated,
};

pub(crate) const OLDER_SIGNED_COMMIT: Fault = Fault {
    name: "activation::older-signed-commit",
    promise: "with `--verify`, a forced push to a signed commit that does not descend from the live one is held",
    injection: "forced pushes to an older signed commit and to a signed side branch",
    speed: Speed::Fast,
    run: older_signed_commit,
};

/// A repository whose commits git makes and signs.
struct Signed {
    directory: tempfile::TempDir,
}

/// The key that signs.
#[derive(Clone, Copy)]
enum By<'k> {
    NoKey,
    Key(&'k Path),
}

fn have_ssh_keygen() -> bool {
    let found = Command::new("sh").args(["-c", "command -v git && command -v ssh-keygen"]).output();
    found.is_ok_and(|it| it.status.success())
}

impl Signed {
    fn new() -> Self {
        let signed = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(signed.path("repository")).unwrap();
        signed.git(&["init", "--quiet", "--initial-branch", "main"]);
        signed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_at("2026-11-01T00:00:00Z", arguments)
    }

    fn git_at(&self, date: &str, arguments: &[&str]) -> String {
        let done = Command::new("git")
            .args(["-C", "repository", "-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_COMMITTER_DATE", date)
            .env("GIT_AUTHOR_DATE", date)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Makes a key, and allows it with the options of `allowed_signers`.
    fn key(&self, name: &str, options: &str) -> PathBuf {
        let path = self.path(name);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        let key = std::fs::read_to_string(path.with_extension("pub")).unwrap();
        let before = std::fs::read_to_string(self.path("allowed")).unwrap_or_default();
        std::fs::write(self.path("allowed"), format!("{before}{name} {options} {key}")).unwrap();
        path
    }

    fn commit(&self, name: &str, by: By<'_>) -> String {
        self.commit_at("2026-11-01T00:00:00Z", name, by)
    }

    fn commit_at(&self, date: &str, name: &str, by: By<'_>) -> String {
        let groups = self.path("repository/groups");
        std::fs::create_dir_all(&groups).unwrap();
        std::fs::write(groups.join(format!("{name}.yaml")), format!("name: {name}\n")).unwrap();
        self.git(&["add", "."]);
        self.signing(date, by, &["commit", "--quiet", "--message", name]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn merge(&self, branch: &str, by: By<'_>) -> String {
        let date = "2026-11-01T00:00:00Z";
        self.signing(date, by, &["merge", "--quiet", "--no-ff", "--no-edit", branch]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn signing(&self, date: &str, by: By<'_>, arguments: &[&str]) {
        let key = match by {
            By::NoKey => "commit.gpgsign=false".to_owned(),
            By::Key(path) => format!("user.signingkey={}", path.display()),
        };
        let signs = if matches!(by, By::NoKey) { "false" } else { "true" };
        let signs = format!("commit.gpgsign={signs}");
        let own = ["-c", "gpg.format=ssh", "-c", &key, "-c", &signs];
        self.git_at(date, &[&own[..], arguments].concat());
    }

    /// Moves the followed branch, as a forced push does.
    fn force(&self, commit: &str) {
        self.git(&["update-ref", "refs/heads/main", commit]);
    }

    fn start(&self, more: &[&str]) -> Daemon {
        let (repository, data) = (self.path("repository"), self.path("data"));
        let own = ["--repo", repository.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        Daemon::start(&[&own[..], &["--branch", "main"], more].concat())
    }

    fn verified(&self, mode: &str, more: &[&str]) -> Daemon {
        let allowed = self.path("allowed");
        let own = ["--verify", mode, "--allowed-signers-file", allowed.to_str().unwrap()];
        self.start(&[&own[..], more].concat())
    }
}

fn wait_until_rejected(daemon: &Daemon, commit: &str) -> String {
    daemon.wait_until("the commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == commit
    });
    let failed = daemon.get("/controller/status").json()["last_failed"].clone();
    assert_eq!(failed["stage"], "verify");
    failed["diagnostics"][0]["message"].as_str().unwrap().to_owned()
}

fn unsigned_asked_for() -> Seen {
    if !have_ssh_keygen() {
        return Seen::Skipped("ssh-keygen");
    }
    let refused = (422, "invalid-commit".to_owned());
    for mode in ["head", "range"] {
        let signed = Signed::new();
        let key = signed.key("ada", "");
        let ada = By::Key(&key);
        // `?at=` asks later for the commit that answered without `--verify`.
        let unsigned = signed.commit("unsigned", By::NoKey);
        let daemon = signed.start(&[]);
        wait_for(&daemon, &unsigned);
        let then = jiff::Timestamp::now();
        daemon.kill();
        let first = signed.commit("first", ada);
        signed.git(&["checkout", "--quiet", "-b", "side"]);
        let side = signed.commit("side", By::NoKey);
        let signed_side = signed.commit("signed-side", ada);
        signed.git(&["checkout", "--quiet", "main"]);
        let daemon = signed.verified(mode, &[]);
        wait_for(&daemon, &first);
        // Other branches are fetched after the one that is followed.
        daemon.wait_until("the side branch is fetched", |it| {
            // 503 `commit-not-here-yet` until then.
            matches!(it.get(&format!("/enc/n?commit={signed_side}")).status, 200 | 422)
        });
        for commit in [&side, &unsigned] {
            assert_eq!(kind(&pin(&daemon, commit)), refused, "{mode}");
            let asked = daemon.get(&format!("/enc/n?commit={commit}"));
            assert_eq!(kind(&asked), refused, "{mode}");
            let message = asked.json()["details"][0]["message"].clone();
            assert_eq!(message, format!("the commit {commit} is not signed"));
            let header = format!("X-Clade-Commit: {commit}\r\n");
            assert_eq!(kind(&daemon.request_with("GET", "/enc/n", &header, "")), refused, "{mode}");
        }
        assert_eq!(kind(&daemon.get(&format!("/enc/n?at={then}"))), refused, "{mode}");
        // A signed commit on top of one that is not signed: the range has it, the head alone not.
        let top = daemon.get(&format!("/enc/n?commit={signed_side}"));
        assert_eq!(top.status, if mode == "range" { 422 } else { 200 }, "{mode}");
        // Pull requests are compared before they are signed.
        assert_eq!(daemon.get(&format!("/controller/diff/{first}/{side}")).status, 200);
        assert_eq!(live(&daemon), Some(first));
    }
    Seen::Held("422 `invalid-commit` by pin, `?commit=`, header and `?at=`".to_owned())
}

fn unsigned_at_the_start() -> Seen {
    if !have_ssh_keygen() {
        return Seen::Skipped("ssh-keygen");
    }
    let signed = Signed::new();
    let key = signed.key("ada", "");
    let unsigned = signed.commit("unsigned", By::NoKey);
    let daemon = signed.start(&[]);
    wait_for(&daemon, &unsigned);
    daemon.kill();
    let daemon = signed.verified("range", &[]);
    assert_eq!(live(&daemon), None);
    let said = wait_until_rejected(&daemon, &unsigned);
    assert_eq!(said, format!("the commit {unsigned} is not signed"));
    let next = signed.commit("next", By::Key(&key));
    wait_for(&daemon, &next);
    daemon.kill();
    let daemon = signed.verified("range", &[]);
    assert_eq!(live(&daemon), Some(next), "what is signed answers at once");
    Seen::Held("503 until a signed commit comes, and the status says why".to_owned())
}

fn unsigned_behind_merges() -> Seen {
    if !have_ssh_keygen() {
        return Seen::Skipped("ssh-keygen");
    }
    let signed = Signed::new();
    let key = signed.key("ada", "");
    let ada = By::Key(&key);
    let oldest = signed.commit("oldest", By::NoKey);
    let signed_before = signed.commit("signed-before", ada);
    let first = signed.commit("first", ada);
    let daemon = signed.verified("range", &[]);
    wait_for(&daemon, &first);
    // A side branch that begins before the first verified commit, all of it signed.
    signed.git(&["checkout", "--quiet", "-b", "good", &oldest]);
    signed.commit("good", ada);
    signed.git(&["checkout", "--quiet", "main"]);
    let merged = signed.merge("good", ada);
    wait_for(&daemon, &merged);
    // The same with one commit in it that is not signed.
    signed.git(&["checkout", "--quiet", "-b", "bad", &oldest]);
    let hidden = signed.commit("hidden", By::NoKey);
    signed.commit("on-top", ada);
    signed.git(&["checkout", "--quiet", "main"]);
    let head = signed.merge("bad", ada);
    let said = wait_until_rejected(&daemon, &head);
    assert_eq!(said, format!("the commit {hidden} is not signed"));
    assert_eq!(live(&daemon).as_deref(), Some(merged.as_str()));
    // An older commit than the first verified one: a verified commit has its history, and it must be
    // signed itself.
    assert_eq!(daemon.get(&format!("/enc/n?commit={signed_before}")).status, 200);
    assert_eq!(daemon.get(&format!("/enc/n?commit={oldest}")).status, 422);
    // Verified commits are known after a restart, also where a side branch is pinned.
    signed.git(&["branch", "--force", "main-before", &merged]);
    assert_eq!(pin(&daemon, "good").status, 200);
    daemon.kill();
    let daemon = signed.verified("range", &[]);
    assert_eq!(daemon.get(&format!("/enc/n?commit={merged}")).status, 200);
    assert_eq!(daemon.get(&format!("/enc/n?commit={head}")).status, 422);
    Seen::Held("a side branch answers if all of it is signed, whatever it begins with".to_owned())
}

fn expired_key_backdated() -> Seen {
    if !have_ssh_keygen() {
        return Seen::Skipped("ssh-keygen");
    }
    let signed = Signed::new();
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(10);
    let expires = Instant::now() + Duration::from_secs(11);
    let soon = soon.strftime("%Y%m%d%H%M%SZ").to_string();
    let expired = signed.key("expired", "valid-before=\"20240101Z\"");
    let expiring = signed.key("expiring", &format!("valid-before=\"{soon}\""));
    let first = signed.commit_at("2023-06-01T00:00:00Z", "first", By::Key(&expiring));
    let daemon = signed.verified("head", &[]);
    wait_for(&daemon, &first);
    let forged = signed.commit_at("2023-06-01T00:00:00Z", "forged", By::Key(&expired));
    let said = wait_until_rejected(&daemon, &forged);
    let why = "it was not valid any more when the commit was first seen here";
    assert!(said.ends_with(why), "{said}");
    assert_eq!(kind(&pin(&daemon, &forged)).0, 422);
    // A commit that was seen while its key was valid keeps answering, after a restart as well.
    std::thread::sleep(expires.saturating_duration_since(Instant::now()));
    daemon.kill();
    let daemon = signed.verified("head", &[]);
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    let late = signed.commit_at("2023-06-01T00:00:00Z", "late", By::Key(&expiring));
    assert!(wait_until_rejected(&daemon, &late).ends_with(why));
    Seen::Held("the key must be valid when the commit is first seen here".to_owned())
}

fn older_signed_commit() -> Seen {
    if !have_ssh_keygen() {
        return Seen::Skipped("ssh-keygen");
    }
    let signed = Signed::new();
    let key = signed.key("ada", "");
    let ada = By::Key(&key);
    let first = signed.commit("first", ada);
    signed.git(&["checkout", "--quiet", "-b", "side"]);
    let side = signed.commit("side", ada);
    signed.git(&["checkout", "--quiet", "main"]);
    let second = signed.commit("second", ada);
    let daemon = signed.verified("range", &["--rewind-grace", "100ms"]);
    wait_for(&daemon, &second);
    for forced in [&first, &side] {
        signed.force(forced);
        daemon.wait_until("the forced push is held", |it| {
            condition(it, "PromotionHeld").is_some_and(|it| it["reason"] == "OnRewriteHold")
        });
        assert_eq!(live(&daemon).as_deref(), Some(second.as_str()));
        signed.force(&second);
        daemon.wait_until("the branch is back", |it| condition(it, "PromotionHeld").is_none());
    }
    // Across a restart as well.
    daemon.kill();
    signed.force(&first);
    let daemon = signed.verified("range", &["--rewind-grace", "100ms"]);
    daemon.wait_until("the forced push is held", |it| {
        condition(it, "PromotionHeld").is_some_and(|it| it["reason"] == "OnRewriteHold")
    });
    assert_eq!(live(&daemon).as_deref(), Some(second.as_str()));
    daemon.kill();
    // `--on-rewrite follow` overrides the default.
    let daemon = signed.verified("range", &["--rewind-grace", "100ms", "--on-rewrite", "follow"]);
    wait_for(&daemon, &first);
    Seen::Held("held with `OnRewriteHold` until an operator resumes".to_owned())
}
