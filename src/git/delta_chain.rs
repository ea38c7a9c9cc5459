//! Finding deltas of a pack that are based on themselves: libgit2 follows them without end, and takes memory for each step.
#![expect(clippy::disallowed_methods, reason = "packs are files")]

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::Path;

/// The length of a SHA-1.
const HASH: usize = 20;

/// Where the names of an index of version 2 begin, and how many bytes its table of checksums has for each.
const NAMES: usize = 8 + 4 * 256;
const CHECKSUM: usize = 4;

/// Says that an offset stands in the table of long ones.
const LONG: u32 = 1 << 31;

/// How much of a pack is read at once: small objects lie close together.
const BUFFER: usize = 4096;

/// The largest pack that is searched, in objects: a larger one would take longer than all else that is read of it.
const MOST: usize = 1 << 20;

/// The types of deltas, as the header of an object has them.
const BY_OFFSET: u8 = 6;
const BY_NAME: u8 = 7;

/// Returns whether a delta of a pack leads to itself. The index is one that was found whole.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub(super) fn has_cycle(index: &Path) -> io::Result<bool> {
    let pack = File::open(index.with_extension("pack"))?;
    let Some(mut chains) = DeltaChains::of(fs::read(index)?, pack) else { return Ok(false) };
    let mut offsets = chains.offsets.clone();
    offsets.sort_unstable();
    // What is based on an offset stands before it; without such a delta, each chain ends where the pack begins.
    let mut forward = Vec::new();
    for offset in offsets {
        if chains.base_of(offset)?.is_some_and(|base| base >= offset) {
            forward.push(offset);
        }
    }
    let mut ending = HashSet::new();
    for start in forward {
        let (mut path, mut next) = (HashSet::new(), Some(start));
        while let Some(offset) = next.filter(|it| !ending.contains(it)) {
            if !path.insert(offset) {
                return Ok(true);
            }
            next = chains.base_of(offset)?;
        }
        ending.extend(path);
    }
    Ok(false)
}

/// The objects of a pack, and what deltas are based on.
struct DeltaChains {
    index: Vec<u8>,
    /// In the order of the names.
    offsets: Vec<u64>,
    pack: BufReader<File>,
    position: u64,
}

impl DeltaChains {
    /// Reads the index; none if it is not one of version 2, or of a pack that is too large.
    fn of(index: Vec<u8>, pack: File) -> Option<Self> {
        let count = index.get(NAMES - 4..NAMES)?;
        let count = usize::try_from(u32::from_be_bytes(count.try_into().ok()?)).ok()?;
        if count > MOST {
            return None;
        }
        let offsets = index.get(NAMES + count * (HASH + CHECKSUM)..)?;
        let (short, long) = offsets.split_at_checked(count * 4)?;
        let offset = |bytes: &[u8; 4]| {
            let short = u32::from_be_bytes(*bytes);
            let Some(at) = short.checked_sub(LONG) else { return Some(u64::from(short)) };
            let at = usize::try_from(at).ok()? * 8;
            Some(u64::from_be_bytes(long.get(at..at + 8)?.try_into().ok()?))
        };
        let offsets = short.as_chunks().0.iter().map(offset).collect::<Option<_>>()?;
        Some(Self { index, offsets, pack: BufReader::with_capacity(BUFFER, pack), position: 0 })
    }

    fn offset_of(&self, name: [u8; HASH]) -> Option<u64> {
        let names = self.index.get(NAMES..NAMES + self.offsets.len() * HASH)?;
        let at = names.as_chunks().0.binary_search(&name).ok()?;
        self.offsets.get(at).copied()
    }

    /// Returns the offset of what a delta is based on; none of an object that is not a delta, or is cut short.
    fn base_of(&mut self, offset: u64) -> io::Result<Option<u64>> {
        match self.read_base(offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            read => read,
        }
    }

    fn read_base(&mut self, offset: u64) -> io::Result<Option<u64>> {
        let distance = i64::try_from(i128::from(offset) - i128::from(self.position));
        self.pack.seek_relative(distance.map_err(io::Error::other)?)?;
        self.position = offset;
        let mut byte = self.byte()?;
        let kind = (byte >> 4) & 7;
        // The size of the object.
        while byte & 0x80 != 0 {
            byte = self.byte()?;
        }
        match kind {
            BY_OFFSET => {
                let mut byte = self.byte()?;
                let mut before = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = self.byte()?;
                    let more = before.checked_add(1).and_then(|it| it.checked_mul(128));
                    let Some(more) = more else { return Ok(None) };
                    before = more | u64::from(byte & 0x7f);
                }
                Ok(offset.checked_sub(before).filter(|_| before != 0))
            }
            BY_NAME => {
                let name = self.bytes()?;
                Ok(self.offset_of(name))
            }
            _ => Ok(None),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.bytes::<1>().map(|[it]| it)
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.pack.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    /// What an object of a pack is based on.
    #[derive(Debug)]
    enum Base {
        Nothing,
        Name(u8),
        /// So many bytes before it.
        Before(u8),
    }

    fn name(of: u8) -> [u8; HASH] {
        [of; HASH]
    }

    /// Writes a pack with an object for each base, whose names follow the order, and its index.
    fn write(directory: &Path, bases: &[Base]) -> std::path::PathBuf {
        let (mut pack, mut offsets) = (b"PACK\0\0\0\x02\0\0\0\0".to_vec(), Vec::new());
        for base in bases {
            offsets.extend(u32::try_from(pack.len()).unwrap().to_be_bytes());
            match base {
                Base::Nothing => pack.extend([0xb0, 1, 0]),
                Base::Name(of) => pack.extend([&[0x70][..], &name(*of), &[0]].concat()),
                Base::Before(bytes) => pack.extend([0xe0, 1, *bytes, 0]),
            }
        }
        let count = u8::try_from(bases.len()).unwrap();
        let mut index = vec![0; NAMES - 1];
        index.push(count);
        index.extend((0..count).flat_map(name));
        index.extend(vec![0; bases.len() * CHECKSUM]);
        index.extend(offsets);
        let path = directory.join("pack-a.idx");
        fs::write(&path, index).unwrap();
        fs::write(path.with_extension("pack"), pack).unwrap();
        path
    }

    #[test]
    fn a_delta_that_leads_to_itself_is_found() {
        use Base::{Before, Name, Nothing};

        let table = [
            (vec![], false),
            (vec![Nothing, Name(0), Before(22), Name(1)], false),
            (vec![Name(1), Name(2), Name(3), Nothing, Name(0)], false),
            (vec![Name(9), Before(200), Before(0)], false),
            (vec![Nothing, Name(1)], true),
            (vec![Nothing, Name(2), Name(1)], true),
            (vec![Name(1), Before(22)], true),
            (vec![Name(1), Name(2), Nothing, Name(5), Before(22), Name(4)], true),
        ];
        each_row(table, |(bases, expected)| {
            let directory = tempfile::tempdir().unwrap();
            let index = write(directory.path(), &bases);
            assert_eq!(has_cycle(&index).unwrap(), expected);
        });
    }
}
