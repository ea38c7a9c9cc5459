//! One schema of a repository for the files of its groups: ours, and its own.

use serde_json::{Map, Value, json};

use super::class_pattern::ClassPattern;
use super::own_schemas::{OwnSchemas, ReadContent, source_of};
use super::schema_settings::SchemaSettings;
use crate::diagnostic::Diagnostic;
use crate::json_schema::{SchemaBundle, SchemaRequest, reference, to_prefix_items};

/// The name of the definition that is our schema.
const OURS: &str = "clade";

/// Puts our schema of groups and those that settings name into one document.
///
/// # Errors
///
/// Returns what is wrong with the schemas that settings name.
pub fn bundle(
    ours: &Value,
    settings: &SchemaSettings,
    read: &ReadContent<'_>,
) -> Result<Value, Vec<Diagnostic>> {
    let bundle = SchemaBundle::new(&settings.all(), &source_of(read))?;
    let refer = |request: &SchemaRequest| {
        let to = bundle.reference(&request.path)?;
        Some(json!({"$ref": to}))
    };
    let mut all = vec![json!({"$ref": reference(OURS, "")})];
    let of_group = settings.group.as_ref().and_then(|it| bundle.definition(&it.path));
    all.extend(of_group.map(as_written));
    let mut properties = Map::new();
    // A null says that there are none, and what is empty is not checked.
    let or_null = |schema: Value| json!({"anyOf": [{"enum": [null, {}]}, schema]});
    let compiled = OwnSchemas::load(settings, read);
    if let Some(variables) = settings.variables.as_ref().and_then(refer) {
        properties.insert("variables".to_owned(), or_null(variables));
    }
    for (key, requests) in [("classes", &settings.classes), ("config_data", &settings.config_data)]
    {
        let mut patterns: Map<String, Value> = Map::new();
        for (pattern, request) in requests {
            let Some(schema) = refer(request) else { continue };
            // A class is checked without parameters, too: a null is `{}` then.
            let is_checked = key == "classes" && !compiled.allows_nothing(&request.path);
            let schema = match is_checked {
                true => json!({"type": "object", "allOf": [schema]}),
                false => or_null(schema),
            };
            patterns.insert(pattern.to_regex(), schema);
        }
        if !patterns.is_empty() {
            properties.insert(key.to_owned(), json!({"patternProperties": patterns}));
        }
    }
    if !properties.is_empty() {
        all.push(json!({"properties": properties}));
    }
    let mut definitions = Map::from_iter([(OURS.to_owned(), nested(ours))]);
    definitions.extend(bundle.definitions);
    if bundle.draft.contains("2020-12") {
        definitions.values_mut().chain(&mut all).for_each(to_prefix_items);
    }
    Ok(json!({
        "$schema": bundle.draft,
        "title": "Groups of this repository",
        "description": "A file of node groups: what Clade asks of it, and what the schemas of this repository do.",
        "allOf": all,
        "definitions": definitions,
    }))
}

/// The keys of a group that a file may leave out: the API fills them in.
const FILLED_IN: &[&str] = &[
    "id",
    "parent",
    "rule",
    "environment",
    "environment_trumps",
    "classes",
    "variables",
    "config_data",
];

/// Returns the schema of groups for files: it asks for no key with a default, and nothing of those that a file may write in
/// another form than the API.
fn as_written(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|it| !it.as_str().is_some_and(|it| FILLED_IN.contains(&it)));
    }
    let Value::Object(fields) = &mut schema else { return schema };
    if let Value::Object(properties) =
        fields.entry("properties").or_insert_with(|| Value::Object(Map::new()))
    {
        for (key, property) in properties.iter_mut() {
            match key.as_str() {
                "parent" | "rule" => *property = Value::Bool(true),
                // A null says that there is none.
                "description" | "classes" | "variables" | "config_data" => {
                    *property = json!({"anyOf": [{"type": "null"}, property.take()]});
                }
                _ => {}
            }
        }
        // The API has it in the rule.
        properties.entry("pinned").or_insert(Value::Bool(true));
    }
    schema
}

/// Returns our schema as a definition: its references begin there.
fn nested(ours: &Value) -> Value {
    let mut ours = ours.clone();
    if let Value::Object(fields) = &mut ours {
        fields.retain(|key, _| !matches!(key.as_str(), "$schema" | "$id"));
    }
    lead(&mut ours);
    ours
}

fn lead(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match value {
                    Value::String(text) if key == "$ref" => {
                        if let Some(pointer) = text.strip_prefix('#') {
                            *text = format!("{}{pointer}", reference(OURS, ""));
                        }
                    }
                    _ => lead(value),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(lead),
        _ => {}
    }
}

impl ClassPattern {
    /// Returns the regular expression of the names, written with a leading `::` or without.
    fn to_regex(&self) -> String {
        let mut regex = "^(::)?".to_owned();
        for character in self.characters() {
            match character {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                it if it.is_alphanumeric() || matches!(it, '_' | ':') => regex.push(it),
                it => regex.extend(['\\', it]),
            }
        }
        regex.push('$');
        regex
    }
}
