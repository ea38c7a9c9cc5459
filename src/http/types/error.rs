//! The body of every error, and the details that have fields of their own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::ErrorKind;
use crate::model::{CommitId, GroupId};

/// The body of every error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Error {
    /// What went wrong, in one word
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    /// For people
    pub msg: String,
    /// What there is to say in particular
    #[schema(required)]
    #[serde(default)]
    pub details: Value,
}

impl Error {
    /// Returns the kind; none if a newer daemon made it up.
    pub fn kind(&self) -> Option<ErrorKind> {
        ErrorKind::of(&self.kind)
    }
}

/// Declares what an error may have as its details.
macro_rules! details {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl From<$name> for Value {
            fn from(details: $name) -> Self {
                // Text, numbers and ids are always written.
                serde_json::to_value(details).unwrap_or_default()
            }
        }
    )*};
}

details! {
    /// The details of `malformed-request` for a body that is not JSON.
    MalformedBody {
        /// The beginning of the body.
        body: String,
        /// Why it cannot be read.
        error: String,
    }
    /// The details of `no-snapshot` where the commit that answers is too old.
    Age {
        /// How many seconds ago the branch was seen.
        staleness_seconds: u64,
    }
    /// The details of `write-conflict` where a change is on the branch and a pin keeps it from answering.
    NotInEffect {
        /// The commit of the change.
        commit: CommitId,
        /// The commit that answers.
        pinned: CommitId,
    }
    /// The details of `permission-denied` where the remote rejects a push.
    RemoteWords {
        /// What the remote says.
        remote: String,
    }
    /// The details of `unexpected-response`.
    UnexpectedResponse {
        /// What was asked for.
        url: String,
        /// The status of the response.
        status: u16,
        /// The beginning of its body.
        body: String,
    }
    /// The details of `rule-evaluation-error`.
    EvaluationFailure {
        /// The group whose rule cannot be evaluated.
        group: FailedGroup,
        /// The pattern that runs out of its budget, if one does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// The path of the value that is not stored, if that is the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    }
}

/// A group whose rule cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedGroup {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: String,
}
