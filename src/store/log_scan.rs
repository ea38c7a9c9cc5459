//! Damage within the log of a file that is not open.
//!
//! SQLite reads the log up to the first page whose checksum is wrong, and drops what comes after it: a write that a power
//! failure interrupted looks so. Each write is synced before the next one begins, so where a later write went on behind
//! the end of one with such a page, that one was on disk, and was damaged since. Checksums go on from page to
//! page: what an earlier write left behind, that was rolled back, does not go on from that end.

#![expect(clippy::disallowed_methods, reason = "this is where the log is")]

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER: usize = 32;
const PAGE_HEADER: usize = 24;

/// The first bytes of a log, but for the last bit, which says how checksums read numbers.
const MAGIC: u32 = 0x377f_0682;

type Checksum = (u32, u32);

/// A log up to some page.
#[derive(Debug)]
struct LogReader {
    is_big_endian: bool,
    salts: [u8; 8],
    /// Where the checksum of the next page goes on from, as long as all are right.
    sound: Option<Checksum>,
    /// The same behind the end of a write with a wrong page.
    behind_end: Option<Checksum>,
}

/// Returns whether a log has a damaged page within what was written. One whose first bytes are wrong has none.
pub(super) fn is_damaged(log: &Path) -> bool {
    let is_file = std::fs::metadata(log).is_ok_and(|it| it.is_file());
    let scan = || File::open(log).and_then(|it| scan(BufReader::new(it))).unwrap_or(false);
    // Another program may have written while it was read.
    is_file && scan() && scan()
}

fn scan(mut log: impl Read) -> io::Result<bool> {
    let mut header = [0; HEADER];
    log.read_exact(&mut header)?;
    let Some(mut reader) = LogReader::new(&header) else { return Ok(false) };
    let page_size = number(&header[8..12]);
    if !page_size.is_power_of_two() || !(512..=65_536).contains(&page_size) {
        return Ok(false);
    }
    let mut page = vec![0; PAGE_HEADER + page_size as usize];
    loop {
        match log.read_exact(&mut page) {
            Ok(()) if reader.shows_damage(&page) => return Ok(true),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

impl LogReader {
    fn new(header: &[u8; HEADER]) -> Option<Self> {
        let magic = number(&header[..4]);
        let is_big_endian = magic & 1 == 1;
        let sum = checksum(is_big_endian, (0, 0), &header[..24]);
        let is_sound = magic & !1 == MAGIC && sum == stored(&header[24..]);
        let salts = header[16..24].try_into().ok()?;
        is_sound.then_some(Self { is_big_endian, salts, sound: Some(sum), behind_end: None })
    }

    /// Takes the next page; returns whether one before it is damaged for certain.
    fn shows_damage(&mut self, page: &[u8]) -> bool {
        let (header, content) = page.split_at(PAGE_HEADER);
        let sum = stored(&header[16..]);
        // Pages from before the log began again have other salts.
        let is_of_log = header[8..16] == self.salts;
        let goes_on_from = |before: Checksum| {
            let of_header = checksum(self.is_big_endian, before, &header[..8]);
            is_of_log && checksum(self.is_big_endian, of_header, content) == sum
        };
        if self.sound.is_some_and(goes_on_from) {
            self.sound = Some(sum);
            return false;
        }
        if self.behind_end.is_some_and(goes_on_from) {
            return true;
        }
        self.sound = None;
        let is_end = number(&header[4..8]) != 0;
        self.behind_end = (is_of_log && is_end).then_some(sum);
        false
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn stored(bytes: &[u8]) -> Checksum {
    (number(&bytes[..4]), number(&bytes[4..8]))
}

fn checksum(is_big_endian: bool, before: Checksum, bytes: &[u8]) -> Checksum {
    let read = |bytes: [u8; 4]| match is_big_endian {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    };
    let (words, _) = bytes.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().fold(before, |(mut first, mut second), [one, two]| {
        first = first.wrapping_add(read(*one)).wrapping_add(second);
        second = second.wrapping_add(read(*two)).wrapping_add(first);
        (first, second)
    })
}
