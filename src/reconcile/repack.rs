//! Keeping the mirror small.

use std::sync::PoisonError;
use std::time::Duration;

use super::controller::Controller;
use super::settings::Target;

/// How often it is looked whether the mirror has many packs.
const INTERVAL: Duration = Duration::from_secs(30);

impl Controller {
    /// Joins the packs that fetches leave, until the controller is stopped.
    pub(super) fn keep_tidy(&self) {
        let Target::Remote(mirror) = &self.settings.target else { return };
        loop {
            let waited = self.changed.wait_timeout_while(self.state(), INTERVAL, |it| !it.stopping);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if state.stopping {
                return;
            }
            drop(state);
            match mirror.join_packs() {
                Ok(0) => {}
                Ok(packs) => tracing::info!(packs, "packs of the mirror are joined"),
                Err(error) => tracing::warn!(%error, "packs of the mirror are not joined"),
            }
        }
    }
}
