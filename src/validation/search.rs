//! How much validation looks for.

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// What decides about a commit, and what costs little beside that.
    Decisive,
    /// Everything, also what takes time and is for people alone.
    Everything,
    /// Everything but groups that could conflict: [`find_conflicts`](crate::validation::Checked::find_conflicts) looks for them.
    WithoutConflicts,
}
