//! Placeholder text of the module `cli` until its first commit.
