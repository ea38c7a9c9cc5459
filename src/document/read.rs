//! Reading the documents of a file.

use super::build::build;
use super::contents::Contents;
use super::count::Count;
use super::limits::Limits;
use super::plain;
use super::text::decode;

/// Reads the documents of a file.
///
/// Every fault that can be found is found; only a fault of the syntax ends the reading.
pub fn read(bytes: &[u8], limits: &Limits) -> Contents {
    read_counted(bytes, limits, &mut |_| Count::Continue)
}

/// Reads the documents of a file, and has every value counted before it is used.
pub fn read_counted(
    bytes: &[u8],
    limits: &Limits,
    count: &mut dyn FnMut(usize) -> Count,
) -> Contents {
    let text = match decode(bytes, limits) {
        Ok(text) => text,
        Err(fault) => {
            return Contents { faults: vec![fault], is_cut_off: true, ..Contents::default() };
        }
    };
    // Its values are counted at once, when it is sure that no other reading counts them again; they are not many.
    let Some((contents, values)) = plain::read(text, limits) else {
        return build(&text.prepared(), limits, count);
    };
    match count(values) {
        Count::Continue => contents,
        // The fault has a place, that of the first value: the callers who count do not show it.
        Count::Stop => build(&text.prepared(), limits, &mut |_| Count::Stop),
    }
}
