//! The blame of a node's answer over the commits of a repository.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::build::{Build, CheckedFiles};
use super::build_queue::{BuildQueue, Priority};
use super::outcome::{BuildError, summary};
use super::reading_cache::ReadingCache;
use super::source::path_below;
use super::tree_files::{TreeFile, is_settings, source_file};
use crate::answer::{Answer, AnswerKey, DefiningGroup, NoAnswer};
use crate::blame::{self, BlamedBranch, Older, Origin, Walked, lines_of, walk};
use crate::diagnostic::Place;
use crate::git::{CommitInfo, FilesError, OpenError, Repository, TreeEntry};
use crate::model::{Budget, CommitId, Meter, Node, Value};
use crate::validation::{Checked, Layout};

/// How many commits are walked back; before the last of them nothing is known.
const LONGEST: usize = 100_000;

/// What a blame uses.
#[derive(Clone, Copy)]
pub struct Blame<'b> {
    repository: &'b Repository,
    /// The directory of the groups.
    directory: &'b str,
    /// What each commit may cost.
    budget: Budget,
    /// Whether the walk shall go on; asked before each commit.
    is_wanted: &'b (dyn Fn() -> bool + Sync),
    /// Where the reading of each commit waits for its turn.
    queue: Option<&'b BuildQueue>,
}

impl std::fmt::Debug for Blame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blame").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// A value of a node's answer, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct BlamedValue {
    /// The key, such as `classes.apache.port`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The group that defines it; none for the node's own file.
    pub group: Option<DefiningGroup>,
    /// The file that defines it, and its line there; none for what no file says, such as the root group.
    pub place: Option<(Arc<str>, u32)>,
    /// The commit after which it first came out.
    pub commit: CommitInfo,
    /// Whether that is only the oldest commit that is known.
    pub is_boundary: bool,
}

/// Nothing can be blamed.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    /// A commit could not be read.
    #[error(transparent)]
    Unbuilt(#[from] BuildError),
    /// The repository cannot be opened.
    #[error(transparent)]
    Unopened(#[from] OpenError),
    /// The commit is not valid.
    #[error("the commit {commit} is not valid: {why}")]
    Invalid {
        /// The commit.
        commit: CommitId,
        /// Its first error.
        why: String,
    },
    /// The node has no answer there.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The walk was not wanted any more before it was at its end.
    #[error("the history is too long to be read in time")]
    Stopped,
    /// The node gets no such value.
    #[error("`{node}` gets no value `{key}`{hint}")]
    NoSuchKey {
        /// The node.
        node: String,
        /// The key that was asked for.
        key: String,
        /// A key that may be meant, in words.
        hint: String,
    },
}

impl<'b> Blame<'b> {
    /// Prepares a walk over the commits of a repository, as long as it is wanted; the directory is that of
    /// the groups, and each commit may cost as much as the budget says.
    pub fn new(
        repository: &'b Repository,
        directory: &'b str,
        budget: Budget,
        is_wanted: &'b (dyn Fn() -> bool + Sync),
    ) -> Self {
        Self { repository, directory, budget, is_wanted, queue: None }
    }

    /// Reads each commit when a queue grants it: one at a time with all that is built.
    pub(super) fn with_queue(self, queue: &'b BuildQueue) -> Self {
        Self { queue: Some(queue), ..self }
    }

    /// Finds the commit of each value that a node gets at a commit, or of those that a key names, and
    /// reports each value as soon as its commit is known.
    ///
    /// # Errors
    ///
    /// Returns an error if the node has no answer, no value has the key, or a commit cannot be read.
    pub fn run(
        &self,
        head: CommitId,
        node: &Node,
        key: Option<&str>,
        report: &mut dyn FnMut(BlamedValue),
    ) -> Result<(), BlameError> {
        let mut commits = Commits::new(self, node);
        let files = commits.files(head)?;
        let checked = &files.checked;
        let Some(estate) = &checked.estate else {
            return Err(BlameError::Invalid { commit: head, why: summary(&checked.diagnostics) });
        };
        commits.layout = checked.layout().clone();
        let mut answer = Answer::of(estate, node)?;
        if let Some(wanted) = key {
            answer.narrow(wanted).map_err(|similar| BlameError::NoSuchKey {
                node: node.name.clone(),
                key: wanted.to_owned(),
                hint: similar.map_or_else(String::new, |it| format!("; did you mean `{it}`?")),
            })?;
        }
        let lines = self.lines(head, node, checked, &answer);
        let mut located = |key: &AnswerKey, origin: Origin| {
            let (Origin::Commit(commit) | Origin::Boundary(commit)) = origin;
            let Some(defined) = answer.values().get(key) else { return Ok(()) };
            let info = self.repository.commit(commit);
            report(BlamedValue {
                key: defined.key_text(key),
                value: defined.value.clone(),
                group: defined.group.clone(),
                place: lines.get(key).cloned(),
                commit: info.map_err(|source| BuildError::Unreadable { commit, source })?,
                is_boundary: matches!(origin, Origin::Boundary(_)),
            });
            Ok(())
        };
        match walk(&mut commits, head, &answer, &mut located)? {
            Walked::Stopped => Err(BlameError::Stopped),
            Walked::Whole => Ok(()),
        }
    }

    /// Returns the file and line of each value that a file defines.
    fn lines<'a>(
        &self,
        head: CommitId,
        node: &Node,
        checked: &Checked,
        answer: &'a Answer,
    ) -> BTreeMap<&'a AnswerKey, (Arc<str>, u32)> {
        let own = checked.node_origins().remove(&node.name);
        let mut by_file: BTreeMap<&str, Vec<(&AnswerKey, &Place)>> = BTreeMap::new();
        for (key, defined) in answer.values() {
            let place = match &defined.group {
                Some(group) => checked.origins.get(&group.id),
                None => own.as_ref(),
            };
            if let Some(place) = place {
                by_file.entry(&place.file).or_default().push((key, place));
            }
        }
        let mut lines = BTreeMap::new();
        for (file, values) in by_file {
            // One file at a time is in memory.
            let content = self.repository.text(head, &path_below(self.directory, file));
            let found = lines_of(&values, content.unwrap_or_default().as_bytes());
            for ((key, place), line) in values.into_iter().zip(found) {
                lines.insert(key, (Arc::clone(&place.file), line));
            }
        }
        lines
    }
}

