#![expect(clippy::disallowed_methods, reason = "gpg reads and writes files")]

use std::path::Path;
use std::process::Command;

use super::super::signed::Sightings;
use super::*;
use crate::model::CommitId;

/// Keys and signatures that gpg made over a text.
struct Gpg {
    directory: tempfile::TempDir,
}

const DATA: &str = "data\n";

/// When the commit is first seen.
const SEEN: &str = "20260101T000000";

impl Gpg {
    fn new() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt as _;

        if Command::new("gpg").arg("--version").output().is_err() {
            eprintln!("skipped: needs gpg");
            return None;
        }
        let gpg = Self { directory: tempfile::tempdir().unwrap() };
        for name in ["home", "judge"] {
            std::fs::create_dir(gpg.path(name)).unwrap();
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(gpg.path(name), mode).unwrap();
        }
        std::fs::write(gpg.path("data"), DATA).unwrap();
        Some(gpg)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn run_in(&self, home: &Path, time: &str, arguments: &[&str], answers: &str) -> String {
        std::fs::write(self.path("answers"), answers).unwrap();
        let how = ["--yes", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""];
        let mode = if answers.is_empty() { vec!["--batch"] } else { vec!["--command-fd", "0"] };
        let done = Command::new("gpg")
            .args([&how[..], &mode, &["--faked-system-time", time], arguments].concat())
            .current_dir(self.directory.path())
            .env("GNUPGHOME", home)
            .stdin(std::fs::File::open(self.path("answers")).unwrap())
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&done.stderr);
        // The verdict of gpg is in its output; other commands fail with a message.
        assert!(
            done.status.success() || arguments.contains(&"--status-fd"),
            "{arguments:?}: {log}"
        );
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn at(&self, time: &str, arguments: &[&str]) -> String {
        self.run_in(&self.path("home"), time, arguments, "")
    }

    /// Answers the questions of gpg, one a line.
    fn answer(&self, time: &str, arguments: &[&str], answers: &str) -> String {
        self.run_in(&self.path("home"), time, arguments, answers)
    }

    fn make_key(&self, name: &str, lifetime: &str) -> String {
        let made = "20240101T000000";
        self.at(made, &["--quick-generate-key", name, "ed25519", "cert,sign", lifetime]);
        let listed = self.at(made, &["--with-colons", "--list-keys", name]);
        let line = listed.lines().find(|it| it.starts_with("fpr:")).unwrap();
        line.split(':').nth(9).unwrap().to_owned()
    }

    fn export(&self, name: &str) -> String {
        self.at(SEEN, &["--armor", "--export", name])
    }

    fn sign(&self, time: &str, name: &str, more: &[&str]) -> String {
        let how = ["-u", name, "--armor", "--output", "-"];
        self.at(time, &[&how[..], more, &["--detach-sign", "data"]].concat())
    }

    /// Returns whether gpg takes the signature as good with these keys.
    fn judge(&self, keys: &str, signature: &str) -> bool {
        let judge = self.path("judge");
        let _gone = std::fs::remove_file(judge.join("pubring.kbx"));
        std::fs::write(self.path("keys"), keys).unwrap();
        std::fs::write(self.path("signature"), signature).unwrap();
        self.run_in(&judge, SEEN, &["--status-fd", "1", "--import", "keys"], "");
        let verify = ["--status-fd", "1", "--verify", "signature", "data"];
        self.run_in(&judge, SEEN, &verify, "").contains("GOODSIG")
    }

    /// Checks the verdict of Clade, and that gpg comes to the same.
    fn check(&self, name: &str, keys: &str, signature: &str, refused: Option<&str>) {
        let fault = verify(keys, signature).err().map(|it| it.to_string());
        match refused {
            None => assert_eq!(fault, None, "{name}"),
            Some(reason) => {
                let fault = fault.unwrap_or_else(|| panic!("{name} is allowed"));
                assert!(fault.ends_with(reason), "{name}: {fault}");
            }
        }
        assert_eq!(self.judge(keys, signature), refused.is_none(), "{name}: gpg");
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        let mut kill = Command::new("gpgconf");
        let _done = kill.args(["--kill", "all"]).env("GNUPGHOME", self.path("home")).output();
    }
}

fn verify(keys: &str, signature: &str) -> Result<Signer, SignatureFault> {
    verify_at(keys, signature, "2026-01-01", "2026-01-01")
}

