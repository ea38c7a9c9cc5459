//! Placeholder text of the module `classification` until its first commit.
