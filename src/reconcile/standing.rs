//! How things stand, and the conditions that follow from it.
//!
//! The stages of the loop note what they found; the conditions are computed from that here and
//! nowhere else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use super::settings::{OnRewrite, OnStale, Policy};
use super::status::{Active, Condition, ConditionKind, LastFailed, Observed, Reason, Truth};
use super::trigger::Trigger;
use crate::git::{FetchFailure, SignatureFault, Signer};
use crate::model::CommitId;

/// How long a fetch or a push may take before a condition says so.
const SLOW: Duration = Duration::from_secs(2);

/// What the stages of the loop found.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) active: Option<Active>,
    pub(super) observed: Option<Observed>,
    /// The newest commit, as long as it does not answer.
    pub(super) candidate: Option<Candidate>,
    pub(super) pinned: Option<CommitId>,
    /// The commit that answered before the restart, with why it does not answer now.
    pub(super) unrecovered: Option<(CommitId, String)>,
    pub(super) last_attempt: Option<Timestamp>,
    pub(super) last_change: Option<Timestamp>,
    /// When the branch was seen last, by a clock that nobody sets.
    pub(super) seen: Option<Instant>,
    pub(super) failure: Option<(FetchFailure, String)>,
    pub(super) failures: u32,
    pub(super) rewritten: Option<Rewrite>,
    pub(super) behind: Option<Behind>,
    pub(super) expected: Vec<Expected>,
    /// A commit that a webhook told of and that never came.
    pub(super) invisible: Option<CommitId>,
    pub(super) storage: Option<(Reason, String)>,
    /// Why refs beside the watched one are not fetched.
    pub(super) skipped: Option<(Reason, String)>,
    /// Whether refs beside the watched one are to be fetched now.
    pub(super) others_wanted: bool,
    /// Since when the branch is being fetched.
    pub(super) fetching: Option<Instant>,
    /// Since when a write is being pushed.
    pub(super) pushing: Option<Instant>,
    /// How many writes were published; a fetch that began before one is out of date.
    pub(super) written: u64,
    pub(super) check_ins: CheckInsTrouble,
    pub(super) verified: Option<Result<Signer, SignatureFault>>,
    conditions: BTreeMap<ConditionKind, Condition>,
}

/// What is wrong with the store of check-ins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckInsTrouble {
    /// Why they cannot be kept or read.
    pub failing: Option<(Reason, String)>,
    /// What is said of a damaged file that was put aside.
    pub put_aside: Option<String>,
}

/// The newest commit, on its way.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) commit: CommitId,
    pub(super) trigger: Trigger,
    /// When its coming was first known.
    pub(super) since: Instant,
    pub(super) progress: Progress,
    pub(super) instead: Instead,
}

/// What answers where a candidate is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// What answered before.
    Live,
    /// The newest valid commit behind it: an operator has the branch followed again.
    NewestValid,
}

impl Candidate {
    /// Returns a candidate that waits for the builder.
    pub(super) fn new(commit: CommitId, trigger: Trigger, since: Instant) -> Self {
        Self { commit, trigger, since, progress: Progress::Pending, instead: Instead::Live }
    }

    /// Returns it with other progress.
    pub(super) fn with(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }
}

/// How far a candidate has come.
#[derive(Debug)]
pub(super) enum Progress {
    /// It waits for the builder.
    Pending,
    /// The builder has it.
    Building,
    /// It never answers.
    Failed(LastFailed, Reason),
    /// It is valid and waits for an operator, or for the remote to make up its mind.
    Held,
}

/// The branch lost the commit that it was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rewrite {
    pub(super) from: CommitId,
    pub(super) to: CommitId,
    /// Whether it may answer: an operator accepts it, or it contains the commit that answers.
    pub(super) accepted: bool,
}

/// The remote shows an ancestor of what answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behind {
    pub(super) head: CommitId,
    pub(super) since: Instant,
}

/// A commit that a webhook told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) commit: CommitId,
    pub(super) since: Instant,
    pub(super) tries: usize,
}

/// How fresh the answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The branch was seen lately, or nobody minds.
    Fresh,
    /// It was last seen so long ago.
    Stale(Duration, OnStale),
}

