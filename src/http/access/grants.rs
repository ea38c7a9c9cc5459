//! Grants: what a caller may do.
//!
//! A grant is a set of roles, the nodes that it covers and the scope of its writes. A caller can have
//! several: one for each entry that matches the certificate or the user, one for the token. A request requires one
//! grant that allows all of it; grants never add up.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use smallvec::{SmallVec, smallvec};

use super::grant::Grant;
use super::login_ways::LoginWays;
use super::proxy::UserName;
use super::roles::{Role, Roles};
use super::tokens::Token;
use crate::changeset::WriteGrant;
use crate::facts::CertificateFacts;

/// Everything, for callers of an open address and of the unix socket.
static EVERYTHING: LazyLock<Grant> = LazyLock::new(|| Grant::everywhere(Roles::all()));

/// What callers without a token may do where anonymous requests are allowed.
static ANONYMOUS: LazyLock<Grant> =
    LazyLock::new(|| Grant::everywhere(Roles::of(&[Role::Classify, Role::Read])));

/// What an agent may do about its own node: classify it, check it in, and read that check-in.
static OWN_NODE: LazyLock<Grant> =
    LazyLock::new(|| Grant::everywhere(Roles::of(&[Role::Classify, Role::CheckIn, Role::Read])));

/// A grant that a caller has.
#[derive(Clone, Debug)]
pub(super) enum HeldGrant {
    /// One that no file configures. Requests of all threads would count its users otherwise.
    Fixed(&'static Grant),
    Configured(Arc<Grant>),
}

impl Deref for HeldGrant {
    type Target = Grant;

    fn deref(&self) -> &Grant {
        match self {
            Self::Fixed(grant) => grant,
            Self::Configured(grant) => grant,
        }
    }
}

impl PartialEq for HeldGrant {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for HeldGrant {}

/// A grant with its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) holder: Holder,
    pub(super) nodes: Nodes,
    pub(super) grant: HeldGrant,
}

/// The holder of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Every caller.
    Anonymous,
    /// A token.
    Token(Arc<Token>),
    /// A client certificate.
    Certificate(Arc<CertificateFacts>),
    /// A user whom a trusted proxy authenticated.
    User(UserName),
}

/// The nodes that a grant covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
    /// Every node.
    All,
    /// The node that the certificate was signed for.
    Own(Arc<CertificateFacts>),
}

impl Held {
    pub(super) fn for_all(holder: Holder, grant: Arc<Grant>) -> Self {
        Self { holder, nodes: Nodes::All, grant: HeldGrant::Configured(grant) }
    }

    fn fixed(grant: &'static Grant) -> Self {
        Self { holder: Holder::Anonymous, nodes: Nodes::All, grant: HeldGrant::Fixed(grant) }
    }

    /// Returns the grant of everyone at an open address.
    pub(super) fn everything() -> Self {
        Self::fixed(&EVERYTHING)
    }

    /// Returns the grant of those without a token, where they are allowed.
    pub(super) fn anonymous() -> Self {
        Self::fixed(&ANONYMOUS)
    }

    /// Returns the grant of every agent with a certificate.
    pub(super) fn own_node(certificate: &Arc<CertificateFacts>) -> Self {
        Self {
            holder: Holder::Certificate(Arc::clone(certificate)),
            nodes: Nodes::Own(Arc::clone(certificate)),
            grant: HeldGrant::Fixed(&OWN_NODE),
        }
    }

    fn is_for_all(&self, roles: Roles) -> bool {
        self.nodes == Nodes::All && self.grant.roles.has_all(roles)
    }

    fn name(&self) -> Option<&str> {
        match &self.holder {
            Holder::Anonymous => None,
            Holder::Token(token) => Some(&token.name),
            Holder::Certificate(certificate) => Some(&certificate.certname),
            Holder::User(user) => Some(user.as_str()),
        }
    }
}

/// The sender of a request, with its grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct Caller {
    /// The grants of the certificate, then those of the user, then that of the token.
    pub(super) grants: SmallVec<[Held; 1]>,
    /// How it could have authenticated.
    pub(super) ways: LoginWays,
}

