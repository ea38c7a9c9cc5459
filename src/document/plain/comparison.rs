//! The two readings of a file, side by side.

use crate::document::build::build;
use crate::document::text::decode;
use crate::document::{Count, Limits};

/// Compares the two readings of a file; returns whether it is read plainly.
///
/// # Panics
///
/// Panics if they differ.
pub fn fuzz_plain(bytes: &[u8], limits: &Limits) -> bool {
    let Ok(text) = decode(bytes, limits) else { return false };
    let Some((plain, values)) = super::read(text, limits) else { return false };
    let mut counted = 0;
    let parsed = build(&text.prepared(), limits, &mut |nodes| {
        counted += nodes;
        Count::Continue
    });
    assert_eq!(plain, parsed, "{:?}", text.original);
    assert_eq!(values, counted, "{:?}", text.original);
    true
}
