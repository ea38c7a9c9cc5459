//! Who may do what: tokens, client certificates over TLS, the socket, the second address.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use indoc::indoc;
use serde_json::json;

use super::group;
use crate::mtls::{Authority, Identity};
use crate::program::{Daemon, GitRepository};

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", &group("A"))]);
    repository
}

// `hello` and `goodbye`.
const TOKENS: &str = indoc! {"
    - name: agent
      sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
      roles: [classify]
    - name: admin
      sha256: 82e35a63ceba37e9646434c5dd412ea577147f1e4a41ccde1614253187e3dbf9
      roles: [classify, read, operate]
"};

#[test]
fn tokens_have_roles() {
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, TOKENS).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    for (header, method, path, status, kind) in [
        ("", "GET", "/readyz", 200, None),
        ("", "GET", "/status/v1/simple", 200, None),
        ("", "GET", "/v1/groups", 401, Some("user-unauthenticated")),
        ("", "POST", "/v1/classified/nodes/n", 401, Some("user-unauthenticated")),
        // What is open to all is open to those whose token is gone, too.
        ("X-Authentication: wrong\r\n", "GET", "/readyz", 200, None),
        ("X-Authentication: wrong\r\n", "GET", "/openapi.json", 200, None),
        ("X-Authentication: wrong\r\n", "GET", "/status/v1/services", 200, None),
        ("X-Authentication: wrong\r\n", "GET", "/v1/groups", 401, Some("user-unauthenticated")),
        ("X-Authentication: wrong\r\n", "GET", "/nowhere", 401, Some("user-unauthenticated")),
        ("X-Authentication: hello\r\n", "POST", "/v1/classified/nodes/n", 200, None),
        ("Authorization: Bearer hello\r\n", "GET", "/enc/n", 200, None),
        ("X-Authentication: hello\r\n", "GET", "/v1/groups", 403, Some("permission-denied")),
        ("X-Authentication: hello\r\n", "POST", "/controller/pin", 403, Some("permission-denied")),
        ("X-Authentication: goodbye\r\n", "GET", "/v1/groups", 200, None),
        ("X-Authentication: goodbye\r\n", "POST", "/controller/reconcile", 202, None),
        ("X-Authentication: goodbye\r\n", "POST", "/v1/groups", 403, Some("permission-denied")),
        ("X-Authentication: goodbye\r\n", "GET", "/metrics", 200, None),
    ] {
        let answer = daemon.request_with(method, path, header, "");
        let said = answer
            .body
            .starts_with('{')
            .then(|| answer.json()["kind"].as_str().map(str::to_owned))
            .flatten();
        assert_eq!((answer.status, said.as_deref()), (status, kind), "{header:?} {method} {path}");
    }
}

#[test]
fn a_request_has_an_id() {
    let repository = repository();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let given = daemon.request_with("GET", "/livez", "X-Request-Id: abc-1\r\n", "");
    assert_eq!(given.header("X-Request-Id"), Some("abc-1"));
    let made = daemon.get("/livez");
    assert_eq!(made.header("X-Request-Id").map(str::len), Some(32));
    let unfit = daemon.request_with("GET", "/livez", "X-Request-Id: a b\r\n", "");
    assert_eq!(unfit.header("X-Request-Id").map(str::len), Some(32));
}

#[test]
fn a_second_address_has_what_operators_need() {
    let repository = repository();
    let daemon =
        Daemon::start(&["--repo", &repository.text_path(), "--admin-listen", "127.0.0.1:0"]);
    let admin = Daemon::at(&daemon.admin_address());
    for (path, public, operators) in [
        ("/readyz", 200, 200),
        ("/metrics", 404, 200),
        ("/controller/status", 200, 200),
        ("/v1/groups", 200, 404),
    ] {
        let got = (daemon.get(path).status, admin.get(path).status);
        assert_eq!(got, (public, operators), "{path}");
    }
    assert_eq!(daemon.request("POST", "/controller/reconcile", "").status, 404);
    assert_eq!(admin.request("POST", "/controller/reconcile", "").status, 202);
}

