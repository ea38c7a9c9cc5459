//! The git adapter against real repositories, real servers, and servers that misbehave.

mod faults;
mod mirror;
mod reading;
pub(crate) mod server;
mod transports;
