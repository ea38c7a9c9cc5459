//! Lists and mappings in brackets.

use serde_json::{Map, Value};

use super::super::token::skip;
use super::super::write;
use super::super::{Entry, Node};
use super::align::AlignStep;
use super::plan::{Plan, ValueSlot};

/// A part of a list or mapping.
struct FlowPart {
    start: usize,
    end: usize,
    /// The place of the comma behind it.
    comma: Option<usize>,
    /// Whether it has its lines to itself.
    own_line: bool,
    /// Where the comments begin that stand above it, or else its line.
    lead: usize,
}

impl FlowPart {
    /// Returns the place behind it and its comma.
    fn behind(&self) -> usize {
        self.comma.map_or(self.end, |it| it + 1)
    }
}

fn slice(text: &str, from: usize, to: usize) -> &str {
    text.get(from..to).unwrap_or_default()
}

/// Returns the place behind blanks.
fn skip_blanks(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.len() - rest.trim_start_matches([' ', '\t']).len()
}

impl Plan<'_> {
    pub(super) fn flow_mapping<'v>(
        &mut self,
        node: &Node,
        entries: &[Entry],
        fields: &'v Map<String, Value>,
        steps: &[AlignStep],
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let spans: Vec<(usize, usize)> = entries
            .iter()
            .map(|entry| {
                let key = entry.key_span;
                let end = key.end.max(entry.value.span.end).offset as usize;
                let colon = skip(self.text, key.end.offset as usize, |_| false);
                let colon = if self.byte(colon) == Some(b':') { colon + 1 } else { 0 };
                (key.start.offset as usize, end.max(colon))
            })
            .collect();
        let names: Vec<(&'v String, &'v Value)> = fields.iter().collect();
        let quoted = self.byte(spans.first()?.0) == Some(b'"');
        let text = |new: usize| -> Option<String> {
            let (key, value) = *names.get(new)?;
            let key = if quoted { write::quote(key) } else { write::inline(&key.as_str().into()) };
            Some(format!("{key}: {}", write::inline(value)))
        };
        self.items(node, &spans, steps, &text)?;
        for step in steps {
            let AlignStep::Keep { old, new } = *step else { continue };
            let entry = entries.get(old)?;
            let (key, value) = *names.get(new)?;
            let (start, end) = *spans.get(old)?;
            let span = entry.value.span;
            let absent = span.start == span.end;
            let has_colon = end > entry.key_span.end.offset as usize;
            way.push(key);
            if absent && !super::same(&entry.value.to_value(), value) {
                let colon = if has_colon { "" } else { ":" };
                let at = end.max(start);
                self.change(at, at, format!("{colon} {}", write::inline(value)));
            } else {
                self.value(&entry.value, value, ValueSlot::Flow, way);
            }
            way.pop();
        }
        Some(())
    }

    pub(super) fn flow_sequence<'v>(
        &mut self,
        node: &Node,
        elements: &[Node],
        wanted: &'v [Value],
        steps: &[AlignStep],
        way: &mut Vec<&'v str>,
    ) -> Option<()> {
        let spans: Vec<(usize, usize)> = elements
            .iter()
            .map(|it| (it.span.start.offset as usize, it.span.end.offset as usize))
            .collect();
        let text = |new: usize| -> Option<String> {
            Some(match wanted.get(new)? {
                // Lists read best in one style.
                Value::String(text) => write::quote(text),
                other => write::inline(other),
            })
        };
        self.items(node, &spans, steps, &text)?;
        for step in steps {
            let AlignStep::Keep { old, new } = *step else { continue };
            self.value(elements.get(old)?, wanted.get(new)?, ValueSlot::Flow, way);
        }
        Some(())
    }

    /// Takes parts out in front of one that stays, with their comments. The comment at the end of a
    /// line on which something stays may be about that, and so may one above such a line.
    fn remove_before(
        &mut self,
        removed: &[&FlowPart],
        previous: Option<&FlowPart>,
        next: &FlowPart,
    ) {
        let Some(first) = removed.first() else { return };
        let line = self.line_start(next.start);
        let Some(above) = removed.iter().rev().find(|it| it.end < line) else {
            return self.change(first.start, next.start, "");
        };
        let below = self.next_line(above.behind());
        let own = if self.has_comment(below, line) { slice(self.text, below, line) } else { "" };
        let trailing = previous.and_then(|it| self.trailing(it, removed));
        let trailing = trailing.filter(|(from, _)| *from > first.start);
        let first_line = self.line_start(first.start);
        let leads = self.is_blank(first_line, first.start);
        if own.is_empty() && trailing.is_none() {
            if leads && first.lead < first_line && below <= next.start {
                self.change(first.lead, first_line, "");
            }
            return self.change(first.start, next.start, "");
        }
        let indent = slice(self.text, line, skip_blanks(self.text, line));
        let (from, before) = match trailing {
            Some((from, to)) => {
                let before = slice(self.text, 0, first.start).trim_end_matches([' ', '\t']);
                (before.len(), format!(" {}{}", slice(self.text, from, to), self.newline))
            }
            None if leads => (first.lead, String::new()),
            None => {
                let before = slice(self.text, 0, first.start).trim_end_matches([' ', '\t']);
                (before.len(), self.newline.to_owned())
            }
        };
        self.change(from, next.start, format!("{before}{own}{indent}"));
    }

    /// Takes the last parts out, with their comments but for one on the line of the part before.
    fn remove_last(&mut self, removed: &[&FlowPart], previous: &FlowPart) {
        let (Some(comma), Some(last)) = (previous.comma, removed.last()) else { return };
        if self.has_comment(previous.end, comma) {
            return self.change(comma, last.behind(), "");
        }
        let is_line_done = self.rest_is_blank(last.behind());
        let is_shared = self.line_start(previous.end) == self.line_start(last.end);
        let trailing = self.trailing(previous, removed).filter(|_| !is_shared);
        let Some((from, to)) = trailing else {
            let is_gone = is_line_done && !is_shared;
            let end = if is_gone { self.line_end(last.behind()) } else { last.end };
            return self.change(previous.end, end, "");
        };
        let before = slice(self.text, 0, from).trim_end_matches([' ', '\t']).len();
        self.change(comma, before.max(comma + 1), "");
        let below = self.next_line(to);
        if is_line_done {
            self.change(below, self.next_line(last.behind()), "");
        } else {
            // The bracket stands where the part has stood.
            let line = self.line_start(last.start);
            let indent = slice(self.text, line, skip_blanks(self.text, line));
            self.change(below, last.behind(), indent);
        }
    }

    /// Returns where the comment at the end of the line of a part stands, parts behind it removed.
    fn trailing(&self, part: &FlowPart, removed: &[&FlowPart]) -> Option<(usize, usize)> {
        let line = self.line_start(part.behind());
        let mut on_line = removed.iter().filter(|it| self.line_start(it.start) == line);
        let behind = on_line.next_back().map_or(part.behind(), |it| it.behind());
        let from = skip_blanks(self.text, behind);
        (self.byte(from) == Some(b'#')).then(|| (from, self.line_end(from)))
    }

    /// Returns whether there is a comment between two parts.
    fn has_comment(&self, from: usize, to: usize) -> bool {
        self.text.get(from..to).is_some_and(|it| it.contains('#'))
    }

    fn is_blank(&self, from: usize, to: usize) -> bool {
        self.text.get(from..to).is_some_and(|it| it.trim().is_empty())
    }

    fn parts(&self, open: usize, spans: &[(usize, usize)]) -> Vec<FlowPart> {
        let mut floor = self.next_line(open);
        spans
            .iter()
            .map(|(start, end)| {
                let behind = skip(self.text, *end, |_| false);
                let comma = Some(behind).filter(|it| self.byte(*it) == Some(b','));
                let line = self.line_start(*start);
                let before = self.text.get(line..*start);
                let blank = before.is_some_and(|it| it.trim().is_empty());
                let same_line = comma.filter(|it| *it < self.line_end(*end));
                let rest = same_line.map_or(*end, |it| it + 1);
                let own_line = blank && self.rest_is_blank(rest);
                // The column of what stands behind others in a long line would take as long as the line.
                let lead = if blank {
                    self.lead(line, floor.min(line), self.column(*start)).all
                } else {
                    line
                };
                floor = self.next_line(rest);
                FlowPart { start: *start, end: *end, comma, own_line, lead }
            })
            .collect()
    }

    /// Takes parts out and puts parts in.
    fn items(
        &mut self,
        node: &Node,
        spans: &[(usize, usize)],
        steps: &[AlignStep],
        text: &dyn Fn(usize) -> Option<String>,
    ) -> Option<()> {
        let parts = self.parts(node.span.start.offset as usize, spans);
        let close = (node.span.end.offset as usize).checked_sub(1)?;
        let is_kept = |it: &AlignStep| matches!(it, AlignStep::Keep { .. });
        let first_kept = steps.iter().find_map(|step| match step {
            AlignStep::Keep { old, .. } => Some(*old),
            _ => None,
        })?;
        let mut last: Option<usize> = None;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            if let AlignStep::Keep { old, .. } = step {
                last = Some(*old);
                at += 1;
                continue;
            }
            // Everything up to the next part that stays.
            let run: Vec<AlignStep> =
                steps.iter().skip(at).take_while(|it| !is_kept(it)).copied().collect();
            at += run.len();
            let next = steps.get(at).and_then(|step| match step {
                AlignStep::Keep { old, .. } => Some(*old),
                _ => None,
            });
            let removed: Vec<usize> = run
                .iter()
                .filter_map(
                    |step| if let AlignStep::Remove { old } = step { Some(*old) } else { None },
                )
                .collect();
            let mut fresh = Vec::new();
            for step in &run {
                if let AlignStep::Insert { new } = step {
                    fresh.push(text(*new)?);
                }
            }
            let previous = last.and_then(|it| parts.get(it));
            self.put_items(previous, parts.get(first_kept)?, &fresh, !removed.is_empty());
            let next = next.and_then(|it| parts.get(it));
            self.remove_items(&parts, &removed, previous, next, close)?;
        }
        Some(())
    }

    fn put_items(
        &mut self,
        previous: Option<&FlowPart>,
        first: &FlowPart,
        fresh: &[String],
        busy: bool,
    ) {
        if fresh.is_empty() {
            return;
        }
        let newline = self.newline;
        let Some(previous) = previous else {
            if !first.own_line {
                let with = fresh.join(", ") + ", ";
                return self.change(first.start, first.start, with);
            }
            let margin = " ".repeat(self.column(first.start));
            let lines = fresh.iter().map(|it| format!("{margin}{it},{newline}"));
            return self.change(first.lead, first.lead, lines.collect::<String>());
        };
        if !previous.own_line {
            let with = format!(", {}", fresh.join(", "));
            return self.change(previous.end, previous.end, with);
        }
        let margin = " ".repeat(self.column(previous.start));
        if busy {
            let glue = format!(",{newline}{margin}");
            let with = format!("{glue}{}", fresh.join(&glue));
            return self.change(previous.end, previous.end, with);
        }
        // A comment behind the part before stays with it.
        if previous.comma.is_none() {
            self.change(previous.end, previous.end, ",");
        }
        let all = fresh.join(&format!(",{newline}{margin}"));
        let comma = if previous.comma.is_some() { "," } else { "" };
        let at = self.line_end(previous.comma.unwrap_or(previous.end));
        self.change(at, at, format!("{newline}{margin}{all}{comma}"));
    }

    fn remove_items(
        &mut self,
        parts: &[FlowPart],
        removed: &[usize],
        previous: Option<&FlowPart>,
        next: Option<&FlowPart>,
        close: usize,
    ) -> Option<()> {
        let all: Vec<&FlowPart> = removed.iter().filter_map(|it| parts.get(*it)).collect();
        let Some(last) = all.last() else { return Some(()) };
        let all_own = all.iter().all(|it| it.own_line);
        match (previous, next) {
            (_, Some(next)) if all_own && next.own_line => {
                for part in &all {
                    let end = self.next_line(part.comma.unwrap_or(part.end));
                    self.change(part.lead, end, "");
                }
            }
            (_, Some(next)) => self.remove_before(&all, previous, next),
            (Some(previous), None) if all_own && previous.own_line => {
                // A comma behind the last part is the file's way.
                if let (Some(comma), None) = (previous.comma, last.comma) {
                    self.change(previous.end, comma + 1, "");
                }
                let end = self.next_line(last.comma.unwrap_or(last.end));
                if end > close {
                    return None;
                }
                for part in &all {
                    let end = self.next_line(part.comma.unwrap_or(part.end));
                    self.change(part.lead, end, "");
                }
            }
            (Some(previous), None) => self.remove_last(&all, previous),
            (None, None) => return None,
        }
        Some(())
    }
}
