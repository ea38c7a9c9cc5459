//! Keeping the mirror small.

use std::sync::Arc;
use std::time::Duration;

use super::shared_state::SharedState;
use super::source::Source;
use crate::priority;

/// How often the packs of the mirror are counted.
const INTERVAL: Duration = Duration::from_secs(30);

/// Joins the packs that fetches leave in the mirror.
#[derive(Debug)]
pub(super) struct Repacker {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
}

impl Repacker {
    /// Joins packs until the daemon stops.
    pub(super) fn run(&self) {
        let Some(mirror) = self.source.mirror() else { return };
        priority::yield_to_requests();
        while !self.state.stops_within(INTERVAL) {
            match mirror.join_packs() {
                Ok(0) => {}
                Ok(packs) => tracing::info!(packs, "packs of the mirror are joined"),
                Err(error) => tracing::warn!(%error, "joining the packs of the mirror failed"),
            }
        }
    }
}
