//! The shapes of request bodies in the document: those that rejected bodies are held to.

use serde_json::{Map, Value, json};

use crate::http::request_schemas::{group_schema, request_schemas};
use crate::json_schema::to_prefix_items;

/// The definitions whose types are documents of the core, and their names here, where `Group` is what is
/// answered.
const NAMES: &[(&str, &str)] =
    &[("Group", "GroupRequest"), ("GroupDelta", "GroupDelta"), ("Hierarchy", "Hierarchy")];

/// What stands before the names of parts of a group.
const PART: &str = "group.";

/// Which operation takes which.
const BODIES: &[(&str, &str)] = &[
    ("create_group", "GroupRequest"),
    ("put_group", "GroupRequest"),
    ("validate_group", "GroupRequest"),
    ("update_group", "GroupDelta"),
    ("import_hierarchy", "Hierarchy"),
];

/// Adds the shapes to the document, and names them where they are taken.
pub(super) fn publish(document: &mut Value) {
    let (requests, group) = (request_schemas(), group_schema());
    let mut shapes = Map::new();
    for (name, here) in NAMES {
        let shape = requests.pointer(&format!("/definitions/{name}"));
        shapes.extend(shape.map(|it| ((*here).to_owned(), it.clone())));
    }
    let parts = group.get("definitions").and_then(Value::as_object).into_iter().flatten();
    let keys = ["name", "id", "environment"];
    let keys =
        keys.iter().filter_map(|it| Some((*it, group.pointer(&format!("/properties/{it}"))?)));
    for (name, part) in parts.map(|(name, part)| (name.as_str(), part)).chain(keys) {
        shapes.insert(format!("{PART}{name}"), part.clone());
    }
    for shape in shapes.values_mut() {
        lead(shape);
        to_prefix_items(shape);
    }
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.extend(shapes);
    }
    let paths = document.get_mut("paths").and_then(Value::as_object_mut).into_iter();
    for operation in
        paths.flat_map(Map::values_mut).filter_map(Value::as_object_mut).flat_map(Map::values_mut)
    {
        let id = operation.get("operationId").and_then(Value::as_str);
        let Some((_, shape)) = BODIES.iter().find(|(it, _)| Some(*it) == id) else { continue };
        let content = operation.pointer_mut("/requestBody/content/application~1json/schema");
        if let Some(schema) = content {
            *schema = json!({"$ref": format!("#/components/schemas/{shape}")});
        }
    }
}

/// Leads references to where the shapes stand here.
fn lead(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                match value {
                    Value::String(text) if key == "$ref" => *text = here(text),
                    _ => lead(value),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(lead),
        _ => {}
    }
}

fn here(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    let is_request = reference.starts_with('#');
    let shape = NAMES.iter().find(|(it, _)| is_request && *it == name);
    match shape {
        Some((_, here)) => format!("#/components/schemas/{here}"),
        None => format!("#/components/schemas/{PART}{name}"),
    }
}
