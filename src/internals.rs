//! What the tests, benchmarks and fuzz targets of this repository use of the private modules. It is not part
//! of the library: items come and go without notice.

macro_rules! internals {
    ($($module:ident: $($item:ident)*;)*) => {
        $(pub mod $module {
            pub use crate::$module::{$($item),*};
        })*
    };
}

internals! {
    answer: Answer AnswerChange AnswerDigest AnswerKey AnswerRecord ChangeCause ConflictRecord Defined GivenAnswer
        MentionedFacts NodeState RuleFailure UnreadableAnswer cause changes;
    changeset: ORDER read_group;
    classification: ClassificationError Conflicts Evidence Outcome Version classified classify conflict_details
        explanation is_member matches overlaps to_yaml11;
    diagnostic: Kind Place Severity;
    hierarchy: Estate GroupIndex Hierarchy root_group;
    impact: Impact NodeComparison Side StateComparison Survey;
    java_regex: Pattern suspicions;
    mentioned: FactDifference MentionedPaths MentionedPathsError differences;
    model: Budget BudgetItem CommitId Condition Group GroupId Individual Interpolation MASKED Map Meter Node STORED_PATHS Value
        same;
    puppet: DataType;
    rule: QueryFormat Solver evaluate explain read read_console split_pins to_query to_value with_pins;
    snapshot: AnsweredNode Index LiveSnapshot NoDocument Snapshot;
    validation: Checked FileKind Search SourceContent SourceFile read_file read_file_within validate validate_within;
}

pub mod document {
    #[cfg(feature = "fuzzing")]
    pub use crate::document::fuzz_plain;
    pub use crate::document::{Limits, ValueLayout, format, read, write};
}

#[cfg(feature = "daemon")]
internals! {
    config: PuppetSettings;
    facts: Unlimited read_facts;
    store: AnswerSummary Answered Certname CheckIn CheckIns FactChange NodeFilter NodePage NodeRange NodeSummary Noted
        Received SaidPart ScannedNode StoreError StoreFault StoreLimits StoreLocation StoreSettings StoredChange StoredNode;
    telemetry: Description Metrics;
}

#[cfg(feature = "cli")]
pub mod cli {
    pub use crate::cli::command;
    #[cfg(feature = "fuzzing")]
    pub use crate::cli::fuzz_answer;
}

#[cfg(feature = "daemon")]
pub mod git {
    #[cfg(feature = "fuzzing")]
    pub use crate::git::fuzz_join;
    pub use crate::git::{
        Credentials, EntryKind, FetchError, FetchFailure, Fetched, HttpOptions, Mirror,
        MirrorError, MirrorOptions, Proxy, Remote, Repository, Scheme, Verification,
    };
}

#[cfg(feature = "daemon")]
pub mod reconcile {
    #[cfg(feature = "fuzzing")]
    pub use crate::reconcile::fuzz_journal;
    pub use crate::reconcile::{
        Blame, BlameCache, BlamedValue, Controller, Event, Journal, Policy, Record, Settings,
        Target, load,
    };
}

#[cfg(feature = "daemon")]
pub mod http {
    #[cfg(feature = "fuzzing")]
    pub use crate::http::fuzz_delivery;
    pub use crate::http::types;
}
