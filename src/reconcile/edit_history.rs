//! When and how often groups were edited, found out from the commits behind the live one.
//!
//! A thread of its own walks back along first parents to a commit whose history is known, and forward
//! again: of each commit only the files are read that differ from its parent. The result is kept in the
//! data directory. No request waits for it: an answer says so where the history is not known yet. The
//! writer alone knows more: a commit that it made is one step from one that is known.
#![expect(clippy::disallowed_methods, reason = "the thread reads the clock")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashSet;
use indexmap::IndexMap;
use parking_lot::Mutex;

use super::document_counts::{DocumentCounts, FileDocuments};
use super::edit_file::EditFile;
use super::shared_state::SharedState;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use super::state::ReconcileState;
use super::tree_files::TreeFile;
use crate::git::{FilesError, Repository, TreeEntry};
use crate::history::History;
use crate::model::{BudgetItem, CommitId, GroupId, Meter};
use crate::priority;
use crate::validation::{FileKind, FileReading, Layout};

/// How many commits are walked back. Where neither the first commit nor a known one is among them,
/// it is not known how often older groups were edited.
const LONGEST: usize = 10_000;

/// How many histories of commits that were written just now are kept.
const RECENT: usize = 8;

/// How often at most the history is written to the data directory.
const SAVED_EVERY: Duration = Duration::from_secs(30);

/// The longest sleep where nothing happens.
const IDLE: Duration = Duration::from_hours(1);

/// Finds out when groups were edited.
#[derive(Debug)]
pub(super) struct EditHistory {
    source: Arc<Source>,
    state: Arc<SharedState>,
    store: Arc<SnapshotStore>,
    /// Where the history is kept; none keeps it in memory.
    file: Option<EditFile>,
    known: Mutex<Histories>,
    /// Held during a walk.
    walking: Mutex<()>,
}

#[derive(Debug, Default)]
struct Histories {
    /// That of the live commit, or of one before it.
    walked: Option<(CommitId, Arc<History>)>,
    /// Those of commits that were written just now, the latest at the end.
    recent: IndexMap<CommitId, Arc<History>>,
}

impl EditHistory {
    /// Keeps the history in a data directory, if there is one.
    pub(super) fn new(
        source: Arc<Source>,
        state: Arc<SharedState>,
        store: Arc<SnapshotStore>,
        data: Option<&Path>,
    ) -> Self {
        let file = data.map(EditFile::new);
        let (known, walking) = (Mutex::default(), Mutex::default());
        Self { source, state, store, file, known, walking }
    }

    /// Returns the history up to a commit, if it is known.
    pub(super) fn of(&self, commit: CommitId) -> Option<Arc<History>> {
        let known = self.known.lock();
        let walked = known.walked.as_ref().filter(|it| it.0 == commit).map(|it| &it.1);
        walked.or_else(|| known.recent.get(&commit)).cloned()
    }

    fn keep_recent(&self, commit: CommitId, history: Arc<History>) {
        let mut known = self.known.lock();
        known.recent.shift_remove(&commit);
        known.recent.insert(commit, history);
        if known.recent.len() > RECENT {
            known.recent.shift_remove_index(0);
        }
    }

    /// Returns the history up to a commit that follows another, if that of the other is known.
    pub(super) fn after(
        &self,
        repository: &Repository,
        before: CommitId,
        commit: CommitId,
    ) -> Option<Arc<History>> {
        if let Some(known) = self.of(commit) {
            return Some(known);
        }
        let mut walk = Walk::from(self, repository, before, self.of(before)?);
        walk.step(commit).ok()?;
        let history = walk.history;
        self.keep_recent(commit, Arc::clone(&history));
        Some(history)
    }

    /// Returns the history up to a commit, having walked there if need be. Blocking.
    pub(super) fn up_to(&self, repository: &Repository, commit: CommitId) -> Option<Arc<History>> {
        if let Some(known) = self.of(commit) {
            return Some(known);
        }
        let _one_at_a_time = self.walking.lock();
        if let Some(known) = self.of(commit) {
            return Some(known);
        }
        let walked = self.walk(repository, commit);
        if let Err(error) = &walked {
            tracing::warn!(%commit, %error, "the history of the groups cannot be read");
        }
        let (reached, history) = walked.ok()?;
        self.known.lock().walked = reached.map(|it| (it, Arc::clone(&history)));
        Some(history).filter(|_| reached == Some(commit))
    }

