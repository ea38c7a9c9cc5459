//! The conditions of the status, computed from the state.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{Freshness, Progress, ReconcileState, Rewrite, Unrecovered, reason_of};
use crate::git::FetchFailure;
use crate::reconcile::clock::Now;
use crate::reconcile::policy::{OnRewrite, OnStale};
use crate::reconcile::status::{
    Condition, ConditionKind as Kind, ConditionStatus, Reason, RemoteState,
};

/// How long a fetch or a push may take before a condition says so.
const SLOW: Duration = Duration::from_secs(2);

/// A condition without the time of its last transition.
type Found = (Kind, ConditionStatus, Reason, String);

fn holds(kind: Kind, reason: Reason, message: String) -> Found {
    (kind, ConditionStatus::True, reason, message)
}

impl ReconcileState {
    /// Returns how fetching goes.
    pub(in crate::reconcile) fn remote(&self, now: Now) -> RemoteState {
        RemoteState {
            last_attempt: self.last_attempt,
            last_contact: self.last_contact_time(),
            last_change: self.last_change,
            staleness_seconds: self.staleness(now).as_secs(),
            consecutive_failures: self.failures,
            error: self.failure.as_ref().map(|(_, message)| message.clone()),
            expected: self.expected.iter().map(|it| it.commit).collect(),
        }
    }

    /// Notes which conditions hold, so that they begin when they begin and not when they are asked for.
    pub(in crate::reconcile) fn note_conditions(&mut self, now: Now) {
        self.conditions(now);
    }

    /// Returns the conditions; the time of a last transition stays while only the message changes.
    pub(in crate::reconcile) fn conditions(&mut self, now: Now) -> Vec<Condition> {
        let freshness = self.freshness(now);
        let mut fresh = BTreeMap::new();
        for (kind, status, reason, message) in self.found(freshness, now) {
            let before = self
                .conditions
                .get(&kind)
                .filter(|it| it.status == status && it.reason == reason)
                .map(|it| it.last_transition);
            let last_transition = before.unwrap_or(now.wall);
            fresh.insert(kind, Condition { kind, status, reason, message, last_transition });
        }
        self.conditions = fresh;
        self.conditions.values().cloned().collect()
    }

    fn found(&self, freshness: Freshness, now: Now) -> Vec<Found> {
        let mut all = vec![self.ready(freshness)];
        all.extend(self.of_candidate());
        all.extend(self.of_waiting());
        all.extend(self.slow(now));
        all.extend(self.of_remote());
        all.extend(self.of_history(freshness));
        all.extend(self.of_storage());
        all.extend(self.of_signature());
        all
    }

    /// Says which commit answers while another one does not.
    fn serving(&self) -> String {
        match &self.active {
            Some(active) => format!("still serving {}", active.commit),
            None => "no commit answers".to_owned(),
        }
    }

    fn of_candidate(&self) -> Option<Found> {
        let candidate = self.candidate.as_ref()?;
        let (commit, serving) = (candidate.commit, self.serving());
        // One that is built again since it could not be read stays rejected until it can.
        if let Some((failed, reason)) = candidate.failure() {
            let message = format!("{commit}: {}; {serving}", failed.in_short());
            return Some(holds(Kind::CandidateRejected, reason, message));
        }
        let is_being_built = matches!(candidate.progress, Progress::Pending | Progress::Building);
        let message = format!("{commit} is being built");
        is_being_built.then(|| holds(Kind::Reconciling, Reason::Building, message))
    }

    /// Says that a valid commit waits: the candidate, or one behind a candidate that is not valid.
    fn of_waiting(&self) -> Option<Found> {
        let commit = self.waiting()?;
        let (reason, why) = if self.pin.is_some() {
            (Reason::Pinned, "an operator pinned another; resume to follow the branch")
        } else if self.behind.is_some() {
            (Reason::OlderThanLive, "it is older than the commit that answers")
        } else {
            (Reason::OnRewriteHold, "the history was rewritten; resume to accept it")
        };
        let message = format!("{commit} waits: {why}; {}", self.serving());
        Some(holds(Kind::PromotionHeld, reason, message))
    }

    /// Returns the pushes and fetches that take long.
    fn slow(&self, now: Now) -> Vec<Found> {
        let is_slow = |it: &Instant| now.since(*it) >= SLOW;
        let pushing = self.pushing.filter(is_slow).map(|since| {
            let message = format!(
                "a push has been under way for {} s; other writes wait, answers do not",
                now.since(since).as_secs()
            );
            holds(Kind::PushStalled, Reason::Pushing, message)
        });
        let fetching = self.fetching.filter(is_slow).filter(|_| self.candidate.is_none());
        let fetching = fetching.map(|since| {
            let message = format!("fetching for {} s", now.since(since).as_secs());
            holds(Kind::Reconciling, Reason::Fetching, message)
        });
        pushing.into_iter().chain(fetching).collect()
    }

