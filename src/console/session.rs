//! Sessions of visitors who signed in with a token, and the tokens of forms.
//!
//! A session stands for the token that opened it: each page asks the routes with that token, so a token that is
//! taken out of the file ends its sessions at once. Sessions live in memory; a restart ends them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::base_path::BasePath;
use super::markup::hex;

/// The name of the cookie.
const COOKIE: &str = "clade_session";

/// How long a session lasts.
const LASTS: Duration = Duration::from_hours(12);

/// How many sessions there are at most; the oldest gives way.
const MOST: usize = 4096;

/// How many of them one token has at most: who signs in again and again ends no session of others.
const OF_A_TOKEN: usize = 64;

/// The sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Signs the tokens of forms.
    key: [u8; 32],
    open: Mutex<BTreeMap<String, OpenSession>>,
}

/// A session.
#[derive(Clone)]
struct OpenSession {
    token: String,
    opened: Instant,
}

impl std::fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSession").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// There is no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

fn random() -> Result<[u8; 32], NoRandomness> {
    let mut bytes = [0; 32];
    default_provider().secure_random.fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

impl Sessions {
    /// Returns no sessions. Without randomness, the first form says so.
    pub(super) fn new() -> Result<Self, NoRandomness> {
        Ok(Self { key: random()?, open: Mutex::default() })
    }

    /// Opens a session for a token that the API takes, and returns its id.
    #[expect(clippy::disallowed_methods, reason = "sessions end in time")]
    pub(super) fn open(&self, token: String) -> Result<String, NoRandomness> {
        let id = hex(&random()?);
        let mut open = self.open.lock();
        open.retain(|_, session| session.opened.elapsed() < LASTS);
        let own = open.values().filter(|it| it.token == token).count();
        if own >= OF_A_TOKEN || open.len() >= MOST {
            let may_go = |it: &OpenSession| own < OF_A_TOKEN || it.token == token;
            let all = open.iter().filter(|(_, session)| may_go(session));
            let oldest = all.min_by_key(|(_, session)| session.opened).map(|(id, _)| id.clone());
            oldest.and_then(|it| open.remove(&it));
        }
        open.insert(id.clone(), OpenSession { token, opened: Instant::now() });
        Ok(id)
    }

    /// Returns the token of the session that a request names, with the id of the session.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<(String, String)> {
        let id = id_in(headers)?;
        let open = self.open.lock();
        let session = open.get(id).filter(|it| it.opened.elapsed() < LASTS)?;
        Some((id.to_owned(), session.token.clone()))
    }

    /// Ends the session that a request names.
    pub(super) fn close(&self, headers: &HeaderMap) {
        if let Some(id) = id_in(headers) {
            self.open.lock().remove(id);
        }
    }

    /// Returns what a form must send so that it is one of a page that this visitor got.
    pub(super) fn form_token(&self, visitor: &str) -> String {
        // A key of any length is one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(b"form\0");
        mac.update(visitor.as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    /// Returns whether a form sent what the page had for this visitor.
    pub(super) fn accepts(&self, visitor: &str, sent: &str) -> bool {
        let expected = self.form_token(visitor);
        !expected.is_empty() && bool::from(expected.as_bytes().ct_eq(sent.as_bytes()))
    }
}

fn id_in(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    let mut pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// With TLS: the cookie of a session is sent over nothing else.
    Tls,
    /// Without.
    Plain,
}

/// Writes the cookie of a session.
pub(super) fn cookie(id: &str, base: &BasePath, transport: Transport) -> String {
    let secure = if transport == Transport::Tls { "; Secure" } else { "" };
    let age = LASTS.as_secs();
    format!("{COOKIE}={id}; Path={base}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

/// Writes a cookie that ends the session in the browser.
pub(super) fn no_cookie(base: &BasePath) -> String {
    format!("{COOKIE}=; Path={base}; Max-Age=0; HttpOnly; SameSite=Strict")
}

/// Returns whether a form was sent by a page of this daemon. Browsers say so; other clients say nothing, and have
/// to know the token of the form all the same.
pub(super) fn is_own_form(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    if headers.contains_key("sec-fetch-site") {
        return text("sec-fetch-site") == Some("same-origin");
    }
    if !headers.contains_key(header::ORIGIN) {
        return true;
    }
    let origin = text("origin").and_then(|it| it.parse::<Uri>().ok());
    let authority = origin.as_ref().and_then(|it| it.authority()).map(Authority::as_str);
    authority.is_some() && authority == text("host")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (axum::http::HeaderName::from_static(name), value.parse().unwrap())
        });
        pairs.collect()
    }

    #[test]
    fn a_session_stands_for_its_token_until_it_is_closed() {
        let sessions = Sessions::new().unwrap();
        let id = sessions.open("secret".to_owned()).unwrap();
        let request = headers(&[("cookie", &format!("a=b; clade_session={id}"))]);
        assert_eq!(sessions.of(&request), Some((id, "secret".to_owned())));
        assert_eq!(sessions.of(&headers(&[("cookie", "clade_session=0")])), None);
        sessions.close(&request);
        assert_eq!(sessions.of(&request), None);
        assert!(!format!("{sessions:?}").contains("secret"));
    }

    #[test]
    fn the_oldest_session_gives_way() {
        let sessions = Sessions::new().unwrap();
        let first = sessions.open("t0".to_owned()).unwrap();
        for number in 0..MOST {
            sessions.open(format!("t{}", number / OF_A_TOKEN + 1)).unwrap();
        }
        assert_eq!(sessions.open.lock().len(), MOST);
        assert!(!sessions.open.lock().contains_key(&first));
    }

    #[test]
    fn a_token_ends_no_sessions_of_others() {
        let sessions = Sessions::new().unwrap();
        let other = sessions.open("other".to_owned()).unwrap();
        let first = sessions.open("t".to_owned()).unwrap();
        for _ in 0..MOST {
            sessions.open("t".to_owned()).unwrap();
        }
        assert_eq!(sessions.open.lock().len(), OF_A_TOKEN + 1);
        let is_open = |it: &str| sessions.open.lock().contains_key(it);
        assert!(is_open(&other) && !is_open(&first));
    }

    #[test]
    fn a_form_is_one_of_its_visitor_and_of_this_process() {
        let (sessions, others) = (Sessions::new().unwrap(), Sessions::new().unwrap());
        let token = sessions.form_token("a");
        assert!(sessions.accepts("a", &token));
        assert!(!sessions.accepts("b", &token));
        assert!(!sessions.accepts("a", ""));
        assert!(!others.accepts("a", &token));
    }

    #[test]
    fn forms_of_other_sites_are_not_own() {
        for (pairs, expected) in [
            (&[("sec-fetch-site", "same-origin")] as &[_], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://h"), ("host", "h")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "http://h:1"), ("host", "h:1")], true),
            (&[("origin", "http://evil"), ("host", "h:1")], false),
            (&[("origin", "null"), ("host", "h:1")], false),
            (&[("host", "h:1")], true),
        ] {
            assert_eq!(is_own_form(&headers(pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn cookies_are_for_this_site_alone() {
        let base: BasePath = "/clade".parse().unwrap();
        assert_eq!(
            cookie("x", &base, Transport::Tls),
            "clade_session=x; Path=/clade; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
        );
        assert!(!cookie("x", &base, Transport::Plain).contains("Secure"));
    }
}
