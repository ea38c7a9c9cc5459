//! Authentication and roles.
//!
//! A request comes with a token, a client certificate, the name of a user that a trusted proxy authenticated,
//! several of them or none. Each gives the caller [`Grant`]s, and each route requires one grant with its role. Without any authentication configured
//! every caller may do everything: the daemon then listens on the loopback interface alone, and
//! rejects the requests that a web page makes a browser send. With `--allow-anonymous` every caller may
//! classify and read.

mod browser;
mod certificates;
mod grant;
mod grants;
mod ignored_headers;
mod login_ways;
mod proxy;
mod query_token;
mod requirement;
mod roles;
mod tokens;
mod users;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use smallvec::SmallVec;

use browser::HostCheck;
pub(crate) use browser::is_same_origin;
pub use browser::{AllowedHosts, Host};
pub(crate) use certificates::Allowed;
pub(in crate::http) use grants::{Caller, Submitted};
pub use login_ways::{LoginWays, ProxyWay};
pub use proxy::{ProxyHeader, TrustedNetwork};
pub(in crate::http) use query_token::take_query_token;
pub(in crate::http) use requirement::{Requirement, denied};
pub(crate) use roles::Role;
pub(crate) use tokens::Tokens;
pub use tokens::{GrantFault, TokensError};
pub(crate) use users::ProxyUsers;

use super::error::ApiError;
use crate::config::watched::{
    FileEnd, ReloadCause, Reloaded, WatchError, WatchedFile, WatchedFiles,
};
use crate::facts::CertificateFacts;
use grant::Grant;
use grants::{Held, HeldGrant, Holder};
use proxy::{ProxyClaim, TrustedProxy, UserName};
use query_token::QueryToken;
use roles::Roles;

/// The configured tokens, certificates and hosts.
#[derive(Debug, Default)]
pub struct Access {
    tokens: Option<WatchedFiles<Tokens, TokensError>>,
    allowed: Option<WatchedFiles<Allowed, TokensError>>,
    certificates: bool,
    anonymous: bool,
    hosts: Option<HostCheck>,
    proxy: Option<TrustedProxy>,
    users: Option<WatchedFiles<ProxyUsers, TokensError>>,
}

/// What the connection of a request says of its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::http) struct PeerIdentity<'a> {
    /// The client certificate.
    pub(in crate::http) certificate: Option<&'a Arc<CertificateFacts>>,
    /// The address of the other end; the unix socket has none.
    pub(in crate::http) address: Option<IpAddr>,
}

/// Who sends a request, by its connection and its headers, beside a token.
#[derive(Clone, Debug, Default)]
struct KnownSender<'a> {
    certificate: Option<&'a Arc<CertificateFacts>>,
    proxy: ProxyClaim,
}

/// A file of tokens or certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file of tokens.
    #[error("the tokens cannot be used")]
    Tokens(#[source] TokensError),
    /// The file of allowed certificates.
    #[error("the allowed certificates cannot be used")]
    Allowed(#[source] TokensError),
    /// The file of users.
    #[error("the users cannot be used")]
    Users(#[source] TokensError),
}

/// What becomes of a request with a token that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum UnknownTokens {
    /// It is refused: its caller is never treated as anonymous.
    Refused,
    /// Nothing: what it asks for is open to all.
    Ignored,
}

impl KnownSender<'_> {
    fn is_known(&self) -> bool {
        self.certificate.is_some() || self.user().is_some()
    }

    fn user(&self) -> Option<&UserName> {
        match &self.proxy {
            ProxyClaim::User(user) => Some(user),
            ProxyClaim::Absent | ProxyClaim::Ignored => None,
        }
    }
}

impl Access {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be used.
    pub fn new(
        tokens: Option<PathBuf>,
        certificates: bool,
        allowed: Option<PathBuf>,
        anonymous: bool,
    ) -> Result<Self, AccessError> {
        let tokens = tokens
            .map(|path| watch(path, Tokens::parse).map_err(AccessError::Tokens))
            .transpose()?;
        let allowed = allowed
            .map(|path| watch(path, Allowed::parse).map_err(AccessError::Allowed))
            .transpose()?;
        Ok(Self { tokens, allowed, certificates, anonymous, ..Self::default() })
    }

