//! Lists and mappings over several lines: a part of them is some whole lines.

use serde_json::{Map, Value};

use super::super::comment::is_ignore;
use super::super::token::skip;
use super::super::write;
use super::super::{Entry, Node};
use super::align::AlignStep;
use super::plan::{Plan, ValueSlot};

/// A part of a list or mapping.
struct BlockPart {
    /// Where its key or dash stands.
    start: usize,
    /// Whether nothing stands before it in its line.
    own_line: bool,
    /// Where the comments begin that stand above it and go with it, or else its line.
    lead: usize,
    /// Whether a comment above it is about the document and stays.
    has_header: bool,
    /// Where the line behind it begins.
    end: usize,
}

/// Where the comments begin that belong to a line; the line itself where it has none.
pub(super) struct Lead {
    /// All of them.
    pub(super) all: usize,
    /// Those from the first that silences a warning.
    pub(super) ignores: usize,
}

/// Writes a new part, given its number in what is wanted and the keys that lead to it.
type NewPart<'a, 'v, P> = &'a dyn Fn(&P, usize, &mut Vec<&'v str>) -> Option<String>;

impl Plan<'_> {
    pub(super) fn block_mapping<'v>(
        &mut self,
        entries: &[Entry],
        fields: &'v Map<String, Value>,
        (steps, slot): (&[AlignStep], ValueSlot),
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let indent = self.column(self.entry_start(entries.first()?));
        let mut parts = Vec::new();
        let mut marks = Vec::new();
        for entry in entries {
            let start = self.entry_start(entry);
            let colon = skip(self.text, entry.key_span.end.offset as usize, |_| false);
            if self.byte(colon) != Some(b':') || self.column(start) != indent {
                return None;
            }
            marks.push(colon + 1);
            parts.push(self.part(start, end_of(&entry.value, colon + 1), indent)?);
        }
        let names: Vec<(&'v String, &'v Value)> = fields.iter().collect();
        let quoted = self.byte(entries.first()?.key_span.start.offset as usize) == Some(b'"');
        let line = |plan: &Self, new: usize, way: &mut Vec<&'v str>| -> Option<String> {
            let (key, value) = *names.get(new)?;
            let key_text =
                if quoted { write::quote(key) } else { write::inline(&key.as_str().into()) };
            way.push(key);
            let mark = format!("{}:", write::block_key(&key_text, indent));
            let text = plan.line(&mark, value, indent, way);
            way.pop();
            Some(text)
        };
        self.find_leads(&mut parts, indent, slot);
        // What is put in at the end of a value stands before what is put in behind it, at the same place.
        for step in steps {
            let AlignStep::Keep { old, new } = *step else { continue };
            let (entry, mark) = (entries.get(old)?, *marks.get(old)?);
            let (key, value) = *names.get(new)?;
            way.push(key);
            self.value(&entry.value, value, ValueSlot::Behind { mark, indent }, way);
            way.pop();
        }
        self.lines(&parts, steps, indent, way, &line)
    }

    pub(super) fn block_sequence<'v>(
        &mut self,
        node: &Node,
        elements: &[Node],
        wanted: &'v [Value],
        (steps, slot): (&[AlignStep], ValueSlot),
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let first = node.span.start.offset as usize;
        let indent = self.column(first);
        let mut parts = Vec::new();
        let mut marks = Vec::new();
        let mut from = first;
        for element in elements {
            let dash = skip(self.text, from, |_| false);
            if self.byte(dash) != Some(b'-') || self.column(dash) != indent {
                return None;
            }
            from = end_of(element, dash + 1);
            marks.push(dash + 1);
            parts.push(self.part(dash, from, indent)?);
        }
        let line = |plan: &Self, new: usize, way: &mut Vec<&'v str>| -> Option<String> {
            Some(plan.line("-", wanted.get(new)?, indent, way))
        };
        self.find_leads(&mut parts, indent, slot);
        for step in steps {
            let AlignStep::Keep { old, new } = *step else { continue };
            let slot = ValueSlot::Behind { mark: *marks.get(old)?, indent };
            self.value(elements.get(old)?, wanted.get(new)?, slot, way);
        }
        self.lines(&parts, steps, indent, way, &line)
    }

    /// Returns where an entry begins: at its key, or at the question mark before it.
    pub(super) fn entry_start(&self, entry: &Entry) -> usize {
        let key = entry.key_span.start.offset as usize;
        let before = self.text.get(..key).unwrap_or_default().trim_end();
        let Some(mark) = before.strip_suffix('?').map(str::len) else { return key };
        let lead = self.text.get(self.line_start(mark)..mark).unwrap_or_default();
        // A text or a comment may end so.
        let is_mark = lead.bytes().all(|it| matches!(it, b' ' | b'-' | b'?'));
        if is_mark && self.column(mark) < self.column(key) { mark } else { key }
    }

    /// Measures a part: its lines, and comments below that are indented as what is inside of it.
    fn part(&self, start: usize, end: usize, indent: usize) -> Option<BlockPart> {
        let before = self.text.get(self.line_start(start)..start)?;
        let own_line = before.bytes().all(|it| it == b' ');
        if !own_line && !before.bytes().all(|it| matches!(it, b' ' | b'-')) {
            return None;
        }
        let rest = self.text.get(end..self.line_end(end))?.trim_start();
        if !rest.is_empty() && !rest.starts_with(['#', '&', '!']) {
            return None;
        }
        let mut end = self.next_line(end);
        let mut at = end;
        while at < self.text.len() {
            let line = self.text.get(at..self.line_end(at))?;
            let content = line.trim_start();
            let inside = line.len() - line.trim_start_matches(' ').len();
            // A comment that silences a warning belongs to the line below.
            let is_own = content.starts_with('#') && inside > indent && !is_ignore(line);
            if !content.is_empty() && !is_own {
                break;
            }
            at = self.next_line(at);
            if is_own {
                end = at;
            }
        }
        let lead = self.line_start(start);
        Some(BlockPart { start, own_line, lead, has_header: false, end })
    }

    /// Finds the comments above each part, down from where the parts begin. Those at the top of a
    /// document are about the document, but for the ones that silence a warning.
    fn find_leads(&self, parts: &mut [BlockPart], indent: usize, slot: ValueSlot) {
        let mut floor = match slot {
            ValueSlot::Behind { mark, .. } => self.next_line(mark),
            ValueSlot::Root | ValueSlot::Flow => 0,
        };
        for (number, part) in parts.iter_mut().enumerate() {
            if part.own_line {
                let lead = self.lead(self.line_start(part.start), floor, indent);
                if matches!(slot, ValueSlot::Root) && number == 0 {
                    part.lead = lead.ignores;
                    part.has_header = lead.all < lead.ignores;
                } else {
                    part.lead = lead.all;
                }
            }
            floor = part.end;
        }
    }

    /// Finds the comments above a line, none of them above `floor`, that belong to what stands in the
    /// line with this indent.
    pub(super) fn lead(&self, line: usize, floor: usize, indent: usize) -> Lead {
        let mut lead = Lead { all: line, ignores: line };
        let (mut at, mut touches) = (line, true);
        while at > floor {
            let above = self.line_start(at - 1);
            let text = self.text.get(above..at).unwrap_or_default();
            let content = text.trim_start();
            if above < floor || !(content.is_empty() || content.starts_with('#')) {
                break;
            }
            touches &= !content.is_empty();
            if is_ignore(text) {
                // It silences the next line with content, whatever stands between.
                (lead.all, lead.ignores) = (above, above);
            } else if touches && text.len() - content.len() <= indent {
                lead.all = above;
            } else {
                touches = false;
            }
            at = above;
        }
        lead
    }

    /// Takes lines out and puts lines in.
    fn lines<'v>(
        &mut self,
        parts: &[BlockPart],
        steps: &[AlignStep],
        indent: usize,
        way: &mut Vec<&'v str>,
        line: NewPart<'_, 'v, Self>,
    ) -> Option<()> {
        let margin = " ".repeat(indent);
        let first_kept = steps.iter().find_map(|step| match step {
            AlignStep::Keep { old, .. } => Some(*old),
            _ => None,
        })?;
        let mut last: Option<usize> = None;
        for step in steps {
            match *step {
                AlignStep::Keep { old, .. } => last = Some(old),
                AlignStep::Insert { new } => {
                    let text = line(self, new, way)?;
                    match last.map_or_else(|| Err(parts.first()), |at| Ok(parts.get(at))) {
                        Ok(part) => self.put_line(part?.end, &margin, &text),
                        Err(first) => {
                            let first = first?;
                            if first.has_header {
                                self.put_line(parts.get(first_kept)?.end, &margin, &text);
                            } else if first.own_line {
                                self.put_line(first.lead, &margin, &text);
                            } else {
                                let newline = self.newline;
                                let with = format!("{}{newline}{margin}", text.trim_end());
                                self.change(first.start, first.start, with);
                            }
                        }
                    }
                }
                AlignStep::Remove { old } => {
                    let part = parts.get(old)?;
                    if part.own_line {
                        // Below a first part that goes from the line of a dash, it goes with that.
                        let swallowed =
                            parts.first().is_some_and(|it| !it.own_line) && old < first_kept;
                        if !swallowed {
                            self.change(part.lead, part.end, "");
                        }
                    } else {
                        // What follows moves up behind the dash.
                        let kept = parts.get(first_kept)?;
                        self.change(part.start, kept.start, "");
                    }
                }
            }
        }
        Some(())
    }

    /// Puts lines in before the line that begins at a place.
    fn put_line(&mut self, at: usize, margin: &str, text: &str) {
        let newline = self.newline;
        let ends = at == 0 || self.byte(at - 1) == Some(b'\n');
        let with = if ends {
            format!("{margin}{}{newline}", text.trim_end())
        } else {
            // The last line of the file has no line break.
            format!("{newline}{margin}{}", text.trim_end())
        };
        self.change(at, at, with);
    }

    /// Writes what stands behind a mark, and the mark; the margin of the first line is left out.
    pub(super) fn line<'v>(
        &self,
        mark: &str,
        value: &'v Value,
        indent: usize,
        way: &[&'v str],
    ) -> String {
        let text = if self.is_block(value, way) {
            let lines = write::block(value, indent + 2, way, self.layout);
            if mark == "-" {
                format!("- {}", lines.trim_start())
            } else {
                format!("{mark}\n{lines}")
            }
        } else if value.is_null() && mark != "-" {
            mark.to_owned()
        } else {
            format!("{mark} {}", write::inline(value))
        };
        self.with_newlines(text.trim_end_matches('\n'))
    }

    /// Gives a text the line breaks of the file.
    pub(super) fn with_newlines(&self, text: &str) -> String {
        if self.newline == "\n" { text.to_owned() } else { text.replace('\n', self.newline) }
    }

    /// Returns whether a new value is written over several lines.
    pub(super) fn is_block(&self, value: &Value, way: &[&str]) -> bool {
        let nested = match value {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(elements) => !elements.is_empty(),
            _ => false,
        };
        nested && (self.layout)(way) == super::super::ValueLayout::Block
    }
}

/// Returns where a value ends; one that is absent ends where it would begin.
fn end_of(node: &Node, mark: usize) -> usize {
    let (start, end) = (node.span.start.offset as usize, node.span.end.offset as usize);
    if start == end { mark } else { end.max(mark) }
}
