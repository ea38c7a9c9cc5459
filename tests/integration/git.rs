//! The git adapter against real repositories, real servers, and servers that misbehave.

mod mirror;
mod reading;
