//! The commits of a repository, as a walk sees them.

use std::collections::HashSet;
use std::sync::Arc;

use super::cache::{BlameCache, Step, WalkNumber};
use super::memo::ConcernMemo;
use super::node_files::{NodeFiles, is_plain};
use crate::answer::Answer;
use crate::blame::{BlamedBranch, ConcernedNodes, Inputs, KnownOrigins, Older, Origin, paths_of};
use crate::classification::references_of_estate;
use crate::git::{FilesError, ReadError, Repository, TreeComparer};
use crate::model::{Budget, CommitId, Meter, Node, Path};
use crate::reconcile::build::{Build, CheckedFiles};
use crate::reconcile::build_queue::{BuildQueue, Priority};
use crate::reconcile::outcome::BuildError;
use crate::reconcile::reading_cache::ReadingCache;
use crate::reconcile::tree_files::{TreeFile, is_settings, source_file};
use crate::validation::{Checked, FileReading, Layout};

/// How many commits are walked back; before the last of them nothing is known.
const LONGEST: usize = 100_000;

/// How many files of a change are read to find out whether they concern a node; one with more is taken for
/// one that does.
const CHANGES: usize = 1_000;

/// How many files may differ for what a node gets at a commit to be found out from what it gets at another.
const DIFFERENCES: usize = 10_000;

/// What a walk uses.
#[derive(Clone, Copy)]
pub(super) struct WalkContext<'b> {
    pub(super) repository: &'b Repository,
    /// The directory of the groups.
    pub(super) directory: &'b str,
    /// What each commit may cost.
    pub(super) budget: Budget,
    /// Whether the walk shall go on; asked before each commit.
    pub(super) is_wanted: &'b (dyn Fn() -> bool + Sync),
    /// Where the reading of each commit waits for its turn.
    pub(super) queue: Option<&'b BuildQueue>,
    /// The files that have been read.
    pub(super) readings: Option<&'b ReadingCache>,
}

impl std::fmt::Debug for WalkContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WalkContext").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The commits of a repository, as a walk sees them.
pub(super) struct Commits<'b> {
    context: &'b WalkContext<'b>,
    node: &'b Node,
    cache: &'b BlameCache,
    comparer: TreeComparer<'b>,
    /// The files of this walk, where there is no cache of more.
    own_readings: ReadingCache,
    walk: WalkNumber,
    /// The commit that was read last, and what it says: the next one shares most of it.
    last: Option<(CommitId, Arc<Checked>)>,
    /// What decides the answer at the last commit whose answer was found by it.
    node_files: Option<NodeFiles>,
    /// Whether commits are read as a whole.
    reads_all: bool,
    /// The layout of the last commit whose answer was asked for.
    layout: Arc<Layout>,
    /// The nodes that the files of this walk can concern.
    concerned: ConcernMemo,
    /// The paths that rules and values of the commits so far mention.
    paths: HashSet<Path>,
    /// Whether the rules of the commit that comes next are among them, since those of the files that differ are.
    are_noted: bool,
    walked: usize,
}

impl<'b> Commits<'b> {
    pub(super) fn new(context: &'b WalkContext<'b>, node: &'b Node, cache: &'b BlameCache) -> Self {
        Self {
            context,
            node,
            cache,
            comparer: TreeComparer::new(context.repository),
            own_readings: ReadingCache::default(),
            walk: cache.begin_walk(),
            last: None,
            node_files: None,
            reads_all: false,
            layout: Arc::default(),
            concerned: ConcernMemo::default(),
            paths: HashSet::new(),
            are_noted: false,
            walked: 0,
        }
    }

    /// Reads the commit that the walk begins with.
    pub(super) fn begin(
        &mut self,
        head: CommitId,
        built: Option<&(CommitId, Arc<Checked>)>,
    ) -> Result<Arc<Checked>, BuildError> {
        self.last = built.cloned();
        let checked = match built {
            Some((commit, checked)) if *commit == head => Arc::clone(checked),
            _ => self.files(head)?,
        };
        self.enter(&checked);
        Ok(checked)
    }

    /// Returns what a commit says, valid or not.
    pub(super) fn checked(&mut self, commit: CommitId) -> Result<Arc<Checked>, BuildError> {
        let checked = self.files(commit)?;
        self.enter(&checked);
        Ok(checked)
    }

    /// Keeps the origins of values that the node gets at a commit for later walks.
    pub(super) fn keep(&self, commit: CommitId, mut found: KnownOrigins) {
        // Older commits may arrive, so what is a boundary now need not stay one.
        found.retain(|_, origin| matches!(origin, Origin::Commit(_)));
        if !found.is_empty() {
            let inputs = Inputs::of(&self.paths, self.node);
            self.cache.keep_origins(commit, self.node, inputs, found);
        }
    }

