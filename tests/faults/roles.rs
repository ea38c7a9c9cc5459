//! Every route with every role: what a token may not do, it gets 403 for, and without one 401.

use sha2::{Digest as _, Sha256};

use crate::program::{Daemon, GitRepository};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[Fault {
    name: "roles::every-route",
    promise: "a route answers callers with its role; others get 403, unauthenticated ones 401",
    injection: "each route, under `/classifier-api` too, asked with no token, an unknown one, and one of each role",
    speed: Speed::Fast,
    run: every_route,
}];

const ROLES: [&str; 4] = ["classify", "read", "write", "operate"];

const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Method, path and the role that it needs.
fn routes() -> Vec<(&'static str, String, &'static str)> {
    let mut routes = Vec::new();
    for base in ["", "/classifier-api"] {
        let mut add =
            |method, path: &str, role| routes.push((method, format!("{base}{path}"), role));
        for version in ["v1", "v2"] {
            add("GET", &format!("/{version}/classified/nodes/n"), "classify");
            add("POST", &format!("/{version}/classified/nodes/n"), "classify");
        }
        add("POST", "/v1/classified/nodes/n/explanation", "classify");
        for path in ["groups", "classes", "environments", "nodes", "last-class-update"] {
            add("GET", &format!("/v1/{path}"), "read");
        }
        add("GET", &format!("/v1/groups/{ROOT}"), "read");
        add("GET", &format!("/v1/groups/{ROOT}/rules"), "read");
        add("GET", &format!("/v1/groups/{ROOT}/nodes"), "read");
        add("GET", &format!("/v1/group-children/{ROOT}"), "read");
        add("GET", "/v1/nodes/n", "read");
        add("POST", "/v1/rules/translate", "read");
        add("POST", "/v1/validate/group", "read");
        add("POST", "/v1/groups", "write");
        add("PUT", &format!("/v1/groups/{ROOT}"), "write");
        add("POST", &format!("/v1/groups/{ROOT}"), "write");
        add("DELETE", &format!("/v1/groups/{ROOT}"), "write");
        add("POST", &format!("/v1/groups/{ROOT}/pin"), "write");
        add("POST", &format!("/v1/groups/{ROOT}/unpin"), "write");
        add("POST", "/v1/commands/unpin-from-all", "write");
        add("POST", "/v1/import-hierarchy", "write");
        add("POST", "/v1/update-classes", "write");
        add("PUT", "/v1/environments/e", "write");
        add("DELETE", "/v1/environments/e", "write");
    }
    let mut add = |method, path: &str, role| routes.push((method, path.to_owned(), role));
    for path in ["/enc/n", "/node/n", "/hiera/n"] {
        add("GET", path, "classify");
    }
    add("POST", "/enc/n", "classify");
    for path in ["status", "commits", "commits/HEAD", "diff/HEAD/HEAD"] {
        add("GET", &format!("/controller/{path}"), "read");
    }
    add("GET", "/metrics", "read");
    for path in ["reconcile", "pin", "resume"] {
        add("POST", &format!("/controller/{path}"), "operate");
    }
    routes
}

fn every_route() -> Seen {
    let repository = GitRepository::new();
    repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let rights = tempfile::tempdir().unwrap();
    let file = rights.path().join("tokens.yaml");
    let tokens: Vec<String> = ROLES
        .iter()
        .map(|role| {
            let hash = Sha256::digest(format!("token-{role}"));
            let hash: Vec<String> = hash.iter().map(|it| format!("{it:02x}")).collect();
            format!("- name: {role}\n  sha256: {}\n  roles: [{role}]\n", hash.concat())
        })
        .collect();
    std::fs::write(&file, tokens.concat() + "# end\n").unwrap();
    let path = repository.text_path();
    let daemon = Daemon::start(&["--repo", &path, "--tokens-file", file.to_str().unwrap()]);
    let (mut allowed, mut refused) = (0, 0);
    for (method, path, needed) in routes() {
        let status = |headers: &str| daemon.request_with(method, &path, headers, "").status;
        assert_eq!(status(""), 401, "{method} {path} without a token");
        assert_eq!(status("X-Authentication: guess\r\n"), 401, "{method} {path}: an unknown token");
        refused += 2;
        for role in ROLES {
            let found = status(&format!("X-Authentication: token-{role}\r\n"));
            // Where the role suffices, the body is empty and writes are off: 403 `read-only`.
            let answer = daemon.request_with(
                method,
                &path,
                &format!("Authorization: Bearer token-{role}\r\n"),
                "",
            );
            assert_eq!(answer.status, found, "{method} {path}: both headers count the same");
            let denied = found == 403 && answer.body.contains("\"permission-denied\"");
            assert_eq!(denied, role != needed, "{method} {path} {role}: {} {}", found, answer.body);
            assert_ne!(found, 401, "{method} {path} {role}");
            if denied { refused += 1 } else { allowed += 1 }
        }
    }
    Seen::Held(format!("{allowed} requests admitted, {refused} refused"))
}
