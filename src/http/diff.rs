//! What a change does to the nodes that have checked in.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::blocking::{Panicked, REPOSITORY, Turns, run_blocking};
use super::client_presence::{ClientPresence, ClientWatch};
use super::compute::LISTS;
use super::error::ApiError;
use super::fleet::{self, Surveyor};
use super::json_list::CHUNK;
use super::node_lookup::FactsPolicy;
use super::openapi::errors::{ComparisonErrors, PathErrors, StoreErrors, ValidCommitErrors};
use super::path_parameter::PathParameters;
use super::privacy::PrivacyPolicy;
use super::streamed::{self, Chunk};
use super::types::{Diff, DiffSide};
use crate::impact::{Impact, Side, StateComparison, StateFiles, Survey, SurveyTooLarge};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::reconcile::Controller;
use crate::store::{CheckIns, ScanExtent};

/// Comparisons run one at a time: each reads the facts of the whole fleet.
static COMPARISONS: Turns = Turns::new();

/// About how many bytes of memory the differences of the nodes may take.
const LARGEST: usize = 64 << 20;

/// The KiB of what was compared that may be kept while clients read it.
static KEPT: Semaphore = Semaphore::const_new(LARGEST >> 10);

/// How long what was compared waits for that.
const WAIT: Duration = Duration::from_secs(30);

/// What a change does to the nodes that have checked in.
#[utoipa::path(
    get, path = "/controller/diff/{base}/{head}", operation_id = "diff", tag = "Controller",
    params(("base" = String, Path), ("head" = String, Path)),
    responses(
        (status = 200, body = Diff),
        PathErrors,
        ValidCommitErrors,
        ComparisonErrors,
        StoreErrors,
    ),
)]
pub(super) async fn diff(
    State(controller): State<Arc<Controller>>,
    State(check_ins): State<CheckIns>,
    State(facts): State<FactsPolicy>,
    State(privacy): State<PrivacyPolicy>,
    PathParameters([base, head]): PathParameters<2>,
) -> Result<Response, ApiError> {
    let turn = COMPARISONS.take().await?;
    let permit = REPOSITORY.admit().await?;
    let presence = ClientPresence::default();
    let watch = presence.watch();
    let compare = move || {
        let _permits = (&turn, permit);
        let compared =
            FleetComparison { controller, check_ins, facts, privacy, watch }.of(&base, &head)?;
        let size = compared.size;
        let mut text = DiffText { compared, progress: Progress::Start, room: None };
        let first = text.next_chunk();
        Ok::<_, ApiError>((turn, size, text, first))
    };
    let done = run_blocking(compare).await;
    let (turn, size, mut text, first) =
        done.map_err(|Panicked| ApiError::internal("The commits could not be compared."))??;
    if let Chunk::More(_) = first {
        text.room = Some(room_for(size).await?);
    }
    drop(turn);
    let next = move || Ok::<_, Infallible>(text.next_chunk());
    Ok(streamed::follow(&LISTS, first, next))
}

/// Waits until what is compared may be kept while its client reads it. Others compare meanwhile.
async fn room_for(size: usize) -> Result<SemaphorePermit<'static>, ApiError> {
    let kibibytes = u32::try_from(size.min(LARGEST) >> 10).unwrap_or(u32::MAX).max(1);
    let waited = tokio::time::timeout(WAIT, KEPT.acquire_many(kibibytes)).await;
    waited.ok().and_then(Result::ok).ok_or_else(ApiError::busy)
}

/// What a comparison needs of the daemon.
struct FleetComparison {
    controller: Arc<Controller>,
    check_ins: CheckIns,
    facts: FactsPolicy,
    privacy: PrivacyPolicy,
    watch: ClientWatch,
}

/// What was compared, and what came of it.
struct Compared {
    sides: [DiffSide; 2],
    impact: Impact,
    unreadable: Vec<String>,
    /// About how many bytes of memory it takes.
    size: usize,
}

