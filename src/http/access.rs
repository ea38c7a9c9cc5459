//! Authentication and roles.
//!
//! A request comes with a token, a client certificate, both or neither. Each gives the caller
//! [`Grant`]s, and each route requires one grant with its role. Without any authentication configured
//! every caller may do everything: the daemon then listens on the loopback interface alone, and
//! rejects the requests that a web page makes a browser send. With `--allow-anonymous` every caller may
//! classify and read.

mod browser;
mod certificates;
mod grants;
mod query_token;
mod requirement;
mod roles;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, Request, header};

pub use browser::{AllowedHosts, Host};
pub(crate) use certificates::Allowed;
pub(in crate::http) use grants::{Caller, Submitted};
pub(in crate::http) use query_token::take_query_token;
pub(in crate::http) use requirement::{Requirement, denied};
pub(crate) use roles::Role;
pub(crate) use tokens::Tokens;
pub use tokens::TokensError;

use super::error::ApiError;
use crate::config::watched::{
    FileEnd, ReloadCause, Reloaded, WatchError, WatchedFile, WatchedFiles,
};
use crate::facts::CertificateFacts;
use grants::{Grant, Held, Holder};
use query_token::QueryToken;
use roles::Roles;

/// The configured tokens, certificates and hosts.
#[derive(Debug, Default)]
pub struct Access {
    tokens: Option<WatchedFiles<Tokens, TokensError>>,
    allowed: Option<WatchedFiles<Allowed, TokensError>>,
    certificates: bool,
    anonymous: bool,
    hosts: Option<AllowedHosts>,
}

/// A file of tokens or certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The file of tokens.
    #[error("the tokens in `{}` cannot be used", .path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TokensError,
    },
    /// The file of allowed certificates.
    #[error("the allowed certificates in `{}` cannot be used", .path.display())]
    Allowed {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TokensError,
    },
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
            .map(|path| {
                watch(&path, Tokens::parse).map_err(|source| AccessError::Tokens { path, source })
            })
            .transpose()?;
        let allowed = allowed
            .map(|path| {
                watch(&path, allowed_certificates)
                    .map_err(|source| AccessError::Allowed { path, source })
            })
            .transpose()?;
        let access = Self { tokens, allowed, certificates, anonymous, hosts: None };
        access.warn();
        Ok(access)
    }

    /// Rejects requests that name another host.
    #[must_use]
    pub fn for_hosts(self, hosts: AllowedHosts) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    /// Returns whether no authentication is configured.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && !self.certificates
    }

    /// Loads files that changed, and returns the outcome of each by its name. A file that cannot be used
    /// leaves the tokens or certificates as they are.
    pub fn reload(
        &self,
        cause: ReloadCause,
    ) -> Vec<(&'static str, Result<Reloaded, WatchError<TokensError>>)> {
        let tokens = self.tokens.iter().map(|it| ("tokens", it.reload(cause)));
        let allowed = self.allowed.iter().map(|it| ("tls-allow", it.reload(cause)));
        let outcomes: Vec<_> = tokens.chain(allowed).collect();
        if outcomes.iter().any(|(_, it)| matches!(it, Ok(Reloaded::Loaded))) {
            self.warn();
        }
        outcomes
    }

    /// Warns if callers may classify but none may check in: the daemon would silently not keep what Puppet
    /// Server sends.
    fn warn(&self) {
        if self.keeps_nothing() {
            tracing::warn!(
                "entries of --tokens or --tls-allow have the role `classify`, but none has `check-in`: \
                 facts and trusted data sent with a classification are not kept; add `check-in` to the \
                 roles of Puppet Server"
            );
        }
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
    /// Returns 403 for a foreign host or a page of another site, and 401 for an unknown token.
    pub(super) fn identify<B>(
        &self,
        request: &Request<B>,
        certificate: Option<&Arc<CertificateFacts>>,
    ) -> Result<Caller, ApiError> {
        let (uri, headers) = (request.uri(), request.headers());
        if let Some(hosts) = &self.hosts {
            hosts.check(uri, headers)?;
        }
        let token = token_in(headers).or_else(|| QueryToken::of(request.extensions()));
        // A page must know a token, but a browser sends a certificate for any page.
        if self.tokens.is_none() || token.is_none() || certificate.is_some() {
            browser::check_site(request.method(), uri, headers)?;
        }
        self.caller(token, certificate)
    }

    /// Returns the grants of a token and a certificate.
    ///
    /// # Errors
    ///
    /// Returns 401 for an unknown token: its caller is never treated as anonymous.
    fn caller(
        &self,
        token: Option<&[u8]>,
        certificate: Option<&Arc<CertificateFacts>>,
    ) -> Result<Caller, ApiError> {
        let mut grants = Vec::new();
        let anonymous = if self.anonymous {
            Some(Roles::of(&[Role::Classify, Role::Read]))
        } else {
            self.is_open().then(Roles::all)
        };
        if let Some(roles) = anonymous {
            grants.push(Held::for_all(Holder::Anonymous, Arc::new(Grant::everywhere(roles))));
        }
        if let Some(certificate) = certificate {
            grants.push(Held::own_node(certificate));
            if let Some(allowed) = &self.allowed {
                let holder = || Holder::Certificate(Arc::clone(certificate));
                let allowed = allowed.load();
                let met = allowed.of(certificate);
                grants.extend(met.map(|grant| Held::for_all(holder(), Arc::clone(grant))));
            }
        }
        if let (Some(tokens), Some(token)) = (&self.tokens, token) {
            let tokens = tokens.load();
            let found = tokens.find(token).ok_or_else(ApiError::unauthenticated)?;
            let holder = Holder::Token(Arc::clone(&found.name));
            grants.push(Held::for_all(holder, Arc::clone(&found.grant)));
        }
        Ok(Caller { grants })
    }
}

