//! What a push reports: what the remote says of it, or what keeps it from saying so.

use std::cell::{Cell, RefCell};

use git2::{ErrorCode, RemoteCallbacks};

use super::failure::{FetchError, FetchFailure};
use super::object_id::id_of;
use super::push_error::PushError;
use super::remote::Remote;
use super::transport::Attempt;
use crate::model::CommitId;

/// What to do where the branch of a repository of this machine is checked out.
pub(super) const FOLLOW_IN_PLACE: &str = "follow that repository by its path and without `--data-dir`, so that its files go along, or use a bare one";

/// How one try to push ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PushReport {
    /// The remote took it.
    Accepted,
    /// The remote has the branch elsewhere and takes nothing.
    Moved,
    /// The remote refuses it, in its words.
    Rejected(String),
    /// Nothing changed at the remote.
    Unchanged(FetchError),
    /// There is no report: the remote may have taken it.
    Broken(FetchError),
    /// The repository of this machine has it, which may not outlive the machine.
    Unsynced(FetchError),
}

impl PushReport {
    pub(super) fn of(moved: Result<(), PushError>) -> Self {
        match moved {
            Ok(()) => Self::Accepted,
            Err(PushError::Moved) => Self::Moved,
            Err(PushError::Rejected(words)) => Self::Rejected(words),
            Err(PushError::Failed(error)) => Self::Unchanged(error),
            Err(PushError::Unknown(error)) => Self::Unsynced(error),
        }
    }
}

/// Returns how a try ended that the remote refused: by a rule of its own, or since it cannot write now.
fn refusal(remote: &Remote, words: &str, status: &str) -> PushReport {
    /// What git reports of a ref that it could not write, whatever is pushed.
    const FAULTS: [&str; 7] = [
        "failed to update ref",
        "failed to lock",
        "failed to write",
        "unable to migrate objects",
        "unable to create temporary object directory",
        "transaction failed to start",
        // The program that would have looked for them could not be started.
        "missing necessary objects",
    ];
    /// What git says where the remote has no room for objects, or for the programs that unpack them.
    const SHORTAGES: [&str; 8] = [
        "No space left on device",
        "Disk quota exceeded",
        "Read-only file system",
        "Input/output error",
        "Permission denied",
        "fork failed",
        "Resource temporarily unavailable",
        "Cannot allocate memory",
    ];
    // Its words advise to let the files stay behind.
    if status == "branch is currently checked out" {
        let instead = match remote.directory() {
            Some(_) => FOLLOW_IN_PLACE,
            None => "use a bare repository",
        };
        return PushReport::Rejected(format!("the branch is checked out there: {instead}"));
    }
    let said = if words.is_empty() { status.to_owned() } else { format!("{words} ({status})") };
    let is_of = |signs: &[&str], text: &str| signs.iter().any(|it| text.contains(it));
    // Where git cannot begin to unpack, as on a read-only disk, it says so in a line that libgit2 does not hand over.
    let is_short = words.is_empty() || is_of(&SHORTAGES, words);
    if is_of(&FAULTS, status) || (status.contains("unpack") && is_short) {
        let message = format!("`{remote}` cannot take a push now: {said}");
        return PushReport::Unchanged(FetchError::new(FetchFailure::Other, message));
    }
    PushReport::Rejected(said)
}

/// What a remote said during a push.
#[derive(Default)]
pub(super) struct RemoteOutput {
    words: RefCell<String>,
    /// Why it refuses the ref.
    refused: RefCell<Option<String>>,
    has_moved: Cell<bool>,
}

impl RemoteOutput {
    /// The most bytes of the remote's words that are kept.
    const WORDS: usize = 4096;

