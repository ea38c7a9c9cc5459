//! What a write through the classifier API changes in the files of the repository.
//!
//! Every write comes down to groups that are written or removed. [`compute`] checks them as the API promises,
//! and turns them into changed files: texts are edited in place, a new group gets
//! the file that follows from the hierarchy, and groups that name their parent by a name that
//! changes are changed with it.

mod body;
mod catalogue;
mod check;
mod context;
mod document;
mod effect;
mod environment;
mod files;
mod group_changes;
mod layout;
mod number;
mod operation;
mod outcome;
mod parent_names;
mod permitted;
mod rejection;
mod scope;
mod subject;
mod taken_paths;

pub use body::{SHOWN_PROBLEMS, disallowed_keys, first_problems, read_group, read_json};
pub use catalogue::{NewCatalogue, WrittenBy, environment_of, etag_of, says_the_same};
pub use context::{PathKind, WriteContext};
pub use document::{ORDER, house_layout, new_document};
pub use effect::is_in_effect;
pub use environment::{check_may_update_classes, paths_of};
pub use layout::files as layout_of;
pub use number::check_numbers;
pub use operation::Operation;
pub use outcome::{Changeset, WriteOutcome};
pub use parent_names::ParentNames;
pub use permitted::PermittedWrite;
pub use rejection::{Rejection, RejectionKind};
pub use scope::{Scope, WriteGrant};

/// Computes what a write changes. One of the client's grants must allow it as a whole.
///
/// # Errors
///
/// Returns why the write is rejected.
pub fn compute(
    context: &WriteContext<'_>,
    write: PermittedWrite<'_>,
) -> Result<Changeset, Rejection> {
    let PermittedWrite { operation, grants } = write;
    let planned = operation::plan(context, operation, grants)?;
    let environments = environment::changes(context, operation)?;
    let old = &context.estate.hierarchy;
    let grant = scope::first_allowing(grants, |scope| {
        permitted::check(scope, old, operation)?;
        environments.check(scope)?;
        permitted::check_changes(scope, old, operation, &planned.changes)
    })?;
    let hierarchy = check::build(old, &planned.changes)?;
    check::referents(context, &planned.changes, &hierarchy)?;
    let mut files = files::changes(context, &planned.changes, &hierarchy)?;
    let subject = subject::of(operation, old, &hierarchy, &environments.names);
    files.extend(environments.files);
    Ok(Changeset { files, subject, answer: planned.answer, actor: grant.actor.clone() })
}
