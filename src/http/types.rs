//! What goes over the wire: every body of a request and of an answer, with the kinds of errors.
//!
//! The daemon writes these types, `clade` reads them, and `openapi.json` is generated from them. A field
//! that an older daemon does not send, or that a newer one adds, does not keep a client from reading the rest.
//!
//! Some answers are written elsewhere, since they must be fast or are documents of the core: classified
//! documents, explanations, comparisons. `tests/integration/wire.rs` reads their bytes as the types here
//! and compares what these write.

mod blame;
mod check_in;
mod classification;
mod commit;
mod controller;
mod diff;
mod environment;
mod error;
mod error_kind;
mod finding;
mod group;
mod node;
mod node_counts;
mod node_values;
mod replica;
mod rule_query;
mod schema;
mod service;
mod status;
mod stored_change;
mod stored_node;
mod trends;
mod violation;
mod write;

pub use blame::{BlamedCommit, BlamedPullRequest, BlamedValue};
pub use check_in::{CheckIn, CheckInEntry};
pub use classification::{
    Classified, ClassifiedV2, ConflictDetails, Difference, EncDocument, Explanation,
    FinalClassification, GroupRef, IndividualClassification, Sourced, Sources,
};
pub use commit::{Commit, CommitState, Stage};
pub use controller::{Delivery, DeliveryAction, OperatorRequest, PinRequest, Pinned, Requested};
pub use diff::{Diff, DiffSide};
pub use environment::{Class, Environment, LastClassUpdate};
pub use error::{
    Age, Error, EvaluationFailure, FailedGroup, MalformedBody, NotInEffect, RemoteWords,
    UnexpectedResponse,
};
pub use error_kind::ErrorKind;
pub use finding::{Finding, RelatedPlace};
pub use group::{Group, GroupNodes, GroupRules, GroupTree, Query, TranslatedRule};
pub(in crate::http) use node::shape;
pub use node::{FactsUpload, NodeBody, StoredFacts};
pub use node_counts::{CommitNodes, CountedNodes, GroupMembers};
pub use node_values::{LocatedValue, Membership, MembershipRule};
pub use replica::{Replica, StoreInfo, WebhookDeliveries};
pub use rule_query::{
    MatchedNode, RuleMatches, RulePath, RuleQuery, UndecidedNode, UndecidedNodes,
};
pub use schema::Values;
pub use service::{DetailLevel, Service, ServiceState};
pub use status::{
    ActiveCommit, Condition, ConditionStatus, FailedCommit, ObservedCommit, PinnedBy, Remote,
    Repository, Status,
};
pub use stored_change::{AnswerChange, ChangeCommit, FactChange, StoredChange};
pub use stored_node::{
    NodeAnswer, NodeConflict, NodeFailure, NodePage, NodeSummary, StoredGroup, StoredNode,
};
pub use trends::{CheckInSample, CommitSample, DayOfChanges, Trends};
pub(in crate::http) use violation::SchemaViolation;
pub use write::{
    NodesRequest, Proposed, ProposedBranch, ProposedKind, Unpinned, UnpinnedGroup, UnpinnedNode,
};