impl FleetComparison {
    fn of(&self, base: &str, head: &str) -> Result<Compared, ApiError> {
        let old = self.controller.snapshot_to_compare(base)?;
        let new = self.controller.snapshot_to_compare(head)?;
        let [before, after] = [&old, &new].map(|it| Side {
            estate: &it.estate,
            origins: &it.origins,
            node_origins: &it.node_origins,
        });
        let indexes = [&old, &new].map(|it| it.index().clone());
        let comparison =
            StateComparison::with_indexes(before, after, indexes).stopped_by(self.watch.flag());
        let comparison = comparison.masked_by(self.privacy.masks().clone());
        let paths = old.mentioned().union(new.mentioned());
        let paths = paths.with_mixtures([before.estate, after.estate]);
        let (survey, unreadable) = self.survey(&comparison, &paths)?;
        let size = survey.size();
        let (groups, node_files) = (comparison.groups(), comparison.node_files());
        let mut impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey)?;
        let text = |commit, path: &str| self.controller.text(commit, path).map(String::into_bytes);
        impact.locate(
            &StateFiles { side: before, read: &|path| text(old.commit, path) },
            &StateFiles { side: after, read: &|path| text(new.commit, path) },
        );
        let side = |revision: &str, commit| DiffSide {
            revision: revision.to_owned(),
            commit: Some(commit),
        };
        let sides = [side(base, old.commit), side(head, new.commit)];
        Ok(Compared { sides, impact, unreadable, size })
    }

    /// Compares the nodes, until they are all compared, the client has left, or what was found is too much.
    fn survey(
        &self,
        comparison: &StateComparison<'_>,
        paths: &MentionedPaths,
    ) -> Result<(Survey, Vec<String>), ApiError> {
        let is_full = AtomicBool::new(false);
        let examine = |node: Node| {
            let is_over = comparison.size() > LARGEST || is_full.load(Ordering::Relaxed);
            (!is_over).then(|| (node.name.clone(), comparison.node(&node)))
        };
        let watch = &self.watch;
        let surveyor = Surveyor { examine: &examine, paths, facts: &self.facts, watch };
        let mut survey = Survey::within(LARGEST);
        let unreadable = surveyor.survey(
            |each| fleet::read(&self.check_ins, paths, ScanExtent::All, each),
            &mut |compared| {
                survey.extend(compared);
                is_full.store(survey.is_full(), Ordering::Relaxed);
            },
        )?;
        if comparison.size() > LARGEST {
            return Err(SurveyTooLarge::beyond(LARGEST).into());
        }
        Ok((survey, unreadable))
    }
}

/// The text of a comparison, written while it is sent.
struct DiffText {
    compared: Compared,
    progress: Progress,
    /// What it is kept in, if it is sent in more than one piece.
    room: Option<SemaphorePermit<'static>>,
}

/// What of the text is written next.
enum Progress {
    Start,
    Entry(usize),
}

impl DiffText {
    /// Writes the next chunk.
    fn next_chunk(&mut self) -> Chunk {
        let Compared { sides: [base, head], impact, unreadable, .. } = &self.compared;
        let mut text = Vec::new();
        let mut next = match self.progress {
            Progress::Start => {
                let fields = [
                    ("{\"base\":", json!(base)),
                    (",\"head\":", json!(head)),
                    (",\"summary\":", impact.summary()),
                    (",\"groups\":", impact.groups_to_value()),
                    (",\"node_files\":", impact.node_files_to_value()),
                ];
                for (name, value) in fields {
                    text.extend_from_slice(name.as_bytes());
                    text.extend_from_slice(value.to_string().as_bytes());
                }
                text.extend_from_slice(b",\"changes\":[");
                0
            }
            Progress::Entry(next) => next,
        };
        while text.len() < CHUNK {
            let Some(entry) = impact.entries.get(next) else {
                text.extend_from_slice(b"],\"unreadable\":");
                text.extend_from_slice(json!(unreadable).to_string().as_bytes());
                text.push(b'}');
                return Chunk::Last(text);
            };
            if next > 0 {
                text.push(b',');
            }
            // An entry is always written, and a vector takes all.
            serde_json::to_writer(&mut text, &impact.written_entry(entry)).ok();
            next += 1;
        }
        self.progress = Progress::Entry(next);
        Chunk::More(text)
    }
}
