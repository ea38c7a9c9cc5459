//! Trusted data: what the certificate of a node proves.

use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::extensions::{ExtensionNames, extension_text};
use crate::model::{Map, Node, Value};

/// The name and the extensions of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The common name: Puppet's certname.
    pub certname: String,
    /// Puppet's extensions by their names.
    pub extensions: std::collections::BTreeMap<String, String>,
}

impl CertificateFacts {
    /// Reads a certificate in DER; the caller has verified its signature.
    pub fn read(der: &[u8], names: &ExtensionNames) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
        // Names reach logs, commit messages and paths; Puppet signs none with control characters.
        if name.is_empty() || name.chars().any(char::is_control) {
            return None;
        }
        let named = |extension: &x509_parser::prelude::X509Extension<'_>| {
            let short = names.of(&extension.oid.to_id_string())?;
            Some((short, extension_text(extension.value)))
        };
        let extensions = certificate.extensions().iter().filter_map(named).collect();
        Some(Self { certname: name.to_owned(), extensions })
    }
}

/// Returns the trusted data of a node, as Puppet Server has them of an agent that showed its
/// certificate. Without the certificate at hand the name is what is known.
pub fn trusted_data(certname: &str, certificate: Option<CertificateFacts>) -> Map<String, Value> {
    let (hostname, domain) = match certname.split_once('.') {
        Some((hostname, domain)) => (hostname, Value::from(domain)),
        None => (certname, Value::Null),
    };
    let mut trusted = Map::new();
    trusted.insert("authenticated".to_owned(), "remote".into());
    trusted.insert("certname".to_owned(), certname.into());
    trusted.insert("hostname".to_owned(), hostname.into());
    trusted.insert("domain".to_owned(), domain);
    if let Some(certificate) = certificate {
        let extensions: Map<String, Value> =
            certificate.extensions.into_iter().map(|(name, text)| (name, text.into())).collect();
        trusted.insert("extensions".to_owned(), extensions.into());
    }
    trusted
}

/// Returns a node with its trusted data: those that are `given` of it, else those that a request body has that was
/// `sent`. What is given, or nothing, is completed by what Puppet Server has of every agent, as `clade enc` sends it; what
/// was sent stays as it is, as where the daemon is sent the same body.
pub fn with_trusted_data(
    mut node: Node,
    given: Option<Map<String, Value>>,
    sent: Option<Map<String, Value>>,
) -> Node {
    match (given, sent) {
        (None, Some(sent)) => node.trusted = sent,
        (given, _) => {
            node.trusted = given.unwrap_or_default();
            let certname = node.trusted.get("certname").and_then(Value::as_str);
            for (key, value) in trusted_data(certname.unwrap_or(&node.name), None) {
                node.trusted.entry(key).or_insert(value);
            }
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, CustomExtension, DnType, KeyPair};
    use serde_json::json;

    #[test]
    fn a_certificate_proves_name_and_extensions() {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "web1.example.com");
        for (arc, number, text) in [(1, 13, "web"), (2, 7, "r12"), (2, 8, "x")] {
            let oid = [1, 3, 6, 1, 4, 1, 34380, 1, arc, number];
            let length = u8::try_from(text.len()).unwrap();
            let value = [&[0x0c, length], text.as_bytes()].concat();
            params.custom_extensions.push(CustomExtension::from_oid_content(&oid, value));
        }
        let signed = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let names =
            ExtensionNames::read(b"oid_mapping: {1.3.6.1.4.1.34380.1.2.7: {shortname: rack}}\n")
                .unwrap();
        let read = CertificateFacts::read(signed.der(), &names).unwrap();
        assert_eq!(
            Value::from(trusted_data("web1.example.com", Some(read))),
            json!({
                "authenticated": "remote",
                "certname": "web1.example.com",
                "hostname": "web1",
                "domain": "example.com",
                "extensions": {"pp_role": "web", "rack": "r12", "1.3.6.1.4.1.34380.1.2.8": "x"},
            })
        );
        assert_eq!(CertificateFacts::read(b"no certificate", &names), None);
    }

    #[test]
    fn what_is_given_of_trusted_data_stays() {
        let given = json!({"certname": "a.b.c", "hostname": null, "extensions": {"pp_role": "x"}});
        let given = given.as_object().unwrap();
        let of = |given: Option<&Map<String, Value>>, sent: Option<&Map<String, Value>>| {
            let node = Node::named("web1.example.com");
            with_trusted_data(node, given.cloned(), sent.cloned()).trusted
        };
        let sent = json!({"extensions": {}});
        let sent = sent.as_object().unwrap();
        assert_eq!(
            Value::from(of(Some(given), Some(sent))),
            json!({
                "certname": "a.b.c", "hostname": null, "extensions": {"pp_role": "x"},
                "authenticated": "remote", "domain": "b.c",
            })
        );
        assert_eq!(of(None, None), trusted_data("web1.example.com", None));
        assert_eq!(of(None, Some(sent)), *sent);
    }

    #[test]
    fn without_a_certificate_the_name_is_known() {
        assert_eq!(
            Value::from(trusted_data("localhost", None)),
            json!({"authenticated": "remote", "certname": "localhost", "hostname": "localhost", "domain": null})
        );
    }
}
