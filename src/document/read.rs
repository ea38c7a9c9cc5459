//! Reading the documents of a file.

use super::build::build;
use super::contents::Contents;
use super::count::Count;
use super::limits::Limits;
use super::text::read_text;

/// Reads the documents of a file.
///
/// Every fault that can be found is found; only a fault of the syntax ends the reading.
pub fn read(bytes: &[u8], limits: &Limits) -> Contents {
    read_counted(bytes, limits, &mut |_| Count::Continue)
}

/// Reads the documents of a file, and has every value counted before it is kept.
pub fn read_counted(
    bytes: &[u8],
    limits: &Limits,
    count: &mut dyn FnMut(usize) -> Count,
) -> Contents {
    let text = match read_text(bytes, limits) {
        Ok(text) => text,
        Err(fault) => return Contents { faults: vec![fault], ..Contents::default() },
    };
    build(&text, limits, count)
}
