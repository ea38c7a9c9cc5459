//! Visitors whom a proxy names, and the pages of the address for operators.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::program::{Daemon, GitRepository, Response, run};

pub(crate) const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
pub(crate) const OWN: &str =
    "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
const CROSS: &str = "Sec-Fetch-Site: cross-site\r\n";
pub(crate) const ADA: &str = "X-User: ada\r\n";
pub(crate) const BOB: &str = "X-User: bob\r\n";
pub(crate) const HTML: &str = "Accept: text/html\r\n";

const USERS: &str = "- {user: ada, roles: [read, operate]}\n- {user: '*', roles: [read]}\n";

/// A daemon that trusts this machine to name users.
pub(crate) struct Site {
    pub(crate) repository: GitRepository,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) daemon: Daemon,
}

impl Site {
    pub(crate) fn start(from: &str, arguments: &[&str]) -> Self {
        let repository = GitRepository::new();
        repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
        let directory = tempfile::tempdir().unwrap();
        let users = directory.path().join("users.yaml");
        std::fs::write(&users, USERS).unwrap();
        let path = repository.text_path();
        let usual = ["--repo", &path, "--proxy-auth-header", "X-User", "--proxy-auth-from", from];
        let users = ["--proxy-auth-allow", users.to_str().unwrap()];
        let daemon = Daemon::start(&[&usual[..], &users, arguments].concat());
        Self { repository, directory, daemon }
    }

    pub(crate) fn get(&self, path: &str, headers: &str) -> Response {
        self.daemon.request_with("GET", path, headers, "")
    }

    pub(crate) fn send_form(&self, path: &str, headers: &str, body: &str) -> Response {
        self.daemon.request_with("POST", path, &format!("{FORM}{headers}"), body)
    }
}

pub(crate) fn token(name: &str, roles: &str) -> String {
    use sha2::Digest as _;
    let digits = |it: &u8| [it >> 4, it & 15].map(|it| char::from_digit(it.into(), 16).unwrap());
    let hash: String = sha2::Sha256::digest(name).iter().flat_map(digits).collect();
    format!("- {{name: {name}, sha256: {hash}, roles: [{roles}]}}\n")
}

pub(crate) fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[test]
fn the_proxy_names_users_with_the_roles_of_the_file() {
    let site = Site::start("127.0.0.1", &[]);
    let page = site.get("/", &format!("{HTML}{ADA}"));
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.contains("<bdi>ada</bdi>") && page.body.contains("/actions/reconcile"));
    assert!(!site.get("/", BOB).body.contains("/actions/"));
    let long = format!("X-User: {}\r\n", "a".repeat(1025));
    for (method, path, headers, status) in [
        ("GET", "/", HTML, 401),
        ("GET", "/v1/groups", "", 401),
        ("GET", "/v1/groups", "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-User: ada\r\n", 401),
        ("GET", "/v1/groups", BOB, 200),
        ("GET", "/v1/groups", &format!("{BOB}{ADA}"), 401),
        ("GET", "/livez", &format!("{BOB}{ADA}"), 401),
        ("GET", "/v1/groups", "X-User: \r\n", 401),
        ("GET", "/v1/groups", &long, 401),
        ("POST", "/controller/reconcile", ADA, 202),
        ("POST", "/controller/reconcile", BOB, 403),
        ("GET", "/enc/n", ADA, 403),
        // The browser sends what the proxy knows its user by for the page of another site, too.
        ("GET", "/v1/groups", &format!("{ADA}{CROSS}"), 403),
        ("POST", "/controller/reconcile", &format!("{ADA}{CROSS}"), 403),
        ("POST", "/controller/reconcile", &format!("{ADA}{FORM}{OWN}"), 403),
    ] {
        let answer = site.daemon.request_with(method, path, headers, "");
        assert_eq!(answer.status, status, "{method} {path} {headers}: {}", answer.body);
    }
}

#[test]
fn the_header_of_others_is_ignored() {
    let site = Site::start("192.0.2.0/24,2001:db8::/32", &[]);
    for headers in [
        ADA.to_owned(),
        format!("{ADA}X-Forwarded-For: 192.0.2.7\r\n"),
        format!("{ADA}X-Real-IP: 192.0.2.7\r\nForwarded: for=192.0.2.7\r\n"),
    ] {
        for path in ["/", "/v1/groups", "/controller/status"] {
            let answer = site.get(path, &headers);
            assert_eq!(answer.status, 401, "{path} {headers}: {}", answer.body);
        }
        // It does not make a request malformed, either.
        assert_eq!(site.get("/livez", &format!("{headers}{BOB}")).status, 200);
    }
}

