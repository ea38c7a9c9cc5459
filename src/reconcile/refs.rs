//! Fetching the refs beside the watched one, in a thread of its own: they may be large, slow or broken,
//! and the watched one is followed all the same.

use std::sync::PoisonError;

use super::controller::Controller;
use super::settings::Target;
use super::status::Reason;
use crate::git::SkippedRef;

/// How many refs the message of the condition names.
const NAMED: usize = 3;

/// How many characters of a name are shown.
const SHOWN: usize = 80;

impl Controller {
    /// Has the refs beside the watched one fetched if some have moved.
    pub(super) fn want_others(&self) {
        let Target::Remote(mirror) = &self.settings.target else { return };
        if mirror.others_moved() {
            self.state().other_refs_requested = true;
            self.notify();
        }
    }

    /// Fetches the refs beside the watched one whenever they have moved, until stopped.
    pub(super) fn keep_others(&self) {
        let Target::Remote(mirror) = &self.settings.target else { return };
        loop {
            let waited = self
                .changed
                .wait_while(self.state(), |it| !it.stopping && !it.other_refs_requested);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.stopping {
                return;
            }
            state.other_refs_requested = false;
            drop(state);
            match mirror.fetch_others() {
                Ok(skipped) => self.state().skipped_refs = in_short(&skipped),
                // The next look that goes well tries again.
                Err(error) => {
                    let message = format!("other refs are not fetched: {error}");
                    tracing::warn!("{message}");
                    self.state().skipped_refs = Some((error.failure.into(), message));
                }
            }
            self.request_head_checks();
        }
    }
}

/// Returns reason and message of the condition.
fn in_short(skipped: &[SkippedRef]) -> Option<(Reason, String)> {
    let reason = skipped.first()?.failure.into();
    let shown = |it: &SkippedRef| {
        let name: String = it.name.chars().take(SHOWN).collect();
        format!("`{name}` ({})", it.message)
    };
    let named: Vec<String> = skipped.iter().take(NAMED).map(shown).collect();
    let more = match skipped.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some((reason, format!("refs that are not fetched: {}{more}", named.join("; "))))
}
