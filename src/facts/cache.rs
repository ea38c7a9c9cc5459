//! The facts that Puppet Server keeps of each node.
//!
//! They are JSON (`server_data/facts`), or YAML with a Ruby tag (`yaml/facts`). Agents send what is
//! under `values`, and nothing else.

use super::read::{FACTS_TAG, FactsError, NodeFacts, read_facts, tag};

/// Reads the facts of one node from its file. A fact called `trusted` is dropped: agents can make it up.
///
/// # Errors
///
/// Returns an error if the file cannot be read, is half written, or is about another node.
pub(super) fn read_cached(bytes: &[u8], certname: &str) -> Result<NodeFacts, FactsError> {
    if let Some(tag) = tag(bytes)
        && tag != FACTS_TAG
    {
        return Err(FactsError::WrongTag(tag));
    }
    let facts = read_facts(bytes)?;
    match facts.name {
        Some(name) if name != certname => Err(FactsError::OtherNode(name)),
        _ => Ok(facts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indoc::indoc;
    use serde_json::{Value, json};

    const YAML: &str = indoc! {"
        --- !ruby/object:Puppet::Node::Facts
        name: n
        values:
          os:
            family: Debian
          trusted:
            certname: forged
        timestamp: 2026-11-20 21:25:23.694149531 +00:00
    "};

    #[test]
    fn both_forms_are_read_without_what_agents_make_up() {
        let json = r#"{"name": "n", "values": {"os": {"family": "Debian"}, "trusted": {"certname": "forged"}}, "timestamp": "2026-11-20T21:25:23.694149531+00:00"}"#;
        for text in [json, YAML, &YAML.replace(" !ruby/object:Puppet::Node::Facts", "")] {
            let facts = read_cached(text.as_bytes(), "n").unwrap();
            assert_eq!(Value::from(facts.fact), json!({"os": {"family": "Debian"}}), "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let cut = YAML.split_once("timestamp").unwrap().0;
        for (bytes, message) in [
            (
                YAML.replace("Puppet::Node::Facts", "Puppet::Node").into_bytes(),
                "the file holds a `!ruby/object:Puppet::Node`, not a `!ruby/object:Puppet::Node::Facts`",
            ),
            (cut.into(), "the file is half written: the `timestamp` at its end is missing"),
            (br#"{"name": "n", "values": {"os": {"fam"#.to_vec(), "line 1, column 36: "),
            (b"".to_vec(), "expected an object, found nothing"),
            (br#"{"name": "other", "values": {}}"#.to_vec(), "the file holds the facts of `other`"),
            (b"{\"name\": \"n\", \"values\": {\"x\": \"caf\xe9\"}}".to_vec(), "line 1, column 3"),
            (YAML.encode_utf16().flat_map(u16::to_le_bytes).collect(), "line 1"),
        ] {
            let error = read_cached(&bytes, "n").unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
