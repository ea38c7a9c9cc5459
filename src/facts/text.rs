//! The parts of a facts file that is JSON text, found without making anything of them.

use std::fmt;

use super::read::{ENVELOPE, NodeFacts};
use crate::json::Cursor;
use crate::model::{Map, NODE_VALUES, Value, has_more_values};

/// Returns what is wanted of facts and of trusted data that are the JSON texts of objects; `None` has the whole file read.
pub type KeepText<'k> = &'k (dyn Fn(&str, &str) -> Option<[Map<String, Value>; 2]> + Sync);

/// What is wanted of the facts of a node.
#[derive(Clone, Copy)]
pub enum WantedFacts<'k> {
    /// All.
    All,
    /// What a function keeps of them, or more.
    Some(KeepText<'k>),
}

impl fmt::Debug for WantedFacts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::Some(_) => "Some",
        })
    }
}

/// The parts of a facts file.
struct FactsText<'b> {
    name: Option<String>,
    fact: &'b str,
    trusted: Option<&'b str>,
}

/// Reads of facts what is wanted, as [`super::read_facts`] reads all of them. `None` declines the file: then only reading all says
/// what it has, or what is wrong with it.
pub(super) fn read_wanted(bytes: &[u8], keep: KeepText<'_>) -> Option<NodeFacts> {
    if has_more_values(bytes, NODE_VALUES) {
        return None;
    }
    let FactsText { name, fact, trusted } =
        FactsText::find(simdutf8::basic::from_utf8(bytes).ok()?)?;
    // That it is not there would mean that the certname of the node is put there.
    if entries(trusted.unwrap_or(NOTHING), ["certname"])? == [Some("null")] {
        return None;
    }
    let [fact, kept] = keep(fact, trusted.unwrap_or(NOTHING))?;
    let trusted = trusted.map(|_| kept);
    Some(NodeFacts { name, trusted, ..NodeFacts::default() }.with_facts(fact))
}

/// An object without entries.
const NOTHING: &str = "{}";

impl<'b> FactsText<'b> {
    /// Finds the parts of any form that [`super::read_facts`] reads.
    fn find(text: &'b str) -> Option<Self> {
        let [fact, facts, trusted, certname, name, values] =
            entries(text, ["fact", "facts", "trusted", "certname", "name", "values"])?;
        let Some(body) = [fact, facts].into_iter().flatten().find(|it| is_object(it)) else {
            // It may be a body without facts.
            if [fact, facts].contains(&Some("null")) || trusted.is_some_and(is_object) {
                return None;
            }
            return Self::unwrap_envelope(text, [name, values]);
        };
        let trusted = match trusted {
            None | Some("null") => None,
            Some(trusted) if is_object(trusted) => Some(trusted),
            Some(_) => return None,
        };
        let ([name_within, values, ..], has_others) = entries_and_others(body, ENVELOPE)?;
        let of_envelope = if has_others { [None; 2] } else { [name_within, values] };
        let inner = Self::unwrap_envelope(body, of_envelope)?;
        let name = match certname.or(name) {
            Some(name) if is_string(name) => Some(read_string(name)?),
            _ => inner.name,
        };
        Some(Self { name, trusted, ..inner })
    }

    /// Takes the facts out of Puppet's envelope, if they are in one: if these are its entries `name` and `values`.
    fn unwrap_envelope(text: &'b str, entries: [Option<&'b str>; 2]) -> Option<Self> {
        Some(match entries {
            [Some(name), Some(values)] if is_string(name) && is_object(values) => {
                Self { name: Some(read_string(name)?), fact: values, trusted: None }
            }
            _ => Self { name: None, fact: text, trusted: None },
        })
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{')
}

fn is_string(text: &str) -> bool {
    text.starts_with('"')
}

fn read_string(text: &str) -> Option<String> {
    serde_json::from_str(text).ok()
}

/// Returns the texts of the values that an object has for some keys. One of those keys twice is declined.
fn entries<'b, const N: usize>(text: &'b str, keys: [&str; N]) -> Option<[Option<&'b str>; N]> {
    entries_and_others(text, keys).map(|(found, _)| found)
}

