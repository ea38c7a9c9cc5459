//! The published shapes of request bodies: which part of its shape a rejected body breaks.
//!
//! The readers of bodies decide, and say it in the words of Puppet Enterprise; these schemas are only asked
//! when a reader has rejected a body, so no valid request pays for them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::diagnostic::Place;
use crate::document::Span;
use crate::json_schema::{SchemaRequest, SchemaSet, SchemaSource};

const REQUESTS: &str = include_str!("../../schemas/requests.json");
const GROUP: &str = include_str!("../../schemas/group.json");

/// The names that readers have for shapes, and the definitions of these.
const SHAPES: &[(&str, &str)] = &[
    ("Group", "Group"),
    ("GroupDelta", "GroupDelta"),
    ("[Group]", "Hierarchy"),
    ("Node", "Node"),
    ("Nodes", "Nodes"),
    ("Facts", "Facts"),
    ("Pin", "Pin"),
    ("OperatorRequest", "OperatorRequest"),
    ("Rule", "Rule"),
    ("RuleQuery", "RuleQuery"),
];

/// How many values a body may have for the part to be looked for.
const VALUES: usize = 20_000;

static SCHEMAS: LazyLock<SchemaSet> = LazyLock::new(|| {
    let requests: Vec<SchemaRequest> =
        SHAPES.iter().map(|(_, definition)| request(definition)).collect();
    SchemaSet::load(&requests.iter().collect::<Vec<_>>(), &|path| {
        let text = match path {
            "requests.json" => REQUESTS.to_owned(),
            "group.json" => GROUP.to_owned(),
            other => {
                let definition = other.trim_end_matches(".json");
                json!({
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "$ref": format!("requests.json#/definitions/{definition}"),
                })
                .to_string()
            }
        };
        SchemaSource::Bytes(text.into_bytes().into())
    })
});

/// Asks for a file whose schema is one definition.
fn request(definition: &str) -> SchemaRequest {
    let path = format!("{definition}.json");
    let place = Place { file: path.as_str().into(), span: Span::START };
    SchemaRequest { path: path.into(), place }
}

/// Returns the document of all shapes.
pub(super) fn request_schemas() -> Value {
    serde_json::from_str(REQUESTS).unwrap_or_default()
}

/// Returns the schema of groups, to which that document refers.
pub(super) fn group_schema() -> Value {
    serde_json::from_str(GROUP).unwrap_or_default()
}

/// Returns the part of a shape that a rejected body breaks; all of it, where no part by itself is broken.
/// A name of no shape stays.
pub(super) fn failing_part(name: &str, body: &Value) -> Value {
    let Some((_, definition)) = SHAPES.iter().find(|(it, _)| *it == name) else {
        return name.into();
    };
    let schema = SCHEMAS.get(&format!("{definition}.json"));
    let part = schema
        .filter(|_| has_at_most(body, &mut VALUES.clone()))
        .and_then(|it| it.failing_part(body));
    part.unwrap_or_else(|| json!({"$ref": format!("requests.json#/definitions/{definition}")}))
}

