//! The blame of a node's answer over the commits of a repository.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::cache::BlameCache;
use super::commits::{Commits, WalkContext};
use crate::answer::{Answer, AnswerKey, DefiningGroup, NoAnswer};
use crate::blame::{KnownOrigins, Origin, Walked, lines_of, walk};
use crate::diagnostic::Place;
use crate::forge::{ForgePages, MergedPullRequest, merged_pull_request};
use crate::git::{CommitInfo, OpenError, Repository};
use crate::hierarchy::Estate;
use crate::model::{Budget, CommitId, Interpolation, Node, Value};
use crate::reconcile::build_queue::BuildQueue;
use crate::reconcile::outcome::{BuildError, summary};
use crate::reconcile::reading_cache::ReadingCache;
use crate::reconcile::source::path_below;
use crate::validation::Checked;

/// A node that is asked about, and how people are shown it.
#[derive(Clone, Copy, Debug)]
pub struct AskedNode<'n> {
    /// The node as it is.
    pub node: &'n Node,
    /// The node with its secrets masked.
    pub shown: &'n Node,
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
    /// The pull request that the commit came from, if its message names one.
    pub pull_request: Option<MergedPullRequest>,
    /// Whether that is only the oldest commit that is known.
    pub is_boundary: bool,
}

/// A value of a node's answer, and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct LocatedValue {
    /// The key, such as `classes.apache.port`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The group that defines it; none for the node's own file.
    pub group: Option<DefiningGroup>,
    /// The file that defines it, and its line there; none for what no file says, such as the root group.
    pub place: Option<(Arc<str>, u32)>,
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
    #[error(
        "the history is too long to be read in time; `clade blame` on a clone of the repository may take longer"
    )]
    Stopped,
    /// The node gets no such value.
    #[error("`{node}` gets no value `{key}`{}", did_you_mean(.hint.as_deref()))]
    NoSuchKey {
        /// The node.
        node: String,
        /// The key that was asked for.
        key: String,
        /// A similar key that it gets.
        hint: Option<String>,
    },
}

/// The blame of nodes over the commits of a repository.
#[derive(Debug)]
pub struct Blame<'b> {
    pub(super) context: WalkContext<'b>,
    cache: Option<&'b BlameCache>,
    /// A valid commit that is built already.
    built: Option<(CommitId, Arc<Checked>)>,
    /// The pages of the repository on its forge.
    pages: Option<ForgePages>,
    /// The node with the facts that values show; none if they show its own.
    pub(super) shown: Option<&'b Node>,
    /// Whether rules of the first commit read facts, once that is known.
    reads_facts: Option<&'b AtomicBool>,
}

impl Blame<'_> {
    /// Notes whether rules of a commit, the first one, read facts.
    pub(super) fn note_whether_facts_are_read(&self, estate: &Estate) {
        if let Some(reads_facts) = self.reads_facts {
            reads_facts.store(estate.hierarchy.reads_facts(), Ordering::Relaxed);
        }
    }
}

impl<'b> Blame<'b> {
    /// Prepares a walk over the commits of a repository, as long as it is wanted, which is asked before each
    /// commit; the directory is that of the groups, and each commit may cost as much as the budget says.
    pub fn new(
        repository: &'b Repository,
        directory: &'b str,
        budget: Budget,
        is_wanted: &'b (dyn Fn() -> bool + Sync),
    ) -> Self {
        let context =
            WalkContext { repository, directory, budget, is_wanted, queue: None, readings: None };
        Self { context, cache: None, built: None, pages: None, shown: None, reads_facts: None }
    }

    /// Reads each commit when a queue grants it: one at a time with all that is built; and shares the files
    /// with what is built.
    #[must_use]
    pub(in crate::reconcile) fn beside(
        self,
        queue: &'b BuildQueue,
        readings: &'b ReadingCache,
    ) -> Self {
        let context = WalkContext { queue: Some(queue), readings: Some(readings), ..self.context };
        Self { context, ..self }
    }

