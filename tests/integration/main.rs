//! Tests of the program as a whole, in one binary.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::string_slice,
    reason = "tests may stop at the first surprise and read files"
)]

mod blame;
mod chart;
mod ci;
mod classes;
mod commands;
mod conflicts;
mod conformance;
mod controller;
mod daemon;
mod details;
mod diagnostics;
mod diff;
mod enc;
mod follow;
mod forge;
mod formats;
mod git;
mod guides;
mod history;
mod hub;
mod init;
mod java_regex;
mod layering;
mod monitoring;
mod mtls;
mod packages;
mod postgres;
mod privacy;
mod program;
mod puppet;
mod puppetdb;
mod readme;
mod reads;
mod reference;
mod replicas;
mod replicas_store;
mod repository;
mod schemas;
mod settings;
mod snapshot;
mod table;
mod tests;
mod threats;
mod tidy;
mod wire;
mod writes;

#[path = "../../benches/world/mod.rs"]
mod world;