/// Returns whether a value has at most so many values in it.
fn has_at_most(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    match value {
        Value::Array(elements) => elements.iter().all(|it| has_at_most(it, left)),
        Value::Object(fields) => fields.values().all(|it| has_at_most(it, left)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changeset::{RejectionKind, read_group};
    use crate::http::types::{
        FactsUpload, NodeBody, NodesRequest, OperatorRequest, PinRequest, RuleQuery,
    };
    use crate::table::each_row;

    const ROOT: &str = "00000000-0000-4000-8000-000000000000";

    /// Returns whether the reader of a shape accepts a body.
    fn is_read(shape: &str, body: &Value) -> bool {
        match shape {
            "Group" => !matches!(
                read_group(body), Err(it) if it.kind == RejectionKind::SchemaViolation
            ),
            "Node" => NodeBody::read(Some(body.clone())).is_ok(),
            "Nodes" => NodesRequest::read(body).is_ok(),
            "Facts" => FactsUpload::read(body.clone()).is_ok(),
            "Pin" => PinRequest::read(body.clone()).is_ok(),
            "OperatorRequest" => OperatorRequest::read(body).is_ok(),
            "Rule" => crate::rule::read(body).is_ok(),
            "RuleQuery" => RuleQuery::read(body.clone()).is_ok(),
            other => panic!("{other}"),
        }
    }

    fn group(more: &Value) -> Value {
        let mut group = json!({"name": "A", "parent": ROOT, "classes": {}});
        for (key, value) in more.as_object().unwrap() {
            group[key] = value.clone();
        }
        group
    }

    /// Parts of groups, and whether a group with them has its shape.
    fn groups() -> Vec<(Value, bool)> {
        vec![
            (json!({}), true),
            (json!({"name": " "}), false),
            (json!({"name": null}), false),
            (json!({"classes": null}), false),
            (json!({"classes": {"ntp": null, "::a::b": {"p": [1, {"k": null}]}}}), true),
            (json!({"classes": {"Ntp": {}}}), false),
            (json!({"classes": {"ntp": 5}}), false),
            (json!({"classes": {"ntp": {"<<": 1}}}), false),
            (json!({"variables": {"facts": 1}}), false),
            (json!({"variables": {"a": 1e3, "b": "x"}, "config_data": null}), true),
            (json!({"config_data": {"a": {"k": [[1]]}}}), true),
            (json!({"config_data": []}), false),
            (json!({"config_data": {"a": {"title": 1, "Port": 1, "": 1}}}), true),
            (json!({"classes": {"a": {"title": 1}}}), true),
            (json!({"classes": {"a": {"Port": 1}}}), true),
            (json!({"classes": {"a": {"title": null, "name": 1}}}), true),
            (json!({"variables": {"title": 1}}), false),
            (json!({"variables": {"name": 1}}), false),
            (json!({"variables": {"name": null}}), true),
            (json!({"id": "x"}), false),
            (json!({"id": ROOT, "description": null, "environment": null}), true),
            (json!({"environment": "a-b"}), false),
            (json!({"environment_trumps": "true"}), false),
            (json!({"description": 5}), false),
            (json!({"parent": 5}), false),
            (json!({"parent": "x"}), true),
            (json!({"rule": null}), true),
            (json!({"rule": "a = b"}), false),
            (
                json!({"rule": ["and", ["=", ["fact", "a", 0], "1"], ["not", ["~", "name", "x"]]]}),
                true,
            ),
            (json!({"rule": ["and"]}), false),
            (json!({"rule": ["=", "name", 5]}), false),
            (json!({"serial_number": 5, "last_edited": "x", "deleted": {}}), true),
            (json!({"pinned": ["a"]}), false),
            (json!({"nam": "a"}), false),
        ]
    }

    /// Other bodies, and whether they have their shape.
    fn others() -> Vec<(&'static str, Value, bool)> {
        vec![
            ("Group", json!([]), false),
            ("Group", json!({"name": "A", "parent": ROOT}), false),
            ("Node", json!({}), true),
            ("Node", json!({"fact": {"a": 1}, "trusted": null, "x": 5}), true),
            ("Node", json!({"fact": []}), false),
            ("Node", json!({"trusted": "x"}), false),
            ("Node", json!([{}]), false),
            ("Nodes", json!({}), true),
            ("Nodes", json!({"nodes": ["a"]}), true),
            ("Nodes", json!({"nodes": "a"}), true),
            ("Nodes", json!({"nodes": [5]}), false),
            ("Nodes", json!({"nodes": {}}), false),
            ("Nodes", json!({"node": "a"}), false),
            ("Nodes", json!("a"), false),
            ("Facts", json!({"name": "a", "facts": {"a": 1}}), true),
            ("Facts", json!({"name": "a", "facts": {"a": 1, "trusted": {}}}), true),
            ("Facts", json!({"name": "a", "facts": {"trusted": {}}}), false),
            ("Facts", json!({"name": "a", "facts": {}}), false),
            ("Facts", json!({"certname": 5, "name": "a", "facts": {"a": 1}}), true),
            ("Facts", json!({"certname": 5, "facts": {"a": 1}}), false),
            ("Facts", json!({"facts": {"a": 1}}), false),
            ("Facts", json!({"certname": "", "name": "a", "facts": {"a": 1}}), true),
            ("Facts", json!({"name": "", "facts": {"a": 1}}), false),
            ("Pin", json!({"commit": "main", "reason": "x"}), true),
            ("Pin", json!({"commit": null}), false),
            ("Pin", json!([]), false),
            ("Pin", json!({"commit": "main", "reason": null}), true),
            ("Pin", json!({"commit": "main", "reason": 5}), false),
            ("OperatorRequest", json!({}), true),
            ("OperatorRequest", json!({"reason": "planned", "x": 1}), true),
            ("OperatorRequest", json!({"reason": "é".repeat(1000)}), true),
            ("OperatorRequest", json!({"reason": "é".repeat(1001)}), false),
            ("OperatorRequest", json!({"reason": {}}), false),
            ("OperatorRequest", json!([]), false),
            ("Rule", json!(["=", "name", "a"]), true),
            ("Rule", json!("os.family = Debian"), true),
            ("Rule", json!({}), false),
            ("RuleQuery", json!({"rule": "a = b"}), true),
            ("RuleQuery", json!({"rule": ["=", "name", "a"], "x": 1}), true),
            ("RuleQuery", json!({"rule": null}), false),
            ("RuleQuery", json!({}), false),
            ("RuleQuery", json!("name = a"), false),
            ("Rule", json!(["xor", ["=", "name", "a"]]), false),
        ]
    }

    #[test]
    fn schemas_and_readers_have_one_verdict() {
        assert!(SCHEMAS.diagnostics.is_empty(), "{:?}", SCHEMAS.diagnostics);
        let of_groups =
            groups().into_iter().map(|(more, verdict)| ("Group", group(&more), verdict));
        for (shape, body, verdict) in of_groups.chain(others()) {
            assert_eq!(is_read(shape, &body), verdict, "the reader of {shape}: {body}");
            let schema = SCHEMAS.get(&format!("{shape}.json")).unwrap();
            assert_eq!(schema.is_valid(&body), verdict, "the schema of {shape}: {body}");
            if !verdict {
                let part = failing_part(shape, &body);
                assert!(part.is_object() && part.get("$ref").is_none(), "{shape}: {body}: {part}");
            }
        }
    }

    /// A key that was there was called missing, and what was sent was shown without it.
    #[test]
    fn an_error_says_what_is_missing_and_what_is_of_a_wrong_type() {
        let error = |shape: &str, body: &Value| match shape {
            "Facts" => FactsUpload::read(body.clone()).unwrap_err(),
            "Pin" => PinRequest::read(body.clone()).unwrap_err(),
            "OperatorRequest" => OperatorRequest::read(body).unwrap_err(),
            _ => RuleQuery::read(body.clone()).unwrap_err(),
        };
        let not_a_map = "(not (map? the-body))";
        let facts = json!({"a": 1});
        let rows = [
            ("Facts", json!({}), "({:name missing-required-key} {:facts missing-required-key})"),
            ("Facts", json!({"name": "a"}), "({:facts missing-required-key})"),
            ("Facts", json!({"name": "a", "facts": 5}), "({:facts (not (map? facts))})"),
            ("Facts", json!({"name": "a", "facts": null}), "({:facts (not (map? facts))})"),
            ("Facts", json!({"facts": facts}), "({:name missing-required-key})"),
            ("Facts", json!({"name": 5, "facts": facts}), "({:name (not (string? name))})"),
            (
                "Facts",
                json!({"certname": null, "facts": facts}),
                "({:certname (not (string? certname))})",
            ),
            ("Facts", json!({"name": "", "facts": facts}), "({:name (not (seq name))})"),
            (
                "Facts",
                json!({"certname": "", "facts": facts}),
                "({:certname (not (seq certname))})",
            ),
            ("Facts", json!([]), not_a_map),
            ("Pin", json!({}), "({:commit missing-required-key})"),
            ("Pin", json!({"commit": 5}), "({:commit (not (string? commit))})"),
            ("Pin", json!({"commit": null}), "({:commit (not (string? commit))})"),
            ("Pin", json!([]), not_a_map),
            ("OperatorRequest", json!(["planned"]), not_a_map),
            ("OperatorRequest", json!(null), not_a_map),
            ("RuleQuery", json!({}), "({:rule missing-required-key})"),
            (
                "RuleQuery",
                json!({"rule": 5}),
                "({:rule (not (or (string? rule) (sequential? rule)))})",
            ),
            ("RuleQuery", json!([]), not_a_map),
        ];
        each_row(rows, |(shape, body, expected)| {
            let found = error(shape, &body);
            assert_eq!((found.error.as_str(), &found.submitted), (expected, &body), "{shape}");
        });
    }

    #[test]
    fn the_part_is_the_smallest_that_is_broken() {
        for (shape, body, part) in [
            (
                "Group",
                group(&json!({"description": 5})),
                json!({"description": "What the group is for.", "type": ["string", "null"]}),
            ),
            ("Pin", json!({}), json!({"required": ["commit"]})),
            ("Pin", json!({"commit": "a", "reason": 5}), json!({"type": ["string", "null"]})),
            ("OperatorRequest", json!({"reason": 5}), json!({"maxLength": 1000})),
            (
                "GroupDelta",
                json!({"serial_number": "5"}),
                json!({"type": ["integer", "null"], "minimum": 0}),
            ),
            ("Nodes", json!({"nodes": [5]}), json!({"type": "string"})),
            ("[Group]", json!([{"name": "A"}]), json!({"required": ["name", "parent", "classes"]})),
        ] {
            let found = failing_part(shape, &body);
            for (key, value) in part.as_object().unwrap() {
                assert_eq!(found.get(key), Some(value), "{shape}: {body}: {found}");
            }
        }
        assert_eq!(failing_part("Environment", &json!("x y")), "Environment");
        // What is too deep or too much is not looked into.
        let deep = (0..100).fold(json!(["xor"]), |inner, _| json!(["and", inner]));
        let whole = json!({"$ref": "requests.json#/definitions/Rule"});
        assert_eq!(failing_part("Rule", &deep), whole);
        assert_eq!(failing_part("Rule", &json!(vec![0; VALUES])), whole);
    }
}
