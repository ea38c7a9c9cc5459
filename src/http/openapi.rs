//! The document of all routes, generated from their declarations.
//!
//! Each handler says beside it what it takes and answers (`#[utoipa::path]`); the router says which role a
//! route needs. What all routes of a kind share is added here: the role and its errors, the header that
//! names the commit, the addresses, the shared parameters.

pub(super) mod errors;
pub(super) mod parameters;
mod requests;
pub(super) mod responses;

use std::collections::BTreeMap;

use axum::http::Method;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Components, OpenApi, Ref, RefOr, Required, Server};
use utoipa::{IntoResponses as _, OpenApi as _, ToSchema as _};

use self::errors::{AccessErrors, merge};
use super::access::Role;
use super::routes::Route;
use super::types::{Error, Proposed};
use super::{
    blame, check_ins, classify, controller, diff, enc, environments, group_nodes, groups,
    node_counts, node_values, nodes, rule_query, service_status, trends, update_classes, validate,
    webhook, writes,
};
use crate::model::CommitId;

/// Writes the document of all routes.
pub(super) fn write(declared: &[Route]) -> String {
    // What utoipa made is always written.
    let mut document = serde_json::to_value(document(declared)).unwrap_or_default();
    requests::publish(&mut document);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Every handler, in the order of the document.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Clade",
        version = env!("CARGO_PKG_VERSION"),
        description = "GitOps node classifier for Puppet and OpenVox. Every answer comes from exactly one commit and names it in `X-Clade-Commit`. Every error has the body `{kind, msg, details}`. `x-clade-role` is the role that a caller needs where access is configured. What a classification request says of a node is kept only for a caller with the role `check-in`, or for the node itself by its certificate.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "Classification"),
        (name = "Groups"),
        (name = "Writes"),
        (name = "Classes and environments"),
        (name = "Check-ins"),
        (name = "Puppet Server and Hiera"),
        (name = "Controller"),
        (name = "Status"),
        (name = "Webhooks"),
    ),
    paths(
        classify::v1,
        classify::v1_without_facts,
        classify::v2,
        classify::v2_without_facts,
        classify::explanation,
        classify::explanation_by_name,
        groups::list,
        writes::create,
        groups::one,
        writes::put,
        writes::edit,
        writes::delete,
        groups::rules,
        group_nodes::list,
        groups::children,
        groups::translate,
        validate::group,
        writes::pin,
        writes::unpin,
        writes::unpin_from_all,
        writes::import_hierarchy,
        environments::classes,
        environments::environments,
        environments::environment,
        writes::put_environment,
        writes::delete_environment,
        environments::environment_classes,
        environments::environment_class,
        update_classes::last,
        update_classes::update,
        check_ins::list,
        check_ins::one,
        enc::without_facts,
        enc::with_facts,
        enc::for_foreman,
        enc::upload_facts,
        enc::hiera,
        enc::hiera_with_facts,
        service_status::services,
        service_status::one_service,
        service_status::simple,
        service_status::simple_service,
        service_status::livez,
        service_status::readyz,
        service_status::metrics,
        service_status::openapi,
        controller::status,
        controller::commits,
        controller::commit,
        diff::diff,
        rule_query::query,
        rule_query::query_by_body,
        nodes::list,
        nodes::one,
        nodes::history,
        blame::blame,
        node_counts::nodes,
        node_counts::groups,
        trends::trends,
        node_values::values,
        node_values::enc,
        node_values::membership,
        nodes::forget,
        controller::reconcile,
        controller::pin,
        controller::resume,
        webhook::receive,
    ),
    components(schemas(Error, CommitId, Proposed)),
)]
struct Handlers;

