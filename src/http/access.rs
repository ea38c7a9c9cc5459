//! Who may do what.
//!
//! A request comes with a token, a client certificate, both or neither. What they allow is a set of
//! [`Role`]s; each route needs one. Where nothing is configured, everybody may do everything: the
//! daemon then listens on the loopback interface alone. `--allow-anonymous` lets everybody ask, and no more.

mod certificates;
mod roles;
mod tokens;

use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, Method, header};

pub(crate) use certificates::Allowed;
pub(crate) use roles::{Role, Roles};
pub(crate) use tokens::Tokens;
pub use tokens::TokensError;

use super::error::ApiError;
use crate::amend::Scope;
use crate::config::watched::{Cause, Ending, Reloaded, WatchError, Watched, WatchedFile};
use crate::facts::CertificateFacts;

/// What is configured.
#[derive(Debug, Default)]
pub struct Access {
    tokens: Option<Watched<Tokens, TokensError>>,
    allowed: Option<Watched<Allowed, TokensError>>,
    certificates: bool,
    anonymous: bool,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Caller {
    /// The name of the token or certificate.
    pub name: Option<String>,
    /// What they may do.
    pub roles: Roles,
    /// The node that they may classify whatever their roles: their own.
    pub own_node: Option<String>,
    /// What their certificate proves of that node.
    pub proved: Option<CertificateFacts>,
    /// Below which groups they may write; none is everywhere.
    pub scope: Option<Scope>,
}

/// The files of access cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Those of tokens.
    #[error("the tokens in `{}` cannot be used", .path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TokensError,
    },
    /// Those of certificates.
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
    /// Reads what is configured.
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
        Ok(Self { tokens, allowed, certificates, anonymous })
    }

    /// Returns whether nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && !self.certificates
    }

    /// Loads files that changed. Returns what became of each, by its name; one that cannot be used leaves
    /// what is known.
    pub fn reload(
        &self,
        cause: Cause,
    ) -> Vec<(&'static str, Result<Reloaded, WatchError<TokensError>>)> {
        let tokens = self.tokens.iter().map(|it| ("tokens", it.reload(cause)));
        let allowed = self.allowed.iter().map(|it| ("tls-allow", it.reload(cause)));
        tokens.chain(allowed).collect()
    }

    /// Finds out who asks.
    ///
    /// # Errors
    ///
    /// Returns an error for a token that is none of ours: it is never taken for nobody's.
    pub(super) fn caller(
        &self,
        headers: &HeaderMap,
        certificate: Option<&CertificateFacts>,
    ) -> Result<Caller, ApiError> {
        let mut caller = Caller::default();
        if self.anonymous {
            caller.roles = Roles::of(&[Role::Classify, Role::Read]);
        } else if self.is_open() {
            caller.roles = Roles::all();
        }
        if let Some(certificate) = certificate {
            caller.name = Some(certificate.certname.clone());
            caller.own_node = Some(certificate.certname.clone());
            caller.proved = Some(certificate.clone());
            if let Some(allowed) = &self.allowed {
                let entry = allowed.load().of(certificate);
                caller.roles = caller.roles.with(entry.roles);
                caller.scope = entry.scope;
            }
        }
        if let Some(tokens) = &self.tokens
            && let Some(token) = token_in(headers)
        {
            let tokens = tokens.load();
            let found = tokens.find(token).ok_or_else(ApiError::unauthenticated)?;
            caller.name = Some(found.name.clone());
            caller.roles = caller.roles.with(found.roles);
            caller.scope.clone_from(&found.scope);
        }
        Ok(caller)
    }

    /// Checks that a caller may use a route.
    ///
    /// # Errors
    ///
    /// Returns 401 for nobody and 403 for somebody who may not.
    pub(super) fn check(caller: &Caller, method: &Method, path: &str) -> Result<(), ApiError> {
        let Some(role) = needed(method, path) else { return Ok(()) };
        if caller.roles.has(role) {
            return Ok(());
        }
        let own =
            caller.own_node.as_deref().is_some_and(|own| node_of(path).as_deref() == Some(own));
        if role == Role::Classify && own {
            return Ok(());
        }
        match &caller.name {
            None => Err(ApiError::unauthenticated()),
            Some(name) => Err(ApiError::permission_denied(name, role.as_str())),
        }
    }
}

/// Loads a file of rights, which is a list in YAML.
fn watch<T: 'static>(
    path: &Path,
    parse: fn(&[u8]) -> Result<T, TokensError>,
) -> Result<Watched<T, TokensError>, TokensError> {
    let file = WatchedFile { path: path.to_owned(), ending: Ending::DocumentEnd };
    Watched::open(vec![file], move |contents, _| parse(&contents.concat())).map_err(|error| {
        match error {
            WatchError::Unusable(error) => error,
            WatchError::Unreadable { source, .. } => TokensError::Unreadable(source),
            incomplete @ WatchError::Incomplete { .. } => {
                TokensError::Unreadable(std::io::Error::other(incomplete.to_string()))
            }
        }
    })
}