    /// Trusts a header of requests from some networks to name the user who sends them. The file says what each may
    /// do; without one, each may read.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be used.
    pub fn behind_proxy(
        self,
        header: ProxyHeader,
        networks: Vec<TrustedNetwork>,
        users: Option<PathBuf>,
    ) -> Result<Self, AccessError> {
        let users = users
            .map(|path| watch(path, ProxyUsers::parse).map_err(AccessError::Users))
            .transpose()?;
        Ok(Self { proxy: Some(TrustedProxy::new(header, networks)), users, ..self })
    }

    /// Rejects requests that name another host.
    #[must_use]
    pub fn for_hosts(self, hosts: AllowedHosts) -> Self {
        Self { hosts: Some(HostCheck::new(hosts)), ..self }
    }

    /// Returns whether no authentication is configured.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && !self.certificates && self.proxy.is_none()
    }

    /// Returns the header by which a proxy names users, if one is trusted.
    pub(super) fn proxy_header(&self) -> Option<&HeaderName> {
        self.proxy.as_ref().map(TrustedProxy::header)
    }

    /// Returns whether there are tokens.
    pub(super) fn takes_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Returns whether a token is one of them.
    pub(super) fn knows_token(&self, token: &[u8]) -> bool {
        self.tokens.as_ref().is_some_and(|it| it.load().find(token).is_some())
    }

    /// Returns the ways to authenticate, for the sender of a request.
    pub(super) fn login_ways(&self, headers: &HeaderMap, peer: PeerIdentity<'_>) -> LoginWays {
        let sender = self.sender(headers, peer).unwrap_or_default();
        self.ways_of(&sender.proxy)
    }

    fn ways_of(&self, claim: &ProxyClaim) -> LoginWays {
        let proxy = if self.proxy.is_some() { ProxyWay::On } else { ProxyWay::Off };
        let tokens = self.tokens.is_some();
        let ways = LoginWays { tokens, certificates: self.certificates, proxy };
        if *claim == ProxyClaim::Ignored { ways.without_trust() } else { ways }
    }

    /// Loads files that changed, and returns the outcome of each by its name. A file that cannot be used
    /// leaves the tokens or certificates as they are.
    pub fn reload(
        &self,
        cause: ReloadCause,
    ) -> Vec<(&'static str, Result<Reloaded, WatchError<TokensError>>)> {
        let tokens = self.tokens.iter().map(|it| ("tokens", it.reload(cause)));
        let allowed = self.allowed.iter().map(|it| ("tls-allow", it.reload(cause)));
        let users = self.users.iter().map(|it| ("proxy-auth-allow", it.reload(cause)));
        let outcomes: Vec<_> = tokens.chain(allowed).chain(users).collect();
        if outcomes.iter().any(|(_, it)| matches!(it, Ok(Reloaded::Loaded))) {
            self.warn();
        }
        outcomes
    }

    /// Logs what is suspicious about the files.
    pub fn warn(&self) {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
    }

    /// Says what is suspicious about the files: entries that allow nothing, extensions that an agent can meet by its own
    /// request, and callers that may classify where none may check in: the daemon would silently not keep what Puppet
    /// Server sends.
    pub fn warnings(&self) -> Vec<String> {
        let idle = |flag: &str, entry: &str| {
            format!(
                "the entry `{entry}` of --{flag} has no `roles` and allows nothing: give it roles, or remove it"
            )
        };
        let mut warnings = Vec::new();
        if let Some(tokens) = &self.tokens {
            let tokens = tokens.load();
            let mut names: Vec<&str> = tokens.without_roles().collect();
            names.sort_unstable();
            warnings.extend(names.into_iter().map(|it| idle("tokens-file", it)));
        }
        if let Some(allowed) = &self.allowed {
            let allowed = allowed.load();
            warnings.extend(allowed.without_roles().map(|it| idle("tls-allow", &it)));
            warnings.extend(allowed.chosen_by_agents().map(|extension| {
                format!(
                    "--tls-allow grants `write` or `operate` by the extension `{extension}`, which agents choose in \
                     their certificate request: use `pp_auth_role`"
                )
            }));
        }
        if let Some(users) = &self.users {
            warnings.extend(users.load().without_roles().map(|it| idle("proxy-auth-allow", it)));
        }
        if self.keeps_nothing() {
            warnings.push(
                "entries of --tokens-file or --tls-allow have the role `classify`, but none has `check-in`: \
                 facts and trusted data sent with a classification are not kept; add `check-in` to the \
                 roles of Puppet Server"
                    .to_owned(),
            );
        }
        warnings
    }

    fn keeps_nothing(&self) -> bool {
        let tokens = self.tokens.as_ref().map(WatchedFiles::load);
        let allowed = self.allowed.as_ref().map(WatchedFiles::load);
        let roles = || {
            let tokens = tokens.iter().flat_map(|it| it.roles());
            tokens.chain(allowed.iter().flat_map(|it| it.roles()))
        };
        roles().any(|it| it.has(Role::Classify)) && !roles().any(|it| it.has(Role::CheckIn))
    }

    /// Authenticates a request.
    ///
    /// # Errors
    ///
    /// Returns 403 for a foreign host or a page of another site, and 401 for an unknown token and for a header of a
    /// trusted proxy that does not name one user.
    pub(super) fn identify<B>(
        &self,
        request: &Request<B>,
        peer: PeerIdentity<'_>,
        unknown: UnknownTokens,
    ) -> Result<Caller, ApiError> {
        let (uri, headers) = (request.uri(), request.headers());
        if let Some(hosts) = &self.hosts {
            hosts.check(uri, headers)?;
        }
        let sender = self.sender(headers, peer)?;
        let token = token_in(headers).or_else(|| QueryToken::of(request.extensions()));
        // A page must know a token, but a browser sends a certificate, or what a proxy knows its user by, for any page.
        let by_token_alone = self.tokens.is_some() && token.is_some() && !sender.is_known();
        if !by_token_alone {
            browser::check_site(request.method(), uri, headers)?;
        }
        self.caller(token, &sender, unknown)
    }

    /// Returns who sends a request, apart from its token.
    fn sender<'a>(
        &self,
        headers: &HeaderMap,
        peer: PeerIdentity<'a>,
    ) -> Result<KnownSender<'a>, ApiError> {
        let claim = self.proxy.as_ref().map(|it| it.claim(headers, peer.address)).transpose();
        let proxy = claim.map_err(ApiError::unnamed_user)?.unwrap_or_default();
        Ok(KnownSender { certificate: peer.certificate, proxy })
    }

    /// Returns a text that is different for each of those who are known without a token, for the forms of pages.
    ///
    /// # Errors
    ///
    /// Returns 401 for a header of a trusted proxy that does not name one user.
    pub(super) fn known_sender(
        &self,
        headers: &HeaderMap,
        peer: PeerIdentity<'_>,
    ) -> Result<Option<String>, ApiError> {
        let sender = self.sender(headers, peer)?;
        let user = sender.user().map(|it| format!("user {}", it.as_str()));
        let certificate = || Some(format!("certificate {}", sender.certificate?.certname));
        Ok(user.or_else(certificate))
    }

    /// Returns the grants of a sender and of its token.
    ///
    /// # Errors
    ///
    /// Returns 401 for an unknown token that is refused.
    fn caller(
        &self,
        token: Option<&[u8]>,
        sender: &KnownSender<'_>,
        unknown: UnknownTokens,
    ) -> Result<Caller, ApiError> {
        let mut grants = SmallVec::new();
        if self.anonymous {
            grants.push(Held::anonymous());
        } else if self.is_open() {
            grants.push(Held::everything());
        }
        if let Some(certificate) = sender.certificate {
            grants.push(Held::own_node(certificate));
            if let Some(allowed) = &self.allowed {
                let holder = || Holder::Certificate(Arc::clone(certificate));
                let allowed = allowed.load();
                let met = allowed.of(certificate);
                grants.extend(met.map(|grant| Held::for_all(holder(), Arc::clone(grant))));
            }
        }
        if let Some(user) = sender.user() {
            grants.extend(self.grants_of_user(user));
        }
        if let (Some(tokens), Some(token)) = (&self.tokens, token) {
            let tokens = tokens.load();
            match tokens.find(token) {
                Some(found) => {
                    let holder = Holder::Token(Arc::clone(found));
                    grants.push(Held::for_all(holder, Arc::clone(&found.grant)));
                }
                None if unknown == UnknownTokens::Ignored => {}
                None => return Err(ApiError::unknown_token()),
            }
        }
        Ok(Caller { grants, ways: self.ways_of(&sender.proxy) })
    }

    /// Returns whether a caller, who came a while ago, still has all its grants with a role. Files may have been loaded since.
    pub(super) fn still_gives(&self, caller: &Caller, role: Role) -> bool {
        caller.grants.iter().filter(|it| it.grant.roles.has(role)).all(|it| self.still_has(it))
    }

    fn still_has(&self, held: &Held) -> bool {
        let HeldGrant::Configured(grant) = &held.grant else { return true };
        match &held.holder {
            Holder::Anonymous => true,
            Holder::Token(token) => self.tokens.as_ref().is_some_and(|it| it.load().has(token)),
            Holder::Certificate(certificate) => self
                .allowed
                .as_ref()
                .is_some_and(|it| it.load().of(certificate).any(|it| it == grant)),
            Holder::User(user) => {
                self.users.as_ref().is_none_or(|it| it.load().of(user).any(|it| it == grant))
            }
        }
    }

    /// Returns the grants of a user: those of the file, else the role `read`.
    fn grants_of_user(&self, user: &UserName) -> Vec<Held> {
        let held = |grant| Held::for_all(Holder::User(user.clone()), grant);
        // A user without an entry is known, and may do nothing.
        let known = held(Arc::default());
        let Some(users) = &self.users else {
            return vec![held(Arc::new(Grant::everywhere(Roles::of(&[Role::Read]))))];
        };
        let users = users.load();
        let met = users.of(user).map(|grant| held(Arc::clone(grant)));
        [known].into_iter().chain(met).collect()
    }
}