/// Verifies a signature of a commit that was seen at a time, and is here now.
fn verify_at(keys: &str, signature: &str, seen: &str, now: &str) -> Result<Signer, SignatureFault> {
    let at = |date: &str| format!("{date}T00:00:00Z").parse().unwrap();
    let (earlier, now) = (at(seen), at(now));
    let seen = |_: CommitId| Sightings::new(std::iter::once(earlier), now);
    let signed = Signed {
        commit: "00000000000000000000000000000000000000aa".parse().unwrap(),
        signature: signature.to_owned(),
        content: DATA.into(),
        time: "2024-02-01T00:00:00Z".parse().unwrap(),
        seen: &seen,
    };
    check(&signed, keys)
}

#[test]
fn a_revocation_counts_in_whatever_copy_of_the_key_it_is() {
    let Some(gpg) = Gpg::new() else { return };
    let ada = gpg.make_key("ada", "never");
    gpg.make_key("eve", "never");
    let signature = gpg.sign("20240201T000000", "ada", &[]);
    let (good, eve) = (gpg.export("ada"), gpg.export("eve"));
    // A later reason that is not a theft: superseded.
    let revoke = ["--armor", "--output", "-", "--gen-revoke", "ada"];
    let certificate = gpg.answer("20250101T000000", &revoke, "y\n2\nnew key\n\ny\n");
    std::fs::write(gpg.path("certificate"), &certificate).unwrap();
    gpg.at("20250101T000000", &["--import", "certificate"]);
    let revoked = gpg.export("ada");
    let prepared = gpg.path(&format!("home/openpgp-revocs.d/{ada}.rev"));
    let prepared = std::fs::read_to_string(prepared).unwrap();

    let reason = Some("it is revoked");
    gpg.check("the key alone", &good, &signature, None);
    gpg.check("the revoked key alone", &revoked, &signature, reason);
    gpg.check("good, revoked", &format!("{good}{revoked}"), &signature, reason);
    gpg.check("revoked, good", &format!("{revoked}{good}"), &signature, reason);
    let between = format!("{good}{eve}{revoked}{eve}{good}");
    gpg.check("among others", &between, &signature, reason);
    gpg.check("a certificate apart", &format!("{good}{certificate}"), &signature, reason);
    gpg.check("a disabled certificate", &format!("{good}{prepared}"), &signature, None);
    // gpg itself does not take the certificate before the key.
    let fault = verify(&format!("{certificate}{good}"), &signature).unwrap_err().to_string();
    assert!(fault.ends_with("it is revoked"), "{fault}");
    let fault = check_keys(&format!("{eve}{certificate}")).unwrap_err();
    assert_eq!(fault, "a revocation certificate is not of a key in the file");
    assert_eq!(check_keys(&certificate).unwrap_err(), "the file of keys has none");
    let (cut, _) = revoked.split_once("-----END").unwrap();
    assert!(check_keys(&format!("{cut}{good}")).unwrap_err().starts_with("a key cannot be read"));
    assert_eq!(check_keys(&format!("# Ada\n{good}\n# Eve\n{eve}\n# end\n")), Ok(()));
}

#[test]
fn the_newest_signature_of_all_copies_says_when_a_key_expires() {
    let Some(gpg) = Gpg::new() else { return };
    let renewed = gpg.make_key("renewed", "1y");
    let cut = gpg.make_key("cut", "never");
    let cases = [("renewed", renewed, "10y", false), ("cut", cut, "20250101T000000", true)];
    for (name, key, lifetime, is_cut) in cases {
        let signature = gpg.sign("20240201T000000", name, &[]);
        let old = gpg.export(name);
        gpg.at("20240601T000000", &["--quick-set-expire", &key, lifetime]);
        let new = gpg.export(name);
        let expired = "it had expired when the commit was first seen here";
        // gpg looks at the time of a check alone, which is here the time when the commit is first seen.
        let (old_alone, newest) =
            if is_cut { (None, Some(expired)) } else { (Some(expired), None) };
        gpg.check(name, &old, &signature, old_alone);
        gpg.check(name, &new, &signature, newest);
        gpg.check(name, &format!("{old}{new}"), &signature, newest);
        gpg.check(name, &format!("{new}{old}"), &signature, newest);
    }
}

#[test]
fn a_key_that_only_certifies_signs_no_commit() {
    let Some(gpg) = Gpg::new() else { return };
    gpg.make_key("ada", "never");
    let signature = gpg.sign("20240201T000000", "ada", &[]);
    let both = gpg.export("ada");
    let answers = "change-usage\nS\nQ\nsave\n";
    gpg.answer("20250101T000000", &["--expert", "--edit-key", "ada"], answers);
    let certifies = gpg.export("ada");
    let reason = Some("it is not for signatures");
    gpg.check("signs and certifies", &both, &signature, None);
    gpg.check("certifies", &certifies, &signature, reason);
    gpg.check("the newer copy last", &format!("{both}{certifies}"), &signature, reason);
    gpg.check("the newer copy first", &format!("{certifies}{both}"), &signature, reason);
}