    fn of_remote(&self) -> Vec<Found> {
        let damaged = self
            .objects
            .damage()
            .map(|it| holds(Kind::FetchFailed, Reason::CorruptObjects, it.clone()));
        let failed = self.failure.as_ref().map(|(failure, message)| {
            let kind = match failure {
                FetchFailure::RefNotFound => Kind::RefMissing,
                _ => Kind::FetchFailed,
            };
            holds(kind, (*failure).into(), message.clone())
        });
        let skipped = self
            .skipped_refs
            .as_ref()
            .map(|(reason, message)| holds(Kind::RefsSkipped, *reason, message.clone()));
        let behind = match (self.behind, self.invisible) {
            (Some(behind), _) => {
                let message = format!(
                    "the remote shows {}, an ancestor of the commit that answers: taken for lag for {:?}",
                    behind.head, self.policy.rewind_grace
                );
                Some(holds(Kind::RemoteBehind, Reason::OlderThanLive, message))
            }
            (None, Some(commit)) => {
                let message = format!("a webhook told of {commit}, which the remote does not show");
                Some(holds(Kind::RemoteBehind, Reason::WebhookCommitNotVisible, message))
            }
            (None, None) => None,
        };
        // Of two of a kind the last one is shown.
        damaged.into_iter().chain(failed).chain(skipped).chain(behind).collect()
    }

    fn of_history(&self, freshness: Freshness) -> Vec<Found> {
        let rewritten = self.rewritten.map(|Rewrite { from, to, accepted }| {
            let held =
                self.pin.is_some() || (self.policy.on_rewrite == OnRewrite::Hold && !accepted);
            let candidate = self.candidate.as_ref().filter(|it| it.commit == to);
            let done = match candidate.map(|it| &it.progress) {
                Some(Progress::Failed(..)) => format!("rejected; {}", self.serving()),
                _ if held => "held".to_owned(),
                Some(Progress::Pending | Progress::Building) => "being built".to_owned(),
                Some(Progress::Held) | None => "followed".to_owned(),
            };
            let message = format!("the branch went from {from} to {to}, which lacks it: {done}");
            holds(Kind::HistoryRewritten, Reason::HistoryRewritten, message)
        });
        let stale = match freshness {
            Freshness::Stale(age, _) => {
                let message = format!("the branch was not seen for {} s", age.as_secs());
                Some(holds(Kind::Stale, Reason::MaxStalenessExceeded, message))
            }
            Freshness::Fresh => None,
        };
        rewritten.into_iter().chain(stale).collect()
    }

    fn of_storage(&self) -> Vec<Found> {
        let of = |kind, fault: &(Reason, String)| holds(kind, fault.0, fault.1.clone());
        let storage = self.storage.as_ref().or(self.objects.unwritten());
        let storage = storage.map(|it| of(Kind::StorageFailed, it));
        let failing = self.check_ins.failing.as_ref().map(|it| of(Kind::CheckInsFailed, it));
        let lost = self.check_ins.put_aside.as_ref();
        let lost = lost.map(|it| holds(Kind::CheckInsLost, Reason::Damaged, it.clone()));
        storage.into_iter().chain(failing).chain(lost).collect()
    }

    fn of_signature(&self) -> Option<Found> {
        Some(match self.verified.as_ref()? {
            Ok(signer) => {
                holds(Kind::SourceVerified, Reason::SignatureGood, format!("signed by {signer}"))
            }
            Err(fault) => {
                (Kind::SourceVerified, ConditionStatus::False, reason_of(fault), fault.to_string())
            }
        })
    }

    fn ready(&self, freshness: Freshness) -> Found {
        let kind = Kind::Ready;
        match (&self.active, freshness) {
            (None, _) => {
                let message = match &self.unrecovered {
                    None => "no commit answers yet".to_owned(),
                    Some(Unrecovered { commit, fault, .. }) => format!(
                        "no commit answers: {commit}, which answered before the restart, cannot answer now: {fault}"
                    ),
                };
                (kind, ConditionStatus::False, Reason::NoSnapshotYet, message)
            }
            (Some(active), Freshness::Stale(_, OnStale::Refuse)) => {
                let message = format!("{} is too old to answer", active.commit);
                (kind, ConditionStatus::False, Reason::MaxStalenessExceeded, message)
            }
            (Some(active), Freshness::Stale(_, OnStale::Unready)) => {
                let message =
                    format!("{} is too old: it answers, and `/readyz` is 503", active.commit);
                (kind, ConditionStatus::False, Reason::MaxStalenessExceeded, message)
            }
            (Some(active), _) => {
                (kind, ConditionStatus::True, Reason::Serving, format!("serving {}", active.commit))
            }
        }
    }
}
