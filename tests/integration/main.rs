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

mod bad_input;
mod blame;
mod chart;
mod ci;
mod classes;
mod clones;
mod commands;
mod conflicts;
mod conformance;
mod console;
mod controller;
mod daemon;
mod details;
mod diagnostics;
mod diff;
mod directories;
mod enc;
mod follow;
mod forge;
mod formats;
mod git;
mod guides;
mod help;
mod history;
mod hub;
mod imports;
mod init;
mod java_regex;
mod layering;
mod lines;
mod local_nodes;
mod measures;
mod monitoring;
mod mtls;
mod own_schemas;
mod packages;
mod policies;
mod postgres;
mod privacy;
mod program;
mod proxies;
mod puppet;
mod puppetdb;
mod query;
mod readers;
mod readme;
mod reads;
mod reference;
mod replicas;
mod replicas_store;
mod repository;
mod schemas;
mod settings;
mod signals;
mod snapshot;
mod soak;
mod table;
mod tests;
mod threats;
mod tidy;
mod values;
mod visitors;
mod wire;
mod writes;
mod wrong_directories;

#[path = "../../benches/world/mod.rs"]
mod world;
