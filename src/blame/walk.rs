//! The walk from a commit back to where its values came from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::answer::{Answer, AnswerKey};
use crate::model::{CommitId, Value, same};

/// What the walk asks of a branch.
pub trait BlamedBranch {
    /// Why the branch cannot be read.
    type Error;

    /// Returns the commit before another.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch cannot be read.
    fn parent(&mut self, commit: CommitId) -> Result<Older, Self::Error>;

    /// Returns whether the node may get something else at a commit than at its parent, whether they are
    /// valid or not.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch cannot be read.
    fn may_differ(&mut self, parent: CommitId, commit: CommitId) -> Result<bool, Self::Error>;

    /// Returns what the node gets at a commit: nothing if there is no answer, such as in a conflict; `None`
    /// for a commit that is not valid.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch cannot be read.
    fn answer(&mut self, commit: CommitId) -> Result<Option<Answer>, Self::Error>;

    /// Returns whether a commit is valid.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch cannot be read.
    fn is_valid(&mut self, commit: CommitId) -> Result<bool, Self::Error>;

    /// Returns what earlier walks found for a commit: the origins of some of the values that the node gets
    /// there. Only valid commits have any.
    fn known(&mut self, commit: CommitId) -> Option<Arc<KnownOrigins>>;

    /// Returns whether the walk shall go on.
    fn is_wanted(&mut self) -> bool;
}

/// What stands before a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// A commit.
    Commit(CommitId),
    /// Nothing: it is the first of the branch.
    Nothing,
    /// It is not known, because older commits are not here or the walk may not go on.
    Unknown,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It first came out after this commit.
    Commit(CommitId),
    /// It came out after this commit already, the oldest that is known.
    Boundary(CommitId),
}

/// The origins of values that a node gets at a commit.
pub type KnownOrigins = BTreeMap<AnswerKey, Origin>;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// The origin of every value was told.
    Whole,
    /// The walk was not wanted any more.
    Stopped,
}

/// Finds the origin of each value of a valid commit's answer, and reports each as soon as it is known: the
/// newest first where nothing was known before, and by key those of one commit.
///
/// A value came from the oldest of the valid commits, back from the given one without a gap, after which it
/// came out.
///
/// # Errors
///
/// Returns an error if the branch cannot be read, or the first one that `report` returns.
pub fn walk<B: BlamedBranch>(
    branch: &mut B,
    head: CommitId,
    answer: &Answer,
    report: &mut impl FnMut(&AnswerKey, Origin) -> Result<(), B::Error>,
) -> Result<Walked, B::Error> {
    let mut open = OpenValues(answer.values().iter().map(|(key, it)| (key, &it.value)).collect());
    // From the newest to the oldest: the commits at which the open values come out if they are valid. The
    // first of them is.
    let mut alike = vec![head];
    // Whether the commit before was invalid, so that nothing is known of what it would answer.
    let mut after_invalid = false;
    let mut at = head;
    loop {
        if !after_invalid && let Some(known) = branch.known(at) {
            open.close_known(&known, report)?;
        }
        if open.0.is_empty() {
            return Ok(Walked::Whole);
        }
        if !branch.is_wanted() {
            return Ok(Walked::Stopped);
        }
        let older = branch.parent(at)?;
        let Older::Commit(parent) = older else {
            let Some(first) = oldest_valid(branch, &alike)? else { return Ok(Walked::Stopped) };
            let origin = match older {
                Older::Unknown => Origin::Boundary(first),
                _ => Origin::Commit(first),
            };
            let rest = open.0.into_keys().collect();
            in_order(rest, answer).into_iter().try_for_each(|key| report(key, origin))?;
            return Ok(Walked::Whole);
        };
        let concerns = after_invalid || branch.may_differ(parent, at)?;
        at = parent;
        if !concerns {
            alike.push(parent);
            continue;
        }
        let before = branch.answer(parent)?;
        after_invalid = before.is_none();
        let Some(before) = before else { continue };
        let ended = open.without(&before);
        if !ended.is_empty() {
            let Some(first) = oldest_valid(branch, &alike)? else { return Ok(Walked::Stopped) };
            let origin = Origin::Commit(first);
            in_order(ended, answer).into_iter().try_for_each(|key| report(key, origin))?;
        }
        alike = vec![parent];
    }
}

/// Sorts the keys of values as people read them.
fn in_order<'a>(mut keys: Vec<&'a AnswerKey>, answer: &Answer) -> Vec<&'a AnswerKey> {
    keys.sort_by_cached_key(|key| answer.values().get(*key).map(|it| it.key_text(key)));
    keys
}

/// The values whose origins are not known yet.
struct OpenValues<'a>(BTreeMap<&'a AnswerKey, &'a Value>);

impl<'a> OpenValues<'a> {
    /// Removes the values that an answer does not have so, and returns their keys.
    fn without(&mut self, answer: &Answer) -> Vec<&'a AnswerKey> {
        let goes_on = |key: &AnswerKey, value: &Value| {
            answer.values().get(key).is_some_and(|it| same(&it.value, value))
        };
        self.0.extract_if(.., |key, value| !goes_on(key, value)).map(|(key, _)| key).collect()
    }

    /// Reports and removes the values whose origins are known.
    fn close_known<E>(
        &mut self,
        known: &KnownOrigins,
        report: &mut impl FnMut(&AnswerKey, Origin) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut reported = Ok(());
        self.0.retain(|key, _| match known.get(*key) {
            Some(origin) if reported.is_ok() => {
                reported = report(key, *origin);
                false
            }
            _ => true,
        });
        reported
    }
}

/// Returns the last of some commits that is valid, the first of which is; none if the walk is not wanted any
/// more.
///
/// # Errors
///
/// Returns an error if the branch cannot be read.
pub fn oldest_valid<B: BlamedBranch>(
    branch: &mut B,
    alike: &[CommitId],
) -> Result<Option<CommitId>, B::Error> {
    for (index, commit) in alike.iter().enumerate().rev() {
        if index == 0 || branch.is_valid(*commit)? {
            return Ok(Some(*commit));
        }
        if !branch.is_wanted() {
            return Ok(None);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
