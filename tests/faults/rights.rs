//! No caller exceeds its grants.

mod certificates;
mod pages;

use std::fmt::Write as _;

use indoc::formatdoc;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::program::{Daemon, GitRepository, Response};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "rights::unknown-token",
        promise: "an unknown token gets 401 on every route that needs a role",
        injection: "a request with a token that is not in the file",
        speed: Speed::Fast,
        run: unknown_token,
    },
    Fault {
        name: "rights::keys-without-groups",
        promise: "a token with `keys` edits those keys in every group and nothing else",
        injection: "edits of other keys, and groups and environments made and deleted, by a token with `keys: [pinned]` and no `groups`",
        speed: Speed::Fast,
        run: keys_without_groups,
    },
    Fault {
        name: "rights::key-hidden-behind-another",
        promise: "each key that a write changes is checked",
        injection: "one write of `rule`, pins and `classes` by a token with `keys: [rule]`",
        speed: Speed::Fast,
        run: key_hidden_behind_another,
    },
    Fault {
        name: "rights::repeated-write",
        promise: "a repeated write gets the first answer only for a caller with the same rights",
        injection: "a daemon killed before it answers a write; the same write by a token of the same name, limited meanwhile",
        speed: Speed::Fast,
        run: repeated_write,
    },
    Fault {
        name: "rights::forged-check-in",
        promise: "without the role `check-in` the daemon keeps nothing of a request",
        injection: "forged facts and trusted data from anonymous callers and a token with `classify`, by every route that takes them",
        speed: Speed::Fast,
        run: forged_check_in,
    },
    certificates::SEVERAL_ENTRIES,
    certificates::MATRIX,
    certificates::LYING_AGENT,
    pages::DNS_REBINDING,
    pages::CROSS_SITE,
    pages::TOKEN_IN_URL,
];

const ROOT: &str = "00000000-0000-4000-8000-000000000000";
const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const B: &str = "aaaaaaaa-0000-4000-8000-00000000000b";

/// A repository with two groups, which a token may be limited to.
fn repository() -> GitRepository {
    let repository = GitRepository::new();
    let groups = formatdoc!(
        "
            name: A
            id: {A}
            rule: name = a
            classes: {{ntp: }}
            ---
            name: B
            id: {B}
            rule: trusted.extensions.pp_role = db
            classes: {{db: }}
        "
    );
    repository.commit("first", &[("groups/all.yaml", &groups)]);
    repository
}

/// Returns a tokens file: tokens with the keys of their entries. Names do not show the token.
pub(crate) fn tokens(entries: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (number, (token, keys)) in entries.iter().enumerate() {
        let hash = Sha256::digest(token.as_bytes());
        let hash = hash.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        writeln!(text, "- {{name: token {number}, sha256: {hash}, {keys}}}").unwrap();
    }
    text
}

/// Starts a daemon that writes to the repository and has some tokens.
fn daemon(repository: &GitRepository, entries: &[(&str, &str)]) -> Daemon {
    let file = repository.path().join(".git/tokens.yaml");
    std::fs::write(&file, tokens(entries)).unwrap();
    let (path, file) = (repository.text_path(), file.to_str().unwrap().to_owned());
    Daemon::start(&["--repo", &path, "--writes", "commit", "--tokens-file", &file])
}

fn send(daemon: &Daemon, token: &str, method: &str, path: &str, body: &str) -> Response {
    daemon.request_with(method, path, &format!("X-Authentication: {token}\r\n"), body)
}

fn group(id: &str) -> String {
    format!("/v1/groups/{id}")
}

