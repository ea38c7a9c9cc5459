//! The git adapter against real repositories, real servers, and servers that misbehave.

mod faults;
mod grafts;
mod malformed;
mod mirror;
mod reading;
mod ref_storage;
mod refetching;
pub(crate) mod server;
mod skipped;
mod transports;

/// Counts within the budget that holds unless settings say otherwise.
pub(crate) fn meter() -> clade::internals::model::Meter {
    clade::internals::model::Meter::new(clade::internals::model::Budget::DEFAULT)
}
