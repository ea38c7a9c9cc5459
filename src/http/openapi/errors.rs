//! Which errors a route answers with, in sets that handlers name beside what they answer.
//!
//! The status of an error is that of its kind. A set describes each kind under a key of its own, such as
//! `503 busy`, with what is said of it; [`merge`] joins those of one status.

use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema as _};

use super::parameters::{count, text};
use crate::http::types::{Error, ErrorKind};

type All = BTreeMap<String, RefOr<Response>>;

/// Declares sets of errors, each with what is to be said of it on the routes that have the set.
macro_rules! errors {
    ($($(#[$doc:meta])* $set:ident { $($kind:ident $(: $note:literal)?),* $(,)? })*) => {$(
        $(#[$doc])*
        pub(in crate::http) enum $set {}

        impl IntoResponses for $set {
            fn responses() -> All {
                described(&[$((ErrorKind::$kind, concat!($($note)?))),*])
            }
        }
    )*};
}

errors! {
    /// Of the roles that callers need.
    AccessErrors { UserUnauthenticated, PermissionDenied }
    /// Of the snapshot that answers.
    SnapshotErrors {
        MalformedRequest: "`commit`, `at` or `X-Clade-Commit` cannot be read",
        UnknownCommit,
        InvalidCommit: "that commit is not valid, or not signed as `--verify` demands",
        NoSnapshot,
        CommitNotHereYet,
        Busy,
    }
    /// Of bodies.
    BodyErrors { MalformedRequest, SchemaViolation, RequestTimeout, PayloadTooLarge, Busy }
    /// Of classifications.
    ClassificationErrors { ClassificationConflict, RuleEvaluationError }
    /// Of explanations, which show conflicts.
    EvaluationErrors { RuleEvaluationError }
    /// Of what the explanation of one group shows.
    MembershipErrors { PayloadTooLarge: "the comparisons show over 16 MiB of facts" }
    /// Of what explanations show.
    ExplanationErrors { PayloadTooLarge: "the comparisons show over 16 MiB of facts, or what the leaf groups inherit takes over 32 MiB of memory" }
    /// Of histories.
    HistoryErrors { PayloadTooLarge: "the changes have over 8 MiB or 100,000 values: ask for fewer with `limit`" }
    /// Of facts that the request does not bring along.
    FactsErrors {
        StorageFailed: "stored facts cannot be read",
        PuppetdbUnreachable: "PuppetDB is needed for facts",
        Busy,
    }
    /// Of the check-ins.
    StoreErrors { StorageFailed: "the check-ins cannot be read", Busy }
    /// Of check-ins that are to be kept.
    KeepErrors { StorageFailed: "the facts are not kept", Busy }
    /// Of the conditions of a list of nodes.
    NodeConditionErrors {
        SchemaViolation: "a condition cannot be read",
        UnknownCommit,
        NoSnapshot: "the group of a name is that of the live commit",
    }
    /// Of times in the query.
    TimeErrors { MalformedRequest: "`before` cannot be read" }
    /// Of what the path names.
    NotFound { NotFound }
    /// Of a node that a GET names.
    UnknownNode { NotFound: "the node has not checked in" }
    /// Of a node that the store does not know.
    UnknownStoredNode { NotFound: "the node has not checked in, or was forgotten" }
    /// Of a node, and of a value that it may get.
    UnknownNodeOrKey { NotFound: "the node has not checked in, or gets no such value" }
    /// Of what the path names in other words than an id.
    PathErrors { MalformedRequest: "the path is not UTF-8" }
    /// Of ids in the path.
    MalformedId { MalformedUuid }
    /// Of `limit` and `offset`.
    PageErrors { MalformedNumber }
    /// Of `depth`.
    DepthErrors { MalformedNumber, IllegalCount: "`depth` is negative" }
    /// Of a word of the query.
    WordErrors { SchemaViolation }
    /// Of the name of an environment.
    EnvironmentErrors { SchemaViolation: "this is not a name of an environment" }
    /// Of a rule in the query.
    RuleErrors { SchemaViolation: "the rule is not valid; `details` has the `diagnostics`", Busy }
    /// Of a rule in the body.
    RuleBodyErrors {
        MalformedRequest,
        SchemaViolation: "the rule is not valid; `details` has the `diagnostics`",
        RequestTimeout,
        PayloadTooLarge,
        Busy,
    }
    /// Of rules as queries.
    TranslationErrors { UntranslatableRule, Busy }
    /// Of every write.
    WriteErrors {
        MalformedRequest,
        ReadOnly: "without `--writes`; `msg` has the file to change",
        WriteConflict: "with `details` of `commit` and `pinned` where the change is on the branch and a pin keeps it from answering",
        InvalidCommit: "with the change the groups would not be valid",
        RemoteUnreachable: "nothing changed",
        WriteUnknown: "sending it again is safe",
        NoSnapshot,
        StorageFailed: "the journal or the repository cannot be written, so nothing changed",
        Busy: "too much is in progress, nothing changed",
    }
    /// Of a write that names a serial number.
    DeltaErrors { WriteConflict: "also where `serial_number` is given and is not that of the group" }
    /// Of a write of groups that breaks them.
    GroupErrors {
        ConflictingIds,
        UniquenessViolation,
        MissingReferents,
        MissingParent,
        InheritanceCycle,
        UnreachableGroups,
        RootRuleEdit,
        RootGroup,
        ChildrenPresent,
    }
    /// Of a request that names nodes.
    NodesErrors { MissingParameters }
    /// Of the removal of an environment.
    RemovalErrors { EnvironmentInUse: "it is that of groups, or has a class catalogue" }
    /// Of a pull of classes.
    PullErrors {
        NotFound: "the Puppet Server does not have the environment that is asked for",
        InvalidCommit: "with these classes the groups would not be valid, or a catalogue would be too large",
        UnexpectedResponse: "the response of the Puppet Server cannot be used; `details` has `url`, `status` and `body`",
        PuppetServerUnreachable: "nothing changed",
    }
    /// Of what operators have the daemon do.
    JournalErrors { StorageFailed: "the journal cannot be written, so nothing changed" }
    /// Of commits that are named in the path.
    CommitErrors { UnknownCommit, Busy, StorageFailed }
    /// Of commits that are to answer.
    ValidCommitErrors {
        UnknownCommit,
        InvalidCommit: "that commit is not valid, or not signed as `--verify` demands",
        StorageFailed: "the repository cannot be read",
        Busy,
    }
    /// Of comparisons of commits.
    ComparisonErrors { PayloadTooLarge: "what the nodes get differently takes too much memory" }
    /// Of deliveries of webhooks.
    DeliveryErrors {
        MalformedRequest,
        UserUnauthenticated: "its signature is wrong or missing",
        NotFound: "there is no such provider",
        RequestTimeout,
        PayloadTooLarge,
        Busy,
    }
    /// Of what is known of commits.
    LookupErrors { StorageFailed: "the repository cannot be read", Busy }
    /// Of readiness.
    ReadyErrors { NoSnapshot }
}

fn described(kinds: &[(ErrorKind, &str)]) -> All {
    let described = kinds.iter().map(|(kind, note)| {
        let key = format!("{} {} {note}", kind.status().as_str(), kind.as_str());
        (key, ResponseBuilder::new().into())
    });
    described.collect()
}

/// Joins the errors of one status to one response, with the schema of all errors.
pub(super) fn merge(responses: &mut All) {
    let (errors, answers): (All, All) =
        std::mem::take(responses).into_iter().partition(|(key, _)| key.contains(' '));
    *responses = answers;
    let mut joined: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for key in errors.keys() {
        let mut parts = key.splitn(3, ' ');
        if let (Some(status), Some(kind), Some(note)) = (parts.next(), parts.next(), parts.next()) {
            let notes = joined.entry(status).or_default().entry(kind).or_default();
            notes.extend((!note.is_empty()).then_some(note));
        }
    }
    for (status, kinds) in joined {
        let said: Vec<String> = kinds.iter().map(|(kind, notes)| said_of(kind, notes)).collect();
        responses.insert(status.to_owned(), response(status, &said.join("; ")));
    }
}

fn said_of(kind: &str, notes: &[&str]) -> String {
    if notes.is_empty() {
        format!("`{kind}`")
    } else {
        format!("`{kind}`: {}", notes.join(", or "))
    }
}

fn response(status: &str, description: &str) -> RefOr<Response> {
    let schema = Ref::from_schema_name(Error::name());
    let body = ContentBuilder::new().schema(Some(schema)).build();
    let response =
        ResponseBuilder::new().description(description).content("application/json", body);
    let header = |said, schema| HeaderBuilder::new().description(Some(said)).schema(Some(schema));
    match status {
        "401" => {
            let scheme = header("`Bearer`, where a token is missing or not known", text());
            response.header("WWW-Authenticate", scheme.build()).into()
        }
        "503" => {
            let retry = header("After how many seconds to ask again", count());
            response.header("Retry-After", retry.build()).into()
        }
        _ => response.into(),
    }
}
