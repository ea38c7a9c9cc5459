//! Servers on the loopback interface: git's own behind HTTP and TCP, and ones that misbehave.

use std::collections::BTreeMap;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoClientAuth;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A server that handles each connection in a thread until it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    stopping: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let handle = Arc::new(handle);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let handle = Arc::clone(&handle);
                std::thread::spawn(move || handle(connection.unwrap()));
            }
        });
        Self { port, stopping }
    }

    /// Starts a server that reads each request over HTTP and answers with bytes.
    pub(crate) fn http(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(move |mut stream| {
            if let Some(request) = Request::read(&mut stream) {
                // The client may have closed the connection.
                stream.write_all(&answer(&request)).ok();
            }
        })
    }

    /// The same over TLS.
    pub(crate) fn https(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::https_for(Arc::new(NoClientAuth), answer)
    }

    /// The same for clients with a valid certificate.
    pub(crate) fn https_for(
        clients: Arc<dyn ClientCertVerifier>,
        answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let certificate = CertificateDer::from_pem_file(tls("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(tls("server-key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let config = Arc::new(config);
        Self::start(move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            if let Some(request) = Request::read(&mut stream) {
                stream.write_all(&answer(&request)).ok();
                stream.conn.send_close_notify();
                stream.flush().ok();
            }
        })
    }

    /// Starts git's own daemon on a directory of repositories.
    pub(super) fn git_daemon(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self::start(move |stream| {
            let input = Stdio::from(std::os::fd::OwnedFd::from(stream.try_clone().unwrap()));
            let output = Stdio::from(std::os::fd::OwnedFd::from(stream));
            let mut base = std::ffi::OsString::from("--base-path=");
            base.push(&directory);
            Command::new("git")
                .args(["daemon", "--inetd", "--export-all"])
                .arg(base)
                .stdin(input)
                .stdout(output)
                .stderr(Stdio::null())
                .status()
                .unwrap();
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        TcpStream::connect(("127.0.0.1", self.port)).ok();
    }
}

/// Returns the path of a file for TLS: a certificate of `localhost`, its key, its authority.
pub(crate) fn tls(name: &str) -> PathBuf {
    crate::program::root().join("tests/fixtures/tls").join(name)
}

/// A request over HTTP.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads a request; `None` if the peer closes or speaks another protocol.
    pub(crate) fn read(stream: &mut impl Read) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.extend(byte);
        }
        let head = String::from_utf8(head).ok()?;
        let mut lines = head.lines();
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        Some(Self { method, target, headers, body })
    }
}

/// Returns an answer over HTTP with a status line, headers and an empty body.
pub(crate) fn status(line: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {line}\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").into()
}

/// Has git's own program answer a request for a repository below a directory.
pub(crate) fn http_backend(directory: &Path, request: &Request) -> Vec<u8> {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", directory)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", request.headers.get("content-type").map_or("", String::as_str))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let question = request.body.clone();
    let asking = std::thread::spawn(move || input.write_all(&question).ok());
    let output = child.wait_with_output().unwrap().stdout;
    asking.join().unwrap();
    let end = output.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&output[..end]);
    let line = head.lines().find_map(|it| it.strip_prefix("Status: ")).unwrap_or("200 OK");
    let body = &output[end + 4..];
    let mut answer = format!("HTTP/1.1 {line}\r\nConnection: close\r\n").into_bytes();
    answer.extend(format!("Content-Length: {}\r\n{head}\r\n\r\n", body.len()).into_bytes());
    answer.extend_from_slice(body);
    answer
}

/// The requests that a server saw.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<Request>>>);

impl Seen {
    pub(super) fn note(&self, request: &Request) {
        self.0.lock().unwrap().push(request.clone());
    }

    /// Returns the values of a header, in the order of the requests.
    pub(super) fn header(&self, name: &str) -> Vec<Option<String>> {
        self.0.lock().unwrap().iter().map(|it| it.headers.get(name).cloned()).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Writes a byte at a time, slowly, for as long as the peer listens.
pub(super) fn drip(stream: &mut TcpStream, text: &[u8]) {
    for byte in text.iter().chain(std::iter::repeat(&b'0')) {
        if stream.write_all(&[*byte]).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns whether the programs of git are installed.
pub(crate) fn has_git() -> bool {
    let found = Command::new("git").arg("--exec-path").output();
    let found = found.is_ok_and(|it| {
        let directory = String::from_utf8_lossy(&it.stdout).trim().to_owned();
        Path::new(&directory).join("git-http-backend").exists()
    });
    if !found {
        eprintln!("skipped: needs git");
    }
    found
}
