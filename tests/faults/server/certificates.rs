//! A CA such as Puppet's, its certificates and revocation lists, and a client over TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// An authority, and a directory with what a daemon needs of it.
pub(super) struct Site {
    pub(super) directory: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Site {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Puppet CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let site = Self { directory: tempfile::tempdir().unwrap(), authority };
        let own = site.sign("localhost", 1, 2100);
        site.write("cert.pem", &own.certificate);
        site.write("key.pem", &own.key);
        site.write("ca.pem", &site.authority.pem());
        site.write("crl.pem", &site.list(2, 2100));
        site.write(
            "allow.yaml",
            "- certname: good\n  roles: [read]\n- certname: bad\n  roles: [read]\n",
        );
        site
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Replaces a file as a careful program does.
    pub(super) fn replace(&self, name: &str, text: &str) {
        self.write("next", text);
        std::fs::rename(self.path("next"), self.path(name)).unwrap();
    }

    pub(super) fn sign(&self, name: &str, number: u64, until: i32) -> Pair {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.serial_number = Some(SerialNumber::from(number));
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// Returns a list that revokes a number.
    pub(super) fn list(&self, revoked: u64, until: i32) -> String {
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(revoked),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.authority).unwrap().pem().unwrap()
    }

    /// Returns the daemon's arguments for all of it.
    pub(super) fn arguments(&self) -> Vec<String> {
        [
            ("--tls-cert", "cert.pem"),
            ("--tls-key", "key.pem"),
            ("--tls-client-ca", "ca.pem"),
            ("--tls-client-crl", "crl.pem"),
            ("--tls-allow", "allow.yaml"),
        ]
        .into_iter()
        .flat_map(|(flag, name)| [flag.to_owned(), self.path(name)])
        .collect()
    }

    /// Opens a connection that shows a certificate.
    pub(super) fn connect(&self, address: &str, pair: &Pair) -> Connection {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        Connection(StreamOwned::new(session, TcpStream::connect(address).unwrap()))
    }
}

pub(super) struct Connection(StreamOwned<ClientConnection, TcpStream>);

impl Connection {
    /// Sends a request and keeps the connection open; `None` if it is closed.
    pub(super) fn ask(&mut self, path: &str) -> Option<u16> {
        self.read(path).map(|(status, _)| status)
    }

    /// Does the same, and returns the body as well.
    pub(super) fn read(&mut self, path: &str) -> Option<(u16, String)> {
        self.0.write_all(request(path).as_bytes()).ok()?;
        self.answer()
    }

    /// Goes on with a handshake until what proves the certificate would be sent next, with a request behind it.
    pub(super) fn hold(&mut self, path: &str) {
        let StreamOwned { conn, sock } = &mut self.0;
        conn.write_tls(sock).unwrap();
        while conn.is_handshaking() {
            conn.read_tls(sock).unwrap();
            conn.process_new_packets().unwrap();
        }
        conn.writer().write_all(request(path).as_bytes()).unwrap();
    }

    /// Sends what was held back, and reads an answer; `None` if the connection is closed.
    pub(super) fn answer(&mut self) -> Option<(u16, String)> {
        let mut text = String::new();
        while !text.contains("\r\n\r\n") {
            text.push(char::from(self.byte()?));
        }
        let head = text.to_lowercase();
        let (_, length) = head.split_once("content-length: ")?;
        let mut body = vec![0; length.split('\r').next()?.parse().ok()?];
        self.0.read_exact(&mut body).ok()?;
        Some((text.split(' ').nth(1)?.parse().ok()?, String::from_utf8(body).ok()?))
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}
