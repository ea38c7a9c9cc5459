//! All routes on one page, each with what it requires of callers.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use axum::routing::MethodRouter;
use tower::ServiceExt as _;

use super::access::{Requirement, Role};
use super::dispatch::{Dispatcher, Unrouted};
use super::error::ApiError;
use super::in_process::{AddressRoutes, InProcessApi};
use super::observe::{NO_ROUTE, ObserveLayer};
use super::original_uri::OriginalUri;
use super::routes::{Route, Routes};
use super::state::{AppState, Services};
use super::{
    blame, check_ins, classify, controller, diff, enc, environments, group_nodes, groups,
    node_counts, node_values, nodes, openapi, rule_query, service_status, trends, update_classes,
    validate, webhook, writes,
};
use crate::telemetry::Metrics;

/// Which routes an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSet {
    /// All.
    Whole,
    /// What nodes, people and forges ask: no metrics and no operator actions.
    Public,
    /// Probes, metrics and operator actions.
    Admin,
}

/// Returns what answers at an address without pages.
#[cfg(test)]
pub(super) fn dispatcher(services: Arc<Services>, set: RouteSet) -> Dispatcher {
    let metrics = Arc::clone(&services.metrics);
    Dispatcher::new(routes(set), AppState::new(services), Some(&metrics))
}

/// The pages for people.
#[derive(Debug)]
pub struct ConsolePages {
    /// The pages by their paths.
    pub routes: Vec<(&'static str, MethodRouter)>,
    /// Answers browsers that ask for a path which neither the pages nor the API has.
    pub missing: Router,
}

/// Returns whether a client takes pages, as browsers do; all others read the errors of the API.
pub fn takes_pages(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    accepts.is_some_and(|it| it.contains("text/html"))
}

/// Returns whether a client is a browser that shows pages.
fn shows_pages(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD) && takes_pages(request.headers())
}

/// A base path cannot be used: what stands there without it could not be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the base path `{base}` would hide `{route}`, which is answered without it, too: choose another, such as `/clade`"
)]
pub struct HiddenRoute {
    base: String,
    route: String,
}

/// Returns what answers at an address with pages for people, which ask the routes in the process. All is below a
/// base path as well, unless that is empty.
///
/// The pages of the address for operators read with all routes, though others get those of operators alone there.
///
/// # Errors
///
/// Returns an error if the base path would hide a route or page.
pub fn router_with_pages(
    services: Arc<Services>,
    set: RouteSet,
    base: &str,
    pages: impl FnOnce(InProcessApi) -> ConsolePages,
) -> Result<Dispatcher, HiddenRoute> {
    let metrics = Arc::clone(&services.metrics);
    let state = AppState::new(Arc::clone(&services));
    let paths: Vec<String> = declared().into_iter().map(|it| it.path).collect();
    let (asked, address) = match set {
        // No page there can do what the address does not have.
        RouteSet::Public => (set, AddressRoutes::WithoutActions),
        RouteSet::Whole => (set, AddressRoutes::All),
        RouteSet::Admin => (RouteSet::Whole, AddressRoutes::WithoutClassifier),
    };
    // What a page asks is a part of the request for the page, and is not counted beside it.
    let asked = Dispatcher::new(routes(asked), state.clone(), None);
    let own = InProcessApi::new(asked, services, address, &paths);
    let ConsolePages { routes: pages, missing } = pages(own.clone());
    check_hidden(
        base,
        paths.iter().map(String::as_str).chain(pages.iter().map(|(path, _)| *path)),
    )?;
    let pages = |unrouted| Some(router_of_pages(pages, missing, own, unrouted, &metrics));
    let all = Dispatcher::with_pages(routes(set), state, Some(&metrics), pages);
    Ok(all.below(base))
}