/// Returns the token of a request, as Puppet Enterprise's clients or everybody else's show it.
fn token_in(headers: &HeaderMap) -> Option<&str> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    let bearer = || {
        let (scheme, token) = text(header::AUTHORIZATION)?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    };
    text(header::HeaderName::from_static("x-authentication")).or_else(bearer)
}

/// Returns the role that a route needs; probes, and what has signatures of its own, need none.
fn needed(method: &Method, path: &str) -> Option<Role> {
    let path = path.strip_prefix("/classifier-api").unwrap_or(path);
    let reads = matches!(*method, Method::GET | Method::HEAD);
    Some(match path {
        "/livez" | "/readyz" | "/openapi.json" => return None,
        _ if path.starts_with("/webhook/") || path.starts_with("/status/v1/") => return None,
        _ if node_of(path).is_some() => Role::Classify,
        "/controller/reconcile" | "/controller/pin" | "/controller/resume" => Role::Operate,
        "/api/hosts/facts" => Role::Classify,
        // They change nothing, whatever their method.
        "/v1/rules/translate" | "/v1/validate/group" => Role::Read,
        _ if reads => Role::Read,
        _ => Role::Write,
    })
}

/// Returns the node that a route classifies.
fn node_of(path: &str) -> Option<String> {
    let path = path.strip_prefix("/classifier-api").unwrap_or(path);
    let rest = ["/v1/classified/nodes/", "/v2/classified/nodes/", "/enc/", "/hiera/", "/node/"]
        .iter()
        .find_map(|start| path.strip_prefix(start))?;
    let name = rest.strip_suffix("/explanation").unwrap_or(rest);
    percent_encoding::percent_decode_str(name).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Reads the list of certificates, and warns of entries that an agent can make its own.
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
    fn every_route_needs_the_role_of_what_it_does() {
        for (method, path, role) in [
            ("GET", "/livez", None),
            ("GET", "/status/v1/simple", None),
            ("POST", "/webhook/github", None),
            ("POST", "/v1/classified/nodes/n", Some(Role::Classify)),
            ("POST", "/classifier-api/v2/classified/nodes/n", Some(Role::Classify)),
            ("POST", "/v1/classified/nodes/n/explanation", Some(Role::Classify)),
            ("GET", "/enc/n", Some(Role::Classify)),
            ("GET", "/node/n", Some(Role::Classify)),
            ("GET", "/v1/groups", Some(Role::Read)),
            ("POST", "/v1/groups", Some(Role::Write)),
            ("DELETE", "/classifier-api/v1/groups/x", Some(Role::Write)),
            ("POST", "/v1/commands/unpin-from-all", Some(Role::Write)),
            ("POST", "/v1/rules/translate", Some(Role::Read)),
            ("POST", "/v1/update-classes", Some(Role::Write)),
            ("POST", "/controller/pin", Some(Role::Operate)),
            ("GET", "/controller/status", Some(Role::Read)),
            ("GET", "/metrics", Some(Role::Read)),
            ("GET", "/", Some(Role::Read)),
        ] {
            let method: Method = method.parse().unwrap();
            assert_eq!(needed(&method, path), role, "{method} {path}");
        }
    }

    #[test]
    fn an_agent_may_ask_for_its_own_node_alone() {
        let access = Access { certificates: true, ..Access::default() };
        let certificate = CertificateFacts {
            certname: "web1.example.com".to_owned(),
            ..CertificateFacts::default()
        };
        let caller = access.caller(&HeaderMap::new(), Some(&certificate)).unwrap();
        for (path, may) in [
            ("/enc/web1.example.com", true),
            ("/v1/classified/nodes/web1.example.com/explanation", true),
            ("/enc/web1%2Eexample.com", true),
            ("/enc/web2.example.com", false),
            ("/v1/groups", false),
        ] {
            assert_eq!(Access::check(&caller, &Method::GET, path).is_ok(), may, "{path}");
        }
        let nobody = access.caller(&HeaderMap::new(), None).unwrap();
        assert!(Access::check(&nobody, &Method::GET, "/enc/web1.example.com").is_err());
        assert!(Access::check(&nobody, &Method::GET, "/readyz").is_ok());
    }

    #[test]
    fn whoever_is_let_in_unknown_may_ask_and_no_more() {
        let nobody = |access: &Access| access.caller(&HeaderMap::new(), None).unwrap().roles;
        let anonymous = Access { anonymous: true, ..Access::default() };
        assert_eq!(nobody(&anonymous), Roles::of(&[Role::Classify, Role::Read]));
        assert_eq!(nobody(&Access::default()), Roles::all());
    }

    #[test]
    fn tokens_are_taken_from_either_header() {
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            token_in(&headers).map(str::to_owned)
        };
        assert_eq!(of("x-authentication", "abc"), Some("abc".to_owned()));
        assert_eq!(of("authorization", "Bearer abc"), Some("abc".to_owned()));
        assert_eq!(of("authorization", "bearer  abc"), Some("abc".to_owned()));
        assert_eq!(of("authorization", "Basic abc"), None);
    }
}