    /// Walks to a commit from the nearest one that is known; returns how far it came before the
    /// daemon was told to stop.
    fn walk(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<(Option<CommitId>, Arc<History>), FilesError> {
        let mut chain = Vec::new();
        let mut known = None;
        let mut next = Some(commit);
        let mut reaches_start = true;
        while let Some(id) = next {
            known = self.of(id).map(|history| (id, history));
            if known.is_some() {
                break;
            }
            if chain.len() == LONGEST {
                reaches_start = false;
                break;
            }
            // Objects that are not here are those of a history that was cut.
            let Ok(parent) = repository.first_parent(id) else {
                reaches_start = false;
                break;
            };
            chain.push(id);
            next = parent;
            reaches_start = next.is_some() || !repository.is_cut_at(id);
        }
        let mut walk = match known {
            Some((id, history)) => Walk::from(self, repository, id, history),
            None => Walk::begin(self, repository, reaches_start),
        };
        for id in chain.into_iter().rev() {
            if self.state.lock().stopping {
                break;
            }
            match walk.step(id) {
                // Such as a tree of a million files. It never answers, and what comes after it is
                // compared with what came before it.
                Err(error) if id != commit => {
                    tracing::debug!(commit = %id, %error, "a commit is left out of the history");
                }
                done => done?,
            }
        }
        Ok((walk.at, walk.history))
    }

    /// Keeps up with the live commit until the daemon stops.
    pub(super) fn run(&self) {
        if let Some(saved) = self.file.as_ref().and_then(|it| it.load(self.source.path())) {
            self.known.lock().walked = Some(saved);
        }
        let mut done = None;
        let mut saved: Option<(CommitId, Instant)> = None;
        loop {
            let unsaved = |done: Option<CommitId>| saved.map(|it| it.0) != done;
            let pause =
                saved.map_or(Duration::ZERO, |it| SAVED_EVERY.saturating_sub(it.1.elapsed()));
            let pause = if self.file.is_some() && unsaved(done) { pause } else { IDLE };
            let (active, stopping) = self.wait_for_commit(done, pause);
            if let Some(active) = active.filter(|it| Some(*it) != done && !stopping) {
                if let Ok(repository) = self.source.repository() {
                    self.follow(&repository, active);
                }
                done = Some(active);
                // Writes wait for the first walk, which can be long.
                priority::yield_to_requests();
            }
            let due =
                saved.is_none_or(|it| it.1.elapsed() >= SAVED_EVERY) || self.state.lock().stopping;
            if let Some(file) = self.file.as_ref().filter(|_| due && unsaved(done)) {
                saved = done.map(|it| (it, Instant::now()));
                self.save(file);
            }
            if self.state.lock().stopping {
                return;
            }
        }
    }

    /// Waits until another commit is live than the one whose history is known, the daemon stops, or time
    /// is up; returns the live commit, and whether the daemon stops. Blocking.
    fn wait_for_commit(
        &self,
        known: Option<CommitId>,
        longest: Duration,
    ) -> (Option<CommitId>, bool) {
        let active = |it: &ReconcileState| it.active.as_ref().map(|it| it.commit);
        let idle = |it: &mut ReconcileState| !it.stopping && active(it) == known;
        let state = self.state.wait_while_for(longest, idle);
        (active(&state), state.stopping)
    }

    fn follow(&self, repository: &Repository, commit: CommitId) {
        let began = Instant::now();
        if let Some(history) = self.up_to(repository, commit) {
            // A write of this process may have made it; the walk goes on from it.
            self.known.lock().walked = Some((commit, history));
            let took = began.elapsed();
            tracing::debug!(%commit, ?took, "the history of the groups is known");
        }
    }

    fn save(&self, file: &EditFile) {
        let Some((commit, groups)) = self.known.lock().walked.clone() else { return };
        if let Err(error) = file.save(self.source.path(), commit, groups) {
            tracing::warn!(%error, "the history of the groups cannot be written");
        }
    }
}

/// A walk along first parents, from the oldest commit to the newest.
struct Walk<'w> {
    edits: &'w EditHistory,
    repository: &'w Repository,
    /// The commit before; none at the beginning.
    at: Option<CommitId>,
    layout: Layout,
    history: Arc<History>,
    /// What all files of that commit have, once that was asked for.
    documents: Option<DocumentCounts>,
    /// Whether everything that there is came with a commit that was walked.
    is_whole: bool,
}

impl<'w> Walk<'w> {
    fn begin(edits: &'w EditHistory, repository: &'w Repository, is_whole: bool) -> Self {
        let (layout, history) = (Layout::default(), Arc::default());
        Self { edits, repository, at: None, layout, history, documents: None, is_whole }
    }

    fn from(
        edits: &'w EditHistory,
        repository: &'w Repository,
        at: CommitId,
        history: Arc<History>,
    ) -> Self {
        let mut walk = Self { history, at: Some(at), ..Self::begin(edits, repository, true) };
        walk.layout = edits.source.layout(repository, at).unwrap_or_default();
        walk
    }

