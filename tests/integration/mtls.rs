//! A certificate authority such as Puppet's, and a client with its certificates.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::program::Response;

/// A certificate and its key, as PEM.
pub(crate) type Identity = (String, String);

pub(crate) struct Authority(pub(crate) CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Puppet CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Returns the certificate of a host, with the extension `pp_role` if there is a role.
    pub(crate) fn sign(&self, name: &str, role: Option<&str>) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(role) = role {
            let value = [&[0x0c, u8::try_from(role.len()).unwrap()], role.as_bytes()].concat();
            let oid = [1, 3, 6, 1, 4, 1, 34380, 1, 1, 13];
            params.custom_extensions.push(CustomExtension::from_oid_content(&oid, value));
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Sends a request over TLS, with a certificate or without. Headers end with their line ends.
    pub(crate) fn send(
        &self,
        address: &str,
        own: Option<&Identity>,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<Response, String> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let name = "localhost".try_into().unwrap();
        let mut session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        // The end of the stream may come without a farewell.
        let read = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Err(format!("{read:?}"));
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Response { status, head: head.to_owned(), body: body.to_owned() })
    }
}
