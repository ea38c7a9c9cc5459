//! Placeholder text of the module `config` until its first commit.