    /// Notes the layout, and the paths that rules and values mention, of a valid commit: what comes before it is compared with it.
    fn enter(&mut self, checked: &Checked) {
        let Some(estate) = &checked.estate else { return };
        if *self.layout != *checked.layout() {
            self.layout = Arc::new(checked.layout().clone());
        }
        references_of_estate(estate, &mut |it| note(&mut self.paths, &it.decisive()));
        if self.are_noted {
            return;
        }
        for rule in estate.hierarchy.groups().filter_map(|it| it.rule.as_deref()) {
            paths_of(rule, &mut |path| note(&mut self.paths, path));
        }
    }

    fn readings(&self) -> &ReadingCache {
        self.context.readings.unwrap_or(&self.own_readings)
    }

    /// Reads and checks the files of a commit, from what was read last where they have much in common.
    fn files(&mut self, commit: CommitId) -> Result<Arc<Checked>, BuildError> {
        let WalkContext { repository, directory, budget, is_wanted, queue, .. } = *self.context;
        let _slot = queue.map(|it| it.take(Priority::Reads).ok_or(BuildError::Busy)).transpose()?;
        let cache = self.readings();
        let build = Build { repository, commit, directory, cache, budget, is_wanted };
        let base = self.last.as_ref().map(|(id, checked)| (*id, &**checked));
        let CheckedFiles { checked, .. } = build.files(base)?;
        let is_valid = checked.estate.is_some();
        self.cache.keep_validity(commit, is_valid);
        if is_valid {
            self.last = Some((commit, Arc::clone(&checked)));
        }
        Ok(checked)
    }

    /// Takes what decides the answer at the last commit where that was found out, else at the commit that was read last.
    fn take_node_files(&mut self) -> Option<NodeFiles> {
        if self.reads_all || self.node_files.is_some() {
            return self.node_files.take();
        }
        let (commit, checked) = self.last.as_ref()?;
        let found = NodeFiles::of(*commit, checked, self.node);
        self.reads_all = found.is_none() && checked.estate.is_some();
        found
    }

    /// Returns what the node gets at a valid commit, from what decided it at the last one and what differs since;
    /// `None` if all files must be read.
    fn answer_of_files(&mut self, commit: CommitId) -> Result<Option<Answer>, BuildError> {
        let Some(mut node_files) = self.take_node_files() else { return Ok(None) };
        let WalkContext { repository, directory, budget, .. } = *self.context;
        let changes =
            repository.changes_between(node_files.commit, commit, directory, DIFFERENCES, &budget);
        // Reading all files reports what is wrong.
        let Ok(Some(changes)) = changes else { return Ok(None) };
        let meter = Arc::new(Meter::new(budget));
        let mut paths =
            changes.written.iter().map(|it| &it.path).chain(&changes.removed).map(String::as_str);
        if paths.any(|it| is_settings(it) || !is_plain(it)) {
            return Ok(None);
        }
        for path in &changes.removed {
            node_files.remove(path);
        }
        let layout = Arc::clone(node_files.layout());
        for entry in &changes.written {
            node_files.remove(&entry.path);
            let Some(file) = TreeFile::of(entry, &layout) else { continue };
            let passed = file.key().and_then(|key| self.concerned.get(&key));
            if let Some(nodes) = passed.filter(|it| !it.contains(self.node)) {
                nodes.paths(&mut |path| note(&mut self.paths, path));
                continue;
            }
            let read = self.reading(&file, &meter);
            let read = read.map_err(|source| BuildError::Unreadable { commit, source })?;
            let Some(reading) = read else { return Ok(None) };
            for rule in reading.groups().iter().filter_map(|it| it.group()?.rule.as_deref()) {
                paths_of(rule, &mut |path| note(&mut self.paths, path));
            }
            node_files.put(reading, self.node);
        }
        let answer = node_files.answer(self.node, &mut |path| note(&mut self.paths, path));
        node_files.commit = commit;
        self.node_files = Some(node_files);
        Ok(answer)
    }

    /// Returns the reading of a file; `None` if it costs too much.
    fn reading(
        &self,
        file: &TreeFile<'_>,
        meter: &Arc<Meter>,
    ) -> Result<Option<Arc<FileReading>>, ReadError> {
        let cache = self.readings();
        let known = cache.get(std::slice::from_ref(file)).pop().flatten();
        if known.is_some() {
            return Ok(known);
        }
        let source = source_file(self.context.repository, file.entry)?;
        let read = cache.read(&source, file.kind, meter, Arc::new);
        Ok(read.ok())
    }

