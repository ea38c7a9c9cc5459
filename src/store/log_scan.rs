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

/// The first bytes of a log, but for the last bit, which says how checksums read numbers.
const MAGIC: u32 = 0x377f_0682;

/// Four bytes that are a number, the highest first, unless a checksum reads them.
type Word = [u8; 4];

type Checksum = (u32, u32);

/// A log up to some page.
#[derive(Debug)]
struct LogReader {
    is_big_endian: bool,
    salts: [Word; 2],
    page_size: usize,
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
    let mut header = [0; 32];
    log.read_exact(&mut header)?;
    let Some(mut reader) = LogReader::new(header.as_chunks().0) else { return Ok(false) };
    let (mut header, mut content) = ([0; 24], vec![0; reader.page_size]);
    loop {
        match log.read_exact(&mut header).and_then(|()| log.read_exact(&mut content)) {
            Ok(()) if reader.shows_damage(header.as_chunks().0, content.as_chunks().0) => {
                return Ok(true);
            }
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

impl LogReader {
    fn new(header: &[Word]) -> Option<Self> {
        let [start @ .., sum, of_sum] = header else { return None };
        let [magic, _, page_size, _, salts @ ..] = start else { return None };
        let magic = u32::from_be_bytes(*magic);
        let is_big_endian = magic & 1 == 1;
        let sum = stored(*sum, *of_sum);
        let is_sound = magic & !1 == MAGIC && checksum(is_big_endian, (0, 0), start) == sum;
        let page_size = u32::from_be_bytes(*page_size);
        let is_size = page_size.is_power_of_two() && (512..=65_536).contains(&page_size);
        (is_sound && is_size).then_some(Self {
            is_big_endian,
            salts: salts.try_into().ok()?,
            page_size: usize::try_from(page_size).ok()?,
            sound: Some(sum),
            behind_end: None,
        })
    }

    /// Takes the next page; returns whether one before it is damaged for certain.
    fn shows_damage(&mut self, header: &[Word], content: &[Word]) -> bool {
        let [page, end, salts @ .., sum, of_sum] = header else { return false };
        let sum = stored(*sum, *of_sum);
        // Pages from before the log began again have other salts.
        let is_of_log = salts == self.salts;
        let goes_on_from = |before: Checksum| {
            let of_header = checksum(self.is_big_endian, before, &[*page, *end]);
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
        let is_end = u32::from_be_bytes(*end) != 0;
        self.behind_end = (is_of_log && is_end).then_some(sum);
        false
    }
}

fn stored(first: Word, second: Word) -> Checksum {
    (u32::from_be_bytes(first), u32::from_be_bytes(second))
}

fn checksum(is_big_endian: bool, before: Checksum, words: &[Word]) -> Checksum {
    let read = |word: Word| match is_big_endian {
        true => u32::from_be_bytes(word),
        false => u32::from_le_bytes(word),
    };
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().fold(before, |(mut first, mut second), [one, two]| {
        first = first.wrapping_add(read(*one)).wrapping_add(second);
        second = second.wrapping_add(read(*two)).wrapping_add(first);
        (first, second)
    })
}