/// The commits of a repository, as a walk sees them.
struct Commits<'b> {
    blame: &'b Blame<'b>,
    node: &'b Node,
    cache: ReadingCache,
    /// The commit that was read last, and what it says: the next one shares most of it.
    last: Option<(CommitId, CheckedFiles)>,
    /// Whether the commits that were read are valid.
    valid: HashMap<CommitId, bool>,
    /// The layout of the last commit whose answer was asked for.
    layout: Layout,
    walked: usize,
}

impl<'b> Commits<'b> {
    fn new(blame: &'b Blame<'b>, node: &'b Node) -> Self {
        Self {
            blame,
            node,
            cache: ReadingCache::default(),
            last: None,
            valid: HashMap::new(),
            layout: Layout::default(),
            walked: 0,
        }
    }

    /// Reads and checks the files of a commit, from what was read last where they have much in common.
    fn files(&mut self, commit: CommitId) -> Result<CheckedFiles, BuildError> {
        let Blame { repository, directory, budget, .. } = *self.blame;
        let _slot = self
            .blame
            .queue
            .map(|it| it.take(Priority::Reads).ok_or(BuildError::Busy))
            .transpose()?;
        let build = Build {
            repository,
            commit,
            directory,
            cache: &self.cache,
            budget,
            is_wanted: &|| true,
        };
        let files = build.files(self.last.as_ref().map(|(id, files)| (*id, &*files.checked)))?;
        let is_valid = files.checked.estate.is_some();
        self.valid.insert(commit, is_valid);
        if is_valid {
            self.last = Some((commit, files.clone()));
        }
        Ok(files)
    }

    /// Returns whether a file of a commit can concern the node.
    fn concerns(
        &self,
        commit: CommitId,
        entry: &TreeEntry,
        meter: &Arc<Meter>,
    ) -> Result<bool, BuildError> {
        if is_settings(&entry.path) {
            return Ok(true);
        }
        let Some(file) = TreeFile::of(entry, &self.layout) else { return Ok(false) };
        let source = source_file(self.blame.repository, entry)
            .map_err(|source| BuildError::Unreadable { commit, source })?;
        let reading = self.cache.read(&source, file.kind, meter, Arc::new);
        // What costs too much is found out when the commit is built.
        Ok(reading.map_or(true, |it| blame::concerns(&it, file.kind, self.node)))
    }

    /// Returns whether a file that a commit has and another one lacks, or has otherwise, can concern the
    /// node.
    fn any_concerns(&self, before: CommitId, commit: CommitId) -> Result<bool, BuildError> {
        let Blame { repository, directory, budget, .. } = *self.blame;
        let meter = Arc::new(Meter::new(budget));
        let changed = match repository.changed_files(Some(before), commit, directory, &meter) {
            Ok(changed) => changed,
            Err(FilesError::TooLarge(_) | FilesError::NoDirectory(_)) => return Ok(true),
            Err(FilesError::Unreadable(source)) => {
                return Err(BuildError::Unreadable { commit, source });
            }
        };
        for entry in &changed {
            if self.concerns(commit, entry, &meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl BlamedBranch for Commits<'_> {
    type Error = BuildError;

    fn parent(&mut self, commit: CommitId) -> Result<Older, BuildError> {
        self.walked += 1;
        if self.walked > LONGEST {
            return Ok(Older::Unknown);
        }
        let repository = self.blame.repository;
        Ok(match repository.first_parent(commit) {
            Ok(Some(parent)) if repository.commit(parent).is_ok() => Older::Commit(parent),
            Ok(None) if !repository.is_shallow() => Older::Nothing,
            // Objects that are not here are those of a history that was cut.
            _ => Older::Unknown,
        })
    }

    fn may_differ(&mut self, parent: CommitId, commit: CommitId) -> Result<bool, BuildError> {
        Ok(self.any_concerns(parent, commit)? || self.any_concerns(commit, parent)?)
    }

    fn answer(&mut self, commit: CommitId) -> Result<Option<Answer>, BuildError> {
        let files = self.files(commit)?;
        let Some(estate) = &files.checked.estate else { return Ok(None) };
        // What comes before this commit is compared with it, so its layout says which file is which.
        self.layout = files.checked.layout().clone();
        Ok(Some(Answer::of(estate, self.node).unwrap_or_default()))
    }

    fn is_valid(&mut self, commit: CommitId) -> Result<bool, BuildError> {
        match self.valid.get(&commit) {
            Some(known) => Ok(*known),
            None => Ok(self.files(commit)?.checked.estate.is_some()),
        }
    }

    fn is_wanted(&mut self) -> bool {
        (self.blame.is_wanted)()
    }
}
