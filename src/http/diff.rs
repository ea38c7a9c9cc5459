//! What a change does to the nodes that have checked in.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::answer::lookup;
use super::error::ApiError;
use super::router::App;
use crate::impact::{Comparison, Impact, Side, Survey};
use crate::model::Node;

/// How many nodes are compared together.
const BATCH: usize = 512;

/// Compares what the nodes get at two revisions.
pub(super) async fn diff(
    State(app): State<Arc<App>>,
    Path((base, head)): Path<(String, String)>,
) -> Result<Json<Value>, ApiError> {
    let permit = lookup().await?;
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        compare(&app, &base, &head)
    });
    let done = done.await;
    done.map_err(|_| ApiError::internal("The commits could not be compared."))?.map(Json)
}

fn compare(app: &App, base: &str, head: &str) -> Result<Value, ApiError> {
    let old = app.controller.snapshot_to_compare(base)?;
    let new = app.controller.snapshot_to_compare(head)?;
    // A snapshot does not keep where the values of nodes are written.
    let unknown = BTreeMap::new();
    let comparison = Comparison::new(
        Side { estate: &old.estate, origins: &old.origins, node_origins: &unknown },
        Side { estate: &new.estate, origins: &new.origins, node_origins: &unknown },
    );
    let mut batch: Vec<Node> = Vec::with_capacity(BATCH);
    let mut survey = Survey::default();
    let mut flush = |batch: &mut Vec<Node>| {
        let compare = |node: Node| (node.name.clone(), comparison.node(&node));
        survey.extend(batch.par_drain(..).map(compare).collect::<Vec<_>>());
    };
    app.check_ins.for_each(|check_in| {
        batch.push(check_in.node);
        if batch.len() == BATCH {
            flush(&mut batch);
        }
    })?;
    flush(&mut batch);
    let (groups, node_files) = (comparison.groups(), comparison.node_files());
    let impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey);
    let mut value = json!({
        "base": {"revision": base, "commit": old.commit},
        "head": {"revision": head, "commit": new.commit},
    });
    if let (Value::Object(all), Value::Object(impact)) = (&mut value, impact.to_value()) {
        all.extend(impact);
        all.insert("unreadable".to_owned(), json!([]));
    }
    Ok(value)
}
