//! A PostgreSQL of our own on loopback. The tests of one binary share one; it ends with them, however they end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

/// The password of its superuser: no log shows it.
pub(crate) const PASSWORD: &str = "pw-Vq7tZ2mK9x";

/// Runs the server until its input ends, so that no server outlives its test; `start` and `stop` are done at once.
const SCRIPT: &str = r#"
set -eu
bin=$1 port=$2 password=$3 pid=
home=$(mktemp -d)
cd "$home"
trap '[ -z "$pid" ] || kill -QUIT "$pid"; wait; rm -rf "$home"' EXIT
echo "$password" >password
"$bin/initdb" -D data -U postgres -A trust --pwfile=password -E UTF8 --locale=C.UTF-8 --no-sync >log
# Who is `guarded` must give a password.
sed -i '1i host all guarded 127.0.0.1/32 scram-sha-256' data/pg_hba.conf
mkdir tls
openssl req -x509 -newkey rsa:2048 -nodes -keyout tls/ca.key -out tls/ca.pem -days 2 -subj /CN=test-ca \
    -addext basicConstraints=critical,CA:TRUE 2>>log
openssl req -newkey rsa:2048 -nodes -keyout tls/server.key -out tls/server.csr -subj /CN=localhost 2>>log
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' >tls/extensions
openssl x509 -req -in tls/server.csr -CA tls/ca.pem -CAkey tls/ca.key -CAcreateserial -days 2 \
    -extfile tls/extensions -out tls/server.pem 2>>log
chmod 600 tls/server.key
chmod 711 "$home"
start() {
    "$bin/postgres" -D data -p "$port" -k "$home" -c listen_addresses=127.0.0.1 -c fsync=off \
        -c max_connections=200 -c max_wal_size=64MB \
        -c ssl=on -c ssl_cert_file="$home/tls/server.pem" -c ssl_key_file="$home/tls/server.key" \
        </dev/null >>log 2>&1 &
    pid=$!
    for _ in $(seq 600); do
        "$bin/pg_isready" -q -h 127.0.0.1 -p "$port" && return
        kill -0 "$pid" || { cat log; exit 1; }
        sleep 0.1
    done
    exit 1
}
start
echo "$home"
while read -r word; do
    case $word in
        stop) kill -QUIT "$pid"; wait "$pid" || true; pid= ;;
        start) start ;;
    esac
    echo "$word"
done
"#;

/// A server, which its drop ends.
pub(crate) struct Postgres {
    programs: PathBuf,
    port: u16,
    home: PathBuf,
    script: Mutex<Script>,
    schemas: AtomicU32,
}

struct Script {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Returns where the programs are, of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions.flatten().map(|it| it.path().join("bin")).collect();
    found.retain(|it| it.join("initdb").exists());
    found.sort();
    found.pop()
}

impl Postgres {
    /// Returns the server that the tests of this binary share; none, with a word about it, where it is not installed.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref().or_else(|| {
            eprintln!("skipped: needs postgresql");
            None
        })
    }

    /// Boots a server for one test.
    pub(crate) fn start() -> Option<Self> {
        let programs = programs()?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| {
            use std::os::unix::fs::MetadataExt as _;
            it.uid() == 0
        });
        // PostgreSQL refuses to run as root.
        let mut command = if is_root {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--", "bash"]);
            command
        } else {
            Command::new("bash")
        };
        command.args(["-c", SCRIPT, "postgres"]).arg(&programs).arg(port.to_string()).arg(PASSWORD);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut script = Script { process, input, output };
        let home = script.line();
        assert!(Path::new(&home).is_absolute(), "PostgreSQL did not start: {home}");
        let script = Mutex::new(script);
        Some(Self { programs, port, home: home.into(), script, schemas: AtomicU32::new(0) })
    }

    /// Returns the URL of an empty schema.
    pub(crate) fn schema(&self) -> String {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        self.sql(&format!("CREATE SCHEMA t{number}"));
        self.url(&format!("options[search_path]=t{number}"))
    }

    /// Returns the URL of its database, with parameters.
    pub(crate) fn url(&self, parameters: &str) -> String {
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/postgres?{parameters}", self.port)
    }

    /// Returns its port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the certificate of the CA that signed its own.
    pub(crate) fn ca(&self) -> PathBuf {
        self.home.join("tls/ca.pem")
    }

    /// Runs a statement, and returns what `psql` prints.
    pub(crate) fn sql(&self, statement: &str) -> String {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-qtA", "-v", "ON_ERROR_STOP=1", "-d", &self.url(""), "-c", statement]);
        let done = command.current_dir("/").stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{statement}: {done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Ends the server at once; its data stay.
    pub(crate) fn stop(&self) {
        self.script.lock().unwrap().ask("stop");
    }

    /// Starts the server again.
    pub(crate) fn start_again(&self) {
        self.script.lock().unwrap().ask("start");
    }
}

impl Script {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn ask(&mut self, word: &str) {
        writeln!(self.input.as_mut().unwrap(), "{word}").unwrap();
        assert_eq!(self.line(), word);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Ok(mut script) = self.script.lock() else { return };
        script.input = None;
        script.process.wait().ok();
    }
}
