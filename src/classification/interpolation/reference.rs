//! A reference to a fact or to trusted data.

use std::sync::Arc;

use crate::model::{Path, Segment};

/// A fact or an item of the trusted data, as a template names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FactReference {
    /// It begins with `fact` or `trusted`, and a key behind it.
    pub(super) segments: Arc<[Segment]>,
}

impl FactReference {
    pub(super) fn new(root: &str, name: &str, indexes: Vec<Segment>) -> Self {
        let start = [root, name].into_iter().filter(|it| !it.is_empty());
        let start = start.map(|it| Segment::Key(it.into()));
        Self { segments: start.chain(indexes).collect() }
    }

    /// Returns where the value is: `fact` or `trusted`, and a key behind it.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns where the value is, as people write it.
    pub fn path(&self) -> Path {
        Path::Segments(Arc::clone(&self.segments))
    }

    /// Returns the place whose whole value decides what comes out. An object may stand where a number
    /// counts, and then the order of all its pairs matters.
    pub fn decisive(&self) -> Path {
        let keys = self.segments.iter().take_while(|it| matches!(it, Segment::Key(_)));
        Path::Segments(keys.cloned().collect())
    }
}
