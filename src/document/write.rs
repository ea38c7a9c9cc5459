//! Values to YAML in the house layout.
//!
//! Plain scalars are written only where every YAML reader takes them for the string they are.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::scalar::{Resolved, resolve};

/// How a value is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLayout {
    /// Mappings and lists over several lines.
    Block,
    /// Everything on one line, as in JSON.
    Flow,
}

/// Writes a document; `layout` says how the value below each way of keys is laid out.
///
/// The result ends with a line break. A mapping's null is written as nothing at all.
pub fn write(value: &Value, layout: &dyn Fn(&[&str]) -> ValueLayout) -> String {
    let mut writer = YamlWriter { text: String::new(), layout };
    match value {
        Value::Object(fields) if !fields.is_empty() => writer.block(value, 0, &mut Vec::new()),
        Value::Array(elements) if !elements.is_empty() => writer.block(value, 0, &mut Vec::new()),
        _ => {
            writer.flow(value);
            writer.text.push('\n');
        }
    }
    writer.text
}

/// Writes the lines of a list or mapping that is not empty, each indented so far, with everything below it over
/// several lines.
pub fn write_indented(value: &Value, indent: usize) -> String {
    block(value, indent, &[], &|_| ValueLayout::Block)
}

/// Writes the lines of a list or mapping that is not empty, each indented so far; `way` is that of
/// the keys that lead to it.
pub(super) fn block<'v>(
    value: &'v Value,
    indent: usize,
    way: &[&'v str],
    layout: &dyn Fn(&[&str]) -> ValueLayout,
) -> String {
    let mut writer = YamlWriter { text: String::new(), layout };
    writer.block(value, indent, &mut way.to_vec());
    writer.text
}

/// Writes a value on one line.
pub(super) fn inline(value: &Value) -> String {
    let mut writer = YamlWriter { text: String::new(), layout: &|_| ValueLayout::Flow };
    writer.flow(value);
    writer.text
}

/// Writes text in double quotes, as JSON and YAML both read it.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            it if it.is_control()
                || matches!(it, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                let _infallible = write!(quoted, "\\u{:04x}", u32::from(it));
            }
            it => quoted.push(it),
        }
    }
    quoted.push('"');
    quoted
}

struct YamlWriter<'l> {
    text: String,
    layout: &'l dyn Fn(&[&str]) -> ValueLayout,
}

impl YamlWriter<'_> {
    fn block<'v>(&mut self, value: &'v Value, indent: usize, way: &mut Vec<&'v str>) {
        match value {
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.indent(indent);
                    let key_text = inline_string(key);
                    self.text.push_str(&block_key(&key_text, indent));
                    self.text.push(':');
                    way.push(key);
                    self.after_mark(field, indent, way);
                    way.pop();
                }
            }
            Value::Array(elements) => {
                for element in elements {
                    self.indent(indent);
                    self.text.push('-');
                    self.after_mark(element, indent, way);
                }
            }
            _ => {}
        }
    }

    /// Writes what follows a `key:` or a `-`.
    fn after_mark<'v>(&mut self, value: &'v Value, indent: usize, way: &mut Vec<&'v str>) {
        let nested = match value {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(elements) => !elements.is_empty(),
            _ => false,
        };
        if nested && (self.layout)(way) == ValueLayout::Block {
            self.text.push('\n');
            self.block(value, indent + 2, way);
            return;
        }
        if !value.is_null() {
            self.text.push(' ');
            self.flow(value);
        }
        self.text.push('\n');
    }

    fn indent(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }

    fn flow(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                self.text.push('{');
                for (index, (key, field)) in fields.iter().enumerate() {
                    self.text.push_str(if index > 0 { ", " } else { "" });
                    self.string(key);
                    self.text.push_str(": ");
                    self.flow(field);
                }
                self.text.push('}');
            }
            Value::Array(elements) => {
                self.text.push('[');
                for (index, element) in elements.iter().enumerate() {
                    self.text.push_str(if index > 0 { ", " } else { "" });
                    match element {
                        // Lists read best in one style.
                        Value::String(text) => self.text.push_str(&quote(text)),
                        element => self.flow(element),
                    }
                }
                self.text.push(']');
            }
            Value::String(text) => self.string(text),
            Value::Number(number) => self.number(number.as_str()),
            other => self.text.push_str(&other.to_string()),
        }
    }

    /// Writes a number so that YAML 1.1 readers take it for one: with a dot and a signed exponent.
    fn number(&mut self, number: &str) {
        let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
            return self.text.push_str(number);
        };
        let dot = if mantissa.contains('.') { "" } else { ".0" };
        let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
        let _infallible = write!(self.text, "{mantissa}{dot}e{sign}{exponent}");
    }

    fn string(&mut self, text: &str) {
        self.text.push_str(&inline_string(text));
    }
}

/// Writes a string on one line.
fn inline_string(text: &str) -> Cow<'_, str> {
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(quote(text)) }
}

/// Returns what stands before the colon of an entry that is indented so far: a long key needs a mark of its own.
pub(super) fn block_key(key: &str, indent: usize) -> Cow<'_, str> {
    /// How many characters YAML reads to find the colon behind a key, the quotes and escapes of the key included.
    const LONGEST: usize = 1024;
    match key.len() < LONGEST {
        true => Cow::Borrowed(key),
        false => Cow::Owned(format!("? {key}\n{:indent$}", "")),
    }
}

/// Returns whether a string may stand without quotes: letters first, nothing that YAML gives a
/// meaning, and no word that a reader takes for something else.
fn is_plain(text: &str) -> bool {
    let first = |it: char| it.is_alphabetic() || matches!(it, '_' | '/');
    let inside = |it: char| {
        it.is_alphanumeric()
            || matches!(it, '_' | '-' | '.' | '/' | ' ' | '+' | '@' | '(' | ')' | '\'')
    };
    let colons = text.replace("::", "");
    text.starts_with(first)
        && !text.ends_with([' ', ':'])
        && !text.contains("::\u{20}")
        && colons.chars().all(inside)
        && text.len() < 200
        && resolve(text) == Resolved::Text
}
