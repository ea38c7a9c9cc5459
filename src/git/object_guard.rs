//! Keeps libgit2 from damaged loose objects.
//!
//! A backend of its own stands between packs and loose objects in the object database of every repository that is
//! opened. It has the loose ones read by [`LooseObject`], and libgit2 compares their hash.
#![expect(unsafe_code, reason = "a backend of libgit2 is a table of C functions")]

use std::ffi::{CString, c_int, c_void};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use git2::{Binding as _, ErrorClass, ErrorCode, ObjectType, Odb, Oid};
use libgit2_sys as raw;
use parking_lot::Mutex;
use sha1::{Digest as _, Sha1};

use super::loose_object::{LooseFault, LooseObject};
use super::object_id::bytes;
use super::pack_index;
use super::regular_file::is_special;

/// That of packs, which come first since they were added first; loose objects have 1.
const PRIORITY: c_int = 2;

/// How many bytes of an object are read where its size is asked for: more than of any document.
const PEEKED: u64 = 8 << 20;

/// How deep alternates are followed, as libgit2 does.
const DEEPEST: usize = 5;

/// From how many directories objects are read at most: each is searched for every loose object.
const MOST_DIRECTORIES: usize = 128;

/// How many lines of alternates are read at most, in all of their files: those that name nothing count, too.
const MOST_LINES: usize = 4096;

/// How many bytes of such a file are read at most.
const MOST_BYTES: u64 = 1 << 20;

/// The backend; `base` comes first, since libgit2 knows no more of it.
#[repr(C)]
struct Guard {
    base: raw::git_odb_backend,
    /// Where loose objects are: the repository's own and those of its alternates.
    directories: Vec<PathBuf>,
    /// The object whose size was asked for last: it is mostly read next.
    peeked: Mutex<Option<([u8; 20], LooseObject)>>,
}

/// An object that cannot be read.
struct ObjectError {
    /// Where the fault is: in the system, or in the object database.
    class: ErrorClass,
    message: String,
}

impl ObjectError {
    fn of(path: &Path, fault: &LooseFault) -> Self {
        let path = path.display();
        match fault {
            // A disk that cannot read its own is damaged.
            LooseFault::Io(error) => {
                let class = if is_of_disk(error) { ErrorClass::Odb } else { ErrorClass::Os };
                Self { class, message: format!("`{path}` cannot be read: {error}") }
            }
            LooseFault::Damaged(how) => {
                let message = format!("the object file `{path}` is damaged: {how}");
                Self { class: ErrorClass::Odb, message }
            }
        }
    }
}

