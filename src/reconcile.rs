//! Placeholder text of the module `reconcile` until its first commit.
