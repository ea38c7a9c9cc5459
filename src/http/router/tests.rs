use std::collections::{BTreeMap, BTreeSet};

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::facts::CertificateFacts;
use crate::http::fixture::Fixture;
use crate::http::request_context::{Peer, RequestContext};
use crate::http::server::RequestHandler as _;

/// Every route of the classifier API, which stands below `/classifier-api` as well: method, path, what
/// it requires.
const CLASSIFIER: &[(&str, &str, &str)] = &[
    ("GET", "/v1/classified/nodes/{name}", "classify, own node"),
    ("POST", "/v1/classified/nodes/{name}", "classify, own node"),
    ("GET", "/v2/classified/nodes/{name}", "classify, own node"),
    ("POST", "/v2/classified/nodes/{name}", "classify, own node"),
    ("GET", "/v1/classified/nodes/{name}/explanation", "read, own node"),
    ("POST", "/v1/classified/nodes/{name}/explanation", "classify, own node"),
    ("GET", "/v1/groups", "read"),
    ("POST", "/v1/groups", "write"),
    ("GET", "/v1/groups/{id}", "read"),
    ("PUT", "/v1/groups/{id}", "write"),
    ("POST", "/v1/groups/{id}", "write"),
    ("DELETE", "/v1/groups/{id}", "write"),
    ("POST", "/v1/groups/{id}/pin", "write"),
    ("POST", "/v1/groups/{id}/unpin", "write"),
    ("GET", "/v1/groups/{id}/rules", "read"),
    ("GET", "/v1/groups/{id}/nodes", "read"),
    ("GET", "/v1/group-children/{id}", "read"),
    ("POST", "/v1/commands/unpin-from-all", "write"),
    ("POST", "/v1/import-hierarchy", "write"),
    ("POST", "/v1/rules/translate", "read"),
    ("POST", "/v1/validate/group", "read"),
    ("GET", "/v1/classes", "read"),
    ("GET", "/v1/environments", "read"),
    ("GET", "/v1/environments/{environment}", "read"),
    ("PUT", "/v1/environments/{environment}", "write"),
    ("DELETE", "/v1/environments/{environment}", "write"),
    ("GET", "/v1/environments/{environment}/classes", "read"),
    ("GET", "/v1/environments/{environment}/classes/{class}", "read"),
    ("GET", "/v1/last-class-update", "read"),
    ("POST", "/v1/update-classes", "write"),
    ("GET", "/v1/nodes", "read"),
    ("GET", "/v1/nodes/{name}", "read"),
];

/// Every other route.
const OTHERS: &[(&str, &str, &str)] = &[
    ("GET", "/livez", "probe"),
    ("GET", "/readyz", "probe"),
    ("GET", "/openapi.json", "public"),
    ("GET", "/controller/status", "read"),
    ("GET", "/controller/commits", "read"),
    ("GET", "/controller/commits/{*revision}", "read"),
    ("GET", "/controller/diff/{base}/{head}", "read"),
    ("GET", "/controller/query", "read"),
    ("POST", "/controller/query", "read"),
    ("GET", "/controller/trends", "read"),
    ("GET", "/controller/node-counts", "read"),
    ("GET", "/controller/group-members", "read"),
    ("GET", "/controller/nodes", "read"),
    ("GET", "/controller/nodes/{name}", "read, own node"),
    ("GET", "/controller/nodes/{name}/history", "read"),
    ("GET", "/controller/nodes/{name}/blame", "read"),
    ("GET", "/controller/nodes/{name}/values", "read, own node"),
    ("GET", "/controller/nodes/{name}/enc", "read, own node"),
    ("GET", "/controller/nodes/{name}/membership", "read"),
    ("GET", "/enc/{certname}", "classify, own node"),
    ("POST", "/enc/{certname}", "classify, own node"),
    ("GET", "/node/{certname}", "classify, own node"),
    ("POST", "/api/hosts/facts", "check-in, own node"),
    ("GET", "/hiera/{certname}", "classify, own node"),
    ("POST", "/hiera/{certname}", "classify, own node"),
    ("GET", "/status/v1/services", "public"),
    ("GET", "/status/v1/services/{service}", "public"),
    ("GET", "/status/v1/simple", "public"),
    ("GET", "/status/v1/simple/{service}", "public"),
    ("POST", "/webhook/{provider}", "signature"),
    ("GET", "/metrics", "read"),
    ("POST", "/controller/reconcile", "operate"),
    ("POST", "/controller/pin", "operate"),
    ("POST", "/controller/resume", "operate"),
    ("DELETE", "/controller/nodes/{name}", "operate"),
];

