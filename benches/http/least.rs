//! The least that a server of the same libraries must do to classify: it reads the body, looks the groups up and
//! writes the answer. It knows no callers, counts nothing, and forgets the facts.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use clade::internals::classification::Version;
use clade::internals::model::Budget;
use clade::internals::snapshot::{AnsweredNode, LiveSnapshot};

use crate::compiled::{estate, snapshot};
use crate::world::{Scale, estates};

/// Answers what the daemon answers.
pub(crate) fn router(scale: Scale) -> Router {
    let estate = estate(estates::files(scale, 1), Budget::DEFAULT);
    let live = Arc::new(LiveSnapshot::new(Arc::new(snapshot(estate))));
    Router::new().route(
        "/least/{name}",
        post(move |Path(name): Path<String>, body: Bytes| async move {
            classified(&live, &name, &body).unwrap_or(StatusCode::BAD_REQUEST.into_response())
        }),
    )
}

fn classified(live: &LiveSnapshot, name: &str, body: &[u8]) -> Option<Response> {
    let snapshot = live.snapshot();
    let request = snapshot.index().read(name, body)?;
    let groups = snapshot.index().matches(&snapshot.estate.hierarchy, &request.resolved).ok()?;
    let node = AnsweredNode::received(name, &request);
    let text = live.classified(&node, &groups, Version::V1).ok()?;
    Some(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