#[test]
fn without_a_file_users_of_the_proxy_may_read() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let proxy = ["--proxy-auth-header", "X-User", "--proxy-auth-from", "127.0.0.0/8"];
    let daemon = Daemon::start(&[&["--repo", &path][..], &proxy].concat());
    assert_eq!(daemon.request_with("GET", "/", ADA, "").status, 200);
    assert_eq!(daemon.request_with("POST", "/controller/reconcile", ADA, "").status, 403);
    assert_eq!(daemon.request_with("GET", "/", "", "").status, 401);
}

#[test]
fn forms_of_users_are_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, token("operator", "read, operate")).unwrap();
    let tokens = ["--base-path", "/clade", "--tokens-file", tokens.to_str().unwrap()];
    let site = Site::start("127.0.0.1", &tokens);
    let page = |headers: &str| site.get("/clade/", &format!("{HTML}{headers}")).body;
    let action = page(ADA);
    assert!(action.contains("action=\"/clade/actions/reconcile\""), "{action}");
    let to_sign_in = |headers: &str| form_token(&site.get("/clade/login", headers).body);
    let (adas, bobs, strangers) = (form_token(&action), to_sign_in(BOB), to_sign_in(HTML));
    for (who, headers, form, status) in [
        (ADA, OWN, &*adas, 303),
        (ADA, "", &adas, 303),
        // A visitor who may read has a form, and could have the browser of an operator send it.
        (ADA, OWN, &bobs, 403),
        (ADA, "", &bobs, 403),
        (ADA, "", &strangers, 403),
        (ADA, CROSS, &adas, 403),
        (ADA, "Sec-Fetch-Site: same-site\r\n", &adas, 403),
        (ADA, "Origin: https://evil.example\r\n", &adas, 403),
        (ADA, "Origin: null\r\n", &adas, 403),
        (ADA, OWN, "forged", 403),
        (ADA, OWN, "", 403),
        (BOB, OWN, &bobs, 403),
    ] {
        let body = format!("form_token={form}");
        let answer = site.send_form("/clade/actions/reconcile", &format!("{headers}{who}"), &body);
        assert_eq!(answer.status, status, "{who} {headers} {form}: {}", answer.body);
    }
    let body = format!("form_token={adas}");
    let unknown = site.send_form("/clade/actions/reconcile", OWN, &body);
    let login = unknown.header("Location").unwrap_or_default();
    assert!(login.starts_with("/clade/login"), "{} {login}", unknown.status);
}

#[test]
fn a_session_comes_before_the_header_and_ends_alone() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, token("operator", "read, operate")).unwrap();
    let site = Site::start("127.0.0.1", &["--tokens-file", tokens.to_str().unwrap()]);
    // An unknown token is refused, whomever the proxy names.
    assert_eq!(site.get("/v1/groups", &format!("{ADA}X-Authentication: x\r\n")).status, 401);
    let both = format!("{BOB}X-Authentication: operator\r\n");
    assert_eq!(site.daemon.request_with("POST", "/controller/reconcile", &both, "").status, 202);
    let form = form_token(&site.get("/login", BOB).body);
    let body = format!("token=operator&form_token={form}&next=/");
    let answer = site.send_form("/login", &format!("{OWN}{BOB}"), &body);
    assert_eq!(answer.status, 303, "{}", answer.body);
    let cookie = answer.header("Set-Cookie").unwrap().split(';').next().unwrap().to_owned();
    let visitor = format!("{HTML}{BOB}Cookie: {cookie}\r\n");
    let page = site.get("/", &visitor).body;
    assert!(page.contains("<bdi>operator</bdi>") && page.contains("/actions/reconcile"), "{page}");
    std::fs::write(&tokens, token("another", "read")).unwrap();
    site.daemon.signal("HUP");
    site.daemon.wait_until("the session ends, and the user of the proxy stays", |it| {
        let page = it.request_with("GET", "/", &visitor, "");
        page.status == 200 && page.body.contains("<bdi>bob</bdi>")
    });
}

#[test]
fn a_user_without_a_grant_is_known_and_may_do_nothing() {
    let site = Site::start("127.0.0.1", &[]);
    assert_eq!(site.get("/", BOB).status, 200);
    let users = site.directory.path().join("users.yaml");
    std::fs::write(users, "- {user: ada, roles: [read]}\n").unwrap();
    site.daemon.signal("HUP");
    site.daemon.wait_until("the grant of the operator is gone", |it| {
        it.request_with("POST", "/controller/reconcile", ADA, "").status == 403
    });
    assert!(!site.get("/", ADA).body.contains("/actions/"));
    let refused = site.get("/", &format!("{HTML}{BOB}"));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("`bob` does not have the role `read`"), "{}", refused.body);
}

