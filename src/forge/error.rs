//! Why a call to a forge failed, and when it may succeed.

use std::path::PathBuf;
use std::time::Duration;

/// The longest pause that a forge can ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// A call did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The forge could not be asked, or has a fault of its own: later is better.
    #[error("the forge cannot be asked now: {0}")]
    Later(String),
    /// It has a fault of its own, and says how long that lasts.
    #[error("the forge cannot be asked now: it answers {status}: {said}")]
    Unavailable {
        /// The status of the answer.
        status: u16,
        /// What it says, cut short.
        said: String,
        /// How long it asks to wait.
        pause: Duration,
    },
    /// It takes no more calls for a while.
    #[error("the forge limits calls, and answers {status}: {said}")]
    RateLimited {
        /// The status of the answer.
        status: u16,
        /// What it says, cut short.
        said: String,
        /// How long it asks to wait.
        pause: Duration,
    },
    /// It does not accept the token, until that is replaced or gets more rights.
    #[error("the forge answers {status} to the token: {said}")]
    Unauthorized {
        /// The status of the answer.
        status: u16,
        /// What it says, cut short.
        said: String,
    },
    /// It does not find the repository or the commit, or the token may not see them.
    #[error("the forge answers 404, which may be for lack of rights of the token: {0}")]
    NotFound(String),
    /// It refuses, and will do so again.
    #[error("the forge answers {status}: {said}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// What it says, cut short.
        said: String,
    },
    /// A file of ours cannot be used.
    #[error("`{}` cannot be used: it {detail}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
}

/// When a call that failed may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryScope {
    /// Later.
    ThisCall,
    /// Later, and no other call before: the forge rejects whatever comes. It asks for so long a pause.
    AllCalls(Duration),
}

impl ForgeError {
    /// Returns when the same call may succeed; none if it never will.
    pub fn retry(&self) -> Option<RetryScope> {
        match self {
            // A secret may be mounted later than we start.
            Self::Later(_) | Self::NotFound(_) | Self::File { .. } => Some(RetryScope::ThisCall),
            Self::Unavailable { pause, .. } | Self::RateLimited { pause, .. } => {
                Some(RetryScope::AllCalls(*pause))
            }
            Self::Unauthorized { .. } => Some(RetryScope::AllCalls(Duration::ZERO)),
            Self::Refused { .. } => None,
        }
    }

    /// Returns whether the forge may only lack the commit of a status yet. GitHub answers so for a moment to a commit that
    /// was pushed just now or comes from a fork: `No commit found for SHA`.
    pub fn may_lack_commit(&self) -> bool {
        matches!(self, Self::Refused { status: 422, .. })
    }
}

/// What failed calls read of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct FailedAnswer {
    pub(super) status: u16,
    /// The header `Retry-After`.
    pub(super) retry_after: Option<String>,
    /// The header `X-RateLimit-Remaining`.
    pub(super) calls_left: Option<String>,
    /// What it says, cut short.
    pub(super) said: String,
}

impl FailedAnswer {
    /// Returns whether and when the call may succeed later.
    pub(super) fn error(self) -> ForgeError {
        let Self { status, said, .. } = self;
        // Only a number of seconds: no forge sends a date.
        let seconds = self.retry_after.as_deref().and_then(|it| it.trim().parse().ok());
        let pause = seconds.map(Duration::from_secs);
        let is_used_up = self.calls_left.as_deref().map(str::trim) == Some("0");
        match status {
            500.. if pause.is_some() => ForgeError::Unavailable { status, said, pause: cut(pause) },
            429 => ForgeError::RateLimited { status, said, pause: cut(pause) },
            // GitHub says so with 403, by either header:
            // https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
            403 if pause.is_some() || is_used_up => {
                ForgeError::RateLimited { status, said, pause: cut(pause) }
            }
            401 | 403 => ForgeError::Unauthorized { status, said },
            // GitHub and GitLab answer so where the token may not see the repository.
            404 => ForgeError::NotFound(said),
            408 | 425 | 500.. => ForgeError::Later(format!("it answers {status}: {said}")),
            _ => ForgeError::Refused { status, said },
        }
    }
}

fn cut(pause: Option<Duration>) -> Duration {
    pause.unwrap_or_default().min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn an_answer_says_whether_and_when_the_call_may_succeed() {
        let seconds = |it| Some(RetryScope::AllCalls(Duration::from_secs(it)));
        let rows = [
            ((500, None, None), Some(RetryScope::ThisCall)),
            ((503, Some("7"), None), seconds(7)),
            ((503, Some("soon"), None), Some(RetryScope::ThisCall)),
            ((502, Some("99999999"), None), seconds(3600)),
            ((408, None, None), Some(RetryScope::ThisCall)),
            ((404, None, None), Some(RetryScope::ThisCall)),
            ((429, None, None), seconds(0)),
            ((429, Some("7"), None), seconds(7)),
            ((429, Some("Fri, 27 Nov 2026 05:00:00 GMT"), None), seconds(0)),
            ((429, Some("99999999"), None), seconds(3600)),
            ((403, Some(" 60 "), None), seconds(60)),
            ((403, None, Some("0")), seconds(0)),
            ((403, None, Some("10")), seconds(0)),
            ((401, None, None), seconds(0)),
            ((400, None, None), None),
            ((422, Some("7"), Some("0")), None),
            ((302, None, None), None),
        ];
        each_row(rows, |((status, retry_after, calls_left), expected)| {
            let answer = FailedAnswer {
                status,
                retry_after: retry_after.map(str::to_owned),
                calls_left: calls_left.map(str::to_owned),
                said: String::new(),
            };
            let error = answer.error();
            assert_eq!(error.retry(), expected);
            assert_eq!(error.may_lack_commit(), status == 422);
        });
    }
}
