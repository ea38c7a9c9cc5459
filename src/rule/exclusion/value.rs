//! Whether one value can pass some comparisons and fail others.

use std::cmp::Ordering;

use serde_json::Number;

use crate::model::{Comparison, Decimal, Order, is_written_as};
use crate::rule::evaluate::holds;
use crate::rule::lookup::Actual;

/// A comparison that a value must pass, or must not.
pub(super) type ValueDemand<'r> = (&'r Comparison, bool);

/// Returns whether no value is as demanded; the certname is always a text.
pub(super) fn is_impossible(is_name: bool, demands: &[ValueDemand<'_>]) -> bool {
    let is_wanted = demands.iter().any(|(_, wanted)| *wanted);
    if is_name && demands.iter().any(fails_for_every_name) {
        return true;
    }
    if !is_wanted {
        // Where nothing is, every comparison fails.
        return false;
    }
    let opposed =
        |(comparison, wanted): &ValueDemand<'_>| *wanted && demands.contains(&(*comparison, false));
    if demands.iter().any(opposed) {
        return true;
    }
    let equal = demands.iter().find_map(|demand| match demand {
        (Comparison::Equals(text), true) => Some(text.as_ref()),
        _ => None,
    });
    if let Some(text) = equal {
        let passes = |actual: Actual<'_>| {
            // A pattern that is not decided may be found.
            demands.iter().all(|(comparison, wanted)| holds(comparison, actual) != Ok(!*wanted))
        };
        let as_scalar = || !is_name && is_scalar(text) && passes(Actual::Scalar(text));
        return !passes(Actual::Text(text)) && !as_scalar();
    }
    let is_list = demands.iter().any(|it| matches!(it, (Comparison::Contains(_), true)));
    let is_single =
        is_name || demands.iter().any(|it| it.1 && !matches!(it, (Comparison::Contains(_), _)));
    (is_list && is_single) || is_between_nothing(demands)
}

/// Returns whether a comparison has the same outcome for every name, and not the demanded one.
fn fails_for_every_name((comparison, wanted): &ValueDemand<'_>) -> bool {
    match comparison {
        Comparison::Finds(pattern) => !wanted && matches!(pattern.as_str(), ".*" | ""),
        Comparison::Contains(_) => *wanted,
        _ => false,
    }
}

/// Returns whether this is the JSON text of a number or boolean.
fn is_scalar(text: &str) -> bool {
    let begins_number = text.starts_with(|it: char| it == '-' || it.is_ascii_digit());
    let number =
        || serde_json::from_str::<Number>(text).is_ok_and(|it| is_written_as(it.as_str(), text));
    matches!(text, "true" | "false") || begins_number && number()
}

/// Returns whether no number lies between the demanded bounds.
fn is_between_nothing(demands: &[ValueDemand<'_>]) -> bool {
    let is_number = |it: &ValueDemand<'_>| matches!(it, (Comparison::Number(_), true));
    if !demands.iter().any(is_number) {
        return false;
    }
    let (mut least, mut most): (Option<NumberBound<'_>>, Option<NumberBound<'_>>) = (None, None);
    for (comparison, wanted) in demands {
        let Some((order, at)) = comparison.number() else { continue };
        // What is a number and not greater is at most this.
        let order = match (order, wanted) {
            (order, true) => order,
            (Order::Greater, false) => Order::AtMost,
            (Order::AtLeast, false) => Order::Less,
            (Order::Less, false) => Order::AtLeast,
            (Order::AtMost, false) => Order::Greater,
        };
        let bound = NumberBound { at, is_open: matches!(order, Order::Greater | Order::Less) };
        let (slot, nearer) = match order {
            Order::Greater | Order::AtLeast => (&mut least, Ordering::Greater),
            Order::Less | Order::AtMost => (&mut most, Ordering::Less),
        };
        let is_nearer = |known: &NumberBound<'_>| match bound.at.cmp(known.at) {
            Ordering::Equal => bound.is_open,
            order => order == nearer,
        };
        if slot.as_ref().is_none_or(is_nearer) {
            *slot = Some(bound);
        }
    }
    let (Some(least), Some(most)) = (least, most) else { return false };
    match least.at.cmp(most.at) {
        Ordering::Less => false,
        Ordering::Equal => least.is_open || most.is_open,
        Ordering::Greater => true,
    }
}

struct NumberBound<'r> {
    at: &'r Decimal,
    is_open: bool,
}
