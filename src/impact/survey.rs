//! What came of comparing a set of nodes, with each change in memory once, however many nodes have it.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;

use super::digest::TextDigest;
use super::nodes::{Causes, Change, Difference, NodeChange, NodeComparison, ReportEntry, Standing};
use super::shared_value::SharedValue;

/// What came of comparing a set of nodes.
#[derive(Debug, Default)]
pub struct Survey {
    nodes: usize,
    counts: NodeCounts,
    /// What differs for some node, by its text: what is written is what is the same, since numbers that are equal are
    /// written alike.
    changes: HashMap<TextDigest, Arc<Change>>,
    values: HashMap<TextDigest, SharedValue>,
    causes: HashSet<Causes>,
    /// The nodes that differ in the same.
    entries: HashMap<TextDigest, ReportEntry>,
    room: SurveyRoom,
}

/// The differences of the nodes take more memory than there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what the nodes get differently takes more than {} MiB of memory", .most >> 20)]
pub struct SurveyTooLarge {
    /// The most bytes.
    most: usize,
}

/// About how many bytes of memory are taken, and may be.
#[derive(Clone, Copy, Debug)]
struct SurveyRoom {
    taken: usize,
    most: usize,
    /// The limit of one node, if one is beyond it.
    exceeded: Option<usize>,
}

impl Default for SurveyRoom {
    fn default() -> Self {
        Self { taken: 0, most: usize::MAX, exceeded: None }
    }
}

impl Extend<(String, NodeComparison)> for Survey {
    fn extend<I: IntoIterator<Item = (String, NodeComparison)>>(&mut self, nodes: I) {
        for (name, NodeComparison { standing, change }) in nodes {
            self.nodes += 1;
            self.counts.add(standing);
            // What does not fit is not looked for: there will be no report.
            if let Some(change) = change.filter(|_| !self.is_full()) {
                self.add(name, change);
            }
        }
    }
}

impl SurveyTooLarge {
    /// The differences take more than so many bytes.
    pub fn beyond(most: usize) -> Self {
        Self { most }
    }
}

impl Survey {
    /// Makes a survey that keeps about so many bytes.
    pub fn within(most: usize) -> Self {
        Self { room: SurveyRoom { most, ..SurveyRoom::default() }, ..Self::default() }
    }

    /// Returns whether it has found more than it may keep: no more nodes need to be compared.
    pub fn is_full(&self) -> bool {
        self.room.exceeded.is_some() || self.room.taken > self.room.most
    }

    /// Returns about how many bytes it keeps.
    pub fn size(&self) -> usize {
        self.room.taken
    }

    /// Returns how many nodes there are, how many have no classification, and those that get something else.
    pub(super) fn finish(self) -> Result<(usize, NodeCounts, Vec<ReportEntry>), SurveyTooLarge> {
        match self.is_full() {
            true => Err(SurveyTooLarge::beyond(self.room.exceeded.unwrap_or(self.room.most))),
            false => Ok((self.nodes, self.counts, self.entries.into_values().collect())),
        }
    }

