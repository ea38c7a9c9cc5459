//! Signatures: only commits that an allowed key has signed answer. Git itself signs them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{has, live, text, wait_for};
use crate::program::Daemon;

/// A repository whose commits git makes and signs.
pub(super) struct Signed {
    directory: tempfile::TempDir,
}

/// The key that signs.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
    None,
    Ssh(&'a Path),
    OpenPgp(&'a str),
}

pub(super) fn have(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|it| {
        let found = Command::new("sh").args(["-c", &format!("command -v {it}")]).output();
        !found.is_ok_and(|it| it.status.success())
    });
    if let Some(missing) = missing {
        eprintln!("skipped: needs {missing}");
    }
    missing.is_none()
}

pub(super) fn run(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .env("GNUPGHOME", directory.join("gnupg"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

impl Signed {
    pub(super) fn new() -> Self {
        let signed = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(signed.path().join("repository")).unwrap();
        signed.git(&["init", "--quiet", "--initial-branch", "main"]);
        signed
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let all = [&["-C", "repository"], &who[..], arguments].concat();
        run(self.path(), "git", &all)
    }

    pub(super) fn ssh_key(&self, name: &str) -> std::path::PathBuf {
        let path = self.path().join(name);
        let file = path.to_str().unwrap();
        run(self.path(), "ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file]);
        path
    }

    /// Makes a key and returns its id.
    pub(super) fn openpgp_key(&self, name: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;

        let home = self.path().join("gnupg");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
        let user = format!("{name} <{name}@example.com>");
        run(
            self.path(),
            "gpg",
            &[
                "--batch",
                "--passphrase",
                "",
                "--quick-generate-key",
                &user,
                "ed25519",
                "sign",
                "never",
            ],
        );
        user
    }

    pub(super) fn commit(&self, name: &str, key: Key<'_>) -> String {
        let groups = self.path().join("repository/groups");
        std::fs::create_dir_all(&groups).unwrap();
        std::fs::write(groups.join(format!("{name}.yaml")), format!("name: {name}\n")).unwrap();
        self.git(&["add", "."]);
        self.signing(key, &["commit", "--quiet", "--message", name]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Merges a branch into the one that is checked out.
    pub(super) fn merge(&self, branch: &str, key: &Path) -> String {
        self.signing(Key::Ssh(key), &["merge", "--quiet", "--no-ff", "--no-edit", branch]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn signing(&self, key: Key<'_>, arguments: &[&str]) {
        let signing = match key {
            Key::None => vec!["-c".to_owned(), "commit.gpgsign=false".to_owned()],
            Key::Ssh(path) => vec![
                "-c".to_owned(),
                "gpg.format=ssh".to_owned(),
                "-c".to_owned(),
                format!("user.signingkey={}", path.display()),
                "-c".to_owned(),
                "commit.gpgsign=true".to_owned(),
            ],
            Key::OpenPgp(user) => vec![
                "-c".to_owned(),
                format!("user.signingkey={user}"),
                "-c".to_owned(),
                "commit.gpgsign=true".to_owned(),
            ],
        };
        let signing: Vec<&str> = signing.iter().map(String::as_str).collect();
        self.git(&[&signing[..], arguments].concat());
    }

    pub(super) fn start(&self, more: &[&str]) -> Daemon {
        let repository = self.path().join("repository");
        let data = self.path().join("data");
        let own = ["--repo", repository.to_str().unwrap(), "--data-dir", data.to_str().unwrap()];
        Daemon::start(&[&own[..], more].concat())
    }
}

pub(super) fn wait_until_rejected(daemon: &Daemon, commit: &str, reason: &str) -> String {
    let is_rejected = |it: &&Value| it["type"] == "CandidateRejected";
    // The condition comes with what answers in its place, which is decided after the commit.
    daemon.wait_until("the commit is rejected", |it| {
        let status = it.get("/controller/status").json();
        let conditions = status["conditions"].as_array().unwrap();
        status["last_failed"]["commit"] == commit && conditions.iter().any(|it| is_rejected(&it))
    });
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["last_failed"]["stage"], "verify");
    let rejected = status["conditions"].as_array().unwrap().iter().find(is_rejected).unwrap();
    assert_eq!(rejected["reason"], reason, "{rejected}");
    text(&status["last_failed"]["diagnostics"][0]["message"])
}

#[test]
fn only_commits_of_allowed_ssh_keys_answer() {
    if !have(&["git", "ssh-keygen"]) {
        return;
    }
    let signed = Signed::new();
    let (ada, eve) = (signed.ssh_key("ada"), signed.ssh_key("eve"));
    let allowed = signed.path().join("allowed");
    let key = std::fs::read_to_string(ada.with_extension("pub")).unwrap();
    std::fs::write(&allowed, format!("ada@example.com {key}")).unwrap();
    let first = signed.commit("first", Key::Ssh(&ada));
    let daemon =
        signed.start(&["--verify", "head", "--allowed-signers-file", allowed.to_str().unwrap()]);
    wait_for(&daemon, &first);
    let status = daemon.get("/controller/status").json();
    let verified =
        status["conditions"].as_array().unwrap().iter().find(|it| it["type"] == "SourceVerified");
    let verified = verified.unwrap();
    assert_eq!(verified["status"], "True");
    assert!(text(&verified["message"]).starts_with("signed by ada@example.com (SHA256:"));

    let unsigned = signed.commit("unsigned", Key::None);
    let said = wait_until_rejected(&daemon, &unsigned, "SignatureMissing");
    assert_eq!(said, format!("the commit {unsigned} is not signed"));
    let foreign = signed.commit("foreign", Key::Ssh(&eve));
    let said = wait_until_rejected(&daemon, &foreign, "SignerNotAllowed");
    assert!(said.contains("the key SHA256:"), "{said}");
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
    // Only the head is verified: the signer vouches for its history.
    let second = signed.commit("second", Key::Ssh(&ada));
    wait_for(&daemon, &second);

    // Removing a key takes effect without a new commit, and the live commit keeps answering.
    std::fs::write(&allowed, "# empty\n").unwrap();
    daemon.wait_until("the missing key is noticed", |it| {
        let status = it.get("/controller/status").json();
        let all = status["conditions"].as_array().unwrap().clone();
        all.iter().any(|it| it["type"] == "SourceVerified" && it["status"] == "False")
    });
    assert_eq!(live(&daemon).as_deref(), Some(second.as_str()));
}

#[test]
fn an_unsigned_commit_cannot_hide_between_signed_ones() {
    if !have(&["git", "ssh-keygen"]) {
        return;
    }
    let signed = Signed::new();
    let ada = signed.ssh_key("ada");
    let allowed = signed.path().join("allowed");
    let key = std::fs::read_to_string(ada.with_extension("pub")).unwrap();
    std::fs::write(&allowed, format!("* namespaces=\"git\" {key}")).unwrap();
    let first = signed.commit("first", Key::Ssh(&ada));
    let daemon =
        signed.start(&["--verify", "range", "--allowed-signers-file", allowed.to_str().unwrap()]);
    wait_for(&daemon, &first);
    // Both are pushed at once.
    signed.git(&["checkout", "--quiet", "-b", "side"]);
    let hidden = signed.commit("hidden", Key::None);
    let head = signed.commit("head", Key::Ssh(&ada));
    signed.git(&["branch", "--force", "main", &head]);
    signed.git(&["checkout", "--quiet", "main"]);
    let said = wait_until_rejected(&daemon, &head, "SignatureMissing");
    assert_eq!(said, format!("the commit {hidden} is not signed"));
    assert_eq!(live(&daemon).as_deref(), Some(first.as_str()));
}

#[test]
fn unsigned_proposals_are_announced_where_they_would_block_the_branch() {
    if !have(&["git", "ssh-keygen"]) {
        return;
    }
    let signed = Signed::new();
    let ada = signed.ssh_key("ada");
    let allowed = signed.path().join("allowed");
    let key = std::fs::read_to_string(ada.with_extension("pub")).unwrap();
    std::fs::write(&allowed, format!("* {key}")).unwrap();
    signed.commit("first", Key::Ssh(&ada));
    let allowed = ["--allowed-signers-file", allowed.to_str().unwrap()];
    for (verify, is_announced) in [("range", true), ("head", false)] {
        let writes = ["--verify", verify, "--writes", "propose"];
        let daemon = signed.start(&[allowed.as_slice(), &writes].concat());
        let announced = "squash each proposal into a signed commit";
        let is_logged = daemon.log_lines().iter().any(|it| it.contains(announced));
        assert_eq!(is_logged, is_announced, "{verify}");
    }
}

#[test]
fn only_commits_of_allowed_openpgp_keys_answer() {
    if !have(&["git", "gpg"]) {
        return;
    }
    let signed = Signed::new();
    let (ada, eve) = (signed.openpgp_key("ada"), signed.openpgp_key("eve"));
    let keys = signed.path().join("keys.asc");
    let exported = run(signed.path(), "gpg", &["--armor", "--export", &ada]);
    std::fs::write(&keys, exported).unwrap();
    let first = signed.commit("first", Key::OpenPgp(&ada));
    let daemon = signed.start(&["--verify", "head", "--openpgp-keys-file", keys.to_str().unwrap()]);
    wait_for(&daemon, &first);
    let foreign = signed.commit("foreign", Key::OpenPgp(&eve));
    wait_until_rejected(&daemon, &foreign, "SignerNotAllowed");
    assert!(has(&daemon, "SourceVerified"));
    let both = run(signed.path(), "gpg", &["--armor", "--export"]);
    std::fs::write(&keys, both).unwrap();
    let second = signed.commit("second", Key::OpenPgp(&eve));
    wait_for(&daemon, &second);
    // An agent that gpg started.
    run(signed.path(), "gpgconf", &["--kill", "all"]);
}

/// A key of gpg's own making: expired, later given a signature without a lifetime (it names who may
/// revoke it), and certified by another key; then renewed.
#[test]
fn the_newest_signature_of_the_key_itself_says_when_it_expires() {
    if !have(&["git", "gpg"]) {
        return;
    }
    let signed = Signed::new();
    let (ada, eve) = ("ada <ada@example.com>", "eve <eve@example.com>");
    signed.openpgp_key("unused");
    let gpg = |arguments: &[&str]| run(signed.path(), "gpg", arguments);
    let quick = |time: &str, arguments: &[&str]| {
        let how = ["--batch", "--yes", "--passphrase", "", "--faked-system-time", time];
        gpg(&[&how[..], arguments].concat())
    };
    quick("20240101T000000", &["--quick-generate-key", eve, "ed25519", "cert,sign", "never"]);
    quick("20240101T000000", &["--quick-generate-key", ada, "ed25519", "cert", "1y"]);
    let listed = gpg(&["--with-colons", "--list-keys", ada]);
    let line = listed.lines().find(|it| it.starts_with("fpr:")).unwrap();
    let fingerprint = line.split(':').nth(9).unwrap();
    quick("20240101T000000", &["--quick-add-key", fingerprint, "ed25519", "sign", "never"]);
    let answers = signed.path().join("answers");
    std::fs::write(&answers, "addrevoker\neve@example.com\ny\nsave\n").unwrap();
    let script = "gpg --no-tty --faked-system-time 20240601T000000 --command-fd 0 --edit-key ada@example.com < answers";
    run(signed.path(), "sh", &["-c", script]);
    quick("20240701T000000", &["-u", eve, "--quick-sign-key", fingerprint]);
    let export = |name: &str| {
        let path = signed.path().join(name);
        std::fs::write(&path, gpg(&["--armor", "--export", ada])).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let packets = gpg(&["--list-packets", &export("expired.asc")]);
    assert!(packets.contains("revocation key") && packets.contains("sigclass 0x10"), "{packets}");
    // Only its owner's copy is renewed, who can sign with it again.
    quick("20240801T000000", &["--quick-set-expire", fingerprint, "10y"]);
    let first = signed.commit("first", Key::OpenPgp(ada));
    let keys = export("renewed.asc");
    std::fs::copy(signed.path().join("expired.asc"), &keys).unwrap();
    let daemon = signed.start(&["--verify", "head", "--openpgp-keys-file", &keys]);
    let said = wait_until_rejected(&daemon, &first, "SignerNotAllowed");
    assert!(said.ends_with("it had expired when the commit was made"), "{said}");
    export("renewed.asc");
    let second = signed.commit("second", Key::OpenPgp(ada));
    wait_for(&daemon, &second);
    run(signed.path(), "gpgconf", &["--kill", "all"]);
}
