//! A value that passes some tests and fails others.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::formula::Trial;
use super::number_pattern::numbers_between;
use crate::java_regex::{Example, Examples, Pattern, WantedText};
use crate::model::{Comparison, Decimal, Order, has_exponent, is_written_as};
use crate::rule::{Actual, holds};

/// What can be chosen for a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// Nothing needs to be there.
    Missing,
    /// This value.
    Value(Value),
    /// There is no such value.
    Impossible,
    /// Unknown.
    Unknown,
}

/// The tests of one variable, by what they compare.
#[derive(Default)]
struct SortedTests<'t> {
    /// The texts that it may equal, if it must equal one.
    equal: Option<Vec<&'t str>>,
    unequal: Vec<&'t str>,
    found: Vec<&'t Pattern>,
    absent: Vec<&'t Pattern>,
    contained: Vec<&'t str>,
    numbers: bool,
    bounds: NumberBounds<'t>,
    /// Whether it must pass a comparison with a number that is none.
    never_met: bool,
    any: bool,
}

/// The nearest numbers between which a number must be.
#[derive(Default)]
struct NumberBounds<'t> {
    low: Option<(&'t Decimal, &'t str)>,
    high: Option<(&'t Decimal, &'t str)>,
}

/// How many steps a text is looked for.
const WALK: u64 = 8_000_000;

/// How many tests the candidates for one value are put to together at most; beyond that it is not known whether one
/// passes all.
const TRIALS: usize = 4_000_000;

/// Chooses a value, a text by patterns in at most so many steps; the certname is always a text, and never empty.
pub(super) fn choose(
    is_name: bool,
    tests: &[(&Trial, bool)],
    examples: &mut Examples,
    steps: u64,
) -> Choice {
    let mut sorted = sort(tests);
    if !sorted.any && !is_name {
        return Choice::Missing;
    }
    if sorted.never_met {
        return Choice::Impossible;
    }
    let passes = |value: &CandidateValue<'_>| match value {
        CandidateValue::Text("") if is_name => Some(false),
        value => passes(value, tests),
    };
    let other = |text| scalar(text).filter(|_| !is_name).map(CandidateValue::Other);
    let candidates = sorted.equal.as_ref().map_or(sorted.contained.len(), Vec::len);
    if candidates.saturating_mul(tests.len()) > TRIALS {
        return Choice::Unknown;
    }
    if let Some(equal) = sorted.equal {
        let values = equal.iter().flat_map(|it| [Some(CandidateValue::Text(it)), other(it)]);
        return first_of(values.flatten(), passes);
    }
    if !sorted.contained.is_empty() {
        let elements = sorted.contained.iter().map(|it| Value::from(*it)).collect();
        return if is_name {
            Choice::Impossible
        } else {
            first_of([CandidateValue::Other(Value::Array(elements))].into_iter(), passes)
        };
    }
    if sorted.numbers {
        return choose_number(is_name, &sorted, examples, steps, passes);
    }
    if is_name {
        sorted.unequal.push("");
    }
    let wanted = WantedText { found: &sorted.found, absent: &sorted.absent, not: &sorted.unequal };
    match examples.find(wanted, steps.min(WALK)) {
        // Only a comparison with numbers can still mind.
        Example::Text(found) if passes(&CandidateValue::Text(&found)) == Some(true) => {
            Choice::Value(found.into())
        }
        Example::Text(_) => Choice::Unknown,
        Example::Nothing => Choice::Impossible,
        Example::Unknown => Choice::Unknown,
    }
}

