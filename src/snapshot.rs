//! Placeholder text of the module `snapshot` until its first commit.