/// Returns the document of routes.
fn document(declared: &[Route]) -> OpenApi {
    let mut document = Handlers::openapi();
    document.servers = Some(vec![Server::new("/")]);
    let components = document.components.get_or_insert_with(Components::new);
    for (name, scheme) in schemes() {
        components.add_security_scheme(name, scheme);
    }
    document.security = Some(
        schemes().map(|(name, _)| SecurityRequirement::new(name, Vec::<String>::new())).into(),
    );
    let mut shared = BTreeMap::new();
    for (path, item) in &mut document.paths.paths {
        if path.starts_with("/v1/") || path.starts_with("/v2/") {
            item.servers = Some(addresses());
        }
        for (method, operation) in operations(item) {
            let role = declared.iter().find(|it| it.method == method && it.is_at(path));
            complete(operation, role.and_then(|it| it.requirement.role()).map(Role::as_str));
            share_parameters(operation, &mut shared);
        }
    }
    components.parameters = shared;
    document
}

/// Where the classifier API stands.
fn addresses() -> Vec<Server> {
    let mut below = Server::new("/classifier-api");
    below.description = Some("As Puppet Enterprise has it".to_owned());
    vec![Server::new("/"), below]
}

/// How callers authenticate.
fn schemes() -> [(&'static str, SecurityScheme); 4] {
    let key = |value| SecurityScheme::ApiKey(value);
    [
        ("token", key(ApiKey::Header(ApiKeyValue::new("X-Authentication")))),
        ("bearer", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer))),
        (
            "certificate",
            SecurityScheme::MutualTls { description: None, deprecated: None, extensions: None },
        ),
        ("query", key(ApiKey::Query(ApiKeyValue::new("token")))),
    ]
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all = [
        (Method::GET, item.get.as_mut()),
        (Method::PUT, item.put.as_mut()),
        (Method::POST, item.post.as_mut()),
        (Method::DELETE, item.delete.as_mut()),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation?)))
}

/// Adds to an operation what follows from its role and its parameters.
fn complete(operation: &mut Operation, role: Option<&str>) {
    // Doc comments are sentences, titles are not.
    if let Some(summary) = &mut operation.summary {
        summary.truncate(summary.trim_end_matches('.').len());
    }
    match role {
        Some(role) => {
            let role = ExtensionsBuilder::new().add("x-clade-role", role).build();
            operation.extensions = Some(role);
            let mut errors = AccessErrors::responses();
            errors.append(&mut operation.responses.responses);
            operation.responses.responses = errors;
        }
        None => operation.security = Some(Vec::new()),
    }
    // An empty body is read as no body.
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        body.required = Some(Required::False);
    }
    merge(&mut operation.responses.responses);
    let parameters = operation.parameters.iter().flatten();
    let mut names = parameters.filter_map(|it| match it {
        RefOr::T(parameter) => Some(parameter.name.as_str()),
        RefOr::Ref(_) => None,
    });
    let commit = match role {
        _ if names.any(|it| it == COMMIT) => Some("The commit that answered"),
        Some("write") => Some("The commit that the write made"),
        _ => None,
    };
    let summary = operation.summary.clone().unwrap_or_default();
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            response.description.clone_from(&summary);
        }
        let Some(said) = commit else { continue };
        if matches!(status.as_str(), "200" | "201" | "204" | "303") {
            let schema = Ref::from_schema_name(CommitId::name());
            let header = HeaderBuilder::new().description(Some(said)).schema(Some(schema)).build();
            response.headers.insert(COMMIT.to_owned(), header.into());
        }
    }
}

const COMMIT: &str = "X-Clade-Commit";

/// Names the parameters of query and headers instead of repeating them.
fn share_parameters(operation: &mut Operation, shared: &mut BTreeMap<String, RefOr<Parameter>>) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(declared) = parameter else { continue };
        if declared.parameter_in == ParameterIn::Path {
            continue;
        }
        let name = if declared.name == COMMIT { "pinned" } else { &declared.name }.to_owned();
        let reference = Ref::new(format!("#/components/parameters/{name}"));
        let declared = std::mem::replace(parameter, RefOr::Ref(reference));
        shared.insert(name, declared);
    }
}
