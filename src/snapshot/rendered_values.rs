//! What groups inherit, ready to be written.
//!
//! An entry is one class with its parameters, one variable, or the config data of one class, as
//! its text in the answer. A group has a list of entries, of which most are shared with its parent;
//! the answer for a node is the union of its leaves' lists. Where two leaves have two entries of
//! one name that are not the same, it is for the plain path to say whether they differ.
//!
//! A list is made when it is first asked for, and shared by the snapshots that are compiled afterwards of commits
//! that do not change it. What comes out for several nodes that the same groups match is written once, as long as
//! the snapshot is live ([`ResponseCache`]).

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::Value;

use super::rendered_tail::{Hole, RenderedTail, write_with_holes};
use super::response_cache::ResponseCache;
use crate::classification::{FactSource, Version};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy, Renumbering};
use crate::model::{Classes, Group, Interpolation, Key, Table};

/// The entries of all groups.
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    of_groups: Box<[OnceLock<Arc<RenderedList>>]>,
    interpolation: Interpolation,
}

/// The entries of a group, by kind and name.
type RenderedList = Box<[RenderedEntry]>;

#[derive(Clone, Debug)]
struct RenderedEntry {
    kind: RenderedKind,
    /// Where the name ends.
    name: u32,
    /// Its name and, behind it, its text in the answer.
    text: Arc<str>,
    /// The strings in its text into which facts are put; none in nearly all entries.
    holes: Option<Arc<[Hole]>>,
}

/// The text of an entry in the answer, and the strings in it into which facts are put.
#[derive(Debug, Default)]
struct Fragment {
    text: String,
    holes: Vec<Hole>,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RenderedKind {
    Class,
    Variable,
    ConfigData,
}

impl RenderedEntry {
    fn new(kind: RenderedKind, name: &str, fragment: Fragment) -> Self {
        let text = format!("{name}{}", fragment.text).into();
        let holes = Some(fragment.holes).filter(|it| !it.is_empty()).map(Arc::from);
        Self { kind, name: u32::try_from(name.len()).unwrap_or(u32::MAX), text, holes }
    }

    fn parts(&self) -> (&str, &str) {
        self.text.split_at_checked(self.name as usize).unwrap_or_default()
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.cmp_to(other.kind, other.parts().0)
    }

    fn cmp_to(&self, kind: RenderedKind, name: &str) -> Ordering {
        (self.kind, self.parts().0).cmp(&(kind, name))
    }
}

impl Fragments {
    pub(super) fn new(hierarchy: &Hierarchy, interpolation: Interpolation) -> Self {
        let of_groups = hierarchy.indexes().map(|_| OnceLock::new()).collect();
        Self { of_groups, interpolation }
    }

    /// Returns the entries of another hierarchy. A group keeps its list if it sets the same as before, and so
    /// do the groups that it inherits from.
    pub(super) fn amended(
        &self,
        before: &Hierarchy,
        after: &Hierarchy,
        renumbering: &Renumbering,
    ) -> Self {
        if let Some(changed) = before.changed_in(after) {
            let sets_another =
                |it: &&GroupIndex| !sets_the_same(before.group(**it), after.group(**it));
            return self.without(after, changed.iter().filter(sets_another));
        }
        let mut of_groups: Vec<OnceLock<Arc<RenderedList>>> = Vec::with_capacity(after.len());
        let mut stay: Vec<bool> = Vec::with_capacity(after.len());
        for index in after.indexes() {
            let stood = renumbering.before(index).filter(|stood| {
                let above = after.parent(index);
                let is_below_the_same = before.parent(*stood)
                    == above.and_then(|it| renumbering.before(it))
                    && above.is_none_or(|it| stay.get(it.number()).copied().unwrap_or_default());
                is_below_the_same && sets_the_same(before.group(*stood), after.group(index))
            });
            let list = stood.and_then(|it| self.of_groups.get(it.number()));
            stay.push(list.is_some());
            of_groups.push(list.cloned().unwrap_or_default());
        }
        Self { of_groups: of_groups.into(), interpolation: self.interpolation }
    }

    /// Returns the entries without those of some groups and what stands below them.
    fn without<'g>(
        &self,
        hierarchy: &Hierarchy,
        groups: impl Iterator<Item = &'g GroupIndex>,
    ) -> Self {
        let mut of_groups = self.of_groups.clone();
        for below in groups.flat_map(|it| hierarchy.subtree(*it)) {
            if let Some(list) = of_groups.get_mut(below.number()) {
                *list = OnceLock::new();
            }
        }
        Self { of_groups, interpolation: self.interpolation }
    }

