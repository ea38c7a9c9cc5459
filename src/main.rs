//! The `clade` program.
fn main() {}