/// Whether the facts and trusted data that a request submits about a node are used as sent, and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) enum Submitted {
    /// They are used as sent, and kept.
    Kept,
    /// The facts are used as sent and kept; trusted data is taken from the certificate.
    KeptAsProved(Arc<CertificateFacts>),
    /// They are used as sent for this answer alone.
    AnswerOnly,
}

impl Submitted {
    /// Returns the certificate that trusted data is taken from.
    pub(in crate::http) fn proved(&self) -> Option<&CertificateFacts> {
        match self {
            Self::KeptAsProved(certificate) => Some(certificate),
            Self::Kept | Self::AnswerOnly => None,
        }
    }

    /// Returns whether they are kept for later requests.
    pub(in crate::http) fn is_kept(&self) -> bool {
        *self != Self::AnswerOnly
    }
}

impl Caller {
    /// Returns the caller of an open address or of the unix socket.
    pub(in crate::http) fn unlimited() -> Self {
        Self { grants: smallvec![Held::everything()], ..Self::default() }
    }

    /// Returns the name of the token, else that of the user, else that of the certificate.
    pub(in crate::http) fn name(&self) -> Option<&str> {
        self.grants.iter().rev().find_map(Held::name)
    }

    /// Returns the name to record for an action that requires a role: that of a grant that has it.
    pub(in crate::http) fn actor(&self, role: Role) -> Option<String> {
        let mut able = self.grants.iter().rev().filter(|it| it.grant.roles.has(role));
        able.find_map(Held::name).map(str::to_owned)
    }

    /// Returns whether a grant has a role, for this node if the request names one.
    pub(super) fn may(&self, role: Role, node: Option<&str>) -> bool {
        self.grants.iter().any(|it| {
            it.grant.roles.has(role)
                && match &it.nodes {
                    Nodes::All => true,
                    Nodes::Own(certificate) => node == Some(certificate.certname.as_str()),
                }
        })
    }

    /// Returns whether a grant has a role, for one node at least.
    pub(super) fn may_for_some_node(&self, role: Role) -> bool {
        self.grants.iter().any(|it| it.grant.roles.has(role))
    }

    /// Returns whether one grant allows to read beside what a route requires, for all nodes.
    pub(in crate::http) fn may_read_beside(&self, required: Option<Role>) -> bool {
        let roles: Vec<Role> = required.into_iter().chain([Role::Read]).collect();
        self.grants.iter().any(|it| it.is_for_all(Roles::of(&roles)))
    }

    /// Returns how the data of a classification request about a node is used.
    pub(in crate::http) fn classifies(&self, node: &str) -> Submitted {
        self.submits(node, Roles::of(&[Role::Classify, Role::CheckIn]))
    }

    /// Returns how the facts of an upload about a node are used.
    pub(in crate::http) fn uploads(&self, node: &str) -> Submitted {
        self.submits(node, Roles::of(&[Role::CheckIn]))
    }

    fn submits(&self, node: &str, roles: Roles) -> Submitted {
        if self.grants.iter().any(|it| it.is_for_all(roles)) {
            return Submitted::Kept;
        }
        let own = self.grants.iter().find_map(|it| match &it.nodes {
            Nodes::Own(certificate) if it.grant.roles.has_all(roles) => Some(certificate),
            _ => None,
        });
        match own.filter(|it| it.certname == node) {
            Some(certificate) => Submitted::KeptAsProved(Arc::clone(certificate)),
            None => Submitted::AnswerOnly,
        }
    }

    /// Returns the grants with the role `write`: that of the token, then those of the user, then those of the
    /// certificate.
    pub(in crate::http) fn write_grants(&self) -> Vec<WriteGrant> {
        let all = self.grants.iter().rev();
        let writers = all.filter(|it| it.is_for_all(Roles::of(&[Role::Write])));
        let grant = |it: &Held| WriteGrant {
            actor: it.name().map(str::to_owned),
            scope: it.grant.scope.clone(),
        };
        writers.map(grant).collect()
    }
}
