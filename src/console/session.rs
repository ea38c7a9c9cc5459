//! Sessions of visitors who signed in with a token, and the tokens of forms.
//!
//! A session stands for the token that opened it: each page asks the routes with that token, so a token that is
//! taken out of the file ends its sessions at once. Sessions live in memory; a restart ends them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Uri, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::base_path::BasePath;
use crate::http::is_same_origin;
use crate::model::hex;

/// The name of the cookie.
const COOKIE: &str = "clade_session";

/// How long a session lasts.
const LASTS: Duration = Duration::from_hours(12);

/// How many sessions there are at most; the oldest gives way.
const MOST: usize = 4096;

/// How many of them one token has at most: who signs in again and again ends no session of others.
const OF_A_TOKEN: usize = 64;

/// How many values of the cookie of one request are tried: a browser sends those of other paths, too.
const TRIED: usize = 8;

/// The id of a session. It is never logged.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SessionId(String);

impl std::fmt::Debug for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionId(…)")
    }
}

/// Who the token of a form is for: a session, whom a proxy or a certificate names, both, or all others together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FormOwner {
    pub(super) session: Option<SessionId>,
    /// Whom a proxy or a certificate names.
    pub(super) sender: Option<String>,
}

/// A form is not from a page that its sender got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The form is not from a page that this daemon gave you in this session. Perhaps the session ended, the daemon restarted, or a \
     balancer without session affinity sent the form to another replica. Load the page again."
)]
pub(super) struct ForeignForm;

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
    pub(super) fn open(&self, token: String) -> Result<SessionId, NoRandomness> {
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
        Ok(SessionId(id))
    }

    /// Returns the first open session that a request names, with its token. Those whose token is not known any more
    /// end.
    pub(super) fn of(
        &self,
        headers: &HeaderMap,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<(SessionId, String)> {
        ids_in(headers).find_map(|id| {
            let token = self.token_of(id)?;
            if is_known(&token) {
                return Some((SessionId(id.to_owned()), token));
            }
            self.open.lock().remove(id);
            None
        })
    }

    fn token_of(&self, id: &str) -> Option<String> {
        let open = self.open.lock();
        let session = open.get(id).filter(|it| it.opened.elapsed() < LASTS)?;
        Some(session.token.clone())
    }

    /// Returns whether a session has not ended.
    pub(super) fn is_open(&self, SessionId(id): &SessionId) -> bool {
        self.token_of(id).is_some()
    }

    /// Ends the sessions that a request names.
    pub(super) fn close(&self, headers: &HeaderMap) {
        let mut open = self.open.lock();
        for id in ids_in(headers) {
            open.remove(id);
        }
    }

    /// Returns what a form must send so that it is one of a page that its owner got.
    pub(super) fn form_token(&self, owner: &FormOwner) -> String {
        // A key of any length is one.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(b"form\0");
        // The id of a session has no zeros.
        mac.update(owner.session.as_ref().map(|it| it.0.as_bytes()).unwrap_or_default());
        mac.update(b"\0");
        mac.update(owner.sender.as_ref().map(String::as_bytes).unwrap_or_default());
        hex(&mac.finalize().into_bytes())
    }

    /// Returns whether a form sent what the page had for this owner.
    fn accepts(&self, owner: &FormOwner, sent: &str) -> bool {
        let expected = self.form_token(owner);
        !expected.is_empty() && bool::from(expected.as_bytes().ct_eq(sent.as_bytes()))
    }

    /// Checks that a form is from a page that its sender got.
    ///
    /// # Errors
    ///
    /// Returns an error if it is from another site, or does not have the token of its sender.
    pub(super) fn check_form(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        owner: &FormOwner,
        sent: &str,
    ) -> Result<(), ForeignForm> {
        // Clients that are not browsers name no origin, and have to know the token all the same.
        let is_own = is_same_origin(uri, headers) && self.accepts(owner, sent);
        if is_own { Ok(()) } else { Err(ForeignForm) }
    }
}

/// Returns the ids of sessions in the cookies of a request: a cookie of another path can come first.
fn ids_in(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value).take(TRIED)
}

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// With TLS: the cookie of a session is sent over nothing else.
    Tls,
    /// Without.
    Plain,
}

impl Transport {
    /// Returns how the client of a request connects: to the outermost proxy, as that says, or to here.
    pub(super) fn of(headers: &HeaderMap, own: Self) -> Self {
        let schemes = headers.get("x-forwarded-proto").and_then(|it| it.to_str().ok());
        // Each proxy adds the scheme of the connection that it accepted.
        let first = schemes.and_then(|it| it.split(',').next()).map(str::trim);
        let is_tls = first.is_some_and(|it| it.eq_ignore_ascii_case("https"));
        if is_tls { Self::Tls } else { own }
    }
}

