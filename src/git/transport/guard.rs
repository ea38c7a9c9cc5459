//! What a remote sends is checked before libgit2 reads it.
//!
//! A pack of a few megabytes can hold gigabytes, and whatever reads an object needs as much memory
//! as it is large. The bytes of git's protocol are followed while they pass: packets, side bands, and
//! in the pack the header of every object. Objects are inflated into a small buffer that is thrown
//! away, which finds their ends and, for deltas, the size of what they make.

#[cfg(test)]
mod tests;

use flate2::{Decompress, FlushDecompress, Status};
use sha1::{Digest as _, Sha1};

use super::ref_line::RefLines;
use crate::git::options::ObjectLimits;

/// The most bytes of a commit, a tree or an annotated tag: a tree of this size has about 200,000
/// entries. They are compared with each other when packs are joined, several at a time.
pub(in crate::git) const STRUCTURE: u64 = 8 << 20;

/// The most bytes beside packs: the list of refs, and progress for people.
const BESIDE_PACKS: u64 = 64 << 20;

/// The most bytes of output read per step.
const SCRATCH: usize = 16 << 10;

/// Why nothing more is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// There is more than we take.
    Limit(String),
    /// It is not what git sends.
    Malformed(&'static str),
    /// The remote gives up, and says why.
    Fatal(String),
}

/// The band by which a remote says why it gives up.
const FATAL: u8 = 3;

/// How many bytes of that are kept.
const LONGEST_FATAL: usize = 500;

/// Follows git's protocol from the answer's first byte on.
#[derive(Debug)]
pub(super) struct Guard {
    frame: Frame,
    beside_packs: u64,
    /// What is followed of a pack; none where no pack may come.
    pack: Option<Pack>,
    lines: RefLines,
}

#[derive(Debug)]
enum Frame {
    /// The four digits of a packet's length.
    Length(Vec<u8>),
    /// The rest of a packet, and what it is; `None` before its first byte.
    Payload(usize, Option<PacketContent>),
    /// A pack without packets, up to the end.
    Raw,
}

#[derive(Debug)]
enum PacketContent {
    Pack,
    /// Why the remote gives up, as far as it is kept.
    Fatal(Vec<u8>),
    Other,
}

impl PacketContent {
    fn keep(&mut self, bytes: &[u8]) {
        if let Self::Fatal(text) = self {
            let room = LONGEST_FATAL.saturating_sub(text.len());
            text.extend(bytes.iter().take(room));
        }
    }
}

impl Guard {
    pub(super) fn new(limits: ObjectLimits) -> Self {
        Self { pack: Some(Pack::new(limits)), ..Self::of_push() }
    }

    /// Follows what a remote answers to a push: its refs, and then what became of them.
    pub(super) fn of_push() -> Self {
        let frame = Frame::Length(Vec::new());
        Self { frame, beside_packs: 0, pack: None, lines: RefLines::default() }
    }

    /// Returns whether the remote is a shallow clone.
    pub(super) fn is_shallow(&self) -> bool {
        self.lines.is_shallow()
    }

    /// Returns the names of refs that are not UTF-8.
    pub(super) fn refs_not_utf8(&self) -> &[String] {
        self.lines.not_utf8()
    }

