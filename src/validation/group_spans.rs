//! Where the parts of a group are written, as spans in a fixed order.

use std::collections::BTreeSet;

use super::span_list::SpanList;
use crate::document::{Entry, Span};

/// A part of a group that has a place of its own where it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupPart {
    Id,
    Environment,
    Parent,
    Rule,
}

impl GroupPart {
    /// Every part, in the order of their spans.
    pub(super) const ALL: [Self; 4] = [Self::Id, Self::Environment, Self::Parent, Self::Rule];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Where the parts of a group are written.
#[derive(Clone, Debug)]
pub(super) struct GroupSpans {
    /// The group itself; the parts that are written; the pinned nodes; the values: of classes, variables and config data.
    spans: SpanList,
    /// How many nodes are pinned.
    pins: u32,
    /// The parts that are written, a bit for each.
    parts: u8,
}

impl GroupSpans {
    pub(super) fn new(
        place: Span,
        part: impl Fn(GroupPart) -> Option<Span>,
        pins: &[Span],
        values: impl Iterator<Item = Span>,
    ) -> Self {
        let spans = GroupPart::ALL.map(part);
        let written = GroupPart::ALL.iter().zip(&spans).filter(|(_, span)| span.is_some());
        Self {
            parts: written.fold(0, |all, (part, _)| all | part.bit()),
            pins: u32::try_from(pins.len()).unwrap_or(u32::MAX),
            spans: std::iter::once(place)
                .chain(spans.into_iter().flatten())
                .chain(pins.iter().copied())
                .chain(values)
                .collect(),
        }
    }

    pub(super) fn place(&self) -> Span {
        self.spans.get(0).unwrap_or(Span::START)
    }

    pub(super) fn part(&self, part: GroupPart) -> Option<Span> {
        let before = (self.parts & (part.bit() - 1)).count_ones();
        let is_written = self.parts & part.bit() != 0;
        is_written.then(|| self.spans.get(1 + before as usize)).flatten()
    }

    /// Returns how many nodes are pinned.
    pub(super) fn pin_count(&self) -> usize {
        self.pins as usize
    }

    fn before_pins(&self) -> usize {
        1 + self.parts.count_ones() as usize
    }

    pub(super) fn pins(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().skip(self.before_pins()).take(self.pin_count())
    }

    pub(super) fn value(&self, number: usize) -> Option<Span> {
        self.spans.get(self.before_pins() + self.pin_count() + number)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().skip(self.before_pins() + self.pin_count())
    }
}

/// A place of a value, or of the key that it is set by.
pub(super) struct ValuePlace {
    span: Span,
    /// Where the key begins, and the one that it stands below, which is itself for one at the top.
    keys: [u32; 2],
}

impl ValuePlace {
    fn of(entry: &Entry, above: &Entry, span: Span) -> Self {
        Self { span, keys: [above, entry].map(|it| it.key_span.start.offset) }
    }

    /// Returns whether a table has what is here: it leaves out what stands below a key that is not a name.
    pub(super) fn is_in_table(&self, refused: &BTreeSet<u32>) -> bool {
        !self.keys.iter().any(|it| refused.contains(it))
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }
}

/// Returns where `classes` are written, in the order of the table that is read of them: each class with each parameter
/// and its value.
pub(super) fn class_places(entries: &[Entry]) -> Vec<ValuePlace> {
    let mut places = Vec::new();
    for class in classes(entries) {
        places.push(ValuePlace::of(class, class, class.key_span));
        for parameter in sorted(class.value.entries(), key) {
            let spans = [parameter.key_span, parameter.value.span];
            places.extend(spans.map(|it| ValuePlace::of(parameter, class, it)));
        }
    }
    places
}

/// Returns where `variables` are written, in the order of the table that is read of them.
pub(super) fn variable_places(entries: &[Entry]) -> Vec<ValuePlace> {
    sorted(entries, key).into_iter().map(|it| ValuePlace::of(it, it, it.key_span)).collect()
}

/// Returns where the keys of `config_data` are written, in the order of the tables that are read of them.
pub(super) fn config_data_places(entries: &[Entry]) -> Vec<ValuePlace> {
    let mut places = Vec::new();
    for class in classes(entries) {
        let keys = sorted(class.value.entries(), key);
        places.extend(keys.into_iter().map(|it| ValuePlace::of(it, class, it.key_span)));
    }
    places
}

/// Returns classes in the order of the table that is read of them; of one that is set twice, the last.
fn classes(entries: &[Entry]) -> Vec<&Entry> {
    let mut classes = sorted(entries, class_name);
    classes.dedup_by(|later, earlier| {
        let is_same = class_name(later) == class_name(earlier);
        if is_same {
            *earlier = *later;
        }
        is_same
    });
    classes
}

/// Returns entries in the order of the table that is read of them.
fn sorted(entries: &[Entry], name: fn(&Entry) -> &str) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by_key(|it| name(it));
    entries
}

fn key(entry: &Entry) -> &str {
    &entry.key
}

/// Returns the name of a class without the leading `::` that it may be written with.
fn class_name(entry: &Entry) -> &str {
    entry.key.strip_prefix("::").unwrap_or(&entry.key)
}