/// Watches a file of grants, a list in YAML.
fn watch<T: 'static>(
    path: PathBuf,
    parse: fn(&[u8]) -> Result<T, GrantFault>,
) -> Result<WatchedFiles<T, TokensError>, TokensError> {
    let file = WatchedFile { path: path.clone(), ending: FileEnd::DocumentEnd };
    let parsed = {
        let path = path.clone();
        move |contents: &[Vec<u8>]| {
            let malformed = |fault| TokensError::Malformed { path: path.clone(), fault };
            parse(&contents.concat()).map_err(malformed)
        }
    };
    WatchedFiles::open(vec![file], parsed).map_err(|error| match error {
        WatchError::Unusable(error) => error,
        WatchError::Unreadable { source, .. } => TokensError::Unreadable { path, source },
        incomplete @ (WatchError::Incomplete { .. } | WatchError::Unclosed { .. }) => {
            let source = std::io::Error::other(incomplete.to_string());
            TokensError::Unreadable { path, source }
        }
    })
}

/// Returns whether a request brings a token; other credentials in `Authorization` are a proxy's.
pub(super) fn has_token(headers: &HeaderMap) -> bool {
    token_in(headers).is_some()
}

/// Returns the token of a request, from the header of Puppet Enterprise's clients or the one of RFC 6750.
fn token_in(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = || {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
    };
    let own = headers.get(HeaderName::from_static("x-authentication"));
    own.map(HeaderValue::as_bytes).or_else(bearer)
}

#[cfg(test)]
mod tests;