#[test]
fn settings_of_the_proxy_belong_together() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    for (arguments, part) in [
        (
            &["--proxy-auth-header", "X-User"][..],
            "`--proxy-auth-header` is set without `--proxy-auth-from`",
        ),
        (
            &["--proxy-auth-from", "127.0.0.1"],
            "`--proxy-auth-from` is set without `--proxy-auth-header`",
        ),
        (&["--proxy-auth-header", "Cookie", "--proxy-auth-from", "::1"], "has another meaning"),
        (&["--proxy-auth-header", "X-User", "--proxy-auth-from", "0.0.0.0/0"], "every address"),
        (&["--proxy-auth-header", "X-User", "--proxy-auth-from", "10.0.0.1/8"], "`10.0.0.0/8`"),
    ] {
        let done = run(&[&["serve", "--check", "--repo", &path][..], arguments].concat());
        assert_eq!(done.status, 2, "{arguments:?}");
        assert!(done.stderr.contains(part), "{arguments:?}: {}", done.stderr);
    }
}

/// The addresses that the links and forms of a page lead to.
pub(crate) fn addresses(page: &str, attribute: &str) -> BTreeSet<String> {
    let marker = format!("{attribute}=\"/");
    let found = page.split(marker.as_str()).skip(1).filter_map(|it| it.split(['"', '#']).next());
    found.map(|it| format!("/{}", it.replace("&amp;", "&").replace("&#38;", "&"))).collect()
}

#[test]
fn both_addresses_have_pages_and_no_link_leads_nowhere() {
    let repository = GitRepository::new();
    let head = repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let path = repository.text_path();
    let public = Daemon::start(&["--repo", &path, "--admin-listen", "127.0.0.1:0"]);
    let admin = Daemon::at(&public.admin_address());
    let checked_in = public.request("POST", "/v1/classified/nodes/web1", "{\"fact\": {}}");
    assert_eq!(checked_in.status, 200, "{}", checked_in.body);
    public.wait_until("the node is listed", |it| it.get("/nodes").body.contains("web1"));
    for (daemon, acts) in [(&public, false), (&admin, true)] {
        let mut waiting = vec!["/".to_owned(), format!("/commits/{head}")];
        let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
        let mut actions = BTreeSet::new();
        while let Some(path) = waiting.pop() {
            let answer = daemon.request_with("GET", &path, HTML, "");
            assert!(matches!(answer.status, 200 | 303), "{path}: {}", answer.body);
            actions.extend(addresses(&answer.body, "action"));
            let links = addresses(&answer.body, "href");
            let links = links.into_iter().chain(addresses(&answer.body, "src"));
            let new: Vec<String> = links.filter(|it| seen.insert(it.clone())).collect();
            waiting.extend(new);
        }
        assert!(seen.len() > 15, "{seen:?}");
        let forms: Vec<&String> = actions.iter().filter(|it| it.contains("/actions/")).collect();
        let page = daemon.get("/").body;
        let form = if acts { form_token(&page) } else { String::new() };
        let body = format!("form_token={form}&reason=x");
        let sent = format!("{FORM}{OWN}");
        let done = daemon.request_with("POST", "/actions/reconcile", &sent, &body);
        if acts {
            assert!(!forms.is_empty());
            assert_eq!(done.status, 303, "{}", done.body);
        } else {
            assert!(forms.is_empty(), "{forms:?}");
            assert!(page.contains("--admin-listen"));
            assert_eq!(done.status, 403, "{}", done.body);
            assert!(done.body.contains("--admin-listen"), "{}", done.body);
        }
    }
}

/// Asks for a stream of events; returns the connection after the head of the answer, with its status.
pub(crate) fn listen(daemon: &Daemon, headers: &str) -> (BufReader<TcpStream>, u16) {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(2))).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").unwrap();
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while line.trim_end() != "" {
        line.clear();
        lines.read_line(&mut line).unwrap();
    }
    (lines, status)
}

/// Reads up to a line that has a text; returns it, or nothing at the end of the stream.
pub(crate) fn read_until(lines: &mut BufReader<TcpStream>, part: &str) -> Option<String> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&line);
        if text.contains(part) {
            return Some(text.trim_end().to_owned());
        }
    }
}

