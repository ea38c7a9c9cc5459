//! How what a node gets changed over the commits of a repository.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::cache::BlameCache;
use super::commits::Commits;
use super::run::{Blame, BlameError};
use crate::answer::{AnswerChange, AnswerRecord, changes};
use crate::blame::{BlamedBranch as _, Older, oldest_valid};
use crate::classification::matches;
use crate::git::CommitInfo;
use crate::hierarchy::Estate;
use crate::model::{CommitId, Interpolation, MASKED, Node, Value};
use crate::reconcile::outcome::{BuildError, summary};

/// A commit that changed what a node gets.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedChange {
    /// The first commit that gives the answer.
    pub commit: CommitInfo,
    /// The last valid commit before it, which gives another one; none where there is none, or it is not known.
    pub commit_before: Option<CommitId>,
    /// The values that changed.
    pub changes: Vec<AnswerChange>,
    /// Whether that is only the oldest commit that is known.
    pub is_boundary: bool,
}

/// What a node gets at a commit, and what people are shown of it.
struct ShownRecord {
    own: AnswerRecord,
    /// The same with masked facts in its values; none if they are shown as they are.
    masked: Option<AnswerRecord>,
}

impl ShownRecord {
    fn of(estate: &Estate, node: &Node, shown: Option<&Node>) -> Self {
        let groups = matches(&estate.hierarchy, node);
        let record = |it: &Node| AnswerRecord::of_groups(estate, it, groups.as_deref());
        let shown = shown.filter(|_| estate.interpolation == Interpolation::On);
        Self { own: record(node), masked: shown.map(record) }
    }

    /// Returns each of its values as it is shown, by its key; none if they are shown as they are.
    fn shown_values(&self) -> Option<HashMap<String, Value>> {
        let all = changes(None, self.masked.as_ref()?);
        Some(all.into_iter().filter_map(|it| Some((it.key, it.after?))).collect())
    }

    /// Lists how it differs from what the node got before. Whether a value differs is found out by what the node has.
    fn changes_since(&self, before: Option<&Self>) -> Vec<AnswerChange> {
        let mut found = changes(before.map(|it| &it.own), &self.own);
        let shown = [before.and_then(Self::shown_values), self.shown_values()];
        for change in &mut found {
            let values = [&mut change.before, &mut change.after];
            for (value, shown) in values.into_iter().zip(&shown) {
                if let (Some(value), Some(shown)) = (value, shown) {
                    // What cannot be made of masked facts is not shown at all.
                    *value = shown.get(&change.key).cloned().unwrap_or_else(|| MASKED.into());
                }
            }
        }
        found
    }
}

impl Blame<'_> {
    /// Finds the commits that changed what a node gets, with the facts that it has now, back from one; reports each as
    /// soon as it is known, the newest first.
    ///
    /// A commit that is not valid gives no answer: what it changes is a change of the next one that is.
    ///
    /// # Errors
    ///
    /// Returns an error if the first commit is not valid, or a commit cannot be read.
    pub fn changes(
        &self,
        head: CommitId,
        node: &Node,
        report: &mut dyn FnMut(CommittedChange) -> ControlFlow<()>,
    ) -> Result<(), BlameError> {
        let cache = BlameCache::default();
        let mut commits = Commits::new(&self.context, node, &cache);
        let checked = commits.begin(head, None)?;
        let Some(estate) = &checked.estate else {
            return Err(BlameError::Invalid { commit: head, why: summary(&checked.diagnostics) });
        };
        self.note_whether_facts_are_read(estate);
        let mut newer = ShownRecord::of(estate, node, self.shown);
        // From the newest to the oldest: the commits that give this answer if they are valid. The first of them is.
        let mut alike = vec![head];
        let mut after_invalid = false;
        let mut at = head;
        loop {
            if !(self.context.is_wanted)() {
                return Err(BlameError::Stopped);
            }
            let older = commits.parent(at)?;
            let Older::Commit(parent) = older else {
                let is_boundary = older == Older::Unknown;
                let commit = self.first_with_it(&mut commits, &alike)?;
                let changes = newer.changes_since(None);
                let commit_before = None;
                // It is the last one, whether more are wanted or not.
                let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
                    report(CommittedChange { commit, commit_before, changes, is_boundary });
                return Ok(());
            };
            let concerns = after_invalid || commits.may_differ(parent, at)?;
            at = parent;
            if !concerns {
                alike.push(parent);
                continue;
            }
            let before = commits.checked(parent)?;
            let before = before.estate.as_ref().map(|it| ShownRecord::of(it, node, self.shown));
            after_invalid = before.is_none();
            let Some(before) = before else { continue };
            let changes = newer.changes_since(Some(&before));
            if !changes.is_empty() {
                let commit = self.first_with_it(&mut commits, &alike)?;
                let commit_before = Some(parent);
                let change = CommittedChange { commit, commit_before, changes, is_boundary: false };
                if report(change).is_break() {
                    return Ok(());
                }
            }
            newer = before;
            alike = vec![parent];
        }
    }

    /// Returns the oldest commit that gives an answer, of those that give it if they are valid.
    fn first_with_it(
        &self,
        commits: &mut Commits<'_>,
        alike: &[CommitId],
    ) -> Result<CommitInfo, BlameError> {
        let commit = oldest_valid(commits, alike)?.ok_or(BlameError::Stopped)?;
        let info = self.context.repository.commit(commit);
        Ok(info.map_err(|source| BuildError::Unreadable { commit, source })?)
    }
}
