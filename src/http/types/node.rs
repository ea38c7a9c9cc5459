//! Requests that submit facts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::violation::SchemaViolation;
use crate::facts::is_envelope;

/// What a client submits of a node: facts and trusted data. Unknown keys are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeBody {
    /// Facts; `facts` stands for it, and a facts envelope of Puppet's is unwrapped.
    #[schema(value_type = Object, required = false)]
    pub fact: Map<String, Value>,
    /// Trusted data.
    #[schema(value_type = Object, required = false)]
    pub trusted: Map<String, Value>,
    /// Which run of the agent it is for.
    #[schema(nullable = false)]
    pub transaction_uuid: Option<String>,
}

impl NodeBody {
    /// Reads a body; an empty one submits nothing. The name of the node is that of the URL.
    pub(in crate::http) fn read(body: Option<Value>) -> Result<Self, SchemaViolation> {
        let mut fields = match body {
            None => return Ok(Self::default()),
            Some(Value::Object(fields)) => fields,
            Some(submitted) => {
                let error = "(not (map? the-body))".to_owned();
                return Err(SchemaViolation { schema: "Node", submitted, error });
            }
        };
        let mut object = |key: &str| match fields.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => {
                let error = format!("([:{key} (not (map? {other}))])");
                let submitted = Map::from_iter([(key.to_owned(), other)]).into();
                Err(SchemaViolation { schema: "Node", submitted, error })
            }
        };
        let fact = match object("fact")? {
            Some(fact) => Some(fact),
            None => object("facts")?,
        };
        let trusted = object("trusted")?.unwrap_or_default();
        let transaction_uuid = fields.get("transaction_uuid").and_then(Value::as_str);
        Ok(Self {
            fact: fact.map(unwrap_envelope).unwrap_or_default(),
            trusted,
            transaction_uuid: transaction_uuid.map(str::to_owned),
        })
    }
}

/// Returns which shape a classification request has, for metrics: clients differ.
pub(in crate::http) fn shape(body: Option<&Value>) -> &'static str {
    let Some(body) = body else { return "empty" };
    let given = ["fact", "facts"].into_iter().find_map(|key| {
        let facts = body.get(key)?.as_object()?;
        Some((key, is_envelope(facts)))
    });
    match given {
        Some(("fact", false)) => "fact",
        Some(("fact", true)) => "fact-envelope",
        Some((_, false)) => "facts",
        Some((_, true)) => "facts-envelope",
        None if body.get("trusted").is_some() => "trusted",
        None => "other",
    }
}

/// Takes facts out of Puppet's envelope.
fn unwrap_envelope(mut fact: Map<String, Value>) -> Map<String, Value> {
    if !is_envelope(&fact) {
        return fact;
    }
    match fact.remove("values") {
        Some(Value::Object(values)) => values,
        _ => fact,
    }
}

/// Facts as Foreman's clients send them. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, ToSchema)]
pub struct FactsUpload {
    /// The certname; without it, `name` is.
    #[schema(nullable = false)]
    pub certname: Option<String>,
    /// The certname, where the body has no other.
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The facts.
    #[schema(value_type = Object)]
    pub facts: Map<String, Value>,
}

impl FactsUpload {
    /// Reads a body.
    pub(in crate::http) fn read(mut body: Value) -> Result<Self, SchemaViolation> {
        let text = |key: &str| {
            let text = body.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
            text.map(str::to_owned)
        };
        let (certname, name) = (text("certname"), text("name"));
        let violation = |submitted: Value, error: &str| {
            Err(SchemaViolation { schema: "Facts", submitted, error: error.to_owned() })
        };
        let faults = Self::faults(&body);
        let facts = match body.get_mut("facts") {
            Some(Value::Object(facts)) if faults.is_empty() => facts,
            _ => return violation(body, &format!("({})", faults.join(" "))),
        };
        // An agent can send a fact of this name; it is not what a certificate proves.
        facts.remove("trusted");
        // They would not take the place of facts that are known, and the client would be told that they did.
        if facts.is_empty() {
            return violation(body, "({:facts (not (seq facts))})");
        }
        Ok(Self { certname, name, facts: std::mem::take(facts) })
    }

    /// Returns what is missing in a body, or of a wrong type.
    fn faults(body: &Value) -> Vec<&'static str> {
        if !body.is_object() {
            return vec!["not (map? the-body)"];
        }
        // One of the names is enough.
        let name = match [body.get("certname"), body.get("name")] {
            // No route leads to a node with an empty name.
            [Some(Value::String(name)), _] | [_, Some(Value::String(name))] if !name.is_empty() => {
                None
            }
            [_, Some(Value::String(_))] => Some("{:name (not (seq name))}"),
            [Some(Value::String(_)), None] => Some("{:certname (not (seq certname))}"),
            [_, Some(_)] => Some("{:name (not (string? name))}"),
            [Some(_), None] => Some("{:certname (not (string? certname))}"),
            [None, None] => Some("{:name missing-required-key}"),
        };
        let facts = match body.get("facts") {
            Some(Value::Object(_)) => None,
            Some(_) => Some("{:facts (not (map? facts))}"),
            None => Some("{:facts missing-required-key}"),
        };
        name.into_iter().chain(facts).collect()
    }
}

/// Facts were stored: the answer that Foreman's clients expect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredFacts {
    /// Always 1: clients expect a number.
    pub id: u32,
    /// The certname.
    pub name: String,
    /// Where they were stored.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_shape_of_request_gives_the_same_facts() {
        for body in [
            json!({"fact": {"x": 1}, "trusted": {"certname": "n"}}),
            json!({"facts": {"x": 1}, "certname": "other", "trusted": {"certname": "n"}}),
            json!({"fact": {"name": "n", "values": {"x": 1}, "timestamp": "t"}, "trusted": {"certname": "n"}}),
            json!({"fact": null, "facts": {"x": 1}, "trusted": {"certname": "n"}, "name": "other"}),
        ] {
            let node = NodeBody::read(Some(body.clone())).unwrap();
            assert_eq!(
                serde_json::to_value(&node).unwrap(),
                json!({"fact": {"x": 1}, "trusted": {"certname": "n"}, "transaction_uuid": null}),
                "{body}"
            );
        }
        let more = json!({"fact": {"name": "n", "values": {"x": 1}, "kernel": "Linux"}});
        assert_eq!(NodeBody::read(Some(more)).unwrap().fact.len(), 3);
    }

    #[test]
    fn shapes_are_told_apart() {
        let envelope = json!({"name": "n", "values": {"x": 1}});
        for (body, expected) in [
            (json!({"fact": {"x": 1}, "facts": {}}), "fact"),
            (json!({"facts": {"x": 1}}), "facts"),
            (json!({"fact": envelope}), "fact-envelope"),
            (json!({"fact": null, "facts": envelope}), "facts-envelope"),
            (json!({"trusted": {}}), "trusted"),
            (json!({}), "other"),
            (json!([]), "other"),
        ] {
            assert_eq!(shape(Some(&body)), expected, "{body}");
        }
        assert_eq!(shape(None), "empty");
    }

    #[test]
    fn a_value_that_is_not_an_object_is_refused() {
        for body in [
            json!([]),
            json!("x"),
            json!({"fact": []}),
            json!({"trusted": "x"}),
            json!({"facts": 1}),
        ] {
            assert!(NodeBody::read(Some(body.clone())).is_err(), "{body}");
        }
    }
}
