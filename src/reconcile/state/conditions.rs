//! The conditions of the status, computed from the state.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Freshness, Progress, ReconcileState, Rewrite, reason_of};
use crate::git::FetchFailure;
use crate::reconcile::clock::Now;
use crate::reconcile::settings::{OnRewrite, OnStale};
use crate::reconcile::status::{Condition, ConditionKind, Reason, Truth};

/// How long a fetch or a push may take before a condition says so.
const SLOW: Duration = Duration::from_secs(2);

impl ReconcileState {
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

    fn found(&self, freshness: Freshness, now: Now) -> Vec<(ConditionKind, Truth, Reason, String)> {
        use ConditionKind as Kind;

        let mut all = vec![self.ready(freshness)];
        let mut holds = |kind, reason, message| all.push((kind, Truth::True, reason, message));
        let serving = match &self.active {
            Some(active) => format!("still serving {}", active.commit),
            None => "no commit answers".to_owned(),
        };
        if let Some(candidate) = &self.candidate {
            let commit = candidate.commit;
            match &candidate.progress {
                Progress::Pending | Progress::Building => {
                    holds(Kind::Reconciling, Reason::Building, format!("{commit} is being built"));
                }
                Progress::Failed(failed, reason) => {
                    let message = format!("{commit}: {}; {serving}", failed.in_short());
                    holds(Kind::CandidateRejected, *reason, message);
                }
                Progress::Held => {
                    let (reason, why) = if self.pinned.is_some() {
                        (Reason::Pinned, "an operator pinned another; resume to follow the branch")
                    } else if self.behind.is_some() {
                        (Reason::OlderThanLive, "it is older than the commit that answers")
                    } else {
                        (Reason::OnRewriteHold, "the history was rewritten; resume to accept it")
                    };
                    let message = format!("{commit} waits: {why}; {serving}");
                    holds(Kind::PromotionHeld, reason, message);
                }
            }
        }
        if let Some(since) = self.pushing.filter(|it| now.since(*it) >= SLOW) {
            let message = format!(
                "a push has been under way for {} s; other writes wait, answers do not",
                now.since(since).as_secs()
            );
            holds(Kind::PushStalled, Reason::Pushing, message);
        }
        if let Some(since) = self.fetching.filter(|it| now.since(*it) >= SLOW)
            && self.candidate.is_none()
        {
            let message = format!("fetching for {} s", now.since(since).as_secs());
            holds(Kind::Reconciling, Reason::Fetching, message);
        }
        if let Some((failure, message)) = &self.failure {
            let kind = match failure {
                FetchFailure::RefNotFound => Kind::RefMissing,
                _ => Kind::FetchFailed,
            };
            holds(kind, (*failure).into(), message.clone());
        }
        if let Some((reason, message)) = &self.skipped_refs {
            holds(Kind::RefsSkipped, *reason, message.clone());
        }
        if let Some(behind) = self.behind {
            let message = format!(
                "the remote shows {}, an ancestor of the commit that answers: taken for lag for {:?}",
                behind.head, self.policy.rewind_grace
            );
            holds(Kind::RemoteBehind, Reason::OlderThanLive, message);
        } else if let Some(commit) = self.invisible {
            let message = format!("a webhook told of {commit}, which the remote does not show");
            holds(Kind::RemoteBehind, Reason::WebhookCommitNotVisible, message);
        }
        if let Some(Rewrite { from, to, accepted }) = self.rewritten {
            let held =
                self.pinned.is_some() || (self.policy.on_rewrite == OnRewrite::Hold && !accepted);
            let done = if held { "held" } else { "followed" };
            let message = format!("the branch went from {from} to {to}, which lacks it: {done}");
            holds(Kind::HistoryRewritten, Reason::HistoryRewritten, message);
        }
        if let Freshness::Stale(age, _) = freshness {
            let message = format!("the branch was last seen {} s ago", age.as_secs());
            holds(Kind::Stale, Reason::MaxStalenessExceeded, message);
        }
        if let Some((reason, message)) = &self.storage {
            holds(Kind::StorageFailed, *reason, message.clone());
        }
        if let Some((reason, message)) = &self.check_ins.failing {
            holds(Kind::CheckInsFailed, *reason, message.clone());
        }
        if let Some(message) = &self.check_ins.put_aside {
            holds(Kind::CheckInsLost, Reason::Damaged, message.clone());
        }
        match &self.verified {
            None => {}
            Some(Ok(signer)) => {
                holds(Kind::SourceVerified, Reason::SignatureGood, format!("signed by {signer}"));
            }
            Some(Err(fault)) => {
                let reason = reason_of(fault);
                all.push((Kind::SourceVerified, Truth::False, reason, fault.to_string()));
            }
        }
        all
    }

    fn ready(&self, freshness: Freshness) -> (ConditionKind, Truth, Reason, String) {
        let kind = ConditionKind::Ready;
        match (&self.active, freshness) {
            (None, _) => {
                let message = match &self.unrecovered {
                    None => "no commit answers yet".to_owned(),
                    Some((commit, reason)) => format!(
                        "no commit answers: {commit}, which answered before the restart, cannot answer now: {reason}"
                    ),
                };
                (kind, Truth::False, Reason::NoSnapshotYet, message)
            }
            (Some(active), Freshness::Stale(_, OnStale::Refuse)) => {
                let message = format!("{} is too old to answer", active.commit);
                (kind, Truth::False, Reason::MaxStalenessExceeded, message)
            }
            (Some(active), _) => {
                (kind, Truth::True, Reason::Serving, format!("serving {}", active.commit))
            }
        }
    }
}
