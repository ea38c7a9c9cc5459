//! Check-ins: the latest classification request of each node.
//!
//! A check-in beside a classification is written behind the answer, which it neither delays nor
//! fails. Facts that a client was promised to have stored are on disk before the client gets its
//! answer. A store that fails is opened again with backoff; until then reads are errors, never
//! "this node is unknown". A file that is damaged is put aside, never deleted.
//!
//! [`CheckIns`] is all that the rest of the crate sees. The database is SQLite or PostgreSQL, with the same
//! statements (`sql`, `schema`): a thread takes what waits (`queue`), computes all that can be computed
//! before a transaction (`prepared`), and writes it in batches (`batch`).

mod batch;
mod beside;
mod changes;
mod check_in;
mod check_ins;
mod compression;
mod counts;
mod cursor;
mod database;
mod error;
mod file;
mod forgotten;
mod former;
mod generation;
mod housekeeping;
mod listing;
mod location;
mod log_scan;
mod node_name;
mod node_order;
mod on_disk;
mod opening;
mod pending;
mod prepared;
mod queue;
mod reading;
mod replicas;
mod row_text;
mod said;
mod scan;
mod schedule;
mod schema;
mod settings;
mod sql;
mod tally;
mod totals;
mod transition;
mod view;
mod writer;

pub(crate) use check_in::has_keys;
pub use check_in::{
    Answered, Certname, CheckIn, ListedCheckIn, Noted, NotedFacts, Received, Stored,
};
pub use check_ins::CheckIns;
pub(crate) use check_ins::{LARGE_ROW, after};
pub use counts::{FleetVersion, StoredNodeCounts};
pub use cursor::NodeCursor;
pub use database::StoreLimits;
pub use error::{StoreError, StoreFault};
pub use file::StoreHealth;
pub use location::{InvalidStoreLocation, StoreLocation};
pub(crate) use node_name::check_node_name;
pub use node_order::NodeOrder;
pub use replicas::{ChangedAnswers, ReplicaName, StoreSize, StoredReplica};
pub use said::SaidPart;
pub use scan::{ScanExtent, ScannedNode};
pub use settings::StoreSettings;
pub use view::{
    AnswerSummary, FactChange, NodeFilter, NodePage, NodeRange, NodeSummary, StoredChange,
    StoredNode,
};
