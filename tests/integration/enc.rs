//! `clade enc` as Puppet Server runs it.

mod callers;
mod certificates;
mod certname;
mod facts;
mod fallback;
mod offline;
mod refused_facts;
mod ruby;
pub(crate) mod servers;
mod unknown_facts;
mod usage;

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, KeyPair,
};
use serde_json::Value;

use crate::program::{Daemon, Done, GitRepository, clade};

/// Groups by fact, by certificate extension and by name.
const GROUPS: &str = "name: Debian
rule: os.family = Debian
classes: {apt: {}}
---
name: Web
rule: trusted.extensions.pp_role = web
classes: {role::web: {port: 80}}
variables: {tier: front}
---
name: Rack
rule: trusted.extensions.rack = r12
classes: {rack: {}}
---
name: Torn
rule: name = torn and os.family = Debian
classes: {apt: {x: 1}}
---
name: Other
rule: name = torn and os.family = Debian
classes: {apt: {x: 2}}
";

const FACTS: &str = r#"{"name":"web1.example.com","values":{"os":{"family":"Debian"},"trusted":{"certname":"forged","extensions":{"rack":"r12"}}},"timestamp":"2026-11-20T21:25:23.694149531+00:00"}"#;

/// A repository with those groups.
fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/all.yaml", GROUPS)]);
    repository
}

/// A machine with a Puppet Server: its files, in directories of their own.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = PathBuf::from(self.path(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs `clade enc` with a cache of this machine and settings of no other.
    fn enc(&self, node: &str, arguments: &[&str]) -> Done {
        let (cache, puppet) = (self.path("cache"), self.path("puppet.conf"));
        if !PathBuf::from(&puppet).exists() {
            self.write("puppet.conf", "vardir = /nonexistent\ncadir = /nonexistent\n");
        }
        let mut command = clade(&[&["enc", node], arguments].concat());
        command.env("CLADE_PUPPET_CONF", puppet).env("CLADE_CACHE_DIR", cache);
        command.output().unwrap().into()
    }
}

/// Where a machine has the certificate of the authority.
const CA: &str = "ssl/certs/ca.pem";

/// The URL of a daemon with a certificate.
fn https(daemon: &Daemon) -> String {
    format!("https://localhost:{}", daemon.address.rsplit_once(':').unwrap().1)
}

/// The URL of a daemon.
fn url(daemon: &Daemon) -> String {
    format!("http://{}", daemon.address)
}

/// Returns the names of the classes of an answer.
fn classes(done: &Done) -> Vec<String> {
    assert_eq!(done.status, 0, "{} {}", done.stdout, done.stderr);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    document["classes"].as_object().unwrap().keys().cloned().collect()
}

/// A CA such as Puppet's.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Puppet CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Starts a daemon with a certificate of `localhost`; the clients' certificates are of the same
    /// authority, which the machine has as `ssl/certs/ca.pem`.
    fn serve(&self, machine: &Machine, repository: &GitRepository, more: &[&str]) -> Daemon {
        let own = self.sign("localhost", &[]);
        let (certificate, key) =
            (machine.write("cert.pem", own.0), machine.write("key.pem", own.1));
        let (path, ca) = (repository.text_path(), machine.write(CA, self.0.pem()));
        let arguments = ["--repo", &path, "--tls-cert", &certificate, "--tls-key", &key];
        Daemon::start(&[&arguments[..], &["--tls-client-ca", &ca], more].concat())
    }

    /// Returns certificate and key of a host, with extensions: the last two numbers and a text.
    fn sign(&self, name: &str, extensions: &[(u64, u64, &str)]) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        for (arc, number, text) in extensions {
            let value = [&[0x0c, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            let oid = [1, 3, 6, 1, 4, 1, 34380, 1, *arc, *number];
            params.custom_extensions.push(CustomExtension::from_oid_content(&oid, value));
        }
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}