fn table() -> BTreeMap<(String, String), &'static str> {
    let classifier = CLASSIFIER.iter().flat_map(|(method, path, requirement)| {
        let paths = [(*path).to_owned(), format!("/classifier-api{path}")];
        paths.map(|path| (((*method).to_owned(), path), *requirement))
    });
    let others = OTHERS.iter().map(|(method, path, requirement)| {
        (((*method).to_owned(), (*path).to_owned()), *requirement)
    });
    classifier.chain(others).collect()
}

impl Fixture {
    async fn send(&self, method: &str, path: &str, caller: &Caller<'_>) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        let mut peer = Peer::default();
        match caller {
            Caller::Anonymous => {}
            Caller::Token(token) => request = request.header("X-Authentication", *token),
            Caller::Certificate(certname) => peer.certificate = Some(certificate(certname)),
        }
        let mut request = request.body(Body::empty()).unwrap();
        RequestContext::of_mut(request.extensions_mut()).peer = peer;
        Answer::of(self.answer(request).await).await
    }
}

fn certificate(certname: &str) -> Arc<CertificateFacts> {
    Arc::new(CertificateFacts { certname: certname.to_owned(), ..CertificateFacts::default() })
}

#[derive(Debug)]
enum Caller<'a> {
    Anonymous,
    Token(&'a str),
    Certificate(&'a str),
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: Value,
}

impl Answer {
    async fn of(response: axum::response::Response) -> Self {
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        Self { status, body: serde_json::from_slice(&body).unwrap_or_default() }
    }

    fn is_denied(&self) -> bool {
        let kind = self.body["kind"].as_str();
        match self.status {
            StatusCode::UNAUTHORIZED => kind == Some("user-unauthenticated"),
            StatusCode::FORBIDDEN => kind == Some("permission-denied"),
            _ => false,
        }
    }
}

/// Returns a path with each parameter replaced: nodes are called `n`.
fn example(path: &str) -> String {
    let part = |it: &str| match it {
        "{id}" => "00000000-0000-4000-8000-000000000000".to_owned(),
        "{provider}" => "github".to_owned(),
        _ if it.starts_with('{') => "n".to_owned(),
        other => other.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn every_route_is_in_the_table_with_what_it_requires() {
    let declared = declared();
    let named = |requirement| match requirement {
        Requirement::Probe => "probe".to_owned(),
        Requirement::Public => "public".to_owned(),
        Requirement::Signature => "signature".to_owned(),
        Requirement::Role(role) => role.as_str().to_owned(),
        Requirement::NodeInPath(role) | Requirement::NodeInBody(role) => {
            format!("{}, own node", role.as_str())
        }
    };
    let declared: Vec<_> = declared
        .into_iter()
        .map(|it| ((it.method.to_string(), it.path), named(it.requirement)))
        .collect();
    let found: BTreeMap<_, _> = declared.iter().cloned().collect();
    assert_eq!(found.len(), declared.len(), "no route is declared twice");
    let expected: BTreeMap<_, _> =
        table().into_iter().map(|(route, it)| (route, it.to_owned())).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn every_route_answers_callers_with_its_role_alone() {
    let fixture = Fixture::new(RouteSet::Whole);
    let mut callers = vec![Caller::Anonymous, Caller::Certificate("n"), Caller::Certificate("m")];
    callers.extend(Role::ALL.map(|role| Caller::Token(role.as_str())));
    let (mut admitted, mut denied) = (0, 0);
    for ((method, path), requirement) in table() {
        let path = example(&path);
        for caller in &callers {
            let may = match (requirement, caller) {
                ("probe" | "public", _) => true,
                // The handler refuses a delivery without a signature.
                ("signature", _) => false,
                (_, Caller::Anonymous) => false,
                // The body names no node here.
                ("check-in, own node", Caller::Certificate(_)) => true,
                (requirement, Caller::Certificate(name)) => {
                    *name == "n" && requirement.ends_with(", own node")
                }
                (requirement, Caller::Token(role)) => requirement.split(", ").next() == Some(*role),
            };
            let answer = fixture.send(&method, &path, caller).await;
            assert_eq!(!answer.is_denied(), may, "{method} {path} {caller:?}: {answer:?}");
            let is_unauthenticated = answer.status == StatusCode::UNAUTHORIZED;
            let is_anonymous = matches!(caller, Caller::Anonymous) || requirement == "signature";
            assert_eq!(is_unauthenticated, !may && is_anonymous, "{method} {path} {caller:?}");
            if may { admitted += 1 } else { denied += 1 }
        }
        let unknown = fixture.send(&method, &path, &Caller::Token("guess")).await;
        let open = matches!(requirement, "probe" | "public");
        // An unknown token is never taken for none, but where none is asked for.
        assert_eq!(unknown.status == StatusCode::UNAUTHORIZED, !open, "{method} {path}");
        if method == "GET" {
            let head = fixture.send("HEAD", &path, &Caller::Anonymous).await;
            assert_eq!(head.status == StatusCode::UNAUTHORIZED, !open, "HEAD {path}");
        }
    }
    assert!(admitted > 150 && denied > 500, "{admitted} {denied}");
}

#[tokio::test]
async fn only_callers_who_read_choose_the_commit() {
    let fixture = Fixture::new(RouteSet::Whole);
    let [before, _] = fixture.commits;
    let now = jiff::Timestamp::now();
    let mut denied = 0;
    for ((method, path), requirement) in table() {
        let path = example(&path);
        let (role, is_for_own) = match requirement.split_once(", ") {
            Some((role, _)) => (role, true),
            None => (requirement, false),
        };
        if !matches!(role, "classify" | "read") || method != "GET" {
            continue;
        }
        for chosen in [format!("commit={before}"), "commit=HEAD".to_owned(), format!("at={now}")] {
            let path = format!("{path}?{chosen}");
            let read = fixture.send(&method, &path, &Caller::Token("read")).await;
            assert_eq!(read.is_denied(), role != "read", "{path}: {read:?}");
            // The table says of the others that they have no role for these routes.
            let callers = [
                (Caller::Certificate("n"), is_for_own),
                (Caller::Token("classify"), role == "classify"),
            ];
            for (caller, _) in callers.into_iter().filter(|(_, has_role)| *has_role) {
                let answer = fixture.send(&method, &path, &caller).await;
                // It answers from what is kept, not from a commit.
                let is_kept = path.starts_with("/controller/nodes/n?");
                assert_eq!(answer.is_denied(), !is_kept, "{path} {caller:?}: {answer:?}");
                if !is_kept {
                    denied += 1;
                }
            }
        }
    }
    assert!(denied > 50, "{denied}");
}

#[tokio::test]
async fn what_no_route_answers_requires_a_role_as_well() {
    let fixture = Fixture::new(RouteSet::Whole);
    let mut below = Fixture::new(RouteSet::Whole);
    below.dispatcher = below.dispatcher.below("/clade");
    for (method, path, role, status) in [
        ("GET", "/", Some("read"), 404),
        ("GET", "/nowhere", Some("read"), 404),
        ("POST", "/nowhere", Some("write"), 404),
        ("GET", "/classifier-api/nowhere", Some("read"), 404),
        ("GET", "/status/v1/nowhere", Some("read"), 404),
        ("POST", "/webhook/a/b", Some("write"), 404),
        ("POST", "/livez", None, 405),
        ("DELETE", "/webhook/github", None, 405),
        ("PUT", "/status/v1/simple", None, 405),
        ("PUT", "/enc/n", Some("classify"), 405),
        ("POST", "/node/n", Some("classify"), 405),
        ("PATCH", "/v1/classified/nodes/n/explanation", Some("classify"), 405),
        ("GET", "/controller/pin", Some("operate"), 405),
        ("GET", "/api/hosts/facts", Some("check-in"), 405),
        ("POST", "/controller/status", Some("write"), 405),
        ("GET", "/v1/groups/x/pin", Some("read"), 405),
        ("GET", "/classifier-api/v1/groups/x/pin", Some("read"), 405),
        ("PATCH", "/v1/groups/x", Some("write"), 405),
        ("PUT", "/v1/validate/group", Some("read"), 405),
        ("GET", "/v1/validate/group", Some("read"), 405),
    ] {
        for (fixture, path) in [(&fixture, path), (&below, &format!("/clade{path}"))] {
            let anonymous = fixture.send(method, path, &Caller::Anonymous).await;
            let expected = if role.is_some() { 401 } else { status };
            assert_eq!(anonymous.status, expected, "{method} {path}");
            for token in Role::ALL.map(Role::as_str) {
                let answer = fixture.send(method, path, &Caller::Token(token)).await;
                let expected = if role.is_none_or(|it| it == token) { status } else { 403 };
                assert_eq!(answer.status, expected, "{method} {path} {token}: {answer:?}");
                if answer.status == status && status != 200 {
                    assert_eq!(answer.body["details"], *path, "{method}");
                }
            }
        }
    }
    let own = fixture.send("PUT", "/enc/n", &Caller::Certificate("n")).await;
    assert_eq!(own.status, 405);
    let other = fixture.send("PUT", "/enc/m", &Caller::Certificate("n")).await;
    assert_eq!(other.status, 403);
}

#[tokio::test]
async fn a_certificate_is_for_the_node_of_the_decoded_path() {
    let fixture = Fixture::new(RouteSet::Whole);
    for (path, may) in [
        ("/enc/web1.example.com", true),
        ("/enc/web1%2Eexample.com", true),
        ("/classifier-api/v1/classified/nodes/web1.example.com/explanation", true),
        ("/enc/web1.example.com%FF", false),
        ("/enc/web1.example.com%2F", false),
        ("/enc/web2.example.com", false),
        ("/v1/nodes/web1.example.com", false),
    ] {
        let answer = fixture.send("GET", path, &Caller::Certificate("web1.example.com")).await;
        assert_eq!(!answer.is_denied(), may, "{path}: {answer:?}");
    }
    let not_utf8 = fixture.send("GET", "/enc/%FF", &Caller::Token("classify")).await;
    assert_eq!(
        (not_utf8.status, not_utf8.body["kind"].as_str()),
        (StatusCode::BAD_REQUEST, Some("malformed-request"))
    );
}

#[tokio::test]
async fn the_address_for_monitoring_has_metrics_without_a_role_and_no_nodes() {
    let fixture = Fixture::new(RouteSet::Admin);
    for (method, path, status) in [
        ("GET", "/metrics", 200),
        ("GET", "/livez", 200),
        ("GET", "/controller/status", 401),
        ("POST", "/controller/resume", 401),
        ("GET", "/enc/n", 401),
    ] {
        let answer = fixture.send(method, path, &Caller::Anonymous).await;
        assert_eq!(answer.status, status, "{method} {path}");
    }
    let absent = fixture.send("GET", "/v1/groups", &Caller::Token("read")).await;
    assert_eq!(absent.status, 404);
    let public = Fixture::new(RouteSet::Public);
    let absent = public.send("GET", "/metrics", &Caller::Token("read")).await;
    assert_eq!(absent.status, 404);
}

#[tokio::test]
async fn beyond_the_connection_limit_only_probes_are_answered() {
    let fixture = Fixture::new(RouteSet::Whole);
    for ((method, path), requirement) in table() {
        let mut request = Request::builder().method(&*method).uri(example(&path));
        request = request.header("X-Authentication", "guess");
        let mut request = request.body(Body::empty()).unwrap();
        RequestContext::of_mut(request.extensions_mut()).peer.is_over_limit = true;
        let answer = Answer::of(fixture.answer(request).await).await;
        let expected = if requirement == "probe" { 200 } else { 503 };
        assert_eq!(answer.status, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn the_unix_socket_may_do_everything() {
    let fixture = Fixture::new(RouteSet::Whole);
    for ((method, path), requirement) in table() {
        let mut request = Request::builder().method(&*method).uri(example(&path));
        request = request.header("X-Authentication", "guess");
        let mut request = request.body(Body::empty()).unwrap();
        RequestContext::of_mut(request.extensions_mut()).peer.is_local = true;
        let answer = Answer::of(fixture.answer(request).await).await;
        assert_eq!(answer.is_denied(), requirement == "signature", "{method} {path}: {answer:?}");
    }
}

#[test]
fn the_reference_has_every_route_with_its_role() {
    let reference: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE];
    let mut documented = BTreeMap::new();
    for (path, operations) in reference["paths"].as_object().unwrap() {
        for method in &methods {
            let Some(operation) = operations.get(method.as_str().to_lowercase()) else { continue };
            let role = operation["x-clade-role"].as_str().map(str::to_owned);
            documented.insert((method.to_string(), path.clone()), role);
        }
    }
    let declared = declared();
    let declared: BTreeMap<_, _> = declared
        .into_iter()
        .filter(|it| !it.path.starts_with("/classifier-api/"))
        .map(|it| {
            let role = it.requirement.role().map(|it| it.as_str().to_owned());
            ((it.method.to_string(), it.path.replace("{*", "{")), role)
        })
        .collect();
    assert_eq!(documented, declared);
}

#[tokio::test]
async fn every_request_has_an_id_and_is_counted_once_by_its_route() {
    let fixture = Fixture::new(RouteSet::Whole);
    let request = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        request.header("X-Authentication", "read").body(Body::empty()).unwrap()
    };
    let cases = [
        ("GET", "/v1/groups", "/v1/groups", 200),
        ("GET", "/classifier-api/v1/groups", "/classifier-api/v1/groups", 200),
        // What requires a role that the caller lacks, what is not UTF-8, and what has no handler.
        ("POST", "/v1/groups", "/v1/groups", 403),
        ("GET", "/v1/groups/%ff", "/v1/groups/{id}", 400),
        ("PATCH", "/v1/groups", "/v1/groups", 403),
        ("HEAD", "/nowhere", "none", 404),
    ];
    for (method, path, _, status) in cases {
        let answer = fixture.answer(request(method, path)).await;
        assert_eq!(answer.status(), status, "{method} {path}");
        assert_eq!(answer.headers()["x-request-id"].len(), 32, "{method} {path}");
        assert_eq!(answer.headers()["referrer-policy"], "no-referrer", "{method} {path}");
    }
    // What a page asks is counted with the page.
    let asked = Dispatcher::new(routes(RouteSet::Whole), fixture.state.clone(), None);
    let answer = asked.handle(request("GET", "/v1/groups")).await;
    assert_eq!((answer.status().as_u16(), answer.headers().get("x-request-id")), (200, None));

    let scraped = fixture.answer(request("GET", "/metrics")).await;
    let scraped = to_bytes(scraped.into_body(), 1 << 20).await.unwrap();
    let scraped = String::from_utf8(scraped.to_vec()).unwrap();
    for (method, _, route, code) in cases {
        let method = if method == "PATCH" { "other" } else { method };
        let labels = format!("{{route=\"{route}\",method=\"{method}\",code=\"{code}\"}}");
        let line = format!("clade_http_requests_total{labels} 1");
        assert!(scraped.lines().any(|it| it == line), "{line} in {scraped}");
    }
}

/// The routes of the API are asked first: a page at a path of theirs would never be seen.
#[test]
fn pages_and_routes_of_the_api_have_no_path_in_common() {
    let first = |path: &str| path.split('/').nth(1).unwrap().to_owned();
    let of_api: BTreeSet<String> = declared().iter().map(|it| first(&it.path)).collect();
    let of_pages: BTreeSet<String> = crate::console::paths().map(first).collect();
    assert!(of_api.len() > 10 && of_pages.len() > 10, "{of_api:?} {of_pages:?}");
    assert!(of_api.is_disjoint(&of_pages), "{of_api:?} {of_pages:?}");
    // Neither begins with a parameter, which would stand for what the other has.
    assert!(!of_api.iter().chain(&of_pages).any(|it| it.starts_with('{')));
}

#[test]
fn a_base_path_hides_what_is_at_it_and_below_it() {
    let paths = ["/", "/v1/groups/{id}", "/enc/{certname}", "/assets/{*path}"];
    for (base, expected) in [
        ("", None),
        ("/clade", None),
        ("/v", None),
        ("/v1/clade", None),
        ("/v1/groups/a/b", None),
        ("/v1", Some("/v1/groups/{id}")),
        ("/v1/groups", Some("/v1/groups/{id}")),
        ("/v1/groups/clade", Some("/v1/groups/{id}")),
        ("/enc/web1", Some("/enc/{certname}")),
        ("/assets/a/b", Some("/assets/{*path}")),
    ] {
        assert_eq!(hidden_route(base, paths.into_iter()), expected, "{base}");
    }
}

/// Each of many errors was named, some three times: 80 KB were answered with 1.7 MB.
#[tokio::test]
async fn what_is_wrong_with_a_rule_is_not_told_several_times_as_long_as_the_rule() {
    let fixture = Fixture::new(RouteSet::Whole);
    let array: Value = std::iter::once("and".into()).chain(vec![json!([1]); 2000]).collect();
    let text = vec![r#"a ~ "(""#; 400].join(" and ");
    for (path, body) in [
        ("/v1/rules/translate", array.to_string()),
        ("/controller/query", json!({"rule": text}).to_string()),
    ] {
        let length = body.len();
        let request = Request::builder().method("POST").uri(path);
        let request = request.header("X-Authentication", "read");
        let request =
            request.header("Content-Type", "application/json").body(Body::from(body)).unwrap();
        let answer = fixture.answer(request).await;
        assert_eq!(answer.status(), 400, "{path}");
        let answer = to_bytes(answer.into_body(), 1 << 24).await.unwrap();
        let answer = String::from_utf8(answer.to_vec()).unwrap();
        assert!(answer.contains("more"), "{path}: {answer:.300}");
        assert!(answer.len() < 8 * length, "{path}: {} of {length}", answer.len());
    }
}
