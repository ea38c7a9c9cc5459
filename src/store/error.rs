//! What can go wrong with the store.

use std::io::ErrorKind;
use std::path::Path;

/// The check-ins cannot be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the check-ins cannot be {action}: {reason}")]
pub struct StoreError {
    /// What the store does about it.
    pub fault: StoreFault,
    action: &'static str,
    reason: String,
}

/// The kind of a failure, which decides what is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// The content of the file makes no sense: the file is put aside.
    Damaged,
    /// What stands in the place of the file cannot be opened as one: it is put aside.
    Unusable,
    /// No space is left: retried. What is there can be read.
    DiskFull,
    /// The system does not write to the file: retried. What is there can be read.
    NotWritten,
    /// Another process writes to the database, and does not end: retried.
    Locked,
    /// Any other failure of the disk or the database server: retried.
    Io,
    /// The database does not run a statement, and is none the worse for it.
    Statement,
    /// The database did not answer in time: a file is still there, and a server may be gone.
    TimedOut,
    /// More waits to be written than the queue holds.
    Busy,
    /// The store has as many nodes or bytes as it may have.
    Limit,
    /// The node has a name that no database can hold.
    Name,
    /// The database cannot hold or compare a value: that of one node or request.
    Value,
    /// One row cannot be read; the others can.
    Row,
    /// A damaged file is put aside, and may have what is requested.
    PutAside,
    /// The file of a former version may have what is requested, and is not imported yet.
    NotImported,
}

impl StoreError {
    pub(super) fn new(fault: StoreFault, action: &'static str, reason: impl Into<String>) -> Self {
        Self { fault, action, reason: reason.into() }
    }

    /// Names the file that could not be opened; one that is put aside is named then.
    pub(super) fn of_file(self, path: &Path) -> Self {
        if self.calls_for_a_new_file() {
            return self;
        }
        let reason = format!("`{}`: {}", path.display(), self.reason);
        Self { reason, ..self }
    }

    /// Says that a file that cannot be used may be of others, so that it stays where it is.
    pub(super) fn of_foreign(self, path: &Path) -> Self {
        let reason = format!(
            "`{}` is not a file of check-ins that Clade wrote ({}): name another file, or move this one away",
            path.display(),
            self.reason
        );
        Self { fault: StoreFault::Io, reason, ..self }
    }

    /// The thread that read ended early.
    pub(crate) fn interrupted() -> Self {
        Self::new(StoreFault::Io, "read", "the reading was interrupted")
    }

    /// Returns whether the open file cannot be used any more.
    pub(super) fn ends_the_file(&self) -> bool {
        !matches!(
            self.fault,
            StoreFault::Busy
                | StoreFault::DiskFull
                | StoreFault::NotWritten
                | StoreFault::Statement
                | StoreFault::TimedOut
                | StoreFault::Locked
                | StoreFault::Limit
                | StoreFault::Name
                | StoreFault::Value
                | StoreFault::Row
                | StoreFault::PutAside
                | StoreFault::NotImported
        )
    }

    /// Returns whether nothing can be written, while what is there can be read.
    pub(super) fn is_of_writing(&self) -> bool {
        matches!(self.fault, StoreFault::DiskFull | StoreFault::NotWritten)
    }

    /// Returns whether the file is put aside, since no retry mends it.
    pub(super) fn calls_for_a_new_file(&self) -> bool {
        matches!(self.fault, StoreFault::Damaged | StoreFault::Unusable)
    }
}

/// Reads the failure of a call to the operating system.
pub(super) fn fault_of_io(error: &std::io::Error) -> StoreFault {
    match error.kind() {
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => StoreFault::Damaged,
        ErrorKind::IsADirectory => StoreFault::Unusable,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            StoreFault::DiskFull
        }
        _ => StoreFault::Io,
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        let reason = match error.kind() {
            ErrorKind::PermissionDenied => format!("{error}: give it to the user of the daemon"),
            _ => error.to_string(),
        };
        Self::new(fault_of_io(&error), "opened", reason)
    }
}
