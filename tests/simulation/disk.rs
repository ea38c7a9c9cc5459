//! A disk that fills up, fails, loses its directory and forgets what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::kill::Fuse;
use crate::reconcile::journal::{Access, Disk, DiskFile, FileMetadata};

/// A disk; clones share it, so that it outlives the daemon that writes to it.
#[derive(Clone, Debug)]
pub(super) struct SimulatedDisk(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    contents: BTreeMap<u64, Content>,
    names: BTreeMap<PathBuf, u64>,
    /// The names that survive a power failure.
    synced_names: BTreeMap<PathBuf, u64>,
    inodes: u64,
    /// How many bytes can still be written; no limit without it.
    room: Option<usize>,
    /// Whether syncing fails.
    fails: bool,
    fuse: Fuse,
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// What survives a power failure.
    synced: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    disk: SimulatedDisk,
    inode: u64,
}

impl SimulatedDisk {
    pub(super) fn new(fuse: Fuse) -> Self {
        let (names, synced_names, contents) = Default::default();
        let inner =
            Inner { contents, names, synced_names, inodes: 0, room: None, fails: false, fuse };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Leaves room for so many bytes, or for any number.
    pub(super) fn set_room(&self, room: Option<usize>) {
        self.0.lock().unwrap().room = room;
    }

    /// Has every sync fail from now on, or not.
    pub(super) fn set_failing(&self, fails: bool) {
        self.0.lock().unwrap().fails = fails;
    }

    /// Returns whether records can be written.
    pub(super) fn is_whole(&self) -> bool {
        let inner = self.0.lock().unwrap();
        inner.room.is_none() && !inner.fails
    }

    /// Deletes every file, with the directory; open files stay open.
    pub(super) fn delete_all(&self) {
        let mut inner = self.0.lock().unwrap();
        inner.names.clear();
        inner.synced_names.clear();
    }

    /// Forgets what was not synced, or some of it.
    pub(super) fn lose_power(&self, random: &mut fastrand::Rng) {
        let mut inner = self.0.lock().unwrap();
        for content in inner.contents.values_mut() {
            let kept = match content.bytes.strip_prefix(content.synced.as_slice()) {
                Some(more) => content.synced.len() + random.usize(..=more.len()),
                None if random.bool() => content.bytes.len(),
                None => {
                    content.bytes.clone_from(&content.synced);
                    content.bytes.len()
                }
            };
            content.bytes.truncate(kept);
            content.synced.clone_from(&content.bytes);
        }
        if random.bool() {
            inner.names = inner.synced_names.clone();
        } else {
            inner.synced_names = inner.names.clone();
        }
    }

    fn act<T>(&self, act: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        let mut inner = self.0.lock().unwrap();
        let fuse = inner.fuse.clone();
        let done = act(&mut inner);
        drop(inner);
        // The process may be killed right after the operation, before it can use the result.
        fuse.burn();
        done
    }
}

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let inode = self.act(|inner| {
            let found = inner.names.get(path).copied();
            let inode = match (found, access) {
                (Some(inode), _) => inode,
                (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
                (None, Access::Create | Access::Truncate) => {
                    inner.inodes += 1;
                    inner.contents.insert(inner.inodes, Content::default());
                    inner.names.insert(path.to_owned(), inner.inodes);
                    inner.inodes
                }
            };
            if access == Access::Truncate {
                inner.contents.entry(inode).or_default().bytes.clear();
            }
            Ok(inode)
        })?;
        Ok(Box::new(OpenFile { disk: self.clone(), inode }))
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.act(|inner| {
            let inode = inner.names.get(path).copied().ok_or(io::ErrorKind::NotFound)?;
            let length = inner.contents[&inode].bytes.len() as u64;
            Ok(FileMetadata { identity: (1, inode), length })
        })
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        self.act(|_| Ok(()))
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.act(|inner| {
            inner.synced_names = inner.names.clone();
            Ok(())
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(|inner| {
            let inode = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            inner.names.insert(to.to_owned(), inode);
            Ok(())
        })
    }
}

impl OpenFile {
    fn act<T>(&self, act: impl FnOnce(&mut Inner, &mut Content) -> io::Result<T>) -> io::Result<T> {
        self.disk.act(|inner| {
            let mut content = inner.contents.remove(&self.inode).unwrap();
            let done = act(inner, &mut content);
            inner.contents.insert(self.inode, content);
            done
        })
    }
}

impl DiskFile for OpenFile {
    fn metadata(&self) -> io::Result<FileMetadata> {
        let identity = (1, self.inode);
        self.act(|_, it| Ok(FileMetadata { identity, length: it.bytes.len() as u64 }))
    }

    fn read_at(&self, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
        let (from, limit) = (usize::try_from(offset).unwrap(), usize::try_from(limit).unwrap());
        self.act(|_, it| Ok(it.bytes.iter().skip(from).take(limit).copied().collect()))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.act(|inner, it| {
            let at = usize::try_from(offset).unwrap();
            let fits = inner.room.map_or(bytes.len(), |room| room.min(bytes.len()));
            inner.room = inner.room.map(|room| room - fits);
            let end = it.bytes.len().max(at + fits);
            it.bytes.resize(end, 0);
            it.bytes[at..at + fits].copy_from_slice(&bytes[..fits]);
            if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        })
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.act(|inner, it| {
            let length = usize::try_from(length).unwrap();
            let freed = it.bytes.len().saturating_sub(length);
            inner.room = inner.room.map(|room| room + freed);
            it.bytes.resize(length, 0);
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.act(|inner, it| {
            if inner.fails {
                return Err(io::Error::other("the disk cannot write"));
            }
            it.synced.clone_from(&it.bytes);
            Ok(())
        })
    }
}
