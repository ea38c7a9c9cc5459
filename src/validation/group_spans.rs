//! Where the parts of a group are written, as spans in a fixed order.

use super::span_list::SpanList;
use crate::document::{Entry, Node, Span};
use crate::model::{ClassName, Key, VariableName};

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
    /// The group itself; the parts that are written; the pinned nodes; the values as in [`value_spans`].
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
        values: &[Span],
    ) -> Self {
        let spans = GroupPart::ALL.map(part);
        let written = GroupPart::ALL.iter().zip(&spans).filter(|(_, span)| span.is_some());
        Self {
            parts: written.fold(0, |all, (part, _)| all | part.bit()),
            pins: u32::try_from(pins.len()).unwrap_or(u32::MAX),
            spans: std::iter::once(place)
                .chain(spans.into_iter().flatten())
                .chain(pins.iter().copied())
                .chain(values.iter().copied())
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

/// Returns where the values of a group are written, in the order of the tables that are read of them: each class with
/// each parameter and its value; the variables; the keys of config data. What the tables leave out has no span.
pub(super) fn value_spans(document: &Node) -> Vec<Span> {
    let entries = |key: &str| document.get(key).map(Node::entries).unwrap_or_default();
    let mut spans = Vec::new();
    for class in classes(entries("classes")) {
        spans.push(class.key_span);
        for parameter in sorted(class.value.entries(), key, is_key) {
            spans.extend([parameter.key_span, parameter.value.span]);
        }
    }
    let variables = sorted(entries("variables"), key, |it| VariableName::normalised(it).is_ok());
    spans.extend(variables.into_iter().map(|it| it.key_span));
    for class in classes(entries("config_data")) {
        let keys = sorted(class.value.entries(), key, is_key);
        spans.extend(keys.into_iter().map(|it| it.key_span));
    }
    spans
}

/// Returns classes in the order of the table that is read of them; of one that is set twice, the last.
fn classes(entries: &[Entry]) -> Vec<&Entry> {
    let mut classes = sorted(entries, class_name, |it| ClassName::normalised(it).is_ok());
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
fn sorted(
    entries: &[Entry],
    name: fn(&Entry) -> &str,
    is_accepted: fn(&str) -> bool,
) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = entries.iter().filter(|it| is_accepted(&it.key)).collect();
    entries.sort_by_key(|it| name(it));
    entries
}

fn is_key(text: &str) -> bool {
    Key::normalised(text).is_ok()
}

fn key(entry: &Entry) -> &str {
    &entry.key
}

/// Returns the name of a class without the leading `::` that it may be written with.
fn class_name(entry: &Entry) -> &str {
    entry.key.strip_prefix("::").unwrap_or(&entry.key)
}