    fn add(&mut self, name: String, change: NodeChange) {
        // What one node gets differently is written at once.
        let written: usize = change.changes.iter().map(written_size).sum();
        let most = self.room.most / 4;
        if written > most {
            self.room.exceeded = Some(most);
            return;
        }
        let keys: Vec<TextDigest> = change.changes.iter().map(Change::digest).collect();
        let key = TextDigest::of(&keys);
        self.room.taken = self.room.taken.saturating_add(size_of::<String>() + name.len());
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.nodes.push(name);
            return;
        }
        let own = size_of::<ReportEntry>() + keys.len() * size_of::<Arc<Change>>();
        self.room.taken = self.room.taken.saturating_add(own);
        let known = keys.into_iter().zip(change.changes);
        let changes = known.map(|(key, change)| self.keep(key, change)).collect();
        self.entries.insert(key, ReportEntry { nodes: vec![name], changes });
    }

    /// Returns the kept change that is the same.
    fn keep(&mut self, key: TextDigest, mut change: Change) -> Arc<Change> {
        if let Some(known) = self.changes.get(&key) {
            return Arc::clone(known);
        }
        if let Difference::Value(it) = &mut change.what {
            for value in [&mut it.old, &mut it.new].into_iter().flatten() {
                *value = self.keep_value(value);
            }
        }
        change.causes = self.keep_causes(change.causes);
        self.room.taken = self.room.taken.saturating_add(size_of_change(&change));
        let change = Arc::new(change);
        self.changes.insert(key, Arc::clone(&change));
        change
    }

    fn keep_causes(&mut self, causes: Causes) -> Causes {
        if !self.causes.contains(&causes) {
            let size = 2 * size_of::<Causes>() + size_of_val(causes.changes());
            self.room.taken = self.room.taken.saturating_add(size);
        }
        self.causes.get_or_insert(causes).clone()
    }

    fn keep_value(&mut self, value: &SharedValue) -> SharedValue {
        let room = &mut self.room;
        let keep = || {
            room.taken = room.taken.saturating_add(value.size());
            value.clone()
        };
        self.values.entry(value.digest()).or_insert_with(keep).clone()
    }
}

/// Returns about how many bytes of text a change takes.
fn written_size(change: &Change) -> usize {
    /// Of a cause, with its names and its place.
    const CAUSE: usize = 300;
    let values = match &change.what {
        Difference::Value(it) => {
            [&it.old, &it.new].into_iter().flatten().map(SharedValue::size).sum()
        }
        _ => 0,
    };
    values + CAUSE * (1 + change.causes.changes().len())
}

/// Returns about how many bytes a change takes beside its values and causes.
fn size_of_change(change: &Change) -> usize {
    let text = |it: &Option<String>| it.as_ref().map_or(0, String::len);
    let names = match &change.what {
        Difference::Entered(group) | Difference::Left(group) => group.name.len(),
        Difference::Renamed { from, to } => from.name.len() + to.name.len(),
        Difference::Conflict(it) | Difference::Error(it) => text(&it.old) + text(&it.new),
        Difference::Environment { old, new } => old.len() + new.len(),
        Difference::ClassAdded(class) | Difference::ClassRemoved(class) => class.len(),
        Difference::Value(it) => text(&it.class) + it.name.len(),
    };
    // Its digest and its place in the map count, too.
    2 * size_of::<Change>() + names
}

/// How many nodes have no classification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NodeCounts {
    /// Nodes that get a conflict that they did not have.
    pub conflicts_appearing: usize,
    /// Nodes that had a conflict and are classified now.
    pub conflicts_disappearing: usize,
    /// Nodes in conflict before and after.
    pub conflicts_staying: usize,
    /// Nodes of which a rule could be evaluated before, and cannot now.
    pub errors_appearing: usize,
    /// Nodes of which a rule could not be evaluated before.
    pub errors_disappearing: usize,
    /// Nodes of which a rule cannot be evaluated, before and after.
    pub errors_staying: usize,
    /// Nodes without a classification before.
    pub unclassified_before: usize,
    /// Nodes without one after.
    pub unclassified_after: usize,
}

impl NodeCounts {
    fn add(&mut self, [before, after]: [Standing; 2]) {
        use Standing::{Classified, Conflict, Error};
        let count = |counter: &mut usize, counts: bool| *counter += usize::from(counts);
        count(&mut self.conflicts_appearing, before != Conflict && after == Conflict);
        count(&mut self.conflicts_disappearing, before == Conflict && after == Classified);
        count(&mut self.conflicts_staying, before == Conflict && after == Conflict);
        count(&mut self.errors_appearing, before != Error && after == Error);
        count(&mut self.errors_disappearing, before == Error && after != Error);
        count(&mut self.errors_staying, before == Error && after == Error);
        count(&mut self.unclassified_before, before != Classified);
        count(&mut self.unclassified_after, after != Classified);
    }
}
