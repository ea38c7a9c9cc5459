//! Certificates that are refused: the message says which one, why, and since when.

use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

use super::{Authority, Machine, classes, https, repository};
use crate::program::{Daemon, Done, GitRepository, clade};

/// How often a message is compared: connections that are refused end in several ways.
const RUNS: usize = 10;

/// The years in which a certificate is valid, from their first days.
type Years = (i32, i32);

const VALID: Years = (2020, 2100);

fn signed(authority: &Authority, name: &str, (from, until): Years) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, &authority.0).unwrap().pem(), key.serialize_pem())
}

/// A daemon with TLS, and a client of it.
struct Site {
    machine: Machine,
    authority: Authority,
    server: String,
    _daemon: Daemon,
    _repository: GitRepository,
}

impl Site {
    fn new(name: &str, years: Years) -> Self {
        let (machine, authority) = (Machine::new(), Authority::new());
        let repository = repository();
        let own = signed(&authority, name, years);
        let daemon = Daemon::start(&[
            "--repo",
            &repository.text_path(),
            "--tls-cert",
            &machine.write("daemon.pem", own.0),
            "--tls-key",
            &machine.write("daemon.key", own.1),
            "--tls-client-ca",
            &machine.write("ca.pem", authority.0.pem()),
            "--tls-allow",
            &machine.write("allow.yaml", "- certname: puppet\n  roles: [classify]\n"),
        ]);
        // Far more than the daemon reads of a client that it refuses.
        let facts = serde_json::json!({"name": "big", "values": {"text": "x".repeat(2 << 20)}});
        machine.write("facts/big.json", facts.to_string());
        let server = https(&daemon);
        Self { machine, authority, server, _daemon: daemon, _repository: repository }
    }

    fn client(&self, pair: (String, String)) {
        self.machine.write("client.pem", pair.0);
        self.machine.write("client.key", pair.1);
    }

    fn enc(&self, node: &str) -> Done {
        let file = |name| self.machine.path(name);
        let (ca, facts) = (file("ca.pem"), file("facts"));
        let (certificate, key) = (file("client.pem"), file("client.key"));
        self.machine.enc(
            node,
            &[
                &["--server", &self.server, "--facts-dir", &facts, "--tls-ca", &ca][..],
                &["--tls-cert", &certificate, "--tls-key", &key],
            ]
            .concat(),
        )
    }

    /// Asserts that every run says the same.
    fn always_says(&self, reason: &str) {
        let cannot = format!("clade enc: cannot reach `{}`: {reason}; ", self.server);
        for node in ["small", "big"] {
            for run in 0..RUNS {
                let done = self.enc(node);
                assert_eq!(done.status, 1, "{node} {run}");
                assert!(done.stdout.starts_with(&cannot), "{node} {run}: {}", done.stdout);
            }
        }
    }
}

#[test]
fn another_scheme_than_that_of_the_daemon_is_named() {
    let site = Site::new("localhost", VALID);
    let plain = site.server.replace("https://", "http://");
    let done = site.machine.enc("small", &["--server", &plain]);
    let help = "; if the service has a certificate, use https://";
    assert!(done.stdout.contains(help), "{}", done.stdout);
    let import =
        Done::from(clade(&["import", &plain, &site.machine.path("estate")]).output().unwrap());
    assert!(import.stderr.contains(help), "{}", import.stderr);

    let daemon = Daemon::start(&["--repo", &repository().text_path()]);
    let encrypted = format!("https://{}", daemon.address);
    let done = site.machine.enc("small", &["--server", &encrypted]);
    let help = "; if the service has no certificate, use http://";
    assert!(done.stdout.contains(help), "{}", done.stdout);
}

