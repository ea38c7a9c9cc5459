//! What groups inherit, ready to be written.
//!
//! An entry is one class with its parameters, one variable, or the config data of one class, as
//! its text in the answer. A group has a list of entries, of which most are shared with its parent;
//! the answer for a node is the union of its leaves' lists. Where two leaves have two entries of
//! one name, it is for the plain path to say whether they differ.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use serde::Serialize;
use serde_json::Value;

use super::lists::Lists;
use crate::classification::Version;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Classes, Group, Key, Table};

/// The number of an entry.
type EntryId = u32;

/// The entries of all groups.
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    /// The texts of all entries, one behind the other.
    text: Box<str>,
    entries: Box<[Entry]>,
    /// The entries of each group, by rank.
    of_groups: Lists,
    /// The first ranks that are variables and config data.
    variables: u32,
    config_data: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The place of its name among those of all entries: classes, variables, config data.
    rank: u32,
    /// Where its text ends.
    end: u32,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Subject<'h> {
    Class(&'h str),
    Variable(&'h str),
    ConfigData(&'h str),
}

impl Fragments {
    pub(super) fn new(hierarchy: &Hierarchy) -> Self {
        let mut subjects: Vec<Subject<'_>> = hierarchy.groups().flat_map(subjects).collect();
        subjects.sort_unstable();
        subjects.dedup();
        let first =
            |is_before: fn(&Subject<'_>) -> bool| number(subjects.partition_point(is_before));
        let variables = first(|it| matches!(it, Subject::Class(_)));
        let config_data = first(|it| !matches!(it, Subject::ConfigData(_)));
        let ranks = (0..).zip(&subjects).map(|(rank, subject)| (*subject, rank)).collect();
        let mut writer = Writer { hierarchy, ranks, ..Writer::of(hierarchy) };
        let mut ends = Vec::with_capacity(hierarchy.len());
        let mut all: Vec<EntryId> = Vec::new();
        for index in hierarchy.indexes() {
            let inherited = hierarchy.parent(index).map_or(0..0, |parent| {
                let end = ends.get(parent.number()).copied().unwrap_or(0);
                let before = parent.number().checked_sub(1).and_then(|it| ends.get(it)).copied();
                before.unwrap_or(0) as usize..end as usize
            });
            let list = writer.list(index, all.get(inherited).unwrap_or_default());
            all.extend(list);
            ends.push(number(all.len()));
        }
        Self {
            text: writer.text.into(),
            entries: writer.entries.into(),
            of_groups: Lists { ends: ends.into(), all: all.into() },
            variables,
            config_data,
        }
    }

    /// Writes the classified document of a node without an individual classification; `None` if
    /// its leaves differ, or may do so.
    pub(super) fn classified(
        &self,
        estate: &Estate,
        name: &str,
        groups: &[GroupIndex],
        version: Version,
    ) -> Option<Vec<u8>> {
        let hierarchy = &estate.hierarchy;
        let leaves = hierarchy.leaves(groups);
        let environment = environment(hierarchy, &leaves)?;
        let entries = self.union(&leaves)?;
        let mut text = Vec::with_capacity(2048);
        text.extend_from_slice(b"{\"name\":");
        write(&mut text, name)?;
        text.extend_from_slice(b",\"groups\":[");
        write_groups(&mut text, hierarchy, groups, version)?;
        text.extend_from_slice(b"],\"environment\":");
        write(&mut text, environment)?;
        let of_kind = |from: u32, to: u32| {
            let of =
                move |it: &EntryId| self.entry(*it).is_some_and(|it| (from..to).contains(&it.rank));
            entries.iter().copied().filter(of)
        };
        text.extend_from_slice(b",\"classes\":{");
        self.write(&mut text, of_kind(0, self.variables));
        text.extend_from_slice(b"},\"parameters\":{");
        self.write(&mut text, of_kind(self.variables, self.config_data));
        text.push(b'}');
        let mut config_data = of_kind(self.config_data, u32::MAX).peekable();
        if config_data.peek().is_some() {
            text.extend_from_slice(b",\"config_data\":{");
            self.write(&mut text, config_data);
            text.push(b'}');
        }
        text.push(b'}');
        Some(text)
    }

    fn entry(&self, id: EntryId) -> Option<Entry> {
        self.entries.get(id as usize).copied()
    }

    /// Returns the entries of all leaves by rank; `None` if one name has two.
    fn union(&self, leaves: &[GroupIndex]) -> Option<Vec<EntryId>> {
        let lists = leaves.iter().flat_map(|leaf| self.of_groups.get(number(leaf.number())));
        let mut all: Vec<(u32, EntryId)> =
            lists.map(|id| Some((self.entry(*id)?.rank, *id))).collect::<Option<_>>()?;
        if leaves.len() > 1 {
            all.sort_unstable();
            all.dedup();
        }
        let twice = |pair: &[(u32, EntryId)]| matches!(pair, [a, b] if a.0 == b.0);
        (!all.windows(2).any(twice)).then(|| all.into_iter().map(|(_, id)| id).collect())
    }

    fn write(&self, text: &mut Vec<u8>, entries: impl Iterator<Item = EntryId>) {
        for (at, id) in entries.enumerate() {
            if at > 0 {
                text.push(b',');
            }
            let start = id.checked_sub(1).and_then(|it| self.entry(it)).map_or(0, |it| it.end);
            let end = self.entry(id).map_or(start, |it| it.end);
            let fragment = self.text.as_bytes().get(start as usize..end as usize);
            text.extend_from_slice(fragment.unwrap_or_default());
        }
    }
}

fn number(it: usize) -> u32 {
    u32::try_from(it).unwrap_or(u32::MAX)
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

fn subjects(group: &Group) -> impl Iterator<Item = Subject<'_>> {
    let classes = group.classes.keys().map(|it| Subject::Class(it.as_str()));
    let variables = group.variables.keys().map(|it| Subject::Variable(it.as_str()));
    let config_data = group.config_data.keys().map(|it| Subject::ConfigData(it.as_str()));
    classes.chain(variables).chain(config_data)
}

/// Writes entries, each once.
struct Writer<'h> {
    hierarchy: &'h Hierarchy,
    ranks: HashMap<Subject<'h>, u32>,
    text: String,
    entries: Vec<Entry>,
    known: HashTable<EntryId>,
    hasher: DefaultHashBuilder,
}

impl<'h> Writer<'h> {
    fn of(hierarchy: &'h Hierarchy) -> Self {
        Self {
            hierarchy,
            ranks: HashMap::new(),
            text: String::new(),
            entries: Vec::new(),
            known: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Returns the list of a group: that of its parent, with what the group sets itself.
    fn list(&mut self, index: GroupIndex, inherited: &[EntryId]) -> Vec<EntryId> {
        let mut list: Vec<(u32, EntryId)> = inherited
            .iter()
            .filter_map(|id| Some((self.entries.get(*id as usize)?.rank, *id)))
            .collect();
        for subject in subjects(self.hierarchy.group(index)) {
            let Some(rank) = self.ranks.get(&subject).copied() else { continue };
            let at = list.binary_search_by_key(&rank, |(rank, _)| *rank);
            let entry = self.fragment(index, subject).map(|text| (rank, self.intern(rank, &text)));
            match (at, entry) {
                (Ok(at), Some(entry)) => list.splice(at..=at, [entry]).for_each(drop),
                (Ok(at), None) => list.splice(at..=at, []).for_each(drop),
                (Err(at), Some(entry)) => list.insert(at, entry),
                (Err(_), None) => {}
            }
        }
        list.into_iter().map(|(_, id)| id).collect()
    }

    /// Returns the text of an entry for a group that sets it; `None` if nothing is left of it.
    fn fragment(&self, index: GroupIndex, subject: Subject<'h>) -> Option<String> {
        let text = |name: &str| serde_json::to_string(name).ok();
        match subject {
            Subject::Class(class) => {
                let parameters = self.parameters(index, class, |group| &group.classes);
                Some(format!("{}:{}", text(class)?, object(&parameters)?))
            }
            Subject::ConfigData(class) => {
                let parameters = self.parameters(index, class, |group| &group.config_data);
                (!parameters.is_empty()).then_some(format!(
                    "{}:{}",
                    text(class)?,
                    object(&parameters)?
                ))
            }
            Subject::Variable(name) => {
                let value = self.hierarchy.group(index).variables.get(name)?;
                (!value.is_null()).then_some(format!("{}:{value}", text(name)?))
            }
        }
    }

    /// Returns the parameters of a class that a group has with all it inherits, in order.
    fn parameters(
        &self,
        index: GroupIndex,
        class: &str,
        of: fn(&Group) -> &Classes,
    ) -> Vec<(&'h Key, &'h Value)> {
        let tables: Vec<&Table<Key, Value>> = self
            .hierarchy
            .lineage(index)
            .filter_map(|index| of(self.hierarchy.group(index)).get(class))
            .collect();
        let mut all: Vec<(&Key, &Value)> = tables.into_iter().flatten().collect();
        // Of equal keys the nearest group's stands first, and stays.
        all.sort_by(|a, b| a.0.cmp(b.0));
        all.dedup_by(|a, b| a.0 == b.0);
        all.retain(|(_, value)| !value.is_null());
        all
    }

    fn intern(&mut self, rank: u32, fragment: &str) -> EntryId {
        let hash = self.hasher.hash_one((rank, fragment));
        let (entries, text) = (&self.entries, &self.text);
        let of = |id: EntryId| -> Option<(u32, &str)> {
            let start = id.checked_sub(1).and_then(|it| entries.get(it as usize));
            let entry = entries.get(id as usize)?;
            Some((entry.rank, text.get(start.map_or(0, |it| it.end as usize)..entry.end as usize)?))
        };
        if let Some(known) = self.known.find(hash, |id| of(*id) == Some((rank, fragment))) {
            return *known;
        }
        let id = number(self.entries.len());
        let hash_of = |id: &EntryId| of(*id).map_or(0, |it| self.hasher.hash_one(it));
        self.known.insert_unique(hash, id, hash_of);
        self.text.push_str(fragment);
        self.entries.push(Entry { rank, end: number(self.text.len()) });
        id
    }
}

fn object(parameters: &[(&Key, &Value)]) -> Option<String> {
    let mut text = Vec::new();
    text.push(b'{');
    for (at, (key, value)) in parameters.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        write(&mut text, key.as_str())?;
        text.push(b':');
        write(&mut text, value)?;
    }
    text.push(b'}');
    String::from_utf8(text).ok()
}
