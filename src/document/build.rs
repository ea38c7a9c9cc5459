//! The parser's events to values with places.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use serde_json::Value;

use super::comment;
use super::place::Index;
use super::scalar::{Resolved, resolve};
use super::text::Text;
use super::write::quote;
use super::{Content, Contents, Entry, Fault, FaultKind, Limits, Node, Span};

/// Reads every document of a text.
pub(super) fn build(text: &Text<'_>, limits: &Limits) -> Contents {
    let mut builder = Builder {
        limits,
        index: &text.index,
        parsed: &text.parsed,
        open: Vec::new(),
        anchors: HashMap::new(),
        alias_nodes: 0,
        documents: Vec::new(),
        faults: Vec::new(),
        scalars: Vec::new(),
    };
    for event in Parser::new_from_str(&text.parsed) {
        let step = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => Err(builder.syntax(&error)),
        };
        if let Err(fault) = step {
            builder.faults.push(*fault);
            break;
        }
    }
    let ignores = comment::find(text.original, &builder.scalars, &text.index);
    Contents { documents: builder.documents, faults: builder.faults, ignores }
}

/// A list or mapping that is being read.
struct Open {
    span: Span,
    anchor: usize,
    flow: bool,
    items: Items,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping { entries: Vec<Entry>, seen: HashMap<String, Span>, key: Option<(String, Span)> },
}

struct Builder<'t> {
    limits: &'t Limits,
    index: &'t Index,
    parsed: &'t str,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    alias_nodes: usize,
    documents: Vec<Node>,
    faults: Vec<Fault>,
    /// The bytes of scalars of several lines.
    scalars: Vec<(u32, u32)>,
}

type Stop = Box<Fault>;

fn refused(span: Span, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Refused, span, message)
}

