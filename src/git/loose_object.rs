//! Reading loose objects: those that have a file each.
//!
//! libgit2 1.9 trusts such a file: one that is cut short keeps it inflating for ever, and the size in the header is
//! what it allocates. So they are read here, and libgit2 gets what is whole.
#![expect(clippy::disallowed_methods, reason = "loose objects are files")]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::{Decompress, FlushDecompress, Status};
use git2::ObjectType;

/// The longest header, `commit`, a space, 20 digits and a NUL, fits in.
const LONGEST_HEADER: usize = 32;

/// How many bytes are read at a time.
const CHUNK: usize = 32 << 10;

/// An object of a file.
#[derive(Debug)]
pub(super) struct LooseObject {
    pub(super) kind: ObjectType,
    /// In bytes.
    pub(super) size: u64,
    /// None for an object that is larger than the caller reads.
    pub(super) content: Option<Vec<u8>>,
}

/// An object of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum LooseFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Damaged(&'static str),
}

impl LooseObject {
    /// Reads the object in a file; one of more than `most` bytes is not read on after its header.
    ///
    /// # Errors
    ///
    /// Returns what is wrong first. Whether the content has the hash that names it is not checked.
    pub(super) fn read(path: &Path, most: u64) -> Result<Self, LooseFault> {
        // Opening a pipe would wait for a writer.
        if !path.metadata()?.is_file() {
            return Err(LooseFault::Damaged("it is not a file"));
        }
        Self::inflate(&mut File::open(path)?, most)
    }

