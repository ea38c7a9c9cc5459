//! Placeholder text of the module `hierarchy` until its first commit.