    /// Uses what earlier walks with the same repository, directory and budget found.
    #[must_use]
    pub fn with_cache(self, cache: &'b BlameCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// Begins with a valid commit that is built already.
    #[must_use]
    pub(in crate::reconcile) fn with_built(self, built: Option<(CommitId, Arc<Checked>)>) -> Self {
        Self { built, ..self }
    }

    /// Adds the pages of pull requests.
    #[must_use]
    pub fn with_pages(self, pages: Option<ForgePages>) -> Self {
        Self { pages, ..self }
    }

    /// Shows values with the facts of this node in them, in which secrets are masked. What the node gets is still
    /// found out by its own facts, so that a change from one secret to another is a change.
    #[must_use]
    pub fn shown_as(self, shown: &'b Node) -> Self {
        Self { shown: Some(shown), ..self }
    }

    /// Notes whether rules of the first commit read facts.
    #[must_use]
    pub fn noting_facts(self, reads_facts: &'b AtomicBool) -> Self {
        Self { reads_facts: Some(reads_facts), ..self }
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
        let empty = BlameCache::default();
        let mut commits = Commits::new(&self.context, node, self.cache.unwrap_or(&empty));
        let checked = &commits.begin(head, self.built.as_ref())?;
        let Some(estate) = &checked.estate else {
            return Err(BlameError::Invalid { commit: head, why: summary(&checked.diagnostics) });
        };
        self.note_whether_facts_are_read(estate);
        let mut answer = Answer::of(estate, node)?;
        if let Some(wanted) = key {
            answer.narrow(wanted).map_err(|hint| BlameError::NoSuchKey {
                node: node.name.clone(),
                key: wanted.to_owned(),
                hint,
            })?;
        }
        let lines = self.lines(head, node, checked, &answer);
        let shown = self.shown_values(estate, node)?;
        let mut found = KnownOrigins::new();
        let mut blamed = BlamedCommits::new(self.context.repository, self.pages.as_ref());
        let mut located = |key: &AnswerKey, origin: Origin| {
            let (Origin::Commit(commit) | Origin::Boundary(commit)) = origin;
            let Some(defined) = answer.values().get(key) else { return Ok(()) };
            found.insert(key.clone(), origin);
            let (commit, pull_request) = blamed.get(commit)?;
            report(BlamedValue {
                key: defined.key_text(key),
                value: shown_value(shown.as_ref(), key, &defined.value),
                group: defined.group.clone(),
                place: lines.get(key).cloned(),
                commit,
                pull_request,
                is_boundary: matches!(origin, Origin::Boundary(_)),
            });
            Ok(())
        };
        let walked = walk(&mut commits, head, &answer, &mut located);
        // What was found before the walk ended is right however it ended.
        commits.keep(head, found);
        match walked {
            Ok(Walked::Whole) => Ok(()),
            Ok(Walked::Stopped) | Err(BuildError::Cancelled(_)) => Err(BlameError::Stopped),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns each value that a node gets at a commit with the place where it is written, by key.
    ///
    /// # Errors
    ///
    /// Returns an error if the node has no answer, or the commit cannot be read.
    pub fn locate(&self, head: CommitId, node: &Node) -> Result<Vec<LocatedValue>, BlameError> {
        let empty = BlameCache::default();
        let mut commits = Commits::new(&self.context, node, self.cache.unwrap_or(&empty));
        let checked = &commits.begin(head, self.built.as_ref())?;
        let Some(estate) = &checked.estate else {
            return Err(BlameError::Invalid { commit: head, why: summary(&checked.diagnostics) });
        };
        let answer = Answer::of(estate, node)?;
        let lines = self.lines(head, node, checked, &answer);
        let shown = self.shown_values(estate, node)?;
        let located = answer.values().iter().map(|(key, defined)| LocatedValue {
            key: defined.key_text(key),
            value: shown_value(shown.as_ref(), key, &defined.value),
            group: defined.group.clone(),
            place: lines.get(key).cloned(),
        });
        let mut located: Vec<LocatedValue> = located.collect();
        located.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(located)
    }

    /// Returns the values as they are shown; none if they are shown as they are.
    fn shown_values(&self, estate: &Estate, node: &Node) -> Result<Option<Answer>, NoAnswer> {
        let shown = self.shown.filter(|_| estate.interpolation == Interpolation::On);
        shown.map(|it| Answer::with_values_of(estate, node, it)).transpose()
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
            let content =
                self.context.repository.text(head, &path_below(self.context.directory, file));
            let content = content.ok().flatten().unwrap_or_default();
            let found = lines_of(&values, content.as_bytes());
            for ((key, place), line) in values.into_iter().zip(found) {
                lines.insert(key, (Arc::clone(&place.file), line));
            }
        }
        lines
    }
}

/// Returns a value as it is shown.
fn shown_value(shown: Option<&Answer>, key: &AnswerKey, value: &Value) -> Value {
    let shown = shown.and_then(|it| it.values().get(key));
    shown.map_or(value, |it| &it.value).clone()
}

fn did_you_mean(similar: Option<&str>) -> String {
    similar.map_or_else(String::new, |it| format!("; did you mean `{it}`?"))
}

/// A commit, and the pull request that it came from.
type Described = (CommitInfo, Option<MergedPullRequest>);

/// The commits that values came from; many come from the same one.
struct BlamedCommits<'b> {
    repository: &'b Repository,
    pages: Option<&'b ForgePages>,
    known: HashMap<CommitId, Described>,
}

impl<'b> BlamedCommits<'b> {
    fn new(repository: &'b Repository, pages: Option<&'b ForgePages>) -> Self {
        Self { repository, pages, known: HashMap::new() }
    }

    fn get(&mut self, commit: CommitId) -> Result<Described, BuildError> {
        if let Some(known) = self.known.get(&commit) {
            return Ok(known.clone());
        }
        let fail = |source| BuildError::Unreadable { commit, source };
        let info = self.repository.commit(commit).map_err(fail)?;
        let message = self.repository.message(commit).map_err(fail)?;
        let described = (info, merged_pull_request(&message, self.pages));
        self.known.insert(commit, described.clone());
        Ok(described)
    }
}
