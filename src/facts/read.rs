//! Facts from the content of a file.

use super::file::FILE_BYTES;
use crate::document::{self, Count, FaultKind, Limits, Node as DocumentNode};
use crate::model::{FACT_DEPTH, Map, NODE_VALUES, Value, has_more_values, type_name};

/// What a file says of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    /// The certname, where the form has one.
    pub name: Option<String>,
    /// The facts.
    pub fact: Map<String, Value>,
    /// The trusted data, where the form has them.
    pub trusted: Option<Map<String, Value>>,
    /// Whether a fact called `trusted` was dropped from the facts that were read.
    pub drops_trusted: bool,
    /// The first keys of a request body that mean nothing there.
    pub unknown_keys: Vec<String>,
}

/// A file has no facts that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// It is neither JSON nor YAML.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
        /// What is wrong.
        message: String,
    },
    /// It is something else.
    #[error("expected an object, found {0}")]
    NotAnObject(&'static str),
    /// A part of a request body is something else.
    #[error("`{0}` must be an object")]
    PartNotAnObject(&'static str),
    /// It is a Ruby object without facts.
    #[error("the file holds a `{0}`, not a `!ruby/object:Puppet::Node::Facts`")]
    WrongTag(String),
    /// It ends before its end.
    #[error("the file is half written: the `timestamp` at its end is missing")]
    HalfWritten,
    /// It takes more memory than the facts of a node may.
    #[error("it has over {NODE_VALUES} values, the most that one node may have")]
    TooManyValues,
    /// It is about another node.
    #[error("the file holds the facts of `{0}`")]
    OtherNode(String),
}

/// The tag of facts that Puppet writes as YAML.
pub(super) const FACTS_TAG: &str = "!ruby/object:Puppet::Node::Facts";

/// What facts may cost: they are larger than what people write.
const LIMITS: Limits = Limits {
    file_bytes: FILE_BYTES,
    depth: FACT_DEPTH,
    alias_nodes: NODE_VALUES,
    alias_bytes: 16 << 20,
    ..Limits::DEFAULT
};

/// Reads facts in any form: a request body (`{"fact": …, "trusted": …}`), a plain hash as `facter`
/// prints it in JSON or YAML, the envelope of `puppet facts` and Puppet Server's cache
/// (`{"name": …, "values": …}`, in YAML with a Ruby tag, which is read as data).
///
/// A *fact* called `trusted` is dropped: agents can make it up.
///
/// # Errors
///
/// Returns an error if the content is neither JSON nor YAML, or no object, or Puppet has written half of it.
pub fn read_facts(bytes: &[u8]) -> Result<NodeFacts, FactsError> {
    let mut fields = match parse(bytes)? {
        Value::Object(fields) => fields,
        // An empty file as well.
        Value::Null => return Err(FactsError::NotAnObject("nothing")),
        other => return Err(FactsError::NotAnObject(type_name(&other))),
    };
    // YAML that breaks off is YAML; the last thing that Puppet writes is the time.
    if !fields.contains_key("timestamp") && tag(bytes).is_some_and(|it| it == FACTS_TAG) {
        return Err(FactsError::HalfWritten);
    }
    if is_body(&fields) {
        let trusted = match fields.remove("trusted") {
            None | Some(Value::Null) => None,
            Some(Value::Object(trusted)) => Some(trusted),
            Some(_) => return Err(FactsError::PartNotAnObject("trusted")),
        };
        let facts = FACTS.into_iter().find_map(|key| match fields.remove(key) {
            Some(Value::Object(facts)) => Some(facts),
            _ => None,
        });
        let name = fields.get("certname").or(fields.get("name")).and_then(Value::as_str);
        let facts = facts.unwrap_or_default();
        let facts = match is_envelope(&facts) {
            true => unwrap_envelope(facts),
            false => NodeFacts { fact: facts, ..NodeFacts::default() },
        };
        let name = name.map(str::to_owned).or(facts.name);
        let unknown_keys = fields.keys().filter(|it| !BODY.contains(&it.as_str()));
        let unknown_keys = unknown_keys.take(UNKNOWN_KEYS).cloned().collect();
        let read = NodeFacts { name, trusted, unknown_keys, ..NodeFacts::default() };
        return Ok(read.with_facts(facts.fact));
    }
    let NodeFacts { name, fact, .. } = unwrap_envelope(fields);
    Ok(NodeFacts { name, ..NodeFacts::default() }.with_facts(fact))
}

/// Returns the tag of a YAML document, as it stands behind its `---`.
pub(super) fn tag(bytes: &[u8]) -> Option<String> {
    let first = bytes.split(|byte| *byte == b'\n').next()?;
    let rest = String::from_utf8_lossy(first.strip_prefix(b"---")?).trim().to_owned();
    rest.starts_with('!').then_some(rest)
}

/// How many unknown keys of a request body are kept.
const UNKNOWN_KEYS: usize = 16;

/// The keys of a request body.
const BODY: [&str; 5] = ["fact", "facts", "trusted", "certname", "name"];

/// The keys of the facts in a request body.
const FACTS: [&str; 2] = ["fact", "facts"];

/// Returns whether an object is a request body. One without facts has trusted data alone, or says by `null` that it has
/// no facts; with other keys beside `null` it has a fact called `fact`.
fn is_body(fields: &Map<String, Value>) -> bool {
    let facts = || FACTS.into_iter().filter_map(|key| fields.get(key));
    let is_of_a_body = |key: &str| matches!(key, "trusted" | "certname" | "name");
    let has_null = facts().any(Value::is_null);
    facts().any(Value::is_object)
        || (has_null && fields.keys().all(|it| FACTS.contains(&&**it) || is_of_a_body(it)))
        || (fields.get("trusted").is_some_and(Value::is_object)
            && fields.keys().all(|it| is_of_a_body(it)))
}

impl NodeFacts {
    /// Adds facts, without the one that agents can make up.
    pub(super) fn with_facts(self, fact: Map<String, Value>) -> Self {
        let drops_trusted = fact.contains_key("trusted");
        Self { fact: without_trusted(fact), drops_trusted, ..self }
    }
}

/// Drops the fact that agents can make up.
pub(super) fn without_trusted(mut facts: Map<String, Value>) -> Map<String, Value> {
    facts.shift_remove("trusted");
    facts
}

/// The keys of Puppet's envelope; it always has the first two.
pub(super) const ENVELOPE: [&str; 4] = ["name", "values", "timestamp", "expiration"];

/// Returns whether facts of a request body stand in Puppet's envelope: exactly `name`, `values`, and at the most
/// `timestamp` and `expiration`. With other keys these are facts.
pub fn is_envelope(fields: &Map<String, Value>) -> bool {
    fields.get("name").is_some_and(Value::is_string)
        && fields.get("values").is_some_and(Value::is_object)
        && fields.keys().all(|key| ENVELOPE.contains(&key.as_str()))
}

/// Takes the facts out of the envelope of a file, which may have other keys, too.
fn unwrap_envelope(mut fields: Map<String, Value>) -> NodeFacts {
    let has_facts = fields.get("name").is_some_and(Value::is_string)
        && fields.get("values").is_some_and(Value::is_object);
    if !has_facts {
        return NodeFacts { fact: fields, ..NodeFacts::default() };
    }
    let name = fields.get("name").and_then(Value::as_str).map(str::to_owned);
    match fields.remove("values") {
        Some(Value::Object(fact)) => NodeFacts { name, fact, ..NodeFacts::default() },
        _ => NodeFacts { name, ..NodeFacts::default() },
    }
}

/// Reads JSON, or YAML that Ruby wrote.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, FactsError> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'{' | b'[')) {
        if has_more_values(bytes, NODE_VALUES) {
            return Err(FactsError::TooManyValues);
        }
        match serde_json::from_slice(bytes) {
            Ok(value) => return Ok(value),
            Err(error) => {
                let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
                // The error has the place in fields of its own.
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
                return Err(FactsError::Syntax {
                    line: number(error.line()),
                    // Behind the last line break it counts none.
                    column: number(error.column()).max(1),
                    message,
                });
            }
        }
    }
    // Keys are counted, too.
    let mut left = Some(2 * NODE_VALUES);
    let mut count = |values: usize| {
        left = left.and_then(|it| it.checked_sub(values));
        if left.is_some() { Count::Continue } else { Count::Stop }
    };
    let contents = document::read_counted(bytes, &LIMITS, &mut count);
    if left.is_none() {
        return Err(FactsError::TooManyValues);
    }
    // Ruby wrote it, and what Ruby reads differently it has put in quotes.
    let fault = contents
        .faults
        .into_iter()
        .find(|fault| !matches!(fault.kind, FaultKind::AmbiguousScalar | FaultKind::Refused));
    if let Some(fault) = fault {
        let start = fault.span.start;
        return Err(FactsError::Syntax {
            line: start.line,
            column: start.column,
            message: fault.message,
        });
    }
    only(contents.documents)
}

