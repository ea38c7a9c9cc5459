//! How the index numbers what it has.

/// The place of a group, as the index writes it.
pub(super) type GroupNumber = u32;

/// No group, or no text.
pub(super) const NONE: u32 = u32::MAX;
