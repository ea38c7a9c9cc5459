//! The git adapter against real repositories, real servers, and servers that misbehave.

mod faults;
mod mirror;
mod reading;
mod server;
mod transports;
