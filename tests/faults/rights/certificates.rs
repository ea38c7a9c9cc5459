//! Certificates: several grants at once, and agents that check in.

use serde_json::json;

use super::{A, B, FORGED, ROOT, group, repository, tokens};
use crate::mtls::{Authority, Identity};
use crate::program::{Daemon, GitRepository, Response};
use crate::{Fault, Seen, Speed};

pub(super) const SEVERAL_ENTRIES: Fault = Fault {
    name: "rights::grants-add-up",
    promise: "the entries of a certificate and a token never widen each other",
    injection: "a certificate with an entry for `write` in one group, another entry for `read`, and a token for `read`",
    speed: Speed::Fast,
    run: several_entries,
};

pub(super) const MATRIX: Fault = Fault {
    name: "rights::matrix",
    promise: "a write is accepted if and only if one grant of the caller allows all of it",
    injection: "every pair of seven grants on one certificate, five writes each, compared with an oracle",
    speed: Speed::Fast,
    run: matrix,
};

pub(super) const LYING_AGENT: Fault = Fault {
    name: "rights::lying-agent",
    promise: "an agent checks in its own node only, with the trusted data of its certificate",
    injection: "forged trusted data for the agent's own node and for another one, by every route that keeps facts",
    speed: Speed::Fast,
    run: lying_agent,
};

/// A daemon with certificates and tokens.
struct Guarded {
    authority: Authority,
    daemon: Daemon,
    _repository: GitRepository,
}

impl Guarded {
    fn start(allowed: &str, tokens: &str) -> Self {
        let (repository, authority) = (repository(), Authority::new());
        let own = authority.sign("localhost", None);
        let write = |name: &str, content: &str| {
            let path = repository.path().join(".git").join(name);
            std::fs::write(&path, content).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let daemon = Daemon::start(&[
            "--repo",
            &repository.text_path(),
            "--writes",
            "commit",
            "--tls-cert",
            &write("cert.pem", &own.0),
            "--tls-key",
            &write("key.pem", &own.1),
            "--tls-client-ca",
            &write("ca.pem", &authority.0.pem()),
            "--tls-allow",
            &write("allow.yaml", allowed),
            "--tokens-file",
            &write("tokens.yaml", tokens),
        ]);
        Self { authority, daemon, _repository: repository }
    }

    fn send(&self, own: &Identity, token: &str, request: (&str, &str, &str)) -> Response {
        let header =
            if token.is_empty() { String::new() } else { format!("X-Authentication: {token}\r\n") };
        let (method, path, body) = request;
        self.authority.send(&self.daemon.address, Some(own), method, path, &header, body).unwrap()
    }
}

fn several_entries() -> Seen {
    let allowed = format!(
        "- {{certname: ada, roles: [write], groups: [{A}]}}\n- {{extension: pp_role=staff, roles: [read]}}\n- {{certname: bob, roles: [write], groups: [{A}]}}\n"
    );
    let reader = tokens(&[("reader", "roles: [read]"), ("pins", "roles: [write], keys: [pinned]")]);
    let guarded = Guarded::start(&allowed, &reader);
    let ada = guarded.authority.sign("ada", Some("staff"));
    let bob = guarded.authority.sign("bob", None);
    let mut number = 0;
    let mut new = |parent: &str| {
        number += 1;
        json!({"name": format!("N{number}"), "parent": parent, "classes": {}}).to_string()
    };
    let classes = json!({"classes": {"x": {}}}).to_string();
    for (own, token, method, path, body, status) in [
        (&ada, "", "GET", "/v1/groups".to_owned(), String::new(), 200),
        (&ada, "", "POST", "/v1/groups".to_owned(), new(ROOT), 403),
        (&ada, "", "POST", "/v1/groups".to_owned(), new(A), 303),
        (&ada, "", "POST", group(B), classes.clone(), 403),
        (&bob, "", "POST", "/v1/groups".to_owned(), new(ROOT), 403),
        (&bob, "reader", "GET", "/v1/groups".to_owned(), String::new(), 200),
        (&bob, "reader", "POST", "/v1/groups".to_owned(), new(ROOT), 403),
        (&bob, "reader", "POST", group(B), classes.clone(), 403),
        (&bob, "reader", "PUT", "/v1/environments/fresh".to_owned(), String::new(), 403),
        (&bob, "reader", "POST", "/v1/groups".to_owned(), new(A), 303),
        // The scope of the certificate has the group, that of the token the key.
        (&bob, "pins", "POST", group(B), classes, 403),
        (
            &bob,
            "pins",
            "POST",
            format!("{}/pin", group(B)),
            json!({"nodes": ["n"]}).to_string(),
            204,
        ),
        (&bob, "pins", "POST", "/controller/reconcile".to_owned(), String::new(), 403),
    ] {
        let answer = guarded.send(own, token, (method, &path, &body));
        assert_eq!(answer.status, status, "{token} {method} {path} {body} {}", answer.body);
    }
    Seen::Held(
        "403 below the root, for another group and an environment; 303 in the scope".to_owned(),
    )
}

/// What a grant of the matrix allows to write: groups and keys, where it has the role at all.
struct Allows {
    entry: &'static str,
    writes: bool,
    group_a_only: bool,
    keys: Option<&'static [&'static str]>,
}

