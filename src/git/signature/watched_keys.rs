//! The files of keys. A half-written file may allow what nothing in the whole file allows, such as a key whose revocation
//! is not written yet, so a change counts as it does for other [watched files](crate::config::watched).
#![expect(clippy::disallowed_methods, reason = "a read that waits has a time")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::watched::{
    FileEnd, ReloadCause, Reloaded, SETTLE, WatchError, WatchedFile, WatchedFiles,
};

/// How long a read waits for a file that changes again and again.
const LONGEST: Duration = Duration::from_secs(1);

/// What the files of keys contain: verdicts by one content say nothing of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFiles {
    pub(super) allowed_signers: Option<KeyText>,
    pub(super) openpgp_keys: Option<KeyText>,
}

/// What a file of keys contains, or why it cannot be read.
pub(super) type KeyText = Result<Arc<String>, String>;

/// The files of keys, each read again when it changes.
#[derive(Debug)]
pub struct WatchedKeys {
    allowed_signers: Option<KeyFile>,
    openpgp_keys: Option<KeyFile>,
}

impl WatchedKeys {
    /// Watches files of keys. They are read when they are needed first.
    pub(super) fn new(allowed_signers: Option<&Path>, openpgp_keys: Option<&Path>) -> Self {
        Self {
            allowed_signers: allowed_signers.map(KeyFile::new),
            openpgp_keys: openpgp_keys.map(KeyFile::new),
        }
    }

    /// Returns what the files contain. Where one changes, it waits until the change is stable, at most a second: a file
    /// that is still changing then counts as one that cannot be read. Blocking.
    pub fn read(&self) -> KeyFiles {
        KeyFiles {
            allowed_signers: self.allowed_signers.as_ref().map(KeyFile::read),
            openpgp_keys: self.openpgp_keys.as_ref().map(KeyFile::read),
        }
    }

    /// Returns whether the files still contain what they did, and none is changing: a key may just be removed. One that
    /// could not be read verified nothing.
    pub fn are_current(&self, keys: &KeyFiles) -> bool {
        let is_current = |file: Option<&KeyFile>, text: Option<&KeyText>| match (file, text) {
            (Some(file), Some(Ok(text))) => file.read_now() == Some(Ok(Arc::clone(text))),
            (None, None) | (Some(_), Some(Err(_))) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_current(self.allowed_signers.as_ref(), keys.allowed_signers.as_ref())
            && is_current(self.openpgp_keys.as_ref(), keys.openpgp_keys.as_ref())
    }
}

#[derive(Debug)]
struct KeyFile {
    path: PathBuf,
    /// None until it could be read.
    watched: Mutex<Option<WatchedFiles<String, io::Error>>>,
}

impl KeyFile {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), watched: Mutex::default() }
    }

    fn read(&self) -> KeyText {
        let began = Instant::now();
        loop {
            match self.read_now() {
                Some(text) => return text,
                None if began.elapsed() < LONGEST => std::thread::sleep(SETTLE),
                None => return Err(self.fault("it changes all the time")),
            }
        }
    }

    /// Returns the content, or none while a change is not stable yet.
    fn read_now(&self) -> Option<KeyText> {
        let mut watched = self.watched.lock();
        let reloaded = match &*watched {
            Some(watched) => watched.reload(ReloadCause::Poll),
            None => self.open().map(|opened| {
                *watched = Some(opened);
                Reloaded::Loaded
            }),
        };
        match reloaded {
            Ok(Reloaded::Pending) => None,
            Ok(Reloaded::Unchanged | Reloaded::Loaded) => {
                watched.as_ref().map(|it| Ok(Arc::clone(&it.load())))
            }
            Err(WatchError::Unreadable { source: error, .. } | WatchError::Unusable(error)) => {
                Some(Err(self.fault(error)))
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// Reads the file for the first time: at once, unless it changed just now.
    fn open(&self) -> Result<WatchedFiles<String, io::Error>, WatchError<io::Error>> {
        // As in PEM, each key shows where it ends. A file that is cut between two of them counts once it is stable.
        let file = WatchedFile { path: self.path.clone(), ending: FileEnd::Format };
        WatchedFiles::open(vec![file], |contents| {
            String::from_utf8(contents.concat())
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
        })
    }

    fn fault(&self, error: impl std::fmt::Display) -> String {
        format!("`{}`: {error}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of keys are written")]

    use super::*;

    fn text(keys: &KeyFiles) -> Result<&str, &str> {
        let text = keys.openpgp_keys.as_ref().unwrap();
        text.as_ref().map(|it| it.as_str()).map_err(String::as_str)
    }

    #[test]
    fn a_file_that_is_half_written_never_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, "key, revoked").unwrap();
        let watched = WatchedKeys::new(None, Some(&path));
        let before = watched.read();
        assert_eq!(text(&before), Ok("key, revoked"));
        std::fs::write(&path, "key, ").unwrap();
        assert!(!watched.are_current(&before), "a key may have been removed");
        let read = std::thread::scope(|scope| {
            let read = scope.spawn(|| watched.read());
            std::thread::sleep(SETTLE / 4);
            std::fs::write(&path, "key, revoked again").unwrap();
            read.join().unwrap()
        });
        assert_eq!(text(&read), Ok("key, revoked again"));
        assert!(watched.are_current(&read) && !watched.are_current(&before));
    }

    #[test]
    fn a_file_that_is_gone_or_back_counts_at_once_or_when_it_is_stable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, "key").unwrap();
        let watched = WatchedKeys::new(None, Some(&path));
        let before = watched.read();
        std::fs::remove_file(&path).unwrap();
        let gone = watched.read();
        let fault = text(&gone).unwrap_err();
        assert!(fault.starts_with(&format!("`{}`: No such file", path.display())), "{fault}");
        assert!(!watched.are_current(&before) && watched.are_current(&gone));
        std::fs::write(&path, "key").unwrap();
        assert_eq!(watched.read(), before);
        std::fs::write(&path, [0xff]).unwrap();
        assert!(text(&watched.read()).unwrap_err().ends_with("it is not UTF-8"));
    }

    #[test]
    fn a_file_that_changes_all_the_time_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        std::fs::write(&path, "").unwrap();
        let watched = WatchedKeys::new(None, Some(&path));
        watched.read();
        let is_read = std::sync::atomic::AtomicBool::new(false);
        let read = std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                let read = watched.read();
                is_read.store(true, std::sync::atomic::Ordering::Relaxed);
                read
            });
            let mut content = String::new();
            while !is_read.load(std::sync::atomic::Ordering::Relaxed) {
                content.push('a');
                std::fs::write(&path, &content).unwrap();
                std::thread::sleep(SETTLE / 16);
            }
            read.join().unwrap()
        });
        assert!(text(&read).unwrap_err().ends_with("it changes all the time"));
    }
}
