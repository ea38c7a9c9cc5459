//! The parser's events to values with places.

mod mapping;

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use serde_json::Value;

use super::advice::advise;
use super::comment;
use super::fault::bounded;
use super::input::TextInput;
use super::place::PositionIndex;
use super::scalar::{Resolved, resolve};
use super::text::{Text, written_out};
use super::token;
use super::write::quote;
use super::{Content, Contents, Count, Entry, Fault, FaultKind, Limits, Node, Position, Span};
use mapping::{Mapping, Plain, key_text};

/// Reads every document of a text.
pub(super) fn build(
    text: &Text<'_>,
    limits: &Limits,
    count: &mut dyn FnMut(usize) -> Count,
) -> Contents {
    let mut builder = NodeBuilder {
        limits,
        index: &text.index,
        original: text.original,
        text,
        open: Vec::new(),
        elements: Vec::new(),
        entries: Vec::new(),
        anchors: HashMap::new(),
        alias_nodes: 0,
        alias_bytes: 0,
        anchored: 0,
        count,
        documents: Vec::new(),
        faults: Vec::new(),
        scalars: Vec::new(),
        in_place_of_values: Vec::new(),
    };
    let mut is_cut_off = false;
    for event in Parser::new(TextInput::new(&text.parsed)) {
        let step = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => Err(builder.syntax(&error)),
        };
        if let Err(fault) = step {
            builder.faults.push(*fault);
            is_cut_off = true;
            break;
        }
        if builder.faults.len() > limits.faults {
            let at = builder.faults.last().map_or(Span::START, |it| it.span);
            let message =
                format!("over {} faults: the rest of the file is not read", limits.faults);
            builder.faults.push(Fault::malformed(at, message));
            is_cut_off = true;
            break;
        }
    }
    let ignores = match comment::may_have_ignores(text.original) {
        true => comment::find(text.original, &builder.scalars, &text.index),
        false => Vec::new(),
    };
    Contents {
        documents: builder.documents,
        faults: builder.faults,
        is_cut_off,
        ignores,
        in_place_of_values: builder.in_place_of_values,
    }
}

/// A list or mapping that is being read.
struct Open {
    span: Span,
    anchor: usize,
    flow: bool,
    items: Items,
}

/// What is read of a list or mapping: what stands in the builder from a place on, up to the next one that is
/// open.
enum Items {
    Sequence { first: usize },
    Mapping(Mapping),
}

/// How many values all anchors of a file may name: each keeps a copy, and they may lie in each other.
const ANCHORED: usize = 1_000_000;

struct NodeBuilder<'t> {
    text: &'t Text<'t>,
    limits: &'t Limits,
    count: &'t mut dyn FnMut(usize) -> Count,
    index: &'t PositionIndex,
    original: &'t str,
    open: Vec<Open>,
    /// The elements of all lists that are open. A list gets memory of its own when it is closed, as much as it needs.
    elements: Vec<Node>,
    /// The entries of all mappings that are open, likewise.
    entries: Vec<Entry>,
    anchors: HashMap<usize, Node>,
    alias_nodes: usize,
    alias_bytes: usize,
    anchored: usize,
    documents: Vec<Node>,
    faults: Vec<Fault>,
    /// The bytes of scalars of several lines.
    scalars: Vec<(u32, u32)>,
    in_place_of_values: Vec<(Span, String)>,
}

type FatalFault = Box<Fault>;