    /// Writes the classified document of a node without an individual classification; `None` if
    /// its leaves differ, or may do so, and if facts cannot be put into its values.
    pub(super) fn classified(
        &self,
        cache: Option<&ResponseCache>,
        estate: &Estate,
        name: &str,
        facts: &dyn FactSource,
        groups: &[GroupIndex],
        version: Version,
    ) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(2048);
        text.extend_from_slice(b"{\"name\":");
        write(&mut text, name)?;
        if let Some(tail) = cache.and_then(|it| it.get(groups, version)) {
            tail.write(&mut text, facts)?;
            return Some(text);
        }
        let tail = Arc::new(self.tail(&estate.hierarchy, groups, version)?);
        tail.write(&mut text, facts)?;
        if let Some(cache) = cache {
            cache.insert(groups, version, &tail);
        }
        Some(text)
    }

    /// Returns what stands behind the name.
    fn tail(
        &self,
        hierarchy: &Hierarchy,
        groups: &[GroupIndex],
        version: Version,
    ) -> Option<RenderedTail> {
        let leaves = hierarchy.leaves(groups);
        let environment = environment(hierarchy, &leaves)?;
        let entries = self.union(hierarchy, &leaves)?;
        let mut tail = RenderedTail { text: Vec::with_capacity(2048), holes: Vec::new() };
        let text = &mut tail.text;
        text.extend_from_slice(b",\"groups\":[");
        write_groups(text, hierarchy, groups, version)?;
        text.extend_from_slice(b"],\"environment\":");
        write(text, environment)?;
        let of_kind =
            |kind: RenderedKind| entries.iter().copied().filter(move |it| it.kind == kind);
        text.extend_from_slice(b",\"classes\":{");
        write_all(&mut tail, of_kind(RenderedKind::Class));
        tail.text.extend_from_slice(b"},\"parameters\":{");
        write_all(&mut tail, of_kind(RenderedKind::Variable));
        tail.text.push(b'}');
        let mut config_data = of_kind(RenderedKind::ConfigData).peekable();
        if config_data.peek().is_some() {
            tail.text.extend_from_slice(b",\"config_data\":{");
            write_all(&mut tail, config_data);
            tail.text.push(b'}');
        }
        tail.text.push(b'}');
        Some(tail)
    }

    /// Returns the entries of a group; `None` if it is none of ours. Those of its ancestors are made
    /// first.
    fn list(&self, hierarchy: &Hierarchy, group: GroupIndex) -> Option<&[RenderedEntry]> {
        let made = |it: GroupIndex| self.of_groups.get(it.number())?.get();
        if let Some(list) = made(group) {
            return Some(list);
        }
        let mut waiting: Vec<GroupIndex> =
            hierarchy.lineage(group).take_while(|it| made(*it).is_none()).collect();
        while let Some(group) = waiting.pop() {
            let inherited = hierarchy.parent(group).and_then(made).map_or(&[][..], |it| &***it);
            let cell = self.of_groups.get(group.number())?;
            cell.get_or_init(|| Arc::new(list(hierarchy, group, inherited, self.interpolation)));
        }
        made(group).map(|it| &***it)
    }

    /// Returns the entries of all leaves in order; `None` if one name has two that differ.
    fn union<'f>(
        &'f self,
        hierarchy: &Hierarchy,
        leaves: &[GroupIndex],
    ) -> Option<Vec<&'f RenderedEntry>> {
        let mut all: Vec<&RenderedEntry> = Vec::new();
        for leaf in leaves {
            all.extend(self.list(hierarchy, *leaf)?);
        }
        if leaves.len() > 1 {
            all.sort_by(|a, b| a.cmp(b));
            all.dedup_by(|a, b| {
                Arc::ptr_eq(&a.text, &b.text)
                    || (a.kind, a.name, &a.text) == (b.kind, b.name, &b.text)
            });
        }
        let twice = |pair: &[&RenderedEntry]| matches!(pair, [a, b] if a.cmp(b).is_eq());
        (!all.windows(2).any(twice)).then_some(all)
    }
}

/// Returns whether two groups set the same values.
fn sets_the_same(one: &Group, other: &Group) -> bool {
    let values = |Group { classes, variables, config_data, .. }: &Group| {
        (Arc::clone(classes), Arc::clone(variables), Arc::clone(config_data))
    };
    std::ptr::eq(one, other) || values(one) == values(other)
}

fn write_all<'e>(tail: &mut RenderedTail, entries: impl Iterator<Item = &'e RenderedEntry>) {
    for (at, entry) in entries.enumerate() {
        if at > 0 {
            tail.text.push(b',');
        }
        tail.push(entry.parts().1, entry.holes.as_deref().unwrap_or_default());
    }
}

fn write<T: Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) -> Option<()> {
    serde_json::to_writer(text, value).ok()
}

