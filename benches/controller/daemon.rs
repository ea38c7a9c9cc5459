//! The real program, and clients that keep their connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::estate::Estate;

pub(crate) const SECRET: &str = "a secret of the bench";

pub(crate) struct Daemon {
    child: Child,
    address: String,
    data: PathBuf,
    pub(crate) started: Instant,
}

impl Daemon {
    pub(crate) fn start(estate: &Estate, more: &[&str]) -> Self {
        let data = estate.directory().join("data");
        Self::spawn(estate, data, more)
    }

    fn spawn(estate: &Estate, data: PathBuf, more: &[&str]) -> Self {
        let secret = estate.directory().join("secret");
        std::fs::write(&secret, SECRET).unwrap();
        let started = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_clade"))
            .args(["serve", "--listen", "127.0.0.1:0", "--branch", "main", "--repo"])
            .arg(format!("file://{}", estate.path().display()))
            .arg("--data-dir")
            .arg(&data)
            .arg("--webhook-secret-file")
            .arg(&secret)
            .args(more)
            .env("RUST_LOG", "clade=info")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().unwrap().unwrap();
            if let Some((_, rest)) = line.split_once("listening on http://") {
                break rest.split(' ').next().unwrap().to_owned();
            }
        };
        // The daemon must not be held up by a full pipe.
        std::thread::spawn(move || lines.count());
        Self { child, address, data, started }
    }

    pub(crate) fn restart_after_kill(mut self, estate: &Estate) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::spawn(estate, self.data.clone(), &[])
    }

    pub(crate) fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(BufReader::new(stream))
    }

    pub(crate) fn wait_for(&self, commit: &str) {
        let mut client = self.client();
        let deadline = Instant::now() + Duration::from_mins(2);
        while client.live() != commit {
            assert!(Instant::now() < deadline, "the first commit never answered");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn webhook(&self, commit: &str) {
        let answer = self.client().webhook(SECRET, commit, "");
        assert!(answer.contains(" 20"), "{answer}");
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|it| it.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Returns the time that it has computed; the kernel counts hundredths of a second.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    /// Returns the commit that answers.
    pub(crate) fn live(&mut self) -> String {
        let answer = self.post("/v1/classified/nodes/web1", "{}");
        let header = answer.split("X-Clade-Commit: ").nth(1).unwrap_or_default();
        header.chars().take(40).collect()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> String {
        self.send("POST", path, "", body)
    }

    pub(crate) fn get(&mut self, path: &str) -> String {
        self.send("GET", path, "", "")
    }

    pub(crate) fn delete(&mut self, path: &str) -> String {
        self.send("DELETE", path, "", "")
    }

    pub(crate) fn webhook(&mut self, secret: &str, commit: &str, id: &str) -> String {
        let body =
            format!("{{\"ref\": \"refs/heads/main\", \"after\": \"{commit}\", \"id\": \"{id}\"}}");
        let mut mac: Hmac<Sha256> = Hmac::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(body.as_bytes());
        let hex: Vec<String> =
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = format!("X-Signature: sha256={}\r\n", hex.concat());
        self.send("POST", "/webhook/generic", &header, &body)
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.0.get_mut().write_all(request.as_bytes()).unwrap();
        let mut head = String::new();
        let mut length = 0;
        loop {
            let before = head.len();
            self.0.read_line(&mut head).unwrap();
            let line = head.get(before..).unwrap_or_default();
            if line == "\r\n" || line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        head + &String::from_utf8_lossy(&body)
    }
}