fn unknown_token() -> Seen {
    let repository = repository();
    let daemon = daemon(&repository, &[]);
    let mut routes = 0;
    for (method, path) in [
        ("GET", "/v1/groups"),
        ("POST", "/v1/classified/nodes/n"),
        ("GET", "/enc/n"),
        ("GET", "/hiera/n"),
        ("POST", "/api/hosts/facts"),
        ("POST", "/v1/groups"),
        ("POST", "/controller/pin"),
        ("GET", "/controller/status"),
        ("GET", "/metrics"),
    ] {
        for header in [
            "X-Authentication: guess",
            "X-Authentication: gu\u{ff}ss",
            "Authorization: Bearer guess",
        ] {
            let answer = daemon.request_with(method, path, &format!("{header}\r\n"), "");
            assert_eq!(answer.status, 401, "{method} {path} {header} {}", answer.body);
        }
        let answer = daemon.request(method, &format!("{path}?token=guess"), "");
        assert_eq!(answer.status, 401, "{method} {path} {}", answer.body);
        routes += 1;
    }
    Seen::Held(format!("401 on {routes} routes, each with four ways to show a token"))
}

fn keys_without_groups() -> Seen {
    let repository = repository();
    let daemon = daemon(&repository, &[("pins", "roles: [read, write], keys: [pinned]")]);
    let new = json!({"name": "C", "parent": ROOT, "classes": {}}).to_string();
    let nodes = json!({"nodes": ["n"]}).to_string();
    let hierarchy =
        daemon.request_with("GET", "/v1/groups", "X-Authentication: pins\r\n", "").json();
    let mut less = hierarchy.clone();
    less.as_array_mut().unwrap().retain(|it| it["name"] != "B");
    let mut refused = 0;
    for (method, path, body, status) in [
        ("POST", group(A), json!({"classes": {"evil": {}}}).to_string(), 403),
        ("POST", group(A), json!({"rule": ["~", "name", "."]}).to_string(), 403),
        ("POST", group(A), json!({"parent": B}).to_string(), 403),
        ("POST", group(A), json!({"environment": "test"}).to_string(), 403),
        ("POST", group(ROOT), json!({"variables": {"x": 1}}).to_string(), 403),
        ("DELETE", group(B), String::new(), 403),
        ("POST", "/v1/groups".to_owned(), new.clone(), 403),
        ("PUT", group("aaaaaaaa-0000-4000-8000-00000000000c"), new, 403),
        ("POST", "/v1/import-hierarchy".to_owned(), less.to_string(), 403),
        ("PUT", "/v1/environments/fresh".to_owned(), String::new(), 403),
        ("POST", format!("{}/pin", group(B)), nodes.clone(), 204),
        ("POST", "/v1/commands/unpin-from-all".to_owned(), nodes, 200),
    ] {
        let answer = send(&daemon, "pins", method, &path, &body);
        assert_eq!(answer.status, status, "{method} {path} {body} {}", answer.body);
        if status == 403 {
            assert_eq!(answer.json()["kind"], "permission-denied");
            refused += 1;
        }
    }
    Seen::Held(format!("{refused} changes refused with 403; pin and unpin went through"))
}

fn key_hidden_behind_another() -> Seen {
    let repository = repository();
    let daemon = daemon(&repository, &[("rules", "roles: [read, write], keys: [rule]")]);
    let rule = json!(["or", ["=", "name", "b"], ["=", "name", "c"]]);
    let sneaky = json!({"rule": rule, "classes": {"evil": {}}, "variables": {"x": 1}});
    let answer = send(&daemon, "rules", "POST", &group(A), &sneaky.to_string());
    assert_eq!(answer.status, 403, "{}", answer.body);
    let honest = json!({"rule": rule}).to_string();
    assert_eq!(send(&daemon, "rules", "POST", &group(A), &honest).status, 200);
    Seen::Held("403 for the write with `classes`, 200 for the rule alone".to_owned())
}