#[test]
fn a_revoked_subkey_is_revoked_in_whatever_copy_of_the_key() {
    let Some(gpg) = Gpg::new() else { return };
    let key = gpg.make_key("ada", "never");
    gpg.at("20240102T000000", &["--quick-add-key", &key, "ed25519", "sign", "never"]);
    let signature = gpg.sign("20240201T000000", "ada", &[]);
    let good = gpg.export("ada");
    let answers = "key 1\nrevkey\ny\n3\n\ny\nsave\n";
    gpg.answer("20250101T000000", &["--edit-key", "ada"], answers);
    let revoked = gpg.export("ada");
    let reason = Some("its subkey is revoked");
    gpg.check("the key alone", &good, &signature, None);
    gpg.check("the revoked subkey alone", &revoked, &signature, reason);
    gpg.check("good, revoked", &format!("{good}{revoked}"), &signature, reason);
    gpg.check("revoked, good", &format!("{revoked}{good}"), &signature, reason);
}

#[test]
fn a_signature_has_times_of_its_own() {
    let Some(gpg) = Gpg::new() else { return };
    gpg.make_key("ada", "never");
    let keys = gpg.export("ada");
    let lapsed = gpg.sign("20240201T000000", "ada", &["--default-sig-expire", "30d"]);
    let reason = "it had expired when the commit was first seen here";
    gpg.check("expired before it was seen", &keys, &lapsed, Some(reason));
    let lasting = gpg.sign("20240201T000000", "ada", &["--default-sig-expire", "10y"]);
    gpg.check("not expired yet", &keys, &lasting, None);
    let early = gpg.sign("20230201T000000", "ada", &["--ignore-time-conflict"]);
    gpg.check("before its key", &keys, &early, Some("it is younger than the signature"));
    // The clocks of developers are not ours, and a later time makes no key valid.
    let late = gpg.sign("20270201T000000", "ada", &[]);
    gpg.check("in the future", &keys, &late, None);
}

#[test]
fn a_key_must_be_valid_at_one_of_the_times_when_the_commit_was_here() {
    let Some(gpg) = Gpg::new() else { return };
    gpg.make_key("ada", "1y");
    let signed_by_key = gpg.sign("20240201T000000", "ada", &[]);
    gpg.make_key("bob", "never");
    let for_a_year = ["--default-sig-expire", "330d"];
    let signed_for_a_year = gpg.sign("20240201T000000", "bob", &for_a_year);
    let cut = gpg.make_key("cut", "never");
    gpg.at("20240102T000000", &["--quick-add-key", &cut, "ed25519", "sign", "1y"]);
    let signed_by_subkey = gpg.sign("20240201T000000", "cut", &[]);
    let keys = gpg.at(SEEN, &["--armor", "--export"]);
    let late = Some("had expired when the commit was first seen here");
    let early = Some("it was not made yet when the commit was first seen here");
    for (name, signature) in
        [("key", &signed_by_key), ("signature", &signed_for_a_year), ("subkey", &signed_by_subkey)]
    {
        for (seen, now, refused) in [
            // It has expired since, the clock was ahead, the commit is a late one, all is valid.
            ("2024-06-01", "2026-06-01", None),
            ("2026-06-01", "2024-06-01", None),
            ("2025-06-01", "2026-06-01", late),
            ("2024-06-01", "2024-07-01", None),
            // The clock was behind, is behind, both, by as much as clocks differ.
            ("2020-01-01", "2024-06-01", None),
            ("2024-06-01", "2020-01-01", None),
            ("2020-01-01", "2020-01-01", early),
            ("2024-01-01", "2024-01-01", None),
            // Two times at which nothing is valid make none between them.
            ("1970-01-01", "2026-06-01", early),
            ("2026-06-01", "1970-01-01", late),
        ] {
            let fault = verify_at(&keys, signature, seen, now).err().map(|it| it.to_string());
            let is_expected = match (&fault, refused) {
                (None, None) => true,
                (Some(fault), Some(reason)) => fault.ends_with(reason),
                _ => false,
            };
            assert!(is_expected, "{name} {seen} {now}: {fault:?}");
        }
    }
}
