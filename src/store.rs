//! Check-ins: the latest classification request of each node.
//!
//! They are notes, not state: losing some costs an answer to "which nodes are there", never a
//! classification. So they are written behind the request, many at a time, and a disk that is full
//! or slow holds up nobody.

mod check_ins;

pub use check_ins::{CheckIn, CheckIns, Received, StoreError};
