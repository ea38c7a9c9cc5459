//! The list of client certificates that may do more than an agent's: by certname or by extension.
//!
//! ```yaml
//! - certname: puppet.example.com
//!   roles: [classify, check-in]
//! - extension: pp_auth_role=classifier-admin
//!   roles: [classify, read, write]
//! ```
//!
//! An agent chooses the extensions of its own certificate request, and an authority with automatic signing
//! signs them. By default Puppet's authority refuses the extensions of the authorisation arc alone
//! (1.3.6.1.4.1.34380.1.3).

use std::sync::Arc;

use super::grant::Grant;
use super::roles::{Role, Roles};
use super::tokens::{Fields, GrantFault, entries, fault};
use crate::facts::{CertificateFacts, is_authorisation, usual_extension_name};

const UNKNOWN_EXTENSION: &str = "`extension` must name one of Puppet's extensions, such as `pp_auth_role`, \
    or the number of one, which begins with `1.3.6.1.4.1.34380.1`";

/// The listed certificates.
#[derive(Debug, Default)]
pub(crate) struct Allowed(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    certificate: Match,
    grant: Arc<Grant>,
}

/// The certificates that an entry matches.
#[derive(Debug)]
enum Match {
    Certname(String),
    Extension(String, String),
}

impl Match {
    fn matches(&self, certificate: &CertificateFacts) -> bool {
        match self {
            Self::Certname(name) => *name == certificate.certname,
            Self::Extension(name, value) => certificate.extensions.get(name) == Some(value),
        }
    }
}

impl Allowed {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, GrantFault> {
        let read = |node: &crate::document::Node| {
            let fields = Fields::of(node, &["certname", "extension", "roles", "groups", "keys"])?;
            let certificate =
                match (fields.maybe_text("certname")?, fields.maybe_text("extension")?) {
                    (Some(certname), None) => Match::Certname(certname),
                    (None, Some(extension)) => match extension.split_once('=') {
                        Some((name, value)) => match usual_extension_name(name) {
                            Some(name) => Match::Extension(name, value.to_owned()),
                            None => {
                                return Err(fault(fields.value("extension"), UNKNOWN_EXTENSION));
                            }
                        },
                        None => {
                            let message = "`extension` must be `NAME=VALUE`";
                            return Err(fault(fields.value("extension"), message));
                        }
                    },
                    _ => return Err(fault(node, "expected either `certname` or `extension`")),
                };
            Ok(Entry { certificate, grant: Arc::new(fields.grant()?) })
        };
        entries(bytes)?.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the extensions that grant `write` or `operate` though agents can choose them.
    pub(super) fn chosen_by_agents(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|entry| match &entry.certificate {
            Match::Extension(name, _) if entry.is_powerful() && !is_authorisation(name) => {
                Some(name.as_str())
            }
            _ => None,
        })
    }

    /// Returns what entries that allow nothing are about.
    pub(super) fn without_roles(&self) -> impl Iterator<Item = String> {
        let idle = self.0.iter().filter(|it| it.grant.roles == Roles::default());
        idle.map(|it| match &it.certificate {
            Match::Certname(certname) => certname.clone(),
            Match::Extension(name, value) => format!("{name}={value}"),
        })
    }

    /// Returns the roles of each entry.
    pub(super) fn roles(&self) -> impl Iterator<Item = Roles> {
        self.0.iter().map(|it| it.grant.roles)
    }

    /// Returns the grants of a certificate: one for each entry that matches it.
    pub(super) fn of(&self, certificate: &CertificateFacts) -> impl Iterator<Item = &Arc<Grant>> {
        let met = self.0.iter().filter(|it| it.certificate.matches(certificate));
        met.map(|it| &it.grant)
    }
}

impl Entry {
    fn is_powerful(&self) -> bool {
        [Role::Write, Role::Operate].into_iter().any(|it| self.grant.roles.has(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::roles::{Role, Roles};

    #[test]
    fn certificates_are_allowed_by_name_or_extension() {
        let allowed = Allowed::parse(
            b"- certname: puppet\n  roles: [classify]\n- extension: pp_role=admin\n  roles: [write]\n\
            - extension: 1.3.6.1.4.1.34380.1.1.13=admin\n  roles: [read]\n",
        )
        .unwrap();
        let named = |name: &str| CertificateFacts {
            certname: name.to_owned(),
            ..CertificateFacts::default()
        };
        let mut certificate = named("puppet");
        let roles = |certificate: &CertificateFacts| -> Vec<Roles> {
            allowed.of(certificate).map(|it| it.roles).collect()
        };
        let [classify, write, read] =
            [Role::Classify, Role::Write, Role::Read].map(|it| Roles::of(&[it]));
        assert_eq!(roles(&certificate), [classify]);
        certificate.extensions.insert("pp_role".to_owned(), "admin".to_owned());
        assert_eq!(roles(&certificate), [classify, write, read]);
        assert_eq!(roles(&named("Puppet")), []);
    }

    #[test]
    fn an_entry_is_about_one_thing() {
        for text in [
            "- roles: [read]\n",
            "- certname: a\n  extension: b=c\n",
            "- extension: b\n",
            "- extension: pp_auth_rol=a\n",
        ] {
            assert!(Allowed::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn powerful_extensions_that_agents_choose_are_found() {
        let list = b"- {extension: pp_role=a, roles: [write]}\n- {extension: pp_role=b, roles: [read]}\n\
            - {extension: pp_auth_role=a, roles: [write]}\n- {extension: pp_authorization=a, roles: [operate]}\n\
            - {extension: 1.3.6.1.4.1.34380.1.3.39=a, roles: [operate]}\n- {certname: a, roles: [write]}\n\
            - {extension: pp_cli_auth=true, roles: [write]}\n- {extension: 1.3.6.1.4.1.34380.1.3.40=a, roles: [write]}\n\
            - {extension: 1.3.6.1.4.1.34380.1.1.13=a, roles: [operate]}\n";
        let allowed = Allowed::parse(list).unwrap();
        let found: Vec<&str> = allowed.chosen_by_agents().collect();
        assert_eq!(found, ["pp_role", "pp_role"]);
    }
}