/// Chooses a number between the bounds, or its text.
fn choose_number(
    is_name: bool,
    sorted: &SortedTests<'_>,
    examples: &mut Examples,
    steps: u64,
    passes: impl Fn(&CandidateValue<'_>) -> Option<bool>,
) -> Choice {
    let numbers = sorted.bounds.candidates();
    let other = |text| scalar(text).filter(|_| !is_name).map(CandidateValue::Other);
    let values = numbers.iter().flat_map(|it| [other(it), Some(CandidateValue::Text(it))]);
    match first_of(values.flatten(), &passes) {
        // A pattern may want a number that is none of those at the borders.
        Choice::Impossible if !sorted.found.is_empty() => {
            find_number(sorted, examples, steps.min(WALK), passes).unwrap_or(Choice::Unknown)
        }
        // Some lie too close to each other for one between them to be told.
        Choice::Impossible if !sorted.bounds.are_met_by(&numbers) => Choice::Unknown,
        chosen => chosen,
    }
}

/// Looks for a number between the bounds in which the patterns are found. That none is found says nothing.
fn find_number(
    sorted: &SortedTests<'_>,
    examples: &mut Examples,
    steps: u64,
    passes: impl Fn(&CandidateValue<'_>) -> Option<bool>,
) -> Option<Choice> {
    /// How many numbers are tried: one at a bound, or with a fraction, may be beyond it.
    const TRIED: usize = 16;
    let numbers = Pattern::parse(&sorted.bounds.pattern()?).ok()?;
    let found: Vec<&Pattern> = sorted.found.iter().copied().chain([&numbers]).collect();
    let mut tried: Vec<String> = Vec::new();
    let from = examples.steps();
    for _ in 0..TRIED {
        let not: Vec<&str> =
            sorted.unequal.iter().copied().chain(tried.iter().map(String::as_str)).collect();
        let wanted = WantedText { found: &found, absent: &sorted.absent, not: &not };
        let left = steps.checked_sub(examples.steps() - from)?;
        let Example::Text(text) = examples.find(wanted, left) else { return None };
        if passes(&CandidateValue::Text(&text)) == Some(true) {
            return Some(Choice::Value(text.into()));
        }
        tried.push(text);
    }
    None
}

fn sort<'t>(tests: &[(&'t Trial, bool)]) -> SortedTests<'t> {
    let mut sorted = SortedTests::default();
    for (trial, wanted) in tests {
        sorted.any |= wanted;
        let comparison = match (trial, wanted) {
            (Trial::Comparison(comparison), _) => comparison,
            (Trial::OneOf(texts), true) => {
                sorted.must_equal(texts.iter().map(AsRef::as_ref).collect());
                continue;
            }
            (Trial::OneOf(texts), false) => {
                sorted.unequal.extend(texts.iter().map(AsRef::as_ref));
                continue;
            }
        };
        match (comparison, wanted) {
            (Comparison::Equals(text), true) => sorted.must_equal(vec![text]),
            (Comparison::Equals(text), false) => sorted.unequal.push(text),
            (Comparison::Finds(pattern), true) => sorted.found.push(pattern),
            (Comparison::Finds(pattern), false) => sorted.absent.push(pattern),
            (Comparison::Contains(text), true) => sorted.contained.push(text),
            (Comparison::Contains(_), false) => {}
            (of_trial @ Comparison::Number(comparison), wanted) => {
                sorted.numbers |= wanted;
                sorted.never_met |= *wanted && of_trial.lacks_number();
                if let Some((order, number)) = of_trial.number() {
                    sorted.bounds.note(order, *wanted, number, &comparison.operand);
                }
            }
        }
    }
    sorted
}

impl<'t> SortedTests<'t> {
    /// Notes that it must equal one of some texts, which are in order; the shortest such list has
    /// the candidates.
    fn must_equal(&mut self, texts: Vec<&'t str>) {
        // Most lists of pins have nothing in common, which the ends show of many.
        let is_plain = |texts: &[&str]| !matches!(texts, [only] if has_exponent(only));
        if let Some(known) = &mut self.equal
            && is_plain(&texts)
            && is_plain(known)
            && (texts.last() < known.first() || known.last() < texts.first())
        {
            known.clear();
            return;
        }
        if self.equal.as_ref().is_none_or(|it| texts.len() < it.len()) {
            self.equal = Some(texts);
        }
    }
}

/// A value that may be chosen. Most are texts that do not pass, so none is copied before it does.
enum CandidateValue<'t> {
    Text(&'t str),
    Other(Value),
}

impl CandidateValue<'_> {
    fn actual(&self) -> Actual<'_> {
        match self {
            Self::Text(text) => Actual::Text(text),
            Self::Other(value) => Actual::of(value),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Other(value) => value,
        }
    }
}

/// Returns whether a value passes all tests as wanted; `None` if that is unknown.
fn passes(value: &CandidateValue<'_>, tests: &[(&Trial, bool)]) -> Option<bool> {
    let mut sure = Some(true);
    for (trial, wanted) in tests {
        let outcome = match trial {
            Trial::Comparison(comparison) => holds(comparison, value.actual()),
            Trial::OneOf(texts) => Ok(match value.actual() {
                Actual::Text(text) | Actual::Scalar(text) => {
                    texts.binary_search_by(|it| it.as_ref().cmp(text)).is_ok()
                }
                Actual::Missing | Actual::List(_) | Actual::Object => false,
            }),
        };
        match outcome {
            Ok(holds) if holds == *wanted => {}
            Ok(_) => return Some(false),
            Err(_) => sure = None,
        }
    }
    sure
}