/// Returns the router of pages, which is asked where no route of the API is at a path.
fn router_of_pages(
    pages: Vec<(&'static str, MethodRouter)>,
    missing: Router,
    api: InProcessApi,
    unrouted: Unrouted,
    metrics: &Arc<Metrics>,
) -> Router {
    let missing = missing.layer(ObserveLayer::new(NO_ROUTE, metrics));
    let observed = |router: Router, (path, methods): (&'static str, MethodRouter)| {
        let methods = methods.fallback(async |OriginalUri(uri): OriginalUri, request: Request| {
            ApiError::method_not_allowed(request.method().as_str(), uri.path())
        });
        router.route(path, methods.layer(ObserveLayer::new(path, metrics)))
    };
    let pages = pages.into_iter().fold(Router::new(), observed);
    pages.fallback(async move |request: Request| {
        if shows_pages(&request) && !api.is_below_api(request.uri().path()) {
            missing.clone().oneshot(request).await
        } else {
            Ok::<_, Infallible>(unrouted.answer(request))
        }
    })
}

/// Checks that a base path hides neither a route nor a page.
///
/// # Errors
///
/// Returns an error with the first that it would hide.
pub fn check_base_path(
    base: &str,
    pages: impl Iterator<Item = &'static str>,
) -> Result<(), HiddenRoute> {
    check_hidden(base, declared().iter().map(|it| it.path.as_str()))?;
    check_hidden(base, pages)
}

fn check_hidden<'p>(base: &str, known: impl Iterator<Item = &'p str>) -> Result<(), HiddenRoute> {
    hidden_route(base, known)
        .map_or(Ok(()), |route| Err(HiddenRoute { base: base.to_owned(), route: route.to_owned() }))
}

/// Returns the first path that is at a base path or below it.
fn hidden_route<'p>(base: &str, mut paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
    let base: Vec<&str> = base.split('/').skip(1).collect();
    let is_hidden = |path: &&str| {
        let mut segments = path.split('/').skip(1);
        // A parameter for the rest of a path is its last segment.
        let mut rest = false;
        base.iter().all(|of_base| {
            rest || segments.next().is_some_and(|it| {
                rest = it.starts_with("{*");
                it == *of_base || it.starts_with('{')
            })
        })
    };
    paths.find(|it| !base.is_empty() && is_hidden(it))
}

/// The document of all routes, whatever the address has of them.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::write(&declared()));

const PROBE: Requirement = Requirement::Probe;
const PUBLIC: Requirement = Requirement::Public;
const READ: Requirement = Requirement::Role(Role::Read);
const WRITE: Requirement = Requirement::Role(Role::Write);
const OPERATE: Requirement = Requirement::Role(Role::Operate);
const CLASSIFY_NODE: Requirement = Requirement::NodeInPath(Role::Classify);
const READ_NODE: Requirement = Requirement::NodeInPath(Role::Read);
const CHECK_IN: Requirement = Requirement::NodeInBody(Role::CheckIn);

/// Returns all routes without their handlers.
pub(super) fn declared() -> Vec<Route> {
    routes(RouteSet::Whole).declared().cloned().collect()
}

/// Returns the routes of an address.
pub(super) fn routes(set: RouteSet) -> Routes {
    let below = Routes::below;
    let probes = probes(below(""));
    match set {
        RouteSet::Whole => probes.merge(public()).merge(operator(below(""), READ)),
        RouteSet::Public => probes.merge(public()).without(&operator(below(""), READ)),
        // Callers who can reach the address for monitoring may scrape it.
        RouteSet::Admin => probes.merge(operator(below(""), PUBLIC)),
    }
}

/// Probes and status, which every address has.
fn probes(routes: Routes) -> Routes {
    routes
        .get("/livez", PROBE, service_status::livez)
        .get("/readyz", PROBE, service_status::readyz)
        .get("/openapi.json", PUBLIC, async || service_status::openapi(&DOCUMENT))
        .get("/controller/status", READ, controller::status)
        .get("/controller/commits", READ, controller::commits)
        .get("/controller/commits/{*revision}", READ, controller::commit)
        .get("/controller/diff/{base}/{head}", READ, diff::diff)
        .get("/controller/query", READ, rule_query::query)
        // It changes nothing: a long rule does not fit into a URL.
        .post("/controller/query", READ, rule_query::query_by_body)
        .get("/controller/trends", READ, trends::trends)
        .get("/controller/node-counts", READ, node_counts::nodes)
        .get("/controller/group-members", READ, node_counts::groups)
        .get("/controller/nodes", READ, nodes::list)
        .get("/controller/nodes/{name}", READ_NODE, nodes::one)
        // An agent is not told who changed what, nor the rules of groups that it is not in.
        .get("/controller/nodes/{name}/history", READ, nodes::history)
        .get("/controller/nodes/{name}/blame", READ, blame::blame)
        .get("/controller/nodes/{name}/values", READ_NODE, node_values::values)
        .get("/controller/nodes/{name}/enc", READ_NODE, node_values::enc)
        .get("/controller/nodes/{name}/membership", READ, node_values::membership)
}

