//! Whether a write that was made before is still in effect.

use super::context::WriteContext;
use super::operation::{Operation, without_key};
use super::outcome::WriteOutcome;
use super::permitted::PermittedWrite;
use super::scope::WriteGrant;

/// Returns whether everything is as a write left it, so that its first answer is true again. What others changed
/// beside it does not count.
pub fn is_in_effect(
    context: &WriteContext<'_>,
    operation: &Operation,
    grants: &[WriteGrant],
    outcome: &WriteOutcome,
) -> bool {
    let estate = context.estate;
    let changes_nothing = |operation: &Operation| {
        let permitted = PermittedWrite::new(&estate.hierarchy, operation, grants);
        let changeset = permitted.and_then(|it| super::compute(context, it));
        changeset.is_ok_and(|it| it.files.is_empty())
    };
    match (operation, outcome) {
        // To make the group once more would be refused, so it is compared with what was sent.
        (Operation::Create { body, .. }, WriteOutcome::Created(id)) => {
            changes_nothing(&Operation::Put { id: *id, body: without_key(body, "id") })
        }
        // The write itself counts as an edit since the group was read.
        (Operation::Edit { id, delta }, _) => changes_nothing(&Operation::Edit {
            id: *id,
            delta: without_key(delta, "serial_number"),
        }),
        (Operation::Delete { id }, _) => estate.hierarchy.find(*id).is_none(),
        (Operation::RemoveEnvironment { name }, _) => !estate.environment_names().contains(name),
        _ => changes_nothing(operation),
    }
}
