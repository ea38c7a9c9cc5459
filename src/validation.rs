//! Placeholder text of the module `validation` until its first commit.
