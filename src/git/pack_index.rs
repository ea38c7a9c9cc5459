//! Checking packs and their indexes before libgit2 maps them.
//!
//! libgit2 trusts an index that a disk has damaged: it follows an offset past the end of its map,
//! and SIGBUS ends the process. An index holds nothing that its pack does not, so it is written
//! again from there.
#![expect(clippy::disallowed_methods, reason = "packs are files")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha1::{Digest as _, Sha1};

use super::regular_file::{is_dangling, is_irregular, is_special, open_regular, rename_broken};

/// The length of a SHA-1.
const HASH: usize = 20;
/// What an index of version 2 begins with; git and libgit2 have written no other since 2007.
const INDEX_HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// The signature, version and object count of a pack.
const PACK_HEAD: usize = 12;
/// Says that an offset stands in the table of long ones.
const LONG: u32 = 1 << 31;

/// How many indexes are remembered that were found whole.
const REMEMBERED: usize = 4096;

/// How much of a pack is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// The index, and both ends of the pack.
    Index,
    /// The index and the pack, to compare the hash of each.
    Everything,
}

/// A pack cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It cannot be read to its end.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The index is of another version than 2, or does not begin as one.
    #[error("the index does not begin as one of version 2")]
    OtherVersion,
    /// The pack is damaged, and not its index alone.
    #[error("{0}")]
    Pack(&'static str),
    /// Its bytes are not those that were written.
    #[error("{0}")]
    Wrong(&'static str),
}

impl Damage {
    /// Returns whether the system does not let the files be read now: what they hold may be whole.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof)
    }
}

