//! How a command ends.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: fine.
    Fine,
    /// 1: errors in validation, failed tests, a conflict.
    Findings,
    /// 2: it could not run.
    Failed,
    /// 3: what it waited for did not happen in time.
    TimedOut,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => Self::SUCCESS,
            Exit::Findings => Self::from(1),
            Exit::Failed => Self::from(2),
            Exit::TimedOut => Self::from(3),
        }
    }
}
