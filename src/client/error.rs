//! Why a service gives no answer.

/// A service gives no answer that can be used. The message has the cause in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL, the token or a certificate cannot be used.
    #[error("{0}")]
    Setup(String),
    /// No answer arrives.
    #[error("cannot reach `{name}`: {reason}")]
    Unreachable {
        /// The service.
        name: String,
        /// What happened.
        reason: String,
    },
    /// The answer is larger than this program reads at once.
    #[error("the answer of `{name}` is larger than {} MiB", .most >> 20)]
    TooLarge {
        /// The service.
        name: String,
        /// The most bytes.
        most: u64,
    },
    /// The service refuses a request for a list; it may answer another one.
    #[error("{0}")]
    Refused(String),
    /// An element of a list cannot be used; others may be.
    #[error("{0}")]
    Element(String),
    /// The answer cannot be used, or is a refusal.
    #[error("{0}")]
    Answer(String),
}
