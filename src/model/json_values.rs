//! How many values a JSON text has, counted before anything is made of it, and what they take then.

use serde_json::{Map, Value};

/// The most values of a request body, and of what is known of one node. A value of two bytes takes a
/// hundred times as much memory once it is read.
pub const NODE_VALUES: usize = 250_000;

/// Returns whether JSON has more than so many values.
pub fn has_more_values(json: &[u8], most: usize) -> bool {
    // Each value in a container takes two bytes: its own, and a comma or the end of the container.
    json.len() / 2 >= most && count_values(json) > most
}

/// About how many bytes of memory a value takes, whatever its text.
const EACH: usize = 300;

/// Returns about how many bytes of memory a document takes, as values beside its text.
pub fn value_memory(json: &[u8]) -> usize {
    json.len() + EACH * count_values(json)
}

/// Returns about how many bytes of memory an object takes.
pub fn map_memory(map: &Map<String, Value>) -> usize {
    let entries = map.iter().map(|(key, value)| key.len() + memory_of(value));
    EACH + entries.sum::<usize>()
}

/// Returns about how many bytes of memory a value takes.
pub fn memory_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => EACH,
        Value::Number(number) => EACH + number.as_str().len(),
        Value::String(text) => EACH + text.len(),
        Value::Array(elements) => EACH + elements.iter().map(memory_of).sum::<usize>(),
        Value::Object(map) => map_memory(map),
    }
}

/// Counts the values of JSON: one, one more where a container opens and for each comma. What is not
/// valid JSON is not read any further than it is counted here.
fn count_values(json: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_before_they_are_made() {
        for (text, most) in [
            ("0", 1),
            ("[]", 2),
            ("[0]", 2),
            ("[0,0]", 3),
            (r#"{"a":[0,{"b":1}],"c":2}"#, 6),
            (r#"[",[{\\\",[",0]"#, 3),
            (r#"["\\\\",0]"#, 3),
        ] {
            assert_eq!(count_values(text.as_bytes()), most, "{text}");
            // Punctuation takes memory in the text alone.
            let memory = memory_of(&serde_json::from_str(text).unwrap());
            assert!(memory <= value_memory(text.as_bytes()), "{text}");
        }
        let zeros = |count| format!("[{}]", vec!["0"; count].join(","));
        assert!(!has_more_values(zeros(999).as_bytes(), 1_000));
        assert!(has_more_values(zeros(1_000).as_bytes(), 1_000));
        assert!(!has_more_values(format!("\"{}\"", ",".repeat(9_000)).as_bytes(), 1_000));
    }
}