fn first_of<'t>(
    values: impl Iterator<Item = CandidateValue<'t>>,
    passes: impl Fn(&CandidateValue<'_>) -> Option<bool>,
) -> Choice {
    let mut unknown = false;
    for value in values {
        match passes(&value) {
            Some(true) => return Choice::Value(value.into_value()),
            Some(false) => {}
            None => unknown = true,
        }
    }
    if unknown { Choice::Unknown } else { Choice::Impossible }
}

/// Returns the number or boolean whose text this is.
fn scalar(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => {
            let number: Number = serde_json::from_str(text).ok()?;
            is_written_as(number.as_str(), text).then_some(Value::Number(number))
        }
    }
}

impl<'t> NumberBounds<'t> {
    /// Notes what a number must be compared with another one, or must not be.
    fn note(&mut self, order: Order, wanted: bool, number: &'t Decimal, text: &'t str) {
        let is_low = matches!(order, Order::Greater | Order::AtLeast) == wanted;
        let (slot, nearer) = if is_low {
            (&mut self.low, Ordering::Greater)
        } else {
            (&mut self.high, Ordering::Less)
        };
        if slot.is_none_or(|(known, _)| number.cmp(known) == nearer) {
            *slot = Some((number, text.trim()));
        }
    }

    /// Returns whether one of some numbers lies between them, or none can.
    fn are_met_by(&self, numbers: &[String]) -> bool {
        let is_within = |number: &Decimal| {
            self.low.is_none_or(|(low, _)| number.cmp(low) == Ordering::Greater)
                && self.high.is_none_or(|(high, _)| number.cmp(high) == Ordering::Less)
        };
        let have_room = match (self.low, self.high) {
            (Some((low, _)), Some((high, _))) => low.cmp(high) == Ordering::Less,
            (low, high) => low.is_some() || high.is_some(),
        };
        !have_room || numbers.iter().filter_map(|it| Decimal::parse(it)).any(|it| is_within(&it))
    }

    /// Returns a pattern that is found in each number between them of few digits, and in some beyond them; none if they are
    /// too large.
    fn pattern(&self) -> Option<String> {
        let whole = |text: &str| -> Option<i128> {
            let number: f64 = text.parse().ok()?;
            // Others are beyond what is counted by ones.
            #[expect(clippy::cast_possible_truncation, reason = "it is small")]
            (number.abs() < 1e15).then(|| number.floor() as i128)
        };
        let bound = |of: Option<(&Decimal, &str)>| match of {
            None => Some(None),
            Some((_, text)) => whole(text).map(Some),
        };
        let (low, high) = (bound(self.low)?, bound(self.high)?);
        (low.is_none_or(|low| high.is_none_or(|high| low <= high)))
            .then(|| numbers_between(low, high))
    }

    /// Returns numbers of which one meets every comparison that any number meets: the bounds, one between them, and
    /// one beyond a bound that has no other side. All other numbers that are compared with lie outside.
    fn candidates(&self) -> Vec<String> {
        let bounds = [self.low, self.high].map(|it| it.map(|(_, text)| text));
        let further = match bounds {
            [Some(low), Some(high)] => between(low, high),
            [Some(low), None] => beyond(low, 1),
            [None, Some(high)] => beyond(high, -1),
            [None, None] => None,
        };
        bounds.into_iter().flatten().map(str::to_owned).chain(further).collect()
    }
}

fn between(low: &str, high: &str) -> Option<String> {
    if let (Ok(low), Ok(high)) = (low.parse::<i128>(), high.parse::<i128>()) {
        // Where they are too far apart to be subtracted, the halves are far apart, too.
        let middle = high.checked_sub(low).map_or(low / 2 + high / 2, |apart| low + apart / 2);
        return Some(if middle == low { format!("{low}.5") } else { middle.to_string() });
    }
    let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    Some((f64::midpoint(low, high)).to_string())
}

fn beyond(text: &str, step: i32) -> Option<String> {
    if let Ok(whole) = text.parse::<i128>() {
        return Some(whole.checked_add(i128::from(step))?.to_string());
    }
    let number: f64 = text.parse().ok()?;
    Some((number + f64::from(step) * number.abs().max(1.0)).to_string())
}
