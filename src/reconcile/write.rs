//! Writes through the API: each becomes a commit on the tip of the branch.
//!
//! One thread takes the writes that wait, in order; each is applied to what the one before it left,
//! validated as a whole, and committed. All of them are pushed at once, by compare and swap; where
//! another push came first, they are applied again to the new tip. Where no push would find that out, since nothing is to
//! be pushed or a proposal has a branch of its own, the remote is asked whether the tip is its newest commit. Clients get their answers when the commit is at the remote and live here. A crash leaves objects that no ref names, or a commit at the
//! remote that the next fetch finds; a client without an answer sends its request again.

mod applier;
mod batch;
mod idempotency;
mod message;
mod opener;
mod planner;
mod proposer;
mod queue;
mod receipt;
mod request;
mod writer;

pub(super) use planner::WritePlanner;
pub use request::{RightsCheck, WriteError, WriteMode, WriteRequest, WriteSettings, Written};
pub use writer::Writer;
pub(super) use writer::WriterParts;
