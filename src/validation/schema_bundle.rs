//! One schema of a repository for the files of its groups: ours, and its own.

use serde_json::{Map, Value, json};

use super::class_pattern::ClassPattern;
use super::own_schemas::{ReadContent, source_of};
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
    all.extend(settings.group.as_ref().and_then(refer));
    let mut properties = Map::new();
    // A null says that there are none.
    let or_null = |schema: Value| json!({"anyOf": [{"type": "null"}, schema]});
    if let Some(variables) = settings.variables.as_ref().and_then(refer) {
        properties.insert("variables".to_owned(), or_null(variables));
    }
    for (key, requests) in [("classes", &settings.classes), ("config_data", &settings.config_data)]
    {
        let mut patterns: Map<String, Value> = Map::new();
        for (pattern, request) in requests {
            let Some(schema) = refer(request) else { continue };
            patterns.insert(pattern.to_regex(), or_null(schema));
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
        definitions.values_mut().for_each(to_prefix_items);
    }
    Ok(json!({
        "$schema": bundle.draft,
        "title": "Groups of this repository",
        "description": "A file of node groups: what Clade asks of it, and what the schemas of this repository do.",
        "allOf": all,
        "definitions": definitions,
    }))
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