    /// Returns the nodes that what is between two commits can concern, and about how many bytes they take
    /// beside what is known already.
    fn concerned_between(
        &mut self,
        parent: CommitId,
        commit: CommitId,
    ) -> Result<(Vec<Arc<ConcernedNodes>>, usize), BuildError> {
        let WalkContext { directory, budget, .. } = *self.context;
        let meter = Arc::new(Meter::new(budget));
        let all = || Ok((vec![Arc::new(ConcernedNodes::All)], 0));
        let entries = match self.comparer.differing_files([parent, commit], directory, &meter) {
            Ok(entries) => entries,
            Err(
                FilesError::TooLarge(_) | FilesError::NoDirectory(_) | FilesError::Misplaced(_),
            ) => return all(),
            Err(FilesError::Unreadable(source)) => {
                return Err(BuildError::Unreadable { commit, source });
            }
        };
        if entries.len() > CHANGES || entries.iter().any(|it| is_settings(&it.path)) {
            return all();
        }
        let layout = Arc::clone(&self.layout);
        let mut concerned: Vec<Arc<ConcernedNodes>> = Vec::new();
        let mut bytes = 0;
        for file in entries.iter().filter_map(|entry| TreeFile::of(entry, &layout)) {
            let (nodes, more) = self
                .concerned_by(&file, &meter)
                .map_err(|source| BuildError::Unreadable { commit, source })?;
            bytes += more;
            if *nodes != ConcernedNodes::Nothing
                && !concerned.iter().any(|it| Arc::ptr_eq(it, &nodes))
            {
                concerned.push(nodes);
            }
        }
        Ok((concerned, bytes))
    }

    /// Returns the nodes that a file can concern, and about how many bytes that takes beside what is known
    /// already.
    fn concerned_by(
        &mut self,
        file: &TreeFile<'_>,
        meter: &Arc<Meter>,
    ) -> Result<(Arc<ConcernedNodes>, usize), ReadError> {
        let key = file.key();
        if let Some(known) = key.as_ref().and_then(|it| self.concerned.get(it)) {
            return Ok((Arc::clone(known), 0));
        }
        let reading = self.readings().get(std::slice::from_ref(file)).pop().flatten();
        let nodes = match reading {
            Some(reading) => ConcernedNodes::of(&reading, file.kind),
            None => {
                let source = source_file(self.context.repository, file.entry)?;
                let of = |reading| ConcernedNodes::of(&reading, file.kind);
                // What costs too much is found out when the commit is built.
                let read = self.readings().read(&source, file.kind, meter, of);
                read.unwrap_or(ConcernedNodes::All)
            }
        };
        Ok(self.concerned.keep(&file.path, key, nodes))
    }
}

fn note(paths: &mut HashSet<Path>, path: &Path) {
    if !paths.contains(path) {
        paths.insert(path.clone());
    }
}

impl BlamedBranch for Commits<'_> {
    type Error = BuildError;

    fn parent(&mut self, commit: CommitId) -> Result<Older, BuildError> {
        self.walked += 1;
        self.are_noted = false;
        if self.walked > LONGEST {
            return Ok(Older::Unknown);
        }
        if let Some(step) = self.cache.step(commit, self.walk) {
            return Ok(Older::Commit(step.parent));
        }
        let repository = self.context.repository;
        Ok(match repository.first_parent(commit) {
            Ok(Some(parent)) if repository.commit(parent).is_ok() => Older::Commit(parent),
            Ok(None) if !repository.is_cut_at(commit) => Older::Nothing,
            // Objects that are not here are those of a history that was cut.
            _ => Older::Unknown,
        })
    }

    fn may_differ(&mut self, parent: CommitId, commit: CommitId) -> Result<bool, BuildError> {
        let known = self.cache.step(commit, self.walk).filter(|it| it.layout == self.layout);
        let step = match known {
            Some(known) => known,
            None => {
                let (concerned, bytes) = self.concerned_between(parent, commit)?;
                let layout = Arc::clone(&self.layout);
                let step = Arc::new(Step { parent, layout, concerned: concerned.into() });
                self.cache.keep_step(commit, &step, bytes, self.walk);
                step
            }
        };
        for nodes in &step.concerned {
            nodes.paths(&mut |path| note(&mut self.paths, path));
        }
        // What concerns all nodes may have rules that are not told.
        self.are_noted = !step.concerned.iter().any(|it| **it == ConcernedNodes::All);
        Ok(step.concerned.iter().any(|it| it.contains(self.node)))
    }

    fn answer(&mut self, commit: CommitId) -> Result<Option<Answer>, BuildError> {
        let known = self.cache.validity(commit);
        if known == Some(false) {
            return Ok(None);
        }
        if known == Some(true)
            && let Some(answer) = self.answer_of_files(commit)?
        {
            return Ok(Some(answer));
        }
        let checked = self.checked(commit)?;
        let Some(estate) = &checked.estate else { return Ok(None) };
        Ok(Some(Answer::of(estate, self.node).unwrap_or_default()))
    }

    fn is_valid(&mut self, commit: CommitId) -> Result<bool, BuildError> {
        match self.cache.validity(commit) {
            Some(known) => Ok(known),
            None => Ok(self.files(commit)?.estate.is_some()),
        }
    }

    fn known(&mut self, commit: CommitId) -> Option<Arc<KnownOrigins>> {
        let (inputs, origins) = self.cache.origins(commit, self.node)?;
        inputs.paths().iter().for_each(|path| note(&mut self.paths, path));
        Some(origins)
    }

    fn is_wanted(&mut self) -> bool {
        (self.context.is_wanted)()
    }
}
