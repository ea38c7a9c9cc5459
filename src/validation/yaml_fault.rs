//! Faults of a file's YAML as findings.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{Fault, FaultKind};

/// Returns a fault of a file's YAML as a finding.
pub(super) fn from_fault(file: &Arc<str>, fault: Fault) -> Diagnostic {
    let kind = match fault.kind {
        FaultKind::Malformed | FaultKind::Refused => Kind::MalformedYaml,
        FaultKind::DuplicateKey => Kind::DuplicateKey,
        FaultKind::AmbiguousScalar => Kind::AmbiguousScalar,
        FaultKind::TooLarge => Kind::FileTooLarge,
    };
    let at = |span| Place { file: Arc::clone(file), span };
    let mut diagnostic = Diagnostic::new(kind, at(fault.span), fault.message);
    diagnostic.help = fault.help;
    for (span, message) in fault.related {
        diagnostic = diagnostic.with_related(at(span), message);
    }
    diagnostic
}
