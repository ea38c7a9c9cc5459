//! Web pages in the browser of an operator, and what URLs tell.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use super::{repository, tokens};
use crate::program::{Daemon, Response, clade};
use crate::{Fault, Seen, Speed};

pub(super) const DNS_REBINDING: Fault = Fault {
    name: "rights::dns-rebinding",
    promise: "without authentication a request that names a foreign host gets 403 on every route",
    injection: "names, addresses and absolute URLs of other hosts, such as a page has whose name points to 127.0.0.1",
    speed: Speed::Fast,
    run: dns_rebinding,
};

pub(super) const CROSS_SITE: Fault = Fault {
    name: "rights::cross-site",
    promise: "no page of another site pins, writes or reads through a browser of this machine",
    injection: "requests with foreign `Origin` and `Sec-Fetch-Site`, and bodies that a form can send",
    speed: Speed::Fast,
    run: cross_site,
};

pub(super) const TOKEN_IN_URL: Fault = Fault {
    name: "rights::token-in-url",
    promise: "a token in the URL is accepted, and is in no log, metric, error or referrer",
    injection: "`?token=` on every kind of route with the log at its finest",
    speed: Speed::Fast,
    run: token_in_url,
};

/// Sends a request with exactly these headers.
fn raw(address: &str, method: &str, target: &str, headers: &[&str], body: &str) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    let headers = headers.iter().fold(String::new(), |all, it| all + it + "\r\n");
    let length = body.len();
    write!(stream, "{method} {target} HTTP/1.1\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head: head.to_owned(), body: body.to_owned() }
}

fn dns_rebinding() -> Seen {
    let (repository, directory) = (repository(), tempfile::tempdir().unwrap());
    let socket = directory.path().join("clade.sock");
    let path = repository.text_path();
    let daemon = Daemon::start(&[
        "--repo",
        &path,
        "--writes",
        "commit",
        "--socket",
        socket.to_str().unwrap(),
        "--allowed-hosts",
        "clade.example.com",
    ]);
    let routes = [
        ("GET", "/v1/groups", 200),
        ("GET", "/enc/n", 200),
        ("GET", "/v1/nodes?facts=true", 200),
        ("GET", "/livez", 200),
        ("GET", "/metrics", 200),
        ("GET", "/nothing", 404),
        ("POST", "/controller/reconcile", 202),
    ];
    let mut refused = 0;
    for (method, path, status) in routes {
        for host in
            ["evil.example", "evil.example:4433", "localhost.evil.example", "192.0.2.1", "clade"]
        {
            let answer = raw(&daemon.address, method, path, &[&format!("Host: {host}")], "");
            assert_eq!(answer.status, 403, "{host} {method} {path}");
            assert_eq!(answer.json()["kind"], "permission-denied");
            refused += 1;
        }
        let absolute = format!("http://evil.example{path}");
        assert_eq!(raw(&daemon.address, method, &absolute, &["Host: localhost"], "").status, 403);
        for host in ["localhost", "127.0.0.1:4433", "[::1]:8080", "127.1.2.3", "CLADE.example.com"]
        {
            let answer = raw(&daemon.address, method, path, &[&format!("Host: {host}")], "");
            assert_eq!(answer.status, status, "{host} {method} {path} {}", answer.body);
        }
    }
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET /v1/groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    Seen::Held(format!("403 with an error body for {refused} requests"))
}

