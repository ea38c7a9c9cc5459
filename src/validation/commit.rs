//! Findings about a commit as a whole.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::document::Span;
use crate::model::{BudgetItem, Exceeded, Meter};
use crate::wording::counted;

/// Says that a commit costs more than it may.
pub fn too_large(exceeded: Exceeded) -> Diagnostic {
    let item = exceeded.item;
    let place = Place { file: Arc::from("."), span: Span::START };
    Diagnostic::new(Kind::CommitTooLarge, place, format!("the commit is too large: {exceeded}"))
        .with_help(format!(
            "remove what should not be there, or raise the limit with `--commit-budget {item}=NUMBER`"
        ))
}

/// Says that a tree of a commit is not as git writes it.
pub fn misplaced_entry(message: String) -> Diagnostic {
    let place = Place { file: Arc::from("."), span: Span::START };
    Diagnostic::new(Kind::UniquenessViolation, place, message)
        .with_help("`git fsck` says what else is wrong; make the commit again with git")
}

/// Says that there are no node groups.
pub fn no_groups(place: Arc<str>, message: String) -> Diagnostic {
    Diagnostic::new(Kind::NoGroups, Place { file: place, span: Span::START }, message).with_help(
        "groups are read from `groups/` below the directory, or what `clade.yaml` says (a daemon's `--path` names the directory); write `allow_empty: true` into `clade.yaml` if it is meant",
    )
}

/// Says how many findings were only counted. They make a commit invalid if errors are among them.
pub(super) fn dropped(meter: &Meter) -> Option<Diagnostic> {
    let dropped = meter.dropped();
    if dropped.is_none() {
        return None;
    }
    let limit = meter.budget().limit(BudgetItem::Findings);
    let message = format!(
        "there are more than {limit} findings: {} and {} more are not shown",
        counted(dropped.errors, "error"),
        counted(dropped.warnings, "warning")
    );
    let place = Place { file: Arc::from("."), span: Span::START };
    let mut found = Diagnostic::new(Kind::CommitTooLarge, place, message)
        .with_help("mend what is shown, or raise the limit with `--commit-budget findings=NUMBER`");
    if dropped.errors == 0 {
        found.severity = Severity::Warning;
    }
    Some(found)
}