fn malformed(span: Span, message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Malformed, span, message)
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: saphyr_parser::Span) -> Result<(), Stop> {
        let span = self.span(span.start, span.end);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some(tag) = tag {
                    self.refuse_tag(&tag.to_string(), span);
                }
                self.scalar(&text, style, anchor, span);
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                if let Some(tag) = tag {
                    self.refuse_tag(&tag.to_string(), span);
                }
                self.open(Items::Sequence(Vec::new()), anchor, span)
            }
            Event::MappingStart(anchor, tag) => {
                if let Some(tag) = tag {
                    self.refuse_tag(&tag.to_string(), span);
                }
                let items = Items::Mapping { entries: Vec::new(), seen: HashMap::new(), key: None };
                self.open(items, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.close(span);
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn span(&self, start: Marker, end: Marker) -> Span {
        let end = end.index().max(start.index());
        Span { start: self.index.position(start.index()), end: self.index.position(end) }
    }

    #[expect(clippy::unnecessary_box_returns, reason = "every step of the reading carries it")]
    fn syntax(&self, error: &ScanError) -> Stop {
        let at = *error.marker();
        let end = Marker::new(at.index() + 1, at.line(), at.col() + 1);
        if error.info().contains("recursion limit") {
            return Box::new(self.too_deep(self.span(at, end)));
        }
        let mut info = error.info().trim_end_matches('.').to_owned();
        if let Some(first) = info.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        Box::new(malformed(self.span(at, end), info))
    }

    fn too_deep(&self, span: Span) -> Fault {
        malformed(span, format!("lists and mappings are nested over {} deep", self.limits.depth))
    }

    fn refuse_tag(&mut self, tag: &str, span: Span) {
        let fault = refused(span, format!("tags such as `{tag}` are not allowed"));
        self.faults.push(fault.with_help("write the value without it; quotes make a string"));
    }

    fn open(&mut self, items: Items, anchor: usize, span: Span) -> Result<(), Stop> {
        if self.open.len() >= self.limits.depth {
            return Err(Box::new(self.too_deep(span)));
        }
        let first = self.parsed_from(span);
        let flow = first.starts_with(['[', '{']);
        self.open.push(Open { span, anchor, flow, items });
        Ok(())
    }

    /// Returns the text from the start of a stretch; places of the file fit the parsed text, since
    /// where they do not, only JSON was read.
    fn parsed_from(&self, span: Span) -> &str {
        let bom = self.index.position(0).offset;
        self.parsed.get((span.start.offset - bom) as usize..).unwrap_or("[")
    }

    fn close(&mut self, end: Span) {
        let Some(open) = self.open.pop() else { return };
        let (content, last) = match open.items {
            Items::Sequence(elements) => {
                let last = elements.last().map(|it| it.span.end);
                (Content::Sequence(elements), last)
            }
            Items::Mapping { entries, .. } => {
                let last = entries.last().map(|it| it.value.span.end.max(it.key_span.end));
                (Content::Mapping(entries), last)
            }
        };
        // The end of a block is only seen at the next token, which may be far below.
        let end = if open.flow { end.end } else { last.unwrap_or(open.span.start) };
        let start = match &content {
            Content::Mapping(entries) if !open.flow => {
                entries.first().map_or(open.span.start, |it| it.key_span.start)
            }
            _ => open.span.start,
        };
        self.put(Node { span: Span { start, end: end.max(start) }, content }, open.anchor, None);
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, anchor: usize, span: Span) {
        if span.start.line != span.end.line {
            self.scalars.push((span.start.offset, span.end.offset));
        }
        let (value, plain) = match style {
            ScalarStyle::Plain => match resolve(text) {
                Resolved::Value(value) => (value, Some(text)),
                Resolved::Ambiguous(reading) => {
                    let message =
                        format!("`{text}` is not the same to all YAML readers: {reading}");
                    let fault = Fault::new(FaultKind::AmbiguousScalar, span, message);
                    self.faults
                        .push(fault.with_help(format!("put a string in quotes: {}", quote(text))));
                    (text.into(), None)
                }
            },
            _ => (text.into(), None),
        };
        self.put(Node { span, content: Content::Scalar(value) }, anchor, plain);
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let message = "an alias stands inside of what it refers to";
            return Err(Box::new(malformed(span, message)));
        };
        self.alias_nodes += node.count();
        if self.alias_nodes > self.limits.alias_nodes {
            let message = format!("aliases expand to over {} values", self.limits.alias_nodes);
            return Err(Box::new(malformed(span, message)));
        }
        if self.open.len() + node.depth() > self.limits.depth {
            return Err(Box::new(self.too_deep(span)));
        }
        // The value is found where it is used.
        self.put(Node { span, ..node }, 0, None);
        Ok(())
    }

    /// Puts a value where it belongs: into the list, as key or value into the mapping, or among
    /// the documents. `plain` is the text of a plain scalar.
    fn put(&mut self, node: Node, anchor: usize, plain: Option<&str>) {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.documents.push(node),
            Some(Items::Sequence(elements)) => elements.push(node),
            Some(Items::Mapping { key: key @ None, .. }) => {
                let text = match &node.content {
                    Content::Scalar(Value::String(text)) => {
                        if plain == Some("<<") {
                            let fault = refused(node.span, "merge keys are not allowed");
                            self.faults.push(fault.with_help("write the keys out"));
                        }
                        text.clone()
                    }
                    Content::Scalar(_) => {
                        let text = plain.unwrap_or_default();
                        let message =
                            format!("the key `{text}` is {}, a key must be a string", node.sort());
                        let help = format!("put it in quotes: {}", quote(text));
                        self.faults.push(refused(node.span, message).with_help(help));
                        text.to_owned()
                    }
                    _ => {
                        let message = format!("a key is {}, it must be a string", node.sort());
                        self.faults.push(malformed(node.span, message));
                        String::new()
                    }
                };
                *key = Some((text, node.span));
            }
            Some(Items::Mapping { entries, seen, key }) => {
                let Some((key, key_span)) = key.take() else { return };
                if let Some(first) = seen.get(&key) {
                    let mut fault = Fault::new(
                        FaultKind::DuplicateKey,
                        key_span,
                        format!("key `{key}` is set twice"),
                    )
                    .with_help("keep one of the two");
                    fault.related.push((*first, "first set here"));
                    self.faults.push(fault);
                    return;
                }
                seen.insert(key.clone(), key_span);
                entries.push(Entry { key, key_span, value: node });
            }
        }
    }
}
