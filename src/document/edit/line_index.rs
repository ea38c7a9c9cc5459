//! Where the lines of a text begin: a list of many elements may stand in one long line.

/// Where each line begins.
pub(super) struct LineIndex(Vec<usize>);

impl LineIndex {
    pub(super) fn of(text: &str) -> Self {
        let next = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(next).collect())
    }

    /// Returns where the line of a place begins.
    pub(super) fn start(&self, at: usize) -> usize {
        let behind = self.0.partition_point(|it| *it <= at);
        behind.checked_sub(1).and_then(|it| self.0.get(it)).copied().unwrap_or(0)
    }

    /// Returns where the line behind that of a place begins; none if that is the last line.
    pub(super) fn next(&self, at: usize) -> Option<usize> {
        self.0.get(self.0.partition_point(|it| *it <= at)).copied()
    }
}
