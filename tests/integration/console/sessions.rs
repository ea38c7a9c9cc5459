//! Sessions of visitors who signed in with a token, also beside a proxy that names users.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::program::{Daemon, Response};
use crate::visitors::{
    ADA, BOB, HTML, OWN, Site, addresses, form_token, listen, read_until, token,
};

/// A daemon with tokens, behind a proxy.
struct Tokens {
    site: Site,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Tokens {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tokens.yaml");
        let entries =
            [("reader", "read"), ("operator", "read, operate"), ("agent", "classify, check-in")];
        let entries: String = entries.iter().map(|(name, roles)| token(name, roles)).collect();
        std::fs::write(&file, entries).unwrap();
        let site = Site::start("127.0.0.1", &["--tokens-file", file.to_str().unwrap()]);
        Self { site, file, _directory: directory }
    }

    fn get(&self, path: &str, headers: &str) -> Response {
        self.site.get(path, &format!("{HTML}{headers}"))
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> Response {
        self.site.send_form(path, &format!("{HTML}{OWN}{headers}"), body)
    }

    /// Sends the form of the page to sign in, with these headers all along.
    fn try_sign_in(&self, token: &str, headers: &str) -> Response {
        let form = form_token(&self.get("/login", headers).body);
        self.post("/login", headers, &format!("token={token}&form_token={form}"))
    }

    /// Signs in; returns the header with the cookie.
    fn sign_in(&self, token: &str, headers: &str) -> String {
        let answer = self.try_sign_in(token, headers);
        assert_eq!(answer.status, 303, "{}", answer.body);
        format!("Cookie: {}\r\n", cookie_of(&answer))
    }
}

fn cookie_of(answer: &Response) -> String {
    answer.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn signing_out_ends_what_the_session_follows() {
    let tokens = Tokens::start();
    let (one, other) = (tokens.sign_in("reader", ""), tokens.sign_in("reader", ""));
    let daemon = &tokens.site.daemon;
    let [(mut events, status), (mut others, _)] = [&one, &other].map(|it| listen(daemon, it));
    assert_eq!(status, 200);
    assert!(read_until(&mut events, "data: ").is_some());
    let form = form_token(&tokens.get("/", &one).body);
    let out = tokens.post("/logout", &one, &format!("form_token={form}"));
    assert_eq!(out.status, 303, "{}", out.body);
    assert_eq!(read_until(&mut events, "no such line"), None);
    // A session of its own of the same token goes on.
    let head = tokens.site.repository.commit("two", &[("groups/b.yaml", "name: B\n")]);
    let fetch = ("POST", "/controller/reconcile", "X-Authentication: operator\r\n");
    assert_eq!(daemon.request_with(fetch.0, fetch.1, fetch.2, "").status, 202);
    assert!(read_until(&mut others, &format!("\"commit\":\"{head}\"")).is_some());
}

#[test]
fn a_faulty_header_of_the_proxy_ends_no_session_and_is_named() {
    let tokens = Tokens::start();
    let cookie = tokens.sign_in("reader", "");
    for faulty in ["X-User: \r\n".to_owned(), format!("{ADA}{BOB}")] {
        let page = tokens.get("/", &format!("{cookie}{faulty}"));
        assert_eq!(page.status, 401, "{faulty}: {:?}", page.header("Location"));
        assert!(page.body.contains("does not name one user"), "{}", page.body);
        assert_eq!(tokens.get("/", &cookie).status, 200, "{faulty}");
        let refused = tokens.try_sign_in("reader", &faulty);
        assert_eq!((refused.status, refused.header("Set-Cookie")), (401, None), "{faulty}");
        assert!(refused.body.contains("does not name one user"), "{}", refused.body);
        // The form was there before the fault.
        let form = form_token(&tokens.get("/login", ADA).body);
        let body = format!("token=reader&form_token={form}");
        let refused = tokens.post("/login", &faulty, &body);
        assert_eq!(refused.status, 401, "{faulty}");
        assert!(refused.body.contains("does not name one user"), "{}", refused.body);
    }
    for (name, status, said) in
        [("unknown", 401, "not known to this daemon"), ("agent", 403, "not have the role `read`")]
    {
        let refused = tokens.try_sign_in(name, "");
        assert_eq!(refused.status, status, "{name}");
        assert!(refused.body.contains(said), "{name}: {}", refused.body);
    }
}

#[test]
fn an_action_of_an_ended_session_leads_to_a_page_that_says_so() {
    let tokens = Tokens::start();
    let cookie = tokens.sign_in("operator", "");
    let form = form_token(&tokens.get("/", &cookie).body);
    let out = tokens.post("/logout", &cookie, &format!("form_token={form}"));
    assert_eq!(out.status, 303, "{}", out.body);
    // Another window shows a page of the session.
    let again = tokens.post("/logout", &cookie, &format!("form_token={form}"));
    assert_eq!((again.status, again.header("Location")), (303, Some("/login")));
    assert!(again.header("Set-Cookie").is_some_and(|it| it.contains("Max-Age=0")));
    let action = format!("form_token={form}&commit=HEAD&reason=x");
    let answer = tokens.post("/actions/pin", &cookie, &action);
    let login = answer.header("Location").unwrap().to_owned();
    assert_eq!((answer.status, &*login), (303, "/login?not_taken=true"));
    let page = tokens.get(&login, &cookie);
    assert!(page.body.contains("The action was not taken"), "{}", page.body);
    let body = format!("token=operator&next=&form_token={}", form_token(&page.body));
    let signed_in = tokens.post("/login", &cookie, &body);
    assert_eq!((signed_in.status, signed_in.header("Location")), (303, Some("/")));
    // A user of the proxy has a page, and is not known to it by the form of the session.
    let refused = tokens.post("/actions/pin", &format!("{ADA}{cookie}"), &action);
    assert_eq!(refused.status, 403);
    for part in ["session ended", "restarted", "session affinity"] {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    let status = "X-Authentication: reader\r\n";
    let status = tokens.site.get("/controller/status", status).json();
    assert!(status["pinned"].is_null(), "{status}");
}

#[test]
fn no_link_of_a_page_needs_what_a_session_does_not_give() {
    let tokens = Tokens::start();
    let agent = "X-Authentication: agent\r\n";
    let daemon = &tokens.site.daemon;
    let classify = ("POST", "/v1/classified/nodes/web1");
    assert_eq!(daemon.request_with(classify.0, classify.1, agent, "{\"fact\": {}}").status, 200);
    let cookie = tokens.sign_in("reader", "");
    daemon.wait_until("the node is listed", |it| {
        it.request_with("GET", "/nodes", &cookie, "").body.contains("web1")
    });
    let mut waiting = ["/", "/commits/HEAD", "/compare/HEAD...HEAD"].map(str::to_owned).to_vec();
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut apart = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        let answer = tokens.get(&path, &cookie);
        let login = answer.header("Location").is_some_and(|it| it.starts_with("/login"));
        assert!(matches!(answer.status, 200 | 303) && !login, "{path}: {}", answer.body);
        if answer.body.contains(", asked with the token") {
            apart.insert(path.split('/').nth(1).unwrap().to_owned());
        }
        let links = addresses(&answer.body, "href").into_iter();
        waiting.extend(links.filter(|it| seen.insert(it.clone())).collect::<Vec<_>>());
    }
    for page in ["nodes", "groups"] {
        assert!(apart.contains(page), "{page}: {seen:?}");
    }
    // A user of the proxy is known to the API as well, and follows links.
    let page = tokens.get("/nodes", ADA).body;
    assert!(addresses(&page, "href").contains("/controller/nodes?limit=1000"), "{page}");
}

#[test]
fn pages_of_refusals_have_a_way_to_sign_in_or_out() {
    let tokens = Tokens::start();
    let cookie = tokens.sign_in("reader", "");
    std::fs::write(&tokens.file, token("reader", "classify, check-in")).unwrap();
    let users = tokens.site.directory.path().join("users.yaml");
    std::fs::write(users, "- {user: ada, roles: [read]}\n").unwrap();
    let daemon = &tokens.site.daemon;
    daemon.signal("HUP");
    daemon.wait_until("the roles are those of the new files", |it| {
        let status = |headers: &str| it.request_with("GET", "/", headers, "").status;
        status(&cookie) == 403 && status(BOB) == 403
    });
    let page = tokens.get("/", BOB).body;
    assert!(page.contains("does not have the role") && page.contains("href=\"/login\""), "{page}");
    let page = tokens.get("/", &cookie).body;
    assert!(page.contains("action=\"/logout\""), "{page}");
    let body = format!("form_token={}", form_token(&page));
    let out = tokens.post("/logout", &cookie, &body);
    assert_eq!(out.status, 303, "{}", out.body);
    assert_eq!(tokens.get("/", &cookie).status, 303);
}

#[test]
fn a_browser_has_one_session_whatever_else_it_sends() {
    let tokens = Tokens::start();
    let old = tokens.sign_in("reader", "");
    let new = tokens.sign_in("operator", &old);
    assert_eq!(tokens.get("/", &old).status, 303);
    assert_eq!(tokens.get("/", &new).status, 200);
    let new = new.trim_start_matches("Cookie: ");
    let both = format!("Cookie: clade_session=old; {new}");
    assert_eq!(tokens.get("/", &both).status, 200);
    for (scheme, is_secure) in [("https,http", true), ("HTTPS", true), ("http, https", false)] {
        let answer = tokens.try_sign_in("reader", &format!("X-Forwarded-Proto: {scheme}\r\n"));
        let cookie = answer.header("Set-Cookie").unwrap();
        assert_eq!(cookie.ends_with("; Secure"), is_secure, "{scheme}: {cookie}");
    }
}

#[test]
fn forms_beside_a_session_are_for_one_user() {
    let tokens = Tokens::start();
    let cookie = tokens.sign_in("operator", ADA);
    let form = form_token(&tokens.get("/", &format!("{ADA}{cookie}")).body);
    let body = format!("form_token={form}");
    for (user, status) in [(BOB, 403), ("", 403), (ADA, 303)] {
        let answer = tokens.post("/actions/reconcile", &format!("{user}{cookie}"), &body);
        assert_eq!(answer.status, status, "{user}: {}", answer.body);
    }
}

#[test]
fn a_proxy_at_another_address_is_named_by_answers_and_log() {
    let site = Site::start("192.0.2.0/24", &[]);
    let said = "comes from an address that is not in `--proxy-auth-from`";
    for (path, headers, status) in
        [("/v1/groups", "", 401), ("/", HTML, 401), ("/login", HTML, 200)]
    {
        let answer = site.get(path, &format!("{headers}{ADA}"));
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body.contains(said), "{path}: {}", answer.body);
        let plain = site.get(path, headers);
        assert!(plain.body.contains("sign in at the proxy"), "{path}: {}", plain.body);
        for body in [&answer.body, &plain.body] {
            for other in ["send a token", "client certificate"] {
                assert!(!body.contains(other), "{path}: {body}");
            }
        }
        assert!(!plain.body.contains(said), "{path}: {}", plain.body);
    }
    let noted = |daemon: &Daemon| {
        let lines = daemon.log_lines();
        lines.iter().filter(|it| it.contains("which is not in --proxy-auth-from")).count()
    };
    site.daemon.wait_until("the header is logged", |it| noted(it) > 0);
    assert_eq!(noted(&site.daemon), 1, "{:?}", site.daemon.log_lines());
}
