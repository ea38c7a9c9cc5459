use std::collections::BTreeSet;
use std::convert::Infallible;

use axum::body::to_bytes;
use axum::http::StatusCode;
use serde_json::Value;

use super::*;
use crate::http::fixture::Fixture;
use crate::http::path_parameter::{PathParameter, PathParameters};
use crate::http::request_context::RequestContext;
use crate::http::router::{RouteSet, declared, routes};

const PUBLIC: Requirement = Requirement::Public;

/// A response as a client sees it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: StatusCode,
    allow: Option<String>,
    length: Option<String>,
    body: String,
}

async fn send(dispatcher: &Dispatcher, method: &str, uri: &str) -> Seen {
    let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
    see(dispatcher.handle(request).await).await
}

async fn see(response: Response) -> Seen {
    let (parts, body) = response.into_parts();
    let header = |name| parts.headers.get(name).map(|it: &HeaderValue| it.to_str().unwrap().into());
    let body = to_bytes(body, 1 << 20).await.unwrap();
    Seen {
        status: parts.status,
        allow: header(header::ALLOW),
        length: header(header::CONTENT_LENGTH),
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// Routes whose answers say which of them answers, with what parameters.
fn dispatcher(fixture: &Fixture) -> Dispatcher {
    let one = async |PathParameter(it): PathParameter| format!("one {it:?}");
    let two = async |PathParameters(it): PathParameters<2>| format!("two {it:?}");
    let routes = Routes::below("/a")
        .get("", PUBLIC, async || "root")
        .put("", PUBLIC, async || "put")
        .get("/{x}", PUBLIC, one)
        .post("/{x}", PUBLIC, async |it: PathParameter| format!("posted {:?}", it.0))
        .delete("/{x}/{y}", PUBLIC, two)
        .get("/wrong/{x}/c", PUBLIC, two);
    Dispatcher::new(routes, fixture.state.clone(), None)
}

#[tokio::test]
async fn a_request_reaches_the_handler_of_its_method_and_path() {
    let dispatcher = dispatcher(&Fixture::new(RouteSet::Whole));
    for (method, path, body) in [
        ("GET", "/a", "root"),
        ("PUT", "/a", "put"),
        ("GET", "/a?x=/b", "root"),
        ("GET", "/a/b", "one \"b\""),
        ("GET", "/a/%62%2fc%20+", "one \"b/c +\""),
        ("GET", "/a/%C3%BC%", "one \"ü%\""),
        ("POST", "/a/b", "posted \"b\""),
        ("DELETE", "/a/b/c", "two [\"b\", \"c\"]"),
        ("DELETE", "/a//c", "two [\"\", \"c\"]"),
        ("GET", "http://other.example.com/a/b?c", "one \"b\""),
    ] {
        let seen = send(&dispatcher, method, path).await;
        assert_eq!((seen.status, seen.body.as_str()), (StatusCode::OK, body), "{method} {path}");
    }
}

#[tokio::test]
async fn a_parameter_that_is_not_utf8_is_the_fault_of_the_client() {
    let dispatcher = dispatcher(&Fixture::new(RouteSet::Whole));
    for (method, path) in [("GET", "/a/%ff"), ("DELETE", "/a/%ff/b"), ("DELETE", "/a/b/%80")] {
        let seen = send(&dispatcher, method, path).await;
        assert_eq!(seen.status, StatusCode::BAD_REQUEST, "{path}");
        assert!(seen.body.contains("The path of your request cannot be read."), "{seen:?}");
    }
    // A fault of ours.
    let wrong = send(&dispatcher, "GET", "/a/wrong/b/c").await;
    assert_eq!(wrong.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test]
async fn a_head_is_answered_as_a_get_without_its_body() {
    let dispatcher = dispatcher(&Fixture::new(RouteSet::Whole));
    for (path, length) in [("/a", "4"), ("/a/b", "7")] {
        let seen = send(&dispatcher, "HEAD", path).await;
        let is_ok = (seen.status, seen.body.as_str(), seen.length.as_deref());
        assert_eq!(is_ok, (StatusCode::OK, "", Some(length)), "{path}");
    }
    let refused = send(&dispatcher, "HEAD", "/a/b/c").await;
    assert_eq!((refused.status, refused.body.as_str()), (StatusCode::METHOD_NOT_ALLOWED, ""));
    assert_ne!(refused.length, None);
    // Without a `Content-Length` of its own, a body that is made while it is sent has none.
    let streamed = Routes::below("").get("/s", PUBLIC, async || {
        Body::from_stream(futures_util::stream::iter([Ok::<_, Infallible>("a")]))
    });
    let fixture = Fixture::new(RouteSet::Whole);
    let streamed = Dispatcher::new(streamed, fixture.state.clone(), None);
    let seen = send(&streamed, "HEAD", "/s").await;
    assert_eq!((seen.status, seen.body.as_str(), seen.length), (StatusCode::OK, "", None));
}

#[tokio::test]
async fn allow_names_the_methods_of_a_path_to_those_who_may_know_them() {
    let fixture = Fixture::new(RouteSet::Whole);
    let send = async |method: &str, path: &str, token: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("X-Authentication", token).body(Body::empty()).unwrap();
        let seen = see(fixture.answer(request).await).await;
        (seen.status.as_u16(), seen.allow)
    };
    let allow = |status, allow: &str| (status, Some(allow.to_owned()));
    let group = "/v1/groups/00000000-0000-4000-8000-000000000000";
    assert_eq!(send("PATCH", group, "write").await, allow(405, "DELETE,GET,HEAD,POST,PUT"));
    assert_eq!(send("OPTIONS", "/v1/groups", "write").await, allow(405, "GET,HEAD,POST"));
    assert_eq!(send("BREW", "/enc/n", "classify").await, allow(405, "GET,HEAD,POST"));
    assert_eq!(send("HEAD", "/controller/pin", "operate").await, allow(405, "POST"));
    assert_eq!(send("PATCH", group, "read").await, (403, None));
    assert_eq!(send("PATCH", group, "guess").await, (401, None));
    assert_eq!(send("GET", group, "read").await, (200, None));
    assert_eq!(send("GET", "/nowhere", "read").await, (404, None));
}

#[tokio::test]
async fn what_stands_below_a_base_path_is_answered_with_and_without_it() {
    let fixture = Fixture::new(RouteSet::Whole);
    let routes = Routes::below("").get("/", PUBLIC, async || "root").get(
        "/a/{x}",
        PUBLIC,
        async |uri: OriginalUri, it: PathParameter, request: Request| {
            format!("{} {} {}", it.0, request.uri(), uri.0)
        },
    );
    let dispatcher = Dispatcher::new(routes, fixture.state.clone(), None).below("/b/c");
    for (uri, expected) in [
        ("/b/c", Some("root")),
        ("/b/c/", Some("root")),
        ("/b/c?x", Some("root")),
        ("/a/1?x", Some("1 /a/1?x /a/1?x")),
        ("/b/c/a/%31?x=/b/c", Some("1 /a/%31?x=/b/c /b/c/a/%31?x=/b/c")),
        ("http://h/b/c/a/1", Some("1 http://h/a/1 http://h/b/c/a/1")),
        ("/b/ca/1", None),
        ("/b/c//a/1", Some("1 /a/1 /b/c//a/1")),
        ("/b/c///a/1", None),
        ("/b/%63/a/1", None),
        ("/b/c/b/c/a/1", None),
    ] {
        let seen = send(&dispatcher, "GET", uri).await;
        match expected {
            Some(body) => assert_eq!(seen.body, body, "{uri}"),
            None => assert_eq!(seen.status, StatusCode::UNAUTHORIZED, "{uri}: {seen:?}"),
        }
    }
}

/// Returns a path that a pattern matches.
fn example(pattern: &str) -> String {
    let segment = |it: &str| if it.starts_with('{') { "x1".to_owned() } else { it.to_owned() };
    pattern.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[test]
fn each_route_is_found_at_its_path_and_no_other_is() {
    let fixture = Fixture::new(RouteSet::Whole);
    for set in [RouteSet::Whole, RouteSet::Public, RouteSet::Admin] {
        let dispatcher = Dispatcher::new(routes(set), fixture.state.clone(), None);
        let of_set: BTreeSet<_> =
            routes(set).declared().map(|it| (it.path.clone(), it.method.to_string())).collect();
        for Route { path, method, requirement } in declared() {
            let found = dispatcher.table.paths.find(&example(&path));
            let route = found.as_ref().and_then(|(it, _)| it.route(&method));
            let route = route.map(|(it, _)| (it.path.as_str(), &it.method));
            let is_of_set = of_set.contains(&(path.clone(), method.to_string()));
            assert_eq!(route, is_of_set.then_some((path.as_str(), &method)), "{requirement:?}");
            if let Some((_, parameters)) = found {
                let count = path.matches('{').count();
                assert_eq!(parameters.decoded(&path).count(), count, "{path}");
            }
        }
    }
}

#[test]
fn every_route_of_the_document_exists_and_they_alone() {
    let document: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let documented =
        document["paths"].as_object().unwrap().iter().flat_map(|(path, operations)| {
            let methods = operations.as_object().unwrap().keys().map(|it| it.to_uppercase());
            methods.filter(|it| it != "SERVERS").map(move |method| (path.clone(), method))
        });
    let documented: BTreeSet<_> = documented.collect();
    let fixture = Fixture::new(RouteSet::Whole);
    let all = routes(RouteSet::Whole);
    let dispatcher = Dispatcher::new(all, fixture.state.clone(), None);
    for (path, method) in &documented {
        let example = example(path);
        let found = dispatcher.table.paths.find(&example).unwrap().0;
        let route = found.route(&method.parse().unwrap());
        assert!(route.is_some_and(|(it, _)| it.is_at(path)), "{method} {path}");
    }
    // The classifier API stands below this prefix once more.
    let once = declared().into_iter().filter(|it| !it.path.starts_with("/classifier-api/"));
    assert_eq!(once.count(), documented.len());
}

#[tokio::test]
async fn a_handler_sees_who_asks_and_which_role_it_needs() {
    let fixture = Fixture::new(RouteSet::Whole);
    let requirement = Requirement::NodeInPath(Role::Classify);
    let routes = Routes::below("").get("/{x}", requirement, async |request: Request| {
        let context = RequestContext::of(request.extensions()).unwrap();
        format!("{:?} {:?}", context.caller.as_ref().and_then(|it| it.name()), context.required)
    });
    let dispatcher = Dispatcher::new(routes, fixture.state.clone(), None);
    let request = Request::builder().uri("/n").header("X-Authentication", "classify");
    let seen = see(dispatcher.handle(request.body(Body::empty()).unwrap()).await).await;
    assert_eq!(seen.body, "Some(\"t\") Some(Classify)");
}
