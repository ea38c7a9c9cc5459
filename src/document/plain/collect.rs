//! What is read of a plain file: values, counted, in vectors of the right size.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;

use serde_json::Value;

use super::cursor::LineCursor;
use super::scalar::LineScalar;
use crate::document::scalar::{Resolved, resolve};
use crate::document::{Content, Entry, Node, Position, Span};

/// The most values of a file. They are counted against a budget only when all are read, so they must not be many.
const VALUES: usize = 100_000;

/// The most levels of lists and mappings, since each is a call within another.
const LEVELS: usize = 64;

/// The most bytes of a key; of a longer one the parser may not see that it is one.
const KEY_BYTES: usize = 1_000;

/// Room for so many parts is kept for the next file of a thread: a file of a group has fewer open at a time, mostly.
const USUAL: usize = 64;

/// Up to so many keys are compared one by one with the next.
const FEW: usize = 16;

thread_local! {
    /// The memory that the last file was read in, for the next one.
    static SPARE: Cell<OpenParts> = const { Cell::new(OpenParts::NONE) };
}

/// The parts of what is open.
struct OpenParts {
    /// The elements of all lists that are open. A list gets memory of its own when it is closed, as much as it needs.
    elements: Vec<Node>,
    /// The entries of all mappings that are open, likewise.
    entries: Vec<Entry>,
}

impl OpenParts {
    const NONE: Self = Self { elements: Vec::new(), entries: Vec::new() };
}

impl Default for OpenParts {
    fn default() -> Self {
        Self::NONE
    }
}

pub(super) struct PlainReader<'t> {
    pub(super) cursor: LineCursor<'t>,
    open: OpenParts,
    pub(super) in_place_of_values: Vec<(Span, String)>,
    /// The keys and values that were read.
    pub(super) values: usize,
    levels: usize,
    most_levels: usize,
}

/// A list or mapping that is being read.
pub(super) struct OpenCollection {
    pub(super) start: Position,
    /// The place of its first part among those of all that are open.
    first: usize,
    /// The keys of a mapping that has many.
    keys: Option<HashSet<String>>,
}

impl Drop for PlainReader<'_> {
    fn drop(&mut self) {
        let OpenParts { mut elements, mut entries } = std::mem::take(&mut self.open);
        if elements.capacity() <= USUAL && entries.capacity() <= USUAL {
            // What is open still is of a file that was declined.
            elements.clear();
            entries.clear();
            // Without the memory of this thread, which ends, it is dropped.
            let _ = SPARE.try_with(|it| it.set(OpenParts { elements, entries }));
        }
    }
}

impl<'t> PlainReader<'t> {
    pub(super) fn new(cursor: LineCursor<'t>, most_levels: usize) -> Self {
        Self {
            cursor,
            open: SPARE.try_with(Cell::take).unwrap_or_default(),
            in_place_of_values: Vec::new(),
            values: 0,
            levels: 0,
            most_levels: most_levels.min(LEVELS),
        }
    }

    fn count(&mut self) -> Option<()> {
        self.values += 1;
        (self.values <= VALUES).then_some(())
    }

    fn open(&mut self, start: Position, first: usize) -> Option<OpenCollection> {
        self.count()?;
        self.levels += 1;
        (self.levels <= self.most_levels).then(|| OpenCollection { start, first, keys: None })
    }

    /// Opens a list that begins at a byte of this line.
    pub(super) fn open_sequence(&mut self, at: usize) -> Option<OpenCollection> {
        let start = self.cursor.place(at);
        self.open(start, self.open.elements.len())
    }

    /// Opens a mapping that begins at a byte of this line.
    pub(super) fn open_mapping(&mut self, at: usize) -> Option<OpenCollection> {
        let start = self.cursor.place(at);
        self.open(start, self.open.entries.len())
    }

    pub(super) fn add_element(&mut self, element: Node) {
        self.open.elements.push(element);
    }

    /// Adds an entry; declines a key that the mapping has already.
    pub(super) fn add_entry(
        &mut self,
        open: &mut OpenCollection,
        (key, key_span): (&'t str, Span),
        value: Node,
    ) -> Option<()> {
        let before = self.open.entries.get(open.first..)?;
        if before.len() < FEW {
            if before.iter().any(|it| it.key == key) {
                return None;
            }
        } else {
            let keys =
                open.keys.get_or_insert_with(|| before.iter().map(|it| it.key.clone()).collect());
            if !keys.insert(key.to_owned()) {
                return None;
            }
        }
        self.open.entries.push(Entry { key: key.to_owned(), key_span, value });
        Some(())
    }

    /// Closes a list; `end` is the place behind its bracket, and `None` for one without.
    pub(super) fn close_sequence(&mut self, open: &OpenCollection, end: Option<Position>) -> Node {
        self.levels -= 1;
        let elements = self.open.elements.split_off(open.first);
        let last = || elements.last().map_or(open.start, |it| it.span.end);
        let span = Span { start: open.start, end: end.unwrap_or_else(last) };
        Node { span, content: Content::Sequence(elements) }
    }

    /// Closes a mapping, likewise.
    pub(super) fn close_mapping(&mut self, open: &OpenCollection, end: Option<Position>) -> Node {
        self.levels -= 1;
        let entries = self.open.entries.split_off(open.first);
        let last = || entries.last().map_or(open.start, |it| it.value.span.end);
        let span = Span { start: open.start, end: end.unwrap_or_else(last) };
        Node { span, content: Content::Mapping(entries) }
    }

    /// Makes a key of a scalar; declines one that is not a string to all readers, and a merge key.
    pub(super) fn key(&mut self, scalar: &LineScalar<'t>) -> Option<(&'t str, Span)> {
        self.count()?;
        let Cow::Borrowed(key) = &scalar.text else { return None };
        let key: &'t str = key;
        let is_text = !scalar.is_plain || key != "<<" && resolve(key) == Resolved::Text;
        let is_short = scalar.end - scalar.start <= KEY_BYTES;
        (is_text && is_short).then(|| (key, self.cursor.span(scalar.start, scalar.end)))
    }

    /// Makes a value of a scalar; declines one that readers take for different values.
    pub(super) fn scalar(&mut self, scalar: LineScalar<'t>) -> Option<Node> {
        self.count()?;
        let string = |it: Cow<'_, str>| Value::String(it.into_owned());
        let value = match scalar.is_plain {
            false => string(scalar.text),
            true => match resolve(&scalar.text) {
                Resolved::Text => string(scalar.text),
                Resolved::Value(value) => value,
                Resolved::Ambiguous(_) => return None,
            },
        };
        let span = self.cursor.span(scalar.start, scalar.end);
        Some(Node { span, content: Content::Scalar(value) })
    }

    /// Makes the null of a value that is not there.
    pub(super) fn absent(&mut self, place: Position) -> Option<Node> {
        self.count()?;
        let span = Span { start: place, end: place };
        Some(Node { span, content: Content::Scalar(Value::Null) })
    }
}
