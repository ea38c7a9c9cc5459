//! Signing in, and what visitors may do.

use crate::program::{Daemon, GitRepository};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const OWN: &str =
    "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digits = |it: &u8| [it >> 4, it & 15].map(|it| char::from_digit(it.into(), 16).unwrap());
    sha2::Sha256::digest(text).iter().flat_map(digits).collect()
}

/// A daemon with a reader and an operator.
fn closed() -> (GitRepository, tempfile::TempDir, Daemon) {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    let entry = |name: &str, roles: &str| {
        format!("- {{name: {name}, sha256: {}, roles: [{roles}]}}\n", sha256(name))
    };
    let both = entry("reader", "read") + &entry("operator", "read, operate");
    std::fs::write(&tokens, both).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    (repository, directory, daemon)
}

fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// Signs in; returns the cookie.
fn sign_in(daemon: &Daemon, token: &str) -> String {
    let form = form_token(&daemon.get("/login").body);
    let body = format!("token={token}&form_token={form}&next=/nodes");
    let answer = daemon.request_with("POST", "/login", &format!("{FORM}{OWN}"), &body);
    assert_eq!(
        (answer.status, answer.header("Location")),
        (303, Some("/nodes")),
        "{}",
        answer.body
    );
    let cookie = answer.header("Set-Cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age=43200", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
}

#[test]
fn a_visitor_signs_in_with_a_token_until_it_is_taken_away() {
    let (_repository, directory, daemon) = closed();
    let answer = daemon.request_with("GET", "/nodes?q=x", "Accept: text/html\r\n", "");
    assert_eq!(
        (answer.status, answer.header("Location")),
        (303, Some("/login?next=%2Fnodes%3Fq%3Dx"))
    );
    let form = form_token(&daemon.get("/login").body);
    for (token, form, status) in
        [("wrong", &*form, 401), ("reader", "forged", 403), ("", &form, 401)]
    {
        let body = format!("token={token}&form_token={form}");
        let answer = daemon.request_with("POST", "/login", &format!("{FORM}{OWN}"), &body);
        assert_eq!((answer.status, answer.header("Set-Cookie")), (status, None), "{token}");
    }
    let cookie = sign_in(&daemon, "reader");
    let page = daemon.request_with("GET", "/", &cookie, "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("reader") && page.body.contains("Sign out"));
    // Credentials that a proxy passes on leave the session as it is.
    let basic = format!("{cookie}Authorization: Basic dTpw\r\n");
    assert_eq!(daemon.request_with("GET", "/", &basic, "").status, 200);
    let own = format!("{cookie}Authorization: Bearer wrong\r\n");
    assert_eq!(daemon.request_with("GET", "/", &own, "").status, 401);
    // The API takes no cookies.
    assert_eq!(daemon.request_with("GET", "/v1/groups", &cookie, "").status, 401);
    let form = form_token(&page.body);
    let body = format!("form_token={form}");
    let out = daemon.request_with("POST", "/logout", &format!("{FORM}{OWN}{cookie}"), &body);
    assert_eq!(out.status, 303);
    assert_eq!(daemon.request_with("GET", "/", &cookie, "").status, 303);
    let cookie = sign_in(&daemon, "reader");
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(tokens, format!("- {{name: x, sha256: {}, roles: [read]}}\n", sha256("x")))
        .unwrap();
    daemon.signal("HUP");
    daemon.wait_until("the session ends with its token", |it| {
        it.request_with("GET", "/", &cookie, "").status == 303
    });
}

#[test]
fn actions_are_for_operators_and_for_forms_of_the_daemon() {
    let (repository, _directory, daemon) = closed();
    let head = repository.git().head().unwrap().peel_to_commit().unwrap().id().to_string();
    let commit = format!("/commits/{head}");
    let reader = sign_in(&daemon, "reader");
    assert!(!daemon.request_with("GET", &commit, &reader, "").body.contains("/actions/"));
    let operator = sign_in(&daemon, "operator");
    let page = daemon.request_with("GET", &commit, &operator, "").body;
    assert!(page.contains("/actions/pin"));
    let form = form_token(&page);
    let readers = form_token(&daemon.request_with("GET", &commit, &reader, "").body);
    let cross = "Sec-Fetch-Site: cross-site\r\n";
    let other = "Origin: http://evil.example\r\n";
    for (cookie, headers, form, reason, status) in [
        (&reader, OWN, &readers, "x", 403),
        (&operator, OWN, &readers, "x", 403),
        (&operator, cross, &form, "x", 403),
        (&operator, other, &form, "x", 403),
        (&operator, OWN, &form, "", 400),
        (&operator, OWN, &form, "the+role+is+wrong", 303),
    ] {
        let body = format!("form_token={form}&commit={head}&reason={reason}");
        let headers = format!("{FORM}{headers}{cookie}");
        let answer = daemon.request_with("POST", "/actions/pin", &headers, &body);
        assert_eq!(answer.status, status, "{headers} {body}: {}", answer.body);
    }
    let status =
        daemon.request_with("GET", "/controller/status", "X-Authentication: reader\r\n", "");
    assert!(
        status.json()["pinned"].is_string() || status.json()["pinned"].is_object(),
        "{}",
        status.body
    );
    let body = format!("form_token={form}&reason=it+is+mended");
    let answer =
        daemon.request_with("POST", "/actions/resume", &format!("{FORM}{OWN}{operator}"), &body);
    assert_eq!(answer.status, 303, "{}", answer.body);
}

#[test]
fn an_open_daemon_accepts_its_own_forms_alone() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let page = daemon.get("/");
    let form = form_token(&page.body);
    let body = format!("form_token={form}");
    for (headers, body, status) in [
        (OWN, "form_token=forged", 403),
        ("Sec-Fetch-Site: cross-site\r\n", &*body, 403),
        ("Origin: http://evil.example\r\n", &body, 403),
        ("Origin: null\r\n", &body, 403),
        (OWN, &body, 303),
    ] {
        let headers = format!("{FORM}{headers}");
        let answer = daemon.request_with("POST", "/actions/reconcile", &headers, body);
        assert_eq!(answer.status, status, "{headers} {body}: {}", answer.body);
    }
}
