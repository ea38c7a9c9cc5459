//! Rules as written, with the places of their faults.

use super::lint;
use super::shape::Shape;
use crate::diagnostic::Kind;
use crate::document::{Node, Span};
use crate::model::{BudgetItem, Comparison, Condition};
use crate::rule::{self, FaultKind, RuleFault};

/// Reads a rule in either notation.
pub(super) fn read(node: &Node, shape: &mut Shape) -> Option<Condition> {
    match rule::read(&node.to_value()) {
        Ok(condition) => {
            shape.charge(BudgetItem::RuleTerms, terms(&condition))?;
            lint::rule(&condition, node, shape);
            Some(condition)
        }
        Err(faults) => {
            for fault in faults {
                let kind = match fault.kind {
                    FaultKind::Grammar => Kind::InvalidRule,
                    FaultKind::Pattern => Kind::InvalidRegex,
                };
                let span = span_of(node, &fault);
                shape.add(kind, span, fault.message).help = fault.help;
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

/// Returns the element that a way of indexes leads to.
pub(super) fn element<'n>(node: &'n Node, way: &[usize]) -> &'n Node {
    way.iter().fold(node, |node, index| node.elements().get(*index).unwrap_or(node))
}

/// Returns the place of some characters of a string, if it is written on one line and each of its
/// characters stands for itself; else the place of the whole string.
pub(super) fn part_of(node: &Node, from: usize, to: usize) -> Span {
    let Span { start, end } = node.span;
    let text = node.as_str().unwrap_or_default();
    let length = text.chars().count();
    let written = (end.column.saturating_sub(start.column)) as usize;
    let inset = match written.checked_sub(length) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return node.span,
    };
    if start.line != end.line || from > length {
        return node.span;
    }
    let shift = |characters: usize| {
        let bytes: usize = text.chars().take(characters).map(char::len_utf8).sum();
        let number = |it: usize| u32::try_from(it + inset).unwrap_or_default();
        crate::document::Position {
            offset: start.offset + number(bytes),
            line: start.line,
            column: start.column + number(characters),
        }
    };
    Span { start: shift(from), end: shift(to.min(length)) }
}
