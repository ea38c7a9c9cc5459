//! The stages of the loop, each with what it needs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::activator::Activator;
use super::blame::pages_of;
use super::builder::Builder;
use super::clock::Now;
use super::commit_status::{CommitStatusReporter, StatusQueue};
use super::contact_file::ContactFile;
use super::edit_history::EditHistory;
use super::fetcher::Fetcher;
use super::journal::Journal;
use super::live::LiveSnapshots;
use super::lookup::CommitLookup;
use super::operator::Operator;
use super::other_refs::OtherRefs;
use super::pin_file::PinFile;
use super::pull_requests::{PullRequestChecker, Requests};
use super::recorder::Recorder;
use super::recovery::Recovery;
use super::repacker::Repacker;
use super::settings::{Reporting, Settings};
use super::shared_state::SharedState;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use super::state::ReconcileState;
use super::verifier::Verifier;
use super::write::{WritePlanner, WriterParts};
use crate::forge::ForgePages;
use crate::git::{Remote, Repository};
use crate::telemetry::Metrics;

/// The stages, and what they share.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) live: Arc<LiveSnapshots>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) activator: Arc<Activator>,
    pub(super) fetcher: Arc<Fetcher>,
    pub(super) builder: Arc<Builder>,
    pub(super) edits: Arc<EditHistory>,
    pub(super) other_refs: Arc<OtherRefs>,
    pub(super) repacker: Arc<Repacker>,
    pub(super) planner: Arc<WritePlanner>,
    pub(super) operator: Operator,
    pub(super) lookup: CommitLookup,
    pub(super) forge: Option<ForgeStages>,
}

/// The stages that post commit statuses to a forge.
#[derive(Clone, Debug)]
pub(super) struct ForgeStages {
    pub(super) statuses: Arc<StatusQueue>,
    pub(super) reporter: Arc<CommitStatusReporter>,
    pub(super) pull_requests: Arc<PullRequestChecker>,
}

/// What nearly all stages share.
struct Shared {
    source: Arc<Source>,
    state: Arc<SharedState>,
    live: Arc<LiveSnapshots>,
    recorder: Arc<Recorder>,
    verifier: Arc<Verifier>,
    store: Arc<SnapshotStore>,
    activator: Arc<Activator>,
    metrics: Arc<Metrics>,
}

impl Stages {
    /// Composes the stages.
    pub(super) fn compose(
        settings: Settings,
        journal: Journal,
        metrics: Arc<Metrics>,
        now: Now,
    ) -> Self {
        let Settings { target, address, branch, path, transport, .. } = settings;
        let source = Arc::new(Source::new(target, address, branch, path.clone(), transport));
        let state = ReconcileState::new(settings.policy, source.kind(), now);
        let state = Arc::new(SharedState::new(state));
        let live = Arc::new(LiveSnapshots::default());
        let forge = settings.reporting.map(|it| (Arc::new(it), Arc::<StatusQueue>::default()));
        let limit = settings.policy.max_staleness;
        let contact = settings.data.as_deref().map(|it| ContactFile::new(it, limit));
        let recorder = Arc::new(Recorder::new(
            journal,
            Arc::clone(&state),
            Arc::clone(&source),
            forge.as_ref().map(|(_, statuses)| Arc::clone(statuses)),
            contact,
            settings.data.as_deref().map(PinFile::new),
        ));
        let verifier = Arc::new(Verifier::new(
            settings.verification,
            Arc::clone(&recorder),
            Arc::clone(&live),
            Arc::clone(&state),
        ));
        let store = SnapshotStore::new(
            path,
            settings.budget,
            settings.snapshot_cache,
            Arc::clone(&live),
            Arc::clone(&state),
        );
        let activator = Activator::new(
            Arc::clone(&source),
            Arc::clone(&state),
            Arc::clone(&recorder),
            Arc::clone(&verifier),
            Arc::clone(&live),
            Arc::clone(&metrics),
        );
        let shared = Shared {
            source,
            state,
            live,
            recorder,
            verifier,
            store: Arc::new(store),
            activator: Arc::new(activator),
            metrics,
        };
        let forge = forge.map(|(reporting, statuses)| shared.forge(&reporting, statuses));
        let data = settings.data.as_deref();
        shared.into_stages(settings.interval, data, forge)
    }

    /// Returns what recovers the state of before a restart.
    pub(super) fn recovery(&self) -> Recovery<'_> {
        Recovery {
            source: &self.source,
            state: &self.state,
            recorder: &self.recorder,
            verifier: &self.verifier,
            store: &self.store,
            activator: &self.activator,
            fetcher: &self.fetcher,
        }
    }

    /// Returns what a writer needs.
    pub(super) fn writer_parts(&self) -> WriterParts {
        WriterParts {
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            recorder: Arc::clone(&self.recorder),
            fetcher: Arc::clone(&self.fetcher),
            verifier: Arc::clone(&self.verifier),
            store: Arc::clone(&self.store),
            planner: Arc::clone(&self.planner),
            activator: Arc::clone(&self.activator),
            edits: Arc::clone(&self.edits),
        }
    }
}

