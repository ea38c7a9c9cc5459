//! What a write through the classifier API changes in the files of the repository.
//!
//! Every write comes down to a new set of groups. [`amend`] checks it as the API promises, and
//! turns the difference into changed files: texts are edited, not written anew, a new group gets
//! the file that follows from the hierarchy, and groups that name their parent by a name that
//! changes are changed with it.

mod body;
mod catalogue;
mod check;
mod document;
mod environment;
mod files;
mod layout;
mod number;
mod operation;
mod refusal;
mod scope;
mod subject;
mod wording;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::diagnostic::Place;
use crate::hierarchy::Estate;
use crate::model::{EnvironmentName, GroupId};
use crate::validation::Layout;

pub use body::{read_group, read_json};
pub use catalogue::{CatalogueFault, NewCatalogue, WrittenBy, etag_of, says_the_same};
pub use document::{ORDER, house_layout, new_document};
pub use environment::check_may_update_classes;
pub use layout::files as layout_of;
pub use number::check_numbers;
pub use operation::Operation;
pub use refusal::{Refusal, Status};
pub use scope::{GroupKey, GroupKeyError, Scope};

/// The state of the repository that a write meets.
pub struct Ground<'g> {
    /// The groups.
    pub estate: &'g Estate,
    /// Where each group is written.
    pub origins: &'g BTreeMap<GroupId, Place>,
    /// Which directory holds what.
    pub layout: &'g Layout,
    /// Returns the text of a file; none if there is none.
    pub read: &'g dyn Fn(&str) -> Option<String>,
    /// Returns how often a group was edited; none if that is not known. Only asked where a client
    /// says what it read.
    pub serial: &'g dyn Fn(GroupId) -> Option<u64>,
}

impl std::fmt::Debug for Ground<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").field("layout", self.layout).finish_non_exhaustive()
    }
}

/// What a write comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Amendment {
    /// The files that change, with their new text; none for one that goes. Empty if everything is
    /// as wanted already.
    pub files: BTreeMap<String, Option<String>>,
    /// One line on what changes.
    pub subject: String,
    /// What the client is told.
    pub answer: Answer,
}

/// What a client is told when its change is in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// A group was made.
    Created(GroupId),
    /// A group is as it was put.
    Put(GroupId),
    /// A group was changed.
    Edited(GroupId),
    /// There is nothing to say.
    Done,
    /// From which groups nodes were unpinned.
    Unpinned(Value),
    /// An environment exists.
    Environment(EnvironmentName),
    /// Class catalogues are as the Puppet Server says.
    Updated,
}

impl Answer {
    /// Returns the group that the client is told of.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Created(id) | Self::Put(id) | Self::Edited(id) => Some(*id),
            Self::Done | Self::Unpinned(_) | Self::Environment(_) | Self::Updated => None,
        }
    }
}

/// Finds out what a write changes. One of the client's scopes must allow it as a whole.
///
/// # Errors
///
/// Returns why the write is refused.
pub fn amend(
    ground: &Ground<'_>,
    operation: &Operation,
    scopes: &[Scope],
) -> Result<Amendment, Refusal> {
    let planned = operation::plan(ground, operation, scopes)?;
    let old = &ground.estate.hierarchy;
    scope::check(scopes, old, &planned.groups)?;
    let hierarchy = check::build(&planned.groups)?;
    check::referents(ground, &hierarchy)?;
    let mut files = files::changes(ground, &hierarchy)?;
    let environments = environment::changes(ground, operation, scopes)?;
    let subject = subject::of(operation, old, &hierarchy, &environments.names);
    files.extend(environments.files);
    Ok(Amendment { files, subject, answer: planned.answer })
}

#[cfg(test)]
mod tests;
