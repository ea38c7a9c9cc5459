//! What a change does to the nodes that have checked in.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Map, Value};

use super::blocking::{Panicked, REPOSITORY, Turns, run_blocking};
use super::error::ApiError;
use super::fleet::{self, Surveyor};
use super::node_lookup::FactsPolicy;
use super::openapi::errors::{PathErrors, StoreErrors, ValidCommitErrors};
use super::types::{Diff, DiffSide};
use crate::impact::{Impact, Side, StateComparison, StateFiles, Survey};
use crate::model::Node;
use crate::reconcile::Controller;
use crate::store::{CheckIns, ScanExtent};

/// Comparisons run one at a time: each reads the facts of the whole fleet.
static COMPARISONS: Turns = Turns::new();

/// What a change does to the nodes that have checked in.
#[utoipa::path(
    get, path = "/controller/diff/{base}/{head}", operation_id = "diff", tag = "Controller",
    params(("base" = String, Path), ("head" = String, Path)),
    responses(
        (status = 200, body = Diff),
        PathErrors,
        ValidCommitErrors,
        StoreErrors,
    ),
)]
pub(super) async fn diff(
    State(controller): State<Arc<Controller>>,
    State(check_ins): State<CheckIns>,
    State(facts): State<FactsPolicy>,
    Path((base, head)): Path<(String, String)>,
) -> Result<Json<Diff>, ApiError> {
    let turn = COMPARISONS.take().await?;
    let permit = REPOSITORY.admit().await?;
    let compare = move || {
        let _permits = (turn, permit);
        compare(&controller, &check_ins, &facts, &base, &head)
    };
    let done = run_blocking(compare).await;
    done.map_err(|Panicked| ApiError::internal("The commits could not be compared."))?.map(Json)
}

fn compare(
    controller: &Controller,
    check_ins: &CheckIns,
    facts: &FactsPolicy,
    base: &str,
    head: &str,
) -> Result<Diff, ApiError> {
    let old = controller.snapshot_to_compare(base)?;
    let new = controller.snapshot_to_compare(head)?;
    // A snapshot does not keep where the values of nodes are written.
    let unknown = BTreeMap::new();
    let before = Side { estate: &old.estate, origins: &old.origins, node_origins: &unknown };
    let after = Side { estate: &new.estate, origins: &new.origins, node_origins: &unknown };
    let indexes = [&old, &new].map(|it| it.index().clone());
    let comparison = StateComparison::with_indexes(before, after, indexes);
    let paths = old.mentioned().union(new.mentioned());
    let paths = paths.with_mixtures([before.estate, after.estate]);
    let examine = |node: Node| (node.name.clone(), comparison.node(&node));
    let surveyor = Surveyor { examine: &examine, paths: &paths, facts };
    let mut survey = Survey::default();
    let unreadable = surveyor.survey(
        |each| fleet::read(check_ins, &paths, ScanExtent::All, each),
        &mut |compared| {
            survey.extend([compared]);
        },
    )?;
    let (groups, node_files) = (comparison.groups(), comparison.node_files());
    let mut impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey);
    let text = |commit, path: &str| controller.text(commit, path).map(String::into_bytes);
    impact.locate(
        &StateFiles { side: before, read: &|path| text(old.commit, path) },
        &StateFiles { side: after, read: &|path| text(new.commit, path) },
    );
    let side =
        |revision: &str, commit| DiffSide { revision: revision.to_owned(), commit: Some(commit) };
    let impact = match impact.to_value() {
        Value::Object(impact) => impact,
        _ => Map::new(),
    };
    Ok(Diff { base: side(base, old.commit), head: side(head, new.commit), impact, unreadable })
}