#[test]
fn an_operator_at_the_address_of_agents_is_not_told_to_get_another_role() {
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, TOKENS).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--admin-listen",
        "127.0.0.1:0",
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    for (token, path, status) in [
        ("goodbye", "/controller/reconcile", 404),
        ("goodbye", "/controller/pin", 404),
        ("goodbye", "/controller/elsewhere", 403),
        ("hello", "/controller/pin", 403),
    ] {
        let header = format!("X-Authentication: {token}\r\n");
        let answer = daemon.request_with("POST", path, &header, "{}");
        assert_eq!(answer.status, status, "{token} {path}: {}", answer.body);
    }
    let hello = "X-Authentication: hello\r\n";
    for (method, path) in [("POST", "/controller/pin"), ("DELETE", "/controller/nodes/n")] {
        let refused = daemon.request_with(method, path, hello, "{}");
        assert_eq!(refused.status, 403, "{method} {path}");
        assert!(refused.body.contains("`operate`"), "{method} {path}: {}", refused.body);
    }
    let goodbye = "X-Authentication: goodbye\r\n";
    let forgotten = daemon.request_with("DELETE", "/controller/nodes/n", goodbye, "");
    assert_eq!(forgotten.status, 405, "its path is here");
}

#[test]
fn a_unix_socket_answers_every_process_that_may_open_it() {
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("clade.sock");
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, TOKENS).unwrap();
    let arguments = [
        "--repo",
        &repository.text_path(),
        "--socket",
        socket.to_str().unwrap(),
        "--tokens-file",
        tokens.to_str().unwrap(),
    ];
    // A socket that a crash left behind is replaced.
    Daemon::start(&arguments).kill();
    let daemon = Daemon::start(&arguments);
    assert_eq!(daemon.get("/v1/groups").status, 401);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET /v1/groups HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// Asks over TLS, with a certificate or without, and returns the status.
fn ask(
    address: &str,
    authority: &Authority,
    own: Option<&Identity>,
    path: &str,
) -> Result<u16, String> {
    authority.send(address, own, "GET", path, "", "").map(|it| it.status)
}

#[test]
fn client_certificates_say_who_asks() {
    let repository = repository();
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let stranger = Authority::new();
    let write = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let own = authority.sign("localhost", None);
    let arguments = [
        "--repo",
        &repository.text_path(),
        "--tls-cert",
        &write("cert.pem", &own.0),
        "--tls-key",
        &write("key.pem", &own.1),
        "--tls-client-ca",
        &write("ca.pem", &authority.0.pem()),
        "--tls-allow",
        &write(
            "allow.yaml",
            "- certname: puppet.example.com\n  roles: [classify]\n- extension: pp_role=admin\n  roles: [read]\n",
        ),
    ];
    let daemon = Daemon::start(&arguments);
    let agent = authority.sign("web1.example.com", None);
    let puppet = authority.sign("puppet.example.com", None);
    let admin = authority.sign("ada.example.com", Some("admin"));
    let forged = stranger.sign("puppet.example.com", None);
    for (who, path, status) in [
        (None, "/readyz", Ok(200)),
        (None, "/enc/web1.example.com", Ok(401)),
        (Some(&agent), "/enc/web1.example.com", Ok(200)),
        (Some(&agent), "/v1/classified/nodes/web1.example.com", Ok(200)),
        (Some(&agent), "/enc/web2.example.com", Ok(403)),
        (Some(&agent), "/v1/groups", Ok(403)),
        (Some(&puppet), "/enc/web2.example.com", Ok(200)),
        (Some(&puppet), "/v1/groups", Ok(403)),
        (Some(&admin), "/v1/groups", Ok(200)),
        (Some(&forged), "/enc/web2.example.com", Err(())),
    ] {
        let got = ask(&daemon.address, &authority, who, path);
        assert_eq!(got.as_ref().copied().map_err(|_| ()), status, "{path}: {got:?}");
    }
    // A new certificate is shown without a restart.
    let renewed = Authority::new();
    let next = renewed.sign("localhost", None);
    write("key.pem", &next.1);
    write("cert.pem", &next.0);
    daemon.wait_until("the new certificate is shown", |it| {
        ask(&it.address, &renewed, None, "/readyz") == Ok(200)
    });
}

