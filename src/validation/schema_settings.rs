//! Which schemas of the repository hold for what: `schemas` in `clade.yaml`.

use super::class_pattern::ClassPattern;
use super::file_reader::FileReader;
use crate::diagnostic::Kind;
use crate::document::Node;
use crate::json_schema::SchemaRequest;

/// How many patterns of classes there may be: each is compared with every class of every group.
const PATTERNS: usize = 200;

/// Which schemas of the repository hold for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaSettings {
    /// For each group, as the API shows it.
    pub group: Option<SchemaRequest>,
    /// For the variables of a group or node.
    pub variables: Option<SchemaRequest>,
    /// For the parameters of classes of a name.
    pub classes: Vec<(ClassPattern, SchemaRequest)>,
    /// For the config data of classes of a name.
    pub config_data: Vec<(ClassPattern, SchemaRequest)>,
}

impl SchemaSettings {
    /// Returns every schema that is named.
    pub fn all(&self) -> Vec<&SchemaRequest> {
        let one = [&self.group, &self.variables].into_iter().flatten();
        let by_class = self.classes.iter().chain(&self.config_data).map(|(_, it)| it);
        one.chain(by_class).collect()
    }
}

/// Reads `schemas`.
pub(super) fn read_schemas(node: &Node, reader: &mut FileReader) -> SchemaSettings {
    let keys = &["group", "variables", "classes", "config_data"];
    let mut settings = SchemaSettings::default();
    if reader.mapping(node, "`schemas`", keys).is_none() {
        return settings;
    }
    for (key, request) in [("group", &mut settings.group), ("variables", &mut settings.variables)] {
        *request = node.get(key).and_then(|node| read_request(node, key, reader));
    }
    for (key, requests) in
        [("classes", &mut settings.classes), ("config_data", &mut settings.config_data)]
    {
        let Some(node) = node.get(key) else { continue };
        let entries = reader.free_mapping(node, format_args!("`schemas.{key}`"));
        if entries.len() > PATTERNS {
            let message = format!("`schemas.{key}` has more than {PATTERNS} patterns");
            reader.add(Kind::SchemaViolation, node.span, message);
        }
        for entry in entries.iter().take(PATTERNS) {
            if let Some(request) = read_request(&entry.value, &entry.key, reader) {
                requests.push((ClassPattern::new(&entry.key), request));
            }
        }
    }
    settings
}

fn read_request(node: &Node, key: &str, reader: &mut FileReader) -> Option<SchemaRequest> {
    let path = reader.text(node, format_args!("the schema of `{key}`"))?;
    let path = path.strip_prefix("./").unwrap_or(path);
    if path.starts_with('/') || path.split('/').any(|it| matches!(it, "" | "." | "..")) {
        let message = format!("`{path}` is not a file below the root of the repository");
        reader.add(Kind::InvalidSchema, node.span, message);
        return None;
    }
    Some(SchemaRequest { path: path.into(), place: reader.place(node.span) })
}