/// Routes for nodes, people and forges.
fn public() -> Routes {
    classifier(Routes::below(""))
        .merge(classifier(Routes::below("/classifier-api")))
        // Puppet Server, Hiera, and the clients of Foreman
        .get("/enc/{certname}", CLASSIFY_NODE, enc::without_facts)
        .post("/enc/{certname}", CLASSIFY_NODE, enc::with_facts)
        .get("/node/{certname}", CLASSIFY_NODE, enc::for_foreman)
        .post("/api/hosts/facts", CHECK_IN, enc::upload_facts)
        .get("/hiera/{certname}", CLASSIFY_NODE, enc::hiera)
        .post("/hiera/{certname}", CLASSIFY_NODE, enc::hiera_with_facts)
        // Puppet's status API
        .get("/status/v1/services", PUBLIC, service_status::services)
        .get("/status/v1/services/{service}", PUBLIC, service_status::one_service)
        .get("/status/v1/simple", PUBLIC, service_status::simple)
        .get("/status/v1/simple/{service}", PUBLIC, service_status::simple_service)
        .post("/webhook/{provider}", Requirement::Signature, webhook::receive)
}

/// Routes for operators and their monitoring.
fn operator(routes: Routes, scrape: Requirement) -> Routes {
    routes
        .get("/metrics", scrape, service_status::metrics)
        .post("/controller/reconcile", OPERATE, controller::reconcile)
        .post("/controller/pin", OPERATE, controller::pin)
        .post("/controller/resume", OPERATE, controller::resume)
        .delete("/controller/nodes/{name}", OPERATE, nodes::forget)
}

/// The classifier API of Puppet Enterprise.
fn classifier(routes: Routes) -> Routes {
    writes_of_groups(routes)
        .get("/v1/classified/nodes/{name}", CLASSIFY_NODE, classify::v1_without_facts)
        .post("/v1/classified/nodes/{name}", CLASSIFY_NODE, classify::v1)
        .get("/v2/classified/nodes/{name}", CLASSIFY_NODE, classify::v2_without_facts)
        .post("/v2/classified/nodes/{name}", CLASSIFY_NODE, classify::v2)
        // The answer shows the facts that are kept of a node.
        .get("/v1/classified/nodes/{name}/explanation", READ_NODE, classify::explanation_by_name)
        .post("/v1/classified/nodes/{name}/explanation", CLASSIFY_NODE, classify::explanation)
        .get("/v1/groups", READ, groups::list)
        .get("/v1/groups/{id}", READ, groups::one)
        .get("/v1/groups/{id}/rules", READ, groups::rules)
        .get("/v1/groups/{id}/nodes", READ, group_nodes::list)
        .get("/v1/group-children/{id}", READ, groups::children)
        // They change nothing, whatever their method.
        .post("/v1/rules/translate", READ, groups::translate)
        .post("/v1/validate/group", READ, validate::group)
        .get("/v1/classes", READ, environments::classes)
        .get("/v1/environments", READ, environments::environments)
        .get("/v1/environments/{environment}", READ, environments::environment)
        .get("/v1/environments/{environment}/classes", READ, environments::environment_classes)
        .get(
            "/v1/environments/{environment}/classes/{class}",
            READ,
            environments::environment_class,
        )
        .get("/v1/last-class-update", READ, update_classes::last)
        .get("/v1/nodes", READ, check_ins::list)
        .get("/v1/nodes/{name}", READ, check_ins::one)
}

/// The part of the classifier API that writes.
fn writes_of_groups(routes: Routes) -> Routes {
    routes
        .post("/v1/groups", WRITE, writes::create)
        .put("/v1/groups/{id}", WRITE, writes::put)
        .post("/v1/groups/{id}", WRITE, writes::edit)
        .delete("/v1/groups/{id}", WRITE, writes::delete)
        .post("/v1/groups/{id}/pin", WRITE, writes::pin)
        .post("/v1/groups/{id}/unpin", WRITE, writes::unpin)
        .post("/v1/commands/unpin-from-all", WRITE, writes::unpin_from_all)
        .post("/v1/import-hierarchy", WRITE, writes::import_hierarchy)
        .put("/v1/environments/{environment}", WRITE, writes::put_environment)
        .delete("/v1/environments/{environment}", WRITE, writes::delete_environment)
        .post("/v1/update-classes", WRITE, update_classes::update)
}

#[cfg(test)]
mod tests;