impl Standing {
    /// Returns how fresh the answers are.
    pub(super) fn freshness(&self, policy: &Policy, now: Instant, started: Instant) -> Freshness {
        let age = now.saturating_duration_since(self.seen.unwrap_or(started));
        match policy.max_staleness {
            Some(limit) if age > limit => Freshness::Stale(age, policy.on_stale),
            _ => Freshness::Fresh,
        }
    }

    /// Returns the conditions; the time of a last transition stays while only the message changes.
    pub(super) fn conditions(
        &mut self,
        policy: &Policy,
        freshness: Freshness,
        now: Timestamp,
    ) -> Vec<Condition> {
        let mut fresh = BTreeMap::new();
        for (kind, status, reason, message) in self.found(policy, freshness) {
            let before = self
                .conditions
                .get(&kind)
                .filter(|it| it.status == status && it.reason == reason)
                .map(|it| it.last_transition);
            let last_transition = before.unwrap_or(now);
            fresh.insert(kind, Condition { kind, status, reason, message, last_transition });
        }
        self.conditions = fresh;
        self.conditions.values().cloned().collect()
    }

    fn found(
        &self,
        policy: &Policy,
        freshness: Freshness,
    ) -> Vec<(ConditionKind, Truth, Reason, String)> {
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
        if let Some(since) = self.pushing.filter(|it| it.elapsed() >= SLOW) {
            let message = format!(
                "a push has been under way for {} s; other writes wait, answers do not",
                since.elapsed().as_secs()
            );
            holds(Kind::PushStalled, Reason::Pushing, message);
        }
        if let Some(since) = self.fetching.filter(|it| it.elapsed() >= SLOW)
            && self.candidate.is_none()
        {
            let message = format!("fetching for {} s", since.elapsed().as_secs());
            holds(Kind::Reconciling, Reason::Fetching, message);
        }
        if let Some((failure, message)) = &self.failure {
            let kind = match failure {
                FetchFailure::RefNotFound => Kind::RefMissing,
                _ => Kind::FetchFailed,
            };
            holds(kind, (*failure).into(), message.clone());
        }
        if let Some((reason, message)) = &self.skipped {
            holds(Kind::RefsSkipped, *reason, message.clone());
        }
        if let Some(behind) = self.behind {
            let message = format!(
                "the remote shows {}, an ancestor of the commit that answers: taken for lag for {:?}",
                behind.head, policy.rewind_grace
            );
            holds(Kind::RemoteBehind, Reason::OlderThanLive, message);
        } else if let Some(commit) = self.invisible {
            let message = format!("a webhook told of {commit}, which the remote does not show");
            holds(Kind::RemoteBehind, Reason::WebhookCommitNotVisible, message);
        }
        if let Some(Rewrite { from, to, accepted }) = self.rewritten {
            let held = self.pinned.is_some() || (policy.on_rewrite == OnRewrite::Hold && !accepted);
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

/// Returns the reason of a condition about a signature.
pub(super) fn reason_of(fault: &SignatureFault) -> Reason {
    match fault {
        SignatureFault::Missing { .. } => Reason::SignatureMissing,
        SignatureFault::Invalid { .. } | SignatureFault::Unreadable { .. } => {
            Reason::SignatureInvalid
        }
        SignatureFault::NotAllowed { .. } => Reason::SignerNotAllowed,
    }
}

impl LastFailed {
    pub(super) fn in_short(&self) -> String {
        let errors = self.diagnostics.iter().filter(|it| is_error(it)).count();
        let first = self.diagnostics.iter().find_map(|it| it.get("message")?.as_str());
        match (errors, first) {
            (0 | 1, Some(message)) => message.to_owned(),
            (_, Some(message)) => format!("{errors} errors, the first: {message}"),
            (_, None) => "it cannot be used".to_owned(),
        }
    }
}

/// Returns whether a diagnostic of the status document is an error.
pub(super) fn is_error(diagnostic: &Value) -> bool {
    diagnostic.get("severity").and_then(Value::as_str) == Some("error")
}
