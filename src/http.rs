//! The daemon's HTTP interface: the classifier API of Puppet Enterprise, the ENC, Hiera's data, check-ins,
//! webhooks, and the controller's status and actions.
//!
//! # The way of a request
//!
//! 1. [`server`] accepts the connection, with TLS if that is configured, and bounds connections, memory and
//!    time. [`observe`] gives the request an id, counts it and logs it.
//! 2. [`router`](mod@router) has every route on one page, each with the role that it requires ([`routes`]). [`dispatch`]
//!    finds the route by the segments of the path ([`route_tree`]), [`admission`] checks the role before the handler is
//!    called, and [`access`] knows who the caller is and what it may do.
//! 3. Extractors take from the request what a handler names: the services ([`state`]), the caller
//!    ([`request_context`]), the snapshot that
//!    answers ([`snapshot_context`]), the node with what its certificate proves ([`node_request`]), the
//!    parameters of the path ([`path_parameter`]), the query ([`query`]). A handler reads the body itself, within limits ([`body`]).
//! 4. The handler, in a file for each resource: [`classify`], [`enc`] (with Hiera's data), [`groups`],
//!    [`group_nodes`], [`validate`], [`writes`], [`environments`], [`update_classes`], [`check_ins`],
//!    [`controller`], [`node_counts`], [`trends`], [`diff`], [`rule_query`], [`blame`], [`node_values`], [`service_status`],
//!    [`webhook`]. The whole fleet is read by [`fleet`]. Facts that the request does not bring come from
//!    [`node_lookup`]. Writes go through [`writing`], which waits until the commit is live.
//! 5. Long work never holds the threads that answer: computations run in a lane ([`compute`]), what reads a
//!    disk or asks a server runs on threads that may block ([`blocking`]) until its client leaves
//!    ([`client_presence`]), and long lists are computed while they are sent ([`streamed`]).
//! 6. The answer is a type of [`types`] or an [`error`], and names the commit in `X-Clade-Commit`. [`openapi`]
//!    generates the document of all routes from handlers and types.

// Connections and middleware
mod observe;
mod server;

// Routes, and who may use them
mod access;
mod admission;
mod dispatch;
mod in_process;
mod request_schemas;
mod route_tree;
mod router;
mod routes;
mod state;

// What handlers take from a request
mod body;
mod node_request;
mod original_uri;
mod path_parameter;
mod query;
mod request_context;
mod snapshot_context;

// Handlers, by resource
mod blame;
mod check_ins;
mod classify;
mod controller;
mod diff;
mod enc;
mod environments;
mod group_nodes;
mod groups;
mod node_counts;
mod node_values;
mod nodes;
mod rule_query;
mod service_status;
mod trends;
mod update_classes;
mod validate;
mod webhook;
mod writes;

// What handlers share
mod blocking;
mod check_in_recorder;
mod client_presence;
mod compute;
mod decisions;
mod enc_cache;
mod explanation_limit;
mod fleet;
mod json_list;
mod json_tree;
mod known_node;
mod light_limit;
mod list_completion;
mod live_status;
mod node_conditions;
mod node_lookup;
mod privacy;
mod streamed;
mod writing;
mod yielding;

// What goes over the wire
mod error;
mod openapi;
pub mod types;

#[cfg(test)]
mod fixture;

pub(crate) use access::is_same_origin;
pub use access::{Access, AllowedHosts, Host, LoginWays, ProxyHeader, TrustedNetwork};
pub use dispatch::Dispatcher;
pub use enc_cache::EncCache;
pub use in_process::{AddressRoutes, Asker, InProcessApi, InProcessError, VisitorRights};
pub use live_status::LiveStatus;
pub use node_lookup::FactsPolicy;
pub use privacy::PrivacyPolicy;
pub(crate) use request_context::RequestId;
pub use router::{ConsolePages, RouteSet, check_base_path, router_with_pages, takes_pages};
pub use server::{CrlPolicy, Endpoint, Listener, OnGap, ServeOptions, Tls, TlsFiles, serve};
pub(crate) use snapshot_context::name_commit;
pub use state::Services;
pub use update_classes::ClassUpdater;
pub use webhook::Webhooks;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use webhook::fuzz_delivery;
pub use yielding::yielding;