#[test]
fn a_refused_client_certificate_is_named_with_the_reason() {
    let site = Site::new("localhost", VALID);
    let shown = format!("the client certificate in `{}`", site.machine.path("client.pem"));
    site.client(signed(&site.authority, "puppet", VALID));
    assert!(classes(&site.enc("small")).is_empty());
    std::fs::remove_dir_all(site.machine.path("cache")).unwrap();

    site.client(signed(&site.authority, "puppet", (2020, 2025)));
    site.always_says(&format!("{shown} (CN=puppet) expired at 2025-01-01T00:00:00Z: renew it"));
    let (ca, file) = (site.machine.path("ca.pem"), site.machine.path("client.pem"));
    let mut other = clade(&["why", &"0".repeat(40), "--server", &site.server, "--tls-ca", &ca]);
    other.args(["--tls-cert", &file, "--tls-key", &site.machine.path("client.key")]);
    let done = Done::from(other.output().unwrap());
    assert!(done.stderr.contains("expired at 2025-01-01T00:00:00Z: renew it"), "{}", done.stderr);

    site.client(signed(&site.authority, "puppet", (2090, 2100)));
    site.always_says(&format!(
        "{shown} (CN=puppet) is not valid before 2090-01-01T00:00:00Z: check the clock"
    ));
    site.client(signed(&Authority::new(), "puppet", VALID));
    site.always_says(&format!(
        "the server refuses {shown} (CN=puppet): the server does not know its authority, or has no \
         valid revocation list of it"
    ));
}

#[test]
fn an_invalid_certificate_of_the_daemon_is_reported_with_the_reason() {
    for (name, years, reason) in [
        (
            "localhost",
            (2020, 2025),
            "the certificate of the server expired at 2025-01-01T00:00:00Z: renew it there, or check \
             the clock here",
        ),
        (
            "localhost",
            (2090, 2100),
            "the certificate of the server is not valid before 2090-01-01T00:00:00Z: check the clocks",
        ),
        (
            "clade.example.com",
            VALID,
            "the certificate of the server is not valid for `localhost`, but for: clade.example.com",
        ),
    ] {
        let site = Site::new(name, years);
        site.client(signed(&site.authority, "puppet", VALID));
        site.always_says(reason);
    }
    let site = Site::new("localhost", VALID);
    site.client(signed(&site.authority, "puppet", VALID));
    let ca = site.machine.write("ca.pem", Authority::new().0.pem());
    site.always_says(&format!(
        "the certificate of the server is not signed by an authority in `{ca}`"
    ));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let site = Site::new("localhost", VALID);
    let (good, other) =
        (signed(&site.authority, "puppet", VALID), signed(&site.authority, "other", VALID));
    let (file, key) = (site.machine.path("client.pem"), site.machine.path("client.key"));
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (pair, reason) in [
        (
            (good.0.clone(), other.1),
            format!("the private key in `{key}` does not belong to the certificate in `{file}`"),
        ),
        (
            (garbage.to_owned(), good.1.clone()),
            format!(
                "cannot use the client certificate in `{file}` with the private key in `{key}`"
            ),
        ),
        (
            (String::new(), good.1.clone()),
            format!("the certificates in `{file}` cannot be used: there is no certificate in it"),
        ),
        (
            (good.0.clone(), "x".to_owned()),
            format!("the private key in `{key}` cannot be used: there is no private key in it"),
        ),
    ] {
        site.client(pair);
        let done = site.enc("small");
        assert_eq!(done.status, 1);
        assert!(done.stdout.starts_with(&format!("clade enc: {reason}")), "{}", done.stdout);
    }
    std::fs::remove_file(&file).unwrap();
    let done = site.enc("small");
    assert!(
        done.stdout.starts_with(&format!("clade enc: cannot read `{file}`")),
        "{}",
        done.stdout
    );
}

#[test]
fn an_unreadable_key_of_puppet_is_reported_and_nothing_fails() {
    let repository = repository();
    let machine = Machine::new();
    let authority = Authority::new();
    let own = authority.sign("localhost", &[]);
    let daemon = authority.serve(&machine, &repository, &["--allow-anonymous"]);
    let server = https(&daemon);
    let root = machine.path("");
    // No user can enter a file.
    let keys = machine.write("ssl/private_keys", "");
    for (settings, path) in [
        (format!("ssldir = {root}ssl\n"), keys.clone()),
        (format!("ssldir = {root}ssl\ncertname = puppet\n"), format!("{keys}/puppet.pem")),
    ] {
        machine.write("ssl/certs/puppet.pem", &own.0);
        machine.write("puppet.conf", settings);
        let done = machine.enc("n", &["--server", &server]);
        assert!(classes(&done).is_empty());
        let said = format!("clade enc: cannot read Puppet's own key and certificate in `{path}`: ");
        assert!(done.stderr.starts_with(&said), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        // Where a certificate is configured, Puppet's is not needed.
        let (cert, key) = (machine.path("cert.pem"), machine.path("key.pem"));
        let configured = ["--server", &server, "--tls-cert", &cert, "--tls-key", &key];
        assert_eq!(machine.enc("n", &configured).stderr, "");
    }
}
