//! Placeholder text of the module `git` until its first commit.