#[test]
fn pages_that_stay_open_are_told_of_a_commit() {
    let site = Site::start("127.0.0.1", &["--interval", "100ms"]);
    assert_eq!(listen(&site.daemon, "").1, 401);
    let cross = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: cors\r\n";
    assert_eq!(listen(&site.daemon, &format!("{BOB}{cross}")).1, 403);
    let (mut events, status) = listen(&site.daemon, BOB);
    assert_eq!(status, 200);
    let first = read_until(&mut events, "data: ").unwrap();
    let hostile = "<script>\u{202e}\n\ndata: {}";
    let head = site.repository.commit(hostile, &[("groups/b.yaml", "name: B\n")]);
    let second = read_until(&mut events, &format!("\"commit\":\"{head}\"")).unwrap();
    assert!(first != second && !second.contains("script"), "{second}");
    // A visitor who may not read any more hears nothing more.
    let users = site.directory.path().join("users.yaml");
    std::fs::write(users, "- {user: ada, roles: [read]}\n").unwrap();
    site.daemon.signal("HUP");
    assert_eq!(read_until(&mut events, "no such line"), None);
    let (mut events, status) = listen(&site.daemon, ADA);
    assert_eq!(status, 200);
    assert!(read_until(&mut events, "data: ").is_some());
    // A stream without an end does not keep the daemon from its end.
    let Site { daemon, .. } = site;
    assert_eq!(daemon.terminate(), 0);
    assert_eq!(read_until(&mut events, "no such line"), None);
}

#[test]
fn listeners_are_few() {
    let site = Site::start("127.0.0.1", &[]);
    let all: Vec<_> = (0..64).map(|_| listen(&site.daemon, BOB)).collect();
    assert!(all.iter().all(|(_, status)| *status == 200));
    assert_eq!(listen(&site.daemon, BOB).1, 503);
    assert_eq!(site.get("/", BOB).status, 200);
    drop(all);
    site.daemon.wait_until("a place is free again", |it| listen(it, BOB).1 == 200);
}

#[test]
fn lists_of_nodes_are_sorted_with_their_filter() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    for name in ["b", "c", "a", "<script>"] {
        let path = format!("/v1/classified/nodes/{}", name.replace('<', "%3C").replace('>', "%3E"));
        assert_eq!(daemon.request("POST", &path, "{\"fact\": {}}").status, 200);
        // So that each is seen at another time.
        daemon
            .wait_until("the node is listed", |it| it.get("/controller/nodes").body.contains(name));
    }
    let names = |query: &str| -> Vec<String> {
        let list = daemon.get(&format!("/controller/nodes{query}")).json();
        let nodes = list["nodes"].as_array().unwrap().iter();
        nodes.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    for (query, expected) in [
        ("", ["<script>", "a", "b", "c"]),
        ("?sort=-certname", ["c", "b", "a", "<script>"]),
        ("?sort=last-seen", ["b", "c", "a", "<script>"]),
        ("?sort=-last-seen", ["<script>", "a", "c", "b"]),
        ("?sort=state", ["<script>", "a", "b", "c"]),
    ] {
        assert_eq!(names(query), expected, "{query}");
    }
    assert_eq!(names("?sort=-last-seen&limit=2&offset=1"), ["a", "c"]);
    assert_eq!(daemon.get("/controller/nodes?sort=%3Cscript%3E").status, 400);
    let page = daemon.get("/nodes?q=a&sort=-last-seen").body;
    assert!(page.contains("aria-sort=\"descending\""), "{page}");
    assert!(
        page.contains("?q=a&#38;sort=last-seen") || page.contains("?q=a&amp;sort=last-seen"),
        "{page}"
    );
    let refused = daemon.request_with("GET", "/nodes?sort=%3Cscript%3E", HTML, "");
    assert_eq!(refused.status, 400);
    assert!(!refused.body.contains("<script>"), "{}", refused.body);
}

#[test]
fn the_first_page_says_whether_the_controller_is_well() {
    let repository = GitRepository::new();
    let head = repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let hostile = "<script>alert(1)</script>";
    let path = repository.text_path();
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "0123456789abcdef0123456789abcdef\n").unwrap();
    let secret = secret.path().to_str().unwrap();
    let arguments = ["--repo", &path, "--instance", hostile, "--webhook-secret-file", secret];
    let daemon = Daemon::start(&arguments);
    assert_eq!(daemon.request("POST", "/webhook/github", "{}").status, 401);
    daemon.wait_until("the store was read", |it| {
        it.get("/controller/status").json()["store"]["nodes"].is_u64()
    });
    let status = daemon.get("/controller/status").json();
    assert_eq!(status["replicas"][0]["name"], hostile);
    assert_eq!(status["replicas"][0]["commit"], *head);
    assert_eq!(status["store"]["kind"], "memory");
    let row = &status["webhooks"][0];
    assert_eq!((&row["provider"], &row["result"]), (&"github".into(), &"unauthenticated".into()));
    assert_eq!(row["count"], 1);
    let trends = daemon.get("/controller/trends").json();
    for series in ["nodes_by_commit", "check_ins", "changes"] {
        assert!(trends[series].is_array(), "{trends}");
    }
    let page = daemon.get("/").body;
    for part in ["(this one)", "unauthenticated", "<svg class=\"chart\"", "As a table", "memory"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("data-events=\"/events\""));
}
