//! The daemon's HTTP interface: the classifier API, the ENC, Hiera, status and controller.

mod access;
mod blocking;
mod body;
mod check_in_recorder;
mod check_ins;
mod classify;
mod compute;
mod controller;
mod diff;
mod enc;
mod enc_cache;
mod environments;
mod error;
#[cfg(test)]
mod fixture;
mod group_nodes;
mod groups;
mod json_list;
mod node_lookup;
mod node_request;
mod observe;
mod openapi;
mod query;
mod router;
mod routes;
mod server;
mod service_status;
mod snapshot_context;
mod state;
mod streamed;
pub mod types;
mod update_classes;
mod validate;
mod webhook;
mod writes;

pub use access::{Access, AllowedHosts, Host};
pub use enc_cache::EncCache;
pub use node_lookup::FactsPolicy;
pub use router::{RouteSet, router};
pub use server::{CrlPolicy, Endpoint, Listener, OnGap, ServeOptions, Tls, TlsFiles, serve};
pub use state::Services;
pub use update_classes::ClassUpdater;
pub use webhook::Webhooks;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use webhook::fuzz_delivery;
