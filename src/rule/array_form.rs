//! Writing rules in the array form.

use serde_json::{Number, Value};

use crate::model::{Condition, Path, Segment};

/// Writes a rule in the array form.
pub fn to_value(condition: &Condition) -> Value {
    let list = |operator: &str, terms: &[Condition]| {
        std::iter::once(operator.into()).chain(terms.iter().map(to_value)).collect()
    };
    match condition {
        Condition::And(terms) => Value::Array(list("and", terms)),
        Condition::Or(terms) => Value::Array(list("or", terms)),
        Condition::Not(inner) => Value::Array(vec!["not".into(), to_value(inner)]),
        Condition::Test(test) => Value::Array(vec![
            test.comparison.operator().into(),
            path_to_value(&test.path),
            test.comparison.operand().into(),
        ]),
    }
}

/// Returns how many levels of lists the array form of a rule has.
pub fn array_levels(condition: &Condition) -> usize {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => {
            1 + terms.iter().map(array_levels).max().unwrap_or_default()
        }
        Condition::Not(inner) => 1 + array_levels(inner),
        Condition::Test(test) => 1 + usize::from(matches!(test.path, Path::Segments(_))),
    }
}

/// Writes a path in the form it was written in.
pub(super) fn path_to_value(path: &Path) -> Value {
    match path {
        Path::Name => "name".into(),
        Path::Bare(text) => text.as_ref().into(),
        Path::Segments(segments) => segments
            .iter()
            .map(|segment| match segment {
                Segment::Key(key) => Value::from(key.as_ref()),
                Segment::Index(index) => Value::Number(Number::from(*index)),
            })
            .collect(),
    }
}
