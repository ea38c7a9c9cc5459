//! Rules as written, with the places of their faults.

use super::element::{element, part_of};
use super::file_reader::FileReader;
use super::lint;
use crate::diagnostic::Kind;
use crate::document::{Node, Span};
use crate::model::{BudgetItem, Comparison, Condition};
use crate::rule::{self, RuleFault, RuleFaultKind};

/// Reads a rule in either notation.
pub(super) fn read(node: &Node, reader: &mut FileReader) -> Option<Condition> {
    match rule::read(&node.to_value()) {
        Ok(condition) => {
            reader.charge(BudgetItem::RuleTerms, terms(&condition))?;
            lint::rule(&condition, node, reader);
            Some(condition)
        }
        Err(faults) => {
            for fault in faults {
                let kind = match fault.kind {
                    RuleFaultKind::Grammar => Kind::InvalidRule,
                    RuleFaultKind::Pattern => Kind::InvalidRegex,
                };
                let span = span_of(node, &fault);
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
        Condition::Test(test) => match &test.comparison {
            Comparison::Finds(pattern) => 1 + (pattern.steps() / STEPS) as u64,
            _ => 1,
        },
    }
}

fn span_of(node: &Node, fault: &RuleFault) -> Span {
    let at = element(node, &fault.element);
    match &fault.characters {
        Some(characters) => part_of(at, characters.start, characters.end),
        None => at.span,
    }
}