impl Stages {
    /// Returns the pages of the repository on its forge: of the one that is configured, or else of where the
    /// repository comes from.
    pub(super) fn pages(&self, repository: &Repository) -> Option<ForgePages> {
        if let Some(forge) = &self.forge {
            return Some(ForgePages::of_forge(&forge.reporter.reporting.forge));
        }
        let remote = Remote::parse(self.source.address()).ok();
        let pages = remote.as_ref().and_then(pages_of);
        pages.or_else(|| pages_of(&repository.origin()?))
    }
}

impl Shared {
    fn forge(&self, reporting: &Arc<Reporting>, statuses: Arc<StatusQueue>) -> ForgeStages {
        let reporter = CommitStatusReporter {
            reporting: Arc::clone(reporting),
            queue: Arc::clone(&statuses),
            source: Arc::clone(&self.source),
            store: Arc::clone(&self.store),
            recorder: Arc::clone(&self.recorder),
            metrics: Arc::clone(&self.metrics),
        };
        let pull_requests = PullRequestChecker {
            reporting: Arc::clone(reporting),
            source: Arc::clone(&self.source),
            store: Arc::clone(&self.store),
            recorder: Arc::clone(&self.recorder),
            statuses: Arc::clone(&statuses),
            metrics: Arc::clone(&self.metrics),
            requests: Requests::default(),
        };
        ForgeStages {
            statuses,
            reporter: Arc::new(reporter),
            pull_requests: Arc::new(pull_requests),
        }
    }

    fn fetcher(
        &self,
        interval: Duration,
        other_refs: &Arc<OtherRefs>,
        forge: Option<&ForgeStages>,
    ) -> Fetcher {
        Fetcher {
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            recorder: Arc::clone(&self.recorder),
            verifier: Arc::clone(&self.verifier),
            metrics: Arc::clone(&self.metrics),
            other_refs: Arc::clone(other_refs),
            pull_requests: forge.map(|it| Arc::clone(&it.pull_requests)),
            interval,
            remote_lock: Mutex::default(),
            ancestry: Mutex::default(),
        }
    }

    fn builder(&self) -> Builder {
        Builder {
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            recorder: Arc::clone(&self.recorder),
            verifier: Arc::clone(&self.verifier),
            store: Arc::clone(&self.store),
            activator: Arc::clone(&self.activator),
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn edits(&self, data: Option<&Path>) -> EditHistory {
        let (source, state) = (Arc::clone(&self.source), Arc::clone(&self.state));
        EditHistory::new(source, state, Arc::clone(&self.store), data)
    }

    fn operator(&self) -> Operator {
        Operator {
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            recorder: Arc::clone(&self.recorder),
            verifier: Arc::clone(&self.verifier),
            store: Arc::clone(&self.store),
            activator: Arc::clone(&self.activator),
        }
    }

    fn lookup(&self) -> CommitLookup {
        CommitLookup {
            history: Mutex::default(),
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            recorder: Arc::clone(&self.recorder),
            verifier: Arc::clone(&self.verifier),
            store: Arc::clone(&self.store),
            live: Arc::clone(&self.live),
        }
    }

    fn into_stages(
        self,
        interval: Duration,
        data: Option<&Path>,
        forge: Option<ForgeStages>,
    ) -> Stages {
        let other_refs = Arc::new(OtherRefs {
            source: Arc::clone(&self.source),
            state: Arc::clone(&self.state),
            pull_requests: forge.as_ref().map(|it| Arc::clone(&it.pull_requests)),
        });
        let edits = Arc::new(self.edits(data));
        let repacker =
            Repacker { source: Arc::clone(&self.source), state: Arc::clone(&self.state) };
        let planner = WritePlanner {
            source: Arc::clone(&self.source),
            store: Arc::clone(&self.store),
            edits: Arc::clone(&edits),
        };
        Stages {
            fetcher: Arc::new(self.fetcher(interval, &other_refs, forge.as_ref())),
            builder: Arc::new(self.builder()),
            edits,
            other_refs,
            repacker: Arc::new(repacker),
            planner: Arc::new(planner),
            operator: self.operator(),
            lookup: self.lookup(),
            forge,
            source: self.source,
            state: self.state,
            live: self.live,
            recorder: self.recorder,
            verifier: self.verifier,
            store: self.store,
            activator: self.activator,
        }
    }
}
