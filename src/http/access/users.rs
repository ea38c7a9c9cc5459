//! The list of users whom a trusted proxy authenticates, with what they may do.
//!
//! ```yaml
//! - user: ada@example.com
//!   roles: [read, operate]
//! - user: "*"
//!   roles: [read]
//! ```
//!
//! Names of certificates and of tokens mean nothing here: who chooses a name at the proxy must not get what an agent or
//! a pipeline of that name has.

use std::sync::Arc;

use super::grant::Grant;
use super::proxy::UserName;
use super::roles::Roles;
use super::tokens::{Fields, GrantFault, entries, fault};

/// The listed users.
#[derive(Debug, Default)]
pub(crate) struct ProxyUsers(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    user: UserMatch,
    grant: Arc<Grant>,
}

/// The users that an entry is about.
#[derive(Debug)]
enum UserMatch {
    /// Every user that the proxy names.
    Every,
    /// One.
    Named(UserName),
}

impl ProxyUsers {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, GrantFault> {
        let read = |node: &crate::document::Node| {
            let fields = Fields::of(node, &["user", "roles", "groups", "keys"])?;
            let user = match fields.maybe_text("user")?.as_deref() {
                None => return Err(fault(node, "`user` is missing")),
                Some("*") => UserMatch::Every,
                Some(name) => {
                    let name = name.parse();
                    let wrong = |_| fault(fields.value("user"), "`user` must be a name");
                    UserMatch::Named(name.map_err(wrong)?)
                }
            };
            Ok(Entry { user, grant: Arc::new(fields.grant()?) })
        };
        entries(bytes)?.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whom entries that allow nothing are about.
    pub(super) fn without_roles(&self) -> impl Iterator<Item = &str> {
        let idle = self.0.iter().filter(|it| it.grant.roles == Roles::default());
        idle.map(|it| match &it.user {
            UserMatch::Every => "*",
            UserMatch::Named(name) => name.as_str(),
        })
    }

    /// Returns the grants of a user: one for each entry that is about it.
    pub(super) fn of(&self, user: &UserName) -> impl Iterator<Item = &Arc<Grant>> {
        let met = self.0.iter().filter(move |it| match &it.user {
            UserMatch::Every => true,
            UserMatch::Named(name) => name == user,
        });
        met.map(|it| &it.grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::roles::Role;

    #[test]
    fn users_have_the_grants_of_their_entries() {
        let list = b"- user: ada\n  roles: [operate]\n- user: \"*\"\n  roles: [read]\n";
        let users = ProxyUsers::parse(list).unwrap();
        let roles = |name: &str| -> Vec<Roles> {
            users.of(&name.parse().unwrap()).map(|it| it.roles).collect()
        };
        let (read, operate) = (Roles::of(&[Role::Read]), Roles::of(&[Role::Operate]));
        assert_eq!(roles("ada"), [operate, read]);
        assert_eq!(roles("Ada"), [read]);
    }

    #[test]
    fn an_entry_names_its_user() {
        for text in ["- roles: [read]\n", "- user: ''\n", "- certname: a\n", "- user: \"a\\tb\"\n"]
        {
            assert!(ProxyUsers::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
