//! Why an answer changed: because of a commit, because of facts, or both.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::digest::AnswerDigest;
use crate::model::CommitId;

/// What made an answer another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeCause {
    /// The commit: with the old facts it changes the answer in the same way.
    Commit,
    /// The facts: at the old commit they change the answer in the same way.
    Facts,
    /// Neither alone makes the change, or each of the two does.
    Both,
    /// There was no answer before.
    First,
}

impl ChangeCause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Commit, Self::Facts, Self::Both, Self::First];

    /// Returns the cause in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Facts => "facts",
            Self::Both => "both",
            Self::First => "first",
        }
    }
}

impl fmt::Display for ChangeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word does not name the cause of a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a cause: expected `commit`, `facts`, `both` or `first`")]
pub struct UnknownCause(String);

impl FromStr for ChangeCause {
    type Err = UnknownCause;

    fn from_str(text: &str) -> Result<Self, UnknownCause> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| UnknownCause(text.to_owned()))
    }
}

/// An answer, and the commit that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The answer.
    pub digest: AnswerDigest,
    /// The commit.
    pub commit: CommitId,
}

/// Whether the facts and trusted data that the rules of either commit mention are those of before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MentionedFacts {
    /// They are, so that the facts of before and of now get the same answers.
    Same,
    /// They are not, or it is not known.
    Changed,
}

/// Finds the cause of a changed answer.
///
/// The two functions classify the old facts at the new commit, and the new facts at the old commit; they
/// return nothing where that cannot be done: the old facts are not known any more, or the old commit cannot
/// be built. They are called only if both inputs changed.
///
/// An input is the cause if it alone, with the other one as before, gives the new answer, and the other one
/// alone does not. Where one of the two answers is missing, the input that is known to make the whole change
/// is the cause; if it is known to change nothing at all, the other one is.
pub fn cause(
    before: Option<GivenAnswer>,
    after: GivenAnswer,
    facts: MentionedFacts,
    old_facts_at_new_commit: impl FnOnce() -> Option<AnswerDigest>,
    new_facts_at_old_commit: impl FnOnce() -> Option<AnswerDigest>,
) -> ChangeCause {
    let Some(before) = before else { return ChangeCause::First };
    if before.commit == after.commit {
        return ChangeCause::Facts;
    }
    if facts == MentionedFacts::Same {
        return ChangeCause::Commit;
    }
    let effect = |answer: AnswerDigest| match answer {
        it if it == after.digest => Effect::Whole,
        it if it == before.digest => Effect::None,
        _ => Effect::Other,
    };
    let of_commit = old_facts_at_new_commit().map(effect);
    let of_facts = new_facts_at_old_commit().map(effect);
    match (of_commit, of_facts) {
        (Some(Effect::Whole), Some(Effect::Whole)) => ChangeCause::Both,
        (Some(Effect::Whole), _) | (None, Some(Effect::None)) => ChangeCause::Commit,
        (_, Some(Effect::Whole)) | (Some(Effect::None), None) => ChangeCause::Facts,
        _ => ChangeCause::Both,
    }
}

/// What one input changes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It gives the new answer.
    Whole,
    /// It leaves the old answer.
    None,
    /// It gives an answer that is neither.
    Other,
}
