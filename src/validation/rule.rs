//! Rules as written, with the places of their faults.

use serde_json::Value;

use super::element::{TextParts, element};
use super::file_reader::FileReader;
use super::lint;
use crate::diagnostic::Kind;
use crate::document::{Content, Node, Span};
use crate::model::{BudgetItem, Comparison, Condition, Path, Segment};
use crate::rule::{self, RuleFault, RuleFaultKind, RulePart, RuleSource};

impl RuleSource for Node {
    fn part(&self) -> RulePart<'_, Self> {
        match &self.content {
            Content::Scalar(Value::String(text)) => RulePart::Text(text),
            Content::Scalar(scalar) => RulePart::Scalar(scalar),
            Content::Sequence(elements) => RulePart::List(elements),
            Content::Mapping(_) => RulePart::Mapping,
        }
    }
}

/// Reads a rule in either notation.
pub(super) fn read(node: &Node, reader: &mut FileReader) -> Option<Condition> {
    let most = reader.limit(BudgetItem::RuleTerms);
    match rule::read_within(node, usize::try_from(most).unwrap_or(usize::MAX)) {
        Ok(condition) => {
            reader.charge(BudgetItem::RuleTerms, terms(&condition))?;
            lint::rule(&condition, node, reader);
            Some(condition)
        }
        Err(faults) => {
            let source = reader.source.clone();
            let mut places = FaultPlaces::new(node, source.as_deref().unwrap_or_default());
            for fault in faults {
                let kind = match fault.kind {
                    RuleFaultKind::Grammar | RuleFaultKind::Depth => Kind::InvalidRule,
                    RuleFaultKind::Pattern => Kind::InvalidRegex,
                    RuleFaultKind::Size => {
                        reader.charge(BudgetItem::RuleTerms, most.saturating_add(1))?;
                        continue;
                    }
                };
                // Those beyond the findings that are kept are only counted.
                let span = if reader.is_full() { node.span } else { places.span(&fault) };
                reader.add(kind, span, fault.message).help = fault.help;
            }
            None
        }
    }
}

/// Returns what a rule counts as.
fn terms(condition: &Condition) -> u64 {
    /// How many steps of a pattern count as one comparison.
    const STEPS: usize = 64;
    match condition {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().map(self::terms).sum(),
        Condition::Not(inner) => terms(inner),
        Condition::Test(test) => {
            let path = match &test.path {
                Path::Segments(segments) => terms_of_path(segments),
                Path::Name | Path::Bare(_) => 1,
            };
            match &test.comparison {
                Comparison::Finds(pattern) => path + (pattern.steps() / STEPS) as u64,
                _ => path,
            }
        }
    }
}

/// Returns what a path counts as: each of its segments has a place in the trees of mentioned paths.
pub(super) fn terms_of_path(segments: &[Segment]) -> u64 {
    /// How many segments behind the root count as one comparison.
    const SEGMENTS: usize = 4;
    1 + (segments.len().saturating_sub(1) / SEGMENTS) as u64
}

/// Where the faults of a rule are written.
struct FaultPlaces<'n> {
    rule: &'n Node,
    file: &'n [u8],
    /// The element with the last fault: one string can have many.
    last: Option<(Vec<usize>, TextParts<'n>)>,
}

impl<'n> FaultPlaces<'n> {
    fn new(rule: &'n Node, file: &'n [u8]) -> Self {
        Self { rule, file, last: None }
    }

    fn span(&mut self, fault: &RuleFault) -> Span {
        let Some(characters) = &fault.characters else {
            return element(self.rule, &fault.element).span;
        };
        let known = self.last.take().filter(|(it, _)| *it == fault.element);
        let (_, parts) = self.last.insert(known.unwrap_or_else(|| {
            let parts = TextParts::of(element(self.rule, &fault.element), self.file);
            (fault.element.clone(), parts)
        }));
        parts.span(characters.start, characters.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::read_console;
    use crate::validation::{Search, SourceContent, SourceFile, validate};

    /// Returns the line and column of each pattern that is wrong.
    fn places(text: &str) -> Vec<(u32, u32)> {
        let content = SourceContent::Bytes(text.as_bytes().into());
        let file = SourceFile { path: "groups/a.yaml".into(), content };
        let checked = validate(&[file], Search::Decisive);
        let faults = checked.diagnostics.iter().filter(|it| it.kind == Kind::InvalidRegex);
        faults.map(|it| (it.place.span.start.line, it.place.span.start.column)).collect()
    }

    #[test]
    fn each_wrong_pattern_has_its_place() {
        let lines = "name: A\nrule: |\n  x ~ \"a[\" or\n  y ~ b and z ~ \"(\"\n";
        // A group that is not closed is wrong at the end.
        assert_eq!(places(lines), [(3, 9), (4, 19)]);
        let array =
            "name: A\nrule: [or, [\"~\", name, \"a[\"], [\"~\", name, b], [\"~\", name, \"(\"]]\n";
        assert_eq!(places(array), [(2, 26), (2, 61)]);
    }

    #[test]
    fn a_long_path_counts_for_several_comparisons() {
        for (rule, expected) in [
            ("name = a", 1),
            ("os = a", 1),
            ("os.release.major = a", 1),
            ("a.b.c.d = x", 2),
            ("not a.b.c.d.e.f.g.h = x or name = a", 4),
        ] {
            assert_eq!(terms(&read_console(rule).unwrap()), expected, "{rule}");
        }
        let deepest = format!("{}a = x", "a.".repeat(199));
        assert_eq!(terms(&read_console(&deepest).unwrap()), 51);
    }
}
