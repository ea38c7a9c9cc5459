//! The kinds of errors, each with its status.

use std::fmt;

use axum::http::StatusCode;

/// Declares the kinds: what goes wrong, the word for it on the wire, the status of the answer.
macro_rules! error_kinds {
    ($($(#[$doc:meta])* $kind:ident = $word:literal $status:ident;)*) => {
        /// What went wrong. Clients match on the word; its status never differs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[$doc])* $kind,)*
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)*
                }
            }

            /// Returns the status of the answer.
            pub const fn status(self) -> StatusCode {
                match self {
                    $(Self::$kind => StatusCode::$status,)*
                }
            }
        }
    };
}

error_kinds! {
    /// The body, the query or a header cannot be read.
    MalformedRequest = "malformed-request" BAD_REQUEST;
    /// The body, the query or the path does not have the shape that it must have.
    SchemaViolation = "schema-violation" BAD_REQUEST;
    /// An id is not a UUID.
    MalformedUuid = "malformed-uuid" BAD_REQUEST;
    /// A parameter is not a number.
    MalformedNumber = "malformed-number" BAD_REQUEST;
    /// A count is negative.
    IllegalCount = "illegal-count" BAD_REQUEST;
    /// The ids in URL and body differ.
    ConflictingIds = "conflicting-ids" BAD_REQUEST;
    /// The request names no nodes.
    MissingParameters = "missing-parameters" BAD_REQUEST;
    /// The caller is not known, or a delivery is not signed.
    UserUnauthenticated = "user-unauthenticated" UNAUTHORIZED;
    /// The caller lacks a role, or the remote rejects the push.
    PermissionDenied = "permission-denied" FORBIDDEN;
    /// Groups change by commits alone.
    ReadOnly = "read-only" FORBIDDEN;
    /// There is no such resource.
    NotFound = "not-found" NOT_FOUND;
    /// The repository has no such commit.
    UnknownCommit = "unknown-commit" NOT_FOUND;
    /// The resource does not have the method.
    MethodNotAllowed = "method-not-allowed" METHOD_NOT_ALLOWED;
    /// The body comes too slowly.
    RequestTimeout = "request-timeout" REQUEST_TIMEOUT;
    /// The branch or the group changed meanwhile.
    WriteConflict = "write-conflict" CONFLICT;
    /// The body has too many bytes or values.
    PayloadTooLarge = "payload-too-large" PAYLOAD_TOO_LARGE;
    /// Another group has the name.
    UniquenessViolation = "uniqueness-violation" UNPROCESSABLE_ENTITY;
    /// The catalogue of the environment lacks classes or parameters.
    MissingReferents = "missing-referents" UNPROCESSABLE_ENTITY;
    /// The parent does not exist.
    MissingParent = "missing-parent" UNPROCESSABLE_ENTITY;
    /// Groups inherit from each other in a circle.
    InheritanceCycle = "inheritance-cycle" UNPROCESSABLE_ENTITY;
    /// Groups are not below the root group.
    UnreachableGroups = "unreachable-groups" UNPROCESSABLE_ENTITY;
    /// The rule of the root group is fixed.
    RootRuleEdit = "root-rule-edit" UNPROCESSABLE_ENTITY;
    /// The root group can be neither moved nor removed.
    RootGroup = "root-group" UNPROCESSABLE_ENTITY;
    /// The group has children.
    ChildrenPresent = "children-present" UNPROCESSABLE_ENTITY;
    /// Groups or a catalogue use the environment.
    EnvironmentInUse = "environment-in-use" UNPROCESSABLE_ENTITY;
    /// PuppetDB's queries cannot say what the rule says.
    UntranslatableRule = "untranslatable-rule" UNPROCESSABLE_ENTITY;
    /// The commit is not valid, or the write would make it so.
    InvalidCommit = "invalid-commit" UNPROCESSABLE_ENTITY;
    /// Groups give a node different values.
    ClassificationConflict = "classification-conflict" INTERNAL_SERVER_ERROR;
    /// A rule runs out of its budget.
    RuleEvaluationError = "rule-evaluation-error" INTERNAL_SERVER_ERROR;
    /// Puppet Server answers what is of no use.
    UnexpectedResponse = "unexpected-response" INTERNAL_SERVER_ERROR;
    /// The daemon fails.
    ApplicationError = "application-error" INTERNAL_SERVER_ERROR;
    /// No commit answers, or the one that does is too old.
    NoSnapshot = "no-snapshot" SERVICE_UNAVAILABLE;
    /// The commit has not been fetched yet.
    CommitNotHereYet = "commit-not-here-yet" SERVICE_UNAVAILABLE;
    /// Too much is in progress.
    Busy = "busy" SERVICE_UNAVAILABLE;
    /// The disk or the store fails.
    StorageFailed = "storage-failed" SERVICE_UNAVAILABLE;
    /// The remote of the repository cannot be reached.
    RemoteUnreachable = "remote-unreachable" SERVICE_UNAVAILABLE;
    /// Whether the push arrived is not known.
    WriteUnknown = "write-unknown" SERVICE_UNAVAILABLE;
    /// PuppetDB cannot be reached.
    PuppetdbUnreachable = "puppetdb-unreachable" SERVICE_UNAVAILABLE;
    /// Puppet Server cannot be reached.
    PuppetServerUnreachable = "puppet-server-unreachable" SERVICE_UNAVAILABLE;
}

impl ErrorKind {
    /// Returns the kind of a word; none for a word of a newer daemon.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.as_str() == word)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorKind;

    #[test]
    fn every_kind_is_found_by_its_word() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::of(kind.as_str()), Some(*kind));
        }
        assert_eq!(ErrorKind::of("of-a-newer-daemon"), None);
    }
}
