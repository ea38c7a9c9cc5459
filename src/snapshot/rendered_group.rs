//! What one group sets, ready to be written.

use serde_json::Value;

use super::rendered_room::{RenderedRoom, RoomShare};
use super::rendered_tail::{Hole, number, write_with_holes};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Classes, Group, Interpolation, Key, Table};

/// The entries of what a group sets itself: its classes, then its variables, then its config data, each in the order
/// of its table, which has the names.
#[derive(Debug)]
pub(super) struct RenderedGroup {
    /// Their texts, one behind the other.
    text: Box<str>,
    ends: Box<[EntryEnds]>,
    /// The strings in the texts into which facts are put; none in nearly all groups.
    holes: Box<[Hole]>,
    /// What the inherited values among them take; none in nearly all groups.
    _inherited: Option<RoomShare>,
}

/// Where the text of an entry and its holes end; they begin at the ends of the entry before.
#[derive(Clone, Copy, Debug, Default)]
struct EntryEnds {
    text: u32,
    holes: u32,
}

/// One class, one variable, or the config data of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderedEntry<'f> {
    /// The group that sets it.
    pub(super) group: GroupIndex,
    pub(super) kind: RenderedKind,
    pub(super) name: &'f str,
    /// Its text in the answer; empty where nothing is left of it.
    pub(super) text: &'f str,
    pub(super) holes: &'f [Hole],
}

/// The text of an entry in the answer, and the strings in it into which facts are put.
#[derive(Debug, Default)]
struct Fragment {
    text: String,
    holes: Vec<Hole>,
    /// How many bytes inherited values take.
    inherited: usize,
}

/// There is no room for the values that a group inherits.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoRoom {
    /// How many bytes they take.
    pub(super) bytes: usize,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RenderedKind {
    Class,
    Variable,
    ConfigData,
}

impl<'f> RenderedEntry<'f> {
    /// Returns what it is of.
    pub(super) fn key(&self) -> (RenderedKind, &'f str) {
        (self.kind, self.name)
    }
}

impl RenderedGroup {
    /// Writes the entries of a group, if there is room for the values that it inherits.
    pub(super) fn of(
        hierarchy: &Hierarchy,
        index: GroupIndex,
        interpolation: Interpolation,
        room: &RenderedRoom,
    ) -> Result<Self, NoRoom> {
        let (mut text, mut holes) = (String::new(), Vec::new());
        let mut ends = Vec::new();
        let mut inherited = 0;
        for (kind, name) in names(hierarchy.group(index)) {
            if let Some(entry) = fragment(hierarchy, index, kind, name, interpolation) {
                text.push_str(&entry.text);
                holes.extend(entry.holes);
                inherited += entry.inherited;
            }
            ends.push(EntryEnds { text: number(text.len()), holes: number(holes.len()) });
        }
        let inherited = match inherited {
            0 => None,
            bytes => Some(room.take(bytes).ok_or(NoRoom { bytes })?),
        };
        Ok(Self {
            text: text.into(),
            ends: ends.into(),
            holes: holes.into(),
            _inherited: inherited,
        })
    }

    /// Adds the entries to others, for the group that they were written for or one that sets the same.
    ///
    /// Returns `None` if there are no numbers for all places in their text.
    pub(super) fn add_to<'f>(
        &'f self,
        hierarchy: &'f Hierarchy,
        group: GroupIndex,
        entries: &mut Vec<RenderedEntry<'f>>,
    ) -> Option<()> {
        u32::try_from(self.text.len()).ok()?;
        let mut begin = EntryEnds::default();
        let mut ends = self.ends.iter().copied();
        names(hierarchy.group(group)).try_for_each(|(kind, name)| {
            let end = ends.next()?;
            let text = self.text.get(begin.text as usize..end.text as usize)?;
            let holes = self.holes.get(begin.holes as usize..end.holes as usize)?;
            begin = end;
            entries.push(RenderedEntry { group, kind, name, text, holes });
            Some(())
        })
    }
}

/// Returns the names of what a group sets, in the order of its entries.
fn names(group: &Group) -> impl Iterator<Item = (RenderedKind, &str)> {
    let classes = group.classes.keys().map(|it| (RenderedKind::Class, it.as_str()));
    let variables = group.variables.keys().map(|it| (RenderedKind::Variable, it.as_str()));
    let config_data = group.config_data.keys().map(|it| (RenderedKind::ConfigData, it.as_str()));
    classes.chain(variables).chain(config_data)
}

/// Returns the text of an entry for a group that sets it; `None` if nothing is left of it.
fn fragment(
    hierarchy: &Hierarchy,
    index: GroupIndex,
    kind: RenderedKind,
    name: &str,
    interpolation: Interpolation,
) -> Option<Fragment> {
    let mut fragment = Fragment { text: format!("{}:", Value::from(name)), ..Fragment::default() };
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

    fn object(&mut self, parameters: &[GroupParameter<'_>], interpolation: Interpolation) {
        self.text.push('{');
        for (at, GroupParameter { key, value, is_own }) in parameters.iter().enumerate() {
            let (text, holes) = (self.text.len(), self.holes.len());
            self.text.push_str(if at > 0 { "," } else { "" });
            self.text.push_str(&Value::from(key.as_str()).to_string());
            self.text.push(':');
            self.value(value, interpolation);
            if !is_own {
                let holes = self.holes.iter().skip(holes).map(Hole::memory);
                self.inherited += self.text.len() - text + holes.sum::<usize>();
            }
        }
        self.text.push('}');
    }
}

/// A parameter of a class that a group has.
#[derive(Clone, Copy, Debug)]
struct GroupParameter<'h> {
    key: &'h Key,
    value: &'h Value,
    /// Whether the group sets it itself.
    is_own: bool,
}

/// Returns the parameters of a class that a group has with all it inherits, in order.
fn parameters<'h>(
    hierarchy: &'h Hierarchy,
    index: GroupIndex,
    class: &str,
    of: fn(&Group) -> &Classes,
) -> Vec<GroupParameter<'h>> {
    let tables = hierarchy.lineage(index).filter_map(|group| {
        let table: &Table<Key, Value> = of(hierarchy.group(group)).get(class)?;
        Some((group == index, table))
    });
    let mut all: Vec<GroupParameter<'_>> = tables
        .flat_map(|(is_own, table)| {
            table.iter().map(move |(key, value)| GroupParameter { key, value, is_own })
        })
        .collect();
    // Of equal keys the nearest group's stands first, and stays.
    all.sort_by(|a, b| a.key.cmp(b.key));
    all.dedup_by(|a, b| a.key == b.key);
    all.retain(|it| !it.value.is_null());
    all
}
