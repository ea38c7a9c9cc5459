//! Placeholder text of the module `facts` until its first commit.
