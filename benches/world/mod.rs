//! A seeded world: estates of any size as files, and nodes with facts as facter gives them.
//!
//! The same seed gives the same world. Benches measure in it, and tests compare in it.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each program uses a part of it"
)]

pub mod estates;
pub mod nodes;
pub mod odd;

/// How large the world around a number of groups is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Groups, the root group counted.
    pub groups: usize,
    pub roles: usize,
    pub environments: usize,
    pub clusters: usize,
    pub datacenters: usize,
    pub nodes: usize,
}

impl Scale {
    pub fn of(groups: usize) -> Self {
        Self {
            groups,
            roles: (groups / 6).clamp(4, 20_000),
            environments: (groups / 20).clamp(3, 5_000),
            clusters: (groups / 10).clamp(3, 10_000),
            datacenters: (groups / 400).clamp(3, 40),
            nodes: (groups * 5).clamp(100, 200_000),
        }
    }
}
