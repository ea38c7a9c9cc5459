//! What came of a push, by what it reports and where the remote shows the branch afterwards.

use super::failure::{FetchError, FetchFailure};
use super::push_error::PushError;
use super::push_report::PushReport;
use super::repository::{ReadError, Repository};
use crate::model::CommitId;

/// Where the branch is shown after a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShownBranch {
    /// At our commit, or at one on top of it.
    Ours,
    /// Where it was before the push; a new one is not there.
    Expected,
    /// At a commit behind that one, as a replica shows it that lags.
    Behind,
    /// Where others brought it from there. It cannot take our commit any more: a push compares and swaps.
    Overtaken,
    /// At a commit that neither leads to these nor comes from them.
    Other,
    /// The remote cannot be asked.
    Unknown(FetchError),
}

/// Where a push goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PushPlace {
    /// To a repository of this machine: it has no replicas, and what receives the push has ended.
    Here,
    /// To another machine: what it shows may lag behind what it takes, and what receives the push may still be at it.
    Elsewhere,
}

impl ShownBranch {
    /// Returns where a branch is that was at a commit before a push.
    pub(super) fn of(
        repository: &Repository,
        shown: CommitId,
        pushed: CommitId,
        expected: CommitId,
    ) -> Self {
        let leads = |from, to| repository.shows_ancestor(from, to);
        let found = || {
            Ok(if leads(pushed, shown)? {
                Self::Ours
            } else if shown == expected {
                Self::Expected
            } else if leads(expected, shown)? {
                Self::Overtaken
            } else if leads(shown, expected)? {
                Self::Behind
            } else {
                Self::Other
            })
        };
        found().unwrap_or_else(|error: ReadError| {
            Self::Unknown(FetchError::new(FetchFailure::Other, error.to_string()))
        })
    }

    /// Returns where a branch of a repository of this machine is; none is expected where it is a new one.
    pub(super) fn here(
        repository: &Repository,
        branch: &str,
        pushed: CommitId,
        expected: Option<CommitId>,
    ) -> Self {
        match (repository.target_of(branch), expected) {
            (Some(shown), Some(expected)) => Self::of(repository, shown, pushed, expected),
            (Some(shown), None) if shown == pushed => Self::Ours,
            (Some(_), None) => Self::Overtaken,
            (None, None) => Self::Expected,
            (None, Some(_)) => Self::Other,
        }
    }
}

/// Returns what came of a push.
///
/// # Errors
///
/// Returns why the branch does not have the commit, or that this is not known.
pub(super) fn outcome(
    report: PushReport,
    shown: ShownBranch,
    place: PushPlace,
) -> Result<(), PushError> {
    use PushPlace::Here;
    use PushReport::{Accepted, Broken, Rejected, Unchanged, Unsynced};
    use ShownBranch as Shown;

    Err(match (report, shown, place) {
        (Accepted, ..) => return Ok(()),
        (Unsynced(error), ..) => PushError::Unknown(error),
        // What is there counts, whatever was said about it.
        (_, Shown::Ours, _) => return Ok(()),
        // To try again would take as long again.
        (Broken(error), Shown::Overtaken, _)
        | (Broken(error), Shown::Behind | Shown::Other, Here)
            if error.failure == FetchFailure::Timeout =>
        {
            PushError::Failed(error)
        }
        (_, Shown::Overtaken, _) | (_, Shown::Behind | Shown::Other, Here) => PushError::Moved,
        (PushReport::Moved, Shown::Expected, Here) => PushError::Moved,
        (PushReport::Moved | Rejected(_) | Unchanged(_), Shown::Other, _) => PushError::Moved,
        (PushReport::Moved, Shown::Expected | Shown::Behind, _) => PushError::Failed(lag()),
        (PushReport::Moved, Shown::Unknown(error), _) => PushError::Failed(error),
        (Rejected(words), ..) => PushError::Rejected(words),
        (Unchanged(error), ..) | (Broken(error), Shown::Expected, Here) => PushError::Failed(error),
        (Broken(error), ..) => PushError::Unknown(error),
    })
}

