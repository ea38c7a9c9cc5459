//! Findings about a group repository, and how they are shown.
//!
//! A [`Diagnostic`] is a value: validation collects many of them and never
//! stops at the first. The renderers are pure functions of a [`Report`].

mod details;
mod first_error;
mod github;
mod gitlab;
mod human;
mod json;
mod junit;
mod kind;
mod render;
mod report;
mod sarif;
mod similar;
mod visible;

use std::sync::Arc;

use serde_json::Value;

use crate::document::{Span, bounded};

pub use first_error::first_error;
pub use kind::{Kind, Severity};
pub use render::annotate;
pub use report::{Colour, Format, Report, ShownFindings};
pub use similar::{KnownNames, closest, closest_within};
pub use visible::{visible, visible_up_to};

/// A stretch of one file of the repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The path from the root of the group repository, with `/` between its parts.
    pub file: Arc<str>,
    /// Where in the file; [`Span::START`] if the finding is about the file as a whole.
    pub span: Span,
}

/// One finding of validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What was found.
    pub kind: Kind,
    /// How bad it is; policy may soften the kind's own severity.
    pub severity: Severity,
    /// One line, lowercase, without a full stop, the user's words in backticks.
    pub message: String,
    /// Where it was found.
    pub place: Place,
    /// The name of the node group that it concerns.
    pub group: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    /// The part of a JSON Schema that is broken, where one is.
    pub schema: Option<Arc<Value>>,
}

/// How many related places a finding keeps.
const RELATED: usize = 20;

/// A second place of a finding, and what it has to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Where.
    pub place: Place,
    /// Why it matters, such as `first set here`.
    pub message: String,
}

impl Diagnostic {
    /// Creates a finding of the kind's own severity, without help or related places.
    pub fn new(kind: Kind, place: Place, message: impl Into<String>) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            message: bounded(message.into()),
            place,
            group: None,
            help: None,
            related: Vec::new(),
            schema: None,
        }
    }

    /// Names the node group that the finding concerns.
    #[must_use]
    pub fn in_group(mut self, name: impl Into<String>) -> Self {
        self.group = Some(bounded(name.into()));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(bounded(help.into()));
        self
    }

    /// Adds the part of a JSON Schema that is broken.
    #[must_use]
    pub fn with_schema(mut self, part: Value) -> Self {
        self.schema = Some(Arc::new(part));
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn with_related(mut self, place: Place, message: impl Into<String>) -> Self {
        if self.related.len() < RELATED {
            // Most have one, for which a vector would make room for four.
            self.related.reserve_exact(1);
            self.related.push(Related { place, message: bounded(message.into()) });
        }
        self
    }
}

#[cfg(test)]
mod tests;
