//! Writes for review: a branch each, and a pull request where a forge is known.

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
use crate::model::{CommitId, hex};
use crate::reconcile::edit_history::EditHistory;
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::source::Source;
use crate::reconcile::state::SourceKind;
use crate::snapshot::Snapshot;

/// How many branches one change has at most: each time that it is merged and undone takes another.
const MOST_BRANCHES: usize = 100;

/// A branch that waits for review.
struct PushedBranch {
    branch: String,
    commit: CommitId,
}

/// The commit of a write, or why there is none.
type Applied = Result<(Arc<Snapshot>, Changeset), WriteError>;

/// Whether the remote showed its newest commit since some writes came; none where it was not asked yet.
type RemoteAnswer = Option<Result<(), WriteError>>;

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
    /// Proposes writes that waited together. The remote is asked for its newest commit after they came, so that one
    /// answer serves all of them.
    pub(super) fn propose_all(&self, writes: Vec<QueuedWrite>) {
        let mut asked = None;
        for write in writes {
            self.propose(write, &mut asked);
        }
    }

    /// Pushes a write to a branch of its own, and answers its client; a branch without a pull request is a proposal
    /// all the same.
    fn propose(&self, write: QueuedWrite, asked: &mut RemoteAnswer) {
        let QueuedWrite { request, reply, .. } = write;
        if let Some(refusal) = self.applier.denied_early(&request) {
            return reply(Err(refusal));
        }
        let (PushedBranch { branch, commit }, pull_request) =
            match self.push_proposal(&request, asked) {
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

    fn push_proposal(
        &self,
        request: &WriteRequest,
        asked: &mut RemoteAnswer,
    ) -> Result<ProposalOutcome, WriteError> {
        let (tip, (snapshot, changeset)) = self.apply_to_newest(request, asked)?;
        request.check_rights_held()?;
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

    /// Applies a write to the newest commit of the branch. No push finds out that others moved it, since a proposal has a
    /// branch of its own: so the remote is asked.
    fn apply_to_newest(
        &self,
        request: &WriteRequest,
        asked: &mut RemoteAnswer,
    ) -> Result<(Tip, (Arc<Snapshot>, Changeset)), WriteError> {
        let (tip, applied) = self.apply_to_tip(request)?;
        if let Err(error) = &applied
            && !error.depends_on_groups()
        {
            return Err(error.clone());
        }
        match (self.ask_for_newest(&tip, asked), applied) {
            (Ok(true), applied) => Ok((tip, applied?)),
            // It was fetched. No push has failed, so this does not count as a retry.
            (Ok(false), _) => {
                let (tip, applied) = self.apply_to_tip(request)?;
                Ok((tip, applied?))
            }
            (Err(error), Err(refusal)) => Err(error.of_refused(refusal)),
            (Err(error), Ok(_)) => Err(error),
        }
    }

    /// Returns whether a tip is the newest commit of the branch, by the answer that the remote gave to a write that
    /// waited as well. A tip that was read after that answer is as new.
    fn ask_for_newest(&self, tip: &Tip, asked: &mut RemoteAnswer) -> Result<bool, WriteError> {
        match asked {
            Some(answer) => answer.clone().map(|()| true),
            None => {
                let is_newest = self.applier.is_newest(tip);
                *asked = Some(is_newest.clone().map(drop));
                is_newest
            }
        }
    }

    /// Applies a write to the branch as it was fetched last.
    fn apply_to_tip(&self, request: &WriteRequest) -> Result<(Tip, Applied), WriteError> {
        let tip = self.applier.tip();
        let tip = tip.map_err(|error| self.applier.denied(request).unwrap_or(error))?;
        let applied = self.applier.apply(&tip.repository, &tip.snapshot, request);
        Ok((tip, applied))
    }

    /// Pushes a commit to a branch of its own, unless a branch waits for review that changes the same. The names of
    /// those that did, and were merged or changed by a reviewer, are taken.
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
            let pushed = self.source.push_new_branch(&tip.repository, &full, commit);
            self.applier.store.note_push(commit, pushed.as_ref().copied());
            match pushed {
                Ok(()) => return Ok(PushedBranch { branch, commit }),
                Err(PushError::Moved) => {}
                Err(error) => {
                    self.state.note_push_failed(&error);
                    return Err(error.into());
                }
            }
            let proposed = self.head_of(tip, &full)?;
            let is_open = self.is_open(tip, request, changeset, proposed);
            if is_open.map_err(|it| self.unreadable(&it))? {
                self.source.sync(&tip.repository, &full, proposed, None)?;
                return Ok(PushedBranch { branch, commit: proposed });
            }
        }
        Err(WriteError::Blocked(format!(
            "the branches clade/{id} to clade/{id}-{MOST_BRANCHES} are merged, outdated or changed by others: delete them"
        )))
    }

    /// Returns where a branch of the remote is, by its full name: a tag may have the short one.
    fn head_of(&self, tip: &Tip, branch: &str) -> Result<CommitId, WriteError> {
        // A reviewer may have pushed to it.
        let is_outdated = self
            .source
            .mirror()
            .is_some_and(|it| it.others_moved() || it.skipped(branch).is_some());
        match tip.repository.resolve(branch) {
            Ok(head) if !is_outdated => return Ok(head),
            Err(ResolveError::Unreadable(error)) => return Err(self.unreadable(&error)),
            // Another daemon made it.
            Ok(_) | Err(ResolveError::Unknown(_)) => {}
        }
        if let Some(mirror) = self.source.mirror() {
            mirror.fetch_others_for(branch).map_err(WriteError::unfetched)?;
            if let Some(error) = mirror.skipped(branch) {
                return Err(WriteError::unfetched(error));
            }
        }
        tip.repository.resolve(branch).map_err(|error| match error {
            ResolveError::Unreadable(error) => self.unreadable(&error),
            // The remote refused to make it, since it is there.
            ResolveError::Unknown(_) if self.source.kind() == SourceKind::Remote => {
                WriteError::lag("the remote does not show a branch that it has")
            }
            ResolveError::Unknown(_) => WriteError::Conflict(1),
        })
    }

    /// Returns the error of a branch whose commit cannot be read.
    fn unreadable(&self, error: &ReadError) -> WriteError {
        self.applier.planner.unreadable(error)
    }

    /// Returns whether a branch would still bring a change to the tip: it was not merged, no reviewer took it back or
    /// changed it, and the files that change are as they were when it began. Where they are not, it could conflict with
    /// what came since.
    fn is_open(
        &self,
        tip: &Tip,
        request: &WriteRequest,
        changeset: &Changeset,
        proposed: CommitId,
    ) -> Result<bool, ReadError> {
        let repository = &tip.repository;
        if repository.is_ancestor(proposed, tip.commit)? {
            return Ok(false);
        }
        let Some(began) = repository.merge_base(proposed, tip.commit)? else { return Ok(false) };
        let id = made_id(request);
        for (path, text) in &changeset.files {
            let text_at = |commit| self.source.text(repository, commit, path);
            if text_at(began)? != text_at(tip.commit)? {
                return Ok(false);
            }
            if !is_same_change(text.as_deref(), text_at(proposed)?.as_deref(), id.as_deref()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the pull request of a branch.
    fn pull_request(
        &self,
        request: &WriteRequest,
        changeset: &Changeset,
        branch: &str,
        onto: &str,
    ) -> PullRequest {
        let text = message::text(request, changeset, &self.settings.trailers);
        let body = text.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
        PullRequest {
            title: changeset.subject.clone(),
            body,
            head: branch.to_owned(),
            base: onto.strip_prefix("refs/heads/").unwrap_or(onto).to_owned(),
        }
    }
}

/// Returns the id that a write made up for a new group: another one each time that the group is requested.
fn made_id(request: &WriteRequest) -> Option<String> {
    match &request.operation {
        Operation::Create { id, .. } => Some(id.to_string()),
        _ => None,
    }
}

/// Returns a text with another id, or a mark for one, in the place of an id.
fn with_id(text: &str, id: &str, other: &str) -> String {
    // Some ids are written in quotes.
    text.replace(&format!("\"{id}\""), other).replace(id, other)
}

/// Returns whether two texts of a file are the same, but for the id of a new group.
fn is_same_change(ours: Option<&str>, theirs: Option<&str>, id: Option<&str>) -> bool {
    let (Some(ours), Some(theirs), Some(id)) = (ours, theirs, id) else { return ours == theirs };
    let Some((before, _)) = ours.split_once(id) else { return ours == theirs };
    let theirs_from = theirs.get(before.trim_end_matches('"').len()..).unwrap_or_default();
    let theirs_from = theirs_from.trim_start_matches('"');
    let Some(their_id) = theirs_from.get(..id.len()) else { return false };
    with_id(ours, id, their_id) == with_id(theirs, their_id, their_id)
}

/// Returns the name of a change: the same for the same change by the same client.
fn change_id(request: &WriteRequest, changeset: &Changeset) -> String {
    let mut hash = Sha256::new();
    // Each with its length: two changes must not be one row of bytes.
    let mut add = |field: &[u8]| {
        hash.update((field.len() as u64).to_be_bytes());
        hash.update(field);
    };
    add(changeset.actor.as_deref().unwrap_or_default().as_bytes());
    let chance = made_id(request);
    for (path, text) in &changeset.files {
        add(path.as_bytes());
        add(&[u8::from(text.is_some())]);
        let text = text.as_deref().unwrap_or_default();
        match &chance {
            Some(id) => add(with_id(text, id, "").as_bytes()),
            None => add(text.as_bytes()),
        }
    }
    let mut id = hex(&hash.finalize());
    id.truncate(12);
    id
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::changeset::WriteOutcome;
    use crate::model::GroupId;
    use crate::reconcile::RightsCheck;
    use crate::table::each_row;

    #[test]
    fn each_change_of_each_client_has_a_name_of_its_own() {
        let id_of = |actor: Option<&str>, files: &[(&str, Option<&str>)]| {
            let request = WriteRequest {
                operation: Operation::Delete { id: GroupId::ROOT },
                grants: Vec::new(),
                rights: RightsCheck::default(),
                line: String::new(),
                fingerprint: String::new(),
            };
            let files = files.iter().map(|(path, text)| ((*path).into(), text.map(str::to_owned)));
            let actor = actor.map(str::to_owned);
            let none = Changeset::unchanged(WriteOutcome::Done);
            change_id(&request, &Changeset { files: files.collect(), actor, ..none })
        };
        let names = BTreeSet::from([
            id_of(None, &[("a", Some("x"))]),
            id_of(None, &[("a", None)]),
            id_of(None, &[("a", Some(""))]),
            // The same bytes, one after the other.
            id_of(Some("ci"), &[("a.yaml", Some("x"))]),
            id_of(Some("cia"), &[(".yaml", Some("x"))]),
            id_of(None, &[("a", Some("x")), ("b", Some("y"))]),
            id_of(None, &[("a", Some("xb\0\u{1}y"))]),
        ]);
        assert_eq!(names.len(), 7);
        assert!(names.iter().all(|it| it.len() == 12));
    }

    /// Each row: the text of the file, that at the branch, and whether it is the same change.
    #[test]
    fn a_change_is_the_same_but_for_the_id_of_a_new_group() {
        let id = "aaaaaaaa-0000-4000-8000-00000000000a";
        let other = "01234567-0000-4000-8000-00000000000b";
        let (plain, quoted) = (format!("name: N\nid: {id}\n"), format!("name: N\nid: \"{id}\"\n"));
        let (their_plain, their_quoted) = (plain.replace(id, other), quoted.replace(id, other));
        let rows = [
            (Some(plain.clone()), Some(plain.clone()), true),
            (Some(plain.clone()), Some(their_plain.clone()), true),
            (Some(plain.clone()), Some(their_quoted.clone()), true),
            (Some(quoted.clone()), Some(their_plain.clone()), true),
            (Some(quoted), Some(their_quoted), true),
            (Some(plain.clone()), Some(their_plain.replace('N', "M")), false),
            (Some(plain.clone()), Some(their_plain + "classes: {x: {}}\n"), false),
            (Some(plain.clone()), Some("name: N\n".to_owned()), false),
            (Some(plain), None, false),
            (Some("name: P\n".to_owned()), Some("name: P\n".to_owned()), true),
            (None, None, true),
        ];
        each_row(rows, |(ours, theirs, expected)| {
            let is_same = is_same_change(ours.as_deref(), theirs.as_deref(), Some(id));
            assert_eq!(is_same, expected);
        });
    }
}
