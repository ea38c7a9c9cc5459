//! The last good answer of a node, for when no daemon answers.
#![expect(clippy::disallowed_methods, reason = "answers are kept in files")]

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Where the last good answer of a node is kept.
pub(super) struct LastGood(PathBuf);

/// An answer that was good when it was given.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    answered_at: Timestamp,
    commit: Option<String>,
    pub(super) document: String,
    #[serde(skip)]
    age: Duration,
}

impl LastGood {
    pub(super) fn new(cache: &Path, node: &str) -> Self {
        Self(cache.join("answers").join(format!("{node}.json")))
    }

    /// Keeps an answer.
    pub(super) fn keep(&self, document: &str, commit: Option<String>) -> Result<()> {
        let kept = Kept {
            answered_at: Timestamp::now(),
            commit,
            document: document.to_owned(),
            age: Duration::ZERO,
        };
        let text = serde_json::to_string(&kept)?;
        replace(&self.0, &text)
            .with_context(|| format!("cannot keep this answer in `{}`", self.0.display()))
    }

    /// Returns the answer that is kept, if it is no older than `max_stale`.
    pub(super) fn take(&self, max_stale: Duration) -> Result<Kept> {
        if max_stale.is_zero() {
            bail!("no last good answer may stand in");
        }
        let bytes = std::fs::read(&self.0).map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow!("there is no last good answer"),
            _ => anyhow!("the last good answer in `{}` cannot be read: {error}", self.0.display()),
        })?;
        let mut kept: Kept = serde_json::from_slice(&bytes).map_err(|error| {
            anyhow!("the last good answer in `{}` cannot be read: {error}", self.0.display())
        })?;
        // A clock that was set back makes nothing older.
        let age = Timestamp::now().duration_since(kept.answered_at).max(SignedDuration::ZERO);
        kept.age = age.unsigned_abs();
        if kept.age > max_stale {
            let (age, most) = (rounded(kept.age), rounded(max_stale));
            bail!("the last good answer is {age} old, and {most} is the most");
        }
        Ok(kept)
    }
}

impl Kept {
    /// Says what it is that stands in.
    pub(super) fn described(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("an unknown commit");
        format!("the last good answer stands in: {} old, from {commit}", rounded(self.age))
    }
}

/// Writes a duration for people: its largest unit.
fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds => format!("{}h", seconds / 3600),
    }
}

/// Puts a file in the place of another, whole or not at all; only its owner may read it, since
/// parameters can be secrets.
pub(super) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let fresh = path.with_extension(format!("{}.{:08x}", std::process::id(), fastrand::u32(..)));
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh);
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut file: File = match open() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(directory)?;
            open()?
        }
        opened => opened?,
    };
    hand_over(&fresh, directory);
    let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        std::fs::remove_file(&fresh).ok();
    }
    written
}

/// Creates a directory and those above it.
fn create(directory: &Path) -> std::io::Result<()> {
    let Some(above) = directory.parent().filter(|_| !directory.is_dir()) else { return Ok(()) };
    create(above)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created.inspect(|()| hand_over(directory, above)),
    }
}

/// Gives what root made to whom the directory belongs: an administrator may be the first to ask, and
/// Puppet Server must be able to go on.
fn hand_over(path: &Path, directory: &Path) {
    let (Ok(made), Ok(above)) = (path.metadata(), directory.metadata()) else { return };
    if made.uid() != above.uid() {
        // Only root may; for everybody else it is right as it is.
        chown(path, Some(above.uid()), Some(above.gid())).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_for_its_owner_and_for_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let kept = LastGood::new(&directory.path().join("new"), "web1");
        let day = Duration::from_hours(24);
        assert_eq!(kept.take(day).unwrap_err().to_string(), "there is no last good answer");
        kept.keep("{}\n", Some("abc".to_owned())).unwrap();
        let taken = kept.take(day).unwrap();
        assert_eq!(taken.document, "{}\n");
        assert!(taken.described().ends_with("s old, from abc"), "{}", taken.described());
        assert_eq!(
            kept.take(Duration::ZERO).unwrap_err().to_string(),
            "no last good answer may stand in"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &std::fs::metadata(&kept.0).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let old = std::fs::read_to_string(&kept.0).unwrap();
        let (_, rest) = old.split_once("\",").unwrap();
        std::fs::write(&kept.0, format!("{{\"answered_at\":\"2020-01-01T00:00:00Z\",{rest}"))
            .unwrap();
        let error = kept.take(day).unwrap_err().to_string();
        assert!(error.ends_with("h old, and 24h is the most"), "{error}");
        std::fs::write(&kept.0, "{\"answered").unwrap();
        let error = kept.take(day).unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
        let files = std::fs::read_dir(directory.path().join("new/answers")).unwrap().count();
        assert_eq!(files, 1, "nothing else is left");
    }

    #[test]
    fn what_root_keeps_belongs_to_the_owner_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        if chown(directory.path(), Some(1234), Some(1234)).is_err() {
            eprintln!("only root can give files away");
            return;
        }
        let kept = LastGood::new(&directory.path().join("clade"), "web1");
        kept.keep("{}\n", None).unwrap();
        let owner = |path: &Path| path.metadata().unwrap().uid();
        let answers = kept.0.parent().unwrap();
        assert_eq!([&kept.0, answers, answers.parent().unwrap()].map(owner), [1234; 3]);
    }

    #[test]
    fn durations_are_rounded() {
        for (seconds, text) in [(5, "5s"), (119, "119s"), (600, "10m"), (86_400, "24h")] {
            assert_eq!(rounded(Duration::from_secs(seconds)), text);
        }
    }
}
