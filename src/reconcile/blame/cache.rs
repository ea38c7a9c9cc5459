//! What walks found, for the next ones.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;
use parking_lot::Mutex;

use crate::answer::AnswerKey;
use crate::blame::{ConcernedNodes, Inputs, KnownOrigins};
use crate::model::{CommitId, Node};
use crate::validation::Layout;

/// About how many bytes what is known of commits may take.
const STEPS_BYTES: usize = 24 << 20;

/// About how many bytes the origins of the values of nodes may take.
const ORIGINS_BYTES: usize = 8 << 20;

/// What walks found, for the next ones: for each commit, which nodes its changes can concern and whether it is
/// valid; for each node, the origins of its values.
///
/// All of it holds for one repository, one directory and one budget, and is about commits, which never change. It is
/// bounded in bytes; what was not used for the longest time is evicted.
#[derive(Debug, Default)]
pub struct BlameCache {
    walks: AtomicU64,
    steps: Mutex<Steps>,
    origins: Mutex<KeptOrigins>,
}

/// The number of a walk, by its beginning.
pub(super) type WalkNumber = u64;

/// What is between a commit and its first parent.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) parent: CommitId,
    /// The layout that says what the files are that differ.
    pub(super) layout: Arc<Layout>,
    /// The nodes that these files can concern.
    pub(super) concerned: Box<[Arc<ConcernedNodes>]>,
}

#[derive(Debug, Default)]
struct Steps {
    by_commit: HashMap<CommitId, KeptStep>,
    validity: HashMap<CommitId, bool>,
    bytes: usize,
    /// The latest walk that has evicted.
    evicted: Option<WalkNumber>,
}

#[derive(Debug)]
struct KeptStep {
    step: Arc<Step>,
    bytes: usize,
    /// The latest walk that used it.
    used: WalkNumber,
}

/// How many walks are recent.
const RECENT: WalkNumber = 32;

/// About how many bytes a step takes beside its rules.
const STEP: usize = 200;

/// About how many bytes a commit takes of which only the validity is known.
const VALIDITY: usize = 64;

