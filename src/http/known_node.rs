//! The node that a person asks about: found as it is known, and answered where an answer is needed.

use super::classify::classified;
use super::compute::{TOOLS, weight};
use super::error::ApiError;
use super::node_lookup::{NodeLookup, TrustedSource};
use super::node_request::{NodeRequest, ProvedNode};
use super::original_uri::OriginalUri;
use super::snapshot_context::SnapshotContext;
use crate::classification::WithheldFacts;

/// Finds what is known of the node of a request.
pub(super) async fn known(
    lookup: &NodeLookup,
    context: &SnapshotContext,
    uri: &OriginalUri,
    request: &NodeRequest,
) -> Result<ProvedNode, ApiError> {
    let known = lookup.find(request, TrustedSource::without_body(request)).await?;
    known.for_lookup(&context.snapshot, uri)
}

/// Finds what is known of the node of a request, which has an answer: one without gets the error of any other
/// request for it.
pub(super) async fn answered(
    lookup: &NodeLookup,
    context: SnapshotContext,
    uri: &OriginalUri,
    request: &NodeRequest,
) -> Result<(SnapshotContext, ProvedNode), ApiError> {
    let node = known(lookup, &context, uri, request).await?;
    let weight = weight(&node);
    let classify = move || {
        let done = classified(&context, &node, WithheldFacts::Mark, |_, _| ());
        done.map_err(|error| context.named(error))?;
        Ok((context, node))
    };
    TOOLS.run(weight, classify).await?
}