/// Writes the cookie of a session.
pub(super) fn cookie(SessionId(id): &SessionId, base: &BasePath, transport: Transport) -> String {
    let secure = if transport == Transport::Tls { "; Secure" } else { "" };
    let age = LASTS.as_secs();
    format!("{COOKIE}={id}; Path={base}; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
}

/// Writes a cookie that ends the session in the browser.
pub(super) fn no_cookie(base: &BasePath) -> String {
    format!("{COOKIE}=; Path={base}; Max-Age=0; HttpOnly; SameSite=Strict")
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
        let request = headers(&[("cookie", &format!("a=b; clade_session={}", id.0))]);
        let known = |_: &str| true;
        assert!(sessions.is_open(&id));
        assert_eq!(sessions.of(&request, known), Some((id.clone(), "secret".to_owned())));
        assert_eq!(sessions.of(&headers(&[("cookie", "clade_session=0")]), known), None);
        sessions.close(&request);
        assert_eq!(sessions.of(&request, known), None);
        assert!(!sessions.is_open(&id));
        let shown = format!("{sessions:?} {id:?}");
        assert!(!shown.contains("secret") && !shown.contains(&id.0), "{shown}");
    }

    #[test]
    fn the_first_open_session_of_a_few_cookies_counts() {
        let sessions = Sessions::new().unwrap();
        let gone = sessions.open("gone".to_owned()).unwrap();
        let good = sessions.open("good".to_owned()).unwrap();
        let [of_gone, of_good] = [&gone, &good].map(|it| format!("clade_session={}", it.0));
        let named = |cookies: &str| {
            let found = sessions.of(&headers(&[("cookie", cookies)]), |it| it != "gone");
            found.map(|(_, token)| token)
        };
        assert_eq!(named(&format!("clade_session=old; {of_good}")).as_deref(), Some("good"));
        assert!(sessions.is_open(&gone));
        assert_eq!(named(&format!("{of_gone};x=y;{of_good}")).as_deref(), Some("good"));
        // The token of the other is not known: it ended.
        assert!(!sessions.is_open(&gone) && sessions.is_open(&good));
        let many = "clade_session=old; ".repeat(TRIED);
        assert_eq!(named(&format!("{many}{of_good}")), None);
        sessions.close(&headers(&[("cookie", &format!("{of_gone}; {of_good}"))]));
        assert!(!sessions.is_open(&good));
    }

    #[test]
    fn the_outermost_proxy_says_how_clients_connect() {
        for (schemes, expected) in [
            ("https", Transport::Tls),
            ("HTTPS", Transport::Tls),
            ("https,http", Transport::Tls),
            (" https , https", Transport::Tls),
            ("http, https", Transport::Plain),
            ("http", Transport::Plain),
            ("httpsx", Transport::Plain),
            ("", Transport::Plain),
        ] {
            let sent = headers(&[("x-forwarded-proto", schemes)]);
            assert_eq!(Transport::of(&sent, Transport::Plain), expected, "{schemes}");
            assert_eq!(Transport::of(&sent, Transport::Tls), Transport::Tls, "{schemes}");
        }
        assert_eq!(Transport::of(&HeaderMap::new(), Transport::Plain), Transport::Plain);
    }

    #[test]
    fn the_oldest_session_gives_way() {
        let sessions = Sessions::new().unwrap();
        let first = sessions.open("t0".to_owned()).unwrap();
        for number in 0..MOST {
            sessions.open(format!("t{}", number / OF_A_TOKEN + 1)).unwrap();
        }
        assert_eq!(sessions.open.lock().len(), MOST);
        assert!(!sessions.is_open(&first));
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
        assert!(sessions.is_open(&other) && !sessions.is_open(&first));
    }

    #[test]
    fn a_form_is_one_of_its_owner_and_of_this_process() {
        let (sessions, others) = (Sessions::new().unwrap(), Sessions::new().unwrap());
        let owner = |session: Option<&str>, sender: Option<&str>| FormOwner {
            session: session.map(|it| SessionId(it.to_owned())),
            sender: sender.map(str::to_owned),
        };
        let owners = [
            owner(None, None),
            owner(Some("a"), None),
            owner(Some("b"), None),
            owner(None, Some("a")),
            owner(Some("a"), Some("a")),
            owner(Some("a"), Some("b")),
        ];
        for own in &owners {
            let token = sessions.form_token(own);
            for it in &owners {
                assert_eq!(sessions.accepts(it, &token), it == own, "{it:?} {own:?}");
            }
            assert!(!sessions.accepts(own, ""));
            assert!(!others.accepts(own, &token));
        }
    }

    #[test]
    fn a_form_needs_its_token_and_no_other_origin() {
        let (sessions, owner) = (Sessions::new().unwrap(), FormOwner::default());
        let token = sessions.form_token(&owner);
        let check = |pairs: &[(&'static str, &str)], sent: &str| {
            sessions.check_form(&Uri::from_static("/login"), &headers(pairs), &owner, sent).is_ok()
        };
        let through_proxy =
            [("origin", "https://Clade.example.com"), ("host", "clade.example.com:443")];
        assert!(check(&through_proxy, &token));
        assert!(!check(&through_proxy, "other"));
        assert!(check(&[("host", "h")], &token));
        assert!(!check(&[("origin", "http://evil"), ("host", "h")], &token));
        assert!(!check(&[("sec-fetch-site", "none")], &token));
    }

    #[test]
    fn cookies_are_for_this_site_alone() {
        let base: BasePath = "/clade".parse().unwrap();
        let id = SessionId("x".to_owned());
        assert_eq!(
            cookie(&id, &base, Transport::Tls),
            "clade_session=x; Path=/clade; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
        );
        assert!(!cookie(&id, &base, Transport::Plain).contains("Secure"));
    }
}