/// The origins of the values of nodes at commits, those used last at the end.
#[derive(Debug, Default)]
struct KeptOrigins {
    by_node: IndexMap<(CommitId, Arc<str>), KnownValues>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct KnownValues {
    inputs: Inputs,
    origins: Arc<KnownOrigins>,
    bytes: usize,
}

impl BlameCache {
    /// Begins a walk.
    pub(super) fn begin_walk(&self) -> WalkNumber {
        self.walks.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns what is between a commit and its first parent, if it is known.
    pub(super) fn step(&self, commit: CommitId, walk: WalkNumber) -> Option<Arc<Step>> {
        let mut steps = self.steps.lock();
        let kept = steps.by_commit.get_mut(&commit)?;
        kept.used = kept.used.max(walk);
        Some(Arc::clone(&kept.step))
    }

    /// Keeps what is between a commit and its first parent, whose rules take so many bytes, if there is room. Steps
    /// that recent walks have used keep theirs: each walk comes by in the same order, so one that evicts what it
    /// has not come to yet finds nothing.
    pub(super) fn keep_step(
        &self,
        commit: CommitId,
        step: &Arc<Step>,
        bytes: usize,
        walk: WalkNumber,
    ) {
        let bytes = bytes + STEP + size_of_val(&*step.concerned);
        let mut steps = self.steps.lock();
        if steps.bytes + bytes > STEPS_BYTES {
            steps.evict_unused(walk);
        }
        if steps.bytes + bytes <= STEPS_BYTES {
            let kept = KeptStep { step: Arc::clone(step), bytes, used: walk };
            let replaced = steps.by_commit.insert(commit, kept).map_or(0, |it| it.bytes);
            steps.bytes = steps.bytes.saturating_sub(replaced) + bytes;
        }
    }

    /// Returns whether a commit is valid, if that is known.
    pub(super) fn validity(&self, commit: CommitId) -> Option<bool> {
        self.steps.lock().validity.get(&commit).copied()
    }

    /// Keeps whether a commit is valid.
    pub(super) fn keep_validity(&self, commit: CommitId, is_valid: bool) {
        let mut steps = self.steps.lock();
        if steps.bytes + VALIDITY <= STEPS_BYTES
            && steps.validity.insert(commit, is_valid).is_none()
        {
            steps.bytes += VALIDITY;
        }
    }

    /// Returns the origins of values that a node gets at a commit, if they are known of a node with the same
    /// inputs.
    pub(super) fn origins(
        &self,
        commit: CommitId,
        node: &Node,
    ) -> Option<(Inputs, Arc<KnownOrigins>)> {
        let mut origins = self.origins.lock();
        let key = (commit, Arc::from(node.name.as_str()));
        let at = origins.by_node.get_index_of(&key)?;
        let last = origins.by_node.len() - 1;
        origins.by_node.move_index(at, last);
        let known = origins.by_node.get(&key)?.clone();
        drop(origins);
        known.inputs.are_those_of(node).then_some((known.inputs, known.origins))
    }

    /// Keeps the origins of values that a node gets at a commit; the inputs are those that decided them, and
    /// what was known at the commit if the walk used it.
    pub(super) fn keep_origins(
        &self,
        commit: CommitId,
        node: &Node,
        inputs: Inputs,
        mut found: KnownOrigins,
    ) {
        let mut inputs = inputs;
        if let Some((before, known)) = self.origins(commit, node) {
            inputs = inputs.and(&before, node);
            for (key, origin) in &*known {
                found.entry(key.clone()).or_insert(*origin);
            }
        }
        let bytes = inputs.bytes() + node.name.len() + found.keys().map(bytes_of).sum::<usize>();
        let known = KnownValues { inputs, origins: Arc::new(found), bytes };
        let mut origins = self.origins.lock();
        let key = (commit, Arc::from(node.name.as_str()));
        if let Some(before) = origins.by_node.shift_remove(&key) {
            origins.bytes = origins.bytes.saturating_sub(before.bytes);
        }
        if bytes > ORIGINS_BYTES {
            return;
        }
        origins.bytes += bytes;
        origins.by_node.insert(key, known);
        while origins.bytes > ORIGINS_BYTES {
            let Some((_, evicted)) = origins.by_node.shift_remove_index(0) else { return };
            origins.bytes = origins.bytes.saturating_sub(evicted.bytes);
        }
    }
}

impl Steps {
    /// Evicts the steps that no recent walk has used; once a walk, since all are asked.
    fn evict_unused(&mut self, walk: WalkNumber) {
        if self.evicted >= Some(walk) {
            return;
        }
        self.evicted = Some(walk);
        self.by_commit.retain(|_, kept| kept.used + RECENT >= walk);
        self.validity.clear();
        self.bytes = self.by_commit.values().map(|it| it.bytes).sum();
    }
}

/// About how many bytes a key takes with its origin.
fn bytes_of(key: &AnswerKey) -> usize {
    100 + key.path().iter().map(|it| it.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::Origin;

    fn id(number: usize) -> CommitId {
        format!("{number:040x}").parse().unwrap()
    }

    fn keep(cache: &BlameCache, commit: usize, bytes: usize, walk: WalkNumber) {
        let step = Step { parent: id(commit), layout: Arc::default(), concerned: Box::default() };
        cache.keep_step(id(commit), &Arc::new(step), bytes, walk);
    }

    #[test]
    fn steps_take_no_more_than_their_room() {
        let cache = BlameCache::default();
        for commit in 0..100 {
            keep(&cache, commit, STEPS_BYTES / 50, 0);
            cache.keep_validity(id(commit), true);
        }
        assert!(cache.steps.lock().bytes <= STEPS_BYTES);
        // What came first stays, since the next walk comes by there first.
        assert!(cache.step(id(0), 1).is_some());
        assert!(cache.step(id(99), 1).is_none());
        keep(&cache, 99, STEPS_BYTES / 50, RECENT);
        assert!(cache.step(id(99), RECENT).is_none());
        // After enough walks elsewhere, it does not.
        keep(&cache, 99, STEPS_BYTES / 50, RECENT + 2);
        assert!(cache.step(id(99), RECENT + 2).is_some());
        assert!(cache.steps.lock().by_commit.len() == 1);
        assert!(cache.steps.lock().bytes <= STEPS_BYTES);
    }

    #[test]
    fn origins_take_no_more_than_their_room() {
        let cache = BlameCache::default();
        let node = |number: usize| Node::named(format!("node{number}"));
        let variable = |number: usize| {
            AnswerKey::Variable(format!("{number}{}", "x".repeat(1_000)).parse().unwrap())
        };
        let variables = |count: usize| -> KnownOrigins {
            (0..count).map(|it| (variable(it), Origin::Commit(id(it)))).collect()
        };
        for number in 0..100 {
            let inputs = Inputs::of([], &node(number));
            cache.keep_origins(id(1), &node(number), inputs, variables(200));
        }
        assert!(cache.origins.lock().bytes <= ORIGINS_BYTES);
        assert!(cache.origins(id(1), &node(0)).is_none());
        assert!(cache.origins(id(1), &node(99)).is_some());
        assert!(cache.origins(id(2), &node(99)).is_none());
        // What is found of other values is added.
        let more = KnownOrigins::from([(variable(700), Origin::Commit(id(7)))]);
        cache.keep_origins(id(1), &node(99), Inputs::of([], &node(99)), more);
        assert_eq!(cache.origins(id(1), &node(99)).unwrap().1.len(), 201);
        let inputs = Inputs::of([], &node(99));
        cache.keep_origins(id(1), &node(99), inputs, variables(ORIGINS_BYTES / 1_000));
        assert!(cache.origins(id(1), &node(99)).is_none());
    }
}