fn cross_site() -> Seen {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--writes", "commit"]);
    let host = format!("Host: {}", daemon.address);
    let own = format!("Origin: http://{}", daemon.address);
    let new =
        r#"{"name": "Evil", "parent": "00000000-0000-4000-8000-000000000000", "classes": {}}"#;
    let json = "Content-Type: application/json";
    let form = "Content-Type: application/x-www-form-urlencoded";
    let mut refused = 0;
    for (method, path, headers, status) in [
        ("POST", "/v1/groups", vec!["Origin: https://evil.example", json], 403),
        ("POST", "/v1/groups", vec!["Origin: null", json], 403),
        ("POST", "/v1/groups", vec!["Origin: http://localhost:3000", json], 403),
        ("POST", "/v1/groups", vec!["Sec-Fetch-Site: cross-site", json], 403),
        ("POST", "/v1/groups", vec!["Sec-Fetch-Site: same-site"], 403),
        ("POST", "/controller/resume", vec!["Sec-Fetch-Site: cross-site"], 403),
        ("POST", "/enc/n", vec!["Origin: https://evil.example"], 403),
        ("GET", "/v1/nodes", vec!["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"], 403),
        ("OPTIONS", "/v1/groups", vec!["Origin: https://evil.example"], 403),
        ("POST", "/v1/groups", vec![&own, form], 403),
        ("POST", "/v1/groups", vec![&own, "Content-Type: text/plain"], 403),
        (
            "POST",
            "/v1/groups",
            vec!["Sec-Fetch-Site: same-origin", "Content-Type: multipart/form-data; boundary=x"],
            403,
        ),
        // A made-up token grants nothing where no tokens are configured.
        ("POST", "/v1/groups?token=x", vec!["Sec-Fetch-Site: cross-site", json], 403),
        // A link, a page of the daemon itself, and clients that are no browsers.
        (
            "GET",
            "/v1/groups",
            vec![
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Mode: navigate",
                "Sec-Fetch-Dest: document",
            ],
            200,
        ),
        ("GET", "/v1/groups", vec!["Sec-Fetch-Site: none"], 200),
        ("POST", "/controller/resume", vec!["Sec-Fetch-Site: same-origin", &own], 202),
        ("POST", "/enc/n", vec![form], 200),
        ("POST", "/enc/n", vec![], 200),
        ("POST", "/v1/groups", vec![&own, json], 303),
    ] {
        let all = [&[host.as_str()], headers.as_slice()].concat();
        let body = if path.starts_with("/enc") { r#"{"facts": {}}"# } else { new };
        let answer = raw(&daemon.address, method, path, &all, body);
        assert_eq!(answer.status, status, "{method} {path} {headers:?} {}", answer.body);
        if status == 403 {
            assert_eq!(answer.json()["kind"], "permission-denied");
            refused += 1;
        }
    }
    Seen::Held(format!("403 for {refused} requests; links and other clients were answered"))
}

/// A daemon that is ended when it is dropped, with its log in a file.
struct Logged(Child);

impl Drop for Logged {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn token_in_url() -> Seen {
    let (repository, directory) = (repository(), tempfile::tempdir().unwrap());
    let (list, log) = (directory.path().join("tokens.yaml"), directory.path().join("log"));
    std::fs::write(&list, tokens(&[("sesame-open", "roles: [classify, read, operate]")])).unwrap();
    let (path, list) = (repository.text_path(), list.to_str().unwrap().to_owned());
    let mut command = clade(&["serve", "--listen", "127.0.0.1:0", "--repo", &path]);
    command.args(["--tokens-file", &list]).env("CLADE_LOG", "trace");
    let _logged = Logged(command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    let deadline = Instant::now() + Duration::from_mins(1);
    let address = loop {
        let text = std::fs::read_to_string(&log).unwrap();
        let after = text.split_once("listening on http://").map(|(_, rest)| rest.to_owned());
        match after.and_then(|it| it.split_once('\n').map(|(line, _)| line.trim().to_owned())) {
            Some(line) => break line.split(' ').next().unwrap().to_owned(),
            None => assert!(Instant::now() < deadline, "the daemon did not start: {text}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let daemon = Daemon::at(&address);
    let mut said = String::new();
    for (method, path, status) in [
        ("GET", "/v1/groups?token=sesame-open", 200),
        ("GET", "/v1/groups?limit=1&%74oken=sesame%2Dopen", 200),
        ("GET", "/classifier-api/v1/groups?token=sesame-open&limit=x", 400),
        ("GET", "/v1/groups?token=sesame-open&%zz=%", 200),
        ("POST", "/enc/n?token=sesame-open", 200),
        ("POST", "/v1/groups?token=sesame-open", 403),
        ("PATCH", "/v1/groups?token=sesame-open", 403),
        ("GET", "/nothing?token=sesame-open", 404),
        ("GET", "/controller/commits/nope?token=sesame-open", 404),
        ("GET", "/v1/groups?at=never&token=sesame-open", 400),
        ("GET", "/metrics?token=sesame-open", 200),
        ("GET", "/controller/status?token=sesame-open", 200),
        ("GET", "/v1/groups?token=sesame-shut", 401),
    ] {
        let answer = daemon.request(method, path, "");
        assert_eq!(answer.status, status, "{method} {path} {}", answer.body);
        assert_eq!(answer.header("Referrer-Policy"), Some("no-referrer"), "{method} {path}");
        assert_eq!(answer.header("Cache-Control"), Some("no-store"), "{method} {path}");
        said += &answer.body;
    }
    said += &std::fs::read_to_string(&log).unwrap();
    for secret in ["sesame-open", "sesame%2Dopen", "sesame-shut"] {
        let places: Vec<&str> = said.lines().filter(|line| line.contains(secret)).collect();
        assert_eq!(places, Vec::<&str>::new(), "{secret}");
    }
    Seen::Held(
        "13 requests answered; no token in log, metrics or bodies, and nothing for caches"
            .to_owned(),
    )
}
