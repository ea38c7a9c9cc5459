//! Comparing and printing values.

use serde_json::Value;

/// Returns whether two values are the same: structure and type decide, so `1`, `1.0` and `"1"`
/// are three values; the order of an object's keys does not matter, that of an array does.
///
/// Two spellings of one integer, or of one float, are the same value.
pub fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => left == right,
    }
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let (a, b) = (a.as_str(), b.as_str());
    if a == b {
        return true;
    }
    let is_float = |text: &str| text.contains(['.', 'e', 'E']);
    match (is_float(a), is_float(b)) {
        (true, true) => match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => a.is_finite() && a.to_bits() == b.to_bits(),
            _ => false,
        },
        // `-0` is the only second spelling of an integer that JSON has.
        (false, false) => matches!((a, b), ("0", "-0") | ("-0", "0")),
        _ => false,
    }
}

/// Returns the sort of a value for a message: `a string`, `a list`, ….
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the text that rules compare: a string itself, a number or boolean as its JSON text.
///
/// Objects, arrays and null have none.
pub fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.as_str()),
        Value::Bool(true) => Some("true"),
        Value::Bool(false) => Some("false"),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns whether a number or boolean that has one text is also written as the other.
///
/// The text of a number is that of its JSON. Parsers rewrite its exponent, so `1e3`, `1E3` and
/// `1e+3` are the same text.
pub fn is_written_as(scalar: &str, text: &str) -> bool {
    if scalar == text {
        return true;
    }
    // A `+` is all that one spelling has and the other has not.
    scalar.len().abs_diff(text.len()) <= 1
        && exponent(scalar).zip(exponent(text)).is_some_and(|(scalar, text)| scalar == text)
}

/// Returns whether a text is a number with an exponent, which has several spellings.
pub fn has_exponent(text: &str) -> bool {
    exponent(text).is_some()
}

/// Splits a number with an exponent into what stands before and behind the `e`, without `+`.
fn exponent(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(|it: char| it.is_ascii_digit() || it == '-') {
        return None;
    }
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    let is_mantissa = mantissa.bytes().all(|it| it.is_ascii_digit() || matches!(it, b'.' | b'-'));
    let is_exponent = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    (is_mantissa && is_exponent).then_some((mantissa, exponent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn an_exponent_is_the_same_in_every_spelling() {
        let rows = [
            ("1e+3", "1e3", true),
            ("1e+3", "1E3", true),
            ("1e+3", "1e+3", true),
            ("-1.5e-7", "-1.5E-7", true),
            ("1e+3", "1e-3", false),
            ("1e+3", "1.0e3", false),
            ("1e+3", "1000", false),
            ("1e+3", "1e++3", false),
            ("1e+3", "1e+-3", false),
            ("1e-3", "1e+-3", false),
            ("1e+3", "1e", false),
            ("1e+3", "1e03", false),
            ("true", "true", true),
            ("true", "True", false),
        ];
        each_row(rows, |(scalar, text, expected)| {
            assert_eq!(is_written_as(scalar, text), expected, "{scalar} {text}");
        });
        for text in ["1e3", "-1.5E-7", "0e0"] {
            assert!(has_exponent(text), "{text}");
        }
        for text in ["web1e3", "e3", "1e", "1ex3", "1000", "1e3.example.com", "1e3e3", "1e+-3"] {
            assert!(!has_exponent(text), "{text}");
        }
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn sameness_is_structural_and_strict_about_types() {
        let rows = [
            ("1", "1", true),
            ("1", "1.0", false),
            ("1", "\"1\"", false),
            ("100", "1e2", false),
            ("1.0", "1.00", true),
            ("1e2", "100.0", true),
            ("1e400", "1e401", false),
            ("0", "-0", true),
            ("12345678901234567890123", "12345678901234567890124", false),
            ("true", "\"true\"", false),
            ("[1]", "[1.0]", false),
            ("[1,2]", "[2,1]", false),
            (r#"{"a":1,"b":[{"k":1}]}"#, r#"{"b":[{"k":1}],"a":1}"#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false),
            ("null", "false", false),
        ];
        each_row(rows, |(left, right, expected)| {
            assert_eq!(same(&value(left), &value(right)), expected, "{left} {right}");
        });
    }

    #[test]
    fn scalars_have_the_text_they_were_written_with() {
        for (input, expected) in [
            ("\"a\"", Some("a")),
            ("5.0", Some("5.0")),
            ("12345678901234567890123", Some("12345678901234567890123")),
            ("false", Some("false")),
            ("null", None),
            ("[]", None),
            ("{}", None),
        ] {
            assert_eq!(text(&value(input)), expected, "{input}");
        }
    }
}
