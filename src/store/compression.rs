//! Facts as they are kept: compressed, with a checksum.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

/// More costs more time and saves little.
const LEVEL: i32 = 3;

thread_local! {
    /// Making one takes longer than what it does.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(compressor().ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> =
        RefCell::new(Decompressor::new().ok());
}

fn compressor() -> std::io::Result<Compressor<'static>> {
    let mut compressor = Compressor::new(LEVEL)?;
    // The database has none: what a disk changes must not be taken for facts.
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    Ok(compressor)
}

/// Compresses a text.
pub(super) fn compress(text: &[u8]) -> std::io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|it| match it {
        Some(compressor) => compressor.compress(text),
        None => Err(std::io::ErrorKind::OutOfMemory.into()),
    })
}

/// Returns a text that takes at most so many bytes.
pub(super) fn decompress(bytes: &[u8], most: usize) -> std::io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|it| match it {
        Some(decompressor) => decompressor.decompress(bytes, most),
        None => Err(std::io::ErrorKind::OutOfMemory.into()),
    })
}

/// Compresses a text, and writes its length in front.
pub(super) fn pack(text: &[u8]) -> std::io::Result<Vec<u8>> {
    let length = u32::try_from(text.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?;
    let mut packed = length.to_le_bytes().to_vec();
    packed.extend(compress(text)?);
    Ok(packed)
}

/// Returns what was packed, if it takes at most so many bytes.
pub(super) fn unpack(packed: &[u8], most: usize) -> std::io::Result<Vec<u8>> {
    let (length, bytes) = packed.split_first_chunk().ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if length > most {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    decompress(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_a_changed_one_does_not() {
        let text =
            br#"{"fact":{"os":{"family":"Debian","name":"Debian"}},"trusted":{}}"#.repeat(50);
        let bytes = compress(&text).unwrap();
        assert!(bytes.len() < text.len() / 10, "{} of {}", bytes.len(), text.len());
        assert_eq!(decompress(&bytes, text.len()).unwrap(), text);
        assert!(decompress(&bytes, text.len() - 1).is_err(), "more than there should be");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let found = decompress(&changed, text.len());
            assert!(found.is_err() || found.unwrap() == text, "byte {at}");
        }
    }
}