    /// Takes the next bytes.
    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while let Some((first, rest)) = bytes.split_first() {
            match &mut self.frame {
                Frame::Raw => return self.take_pack(bytes),
                Frame::Length(digits) => {
                    digits.push(*first);
                    bytes = rest;
                    self.beside_packs += 1;
                    if digits.len() < 4 {
                        continue;
                    }
                    if digits == b"PACK" {
                        self.frame = Frame::Raw;
                        self.take_pack(b"PACK")?;
                        continue;
                    }
                    let text = std::str::from_utf8(digits).ok();
                    let length = text.and_then(|it| usize::from_str_radix(it, 16).ok());
                    let length = length.ok_or(Excess::Malformed("a packet has no length"))?;
                    self.frame = match length.saturating_sub(4) {
                        0 => Frame::Length(Vec::new()),
                        left => Frame::Payload(left, None),
                    };
                }
                // The first band of two or three is the pack; after a push it says what became of the refs.
                Frame::Payload(left, content @ None) => {
                    *content = Some(match *first {
                        1 if self.pack.is_some() => PacketContent::Pack,
                        FATAL => PacketContent::Fatal(Vec::new()),
                        _ => PacketContent::Other,
                    });
                    *left -= 1;
                    bytes = rest;
                    self.lines.begin(*first);
                    self.end_packet()?;
                }
                Frame::Payload(left, Some(content)) => {
                    let (now, later) = bytes.split_at_checked(*left).unwrap_or((bytes, &[]));
                    *left -= now.len();
                    bytes = later;
                    content.keep(now);
                    if matches!(content, PacketContent::Pack) {
                        self.take_pack(now)?;
                    } else {
                        self.beside_packs += now.len() as u64;
                        self.lines.take(now);
                    }
                    self.end_packet()?;
                }
            }
            if self.beside_packs > BESIDE_PACKS {
                return Err(Excess::Limit(format!(
                    "it sends more than {BESIDE_PACKS} bytes of refs"
                )));
            }
        }
        Ok(())
    }

    fn take_pack(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        let pack = self.pack.as_mut().ok_or(Excess::Malformed("a pack answers a push"))?;
        pack.take(bytes)
    }

    fn end_packet(&mut self) -> Result<(), Excess> {
        if let Frame::Payload(0, content) = &mut self.frame {
            let content = content.take();
            self.lines.end();
            self.frame = Frame::Length(Vec::new());
            if let Some(PacketContent::Fatal(text)) = content {
                return Err(Excess::Fatal(String::from_utf8_lossy(&text).trim().to_owned()));
            }
        }
        Ok(())
    }
}

/// Follows a pack.
#[derive(Debug)]
struct Pack {
    limits: ObjectLimits,
    state: State,
    /// Of all bytes before the trailer.
    hash: Sha1,
    /// How many objects are to come.
    left: u64,
    inflate: Decompress,
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// `PACK`, version, number of objects.
    Header(Vec<u8>),
    /// Type and size.
    Entry(Vec<u8>),
    /// The distance of a delta's base, up to a byte without the highest bit.
    Offset(Entry),
    /// So many bytes of a delta's base are to come.
    Base(usize, Entry),
    /// Compressed data.
    Data(Entry),
    /// The SHA-1 of everything before it.
    Trailer(Vec<u8>),
    /// The whole pack was seen.
    Done,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    seen: u64,
    /// The beginning of a delta; none for a whole object.
    delta: Option<Vec<u8>>,
}

/// How a pack begins: a word, and one of the versions that git knows.
const BEGINNINGS: [&[u8]; 2] = [b"PACK\0\0\0\x02", b"PACK\0\0\0\x03"];

/// How many bytes the trailer of a pack has.
const TRAILER: usize = 20;

/// How many bytes the two sizes at the beginning of a delta have at most.
const SIZES: usize = 20;

