//! Why the branch is fetched.

use serde::{Deserialize, Serialize};

/// What requests a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// The daemon started.
    Startup,
    /// The interval passed.
    Poll,
    /// A forge announced a push.
    Webhook,
    /// An operator asked.
    Manual,
    /// The fetch before failed, or lacked an announced commit.
    Retry,
    /// A write through the API.
    Write,
}

impl Trigger {
    /// Returns the word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Poll => "poll",
            Self::Webhook => "webhook",
            Self::Manual => "manual",
            Self::Retry => "retry",
            Self::Write => "write",
        }
    }
}
