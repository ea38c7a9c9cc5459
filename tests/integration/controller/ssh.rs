//! Fetching over ssh from a real sshd.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{conditions, group, live, wait_for};
use crate::program::{Daemon, GitRepository, run};

/// An sshd of our own, for our own user.
struct Sshd {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn keygen(path: &Path, kind: &str) {
    let done = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-N", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(done.success());
}

impl Sshd {
    fn start() -> Option<Self> {
        let sshd =
            ["/usr/sbin/sshd", "/usr/local/sbin/sshd"].iter().find(|it| Path::new(it).exists());
        let Some(sshd) = sshd else {
            eprintln!("skipped: needs sshd");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        keygen(&at("host_ed25519"), "ed25519");
        keygen(&at("host_ecdsa"), "ecdsa");
        keygen(&at("user"), "ed25519");
        keygen(&at("stranger"), "rsa");
        std::fs::copy(at("user.pub"), at("authorized")).unwrap();
        // Privileges are separated in a directory that must be there.
        std::fs::create_dir_all("/run/sshd").ok();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host_ed25519\nHostKey {0}/host_ecdsa\nAuthorizedKeysFile {0}/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n",
            directory.path().display()
        );
        std::fs::write(at("config"), settings).unwrap();
        let child = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(at("config"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self { child, port, directory };
        let deadline = Instant::now() + Duration::from_mins(1);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "sshd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(started)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file of known hosts and returns its path.
    fn known_hosts(&self, name: &str, keys: &[&str]) -> PathBuf {
        let line = |key: &&str| {
            let text = std::fs::read_to_string(self.at(key)).unwrap();
            format!("[127.0.0.1]:{} {text}", self.port)
        };
        let path = self.at(name);
        std::fs::write(&path, keys.iter().map(line).collect::<String>()).unwrap();
        path
    }

    fn serve(&self, repository: &GitRepository, key: &Path, known: &Path) -> Daemon {
        self.serve_with(repository, key, known, &[])
    }

    fn serve_with(
        &self,
        repository: &GitRepository,
        key: &Path,
        known: &Path,
        more: &[&str],
    ) -> Daemon {
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let url = format!("ssh://{user}@127.0.0.1:{}{}", self.port, repository.text_path());
        let data = tempfile::tempdir_in(self.directory.path()).unwrap().keep();
        let arguments = [
            "--repo",
            &url,
            "--data-dir",
            data.to_str().unwrap(),
            "--ssh-key-file",
            key.to_str().unwrap(),
            "--ssh-known-hosts-file",
            known.to_str().unwrap(),
        ];
        Daemon::start(&[&arguments, more].concat())
    }
}

#[test]
fn a_repository_is_followed_over_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let key = sshd.at("user");
    // The second kind of key is known alone: it must be asked for.
    for keys in
        [&["host_ed25519.pub"][..], &["host_ecdsa.pub"], &["stranger.pub", "host_ed25519.pub"]]
    {
        let known = sshd.known_hosts("known", keys);
        let daemon = sshd.serve(&repository, &key, &known);
        wait_for(&daemon, &first);
    }
    let known = sshd.known_hosts("known", &["host_ed25519.pub", "host_ecdsa.pub"]);
    let daemon = sshd.serve(&repository, &key, &known);
    wait_for(&daemon, &first);
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    wait_for(&daemon, &second);
}

#[test]
fn over_ssh_the_host_is_authenticated_or_nothing_is_fetched() {
    let Some(sshd) = Sshd::start() else { return };
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let (user, stranger) = (sshd.at("user"), sshd.at("stranger"));
    let known = sshd.known_hosts("known", &["host_ed25519.pub"]);
    let empty = sshd.known_hosts("empty", &[]);
    let changed = sshd.known_hosts("changed", &["user.pub"]);
    let revoked = sshd.at("revoked");
    let text = std::fs::read_to_string(&known).unwrap();
    std::fs::write(&revoked, format!("{text}@revoked {text}")).unwrap();
    let absent = sshd.at("absent");
    for (key, known, reason, said) in [
        (&user, &empty, "HostKeyMismatch", "is not known"),
        (&user, &changed, "HostKeyMismatch", ""),
        (&user, &revoked, "HostKeyMismatch", "is revoked"),
        (&stranger, &known, "AuthenticationFailed", "does not accept the key"),
    ] {
        let daemon = sshd.serve(&repository, key, known);
        daemon.wait_until("the fetch fails", |it| {
            conditions(it) == [("FetchFailed".to_owned(), reason.to_owned())]
        });
        let status = daemon.get("/controller/status").json();
        let message = status["remote"]["error"].as_str().unwrap().to_owned();
        assert!(message.contains(said), "{message}");
        assert_eq!((live(&daemon), daemon.get("/v1/groups").status), (None, 503));
    }
    // The start reports what is missing on this machine.
    for (key, known, flag) in
        [(&user, &absent, "--ssh-known-hosts-file"), (&absent, &known, "--ssh-key-file")]
    {
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        let url = format!("ssh://user@127.0.0.1:1{}", repository.text_path());
        let (key, known, data) = (text(key), text(known), text(&sshd.at("data")));
        let done = run(&[
            "serve",
            "--repo",
            &url,
            "--data-dir",
            &data,
            "--ssh-key-file",
            &key,
            "--ssh-known-hosts-file",
            &known,
        ]);
        let absent = text(&absent);
        let said = format!("error: `{flag} {absent}` cannot be read");
        assert!(done.status == 2 && done.stderr.starts_with(&said), "{}", done.stderr);
    }
}

#[test]
fn a_write_is_pushed_over_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    let mut config = repository.git().config().unwrap();
    config.set_str("receive.denyCurrentBranch", "ignore").unwrap();
    let known = sshd.known_hosts("known", &["host_ed25519.pub"]);
    let daemon = sshd.serve_with(&repository, &sshd.at("user"), &known, &["--writes", "commit"]);
    let body =
        format!("{{\"name\": \"N\", \"parent\": \"{}\", \"classes\": {{}}}}", crate::writes::ROOT);
    let made = daemon.request("POST", "/v1/groups", &body);
    assert_eq!(made.status, 303, "{}", made.body);
    let head = repository.git().head().unwrap().peel_to_commit().unwrap();
    assert_eq!(live(&daemon), Some(head.id().to_string()));
    assert_eq!(head.summary().unwrap(), Some("Add the group \"N\" below \"All Nodes\""));
}
