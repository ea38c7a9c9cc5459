//! Numbers that no value of Puppet can be.

use serde_json::{Number, Value};

use crate::model::is_written_as;

/// Refuses numbers that are beyond the floats of Puppet, which no file of groups can hold; `json` is
/// what the value was read from, if that is known.
///
/// # Errors
///
/// Returns a sentence with the place of the first such number, and the number as written.
pub fn check_numbers(value: &Value, json: &str) -> Result<(), String> {
    let mut pointer = String::new();
    let Some(number) = beyond_floats(value, &mut pointer) else { return Ok(()) };
    let written = as_written(json, number.as_str()).unwrap_or(number.as_str());
    Err(format!(
        "the number `{written}` at `{pointer}` is beyond the floats of Puppet, which end at 1.8e308: \
         write a smaller number, or a string"
    ))
}

/// Returns the first such number, and leaves the way to it as a JSON pointer.
fn beyond_floats<'v>(value: &'v Value, pointer: &mut String) -> Option<&'v Number> {
    let mut inside = |step: &str, value: &'v Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(step);
        let found = beyond_floats(value, pointer);
        if found.is_none() {
            pointer.truncate(length);
        }
        found
    };
    match value {
        Value::Number(number) => {
            let text = number.as_str();
            // An integer of any size stays one.
            let is_float = text.contains(['.', 'e']);
            let is_infinite = || text.parse::<f64>().is_ok_and(f64::is_infinite);
            (is_float && is_infinite()).then_some(number)
        }
        Value::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(index, element)| inside(&index.to_string(), element))
        }
        Value::Object(fields) => fields
            .iter()
            .find_map(|(key, field)| inside(&key.replace('~', "~0").replace('/', "~1"), field)),
        _ => None,
    }
}

/// Returns how the first such number is written: a parser rewrites exponents.
fn as_written<'j>(json: &'j str, number: &str) -> Option<&'j str> {
    let (mut in_string, mut is_escaped, mut start) = (false, false, None);
    for (at, byte) in json.bytes().enumerate() {
        let is_part = byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        match start {
            Some(from) if !is_part => {
                let found = json.get(from..at)?;
                if is_written_as(found, number) {
                    return Some(found);
                }
                start = None;
            }
            None if !in_string && (byte.is_ascii_digit() || byte == b'-') => start = Some(at),
            _ => {}
        }
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_floats_is_named_with_its_place_and_as_written() {
        for (json, expected) in [
            (r#"{"classes": {"a": {"p": 1E400}}}"#, Some(("1E400", "/classes/a/p"))),
            (r#"[{"x/y": ["1E400", 1e3, -1.5e+309]}]"#, Some(("-1.5e+309", "/0/x~1y/2"))),
            (r#"{"a\"": "1e400", "b": 1e400 }"#, Some(("1e400", "/b"))),
            (r#"{"a": [1e308, 1e-400, 10000000000]}"#, None),
            (&format!("[1{}]", "0".repeat(400)), None),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            let found = check_numbers(&value, json).err();
            let expected =
                expected.map(|(number, at)| format!("the number `{number}` at `{at}` is"));
            match (&found, &expected) {
                (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
                (found, expected) => assert_eq!(found, expected, "{json}"),
            }
        }
    }
}
