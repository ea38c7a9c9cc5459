//! Writes for review: a branch each, and a pull request where a forge is known.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::applier::{Applier, Tip};
use super::message;
use super::opener::{PullRequestOpener, WaitingClient};
use super::queue::QueuedWrite;
use super::request::{WriteError, WriteRequest, WriteSettings, Written};
use crate::changeset::{Changeset, Operation};
use crate::forge::PullRequest;
use crate::git::{PushError, ReadError, ResolveError};
use crate::model::CommitId;
use crate::reconcile::edit_history::EditHistory;
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::source::Source;

/// How many branches one change has at most: each time that it is merged and undone takes another.
const MOST_BRANCHES: usize = 100;

/// A branch that waits for review.
struct PushedBranch {
    branch: String,
    commit: CommitId,
}

/// What came of a write.
enum ProposalOutcome {
    /// There is nothing to review.
    Written(Written),
    /// It waits for review.
    Pushed(PushedBranch, PullRequest),
}

/// Proposes writes. While a change waits for review, the same request gets the same branch, so proposals need no
/// record.
pub(super) struct Proposer {
    pub(super) applier: Arc<Applier>,
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) edits: Arc<EditHistory>,
    pub(super) settings: Arc<WriteSettings>,
    /// Opens pull requests, where a forge is known.
    pub(super) opener: Option<Arc<PullRequestOpener>>,
}

impl Proposer {
    /// Pushes a write to a branch of its own, and answers its client; a branch without a pull request is a proposal
    /// all the same.
    pub(super) fn propose(&self, write: QueuedWrite) {
        let QueuedWrite { request, reply } = write;
        let (PushedBranch { branch, commit }, pull_request) = match self.push_proposal(&request) {
            Err(error) => return reply(Err(error)),
            Ok(ProposalOutcome::Written(written)) => return reply(Ok(written)),
            Ok(ProposalOutcome::Pushed(pushed, pull_request)) => (pushed, pull_request),
        };
        let client = WaitingClient::new(branch, commit, reply);
        match &self.opener {
            Some(opener) => opener.open(pull_request, client),
            None => client.answer(None),
        }
    }

    fn push_proposal(&self, request: &WriteRequest) -> Result<ProposalOutcome, WriteError> {
        let tip = self.applier.tip()?;
        let (snapshot, changeset) = self.applier.apply(&tip.repository, &tip.snapshot, request)?;
        let commit = snapshot.commit;
        if commit == tip.commit {
            let answer = changeset.answer;
            let edit = answer.group().and_then(|group| self.edits.of(commit)?.edit(group));
            let written = Written::Active { snapshot, answer, edit, changed: false, receipt: None };
            return Ok(ProposalOutcome::Written(written));
        }
        let shown = self.state.show_push();
        let pushed = self.push(&tip, request, &changeset, commit);
        drop(shown);
        let pushed = pushed?;
        let pull_request = self.pull_request(request, &changeset, &pushed.branch, &tip.branch);
        Ok(ProposalOutcome::Pushed(pushed, pull_request))
    }

    /// Pushes a commit to a branch of its own, unless a branch waits for review that changes the same. The names of
    /// those that did, and were merged, are taken.
    fn push(
        &self,
        tip: &Tip,
        request: &WriteRequest,
        changeset: &Changeset,
        commit: CommitId,
    ) -> Result<PushedBranch, WriteError> {
        let id = change_id(request, changeset);
        for number in 1..=MOST_BRANCHES {
            let branch =
                if number == 1 { format!("clade/{id}") } else { format!("clade/{id}-{number}") };
            let full = format!("refs/heads/{branch}");
            match self.source.push_new_branch(&tip.repository, &full, commit) {
                Ok(()) => return Ok(PushedBranch { branch, commit }),
                Err(PushError::Moved) => {}
                Err(error) => return Err(error.into()),
            }
            let proposed = self.head_of(tip, &branch)?;
            if self.is_open(tip, changeset, proposed).map_err(|it| self.unreadable(&it))? {
                self.source.sync(&tip.repository, &full, proposed, None)?;
                return Ok(PushedBranch { branch, commit: proposed });
            }
        }
        Err(WriteError::Blocked(format!(
            "the branches clade/{id} to clade/{id}-{MOST_BRANCHES} are merged or outdated: delete them"
        )))
    }

    /// Returns where a branch of the remote is.
    fn head_of(&self, tip: &Tip, branch: &str) -> Result<CommitId, WriteError> {
        match tip.repository.resolve(branch) {
            Ok(head) => return Ok(head),
            Err(ResolveError::Unreadable(error)) => return Err(self.unreadable(&error)),
            Err(ResolveError::Unknown(_)) => {}
        }
        // Another daemon made it.
        if let Some(mirror) = self.source.mirror() {
            mirror.fetch_others().map_err(WriteError::unfetched)?;
        }
        tip.repository.resolve(branch).map_err(|error| match error {
            ResolveError::Unreadable(error) => self.unreadable(&error),
            ResolveError::Unknown(_) => WriteError::Conflict(1),
        })
    }

    /// Returns the error of a branch whose commit cannot be read.
    fn unreadable(&self, error: &ReadError) -> WriteError {
        self.applier.planner.unreadable(error)
    }

    /// Returns whether a branch would still bring a change to the tip: it was not merged, and the files that change
    /// are as they were when it began. Where they are not, it could conflict with what came since.
    fn is_open(
        &self,
        tip: &Tip,
        changeset: &Changeset,
        proposed: CommitId,
    ) -> Result<bool, ReadError> {
        let repository = &tip.repository;
        if repository.is_ancestor(proposed, tip.commit)? {
            return Ok(false);
        }
        let Some(began) = repository.merge_base(proposed, tip.commit)? else { return Ok(false) };
        let is_same = |path: &String| {
            let text = |commit| self.source.text(repository, commit, path);
            text(began) == text(tip.commit)
        };
        Ok(changeset.files.keys().all(is_same))
    }

    /// Returns the pull request of a branch.
    fn pull_request(
        &self,
        request: &WriteRequest,
        changeset: &Changeset,
        branch: &str,
        onto: &str,
    ) -> PullRequest {
        let text = message::text(request, &changeset.subject, &self.settings.trailers);
        let body = text.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
        PullRequest {
            title: changeset.subject.clone(),
            body,
            head: branch.to_owned(),
            base: onto.strip_prefix("refs/heads/").unwrap_or(onto).to_owned(),
        }
    }
}

/// Returns the name of a change: the same for the same change by the same client.
fn change_id(request: &WriteRequest, changeset: &Changeset) -> String {
    let mut hash = Sha256::new();
    hash.update(request.actor.as_deref().unwrap_or_default());
    // The id of a new group is another one each time that it is asked for.
    let chance = match &request.operation {
        Operation::Create { id, .. } => Some(id.to_string()),
        _ => None,
    };
    for (path, text) in &changeset.files {
        hash.update(path);
        hash.update([0, u8::from(text.is_some())]);
        let text = text.as_deref().unwrap_or_default();
        match &chance {
            // Some ids are written in quotes.
            Some(id) => hash.update(text.replace(&format!("\"{id}\""), "").replace(id, "")),
            None => hash.update(text),
        }
    }
    let digest = hash.finalize();
    digest.iter().take(6).fold(String::new(), |mut id, byte| {
        let _infallible = write!(id, "{byte:02x}");
        id
    })
}
