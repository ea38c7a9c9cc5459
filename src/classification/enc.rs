//! The document that an external node classifier prints.
//!
//! It is JSON that YAML 1.1 readers (Psych, `SnakeYAML`) read to the same values: both take a
//! double-quoted string for a string whatever it looks like, but they refuse or alter some
//! characters that JSON writes raw, and take a float without a dot for a string.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Final;

/// Writes the ENC document of a classification: `classes`, `parameters` and `environment`, which
/// is left out where the choice is the agent's.
pub fn enc_document(result: &Final<'_>) -> String {
    let classes: Map<String, Value> = result
        .classes
        .iter()
        .map(|(name, class)| {
            let parameters: Map<String, Value> = class
                .parameters
                .iter()
                .map(|(key, it)| (key.to_string(), it.value.as_ref().clone()))
                .collect();
            (name.to_string(), parameters.into())
        })
        .collect();
    let variables: Map<String, Value> = result
        .variables
        .iter()
        .map(|(name, it)| (name.to_string(), it.value.as_ref().clone()))
        .collect();
    let mut document = Map::new();
    document.insert("classes".to_owned(), classes.into());
    document.insert("parameters".to_owned(), variables.into());
    if !result.environment.is_agent_specified() {
        document.insert("environment".to_owned(), result.environment.as_str().into());
    }
    let mut text = to_yaml11(&Value::Object(document));
    text.push('\n');
    text
}

/// Writes a value as one line of JSON that YAML 1.1 readers read to the same value.
pub fn to_yaml11(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

fn write_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => write_number(text, number.as_str()),
        Value::String(string) => write_string(text, string),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_value(text, element);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, field)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_key(text, key);
                text.push_str(": ");
                write_value(text, field);
            }
            text.push('}');
        }
    }
}

/// Writes a key; one that is too long to be recognised as a key is marked as one.
fn write_key(text: &mut String, key: &str) {
    /// The longest key, as it is written, that YAML readers recognise by the colon behind it.
    const LIMIT: usize = 1000;
    let start = text.len();
    write_string(text, key);
    if text.len() - start > LIMIT {
        text.insert_str(start, "? ");
    }
}

/// Writes a number; a float gets a dot and a signed exponent.
fn write_number(text: &mut String, number: &str) {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        // `-0` is the integer 0 to YAML readers, as it is to JSON's.
        return text.push_str(number);
    };
    text.push_str(mantissa);
    if !mantissa.contains('.') {
        text.push_str(".0");
    }
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    let _infallible = write!(text, "e{sign}{exponent}");
}

fn write_string(text: &mut String, string: &str) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let _infallible = write!(text, "\\u{:04x}", u32::from(character));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::same;
    use crate::table::each_row;

    #[test]
    fn values_are_written_for_yaml_1_1() {
        let rows = [
            (r#""2024-01-31""#, r#""2024-01-31""#),
            ("1e16", "1.0e+16"),
            ("1.5E-7", "1.5e-7"),
            ("1.5e300", "1.5e+300"),
            ("-0.0", "-0.0"),
            ("12345678901234567890123", "12345678901234567890123"),
            (r#""a\/b""#, r#""a/b""#),
            (
                r#""\u007f\u0085\u2028\ufffe\u0000\u001b""#,
                r#""\u007f\u0085\u2028\ufffe\u0000\u001b""#,
            ),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (r#"{"a": [1, null, {}], "": []}"#, r#"{"a": [1, null, {}], "": []}"#),
        ];
        each_row(rows, |(json, expected)| {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(to_yaml11(&value), expected);
            let read_back: Value = serde_json::from_str(expected).unwrap();
            assert!(same(&read_back, &value), "{json}");
        });
    }

    #[test]
    fn long_keys_are_marked() {
        let (short, long) = ("k".repeat(998), "k".repeat(999));
        let write = |key: &str| to_yaml11(&serde_json::json!({ key: 1, "z": 2 }));
        assert_eq!(write(&short), format!("{{\"{short}\": 1, \"z\": 2}}"));
        assert_eq!(write(&long), format!("{{? \"{long}\": 1, \"z\": 2}}"));
    }
}
