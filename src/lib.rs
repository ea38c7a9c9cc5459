//! Clade: a GitOps node classifier for Puppet and OpenVox.
//!
//! One commit of a git repository of node groups is compiled into one immutable
//! [`snapshot`], and every question is answered from exactly one of them. The
//! modules below are in reading order; the first block is pure (no IO, no clock,
//! no async), the second adapts it to the world. `tests/integration/layering.rs`
//! holds the table of which module may use which.

pub mod java_regex;

pub mod model;

pub mod rule;

pub mod hierarchy;

pub mod classification;

pub mod document;

pub mod puppet;

pub mod diagnostic;

pub mod validation;

pub mod changeset;

pub mod history;

pub mod snapshot;

pub mod impact;

mod process;

pub mod git;

pub mod forge;

pub mod reconcile;

pub mod facts;

pub mod client;

pub mod puppetdb;

pub mod puppet_server;

pub mod store;

pub mod http;

pub mod cli;

pub mod config;

pub mod telemetry;
