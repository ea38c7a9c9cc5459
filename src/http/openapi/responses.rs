//! What several routes answer alike, in sets that handlers name.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema as _};

use super::errors::{
    BodyErrors, ClassificationErrors, FactsErrors, GroupErrors, MalformedId, NotFound,
    SnapshotErrors, UnknownNode, WriteErrors,
};
use crate::http::types::Proposed;

type All = BTreeMap<String, RefOr<Response>>;

/// Declares sets that are made of others; where two describe the same error, the later one counts.
macro_rules! unions {
    ($($(#[$doc:meta])* $set:ident = $($part:ident)+;)*) => {$(
        $(#[$doc])*
        pub(in crate::http) enum $set {}

        impl IntoResponses for $set {
            fn responses() -> All {
                let mut all = All::new();
                $(all.append(&mut $part::responses());)+
                all
            }
        }
    )*};
}

unions! {
    /// Errors of a node that is classified by the facts that are known of it.
    ByNameErrors = UnknownNode ClassificationErrors FactsErrors SnapshotErrors;
    /// Errors of a node that is classified by the facts of the request, as far as it has any.
    ByFactsErrors = BodyErrors NotFound ClassificationErrors FactsErrors SnapshotErrors;
    /// Errors of a group that the path names.
    GroupInPathErrors = MalformedId NotFound;
    /// What every write answers.
    WriteResponses = Proposal WriteErrors;
    /// What every write of groups answers.
    GroupWriteResponses = GroupErrors WriteResponses;
}

/// A change that waits for review.
enum Proposal {}

impl IntoResponses for Proposal {
    fn responses() -> All {
        let schema = Ref::from_schema_name(Proposed::name());
        let body = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description("With `--writes propose`: the branch to review")
            .content("application/json", body);
        All::from([("202".to_owned(), response.into())])
    }
}
