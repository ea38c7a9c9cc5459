//! What a change does to the nodes that have checked in.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use rayon::prelude::*;
use serde_json::{Map, Value};

use super::blocking::{Panicked, REPOSITORY, Turns, run_blocking};
use super::check_ins::complete;
use super::error::ApiError;
use super::node_lookup::FactsPolicy;
use super::openapi::errors::{StoreErrors, ValidCommitErrors};
use super::server::MemoryReservation;
use super::types::{Diff, DiffSide};
use crate::impact::{Impact, Side, StateComparison, StateFiles, Survey};
use crate::model::Node;
use crate::reconcile::Controller;
use crate::store::{CheckIn, CheckIns};

/// How many nodes are compared together at most.
const BATCH: usize = 512;

/// How many bytes their facts take together; one node may take more.
const BATCH_BYTES: usize = 8 << 20;

/// What one value takes beside its text, in bytes.
const VALUE: usize = 300;

/// Comparisons run one at a time: each reads the facts of the whole fleet.
static COMPARISONS: Turns = Turns::new();

/// What a change does to the nodes that have checked in.
#[utoipa::path(
    get, path = "/controller/diff/{base}/{head}", operation_id = "diff", tag = "Controller",
    params(("base" = String, Path), ("head" = String, Path)),
    responses(
        (status = 200, body = Diff),
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
    let comparison = StateComparison::new(before, after);
    let (survey, unreadable) = survey(check_ins, facts, &comparison)?;
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

/// Compares every node that has checked in; returns as well why some could not be compared.
fn survey(
    check_ins: &CheckIns,
    facts: &FactsPolicy,
    comparison: &StateComparison<'_>,
) -> Result<(Survey, Vec<String>), ApiError> {
    let mut batches = Batches::new(comparison);
    let (mut unreadable, mut bare) = (Vec::new(), Vec::new());
    check_ins.for_each(&MemoryReservation::for_lists(), |listed| {
        match complete(check_ins, listed) {
            Ok(CheckIn { node, .. }) if node.fact.is_empty() => bare.push(node),
            Ok(CheckIn { node, .. }) => batches.add(node),
            Err(error) => unreadable.push(error.to_string()),
        }
    })?;
    for node in bare {
        let name = node.name.clone();
        match facts.complete(node)? {
            Some(node) => batches.add(node),
            None => unreadable.push(format!(
                "`{name}` has checked in without facts, which `--enc-facts required` demands"
            )),
        }
    }
    Ok((batches.finish(), unreadable))
}

/// Compares nodes in batches: only one batch of them is in memory.
struct Batches<'a> {
    comparison: &'a StateComparison<'a>,
    nodes: Vec<Node>,
    /// About how many bytes the facts of the nodes take.
    bytes: usize,
    survey: Survey,
}

impl<'a> Batches<'a> {
    fn new(comparison: &'a StateComparison<'a>) -> Self {
        Self { comparison, nodes: Vec::with_capacity(BATCH), bytes: 0, survey: Survey::default() }
    }

    fn add(&mut self, node: Node) {
        let values = node.fact.values().chain(node.trusted.values());
        self.bytes += values.map(bytes_of).sum::<usize>();
        self.nodes.push(node);
        if self.nodes.len() == BATCH || self.bytes > BATCH_BYTES {
            self.compare();
        }
    }

    fn compare(&mut self) {
        let compare = |node: Node| (node.name.clone(), self.comparison.node(&node));
        let compared: Vec<_> = self.nodes.par_drain(..).map(compare).collect();
        self.survey.extend(compared);
        self.bytes = 0;
    }

    fn finish(mut self) -> Survey {
        self.compare();
        self.survey
    }
}

/// Returns about how many bytes a value takes.
fn bytes_of(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(bytes_of).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| key.len() + bytes_of(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
