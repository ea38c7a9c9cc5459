//! The values: their defaults, their schema and the page about them agree.

use std::fmt::Write as _;

use serde_json::Value;

use crate::program::root;
use crate::readme::updating;

/// Returns every leaf of the schema: its path, its default, what it is.
fn leaves(schema: &Value, defaults: &Value, path: &str, found: &mut Vec<(String, Value, String)>) {
    let properties = schema["properties"].as_object().unwrap();
    let known = defaults.as_object().unwrap();
    for key in known.keys() {
        assert!(properties.contains_key(key), "the value {path}{key} is not in the schema");
    }
    for (key, property) in properties {
        let path = format!("{path}{key}");
        if path == "global" {
            continue;
        }
        let description = property["description"].as_str().unwrap();
        assert!(!description.is_empty(), "{path} is not described");
        let default = known.get(key).unwrap_or_else(|| panic!("{path} has no default"));
        if property["additionalProperties"] == false {
            found.push((path.clone(), Value::Null, description.to_owned()));
            leaves(property, default, &format!("{path}."), found);
        } else {
            found.push((path, default.clone(), description.to_owned()));
        }
    }
}

#[test]
fn every_value_has_a_schema_a_default_and_a_line_of_the_page() {
    let chart = root().join("charts/clade");
    let read = |name: &str| std::fs::read_to_string(chart.join(name)).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let defaults: Value = serde_yaml::from_str(&read("values.yaml")).unwrap();
    let mut found = Vec::new();
    leaves(&schema, &defaults, "", &mut found);
    let mut table = "| value | default | |\n|---|---|---|\n".to_owned();
    for (path, default, description) in found {
        let is_group = default.is_null()
            && defaults
                .pointer(&format!("/{}", path.replace('.', "/")))
                .is_some_and(Value::is_object);
        let default = if is_group { String::new() } else { format!("`{default}`") };
        let description = description.replace('|', "\\|");
        writeln!(table, "| `{path}` | {default} | {description} |").unwrap();
    }
    let page = read("README.md");
    let (before, rest) = page.split_once("| value | default | |\n").unwrap();
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let expected = if after.is_empty() {
        format!("{before}{table}")
    } else {
        format!("{before}{table}\n{after}")
    };
    if updating() {
        std::fs::write(chart.join("README.md"), expected).unwrap();
    } else {
        assert_eq!(page, expected, "run with UPDATE_DOCS=1 and read the difference");
    }
}

#[test]
fn the_chart_is_of_the_version_of_the_program() {
    let text = std::fs::read_to_string(root().join("charts/clade/Chart.yaml")).unwrap();
    let chart: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
}
