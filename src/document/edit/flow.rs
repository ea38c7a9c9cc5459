//! Lists and mappings in brackets.

use serde_json::{Map, Value};

use super::super::token::{line_end, skip};
use super::super::write;
use super::super::{Entry, Node};
use super::align::Step;
use super::plan::{Plan, Slot};
use super::{line_start, next_line, rest_is_blank};

/// A part of a list or mapping.
struct Part {
    start: usize,
    end: usize,
    /// The place of the comma behind it.
    comma: Option<usize>,
    /// Whether it has its lines to itself.
    own_line: bool,
    /// Where the comments begin that stand above it, or else its line.
    lead: usize,
}

impl Plan<'_> {
    pub(super) fn flow_mapping<'v>(
        &mut self,
        node: &Node,
        entries: &[Entry],
        fields: &'v Map<String, Value>,
        steps: &[Step],
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
            let Step::Keep { old, new } = *step else { continue };
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
                self.value(&entry.value, value, Slot::Flow, way);
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
        steps: &[Step],
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
            let Step::Keep { old, new } = *step else { continue };
            self.value(elements.get(old)?, wanted.get(new)?, Slot::Flow, way);
        }
        Some(())
    }

    fn parts(&self, open: usize, spans: &[(usize, usize)]) -> Vec<Part> {
        let mut floor = next_line(self.text, open);
        spans
            .iter()
            .map(|(start, end)| {
                let behind = skip(self.text, *end, |_| false);
                let comma = Some(behind).filter(|it| self.byte(*it) == Some(b','));
                let before = self.text.get(line_start(self.text, *start)..*start);
                let blank = before.is_some_and(|it| it.trim().is_empty());
                let same_line = comma.filter(|it| *it < line_end(self.text, *end));
                let rest = same_line.map_or(*end, |it| it + 1);
                let own_line = blank && rest_is_blank(self.text, rest);
                let line = line_start(self.text, *start);
                let lead = self.lead(line, floor.min(line), self.column(*start)).all;
                floor = next_line(self.text, rest);
                Part { start: *start, end: *end, comma, own_line, lead }
            })
            .collect()
    }

    /// Takes parts out and puts parts in.
    fn items(
        &mut self,
        node: &Node,
        spans: &[(usize, usize)],
        steps: &[Step],
        text: &dyn Fn(usize) -> Option<String>,
    ) -> Option<()> {
        let parts = self.parts(node.span.start.offset as usize, spans);
        let close = (node.span.end.offset as usize).checked_sub(1)?;
        let is_kept = |it: &Step| matches!(it, Step::Keep { .. });
        let first_kept = steps.iter().find_map(|step| match step {
            Step::Keep { old, .. } => Some(*old),
            _ => None,
        })?;
        let mut last: Option<usize> = None;
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            if let Step::Keep { old, .. } = step {
                last = Some(*old);
                at += 1;
                continue;
            }
            // Everything up to the next part that stays.
            let run: Vec<Step> =
                steps.iter().skip(at).take_while(|it| !is_kept(it)).copied().collect();
            at += run.len();
            let next = steps.get(at).and_then(|step| match step {
                Step::Keep { old, .. } => Some(*old),
                _ => None,
            });
            let removed: Vec<usize> = run
                .iter()
                .filter_map(|step| if let Step::Remove { old } = step { Some(*old) } else { None })
                .collect();
            let mut fresh = Vec::new();
            for step in &run {
                if let Step::Insert { new } = step {
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

    fn put_items(&mut self, previous: Option<&Part>, first: &Part, fresh: &[String], busy: bool) {
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
        let at = line_end(self.text, previous.comma.unwrap_or(previous.end));
        self.change(at, at, format!("{newline}{margin}{all}{comma}"));
    }

    fn remove_items(
        &mut self,
        parts: &[Part],
        removed: &[usize],
        previous: Option<&Part>,
        next: Option<&Part>,
        close: usize,
    ) -> Option<()> {
        let (Some(first), Some(last)) = (removed.first(), removed.last()) else { return Some(()) };
        let (first, last) = (parts.get(*first)?, parts.get(*last)?);
        let all_own = removed.iter().all(|it| parts.get(*it).is_some_and(|it| it.own_line));
        match (previous, next) {
            (_, Some(next)) if all_own && next.own_line => {
                for part in removed.iter().filter_map(|it| parts.get(*it)) {
                    let end = next_line(self.text, part.comma.unwrap_or(part.end));
                    self.change(part.lead, end, "");
                }
            }
            (_, Some(next)) => self.change(first.start, next.start, ""),
            (Some(previous), None) if all_own && previous.own_line => {
                // A comma behind the last part is the file's way.
                if let (Some(comma), None) = (previous.comma, last.comma) {
                    self.change(previous.end, comma + 1, "");
                }
                let end = next_line(self.text, last.comma.unwrap_or(last.end));
                if end > close {
                    return None;
                }
                for part in removed.iter().filter_map(|it| parts.get(*it)) {
                    let end = next_line(self.text, part.comma.unwrap_or(part.end));
                    self.change(part.lead, end, "");
                }
            }
            (Some(previous), None) => self.change(previous.end, last.end, ""),
            (None, None) => return None,
        }
        Some(())
    }
}