impl Pack {
    fn new(limits: ObjectLimits) -> Self {
        Self {
            limits,
            state: State::Header(Vec::new()),
            hash: Sha1::new(),
            left: 0,
            inflate: Decompress::new(true),
            scratch: vec![0; SCRATCH],
        }
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Excess> {
        while let Some(first) = bytes.first() {
            let is_before_trailer = !matches!(self.state, State::Trailer(_) | State::Done);
            let used = match std::mem::replace(&mut self.state, State::Done) {
                State::Done => return Ok(()),
                State::Data(entry) => self.data(entry, bytes)?,
                state => {
                    self.state = self.step(state, *first)?;
                    1
                }
            };
            let (now, later) = bytes.split_at_checked(used).unwrap_or((bytes, &[]));
            if is_before_trailer {
                self.hash.update(now);
            }
            bytes = later;
        }
        Ok(())
    }

    /// Takes the next byte of what is not compressed; returns what comes after it.
    fn step(&mut self, state: State, byte: u8) -> Result<State, Excess> {
        let with = |mut head: Vec<u8>| {
            head.push(byte);
            head
        };
        match state {
            State::Header(head) => self.header(with(head)),
            State::Entry(head) => self.entry(with(head)),
            State::Offset(entry) if byte & 0x80 != 0 => Ok(State::Offset(entry)),
            State::Base(left, entry) if left > 1 => Ok(State::Base(left - 1, entry)),
            State::Offset(entry) | State::Base(_, entry) | State::Data(entry) => {
                Ok(State::Data(entry))
            }
            State::Trailer(head) => self.trailer(with(head)),
            State::Done => Ok(State::Done),
        }
    }

    /// What arrives damaged is told apart from objects that are damaged here, or that the remote does not send.
    fn trailer(&mut self, head: Vec<u8>) -> Result<State, Excess> {
        if head.len() < TRAILER {
            return Ok(State::Trailer(head));
        }
        let checksum: [u8; TRAILER] = self.hash.finalize_reset().into();
        if head != checksum {
            return Err(Excess::Malformed("a pack does not have its checksum"));
        }
        Ok(State::Done)
    }

    fn header(&mut self, head: Vec<u8>) -> Result<State, Excess> {
        let Some((beginning, count)) = head.split_at_checked(8).filter(|(_, it)| it.len() == 4)
        else {
            return Ok(State::Header(head));
        };
        if !BEGINNINGS.contains(&beginning) {
            return Err(Excess::Malformed("a pack does not begin as one"));
        }
        self.left = count.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        if self.left > self.limits.count {
            let (has, most) = (self.left, self.limits.count);
            return Err(Excess::Limit(format!("it sends {has} objects, and {most} are taken")));
        }
        Ok(self.next())
    }

    fn next(&mut self) -> State {
        if self.left == 0 { State::Trailer(Vec::new()) } else { State::Entry(Vec::new()) }
    }

    fn entry(&mut self, head: Vec<u8>) -> Result<State, Excess> {
        if head.last().is_some_and(|it| it & 0x80 != 0) {
            let is_long = head.len() > 9;
            return if is_long { Err(TOO_LONG) } else { Ok(State::Entry(head)) };
        }
        let mut size = 0;
        let mut shift = 0;
        for (index, byte) in head.iter().enumerate() {
            let (bits, width) = if index == 0 { (byte & 0x0f, 4) } else { (byte & 0x7f, 7) };
            size |= u64::from(bits).checked_shl(shift).unwrap_or(u64::MAX);
            shift += width;
        }
        let kind = head.first().map_or(0, |it| it >> 4 & 7);
        let entry = |delta| Entry { size, seen: 0, delta };
        match kind {
            1 | 2 | 4 => check(size, STRUCTURE.min(self.limits.bytes))?,
            // Instructions of a delta are held in memory as well.
            _ => check(size, self.limits.bytes)?,
        }
        self.inflate.reset(true);
        Ok(match kind {
            6 => State::Offset(entry(Some(Vec::new()))),
            7 => State::Base(20, entry(Some(Vec::new()))),
            _ => State::Data(entry(None)),
        })
    }

    /// Inflates; returns how much of the input was used.
    fn data(&mut self, mut entry: Entry, bytes: &[u8]) -> Result<usize, Excess> {
        let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(bytes, &mut self.scratch, FlushDecompress::None)
            .map_err(|_| Excess::Malformed("an object cannot be inflated"))?;
        let used = usize::try_from(self.inflate.total_in() - before_in).unwrap_or(bytes.len());
        let made = self.inflate.total_out() - before_out;
        entry.seen += made;
        if entry.seen > entry.size {
            return Err(Excess::Malformed("an object is larger than its declared size"));
        }
        if let Some(start) = &mut entry.delta
            && start.len() < SIZES
        {
            let made = usize::try_from(made).unwrap_or(SCRATCH);
            let room = SIZES - start.len();
            start.extend(self.scratch.iter().take(made.min(room)));
        }
        match status {
            Status::StreamEnd if entry.seen < entry.size => {
                return Err(Excess::Malformed("an object is smaller than its declared size"));
            }
            Status::StreamEnd => {
                if let Some(start) = &entry.delta {
                    let makes = result_size(start).ok_or(TOO_LONG)?;
                    check(makes, self.limits.bytes)?;
                }
                self.left = self.left.saturating_sub(1);
                self.state = self.next();
            }
            _ if used == 0 && made == 0 => {
                return Err(Excess::Malformed("an object cannot be inflated"));
            }
            _ => self.state = State::Data(entry),
        }
        Ok(used)
    }
}

fn check(size: u64, most: u64) -> Result<(), Excess> {
    if size > most {
        let detail = format!("it has an object of {size} bytes, and {most} are taken");
        return Err(Excess::Limit(detail));
    }
    Ok(())
}

const TOO_LONG: Excess = Excess::Malformed("a size has too many digits");

/// Returns the second of the two sizes at the beginning of a delta: that of what it makes.
fn result_size(start: &[u8]) -> Option<u64> {
    let mut sizes = [0_u64; 2];
    let mut bytes = start.iter();
    for size in &mut sizes {
        let mut shift = 0;
        loop {
            let byte = bytes.next()?;
            *size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    Some(sizes[1])
}
