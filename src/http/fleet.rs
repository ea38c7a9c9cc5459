//! The nodes that have checked in, with the facts and trusted data that some rules mention, a batch at a time:
//! a fleet of any size takes the memory of two batches.

mod rows;
mod stored_nodes;
mod survey;

pub(super) use rows::UseRows;
pub(super) use stored_nodes::{ReadNode, read};
pub(super) use survey::Surveyor;