/// Returns the error of a remote that shows an older commit than the one that it compares a push with.
fn lag() -> FetchError {
    let message = "what the remote shows of the branch is older than what it compares pushes with, as at a replica that lags";
    FetchError::new(FetchFailure::Other, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
        here      | ours | expected | behind   | overtaken | other    | unknown
        accepted  | ok   | ok       | ok       | ok        | ok       | ok
        unsynced  | push? | push?   | push?    | push?     | push?    | push?
        moved     | ok   | moved    | moved    | moved     | moved    | ask!
        rejected  | ok   | rejected | moved    | moved     | moved    | rejected
        unchanged | ok   | push!    | moved    | moved     | moved    | push!
        broken    | ok   | push!    | moved    | moved     | moved    | push?
        timeout   | ok   | push!    | push!    | push!     | push!    | push?

        elsewhere | ours | expected | behind   | overtaken | other    | unknown
        accepted  | ok   | ok       | ok       | ok        | ok       | ok
        unsynced  | push? | push?   | push?    | push?     | push?    | push?
        moved     | ok   | lag!     | lag!     | moved     | moved    | ask!
        rejected  | ok   | rejected | rejected | moved     | moved    | rejected
        unchanged | ok   | push!    | push!    | moved     | moved    | push!
        broken    | ok   | push?    | push?    | moved     | push?    | push?
        timeout   | ok   | push?    | push?    | push!     | push?    | push?
    ";

    fn error(failure: FetchFailure, message: &str) -> FetchError {
        FetchError::new(failure, message)
    }

    fn report(name: &str) -> PushReport {
        let failed = |failure| error(failure, "push");
        match name {
            "accepted" => PushReport::Accepted,
            "unsynced" => PushReport::Unsynced(failed(FetchFailure::Other)),
            "moved" => PushReport::Moved,
            "rejected" => PushReport::Rejected("why".to_owned()),
            "unchanged" => PushReport::Unchanged(failed(FetchFailure::Other)),
            "broken" => PushReport::Broken(failed(FetchFailure::ConnectFailed)),
            "timeout" => PushReport::Broken(failed(FetchFailure::Timeout)),
            other => panic!("{other}"),
        }
    }

    fn shown(name: &str) -> ShownBranch {
        match name {
            "ours" => ShownBranch::Ours,
            "expected" => ShownBranch::Expected,
            "behind" => ShownBranch::Behind,
            "overtaken" => ShownBranch::Overtaken,
            "other" => ShownBranch::Other,
            "unknown" => ShownBranch::Unknown(error(FetchFailure::ConnectFailed, "ask")),
            other => panic!("{other}"),
        }
    }

    /// Names an outcome: `!` is for one that changed nothing, and `?` for one that is not known.
    fn name(outcome: Result<(), PushError>) -> String {
        match outcome {
            Ok(()) => "ok".to_owned(),
            Err(PushError::Moved) => "moved".to_owned(),
            Err(PushError::Rejected(_)) => "rejected".to_owned(),
            Err(PushError::Failed(error)) if error == lag() => "lag!".to_owned(),
            Err(PushError::Failed(error)) => format!("{}!", error.message),
            Err(PushError::Unknown(error)) => format!("{}?", error.message),
        }
    }

    #[test]
    fn what_comes_of_a_push_is_a_table() {
        let mut checked = 0;
        for part in TABLE.trim().split("\n\n") {
            let cells = |line: &str| -> Vec<String> {
                line.split('|').map(|it| it.trim().to_owned()).collect()
            };
            let mut lines = part.lines().map(cells);
            let columns = lines.next().unwrap();
            let place = if columns[0] == "here" { PushPlace::Here } else { PushPlace::Elsewhere };
            for row in lines {
                for (column, expected) in columns.iter().zip(&row).skip(1) {
                    let found = name(outcome(report(&row[0]), shown(column), place));
                    assert_eq!(found, *expected, "{place:?} {} {column}", row[0]);
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 2 * 7 * 6);
    }
}