impl NodeBuilder<'_> {
    fn event(&mut self, event: Event<'_>, span: saphyr_parser::Span) -> Result<(), FatalFault> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let span = self.begin(tag.as_deref(), span)?;
                self.scalar(text, style, anchor, span);
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                let span = self.begin(tag.as_deref(), span)?;
                let first = self.elements.len();
                self.open(Items::Sequence { first }, anchor, span)
            }
            Event::MappingStart(anchor, tag) => {
                let span = self.begin(tag.as_deref(), span)?;
                let mapping = Mapping::beginning_at(self.entries.len());
                self.open(Items::Mapping(mapping), anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close(span.end);
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, self.span(span.start, span.end)),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    /// Counts a value and refuses its tag; returns where the parser says that it is.
    fn begin(&mut self, tag: Option<&Tag>, span: saphyr_parser::Span) -> Result<Span, FatalFault> {
        let span = self.span(span.start, span.end);
        self.counted(1, span)?;
        if let Some(tag) = tag {
            self.refuse_tag(&tag.to_string(), span);
        }
        Ok(span)
    }

    fn counted(&mut self, nodes: usize, span: Span) -> Result<(), FatalFault> {
        match (self.count)(nodes) {
            Count::Continue => Ok(()),
            Count::Stop => Err(Box::new(Fault::malformed(span, "the budget of values is used up"))),
        }
    }

    fn span(&self, start: Marker, end: Marker) -> Span {
        let end = end.index().max(start.index());
        Span { start: self.index.position(start.index()), end: self.index.position(end) }
    }

    #[expect(clippy::unnecessary_box_returns, reason = "every step of the reading carries it")]
    fn syntax(&self, error: &ScanError) -> FatalFault {
        let at = *error.marker();
        let end = Marker::new(at.index() + 1, at.line(), at.col() + 1);
        if error.info().contains("recursion limit") {
            return Box::new(self.too_deep(self.span(at, end)));
        }
        let mut info = error.info().trim_end_matches('.').to_owned();
        if let Some(first) = info.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let span = self.span(at, end);
        let Some(advice) = advise(self.original, self.at(span.start)) else {
            return Box::new(Fault::malformed(span, info));
        };
        let span = |(start, end): (usize, usize)| Span {
            start: self.place(start),
            end: self.place(end.max(start)),
        };
        let mut fault = Fault::malformed(span(advice.at), advice.message).with_help(advice.help);
        fault.related.extend(advice.related.map(|(place, message)| (span(place), message)));
        Box::new(fault)
    }

    fn too_deep(&self, span: Span) -> Fault {
        Fault::malformed(
            span,
            format!("lists and mappings are nested over {} deep", self.limits.depth),
        )
    }

    fn refuse_tag(&mut self, tag: &str, span: Span) {
        let fault = Fault::refused(span, format!("tags such as `{tag}` are not allowed"));
        self.faults.push(fault.with_help("write the value without it; quotes make a string"));
    }

    fn open(&mut self, items: Items, anchor: usize, span: Span) -> Result<(), FatalFault> {
        if self.open.len() >= self.limits.depth {
            return Err(Box::new(self.too_deep(span)));
        }
        let mut start = token::collection(self.original, self.at(span.start));
        // The parser's stretch of a bracket takes in the blanks before a comment behind it.
        let token = self.original.get(start..self.at(span.end)).unwrap_or_default();
        let flow = token.starts_with(['[', '{']);
        // A list that is not indented below its key is said to begin behind its first dash.
        if let (Items::Sequence { .. }, false, Some(key)) = (&items, flow, self.key_end()) {
            start = token::first_dash(self.original, key).unwrap_or(start);
        }
        let span = Span { start: self.place(start), ..span };
        self.open.push(Open { span, anchor, flow, items });
        Ok(())
    }

    /// Returns the place behind the key whose value is read.
    fn key_end(&self) -> Option<usize> {
        match &self.open.last()?.items {
            Items::Mapping(Mapping { key: Some((_, span)), .. }) => Some(self.at(span.end)),
            _ => None,
        }
    }

    /// Returns the byte of the text at a place.
    fn at(&self, place: Position) -> usize {
        byte_of(self.index, place)
    }

    /// Returns the place of a byte of the text.
    fn place(&self, at: usize) -> Position {
        self.index.of_byte(at)
    }

    fn close(&mut self, seen: Marker) {
        let Some(open) = self.open.pop() else { return };
        let (content, last) = match open.items {
            Items::Sequence { first } => {
                let elements: Vec<Node> = self.elements.drain(first..).collect();
                let last = elements.last().map(|it| it.span.end);
                (Content::Sequence(elements), last)
            }
            Items::Mapping(mapping) => {
                let entries: Vec<Entry> = self.entries.drain(mapping.first..).collect();
                let last = mapping.end(entries.last());
                (Content::Mapping(entries), last)
            }
        };
        // The end of a block is only seen at the next token, which may be far below.
        let end = if open.flow {
            let behind = last.map_or(self.at(open.span.start) + 1, |it| self.at(it));
            match token::closing_bracket(self.original, behind) {
                Some(end) => self.place(end),
                None => self.index.position(seen.index()),
            }
        } else {
            last.unwrap_or(open.span.start)
        };
        let start = match &content {
            Content::Mapping(entries) if !open.flow => {
                entries.first().map_or(open.span.start, |it| it.key_span.start)
            }
            _ => open.span.start,
        };
        self.put(
            Node { span: Span { start, end: end.max(start) }, content },
            open.anchor,
            Plain::No,
        );
    }

    fn scalar(&mut self, text: Cow<'_, str>, style: ScalarStyle, anchor: usize, span: Span) {
        if span.start.line != span.end.line {
            self.scalars.push((span.start.offset, span.end.offset));
        }
        let stretch = (self.at(span.start), self.at(span.end));
        let restored = match style {
            ScalarStyle::DoubleQuoted => None,
            _ => written_out(self.text, &text, stretch),
        };
        let mut text = restored.map_or(text, Cow::Owned);
        let (start, end) = token::scalar(self.original, style, text.is_empty(), stretch);
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            && token::is_cut_off(self.original, &text, (start, stretch.1))
        {
            text.to_mut().pop();
        }
        let span = match (start, end) == stretch {
            true => span,
            false => Span { start: self.place(start), end: self.place(end.max(start)) },
        };
        let string = |text: Cow<'_, str>| Content::Scalar(Value::String(text.into_owned()));
        if style != ScalarStyle::Plain {
            return self.put(Node { span, content: string(text) }, anchor, Plain::No);
        }
        match resolve(&text) {
            Resolved::Text => self.put(Node { span, content: string(text) }, anchor, Plain::Text),
            Resolved::Ambiguous(reading) => {
                self.faults.push(ambiguous(&text, reading, span));
                self.put(Node { span, content: string(text) }, anchor, Plain::No);
            }
            Resolved::Value(value) => {
                let absent = text.is_empty() && start == end;
                let behind_mark = if absent { self.behind_mark(span) } else { None };
                if let Some(place) = behind_mark {
                    self.comment_as_value(place);
                }
                let span = behind_mark.unwrap_or(span);
                let content = Content::Scalar(value);
                self.put(Node { span, content }, anchor, Plain::Other(&text));
            }
        }
    }

    /// Notes a comment on the line of a value that is not there, such as `channel: #ops`.
    fn comment_as_value(&mut self, place: Span) {
        let at = self.at(place.start);
        let rest = self.original.get(at..).unwrap_or_default();
        let comment = rest.trim_start_matches([' ', '\t']);
        if comment.len() < rest.len()
            && let Some(text) = comment::as_value(comment)
        {
            let start = at + rest.len() - comment.len();
            let span = Span { start: self.place(start), end: self.place(start + text.len()) };
            self.in_place_of_values.push((span, bounded(text.to_owned())));
        }
    }

    /// Returns the place of a value that is not there: behind the colon or dash it would follow.
    fn behind_mark(&self, span: Span) -> Option<Span> {
        let open = self.open.last()?;
        let (from, mark) = match &open.items {
            Items::Mapping(Mapping { key: Some((_, key)), .. }) => (key.end, b':'),
            Items::Sequence { first } if !open.flow => {
                let elements = self.elements.get(*first..).unwrap_or_default();
                (elements.last().map_or(open.span.start, |it| it.span.end), b'-')
            }
            _ => return None,
        };
        let at = token::skip(self.original, self.at(from), |_| false);
        let found = self.original.as_bytes().get(at) == Some(&mark);
        // An anchor stands between the two.
        let bare = found && self.at(span.start) <= token::skip(self.original, at + 1, |_| false);
        let place = self.place(at + 1);
        bare.then_some(Span { start: place, end: place })
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), FatalFault> {
        let Some(node) = self.anchors.get(&anchor) else { return self.lost_alias(anchor, span) };
        let (nodes, depth) = (node.count(), node.depth());
        self.alias_nodes += nodes;
        self.alias_bytes += node.text_bytes();
        if self.alias_nodes > self.limits.alias_nodes {
            let message = format!("aliases expand to over {} values", self.limits.alias_nodes);
            return Err(Box::new(Fault::malformed(span, message)));
        }
        if self.alias_bytes > self.limits.alias_bytes {
            let message = format!("aliases expand to over {} bytes", self.limits.alias_bytes);
            return Err(Box::new(Fault::malformed(span, message)));
        }
        if self.open.len() + depth > self.limits.depth {
            return Err(Box::new(self.too_deep(span)));
        }
        self.counted(nodes, span)?;
        let Some(node) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
        // The value is found where it is used.
        self.put(Node { span, ..node }, 0, Plain::No);
        Ok(())
    }

    /// Says why the value of an alias is not known.
    fn lost_alias(&mut self, anchor: usize, span: Span) -> Result<(), FatalFault> {
        if self.open.iter().any(|it| it.anchor == anchor) {
            let message = "an alias stands inside of what it refers to";
            return Err(Box::new(Fault::malformed(span, message)));
        }
        if self.anchored > ANCHORED {
            // That it was not kept is a fault already.
            let content = Content::Scalar(Value::Null);
            self.put(Node { span, content }, 0, Plain::No);
            return Ok(());
        }
        let message = "an alias refers to an anchor of an earlier document";
        let help = "an anchor ends with its document: write the value here, too";
        Err(Box::new(Fault::malformed(span, message).with_help(help)))
    }

    /// Puts a value where it belongs: into the list, as key or value into the mapping, or among
    /// the documents.
    fn put(&mut self, node: Node, anchor: usize, plain: Plain<'_>) {
        if anchor > 0 {
            self.keep(anchor, &node);
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.documents.push(node),
            Some(Items::Sequence { .. }) => self.elements.push(node),
            Some(Items::Mapping(mapping)) if mapping.key.is_none() => {
                let span = node.span;
                let (index, original) = (self.index, self.original);
                let written = || original.get(byte_of(index, span.start).checked_sub(1)?..);
                let (text, fault) = key_text(node, plain, written);
                mapping.key = Some((text, span));
                if let Some(fault) = fault {
                    self.faults.push(fault);
                }
            }
            Some(Items::Mapping(mapping)) => {
                if let Err(fault) = mapping.add(node, &mut self.entries) {
                    self.faults.push(fault);
                }
            }
        }
    }

    /// Keeps the value of an anchor for the aliases that follow.
    fn keep(&mut self, anchor: usize, node: &Node) {
        self.anchored += node.count();
        if self.anchored > ANCHORED {
            let message = format!("anchors name over {ANCHORED} values in all");
            self.faults.push(Fault::malformed(node.span, message));
        } else {
            self.anchors.insert(anchor, node.clone());
        }
    }
}

/// Returns what is wrong with a plain scalar that readers take for different values.
fn ambiguous(text: &str, reading: &str, span: Span) -> Fault {
    let message = format!("`{text}` is not the same to all YAML readers: {reading}");
    let mut help = format!("put a string in quotes: {}", quote(text));
    if reading.ends_with("a boolean") {
        help.push_str("; a boolean is `true` or `false`");
    }
    Fault::new(FaultKind::AmbiguousScalar, span, message).with_help(help)
}

/// Returns the byte of a text at a place.
fn byte_of(index: &PositionIndex, place: Position) -> usize {
    place.offset.saturating_sub(index.skipped_bytes()) as usize
}