#[test]
fn facts_of_foremans_clients_are_kept() {
    let repository = GitRepository::new();
    let web = "name: Web\nrule: os.family = Debian\nclasses: {apache: {}}\n";
    repository.commit("first", &[("groups/web.yaml", web)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let facts = json!({"name": "web1", "facts": {"os": {"family": "Debian"}, "trusted": {"x": 1}}});
    assert_eq!(daemon.request("POST", "/api/hosts/facts", &facts.to_string()).status, 201);
    let answer = daemon.get("/node/web1?format=yml");
    assert_eq!(answer.header("Content-Type"), Some("text/yaml; charset=utf-8"));
    assert_eq!(
        answer.body,
        "{\"classes\": {\"apache\": {}}, \"parameters\": {}, \"environment\": \"production\"}\n"
    );
    let stored = daemon.get("/v1/nodes/web1?facts=true").json();
    assert_eq!(stored["fact"], json!({"os": {"family": "Debian"}}));
    assert_eq!(daemon.get("/node/web2?format=yml").status, 200);
}

#[test]
fn without_facts_the_name_is_enough_unless_facts_are_required() {
    let repository = GitRepository::new();
    let web = "name: Web\nrule: os.family = Debian\nclasses: {apache: {}}\n";
    repository.commit("first", &[("groups/web.yaml", web)]);
    let facts = tempfile::tempdir().unwrap();
    let file = json!({"name": "web1", "values": {"os": {"family": "Debian"}, "trusted": {"certname": "forged"}}});
    std::fs::write(facts.path().join("web1.json"), file.to_string()).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--facts-dir",
        facts.path().to_str().unwrap(),
        "--enc-facts",
        "required",
    ]);
    assert!(daemon.get("/enc/web1").body.contains("apache"));
    for path in ["/enc/web2", "/node/web2", "/classifier-api/enc/web2", "/hiera/web2"] {
        let missing = daemon.get(path);
        assert_eq!((missing.status, &missing.json()["kind"]), (404, &json!("not-found")), "{path}");
        assert_eq!(missing.json()["details"], path);
    }
    assert_eq!(daemon.get("/enc/..%2Fweb1").status, 404);
}

#[test]
fn facts_of_a_file_keep_the_trusted_data_of_the_node() {
    let repository = GitRepository::new();
    let web = "name: Web\nrule: os.family = Debian and trusted.extensions.pp_role = web\nclasses: {apache: {}}\n";
    repository.commit("first", &[("groups/web.yaml", web)]);
    let facts = tempfile::tempdir().unwrap();
    let file = json!({"name": "web1", "values": {"os": {"family": "Debian"}}});
    std::fs::write(facts.path().join("web1.json"), file.to_string()).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--facts-dir",
        facts.path().to_str().unwrap(),
    ]);
    let asked = json!({"trusted": {"certname": "web1", "extensions": {"pp_role": "web"}}});
    let answer = daemon.request("POST", "/v1/classified/nodes/web1", &asked.to_string());
    assert_eq!(answer.json()["classes"], json!({}));
    assert_eq!(daemon.get("/enc/web1").json()["classes"], json!({"apache": {}}));
}

/// Callers who may pin commits or write one part of the tree learn nothing of the others.
#[test]
fn errors_show_no_groups_to_callers_who_do_not_read() {
    let repository = GitRepository::new();
    let [a, b] = ["58463036-0efa-4365-b367-b5401c0711d3", "68463036-0efa-4365-b367-b5401c0711d4"];
    let (in_scope, beyond) = (format!("name: A\nid: {a}\n"), format!("name: B\nid: {b}\n"));
    let files = [("groups/a.yaml", in_scope.as_str()), ("groups/b.yaml", beyond.as_str())];
    let first = repository.commit("first", &files);
    let bad = repository.commit("bad", &[("groups/c.yaml", "name: C\nparent: Secret\n")]);
    repository.git().reference("refs/heads/main", first.parse().unwrap(), true, "").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    let limited = TOKENS.replace("[classify]", &format!("[operate, write]\n  groups: [{a}]"));
    std::fs::write(&tokens, limited).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--branch",
        "main",
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    let pinned = json!({"commit": bad}).to_string();
    for (token, method, path, body, status, shown) in [
        ("goodbye", "POST", "/controller/pin".to_owned(), pinned.as_str(), 422, Some("Secret")),
        ("hello", "POST", "/controller/pin".to_owned(), &pinned, 422, None),
        ("hello", "DELETE", format!("/v1/groups/{a}"), "", 403, Some("groups/a.yaml")),
        ("hello", "DELETE", format!("/v1/groups/{b}"), "", 403, None),
    ] {
        let header = format!("X-Authentication: {token}\r\nContent-Type: application/json\r\n");
        let answer = daemon.request_with(method, &path, &header, body);
        let what = format!("{token} {method} {path}: {}", answer.body);
        assert_eq!(answer.status, status, "{what}");
        let secrets = ["Secret", "groups/b.yaml", "groups/c.yaml"];
        let is_shown = |it: &&str| answer.body.contains(*it);
        assert_eq!(shown.is_some_and(|it| is_shown(&it)), shown.is_some(), "{what}");
        assert!(shown.is_some() || !secrets.iter().any(is_shown), "{what}");
    }
}

