//! Several daemons, ways to reach them, and where their names come from.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Authority, Machine, classes, https, repository, url};
use crate::git::server::Request;
use crate::program::{Daemon, clade};
use crate::table::each_row;

/// A server that gives every client the same answer, or none.
pub(crate) struct Stub {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Stub {
    pub(crate) fn saying(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                if answer.is_empty() {
                    silent.push(stream);
                    continue;
                }
                // An answer before the whole request would reset the connection.
                if Request::read(&mut stream).is_some() {
                    stream.write_all(answer.as_bytes()).ok();
                }
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An address without a listener.
pub(super) fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 42\r\nConnection: close\r\n\r\n{\"kind\":\"no-snapshot\",\"msg\":\"Not yet.\"}  \n";

#[test]
fn another_daemon_is_asked_when_one_cannot_answer() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let good = url(&daemon);
    let rows = [
        (BUSY, "answers 503 Service Unavailable: Not yet."),
        ("", "timeout: "),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>\n",
            "answers 200 OK with an invalid ENC document",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "answers 200 OK with an invalid ENC document",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"classes\": {}", "broke off"),
        (
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            "answers 302 Found: no reason",
        ),
        (
            "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
            "answers 401 Unauthorized: no reason",
        ),
        ("nonsense\r\n\r\n", "cannot reach"),
    ];
    each_row(rows, |(answer, why)| {
        let stub = Stub::saying(answer);
        let machine = Machine::new();
        let alone = machine.enc("n", &["--server", &stub.url, "--timeout", "300ms"]);
        assert_eq!(alone.status, 1, "{answer}");
        assert!(alone.stdout.contains(why), "{}", alone.stdout);
        let machine = Machine::new();
        let usual = ["--server", &stub.url, "--server", &good, "--timeout", "2s"];
        assert!(classes(&machine.enc("n", &usual)).is_empty());
        assert_eq!(stub.asked(), 2, "{answer}");
        // A failed server comes last for a while.
        assert!(classes(&machine.enc("n", &usual)).is_empty());
        assert_eq!(stub.asked(), 2, "{answer}");
    });
}

#[test]
fn no_more_than_two_daemons_are_asked() {
    let machine = Machine::new();
    let stubs = [Stub::saying(BUSY), Stub::saying(BUSY), Stub::saying(BUSY)];
    let servers = stubs.iter().map(|it| it.url.clone()).collect::<Vec<_>>().join(",");
    let done = machine.enc("n", &["--server", &servers]);
    assert_eq!(done.status, 1);
    assert_eq!(stubs.each_ref().map(Stub::asked), [1, 1, 0]);
    assert_eq!(done.stdout.matches("Not yet.").count(), 2, "{}", done.stdout);
    // A server without a request has not failed.
    machine.enc("n", &["--server", &servers]);
    assert_eq!(stubs.each_ref().map(Stub::asked), [2, 1, 1]);
}

#[test]
fn a_unix_socket_is_a_daemon() {
    let repository = repository();
    let machine = Machine::new();
    let socket = machine.path("clade.sock");
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--socket", &socket]);
    for server in [socket.clone(), format!("unix:{socket}"), format!("unix://{socket}")] {
        assert!(classes(&machine.enc("n", &["--server", &server])).is_empty(), "{server}");
    }
    let commit = repository.git().head().unwrap().peel_to_commit().unwrap().id().to_string();
    let why = clade(&["why", &commit, "--server", &socket]).output().unwrap();
    assert!(String::from_utf8(why.stdout).unwrap().starts_with(&commit));
    daemon.kill();
    let gone = machine.enc("n", &["--server", &socket, "--max-stale", "0"]);
    assert!(gone.stdout.contains(&format!("cannot reach `{socket}`: io: ")), "{}", gone.stdout);
}

#[test]
fn settings_come_from_flags_the_environment_and_a_file() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let machine = Machine::new();
    let (good, bad) = (url(&daemon), closed_port());
    let file = machine.write("enc.yaml", format!("server: [\"{bad}\"]\nmax_stale: \"0\"\n"));
    let good_file = machine.write("good.yaml", format!("server: {good}\ntimeout: 2s\n"));
    let run = |arguments: &[&str], server: Option<&str>| {
        let puppet = machine.write("puppet.conf", "vardir = /nonexistent\n");
        let mut command = clade(&[&["enc", "n", "--puppet-conf", &puppet], arguments].concat());
        server.map(|it| command.env("CLADE_SERVER", it));
        command.output().unwrap().status.code().unwrap()
    };
    for (arguments, variable, status) in [
        (&["--config", &file][..], None, 1),
        (&["--config", &good_file], None, 0),
        (&["--config", &file], Some(&good), 0),
        (&["--config", &good_file], Some(&bad), 1),
        (&["--config", &file, "--server", &good], Some(&bad), 0),
        (&["--server", &bad, "--server", &good], None, 0),
    ] {
        let got = run(arguments, variable.map(String::as_str));
        assert_eq!(got, status, "{arguments:?} {variable:?}");
    }
    let wrong = machine.write("wrong.yaml", "servr: x\n");
    let done = machine.enc("n", &["--config", &wrong]);
    let reason =
        format!("clade enc: {wrong}:1:1: unknown setting `servr`; did you mean `server`?\n");
    assert_eq!((done.status, &done.stdout, &done.stderr), (1, &reason, &reason));
    let wrong = machine.write("wrong.yaml", "timeout: soon\n");
    let done = machine.enc("n", &["--config", &wrong]);
    assert!(done.stdout.starts_with(&format!("clade enc: {wrong}:1:10: ")), "{}", done.stdout);
    let done = machine.enc("n", &["--server", "clade.example.com"]);
    assert!(
        done.stdout.starts_with("clade enc: `clade.example.com` is neither a URL of"),
        "{}",
        done.stdout
    );
}

#[test]
fn the_certificate_of_puppet_server_says_who_asks() {
    let repository = repository();
    let machine = Machine::new();
    let authority = Authority::new();
    let puppet = authority.sign("puppet", &[]);
    let allowed = machine.write("allow.yaml", "- certname: puppet\n  roles: [classify]\n");
    let daemon = authority.serve(&machine, &repository, &["--tls-allow", &allowed]);
    let server = https(&daemon);
    let root = machine.path("");
    machine.write("puppet.conf", format!("ssldir = {root}ssl\nvardir = {root}data\n"));
    let anonymous = machine.enc("n", &["--server", &server]);
    assert!(
        anonymous.stdout.contains("answers 401 Unauthorized: Route requires"),
        "{}",
        anonymous.stdout
    );
    // The name is that of the only key, unless it is configured.
    machine.write("ssl/certs/puppet.pem", &puppet.0);
    machine.write("ssl/private_keys/puppet.pem", &puppet.1);
    assert!(classes(&machine.enc("n", &["--server", &server])).is_empty());
    machine.write("ssl/private_keys/other.pem", "x");
    machine.write("puppet.conf", format!("ssldir = {root}ssl\ncertname = puppet\n"));
    assert!(classes(&machine.enc("n", &["--server", &server])).is_empty());
    // A certificate of another authority is refused.
    let stranger = machine.write("stranger.pem", Authority::new().0.pem());
    let done = machine.enc("n", &["--server", &server, "--tls-ca", &stranger, "--max-stale", "0"]);
    assert_eq!(done.status, 1);
    assert!(done.stdout.contains(&format!("cannot reach `{server}`")), "{}", done.stdout);
}