    /// Returns callbacks that fill this in, and end the push where the branch is not as expected.
    pub(super) fn callbacks(&self, expected: Option<CommitId>) -> RemoteCallbacks<'_> {
        let mut callbacks = RemoteCallbacks::new();
        callbacks.sideband_progress(|text| {
            let mut words = self.words.borrow_mut();
            if words.len() < Self::WORDS {
                words.push_str(&String::from_utf8_lossy(text));
            }
            true
        });
        callbacks.push_update_reference(|_, status| {
            if let Some(status) = status {
                *self.refused.borrow_mut() = Some(status.to_owned());
            }
            Ok(())
        });
        callbacks.push_negotiation(move |updates| {
            let found = updates.first().map(git2::PushUpdate::src);
            let there = found.filter(|it| !it.is_zero()).map(id_of);
            if there == expected {
                return Ok(());
            }
            self.has_moved.set(true);
            Err(git2::Error::from_str("the branch moved meanwhile"))
        });
        callbacks
    }

    /// Returns what a push reports that libgit2 has ended. Fails where libgit2 cannot read what is here.
    pub(super) fn report(
        self,
        remote: &Remote,
        attempt: &Attempt,
        pushed: Result<(), git2::Error>,
    ) -> Result<PushReport, FetchError> {
        if self.has_moved.get() {
            return Ok(PushReport::Moved);
        }
        let words = on_one_line(attempt, &self.words.borrow());
        let refused = self.refused.into_inner().map(|it| on_one_line(attempt, &it));
        match (pushed, refused) {
            (_, Some(status)) => Ok(refusal(remote, &words, &status)),
            (Ok(()), None) => Ok(PushReport::Accepted),
            (Err(error), None) => failed_push(attempt, &error),
        }
    }
}

/// Returns how a try ended that libgit2 has an error for; fails where that is of the objects here.
fn failed_push(attempt: &Attempt, error: &git2::Error) -> Result<PushReport, FetchError> {
    use git2::ErrorClass::{Invalid, Object, Odb, Tree};

    if let Some(words) = attempt.refusal() {
        return Ok(PushReport::Rejected(on_one_line(attempt, words)));
    }
    if error.code() == ErrorCode::NotFastForward {
        return Ok(PushReport::Moved);
    }
    let explained = attempt.explain(error);
    match explained.failure {
        _ if attempt.has_sent() => Ok(PushReport::Broken(explained)),
        // A malformed author is an invalid one.
        FetchFailure::CorruptObjects | FetchFailure::Other
            if matches!(error.class(), Invalid | Object | Odb | Tree) =>
        {
            Err(explained)
        }
        _ => Ok(PushReport::Unchanged(explained)),
    }
}

/// Writes the words of a remote on one line, without the secrets that it repeats.
fn on_one_line(attempt: &Attempt, words: &str) -> String {
    let lines: Vec<&str> =
        words.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String = lines.join("; ").chars().filter(|it| !it.is_control()).collect();
    attempt.hide_secrets(&line).chars().take(1000).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::MirrorOptions;

    #[test]
    fn a_remote_is_quoted_on_one_line_without_what_it_was_sent() {
        let remote = Remote::parse("https://git.example.com/groups.git").unwrap();
        let attempt = Attempt::push(&remote, &MirrorOptions::default());
        attempt.note_secrets(&["ci:hunter2", "hunter2"]);
        let long = format!("{}hunter2", "x".repeat(997));
        for (words, expected) in [
            ("bad header:\r\n  Basic Y2k6aHVudGVyMg==\n", "bad header:; Basic …=="),
            ("hun\u{7}ter2 is wrong", "… is wrong"),
            (&long, &*format!("{}…", "x".repeat(997))),
        ] {
            assert_eq!(on_one_line(&attempt, words), expected);
        }
    }

    #[test]
    fn a_remote_without_room_is_told_from_one_that_refuses() {
        let remote = Remote::parse("https://git.example.com/groups.git").unwrap();
        for (words, status, may_try_again) in [
            ("", "failed to update ref", true),
            ("", "missing necessary objects", true),
            ("fatal: fork failed: Resource temporarily unavailable", "unpacker error", true),
            ("error: cannot fork: Cannot allocate memory", "unpacker error", true),
            ("No space left on device", "unpacker error", true),
            ("", "unpacker error", true),
            ("fatal: pack exceeds maximum allowed size", "unpacker error", false),
            // What a hook says is its own rule.
            ("Resource temporarily unavailable", "pre-receive hook declined", false),
            ("", "protected branch hook declined", false),
        ] {
            let is_fault = matches!(refusal(&remote, words, status), PushReport::Unchanged(_));
            assert_eq!(is_fault, may_try_again, "{words} ({status})");
        }
    }
}
