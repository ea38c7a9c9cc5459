//! What of a set of demands tells it apart from most others at a glance: the texts that a value may
//! equal, how it begins and ends, and the numbers between which it is.

use std::cmp::Ordering;
use std::sync::Arc;

use hashbrown::HashMap;

use super::formula::Trial;
use crate::java_regex::{Ends, Examples};
use crate::model::{Comparison, Decimal, Order, has_exponent};

/// The shape of a set of demands: what a value must be at least.
#[derive(Debug, Default)]
pub(super) struct ValueShape {
    /// The numbers of the texts that it may equal, in order.
    equal: Option<Box<[u32]>>,
    ends: Ends,
    low: Option<Bound>,
    high: Option<Bound>,
}

/// A number beyond which a value is not.
#[derive(Debug)]
struct Bound {
    number: Decimal,
    /// Whether the value may be this number: if closed.
    openness: Openness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Openness {
    Open,
    Closed,
}

/// The numbers of texts.
#[derive(Debug, Default)]
pub(super) struct TextNumbers(HashMap<Arc<str>, u32>);

impl TextNumbers {
    fn number(&mut self, text: &Arc<str>) -> Option<u32> {
        let new = u32::try_from(self.0.len()).ok()?;
        Some(*self.0.entry(Arc::clone(text)).or_insert(new))
    }
}

impl ValueShape {
    /// Returns the shape of some tests, passed or not.
    pub(super) fn of(
        tests: &[(&Trial, bool)],
        texts: &mut TextNumbers,
        examples: &mut Examples,
    ) -> Self {
        let mut shape = Self::default();
        let mut of_patterns = Ends::default();
        for trial in tests.iter().filter(|(_, wanted)| *wanted).map(|(trial, _)| *trial) {
            match trial {
                Trial::OneOf(all) => shape.must_equal(all, texts),
                Trial::Comparison(Comparison::Equals(text)) if !has_exponent(text) => {
                    shape.must_equal(std::slice::from_ref(text), texts);
                }
                Trial::Comparison(Comparison::Finds(pattern)) => {
                    of_patterns.join(&examples.ends(pattern).unwrap_or_default());
                }
                Trial::Comparison(comparison) => {
                    if let Some((order, number)) = comparison.number() {
                        shape.bound(order, number);
                    }
                }
            }
        }
        // Patterns know the letters of the alphabet only, of which these texts may have others.
        if shape.equal.is_none() {
            shape.ends = of_patterns;
        }
        shape
    }

    fn must_equal(&mut self, all: &[Arc<str>], texts: &mut TextNumbers) {
        let numbers: Option<Vec<u32>> = all.iter().map(|it| texts.number(it)).collect();
        let Some(mut numbers) = numbers else { return };
        if self.equal.as_ref().is_none_or(|it| numbers.len() < it.len()) {
            numbers.sort_unstable();
            self.equal = Some(numbers.into());
            self.ends = Ends::of_texts(all.iter().map(AsRef::as_ref));
        }
    }

    fn bound(&mut self, order: Order, number: &Decimal) {
        let (side, openness, further) = match order {
            Order::Greater => (&mut self.low, Openness::Open, Ordering::Greater),
            Order::AtLeast => (&mut self.low, Openness::Closed, Ordering::Greater),
            Order::Less => (&mut self.high, Openness::Open, Ordering::Less),
            Order::AtMost => (&mut self.high, Openness::Closed, Ordering::Less),
        };
        if side.as_ref().is_none_or(|it| number.cmp(&it.number) == further) {
            *side = Some(Bound { number: number.clone(), openness });
        }
    }

    /// Returns whether a value may have both shapes. If not, none does.
    pub(super) fn fits(&self, other: &Self) -> bool {
        share(self.equal.as_deref(), other.equal.as_deref())
            && self.ends.fit(&other.ends)
            && meet(self.low.as_ref(), other.high.as_ref())
            && meet(other.low.as_ref(), self.high.as_ref())
    }
}

/// Returns whether two lists have a number in common, where there are two.
fn share(one: Option<&[u32]>, other: Option<&[u32]>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return true };
    if one.last() < other.first() || other.last() < one.first() {
        return false;
    }
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().any(|it| many.binary_search(it).is_ok())
}

/// Returns whether a number may be above the one bound and below the other.
fn meet(low: Option<&Bound>, high: Option<&Bound>) -> bool {
    let (Some(low), Some(high)) = (low, high) else { return true };
    match low.number.cmp(&high.number) {
        Ordering::Less => true,
        Ordering::Equal => [low, high].iter().all(|it| it.openness == Openness::Closed),
        Ordering::Greater => false,
    }
}
