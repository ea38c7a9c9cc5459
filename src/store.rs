//! Check-ins: the latest classification request of each node.
//!
//! A check-in beside a classification is written behind the answer, which it neither delays nor
//! fails. Facts that a client was promised to have stored are on disk before the client gets its
//! answer. A store that fails is opened again with backoff; until then reads are errors, never
//! "this node is unknown". A file that is damaged is put aside, never deleted.
//!
//! [`CheckIns`] is all that the rest of the crate sees; `database` alone knows how rows are kept.

mod check_in;
mod check_ins;
mod database;
mod error;
mod file;
mod opening;
mod pending;
mod queue;
mod view;
mod writer;

pub use check_in::{CheckIn, ListedCheckIn, Noted, Received, Stored};
pub use check_ins::CheckIns;
pub(crate) use check_ins::{LARGE_ROW, after};
pub use database::StoreLimits;
pub use error::{StoreError, StoreFault};
pub use file::{StoreHealth, StoreSettings};
pub use view::{
    AnswerSummary, FactChange, NodeFilter, NodePage, NodeRange, NodeSummary, StoredChange,
    StoredNode,
};
