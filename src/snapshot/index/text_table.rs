//! The texts that rules compare values with, as one look needs them.
//!
//! An estate of many groups has more texts than fit into the caches of a processor, and a node asks for a few of
//! them: so all that one look-up needs lies together, and costs two cache lines.

use std::hash::BuildHasher as _;

use bytemuck::cast_slice;
use hashbrown::DefaultHashBuilder;

use super::super::lists::NumberLists;
use super::super::paths::PathId;
use super::numbers::{GroupNumber, NONE};
use super::texts::{TextIndex, TextSide};

/// How many words stand before the text of a record: the path and the side, how many bytes the text has, how many
/// groups ask for it.
const HEAD: usize = 3;

/// The number by which compiled rules name a text: where its record starts. Of two texts, the one with the higher
/// number has the higher place.
pub(super) type TextPlace = u32;

/// Texts with the groups that ask for them.
#[derive(Debug)]
pub(super) struct TextTable {
    /// By the hash of a text, or behind; half of them are free.
    slots: Box<[TextSlot]>,
    /// One text behind the other: its head, its bytes, its groups.
    records: Box<[u32]>,
    hasher: DefaultHashBuilder,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct TextSlot {
    /// A part of the text's hash that does not choose the slot.
    tag: u32,
    /// Where the record starts, or [`NONE`].
    start: u32,
}

/// A text that is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'t> {
    /// Its path and side.
    place: u32,
    /// The part of its hash that does not choose the slot.
    tag: u32,
    text: &'t str,
    /// The number of the first slot where it may be.
    at: usize,
    /// That slot, read ahead.
    first: TextSlot,
}

/// A text that rules ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundText<'t> {
    /// Where its record starts.
    pub(super) place: TextPlace,
    /// The groups that ask for it.
    pub(super) asked_by: &'t [GroupNumber],
}

impl TextTable {
    /// Takes the texts of values and elements; parts are searched for, not looked up. Returns the place of each text,
    /// too, by its number.
    pub(super) fn new(texts: &TextIndex, asked_by: &NumberLists) -> (Self, Vec<TextPlace>) {
        let looked_up = || (0..).zip(texts.iter()).filter(|(_, it)| it.1 != TextSide::Part);
        let free = TextSlot { tag: 0, start: NONE };
        let size = looked_up().count() * 2 + 1;
        let mut table = Self {
            slots: vec![free; size].into(),
            records: Box::default(),
            hasher: DefaultHashBuilder::default(),
        };
        let mut records: Vec<u32> = Vec::new();
        let mut places = vec![NONE; texts.len()];
        for (id, (path, side, text)) in looked_up() {
            let hash = table.hash(place(*path, *side), text);
            let start = u32::try_from(records.len()).unwrap_or(NONE);
            let groups = asked_by.get(id);
            let length = |it: usize| u32::try_from(it).unwrap_or(NONE);
            if let Some(place) = places.get_mut(id as usize) {
                *place = start;
            }
            records.extend([place(*path, *side), length(text.len()), length(groups.len())]);
            let words = text.as_bytes().chunks(4).map(|it| {
                let mut word = [0; 4];
                word.iter_mut().zip(it).for_each(|(to, from)| *to = *from);
                u32::from_ne_bytes(word)
            });
            records.extend(words);
            records.extend_from_slice(groups);
            let mut at = table.slot(hash);
            while let Some(slot) = table.slots.get_mut(at) {
                if slot.start == NONE {
                    *slot = TextSlot { tag: tag(hash), start };
                    break;
                }
                at = table.behind(at);
            }
        }
        table.records = records.into();
        (table, places)
    }

    /// Returns the table with other numbers of groups.
    pub(super) fn renumbered(&self, number: impl Fn(GroupNumber) -> GroupNumber) -> Self {
        let mut records = self.records.clone();
        let mut rest = &mut *records;
        while let Some((&mut [_, bytes, groups], behind)) = rest.split_first_chunk_mut::<HEAD>() {
            let text = (bytes as usize).div_ceil(4).min(behind.len());
            let (_, behind) = behind.split_at_mut(text);
            let (asked_by, behind) = behind.split_at_mut((groups as usize).min(behind.len()));
            for it in asked_by {
                *it = number(*it);
            }
            rest = behind;
        }
        Self { slots: self.slots.clone(), records, hasher: self.hasher.clone() }
    }