/// Returns the same, and whether the object has other keys.
fn entries_and_others<'b, const N: usize>(
    text: &'b str,
    keys: [&str; N],
) -> Option<([Option<&'b str>; N], bool)> {
    let (mut found, mut has_others) = ([None; N], false);
    let mut cursor = Cursor::new(text);
    let mut more = cursor.open_object()?;
    while more {
        let key = cursor.key()?;
        let start = cursor.position();
        cursor.skip()?;
        if let Some(at) = keys.iter().position(|it| *it == key) {
            let found = found.get_mut(at)?;
            if found.is_some() {
                return None;
            }
            *found = Some(cursor.since(start)?);
        } else {
            has_others = true;
        }
        more = cursor.next_entry()?;
    }
    cursor.is_at_end().then_some((found, has_others))
}

#[cfg(test)]
mod tests {
    use super::super::read::read_facts;
    use super::*;
    use crate::table::each_row;

    /// Keeps all.
    fn whole(fact: &str, trusted: &str) -> Option<[Map<String, Value>; 2]> {
        Some([serde_json::from_str(fact).ok()?, serde_json::from_str(trusted).ok()?])
    }

    #[test]
    fn every_form_of_json_has_the_parts_that_reading_all_finds() {
        let rows = [
            "{}",
            r#"{"os": {"family": "Debian"}, "n": 1.50, "trusted": "forged"}"#,
            r#" {"fact": {"a": 1, "trusted": 1}} "#,
            r#"{"facts": {"a": 1}, "fact": 1, "certname": "x"}"#,
            r#"{"facts": {"a": 1}, "fact": {"a": 2}, "name": "x", "certname": 1}"#,
            r#"{"fact": {"name": "x", "values": {"a": 1}}, "name": "y"}"#,
            r#"{"fact": {"name": "x", "values": {"a": 1}}}"#,
            r#"{"fact": {"name": "x", "values": 1}, "trusted": null}"#,
            r#"{"fact": {"name": "x", "values": {"a": 1}, "timestamp": 1, "expiration": 2}}"#,
            r#"{"fact": {"name": "x", "values": {"a": 1}, "b": 2}}"#,
            r#"{"fact": {"b": 2, "name": "x", "values": {"a": 1}}, "certname": "y"}"#,
            r#"{"name": "x", "values": {"a": 1}, "b": 2}"#,
            r#"{"fact": {"a": "\u00e9"}, "trusted": {"certname": "x", "extensions": {}}}"#,
            r#"{"name": "\u00e9", "values": {"a": 1}, "timestamp": "t"}"#,
            r#"{"name": 1, "values": {"a": 1}}"#,
            r#"{"name": "x", "values": [1]}"#,
            r#"{"fact": 1, "trusted": 1}"#,
            r#"{"trusted": null}"#,
            r#"{"a": 1, "a": {"b": 2}}"#,
        ];
        each_row(rows, |text| {
            let read = read_facts(text.as_bytes()).unwrap();
            assert_eq!(read_wanted(text.as_bytes(), &whole), Some(read), "{text}");
        });
    }

    #[test]
    fn what_only_reading_all_can_decide_is_declined() {
        let many = format!("{{\"a\": [{}]}}", vec!["0"; NODE_VALUES].join(","));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(100), "]".repeat(100));
        let rows = [
            "",
            "a: 1\n",
            "[1]",
            r#"{"a": }"#,
            r#"{"a": 1} 2"#,
            r#"{"fact": {}, "trusted": 1}"#,
            r#"{"fact": {"a": 1}, "fact": {"b": 1}}"#,
            r#"{"fact": null, "a": 1}"#,
            r#"{"trusted": {"certname": "x"}}"#,
            r#"{"a": 1, "trusted": {"certname": "forged"}}"#,
            r#"{"fact": {"a": 1}, "trusted": {"certname": null}}"#,
            r#"{"a": "\ud83d"}"#,
            r#"{"\u0066act": {"a": 1}}"#,
            &many,
            &deep,
        ];
        each_row(rows, |text| {
            assert_eq!(read_wanted(text.as_bytes(), &whole), None, "{text}");
        });
        assert_eq!(read_wanted(b"{\"a\": \"caf\xe9\"}", &whole), None);
    }
}