/// Returns whether the disk failed.
fn is_of_disk(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Puts the backend into the object database of a repository.
///
/// # Errors
///
/// Returns an error if the object database cannot be opened.
pub(super) fn guard(repository: git2::Repository) -> Result<git2::Repository, git2::Error> {
    let fail = |message| git2::Error::new(ErrorCode::GenericError, ErrorClass::Odb, message);
    let directories = ObjectDirectories::of(&repository.commondir().join("objects"));
    let directories = directories.map_err(fail)?;
    if let Some(damage) = pack_index::first_damaged(directories.iter().map(PathBuf::as_path)) {
        return Err(fail(damage));
    }
    {
        let database = repository.odb()?;
        let guard = Box::into_raw(Box::new(Guard {
            base: functions(),
            directories,
            peeked: Mutex::default(),
        }));
        // SAFETY: the database lives until the end of the block, and the backend until libgit2 calls `free`, once, with
        // the database.
        let added = unsafe { raw::git_odb_add_backend(database.raw(), guard.cast(), PRIORITY) };
        if added < 0 {
            let error = git2::Error::last_error(added);
            // SAFETY: it came from a box, and libgit2 has not taken it.
            drop(unsafe { Box::from_raw(guard) });
            return Err(error);
        }
    }
    Ok(repository)
}

/// Returns the size and the type of an object.
///
/// # Errors
///
/// Returns an error if it cannot be found, or is of no type: git2 panics where a pack is damaged so.
pub(super) fn header(database: &Odb<'_>, id: Oid) -> Result<(usize, ObjectType), git2::Error> {
    let (mut size, mut kind) = (0, ObjectType::Any.raw());
    // SAFETY: the database and the id live until libgit2 returns, and so do the places that it writes to.
    let read =
        unsafe { raw::git_odb_read_header(&raw mut size, &raw mut kind, database.raw(), id.raw()) };
    if read < 0 {
        return Err(git2::Error::last_error(read));
    }
    let typed = ObjectType::from_raw(kind).map(|it| (size, it));
    typed.ok_or_else(|| {
        let message = format!("the object {id} is damaged: it is of no type");
        git2::Error::new(ErrorCode::GenericError, ErrorClass::Odb, message)
    })
}

/// Returns the backend as libgit2 knows it: it reads, and leaves all else to others.
fn functions() -> raw::git_odb_backend {
    raw::git_odb_backend {
        version: raw::GIT_ODB_BACKEND_VERSION,
        odb: null_mut(),
        read: Some(read),
        read_prefix: Some(read_prefix),
        read_header: Some(read_header),
        write: None,
        writestream: None,
        readstream: None,
        exists: None,
        exists_prefix: None,
        refresh: None,
        foreach: None,
        writepack: None,
        writemidx: None,
        freshen: None,
        free: Some(free),
    }
}

/// The directories of objects of a repository, each once: alternates may name each other.
#[derive(Default)]
pub(super) struct ObjectDirectories {
    found: Vec<PathBuf>,
    /// How many lines of alternates were read.
    lines: usize,
}

impl ObjectDirectories {
    /// Returns a directory of objects and its alternates.
    pub(super) fn of(directory: &Path) -> Result<Vec<PathBuf>, String> {
        let mut directories = Self::default();
        directories.add(directory, directory, 0)?;
        Ok(directories.found)
    }

    /// Adds a directory that a file names, and what its own alternates name.
    #[expect(clippy::disallowed_methods, reason = "a repository names its alternates in a file")]
    fn add(&mut self, directory: &Path, named_in: &Path, depth: usize) -> Result<(), String> {
        // One that is not there has no objects.
        let Ok(directory) = std::fs::canonicalize(directory) else { return Ok(()) };
        if depth > DEEPEST || self.found.contains(&directory) {
            return Ok(());
        }
        if self.found.len() >= MOST_DIRECTORIES {
            return Err(format!(
                "the repository borrows objects from more than {MOST_DIRECTORIES} directories: remove lines from `{}`",
                named_in.display()
            ));
        }
        let list = directory.join("info/alternates");
        self.found.push(directory.clone());
        if is_special(&list) {
            return Err(format!("`{}` is not a regular file: remove it", list.display()));
        }
        let Ok(file) = std::fs::File::open(&list) else { return Ok(()) };
        let mut alternates = Vec::new();
        if file.take(MOST_BYTES).read_to_end(&mut alternates).is_err() {
            return Ok(());
        }
        let too_many = || {
            let list = list.display();
            format!(
                "the alternates of the repository have more than {MOST_LINES} lines: remove lines from `{list}`"
            )
        };
        if alternates.len() as u64 == MOST_BYTES {
            return Err(too_many());
        }
        for line in alternates.split(|it| *it == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            self.lines += 1;
            if self.lines > MOST_LINES {
                return Err(too_many());
            }
            let name = std::os::unix::ffi::OsStrExt::from_bytes(line);
            let name: &std::ffi::OsStr = name;
            self.add(&directory.join(name), &list, depth + 1)?;
        }
        Ok(())
    }
}

impl Guard {
    /// Reads a loose object; none if there is none.
    fn load(&self, id: Oid, most: u64) -> Result<Option<LooseObject>, ObjectError> {
        let name = id.to_string();
        let (first, rest) = name.split_at_checked(2).unwrap_or_default();
        let mut damaged = None;
        for directory in &self.directories {
            match load_file(&directory.join(first).join(rest), most) {
                Ok(Some(object)) => return Ok(Some(object)),
                Ok(None) => {}
                Err(error) => damaged = Some(error),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    /// Reads the type and size of a loose object, and checks one that is not large as a whole.
    fn peek(&self, id: Oid) -> Result<Option<(ObjectType, u64)>, ObjectError> {
        let Some(object) = self.load(id, PEEKED)? else { return Ok(None) };
        let LooseObject { kind, size, .. } = object;
        if let Some(content) = &object.content {
            let header = format!("{} {size}\0", kind.str());
            let hash = Sha1::new().chain_update(header).chain_update(content).finalize();
            if *hash != *id.as_bytes() {
                let message = format!("the object {id} is damaged: its file has another one");
                return Err(ObjectError { class: ErrorClass::Odb, message });
            }
            *self.peeked.lock() = Some((bytes(id), object));
        }
        Ok(Some((kind, size)))
    }

    /// Returns the object that was peeked at last, if it is this one.
    fn take_peeked(&self, id: Oid) -> Option<LooseObject> {
        let mut peeked = self.peeked.lock();
        let is_it = peeked.as_ref().is_some_and(|(of, _)| *of == bytes(id));
        peeked.take().filter(|_| is_it).map(|(_, object)| object)
    }

    /// Checks the loose objects whose names begin with some digits. All of them: libgit2 reads each, also where it has
    /// found one.
    #[expect(clippy::disallowed_methods, reason = "loose objects are files")]
    fn check_named(&self, digits: &str) -> Result<(), ObjectError> {
        let Some((first, rest)) = digits.split_at_checked(2) else { return Ok(()) };
        for directory in &self.directories {
            let Ok(entries) = std::fs::read_dir(directory.join(first)) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                if name.len() == 38 && name.to_string_lossy().starts_with(rest) {
                    load_file(&entry.path(), u64::MAX)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the object in a file; none if there is no file.
fn load_file(path: &Path, most: u64) -> Result<Option<LooseObject>, ObjectError> {
    match LooseObject::read(path, most) {
        Ok(object) => Ok(Some(object)),
        Err(LooseFault::Io(error)) if is_absent(&error) => Ok(None),
        Err(fault) => Err(ObjectError::of(path, &fault)),
    }
}

/// Returns whether there is no file.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// Tells libgit2 what is wrong.
fn fail(error: ObjectError) -> c_int {
    let class = match error.class {
        ErrorClass::Os => raw::GIT_ERROR_OS,
        _ => raw::GIT_ERROR_ODB,
    };
    let message = CString::new(error.message).unwrap_or_default();
    // SAFETY: libgit2 copies the text.
    unsafe { raw::git_error_set_str(class.cast_signed(), message.as_ptr()) };
    raw::GIT_ERROR
}

/// Returns the backend that libgit2 calls.
///
/// # Safety
///
/// It must be one that [`guard`] added.
unsafe fn guard_of<'g>(backend: *mut raw::git_odb_backend) -> &'g Guard {
    // SAFETY: the caller says that it is; it begins with its base.
    unsafe { &*backend.cast::<Guard>() }
}

/// Returns the id that libgit2 asks for.
///
/// # Safety
///
/// The pointer must be valid.
unsafe fn id_at(id: *const raw::git_oid) -> Oid {
    // SAFETY: the caller says that it is; the id is copied.
    unsafe { Oid::from_raw(id) }
}

extern "C" fn read(
    data: *mut *mut c_void,
    length: *mut usize,
    kind: *mut raw::git_object_t,
    backend: *mut raw::git_odb_backend,
    id: *const raw::git_oid,
) -> c_int {
    // SAFETY: libgit2 calls this with the backend that has it, and with a valid id.
    let (guard, id) = unsafe { (guard_of(backend), id_at(id)) };
    let object =
        match guard.take_peeked(id).map_or_else(|| guard.load(id, u64::MAX), |it| Ok(Some(it))) {
            Ok(Some(object)) => object,
            Ok(None) => return raw::GIT_ENOTFOUND,
            Err(error) => return fail(error),
        };
    let content = object.content.unwrap_or_default();
    // SAFETY: the buffer is one byte longer than what is copied to it, as libgit2 makes its own; libgit2 frees it.
    // The other pointers are those to which libgit2 wants the answer.
    unsafe {
        let buffer = raw::git_odb_backend_data_alloc(backend, content.len() + 1).cast::<u8>();
        if buffer.is_null() {
            return raw::GIT_ERROR;
        }
        buffer.copy_from_nonoverlapping(content.as_ptr(), content.len());
        buffer.add(content.len()).write(0);
        data.write(buffer.cast());
        length.write(content.len());
        kind.write(object.kind.raw());
    }
    0
}

extern "C" fn read_header(
    length: *mut usize,
    kind: *mut raw::git_object_t,
    backend: *mut raw::git_odb_backend,
    id: *const raw::git_oid,
) -> c_int {
    // SAFETY: libgit2 calls this with the backend that has it, and with a valid id.
    let (guard, id) = unsafe { (guard_of(backend), id_at(id)) };
    match guard.peek(id) {
        Ok(Some((found, size))) => {
            // SAFETY: these are the pointers to which libgit2 wants the answer.
            unsafe {
                length.write(usize::try_from(size).unwrap_or(usize::MAX));
                kind.write(found.raw());
            }
            0
        }
        Ok(None) => raw::GIT_ENOTFOUND,
        Err(error) => fail(error),
    }
}

/// Only checks: libgit2 then finds the object that an abbreviated id means.
extern "C" fn read_prefix(
    _: *mut raw::git_oid,
    _: *mut *mut c_void,
    _: *mut usize,
    _: *mut raw::git_object_t,
    backend: *mut raw::git_odb_backend,
    id: *const raw::git_oid,
    length: usize,
) -> c_int {
    // SAFETY: libgit2 calls this with the backend that has it, and with a valid id.
    let (guard, id) = unsafe { (guard_of(backend), id_at(id)) };
    let name = id.to_string();
    match guard.check_named(name.get(..length).unwrap_or(&name)) {
        Ok(()) => raw::GIT_PASSTHROUGH,
        Err(error) => fail(error),
    }
}

extern "C" fn free(backend: *mut raw::git_odb_backend) {
    // SAFETY: it came from a box, and libgit2 calls this once.
    drop(unsafe { Box::from_raw(backend.cast::<Guard>()) });
}

#[cfg(test)]
mod tests;
