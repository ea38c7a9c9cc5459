//! A value that passes some tests and fails others.

use serde_json::{Number, Value};

use super::formula::Trial;
use crate::java_regex::{Example, Examples, Pattern};
use crate::model::{Comparison, Decimal, has_exponent, is_written_as};
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
    operands: Vec<&'t str>,
    any: bool,
}

/// Chooses a value; the certname is always a text, and never empty.
pub(super) fn choose(is_name: bool, tests: &[(&Trial, bool)], examples: &mut Examples) -> Choice {
    let mut sorted = sort(tests);
    if !sorted.any && !is_name {
        return Choice::Missing;
    }
    let passes = |value: &CandidateValue<'_>| match value {
        CandidateValue::Text("") if is_name => Some(false),
        value => passes(value, tests),
    };
    let other = |text| scalar(text).filter(|_| !is_name).map(CandidateValue::Other);
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
    let numbers = numbers(&sorted.operands);
    if sorted.numbers {
        let values = numbers.iter().flat_map(|it| [other(it), Some(CandidateValue::Text(it))]);
        let chosen = first_of(values.flatten(), passes);
        let textual = !sorted.found.is_empty();
        return match chosen {
            // A pattern may want a number that is none of those at the borders.
            Choice::Impossible if textual => Choice::Unknown,
            chosen => chosen,
        };
    }
    if is_name {
        sorted.unequal.push("");
    }
    match examples.find(&sorted.found, &sorted.absent, &sorted.unequal) {
        // Only a comparison with numbers can still mind.
        Example::Text(found) if passes(&CandidateValue::Text(&found)) == Some(true) => {
            Choice::Value(found.into())
        }
        Example::Text(_) => Choice::Unknown,
        Example::Nothing => Choice::Impossible,
        Example::Unknown => Choice::Unknown,
    }
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
            (Comparison::Number(comparison), wanted) => {
                sorted.numbers |= wanted;
                sorted.operands.push(&comparison.operand);
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
    passes: impl Fn(&CandidateValue<'t>) -> Option<bool>,
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

/// Returns numbers of which one meets every comparison with the operands that any number meets:
/// the operands, one between each two, and one beyond either end.
fn numbers(operands: &[&str]) -> Vec<String> {
    let mut known: Vec<(Decimal, &str)> =
        operands.iter().filter_map(|it| Some((Decimal::parse(it)?, it.trim()))).collect();
    known.sort_by(|a, b| a.0.cmp(&b.0));
    known.dedup_by(|a, b| a.0 == b.0);
    let texts: Vec<&str> = known.iter().map(|(_, text)| *text).collect();
    let mut numbers: Vec<String> = texts.iter().map(|it| (*it).to_owned()).collect();
    for pair in texts.windows(2) {
        if let [low, high] = pair {
            numbers.extend(between(low, high));
        }
    }
    if let (Some(least), Some(most)) = (texts.first(), texts.last()) {
        numbers.extend(beyond(least, -1));
        numbers.extend(beyond(most, 1));
    }
    numbers
}

fn between(low: &str, high: &str) -> Option<String> {
    if let (Ok(low), Ok(high)) = (low.parse::<i128>(), high.parse::<i128>()) {
        let middle = low + (high - low) / 2;
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