    fn inflate(file: &mut impl Read, most: u64) -> Result<Self, LooseFault> {
        let mut inflate = Decompress::new(true);
        let mut chunk = vec![0; CHUNK];
        let mut bytes = Vec::with_capacity(CHUNK);
        let mut header: Option<Header> = None;
        loop {
            let count = file.read(&mut chunk)?;
            let mut input = chunk.get(..count).unwrap_or_default();
            if input.is_empty() {
                return Err(LooseFault::Damaged("it is cut short"));
            }
            while !input.is_empty() {
                let before = (inflate.total_in(), bytes.len());
                bytes.reserve(CHUNK);
                let status = inflate
                    .decompress_vec(input, &mut bytes, FlushDecompress::None)
                    .map_err(|_| LooseFault::Damaged("it cannot be inflated"))?;
                let used = usize::try_from(inflate.total_in() - before.0).unwrap_or(usize::MAX);
                input = input.get(used..).unwrap_or_default();
                if header.is_none() {
                    header = Header::parse(&bytes, status == Status::StreamEnd)?;
                }
                let excess = header.as_ref().map(|it| (it, it.check(bytes.len())));
                match (status, excess) {
                    (_, Some((_, Err(fault)))) => return Err(fault),
                    (_, Some((it, _))) if it.size > most => return Ok(it.without_content()),
                    (Status::StreamEnd, Some((it, _))) => {
                        let has_more = !input.is_empty() || file.read(&mut [0])? > 0;
                        return it.with_content(bytes, has_more);
                    }
                    (Status::StreamEnd, None) => return Err(Header::MALFORMED),
                    _ if used == 0 && bytes.len() == before.1 => {
                        return Err(LooseFault::Damaged("it cannot be inflated"));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// What an object begins with: its type and size.
#[derive(Debug)]
struct Header {
    kind: ObjectType,
    size: u64,
    length: usize,
}

impl Header {
    const MALFORMED: LooseFault = LooseFault::Damaged("it does not begin as an object");

    /// Returns the header; none while it may not be there as a whole.
    fn parse(bytes: &[u8], is_all: bool) -> Result<Option<Self>, LooseFault> {
        let Some(end) = bytes.iter().take(LONGEST_HEADER).position(|it| *it == 0) else {
            return if is_all || bytes.len() >= LONGEST_HEADER {
                Err(Self::MALFORMED)
            } else {
                Ok(None)
            };
        };
        let text = bytes.get(..end).and_then(|it| std::str::from_utf8(it).ok());
        let (kind, size) = text.and_then(|it| it.split_once(' ')).ok_or(Self::MALFORMED)?;
        let kind = match kind {
            "commit" => ObjectType::Commit,
            "tree" => ObjectType::Tree,
            "blob" => ObjectType::Blob,
            "tag" => ObjectType::Tag,
            _ => return Err(Self::MALFORMED),
        };
        let is_number = size.bytes().all(|it| it.is_ascii_digit());
        let size = size.parse().ok().filter(|_| is_number).ok_or(Self::MALFORMED)?;
        Ok(Some(Self { kind, size, length: end + 1 }))
    }

    /// Checks that no more was inflated than the header says.
    fn check(&self, inflated: usize) -> Result<(), LooseFault> {
        if (inflated - self.length) as u64 > self.size {
            return Err(LooseFault::Damaged("it is longer than its header says"));
        }
        Ok(())
    }

    fn without_content(&self) -> LooseObject {
        LooseObject { kind: self.kind, size: self.size, content: None }
    }

    fn with_content(&self, mut bytes: Vec<u8>, has_more: bool) -> Result<LooseObject, LooseFault> {
        if has_more {
            return Err(LooseFault::Damaged("something follows it"));
        }
        if ((bytes.len() - self.length) as u64) < self.size {
            return Err(LooseFault::Damaged("it is shorter than its header says"));
        }
        bytes.drain(..self.length);
        // It is kept for long, and most are much smaller than what is read at a time.
        bytes.shrink_to_fit();
        Ok(LooseObject { content: Some(bytes), ..self.without_content() })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn read(file: &[u8], most: u64) -> Result<(ObjectType, u64, Option<usize>), String> {
        let read = LooseObject::inflate(&mut &*file, most);
        read.map(|it| (it.kind, it.size, it.content.map(|it| it.len())))
            .map_err(|it| it.to_string())
    }

    #[test]
    fn whole_objects_are_read() {
        for size in [0, 1, 40, CHUNK - 8, CHUNK, 3 * CHUNK + 1] {
            // Bytes that do not deflate well, so that there are several chunks.
            let content: Vec<u8> =
                (0..size).map(|it| u8::try_from(it * it % 251).unwrap()).collect();
            let file = deflated(&[format!("blob {size}\0").as_bytes(), &content].concat());
            let found = LooseObject::inflate(&mut &*file, u64::MAX).unwrap();
            let memory = found.content.as_ref().map(Vec::capacity);
            assert_eq!((found.kind, memory), (ObjectType::Blob, Some(size)));
            assert_eq!(found.content, Some(content), "{size}");
            let small = Some(size).filter(|it| *it <= 40);
            assert_eq!(read(&file, 40), Ok((ObjectType::Blob, size as u64, small)));
        }
    }

    #[test]
    fn damaged_objects_are_errors() {
        let good = deflated(b"tree 5\0abcde");
        for length in 0..good.len() {
            assert_eq!(read(&good[..length], 99), Err("it is cut short".to_owned()), "{length}");
        }
        let with_more = [&*good, b"x"].concat();
        for (file, expected) in [
            (with_more, "something follows it"),
            (deflated(b"tree 5\0abcdef"), "it is longer than its header says"),
            (deflated(b"tree 5\0abcd"), "it is shorter than its header says"),
            (deflated(b"tree 99999999999999999999\0abcd"), "it does not begin as an object"),
            (deflated(b"tree +5\0abcde"), "it does not begin as an object"),
            (deflated(b"tree 5"), "it does not begin as an object"),
            (deflated(b""), "it does not begin as an object"),
            (deflated(b"fork 5\0abcde"), "it does not begin as an object"),
            (deflated(&[b'a'; 99]), "it does not begin as an object"),
            (b"garbage".to_vec(), "it cannot be inflated"),
            (vec![0; 99], "it cannot be inflated"),
        ] {
            assert_eq!(read(&file, 99), Err(expected.to_owned()), "{file:?}");
        }
    }
}