/// Watches a file of grants, a list in YAML.
fn watch<T: 'static>(
    path: &Path,
    parse: fn(&[u8]) -> Result<T, TokensError>,
) -> Result<WatchedFiles<T, TokensError>, TokensError> {
    let file = WatchedFile { path: path.to_owned(), ending: FileEnd::DocumentEnd };
    WatchedFiles::open(vec![file], move |contents, _| parse(&contents.concat())).map_err(|error| {
        match error {
            WatchError::Unusable(error) => error,
            WatchError::Unreadable { source, .. } => TokensError::Unreadable(source),
            incomplete @ WatchError::Incomplete { .. } => {
                TokensError::Unreadable(std::io::Error::other(incomplete.to_string()))
            }
        }
    })
}

/// Returns the token of a request, from the header of Puppet Enterprise's clients or the one of RFC 6750.
fn token_in(headers: &HeaderMap) -> Option<&[u8]> {
    let bearer = || {
        let (scheme, token) = headers.get(header::AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
    };
    let own = headers.get(header::HeaderName::from_static("x-authentication"));
    own.map(HeaderValue::as_bytes).or_else(bearer)
}

/// Reads the list of certificates, and warns of entries that an agent can meet by its own request.
fn allowed_certificates(bytes: &[u8]) -> Result<Allowed, TokensError> {
    let allowed = Allowed::parse(bytes)?;
    for extension in allowed.chosen_by_agents() {
        tracing::warn!(
            extension,
            "tls-allow grants `write` or `operate` by an extension that agents choose in their certificate request: use `pp_auth_role`"
        );
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files to read")]
    fn classification_without_check_in_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let hash = "a".repeat(64);
        let token = |roles: &str| format!("- name: t\n  sha256: {hash}\n  roles: [{roles}]\n");
        let allowed = |roles: &str| format!("- certname: puppet\n  roles: [{roles}]\n");
        for (tokens, certificates, noticed) in [
            (Some("classify"), None, true),
            (Some("classify, check-in"), None, false),
            (None, Some("classify, read"), true),
            (None, Some("read"), false),
            (Some("read"), Some("classify"), true),
            (Some("check-in"), Some("classify"), false),
            (None, None, false),
        ] {
            let tokens_file = tokens.map(|it| file("tokens", &token(it)));
            let allowed_file = certificates.map(|it| file("allowed", &allowed(it)));
            let access = Access::new(tokens_file, true, allowed_file, false).unwrap();
            assert_eq!(access.keeps_nothing(), noticed, "{tokens:?} {certificates:?}");
        }
    }

    fn certificate(certname: &str) -> Arc<CertificateFacts> {
        Arc::new(CertificateFacts { certname: certname.to_owned(), ..CertificateFacts::default() })
    }

    #[test]
    fn an_agent_may_ask_for_its_own_node_alone() {
        let access = Access { certificates: true, ..Access::default() };
        let own = certificate("web1.example.com");
        let caller = access.caller(None, Some(&own)).unwrap();
        for (requirement, node, may) in [
            (Requirement::NodeInPath(Role::Classify), Some("web1.example.com"), true),
            (Requirement::NodeInPath(Role::Read), Some("web1.example.com"), true),
            (Requirement::NodeInPath(Role::Classify), Some("web2.example.com"), false),
            (Requirement::NodeInPath(Role::Classify), None, false),
            (Requirement::NodeInPath(Role::Operate), Some("web1.example.com"), false),
            (Requirement::NodeInBody(Role::CheckIn), None, true),
            (Requirement::NodeInBody(Role::Write), None, false),
            (Requirement::Role(Role::Read), Some("web1.example.com"), false),
            (Requirement::Role(Role::Classify), None, false),
        ] {
            assert_eq!(requirement.check(&caller, node).is_ok(), may, "{requirement:?} {node:?}");
        }
        assert_eq!(caller.classifies("web1.example.com"), Submitted::KeptAsProved(own));
        assert_eq!(caller.classifies("web2.example.com"), Submitted::AnswerOnly);
        let anonymous = access.caller(None, None).unwrap();
        let own = Requirement::NodeInPath(Role::Classify);
        assert!(own.check(&anonymous, Some("web1.example.com")).is_err());
        assert!(Requirement::Probe.check(&anonymous, None).is_ok());
    }

    #[test]
    fn anonymous_callers_classify_and_read_where_that_is_allowed() {
        let may = |access: &Access| -> Vec<Role> {
            let caller = access.caller(None, None).unwrap();
            Role::ALL.into_iter().filter(|role| caller.may(*role, Some("n"))).collect()
        };
        let anonymous = Access { anonymous: true, ..Access::default() };
        assert_eq!(may(&anonymous), [Role::Classify, Role::Read]);
        assert_eq!(may(&Access::default()), Role::ALL);
        let closed = Access { certificates: true, ..Access::default() };
        assert_eq!(may(&closed), []);
    }

    #[test]
    fn an_agent_proves_itself_where_anonymous_callers_may_classify() {
        let access = Access { anonymous: true, certificates: true, ..Access::default() };
        let own = certificate("web1");
        let caller = access.caller(None, Some(&own)).unwrap();
        assert_eq!(caller.classifies("web1"), Submitted::KeptAsProved(own));
        assert_eq!(caller.classifies("web2"), Submitted::AnswerOnly);
        assert!(caller.may(Role::Classify, Some("web2")));
    }

    #[test]
    fn tokens_are_taken_from_either_header() {
        let of = |name: &'static str, value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_bytes(value).unwrap());
            token_in(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(of("x-authentication", b"abc"), Some(b"abc".to_vec()));
        // An unknown token is rejected; a token that is not text must not count as absent.
        assert_eq!(of("x-authentication", b"a\xffc"), Some(b"a\xffc".to_vec()));
        assert_eq!(of("authorization", b"Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(of("authorization", b"bearer  abc"), Some(b"abc".to_vec()));
        assert_eq!(of("authorization", b"Basic abc"), None);
    }
}
