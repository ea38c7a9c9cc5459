//! Client certificates: who they name, and the list of those that may do more than ask for
//! themselves.
//!
//! ```yaml
//! - certname: puppet.example.com
//!   roles: [classify]
//! - extension: pp_auth_role=classifier-admin
//!   roles: [classify, read, write]
//! ```
//!
//! An agent chooses the extensions of its own certificate request, and an authority with automatic signing
//! signs them. Only those of the authorisation arc (1.3.6.1.4.1.34380.1.3) make it refuse, unless it is told
//! otherwise.

use super::roles::{Role, Roles};
use super::tokens::{Fields, TokensError, entries, fault};
use crate::amend::Scope;
use crate::facts::CertificateFacts;

/// The certificates that may do more.
#[derive(Debug, Default)]
pub(crate) struct Allowed(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    who: Who,
    roles: Roles,
    scope: Option<Scope>,
}

#[derive(Debug)]
enum Who {
    Certname(String),
    Extension(String, String),
}

/// What a certificate may do.
#[derive(Debug, Default)]
pub(super) struct May {
    pub(super) roles: Roles,
    pub(super) scope: Option<Scope>,
}

impl Allowed {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, TokensError> {
        let read = |node: &crate::document::Node| {
            let fields = Fields::of(node, &["certname", "extension", "roles", "groups", "keys"])?;
            let who = match (fields.maybe_text("certname"), fields.maybe_text("extension")) {
                (Some(certname), None) => Who::Certname(certname),
                (None, Some(extension)) => match extension.split_once('=') {
                    Some((name, value)) => Who::Extension(name.to_owned(), value.to_owned()),
                    None => return Err(fault(node, "`extension` must be `NAME=VALUE`")),
                },
                _ => return Err(fault(node, "either `certname` or `extension` must be there")),
            };
            Ok(Entry { who, roles: fields.roles()?, scope: fields.scope()? })
        };
        entries(bytes)?.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the extensions that are worth `write` or `operate` though agents can choose them.
    pub(super) fn chosen_by_agents(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|entry| match &entry.who {
            Who::Extension(name, _) if entry.is_powerful() && !is_authorisation(name) => {
                Some(name.as_str())
            }
            _ => None,
        })
    }

    pub(super) fn of(&self, certificate: &CertificateFacts) -> May {
        let mut may = May::default();
        for entry in &self.0 {
            let is_it = match &entry.who {
                Who::Certname(name) => *name == certificate.certname,
                Who::Extension(name, value) => certificate.extensions.get(name) == Some(value),
            };
            if is_it {
                may.roles = may.roles.with(entry.roles);
                may.scope.clone_from(&entry.scope);
            }
        }
        may
    }
}

impl Entry {
    fn is_powerful(&self) -> bool {
        [Role::Write, Role::Operate].into_iter().any(|it| self.roles.has(it))
    }
}

/// Returns whether Puppet's authority signs an extension only where it is told to: `pp_auth_role`,
/// `pp_authorization`, and everything else of their arc.
fn is_authorisation(name: &str) -> bool {
    name == "pp_authorization"
        || name.starts_with("pp_auth_")
        || name.starts_with("1.3.6.1.4.1.34380.1.3.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::roles::Role;

    #[test]
    fn certificates_are_allowed_by_name_or_extension() {
        let allowed = Allowed::parse(
            b"- certname: puppet\n  roles: [classify]\n- extension: pp_role=admin\n  roles: [write]\n",
        )
        .unwrap();
        let named = |name: &str| CertificateFacts {
            certname: name.to_owned(),
            ..CertificateFacts::default()
        };
        let mut certificate = named("puppet");
        assert_eq!(allowed.of(&certificate).roles, Roles::of(&[Role::Classify]));
        certificate.extensions.insert("pp_role".to_owned(), "admin".to_owned());
        let both = Roles::of(&[Role::Classify, Role::Write]);
        assert_eq!(allowed.of(&certificate).roles, both);
        assert_eq!(allowed.of(&named("Puppet")).roles, Roles::default());
    }

    #[test]
    fn an_entry_is_about_one_thing() {
        for text in ["- roles: [read]\n", "- certname: a\n  extension: b=c\n", "- extension: b\n"] {
            assert!(Allowed::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn powerful_extensions_that_agents_choose_are_found() {
        let list = b"- {extension: pp_role=a, roles: [write]}\n- {extension: pp_role=b, roles: [read]}\n\
            - {extension: pp_auth_role=a, roles: [write]}\n- {extension: pp_authorization=a, roles: [operate]}\n\
            - {extension: 1.3.6.1.4.1.34380.1.3.39=a, roles: [operate]}\n- {certname: a, roles: [write]}\n\
            - {extension: 1.3.6.1.4.1.34380.1.1.13=a, roles: [operate]}\n";
        let allowed = Allowed::parse(list).unwrap();
        let found: Vec<&str> = allowed.chosen_by_agents().collect();
        assert_eq!(found, ["pp_role", "1.3.6.1.4.1.34380.1.1.13"]);
    }
}