/// Returns the value of the only document of a file.
fn only(documents: Vec<DocumentNode>) -> Result<Value, FactsError> {
    let mut documents = documents.into_iter();
    let first = documents.next();
    match documents.find(|it| !it.is_null()) {
        Some(DocumentNode { span, .. }) => Err(FactsError::Syntax {
            line: span.start.line,
            column: span.start.column,
            message: "the facts of a node are one document, here is another".to_owned(),
        }),
        None => Ok(first.as_ref().map_or(Value::Null, DocumentNode::to_value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indoc::indoc;
    use serde_json::json;

    #[test]
    fn every_form_gives_the_same_facts() {
        let facts = json!({"os": {"family": "Debian"}, "n": 1, "clock": "12:30"});
        for text in [
            r#"{"os": {"family": "Debian"}, "n": 1, "clock": "12:30", "trusted": {"certname": "forged"}}"#,
            r#"{"fact": {"os": {"family": "Debian"}, "n": 1, "clock": "12:30"}}"#,
            r#"{"certname": "x", "facts": {"os": {"family": "Debian"}, "n": 1, "clock": "12:30"}}"#,
            r#"{"fact": {"name": "x", "values": {"os": {"family": "Debian"}, "n": 1, "clock": "12:30"}}}"#,
            r#"{"name": "x", "values": {"os": {"family": "Debian"}, "n": 1, "clock": "12:30"}, "timestamp": "t"}"#,
            "---\nos:\n  family: Debian\nn: 1\nclock: '12:30'\n",
            "os:\n  family: Debian\nn: 1\nclock: '12:30'\n...\n---\n",
            indoc! {"
                --- !ruby/object:Puppet::Node::Facts
                name: x
                values:
                  os:
                    family: Debian
                  n: 1
                  clock: '12:30'
                timestamp: 2026-11-20 21:25:23.694149531 +00:00
            "},
        ] {
            assert_eq!(Value::Object(read_facts(text.as_bytes()).unwrap().fact), facts, "{text}");
        }
    }

    #[test]
    fn half_of_what_puppet_writes_is_refused() {
        let whole =
            "--- !ruby/object:Puppet::Node::Facts\nname: x\nvalues:\n  a: 1\ntimestamp: t\n";
        let indented = "--- !ruby/object:Puppet::Node::Facts\n  name: x\n  values:\n    a: 1\n  \"timestamp\": t\n";
        assert!(read_facts(whole.as_bytes()).is_ok() && read_facts(indented.as_bytes()).is_ok());
        let half = whole.replace("timestamp: t\n", "");
        assert_eq!(read_facts(half.as_bytes()), Err(FactsError::HalfWritten));
    }

    #[test]
    fn trusted_data_come_from_the_body_only() {
        let read =
            read_facts(br#"{"fact": {"a": 1, "trusted": {"x": 1}}, "trusted": {"certname": "n"}}"#)
                .unwrap();
        assert_eq!(Value::from(read.trusted.unwrap()), json!({"certname": "n"}));
        assert_eq!(Value::from(read.fact), json!({"a": 1}));
        assert!(read.drops_trusted && read.unknown_keys.is_empty());
        let read = read_facts(br#"{"fact": {"a": 1}, "trused": {}}"#).unwrap();
        assert_eq!(read.unknown_keys, ["trused"]);
    }

    #[test]
    fn a_body_without_facts_has_its_trusted_data() {
        for (text, fact, trusted) in [
            (r#"{"trusted": {"a": 1}}"#, json!({}), Some(json!({"a": 1}))),
            (r#"{"fact": null, "trusted": {"a": 1}}"#, json!({}), Some(json!({"a": 1}))),
            (
                r#"{"fact": null, "facts": {"b": 2}, "trusted": {"a": 1}}"#,
                json!({"b": 2}),
                Some(json!({"a": 1})),
            ),
            (r#"{"facts": null, "trusted": null, "certname": "n"}"#, json!({}), None),
            ("fact: null\ntrusted: {a: 1}\n", json!({}), Some(json!({"a": 1}))),
            // Agents can make these up.
            (r#"{"trusted": {"a": 1}, "b": 2}"#, json!({"b": 2}), None),
            (r#"{"fact": null, "trusted": {"a": 1}, "b": 2}"#, json!({"fact": null, "b": 2}), None),
            (r#"{"name": "n", "values": {"trusted": {"a": 1}}}"#, json!({}), None),
        ] {
            let read = read_facts(text.as_bytes()).unwrap();
            assert_eq!(Value::from(read.fact), fact, "{text}");
            assert_eq!(read.drops_trusted, trusted.is_none() && text.contains("\"a\""), "{text}");
            assert_eq!(read.trusted.map(Value::from), trusted, "{text}");
        }
        assert_eq!(
            read_facts(br#"{"fact": null, "trusted": 1}"#),
            Err(FactsError::PartNotAnObject("trusted"))
        );
    }

    #[test]
    fn a_body_has_an_envelope_without_other_keys_and_a_file_one_with_them() {
        let inner = json!({"os": "Debian"});
        for (text, name, fact) in [
            (r#"{"fact": {"name": "n", "values": {"os": "Debian"}}}"#, Some("n"), inner.clone()),
            (
                r#"{"fact": {"name": "n", "values": {"os": "Debian"}, "timestamp": 1, "expiration": 2}}"#,
                Some("n"),
                inner.clone(),
            ),
            (
                r#"{"fact": {"name": "n", "values": {"os": "Debian"}, "x": 1}}"#,
                None,
                json!({"name": "n", "values": {"os": "Debian"}, "x": 1}),
            ),
            (
                "facts: {name: n, values: {os: Debian}, x: 1}\ncertname: c\n",
                Some("c"),
                json!({"name": "n", "values": {"os": "Debian"}, "x": 1}),
            ),
            (r#"{"name": "n", "values": {"os": "Debian"}, "x": 1}"#, Some("n"), inner),
        ] {
            let read = read_facts(text.as_bytes()).unwrap();
            assert_eq!((read.name.as_deref(), Value::from(read.fact)), (name, fact), "{text}");
        }
    }

    #[test]
    fn ruby_may_have_written_its_own_line_breaks() {
        let read = read_facts("a: 'x\u{2028}y'\nb: \"\u{85}\"\n".as_bytes()).unwrap();
        assert_eq!(Value::from(read.fact), json!({"a": "x\u{2028}y", "b": "\u{85}"}));
    }

    #[test]
    fn facts_have_a_limit_of_values() {
        let json = format!("{{\"a\": [{}]}}", vec!["0"; NODE_VALUES].join(","));
        // The mapping, its key and the list count as well.
        let yaml = |elements: usize| format!("a:\n{}", "- 0\n".repeat(elements));
        let most = 2 * NODE_VALUES - 3;
        for text in [json, yaml(most + 1), yaml(2 * NODE_VALUES)] {
            assert_eq!(read_facts(text.as_bytes()), Err(FactsError::TooManyValues));
        }
        let read = read_facts(yaml(most).as_bytes()).unwrap();
        assert_eq!(read.fact.get("a").and_then(Value::as_array).map(Vec::len), Some(most));
    }

    #[test]
    fn a_value_that_is_not_an_object_is_refused() {
        for (text, message) in [
            ("[1]", "expected an object, found a list"),
            ("", "expected an object, found nothing"),
            ("{\"a\": }", "line 1, column 7: expected value"),
            ("{\"fact\": {}, \"trusted\": 1}", "`trusted` must be an object"),
            ("a: [", "line"),
            ("a: 1\n---\nb: 2\n", "line 3, column 1: the facts of a node are one document"),
        ] {
            let error = read_facts(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
