//! Placeholder text of the module `http` until its first commit.
