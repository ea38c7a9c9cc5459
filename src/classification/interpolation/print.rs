//! Values in text.

use serde_json::Value;

use super::resolve::ReferencedValue;

/// Takes a text piece by piece, as long as there is room.
pub(super) trait TextSink {
    /// There is no room.
    type Full;

    /// Takes a piece.
    fn push(&mut self, text: &str) -> Result<(), Self::Full>;
}

/// Writes what a node has at a place: a string as it is, a number or boolean as in JSON, a list or an object as
/// Puppet prints it.
pub(super) fn print<S: TextSink>(found: &ReferencedValue<'_>, sink: &mut S) -> Result<(), S::Full> {
    match found {
        ReferencedValue::Missing | ReferencedValue::Withheld => Ok(()),
        ReferencedValue::Key(text) => sink.push(text),
        ReferencedValue::Value(Value::String(text)) => sink.push(text),
        ReferencedValue::Value(value) => nested(value, sink),
        ReferencedValue::Pair(key, value) => {
            sink.push("[")?;
            quote(key, sink)?;
            sink.push(",")?;
            nested(value, sink)?;
            sink.push("]")
        }
    }
}

/// Writes a value that stands in another: strings are in quotes there.
fn nested<S: TextSink>(value: &Value, sink: &mut S) -> Result<(), S::Full> {
    match value {
        Value::Null => sink.push("undef"),
        Value::Bool(true) => sink.push("true"),
        Value::Bool(false) => sink.push("false"),
        Value::Number(number) => sink.push(number.as_str()),
        Value::String(text) => quote(text, sink),
        Value::Array(elements) => {
            sink.push("[")?;
            for (at, element) in elements.iter().enumerate() {
                sink.push(if at > 0 { "," } else { "" })?;
                nested(element, sink)?;
            }
            sink.push("]")
        }
        Value::Object(fields) => {
            sink.push("{")?;
            for (at, (key, field)) in fields.iter().enumerate() {
                sink.push(if at > 0 { "," } else { "" })?;
                quote(key, sink)?;
                sink.push(" => ")?;
                nested(field, sink)?;
            }
            sink.push("}")
        }
    }
}

/// Writes a string in quotes.
fn quote<S: TextSink>(text: &str, sink: &mut S) -> Result<(), S::Full> {
    sink.push("\"")?;
    for part in text.split_inclusive(['"', '\\', '\n', '\r', '\t']) {
        let Some((last, special)) = part.char_indices().next_back() else { continue };
        let escaped = match special {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            _ => {
                sink.push(part)?;
                continue;
            }
        };
        sink.push(part.get(..last).unwrap_or_default())?;
        sink.push(escaped)?;
    }
    sink.push("\"")
}