const GRANTS: [Allows; 7] = [
    Allows { entry: "roles: [read]", writes: false, group_a_only: false, keys: None },
    Allows {
        entry: "roles: [classify, check-in, operate]",
        writes: false,
        group_a_only: false,
        keys: None,
    },
    Allows { entry: "roles: [write]", writes: true, group_a_only: false, keys: None },
    Allows {
        entry: "roles: [write], groups: [aaaaaaaa-0000-4000-8000-00000000000a]",
        writes: true,
        group_a_only: true,
        keys: None,
    },
    Allows {
        entry: "roles: [write], keys: [description]",
        writes: true,
        group_a_only: false,
        keys: Some(&["description"]),
    },
    Allows {
        entry: "roles: [write], groups: [aaaaaaaa-0000-4000-8000-00000000000a], keys: [classes]",
        writes: true,
        group_a_only: true,
        keys: Some(&["classes"]),
    },
    Allows {
        entry: "roles: [write], keys: []",
        writes: true,
        group_a_only: false,
        keys: Some(&[]),
    },
];

/// A write of the matrix: its group and the keys that it changes; none for a new group.
const WRITES: [(&str, &[&str]); 5] = [
    (A, &["description"]),
    (A, &["classes"]),
    (A, &["description", "classes"]),
    (B, &["description"]),
    (A, &[]),
];

fn allows(grant: &Allows, (target, keys): (&str, &[&str])) -> bool {
    let has_keys = match (grant.keys, keys) {
        (None, _) => true,
        (Some(_), []) => false,
        (Some(has), keys) => keys.iter().all(|key| has.contains(key)),
    };
    grant.writes && has_keys && (target == A || !grant.group_a_only)
}

fn matrix() -> Seen {
    let mut pairs = Vec::new();
    for (at, first) in GRANTS.iter().enumerate() {
        pairs.extend(GRANTS.iter().skip(at).map(|second| (first, second)));
    }
    let entry = |(number, (first, second)): (usize, &(&Allows, &Allows))| {
        [first, second].map(|it| format!("- {{certname: c{number}, {}}}\n", it.entry)).concat()
    };
    let allowed: String = pairs.iter().enumerate().map(entry).collect();
    let guarded = Guarded::start(&allowed, "[]\n");
    let (mut through, mut refused) = (0, 0);
    for (number, (first, second)) in pairs.iter().enumerate() {
        let own = guarded.authority.sign(&format!("c{number}"), None);
        for (attempt, write) in WRITES.into_iter().enumerate() {
            let fresh = format!("{number}-{attempt}");
            let mut body = json!({});
            for key in write.1 {
                body[*key] =
                    if *key == "classes" { json!({"ntp": {"x": fresh}}) } else { json!(fresh) };
            }
            let new = json!({"name": fresh, "parent": A, "classes": {}});
            let (path, body) = if write.1.is_empty() {
                ("/v1/groups".to_owned(), new)
            } else {
                (group(write.0), body)
            };
            let answer = guarded.send(&own, "", ("POST", &path, &body.to_string()));
            let expected = allows(first, write) || allows(second, write);
            let found = matches!(answer.status, 200 | 303);
            let (one, other) = (first.entry, second.entry);
            assert_eq!(found, expected, "{one} + {other}: {write:?} {}", answer.body);
            assert!(found || answer.status == 403, "{}", answer.body);
            if found { through += 1 } else { refused += 1 }
        }
    }
    Seen::Held(format!(
        "{through} writes went through and {refused} were refused, as the oracle says"
    ))
}

fn lying_agent() -> Seen {
    let allowed = "- {certname: reader, roles: [classify, read]}\n";
    let guarded = Guarded::start(allowed, "[]\n");
    let liar = guarded.authority.sign("liar", None);
    let honest = guarded.authority.sign("honest", Some("db"));
    let reader = guarded.authority.sign("reader", None);
    let facts = |name: &str| json!({"name": name, "facts": {"x": 1}}).to_string();
    for route in ["/enc", "/v1/classified/nodes", "/v2/classified/nodes"] {
        for (own, name, classes) in
            [(&liar, "liar", json!({})), (&honest, "honest", json!({"db": {}}))]
        {
            let answer = guarded.send(own, "", ("POST", &format!("{route}/{name}"), FORGED));
            assert_eq!(
                (answer.status, &answer.json()["classes"]),
                (200, &classes),
                "{route} {name}"
            );
            let kept = guarded.send(&reader, "", ("GET", &format!("/enc/{name}"), ""));
            assert_eq!(kept.json()["classes"], classes, "{route} {name}");
            let kept =
                guarded.send(&reader, "", ("GET", &format!("/v1/nodes/{name}?facts=true"), ""));
            assert_eq!(kept.json()["trusted"]["certname"], name, "{route}");
        }
        let other = guarded.send(&liar, "", ("POST", &format!("{route}/honest"), FORGED));
        assert_eq!(other.status, 403, "{}", other.body);
        // It may classify every node, and check in for its own with the data of its certificate.
        let asked = guarded.send(&reader, "", ("POST", &format!("{route}/liar"), FORGED));
        assert_eq!((asked.status, &asked.json()["classes"]), (200, &json!({"db": {}})), "{route}");
        let kept = guarded.send(&reader, "", ("GET", "/enc/liar", ""));
        assert_eq!(kept.json()["classes"], json!({}), "{route}");
    }
    let upload =
        |own, name| guarded.send(own, "", ("POST", "/api/hosts/facts", &facts(name))).status;
    assert_eq!((upload(&liar, "honest"), upload(&reader, "honest")), (403, 403));
    assert_eq!(upload(&honest, "honest"), 201);
    let kept = guarded.send(&reader, "", ("GET", "/enc/honest", ""));
    assert_eq!(kept.json()["classes"], json!({"db": {}}));
    Seen::Held("the certificate's trusted data by four routes, 403 for other nodes".to_owned())
}