fn repeated_write() -> Seen {
    let directory = tempfile::tempdir().unwrap();
    let first = repository();
    let hub = directory.path().join("hub.git");
    git2::build::RepoBuilder::new().bare(true).clone(&first.text_path(), &hub).unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (reached, go, list) = (file("reached"), file("go"), file("tokens.yaml"));
    if std::process::Command::new("git").arg("--version").output().is_err() {
        return Seen::Skipped("git");
    }
    hook(
        &hub.join("hooks/post-receive"),
        &format!(
            "[ -e {go} ] && exit 0\ntouch {reached}\nn=0\nwhile [ ! -e {go} ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done"
        ),
    );
    let start = |entry: &str| {
        std::fs::write(&list, tokens(&[("ci", entry)])).unwrap();
        let (hub, data) = (hub.to_str().unwrap(), file("data"));
        let arguments = ["--repo", hub, "--data-dir", &data, "--tokens-file", &list];
        Daemon::start(&[&arguments[..], &["--writes", "commit"]].concat())
    };
    let daemon = start("roles: [read, write]");
    let body = json!({"name": "D", "parent": ROOT, "classes": {}}).to_string();
    let client = std::thread::spawn({
        let (daemon, body) = (Daemon::at(&daemon.address), body.clone());
        move || std::panic::catch_unwind(|| send(&daemon, "ci", "POST", "/v1/groups", &body).status)
    });
    daemon.wait_until("the push is under way", |_| std::path::Path::new(&reached).exists());
    daemon.kill();
    let told = client.join().unwrap();
    assert!(told.is_err(), "the client was answered {told:?}");
    std::fs::write(&go, "").unwrap();
    let is_followed = |it: &Daemon| send(it, "ci", "GET", "/v1/groups", "").body.contains(r#""D""#);
    let limited = start("roles: [read, write], keys: [pinned]");
    limited.wait_until("the group is followed", is_followed);
    let other = send(&limited, "ci", "POST", "/v1/groups", &body);
    assert!(matches!(other.status, 403 | 422), "{} {}", other.status, other.body);
    limited.kill();
    let restored = start("roles: [read, write]");
    restored.wait_until("the group is followed", is_followed);
    let again = send(&restored, "ci", "POST", "/v1/groups", &body);
    assert_eq!(again.status, 303, "{}", again.body);
    Seen::Held(format!("{} for the limited token, 303 for the first one", other.status))
}

fn hook(path: &std::path::Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What a forger says of a node.
const FORGED: &str = r#"{"fact": {"os": {"family": "Debian"}}, "trusted": {"certname": "db1", "extensions": {"pp_role": "db"}}}"#;

fn forged_check_in() -> Seen {
    let repository = repository();
    let routes = [
        "/enc/db1",
        "/v1/classified/nodes/db1",
        "/v2/classified/nodes/db1",
        "/v1/classified/nodes/db1/explanation",
    ];
    let uploaded = json!({"name": "db1", "facts": {"os": {"family": "Debian"}}}).to_string();
    let anonymous = Daemon::start(&["--repo", &repository.text_path(), "--allow-anonymous"]);
    let listed = daemon(
        &repository,
        &[
            ("asks", "roles: [classify, read]"),
            ("server", "roles: [classify, check-in, read]"),
            ("facts", "roles: [check-in]"),
        ],
    );
    for (daemon, token, upload) in [(&anonymous, "none", 401), (&listed, "asks", 403)] {
        for path in routes {
            let answer = send(daemon, token, "POST", path, FORGED);
            assert_eq!(answer.status, 200, "{path} {}", answer.body);
            // The request in flight is answered, and no later one.
            assert!(answer.body.contains("db"), "{path} {}", answer.body);
            assert_eq!(send(daemon, token, "GET", "/v1/nodes/db1", "").status, 404, "{path}");
            assert_eq!(send(daemon, token, "GET", "/enc/db1", "").json()["classes"], json!({}));
        }
        let answer = send(daemon, token, "POST", "/api/hosts/facts", &uploaded);
        assert_eq!(answer.status, upload, "{}", answer.body);
    }
    assert_eq!(send(&listed, "facts", "POST", "/enc/db1", FORGED).status, 403);
    assert_eq!(send(&listed, "facts", "POST", "/api/hosts/facts", &uploaded).status, 201);
    assert_eq!(send(&listed, "server", "POST", "/enc/db1", FORGED).status, 200);
    let kept = send(&listed, "asks", "GET", "/enc/db1", "").json();
    assert_eq!(kept["classes"], json!({"db": {}}));
    Seen::Held(
        "nothing kept by four routes and two callers; kept for a token with `check-in`".to_owned(),
    )
}