#[test]
fn a_commit_beside_the_branch_is_for_callers_who_read() {
    let repository = repository();
    let before = repository.commit("second", &[("groups/a.yaml", &group("B"))]);
    let head = repository.git().head().unwrap().peel_to_commit().unwrap();
    repository.commit("third", &[("groups/a.yaml", &group("C"))]);
    let third = repository.git().head().unwrap().peel_to_commit().unwrap();
    let author = git2::Signature::now("Eve", "eve@example.com").unwrap();
    let tree = head.parent(0).unwrap().tree().unwrap();
    let pull_request = |name, parent| {
        let reference = Some(name);
        let made = repository.git().commit(reference, &author, &author, "pr", &tree, &[parent]);
        made.unwrap().to_string()
    };
    let side = pull_request("refs/heads/pr", &head);
    let ahead = pull_request("refs/heads/ahead", &third);
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens.yaml");
    std::fs::write(&tokens, TOKENS).unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &repository.text_path(),
        "--tokens-file",
        tokens.to_str().unwrap(),
    ]);
    // `goodbye` reads, `hello` only classifies: a replica may send it back to the commit of an earlier answer.
    for (token, query, named, status) in [
        ("goodbye", "?commit=pr", "", 200),
        ("goodbye", "", side.as_str(), 200),
        ("goodbye", "", &ahead, 200),
        ("hello", "?commit=pr", "", 403),
        ("hello", "?commit=HEAD", "", 403),
        ("hello", "?at=2199-10-03T02:10Z", "", 403),
        ("hello", "", &side, 403),
        // It may be merged by now: another replica would know.
        ("hello", "", &ahead, 503),
        ("hello", "", &before, 200),
        ("hello", "", "0123456789abcdef0123456789abcdef01234567", 503),
    ] {
        let token_header = format!("X-Authentication: {token}\r\n");
        let header = match named {
            "" => token_header,
            commit => format!("{token_header}X-Clade-Commit: {commit}\r\n"),
        };
        for path in ["/v1/classified/nodes/n", "/enc/n", "/hiera/n"] {
            let answer = daemon.request_with("GET", &format!("{path}{query}"), &header, "");
            let is_known = path != "/hiera/n" || answer.status != 404;
            let what = format!("{token} {path}{query} {named}: {}", answer.body);
            assert!(answer.status == status || !is_known && status == 200, "{what}");
        }
    }
    // The commit that answers needs no repository, also where it is named.
    let live = repository.git().head().unwrap().target().unwrap().to_string();
    std::fs::rename(repository.path(), repository.path().with_extension("gone")).unwrap();
    let header = format!("X-Authentication: hello\r\nX-Clade-Commit: {live}\r\n");
    let answer = daemon.request_with("GET", "/v1/classified/nodes/n", &header, "");
    std::fs::rename(repository.path().with_extension("gone"), repository.path()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[test]
fn membership_names_the_commit_that_answers() {
    let repository = repository();
    let first = repository.git().head().unwrap().peel_to_commit().unwrap().id().to_string();
    let second = repository.commit("second", &[("groups/b.yaml", &group("B"))]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let facts = json!({"name": "n", "facts": {"x": 1}}).to_string();
    assert_eq!(daemon.request("POST", "/api/hosts/facts", &facts).status, 201);
    let root = "00000000-0000-4000-8000-000000000000";
    for (query, commit) in [(String::new(), &second), (format!("&commit={first}"), &first)] {
        let path = format!("/controller/nodes/n/membership?group={root}{query}");
        let answer = daemon.get(&path);
        assert_eq!((answer.status, answer.header("X-Clade-Commit")), (200, Some(commit.as_str())));
    }
}

#[test]
fn two_headers_that_name_a_commit_are_refused() {
    let repository = repository();
    let head = repository.git().head().unwrap().peel_to_commit().unwrap().id().to_string();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let header = format!("X-Clade-Commit: {head}\r\n");
    for (headers, status) in [(header.clone(), 200), (header.repeat(2), 400)] {
        let answer = daemon.request_with("GET", "/v1/groups", &headers, "");
        assert_eq!(answer.status, status, "{headers}");
    }
}
