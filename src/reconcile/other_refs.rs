//! Fetching the refs beside the watched one, in a thread of its own: they may be large, slow or broken,
//! and the watched one is followed all the same.

use std::sync::Arc;
use std::time::Duration;

use super::pull_requests::PullRequestChecker;
use super::shared_state::SharedState;
use super::source::Source;
use super::state::ReconcileState;
use super::status::Reason;
use super::trigger::Trigger;
use crate::git::{FetchedOthers, Mirror, SkippedRef};
use crate::priority;
use crate::wording::first_sentences;

/// How many refs the message of the condition names.
const NAMED: usize = 3;

/// How many characters of a name are shown.
const SHOWN: usize = 80;

/// Fetches the refs beside the watched one.
#[derive(Debug)]
pub(super) struct OtherRefs {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    /// Checks the heads of pull requests among them.
    pub(super) pull_requests: Option<Arc<PullRequestChecker>>,
}

impl OtherRefs {
    /// Requests a fetch of them if some have moved, or failed and are due again.
    pub(super) fn request(&self) {
        if self.source.mirror().is_some_and(Mirror::needs_others) {
            self.state.lock().other_refs_requested = true;
            self.state.notify();
        }
    }

    /// Fetches them whenever it is requested or one that failed is due again, until the daemon stops.
    pub(super) fn run(&self) {
        let Some(mirror) = self.source.mirror() else { return };
        priority::yield_to_requests();
        let mut until_retry = None;
        while self.wait(until_retry) {
            let fetched = mirror.fetch_others();
            // Where the remote cannot be reached, the next successful fetch of the branch tries again.
            until_retry = fetched.is_ok().then(|| mirror.until_retry()).flatten();
            match fetched {
                Ok(FetchedOthers { skipped, watched_moved }) => {
                    let is_pin_unsettled = {
                        let mut state = self.state.lock();
                        state.skipped_refs = in_short(&skipped);
                        state.is_pin_unsettled()
                    };
                    if watched_moved || is_pin_unsettled {
                        self.state.request_fetch(Trigger::Poll);
                    }
                }
                // The end interrupts it, and the next start fetches them.
                Err(_) if self.state.lock().stopping => return,
                Err(error) => {
                    let message = format!("other refs are not fetched: {error}");
                    tracing::warn!("{message}");
                    self.state.lock().skipped_refs = Some((error.failure.into(), message));
                }
            }
            if let Some(pull_requests) = &self.pull_requests {
                pull_requests.request();
            }
        }
    }

    /// Waits for a request, or until one that failed is due again; returns whether to go on. Blocking.
    fn wait(&self, until_retry: Option<Duration>) -> bool {
        let waits = |it: &mut ReconcileState| !it.stopping && !it.other_refs_requested;
        let mut state = match until_retry {
            None => self.state.wait_while(waits),
            Some(longest) => self.state.wait_while_for(longest, waits),
        };
        state.other_refs_requested = false;
        !state.stopping
    }
}

/// Returns reason and message of the condition.
fn in_short(skipped: &[SkippedRef]) -> Option<(Reason, String)> {
    let reason = skipped.first()?.failure.into();
    let shown = |it: &SkippedRef| {
        let name: String = it.name.chars().take(SHOWN).collect();
        format!("`{name}` ({})", it.message)
    };
    let named = first_sentences(skipped.iter().map(shown), NAMED, "; ");
    Some((reason, format!("refs that are not fetched: {named}")))
}