    /// Prepares to look up a text. Several can be prepared together, so that memory is read for all at once.
    pub(super) fn probe<'t>(&self, path: PathId, side: TextSide, text: &'t str) -> Probe<'t> {
        let place = place(path, side);
        let hash = self.hash(place, text);
        let at = self.slot(hash);
        let first = self.slots.get(at).copied().unwrap_or(TextSlot { tag: 0, start: NONE });
        Probe { place, tag: tag(hash), text, at, first }
    }

    /// Looks up a text.
    pub(super) fn get(&self, probe: &Probe<'_>) -> Option<FoundText<'_>> {
        let (mut slot, mut at) = (probe.first, probe.at);
        while slot.start != NONE {
            if slot.tag == probe.tag
                && let Some(found) = self.record(slot.start, probe)
            {
                return Some(found);
            }
            at = self.behind(at);
            slot = *self.slots.get(at)?;
        }
        None
    }

    /// Returns a record if it is that of the text.
    fn record(&self, start: u32, probe: &Probe<'_>) -> Option<FoundText<'_>> {
        let (&[here, bytes, groups], rest) =
            self.records.get(start as usize..)?.split_first_chunk::<HEAD>()?;
        if here != probe.place || bytes as usize != probe.text.len() {
            return None;
        }
        let (text, rest) = rest.split_at_checked((bytes as usize).div_ceil(4))?;
        let is_it = cast_slice::<u32, u8>(text).get(..bytes as usize)? == probe.text.as_bytes();
        is_it.then_some(FoundText { place: start, asked_by: rest.get(..groups as usize)? })
    }

    fn hash(&self, place: u32, text: &str) -> u64 {
        self.hasher.hash_one((place, text))
    }

    /// Returns the slot where a text should be: the lower half of its hash as a part of all slots.
    fn slot(&self, hash: u64) -> usize {
        let slots = self.slots.len() as u64;
        usize::try_from(((hash & u64::from(u32::MAX)) * slots) >> 32).unwrap_or_default()
    }

    fn behind(&self, at: usize) -> usize {
        if at + 1 < self.slots.len() { at + 1 } else { 0 }
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Joins a path and a side.
fn place(path: PathId, side: TextSide) -> u32 {
    path << 2 | side as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_found_with_its_groups() {
        let mut texts = TextIndex::default();
        let text = |number: usize| format!("{}-{number}", "é".repeat(number % 7));
        let mut pairs = Vec::new();
        for number in 0..1000 {
            let side = if number % 2 == 0 { TextSide::Value } else { TextSide::Element };
            let id = texts.intern(3, side, &text(number).into());
            pairs.extend((0..id % 5).map(|group| (id, group)));
        }
        let part = texts.intern(3, TextSide::Part, &"part".into());
        let asked_by = NumberLists::of(texts.len(), &pairs);
        let (table, places) = TextTable::new(&texts, &asked_by);
        let find = |path, side, text: &str| {
            table.get(&table.probe(path, side, text)).map(|it| (it.place, it.asked_by))
        };
        for (id, (path, side, text)) in (0..).zip(texts.iter()).filter(|(id, _)| *id != part) {
            let place = places[id as usize];
            assert_eq!(find(*path, *side, text), Some((place, asked_by.get(id))), "{text}");
            assert_eq!(find(path + 1, *side, text), None);
        }
        assert_eq!((find(3, TextSide::Part, "part"), places[part as usize]), (None, NONE));
        assert!(places[..part as usize].is_sorted_by(|a, b| a < b));
        for number in 1000..9000 {
            assert_eq!(find(3, TextSide::Value, &text(number)), None);
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let (table, _) = TextTable::new(&TextIndex::default(), &NumberLists::default());
        assert!(table.get(&table.probe(0, TextSide::Value, "")).is_none());
    }
}
