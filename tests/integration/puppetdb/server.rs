//! A `PuppetDB` of our own on loopback, with its own `PostgreSQL`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long `PuppetDB` may take to start.
const TIMEOUT: Duration = Duration::from_mins(10);

const JAR: &str = "/usr/share/puppetdb/puppetdb.jar";

/// A `PuppetDB` and its `PostgreSQL`; everything that they write is in one directory.
pub(super) struct PuppetDb {
    home: tempfile::TempDir,
    port: u16,
    postgres: Option<Postgres>,
    process: Option<Child>,
}

struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
}

/// Returns why there can be none.
pub(super) fn missing() -> Option<&'static str> {
    if !Path::new(JAR).exists() {
        return Some("puppetdb");
    }
    if programs().is_none() {
        return Some("postgresql");
    }
    Command::new("java").arg("-version").output().is_err().then_some("java")
}

/// Returns where `PostgreSQL`'s programs are, the newest.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|it| it.path().join("bin")).collect();
    found.retain(|it| it.join("initdb").exists());
    found.sort();
    found.pop()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn checked(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{command:?}: {done:?}");
}

impl Postgres {
    /// Prepares to run a program, not as root: `PostgreSQL` refuses that.
    fn program(&self, name: &str) -> Command {
        let is_root = fs::metadata("/proc/self").is_ok_and(|it| {
            use std::os::unix::fs::MetadataExt as _;
            it.uid() == 0
        });
        let path = self.programs.join(name);
        let mut command = if is_root {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir("/");
        command
    }

    /// Makes a cluster below a directory and starts it.
    fn start(home: &Path) -> Self {
        let data = home.join("pg");
        let postgres = Self { programs: programs().unwrap(), data, port: free_port() };
        fs::create_dir(&postgres.data).unwrap();
        fs::set_permissions(home, fs::Permissions::from_mode(0o711)).unwrap();
        if postgres.program("initdb").get_program() == "runuser" {
            checked(Command::new("chown").arg("postgres").arg(&postgres.data));
        }
        let data = postgres.data.to_str().unwrap();
        checked(
            postgres.program("initdb").args(["-D", data, "-U", "postgres", "-A", "trust"]).args([
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ]),
        );
        let options =
            format!("-c listen_addresses=127.0.0.1 -p {} -k {data} -c fsync=off", postgres.port);
        let log = postgres.data.join("log");
        // A failure here has no caller to report to; the drop ends what it started.
        checked(
            postgres
                .program("pg_ctl")
                .args(["-D", data, "-w", "-t", "60", "-o", &options, "-l", log.to_str().unwrap()])
                .arg("start")
                .stdout(Stdio::null()),
        );
        postgres.sql("postgres", "create role puppetdb login password 'puppetdb'");
        postgres.sql("postgres", "create database puppetdb owner puppetdb");
        postgres.sql("puppetdb", "create extension pg_trgm");
        postgres
    }

    fn sql(&self, database: &str, statement: &str) {
        let port = self.port.to_string();
        checked(
            Command::new(self.programs.join("psql"))
                .args(["-qh", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", database])
                .args(["-v", "ON_ERROR_STOP=1", "-c", statement]),
        );
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.data.to_str().unwrap_or_default();
        let mut stop = self.program("pg_ctl");
        stop.args(["-D", data, "-m", "immediate", "-w", "stop"]);
        // It may not have started.
        stop.stdout(Stdio::null()).stderr(Stdio::null()).status().ok();
    }
}

impl PuppetDb {
    /// Boots both.
    pub(super) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut pdb = Self { home, port: free_port(), postgres: None, process: None };
        pdb.postgres = Some(Postgres::start(pdb.home.path()));
        let path = |name: &str| pdb.home.path().join(name).to_str().unwrap().to_owned();
        for directory in ["conf", "var"] {
            fs::create_dir(path(directory)).unwrap();
        }
        fs::write(
            path("conf/pdb.ini"),
            format!(
                "[global]\nvardir = {}\nlogging-config = {}\n[database]\nsubname = //127.0.0.1:{}/puppetdb\nusername = puppetdb\npassword = puppetdb\n[puppetdb]\ndisable-update-checking = true\n[jetty]\nhost = 127.0.0.1\nport = {}\n",
                path("var"),
                path("logback.xml"),
                pdb.postgres.as_ref().unwrap().port,
                pdb.port,
            ),
        )
        .unwrap();
        fs::copy("/etc/puppetdb/conf.d/auth.conf", path("conf/auth.conf")).unwrap();
        fs::write(path("logback.xml"), format!(
            "<configuration><appender name=\"F\" class=\"ch.qos.logback.core.FileAppender\"><file>{}</file><encoder><pattern>%d %-5p [%c{{1}}] %m%n</pattern></encoder></appender><root level=\"info\"><appender-ref ref=\"F\"/></root></configuration>",
            path("pdb.log"),
        ))
        .unwrap();
        let output = fs::File::create(path("stdout.log")).unwrap();
        let process = Command::new("java")
            .args(["-Xmx512m", "-Djava.security.egd=/dev/urandom", "-cp", JAR])
            .arg(format!("-Djava.io.tmpdir={}", path("var")))
            .args(["clojure.main", "-m", "puppetlabs.puppetdb.core", "services"])
            .args(["--config", &path("conf")])
            .args(["--bootstrap-config", "/etc/puppetdb/bootstrap.cfg"])
            .args(["--restart-file", &path("restart")])
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn();
        pdb.process = Some(process.unwrap());
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let ended = pdb.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {}", pdb.log());
            if pdb.send("GET", "/status/v1/simple", "").is_some_and(|it| it.1 == "running") {
                return pdb;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.home.path().join(name)).unwrap_or_default();
        format!("{}\n{}", read("stdout.log"), read("pdb.log"))
    }

    /// Sends a request; none is a server that is not there yet.
    fn send(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        // HTTP/1.0, so that the answer is not in chunks.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// Has a command carried out, as Puppet Server submits it.
    pub(super) fn command(&self, name: &str, version: u32, certname: &str, payload: &str) {
        let path = format!(
            "/pdb/cmd/v1?command={name}&version={version}&certname={certname}&producer-timestamp={NOW}&secondsToWaitForCompletion=60"
        );
        let (status, body) = self.send("POST", &path, payload).unwrap();
        let done: Value = serde_json::from_str(&body).unwrap_or_default();
        assert_eq!((status, &done["processed"]), (200, &json!(true)), "{certname}: {body}");
        assert_eq!(done.get("error"), None, "{certname}: {body}");
    }

    /// Asks an entity.
    ///
    /// # Errors
    ///
    /// Returns `PuppetDB`'s words.
    pub(super) fn query(&self, entity: &str, query: &Value) -> Result<Vec<Value>, String> {
        let path = format!("/pdb/query/v4/{entity}");
        let body = json!({ "query": query }).to_string();
        match self.send("POST", &path, &body).unwrap() {
            (200, body) => Ok(serde_json::from_str(&body).unwrap()),
            (status, body) => Err(format!("{status}: {body}")),
        }
    }
}

/// When everything was made: `PuppetDB` wants a time.
pub(super) const NOW: &str = "2026-11-21T12:00:00.000Z";

impl Drop for PuppetDb {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill().ok();
            process.wait().ok();
        }
    }
}
