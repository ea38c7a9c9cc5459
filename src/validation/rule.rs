//! Rules as written, with the places of their faults.

use serde_json::Value;

use super::element::{element, part_of};
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
            for fault in faults {
                let kind = match fault.kind {
                    RuleFaultKind::Grammar | RuleFaultKind::Depth => Kind::InvalidRule,
                    RuleFaultKind::Pattern => Kind::InvalidRegex,
                    RuleFaultKind::Size => {
                        reader.charge(BudgetItem::RuleTerms, most.saturating_add(1))?;
                        continue;
                    }
                };
                let span = span_of(node, reader.content(), &fault);
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

fn span_of(node: &Node, file: &[u8], fault: &RuleFault) -> Span {
    let at = element(node, &fault.element);
    match &fault.characters {
        Some(characters) => part_of(at, file, characters.start, characters.end),
        None => at.span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::read_console;

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
