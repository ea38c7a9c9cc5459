//! The daemon's HTTP interface: the classifier API, the ENC, Hiera, status and controller.

mod answer;
mod body;
mod classify;
mod controller;
mod error;
mod groups;
mod maintenance;
mod router;
mod server;
mod service_status;
mod validate;

pub use router::{App, router};
pub use server::serve;