    /// Takes the next commit in.
    fn step(&mut self, commit: CommitId) -> Result<(), FilesError> {
        // A commit that is too large never answers, and is left out.
        let meter = Arc::new(Meter::new(self.edits.store.budget()));
        let directory = self.edits.source.path();
        // Such a commit never answers, and says nothing of where groups are.
        let layout = self.edits.source.sound_layout(self.repository, commit)?;
        let layout = layout.unwrap_or_else(|| self.layout.clone());
        let before = self.at.filter(|_| layout == self.layout);
        let changed = self.repository.changed_files(before, commit, directory, &meter)?;
        let groups =
            self.read_each(&changed, &layout, FileKind::Groups, &meter, FileDocuments::of)?;
        // It is kept with the commit: where this one is left out, it is counted again.
        let (removed, documents) = self.removed(before, commit, &layout, &groups)?;
        let is_catalogue = |it: &FileReading| it.is_catalogue();
        let catalogues = if before == self.at {
            self.read_each(&changed, &layout, FileKind::Environment, &meter, is_catalogue)?
        } else {
            // Another layout or policy does not count as an edit of what stays as it was.
            let meter = Arc::new(Meter::new(self.edits.store.budget()));
            let changed = self.repository.changed_files(self.at, commit, directory, &meter)?;
            self.read_each(&changed, &layout, FileKind::Environment, &meter, is_catalogue)?
        };
        let made = self.repository.commit(commit)?.time;
        let is_counted = self.at.is_some() || self.is_whole;
        let history = Arc::make_mut(&mut self.history);
        let made = Some(made).filter(|_| is_counted);
        for group in removed {
            history.take_removal(group, made);
        }
        for document in groups.iter().flat_map(|it| &it.documents) {
            history.take(document, made);
        }
        if catalogues.contains(&true) {
            history.take_catalogue(made);
        }
        self.at = Some(commit);
        self.documents = documents;
        self.layout = layout;
        Ok(())
    }

    /// Returns the groups whose documents a commit does not have any more, given the files that differ from another
    /// commit, or all where there is none to compare with.
    fn removed(
        &mut self,
        before: Option<CommitId>,
        commit: CommitId,
        layout: &Layout,
        new: &[FileDocuments],
    ) -> Result<(Vec<GroupId>, Option<DocumentCounts>), FilesError> {
        let directory = self.edits.source.path();
        let meter = Arc::new(Meter::new(self.edits.store.budget()));
        let old = match before {
            Some(before) => {
                let old = self.repository.changed_files(Some(commit), before, directory, &meter)?;
                Some(self.read_each(&old, layout, FileKind::Groups, &meter, FileDocuments::of)?)
            }
            None => None,
        };
        let known = self.documents.take();
        let Some(old) = old else {
            let all = DocumentCounts::of(new);
            return Ok((self.lacking(&all), Some(all)));
        };
        let known = known.map(|mut all| {
            all.replace(&old, new);
            all
        });
        let kept: HashSet<GroupId> = new.iter().flat_map(FileDocuments::groups).collect();
        let mut went = old.iter().flat_map(FileDocuments::groups);
        if old.iter().all(|it| it.is_whole) && went.all(|it| kept.contains(&it)) {
            return Ok((Vec::new(), known));
        }
        // Another file may have the group, too.
        let Some(all) = known.or_else(|| self.documents_of(commit, layout).ok()) else {
            // The commit is larger than its budget: what differs tells nearly always.
            let went = old.iter().filter(|it| it.is_whole).flat_map(FileDocuments::groups);
            let is_read = new.iter().all(|it| it.is_whole);
            return Ok((went.filter(|it| is_read && !kept.contains(it)).collect(), None));
        };
        Ok((self.lacking(&all), Some(all)))
    }

    /// Counts the documents of all files of a commit.
    fn documents_of(
        &self,
        commit: CommitId,
        layout: &Layout,
    ) -> Result<DocumentCounts, FilesError> {
        let meter = Arc::new(Meter::new(self.edits.store.budget()));
        let directory = self.edits.source.path();
        let all = self.repository.changed_files(None, commit, directory, &meter)?;
        let kind = FileKind::Groups;
        let all = self.read_each(&all, layout, kind, &meter, FileDocuments::of)?;
        Ok(DocumentCounts::of(&all))
    }

    fn lacking(&self, all: &DocumentCounts) -> Vec<GroupId> {
        self.history.present().filter(|it| all.lacks(*it)).collect()
    }

    /// Reads the files of a kind among some, but for those whose reading a snapshot has, and keeps of each what
    /// is needed.
    fn read_each<T>(
        &self,
        files: &[TreeEntry],
        layout: &Layout,
        kind: FileKind,
        meter: &Arc<Meter>,
        keep: impl Fn(&FileReading) -> T,
    ) -> Result<Vec<T>, FilesError> {
        let cache = self.edits.store.readings();
        let files = files.iter().filter_map(|entry| TreeFile::of(entry, layout));
        let files: Vec<TreeFile<'_>> = files.filter(|it| it.kind == kind).collect();
        let known = cache.get(&files);
        let mut kept = Vec::with_capacity(files.len());
        for (file, known) in files.iter().zip(known) {
            if let Some(reading) = known {
                meter.charge_all(&reading.cost().with(BudgetItem::Findings, 0))?;
                kept.push(keep(&reading));
                continue;
            }
            let file = file.source(self.repository, None)?;
            meter.charge(BudgetItem::DocumentBytes, file.size())?;
            kept.push(cache.read(&file, kind, meter, |it| keep(&it))?);
        }
        Ok(kept)
    }
}
