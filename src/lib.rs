//! Clade: a GitOps node classifier for Puppet and OpenVox.
//!
//! One commit of a git repository of node groups becomes one immutable [`Snapshot`], and every request is
//! answered from exactly one of them. What is listed here is the library: from files to classifications,
//! without IO, clock or threads of its own.
//!
//! ```
//! use clade::{Node, Outcome, Search, SourceContent, SourceFile, classify, validate};
//!
//! let group = "name: All Nodes\nid: 00000000-0000-4000-8000-000000000000\nclasses:\n  motd: {}\n";
//! let file = SourceFile {
//!     path: "groups/all-nodes.yaml".into(),
//!     content: SourceContent::Bytes(group.as_bytes().into()),
//! };
//! let checked = validate(&[file], Search::Decisive);
//! let estate = checked.estate.expect("the group is valid");
//! let node = Node::named("web1.example.com".to_owned());
//! let Outcome::Classified(result) = classify(&estate, &node)?.outcome else { panic!("a conflict") };
//! assert!(result.classes.keys().any(|class| class.as_str() == "motd"));
//! # Ok::<(), clade::ClassificationError>(())
//! ```
//!
//! # Features
//!
//! - none: the library alone;
//! - `daemon`: git, the control loop, HTTP, stores and clients;
//! - `cli` (with `daemon`): the program.
//!
//! All modules are private, so that the compiler finds what is not used. `tests/integration/layering.rs` has
//! the table of which module may use which; they stand here in reading order, the pure ones first.
#![cfg_attr(
    not(feature = "cli"),
    expect(dead_code, unused_imports, reason = "the program uses more")
)]

mod byte_set;

mod json;

mod wording;

mod java_regex;

mod model;

mod rule;

mod hierarchy;

mod mentioned;

mod masking;

mod classification;

mod document;

mod puppet;

mod diagnostic;

mod json_schema;

mod validation;

mod changeset;

mod history;

mod snapshot;

mod answer;

mod age;

mod impact;

mod blame;

#[cfg(feature = "daemon")]
mod process;

#[cfg(feature = "daemon")]
mod config;

#[cfg(feature = "daemon")]
mod expected_panic;

#[cfg(feature = "daemon")]
mod telemetry;

#[cfg(feature = "daemon")]
mod git;

#[cfg(feature = "daemon")]
mod forge;

#[cfg(feature = "daemon")]
mod reconcile;

#[cfg(feature = "daemon")]
mod facts;

#[cfg(feature = "daemon")]
mod client;

#[cfg(feature = "daemon")]
mod puppetdb;

#[cfg(feature = "daemon")]
mod puppet_server;

#[cfg(feature = "daemon")]
mod priority;

#[cfg(feature = "daemon")]
mod store;

#[cfg(feature = "daemon")]
mod decision_log;
#[cfg(feature = "daemon")]
mod http;
#[cfg(feature = "daemon")]
mod overview;

#[cfg(feature = "daemon")]
mod console;

#[cfg(feature = "cli")]
mod cli;

#[cfg(test)]
mod computing_time;
#[cfg(test)]
#[path = "../tests/integration/table.rs"]
mod table;

pub use classification::{
    ClassificationError, Conflicts, Explanation, Final, Match, Outcome, classify,
};
pub use diagnostic::{Diagnostic, Kind, Severity};
pub use hierarchy::{Estate, Hierarchy};
pub use java_regex::{Pattern, PatternError};
pub use model::{
    ClassName, CommitId, Condition, Decimal, EnvironmentName, Group, GroupId, GroupIdError,
    Interpolation, Map, NameError, Node, Value,
};
pub use snapshot::Snapshot;
pub use validation::{Checked, Search, SourceContent, SourceFile, validate};

#[cfg(feature = "cli")]
pub use cli::run;

#[doc(hidden)]
pub mod internals;
