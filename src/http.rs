//! The daemon's HTTP interface: the classifier API, the ENC, Hiera, status and controller.

mod access;
mod answer;
mod body;
mod check_ins;
mod classify;
mod compute;
mod controller;
mod diff;
mod enc;
mod error;
mod groups;
mod json_list;
mod known;
mod maintenance;
mod replies;
mod router;
mod server;
mod service_status;
mod streamed;
mod update_classes;
mod validate;
mod webhook;
mod writes;

pub use access::{Access, AccessError, AllowedHosts, Host, HostError, TokensError};
pub use known::{Elsewhere, FactsPolicy};
pub use replies::Replies;
pub use router::{App, Face, router};
pub use server::{CrlPolicy, Door, Endpoint, OnGap, Serving, Tls, TlsError, TlsFiles, serve};
pub use update_classes::{PullError, Pulled, PuppetServer};
pub use webhook::Webhooks;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use webhook::fuzz_delivery;
