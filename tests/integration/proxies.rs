//! Proxies that the environment names.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::git::server::{Request, Server};
use crate::program::{Done, GitRepository, clade};
use crate::table::each_row;

/// A proxy that refuses every connection, and what it was asked for.
struct RefusingProxy {
    server: Server,
    targets: Arc<Mutex<Vec<String>>>,
}

impl RefusingProxy {
    fn start() -> Self {
        let targets = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&targets);
        let server = Server::start(move |mut stream| {
            let Some(request) = Request::read(&mut stream) else { return };
            seen.lock().unwrap().push(format!("{} {}", request.method, request.target));
            stream.write_all(b"HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n").ok();
        });
        Self { server, targets }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }
}

fn with(variables: &[(&str, &str)], arguments: &[&str]) -> Done {
    let mut command = clade(arguments);
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    Done::from(command.envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn the_scheme_of_a_daemon_says_which_proxy_is_asked() {
    let rows = [
        ("http://clade.example.invalid:4433", "http_proxy", true),
        ("http://clade.example.invalid:4433", "https_proxy", false),
        ("http://clade.example.invalid:4433", "HTTP_PROXY", false),
        ("https://clade.example.invalid:4433", "https_proxy", true),
        ("https://clade.example.invalid:4433", "http_proxy", false),
        ("https://clade.example.invalid:4433", "ALL_PROXY", true),
        // A token that stays on this machine in clear text must not leave it.
        ("http://127.0.0.1:1", "all_proxy", false),
    ];
    each_row(rows, |(server, variable, is_asked)| {
        let proxy = RefusingProxy::start();
        let done = with(&[(variable, &proxy.url())], &["status", "--server", server]);
        assert_eq!(done.status, 2, "{}", done.stderr);
        let targets = proxy.targets.lock().unwrap().join(" ");
        assert_eq!(targets == "CONNECT clade.example.invalid:4433", is_asked, "{targets}");
        let exempt = [(variable, &*proxy.url()), ("no_proxy", "example.invalid,127.0.0.1")];
        with(&exempt, &["status", "--server", server]);
        assert_eq!(proxy.targets.lock().unwrap().len(), usize::from(is_asked));
    });
}

#[test]
fn a_proxy_that_fails_is_named_and_not_the_daemon() {
    let refusing = RefusingProxy::start();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for port in [refusing.server.port, closed] {
        let proxy = format!("http://u:secret@127.0.0.1:{port}");
        let server = "https://clade.example.invalid";
        let done = with(&[("https_proxy", &proxy)], &["status", "--server", server]);
        let said = format!("cannot reach `{server}`: through the proxy `http://127.0.0.1:{port}");
        assert!(done.status == 2 && done.stderr.contains(&said), "{}", done.stderr);
        assert!(!done.stderr.contains("secret"), "{}", done.stderr);
        assert!(!done.stderr.contains("is it running"), "{}", done.stderr);
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\nrule: name = n\n")]);
    let (path, data) = (repository.text_path(), tempfile::tempdir().unwrap());
    let data = data.path().to_str().unwrap();
    let check: &[&str] = &["serve", "--check", "--data-dir", data, "--repo"];
    let remote = [check, &["https://git.example.invalid/groups"]].concat();
    let puppetdb = [check, &[&path, "--puppetdb", "https://db.example.invalid"]].concat();
    let status = ["status", "--server", "https://clade.example.invalid"];
    let own = [&remote[..], &["--git-proxy", "http://u:secret@p:99999"]].concat();
    let none = [&remote[..], &["--git-proxy", "none"]].concat();
    let malformed = Some("the proxy in the variable `https_proxy` is not a URL");
    let rows: [(&[&str], &str, &str, Option<&str>); 8] = [
        (&remote, "https_proxy", "http://u:secret@p:99999", malformed),
        (&remote, "https_proxy", "http://u:sec/ret@p:3128", malformed),
        (&remote, "ALL_PROXY", "socks5://u:secret@p", Some("`ALL_PROXY` is a SOCKS proxy")),
        (&remote, "http_proxy", "http://u:secret@p:99999", None),
        (&puppetdb, "https_proxy", "http://u:secret@p:99999", malformed),
        (&status, "https_proxy", "http://u:secret@p:99999", malformed),
        (&own, "https_proxy", "", Some("the proxy of `--git-proxy` is not a URL")),
        (&none, "https_proxy", "http://u:secret@p:99999", None),
    ];
    each_row(rows, |(arguments, variable, value, expected)| {
        let done = with(&[(variable, value)], arguments);
        let said = [done.stdout, done.stderr].concat();
        assert!(!said.contains("secret") && !said.contains("ret@"), "{said}");
        match expected {
            Some(expected) => assert!(done.status == 2 && said.contains(expected), "{said}"),
            None => assert_eq!(done.status, 0, "{said}"),
        }
    });
}