/// Checks every pack of a directory, and replaces indexes that are damaged or missing. A pack that cannot be read now
/// is left as it is.
///
/// # Errors
///
/// Returns an error if the directory cannot be read.
pub(super) fn check_all(directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let paths = entries.map(|it| Ok(it?.path())).collect::<io::Result<Vec<_>>>()?;
    for path in &paths {
        let is_index = path.extension().is_some_and(|it| it == "idx");
        if is_special(path) || (is_index && is_irregular(path)) {
            put_entry_aside(path, "is not a regular file");
        }
    }
    for pack in paths.iter().filter(|it| it.extension().is_some_and(|it| it == "pack")) {
        let index = pack.with_extension("idx");
        let replaced = match check(&index, Depth::Index) {
            Ok(()) => continue,
            Err(_) if pack.symlink_metadata().is_err() => continue,
            Err(_) if index.symlink_metadata().is_err() => write_missing_index(&index),
            Err(_) if is_dangling(&index) && open_regular(pack).is_ok() => {
                put_entry_aside(&index, "leads to no file");
                write_missing_index(&index)
            }
            Err(damage) if damage.is_unreadable() => {
                let (pack, error) = (pack.display(), damage);
                tracing::error!(%pack, %error, "a pack cannot be read: it is left as it is, correct its permissions or the disk");
                continue;
            }
            Err(damage) => replace(&index, &damage),
        };
        if let Err(error) = replaced {
            let index = index.display();
            tracing::error!(%index, %error, "the index of a pack cannot be replaced");
        }
    }
    // One of several packs holds nothing that theirs do not.
    let joint = directory.join("multi-pack-index");
    match check_joint(&joint) {
        Err(damage) if !damage.is_unreadable() => {
            let aside = joint.with_extension("broken");
            fs::rename(&joint, &aside)?;
            tracing::error!(%damage, aside = %aside.display(), "the index of several packs is damaged: put aside");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn put_entry_aside(entry: &Path, what: &str) {
    let shown = entry.display();
    match rename_broken(entry) {
        Ok(aside) => {
            tracing::error!(path = %shown, aside = %aside.display(), "an entry among the packs {what}: put aside");
        }
        Err(error) => {
            tracing::error!(path = %shown, %error, "an entry among the packs {what}, and cannot be put aside");
        }
    }
}

/// Finds the first index that is damaged in directories of packs which are not ours to mend. What was found whole is not
/// read again until it changes: repositories are opened often.
pub(super) fn first_damaged<'d>(directories: impl Iterator<Item = &'d Path>) -> Option<String> {
    directories.into_iter().find_map(|directory| {
        let entries = fs::read_dir(directory.join("pack")).ok()?;
        entries.filter_map(Result::ok).find_map(|entry| damage_of(&entry.path()))
    })
}

/// Says what is wrong with a file if it is a damaged index of packs, and what to do.
fn damage_of(file: &Path) -> Option<String> {
    /// The indexes that were found whole.
    static WHOLE: Mutex<BTreeMap<PathBuf, FileStamp>> = Mutex::new(BTreeMap::new());
    let is_joint = file.file_name().is_some_and(|it| it == "multi-pack-index");
    let is_index = file.extension().is_some_and(|it| it == "idx");
    let has_pack = || is_index && file.with_extension("pack").exists();
    if !(is_joint || has_pack()) {
        return None;
    }
    if is_special(file) {
        return Some(format!("`{}` is not a regular file: remove it", file.display()));
    }
    let stamp = FileStamp::of(file)?;
    if WHOLE.lock().get(file) == Some(&stamp) {
        return None;
    }
    let checked = if is_joint { check_joint(file) } else { check(file, Depth::Index) };
    let (shown, pack) = (file.display(), file.with_extension("pack"));
    let joint = |what| {
        format!(
            "the index of several packs `{shown}` is damaged: {what}; run `git multi-pack-index write` there"
        )
    };
    let single = |what| {
        let pack = pack.display();
        format!(
            "the index `{shown}` is damaged: {what}; remove it, and run `git index-pack {pack}`"
        )
    };
    let said = |what| if is_joint { joint(what) } else { single(what) };
    match checked {
        Err(Damage::Pack(what)) => Some(format!(
            "a pack is damaged: {what}: `{}`; restore it, or fetch its objects again",
            pack.display()
        )),
        Err(Damage::Wrong(what)) => Some(said(what)),
        Err(Damage::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Some(said("it is cut short"))
        }
        // One of version 1 is checked by libgit2, and what cannot be read is said when it is read.
        Err(Damage::OtherVersion | Damage::Io(_)) => None,
        Ok(()) => {
            let mut whole = WHOLE.lock();
            if whole.len() >= REMEMBERED {
                whole.clear();
            }
            whole.insert(file.to_owned(), stamp);
            None
        }
    }
}

/// Checks that an index of several packs is as it was written.
fn check_joint(file: &Path) -> Result<(), Damage> {
    let file = open_regular(file)?;
    let content = file.metadata()?.len().checked_sub(HASH as u64);
    let content = content.ok_or(Damage::Wrong("it is cut short"))?;
    let mut hashing = Hashing { from: BufReader::new(file), hash: Sha1::new() };
    io::copy(&mut hashing.by_ref().take(content), &mut io::sink())?;
    let found: [u8; HASH] = hashing.hash.clone().finalize().into();
    if take(&mut hashing)? == found {
        Ok(())
    } else {
        Err(Damage::Wrong("it does not have the hash at its end"))
    }
}

/// What changes when a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds, of the content and of the inode.
    changed: [i64; 4],
}

impl FileStamp {
    fn of(file: &Path) -> Option<Self> {
        let it = fs::metadata(file).ok()?;
        let changed = [it.mtime(), it.mtime_nsec(), it.ctime(), it.ctime_nsec()];
        Some(Self { device: it.dev(), inode: it.ino(), bytes: it.len(), changed })
    }
}

/// Checks an index against its pack.
///
/// # Errors
///
/// Returns what is wrong first.
pub(super) fn check(index: &Path, depth: Depth) -> Result<(), Damage> {
    let PackEnds { mut pack, count, end, hash: pack_hash } =
        PackEnds::of(&index.with_extension("pack"))?;
    let file = open_regular(index)?;
    let bytes = file.metadata()?.len();
    check_index(
        &mut Hashing { from: BufReader::new(file), hash: Sha1::new() },
        bytes,
        count,
        end,
        pack_hash,
    )?;
    if depth == Depth::Everything {
        check_hash(&mut pack, end, pack_hash)?;
    }
    Ok(())
}

/// Checks that a pack is as it was written.
fn check_content(pack: &Path) -> Result<(), Damage> {
    let PackEnds { mut pack, end, hash, .. } = PackEnds::of(pack)?;
    check_hash(&mut pack, end, hash)
}

fn check_hash(pack: &mut File, end: u64, hash: [u8; HASH]) -> Result<(), Damage> {
    pack.rewind()?;
    let mut content = Hashing { from: pack.take(end), hash: Sha1::new() };
    io::copy(&mut content, &mut io::sink())?;
    if <[u8; HASH]>::from(content.hash.finalize()) == hash {
        Ok(())
    } else {
        Err(Damage::Pack("the pack does not have the hash at its end"))
    }
}

/// What both ends of a pack say.
struct PackEnds {
    pack: File,
    /// How many objects it has.
    count: u32,
    /// Where they end.
    end: u64,
    hash: [u8; HASH],
}

impl PackEnds {
    fn of(pack: &Path) -> Result<Self, Damage> {
        let mut pack = open_regular(pack)?;
        let end = pack.metadata()?.len().checked_sub(HASH as u64);
        let end = end.filter(|it| *it >= PACK_HEAD as u64);
        let end = end.ok_or(Damage::Pack("the pack is cut short"))?;
        let head: [u8; PACK_HEAD] = take(&mut pack)?;
        let [b'P', b'A', b'C', b'K', 0, 0, 0, 2, count @ ..] = head else {
            return Err(Damage::Pack("the pack does not begin as one"));
        };
        let count = u32::from_be_bytes(count);
        pack.seek(SeekFrom::Start(end))?;
        let hash = take(&mut pack)?;
        Ok(Self { pack, count, end, hash })
    }
}

/// Reads the number of objects up to each first byte of a name, of a pack of so many objects.
fn check_fanout<R: Read>(index: &mut Hashing<R>, count: u32) -> Result<[u32; 256], Damage> {
    let mut below = 0;
    let mut fanout = [0_u32; 256];
    for slot in &mut fanout {
        *slot = u32::from_be_bytes(take(index)?);
        if *slot < below {
            return Err(Damage::Wrong("the fan-out table of the index decreases"));
        }
        below = *slot;
    }
    if below == count {
        Ok(fanout)
    } else {
        Err(Damage::Wrong("the index has another number of objects than the pack"))
    }
}

/// Checks an index of so many bytes for a pack of so many objects that end at an offset.
fn check_index<R: Read>(
    index: &mut Hashing<R>,
    bytes: u64,
    count: u32,
    end: u64,
    pack_hash: [u8; HASH],
) -> Result<(), Damage> {
    if take(index)? != INDEX_HEAD {
        return Err(Damage::OtherVersion);
    }
    let fanout = check_fanout(index, count)?;
    let fixed = 8 + 4 * 256 + u64::from(count) * (HASH as u64 + 4 + 4) + 2 * HASH as u64;
    let long = bytes.checked_sub(fixed).filter(|it| it % 8 == 0).map(|it| it / 8);
    let long = long.ok_or(Damage::Wrong("the index is cut short or too long"))?;
    let mut last: Option<[u8; HASH]> = None;
    for number in 0..count {
        let name: [u8; HASH] = take(index)?;
        let first = usize::from(name.first().copied().unwrap_or_default());
        let from = first.checked_sub(1).and_then(|it| fanout.get(it)).copied().unwrap_or_default();
        let to = fanout.get(first).copied().unwrap_or_default();
        if last.is_some_and(|it| it >= name) || !(from..to).contains(&number) {
            return Err(Damage::Wrong("the names in the index are not in order"));
        }
        last = Some(name);
    }
    for _ in 0..count {
        let _checksum: [u8; 4] = take(index)?;
    }
    let objects = PACK_HEAD as u64..end;
    let past = Damage::Wrong("an offset in the index is past the end of the pack");
    for _ in 0..count {
        let offset = u32::from_be_bytes(take(index)?);
        let is_inside = match offset.checked_sub(LONG) {
            Some(at) => u64::from(at) < long,
            None => objects.contains(&u64::from(offset)),
        };
        if !is_inside {
            return Err(past);
        }
    }
    for _ in 0..long {
        if !objects.contains(&u64::from_be_bytes(take(index)?)) {
            return Err(past);
        }
    }
    if take(index)? != pack_hash {
        return Err(Damage::Wrong("the index is of another pack"));
    }
    let found: [u8; HASH] = index.hash.clone().finalize().into();
    if take(index)? != found {
        return Err(Damage::Wrong("the index does not have the hash at its end"));
    }
    Ok(())
}

/// Puts a damaged index aside and writes it again from its pack. Where the pack is damaged as well,
/// both are put aside: their objects are fetched again.
pub(super) fn replace(index: &Path, damage: &Damage) -> io::Result<()> {
    let (pack, aside) = (index.with_extension("pack"), index.with_extension("idx.broken"));
    let kept = match fs::remove_file(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::hard_link(index, &aside),
    };
    if let Err(error) = kept {
        tracing::warn!(%error, aside = %aside.display(), "a damaged index is not kept");
    }
    let written = write_index(&pack);
    // The new index has taken the place of the old one, unless it bears another name.
    if check(index, Depth::Index).is_err() {
        fs::remove_file(index)?;
    }
    match written {
        Ok(()) => {
            let (pack, aside) = (pack.display(), aside.display());
            tracing::error!(%pack, %damage, %aside, "the index of a pack is damaged: written again");
            Ok(())
        }
        Err(_) if matches!(damage, Damage::Pack(_)) => put_pack_aside(&pack, damage),
        Err(error) => put_damaged_pack_aside(&pack, &error),
    }
}

/// Writes the index of a pack that has none: a crash, or a person, took it.
fn write_missing_index(index: &Path) -> io::Result<()> {
    let pack = index.with_extension("pack");
    match write_index(&pack) {
        Ok(()) => {
            let shown = pack.display();
            tracing::error!(pack = %shown, "the index of a pack is missing: written again");
            if index.exists() {
                return Ok(());
            }
            // It was written under the name that the pack has by its content, with a copy of the pack.
            fs::remove_file(&pack)
        }
        Err(error) => put_damaged_pack_aside(&pack, &error),
    }
}

/// Puts a pack aside whose index could not be written for an error, unless the pack is whole: the disk may be full.
fn put_damaged_pack_aside(pack: &Path, error: &io::Error) -> io::Result<()> {
    match check_content(pack) {
        Ok(()) => {
            let pack = pack.display();
            tracing::error!(%pack, %error, "the index of a pack cannot be written: the pack is left as it is");
            Ok(())
        }
        Err(damage) if damage.is_unreadable() => {
            let pack = pack.display();
            tracing::error!(%pack, error = %damage, "a pack cannot be read: it is left as it is, correct its permissions or the disk");
            Ok(())
        }
        Err(damage) => put_pack_aside(pack, &damage),
    }
}

fn put_pack_aside(pack: &Path, error: &dyn std::fmt::Display) -> io::Result<()> {
    fs::rename(pack, pack.with_extension("pack.broken"))?;
    let pack = pack.display();
    tracing::error!(%pack, %error, "a pack is damaged: put aside, its objects are fetched again");
    Ok(())
}

/// Writes the index of a pack beside it. libgit2 reads the pack as if it came from a remote, and
/// compares every hash.
fn write_index(pack: &Path) -> io::Result<()> {
    let directory = pack.parent().unwrap_or_else(|| Path::new("."));
    let fail = |error: git2::Error| io::Error::other(error.message().to_owned());
    let mut indexer = git2::Indexer::new(None, directory, 0o444, false).map_err(fail)?;
    io::copy(&mut open_regular(pack)?, &mut indexer)?;
    let name = indexer.commit().map_err(fail)?;
    for extension in ["pack", "idx"] {
        File::open(directory.join(format!("pack-{name}.{extension}")))?.sync_all()?;
    }
    File::open(directory)?.sync_all()
}

fn take<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A reader that hashes what is read.
struct Hashing<R> {
    from: R,
    hash: Sha1,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.hash.update(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
