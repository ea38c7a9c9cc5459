//! Counting values while they are read.

/// Whether reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// It does.
    Continue,
    /// It ends here; what was read so far must not be used.
    Stop,
}