/// Returns the environment that the leaves agree on, of those that trump if any does.
fn environment<'h>(hierarchy: &'h Hierarchy, leaves: &[GroupIndex]) -> Option<&'h str> {
    let groups = || leaves.iter().map(|leaf| hierarchy.group(*leaf));
    let trumped = groups().any(|group| group.environment_trumps);
    let mut decisive = groups().filter(|group| group.environment_trumps == trumped);
    let first = decisive.next()?;
    decisive.all(|it| it.environment == first.environment).then(|| first.environment.as_str())
}

fn write_groups(
    text: &mut Vec<u8>,
    hierarchy: &Hierarchy,
    groups: &[GroupIndex],
    version: Version,
) -> Option<()> {
    let mut groups: Vec<&Group> = groups.iter().map(|it| hierarchy.group(*it)).collect();
    if version == Version::V2 {
        groups.sort_unstable_by_key(|group| (&group.name, group.id));
    }
    for (at, group) in groups.into_iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        match version {
            Version::V1 => write(text, &group.id)?,
            Version::V2 => {
                text.extend_from_slice(b"{\"id\":");
                write(text, &group.id)?;
                text.extend_from_slice(b",\"name\":");
                write(text, group.name.as_str())?;
                text.push(b'}');
            }
        }
    }
    Some(())
}

/// Makes the list of a group: that of its parent, with what the group sets itself.
fn list(
    hierarchy: &Hierarchy,
    index: GroupIndex,
    inherited: &[RenderedEntry],
    interpolation: Interpolation,
) -> RenderedList {
    let group = hierarchy.group(index);
    let classes = group.classes.keys().map(|it| (RenderedKind::Class, it.as_str()));
    let variables = group.variables.keys().map(|it| (RenderedKind::Variable, it.as_str()));
    let config_data = group.config_data.keys().map(|it| (RenderedKind::ConfigData, it.as_str()));
    let mut list = inherited.to_vec();
    for (kind, name) in classes.chain(variables).chain(config_data) {
        let at = list.binary_search_by(|it| it.cmp_to(kind, name));
        let entry = fragment(hierarchy, index, kind, name, interpolation)
            .map(|it| RenderedEntry::new(kind, name, it));
        match (at, entry) {
            (Ok(at), Some(entry)) => list.splice(at..=at, [entry]).for_each(drop),
            (Ok(at), None) => list.splice(at..=at, []).for_each(drop),
            (Err(at), Some(entry)) => list.insert(at, entry),
            (Err(_), None) => {}
        }
    }
    list.into()
}

/// Returns the text of an entry for a group that sets it; `None` if nothing is left of it.
fn fragment(
    hierarchy: &Hierarchy,
    index: GroupIndex,
    kind: RenderedKind,
    name: &str,
    interpolation: Interpolation,
) -> Option<Fragment> {
    let mut fragment = Fragment { text: format!("{}:", Value::from(name)), holes: Vec::new() };
    match kind {
        RenderedKind::Class => {
            let parameters = parameters(hierarchy, index, name, |group| &group.classes);
            fragment.object(&parameters, interpolation);
        }
        RenderedKind::ConfigData => {
            let parameters = parameters(hierarchy, index, name, |group| &group.config_data);
            if parameters.is_empty() {
                return None;
            }
            fragment.object(&parameters, Interpolation::Off);
        }
        RenderedKind::Variable => {
            let value = hierarchy.group(index).variables.get(name)?;
            if value.is_null() {
                return None;
            }
            fragment.value(value, interpolation);
        }
    }
    Some(fragment)
}

impl Fragment {
    fn value(&mut self, value: &Value, interpolation: Interpolation) {
        match interpolation {
            Interpolation::On => write_with_holes(&mut self.text, value, &mut self.holes),
            Interpolation::Off => self.text.push_str(&value.to_string()),
        }
    }

    fn object(&mut self, parameters: &[(&Key, &Value)], interpolation: Interpolation) {
        self.text.push('{');
        for (at, (key, value)) in parameters.iter().enumerate() {
            self.text.push_str(if at > 0 { "," } else { "" });
            self.text.push_str(&Value::from(key.as_str()).to_string());
            self.text.push(':');
            self.value(value, interpolation);
        }
        self.text.push('}');
    }
}

/// Returns the parameters of a class that a group has with all it inherits, in order.
fn parameters<'h>(
    hierarchy: &'h Hierarchy,
    index: GroupIndex,
    class: &str,
    of: fn(&Group) -> &Classes,
) -> Vec<(&'h Key, &'h Value)> {
    let tables: Vec<&Table<Key, Value>> = hierarchy
        .lineage(index)
        .filter_map(|index| of(hierarchy.group(index)).get(class))
        .collect();
    let mut all: Vec<(&Key, &Value)> = tables.into_iter().flatten().collect();
    // Of equal keys the nearest group's stands first, and stays.
    all.sort_by(|a, b| a.0.cmp(b.0));
    all.dedup_by(|a, b| a.0 == b.0);
    all.retain(|(_, value)| !value.is_null());
    all
}
