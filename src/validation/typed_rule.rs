//! A rule that is typed alone, before it stands in a file.

use std::sync::Arc;

use super::file_reader::FileReader;
use super::rule;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::document::{self, Content, Limits, Node, Position, Span};
use crate::model::{Budget, BudgetItem, Condition, Meter, Value};

/// What findings name in place of a file.
pub const TYPED_RULE: &str = "rule";

/// The most bytes of a rule that does not stand in a file: those of a file.
pub const RULE_BYTES: usize = 1 << 20;

/// The most comparisons of such a rule, counted as in a commit: a rule that pins 12,000 nodes has as many.
const TERMS: u64 = 50_000;

/// A rule that is typed alone.
#[derive(Debug)]
pub struct TypedRule {
    /// What it means; none if a finding is an error.
    pub condition: Option<Condition>,
    /// What was found, as `clade validate` finds it in a file: the file is [`TYPED_RULE`], and places are those
    /// in the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl TypedRule {
    /// Reads a rule in either notation: one that begins with `[` is in the array form.
    pub fn read(text: &str) -> Self {
        let meter = Arc::new(Meter::new(Budget::DEFAULT.with_limit(BudgetItem::RuleTerms, TERMS)));
        let mut reader = FileReader::new(TYPED_RULE.into(), &meter);
        let condition = match node_of(text, &mut reader) {
            Some(node) => rule::read(&node, &mut reader),
            None => None,
        };
        if let Some(exceeded) = reader.exceeded {
            reader.add(Kind::InvalidRule, Span::START, exceeded.to_string());
        }
        let diagnostics = reader.diagnostics;
        let is_wrong = diagnostics.iter().any(|it| it.severity == Severity::Error);
        Self { condition: condition.filter(|_| !is_wrong), diagnostics }
    }
}

/// Returns the text as a value with places.
fn node_of(text: &str, reader: &mut FileReader) -> Option<Node> {
    if text.len() > RULE_BYTES {
        let message = format!("the rule has {} bytes, {RULE_BYTES} are allowed", text.len());
        reader.add(Kind::InvalidRule, Span::START, message);
        return None;
    }
    if text.trim_start().starts_with('[') {
        return array_form(text, reader);
    }
    // A string that is written without quotes, whatever is in it.
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let lines = text.split('\n');
    let last = lines.clone().next_back().unwrap_or_default();
    let end = Position {
        offset: number(text.len()),
        line: number(lines.count()),
        column: number(last.chars().count() + 1),
    };
    let span = Span { start: Span::START.start, end };
    Some(Node { span, content: Content::Scalar(Value::from(text)) })
}

fn array_form(text: &str, reader: &mut FileReader) -> Option<Node> {
    let mut contents = document::read(text.as_bytes(), &Limits::DEFAULT);
    let is_broken = !contents.faults.is_empty();
    reader.note_faults(contents.faults.into_iter());
    let rule = contents.documents.drain(..).next().filter(|_| !is_broken);
    if rule.is_none() && !is_broken {
        reader.add(Kind::InvalidRule, Span::START, "there is no rule");
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::to_value;
    use crate::table::each_row;

    #[test]
    fn either_notation_is_read_with_its_findings_and_their_places() {
        let rows = [
            ("os.family = Debian", "[]", r#"["=",["fact","os","family"],"Debian"]"#),
            (" name = a", "[]", r#"["=","name","a"]"#),
            (r#"["=", ["fact", "x"], "1"]"#, "[]", r#"["=",["fact","x"],"1"]"#),
            ("os.family ==", "[error invalid-rule 1:11-1:13]", "none"),
            ("name ~ \"(\"", "[error invalid-regex 1:10-1:11]", "none"),
            (r#"["=", ["fact"]"#, "[error malformed-yaml 1:1-1:2]", "none"),
            (r#"["~", "name", "("]"#, "[error invalid-regex 1:17-1:17]", "none"),
            (
                "osfamily = Debian",
                "[warning suspicious-rule 1:1-1:18]",
                r#"["=",["fact","osfamily"],"Debian"]"#,
            ),
            ("", "[error invalid-rule 1:1-1:1]", "none"),
        ];
        each_row(rows, |(text, findings, meaning)| {
            let read = TypedRule::read(text);
            let shown = |it: &Diagnostic| {
                let Span { start, end } = it.place.span;
                let place = format!("{}:{}-{}:{}", start.line, start.column, end.line, end.column);
                format!("{} {} {place}", it.severity.as_str(), it.kind.as_str())
            };
            let found: Vec<String> = read.diagnostics.iter().map(shown).collect();
            assert_eq!(format!("[{}]", found.join(", ")), findings, "{:?}", read.diagnostics);
            let meant = read.condition.map_or("none".to_owned(), |it| to_value(&it).to_string());
            assert_eq!(meant, meaning);
        });
    }

    #[test]
    fn a_rule_is_bounded() {
        let long = format!("name = {}", "a".repeat(RULE_BYTES));
        let many = format!("name = a{}", " or name = a".repeat(60_000));
        let deep = "[\"not\", ".repeat(200);
        for text in [long, many, deep] {
            assert!(TypedRule::read(&text).condition.is_none());
        }
    }
}
