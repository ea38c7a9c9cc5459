//! Writes for review: a branch each, and a pull request where a forge is known.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::applier::Applier;
use super::message;
use super::request::{WriteError, WriteRequest, WriteSettings, Written};
use crate::changeset::{Changeset, Operation};
use crate::forge::PullRequest;
use crate::git::PushError;
use crate::reconcile::edit_history::EditHistory;
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::source::Source;

/// Proposes writes. The same request gets the same branch, so proposals need no record.
pub(super) struct Proposer {
    pub(super) applier: Arc<Applier>,
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) edits: Arc<EditHistory>,
    pub(super) settings: Arc<WriteSettings>,
}

impl Proposer {
    /// Pushes a write to a branch of its own.
    pub(super) fn propose(&self, request: &WriteRequest) -> Result<Written, WriteError> {
        let tip = self.applier.tip()?;
        let (snapshot, changeset) = self.applier.apply(&tip.repository, &tip.snapshot, request)?;
        let commit = snapshot.commit;
        if commit == tip.commit {
            let answer = changeset.answer;
            let edit = answer.group().and_then(|group| self.edits.of(commit)?.edit(group));
            return Ok(Written::Active { snapshot, answer, edit, changed: false, receipt: None });
        }
        let branch = format!("clade/{}", change_id(request, &changeset));
        let full = format!("refs/heads/{branch}");
        let shown = self.state.show_push();
        let pushed = self.source.push_new_branch(&tip.repository, &full, commit);
        drop(shown);
        let commit = match pushed {
            Ok(()) => commit,
            // The same was proposed before.
            Err(PushError::Moved) => tip.repository.resolve(&branch).unwrap_or(commit),
            Err(error) => return Err(error.into()),
        };
        let url = self.open(request, &changeset, &branch, &tip.branch);
        Ok(Written::Proposed { branch, commit, url })
    }

    /// Opens a pull request; a branch without one is a proposal all the same.
    fn open(
        &self,
        request: &WriteRequest,
        changeset: &Changeset,
        branch: &str,
        onto: &str,
    ) -> Option<String> {
        let forge = self.settings.forge.as_ref()?;
        let text = message::text(request, &changeset.subject, &self.settings.trailers);
        let body = text.split_once("\n\n").map_or("", |(_, body)| body).to_owned();
        let opened = forge.open_pull_request(&PullRequest {
            title: changeset.subject.clone(),
            body,
            head: branch.to_owned(),
            base: onto.strip_prefix("refs/heads/").unwrap_or(onto).to_owned(),
        });
        match opened {
            Ok(url) => url,
            Err(error) => {
                tracing::warn!(branch, %error, "opening the pull request failed");
                None
            }
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
