//! A finding about a commit.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::diagnostic::{Diagnostic, Kind};

/// A finding about a commit: with a file and a place, unless it is about the commit as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// What is wrong, in one word; null for a finding about the commit as a whole.
    #[schema(required)]
    #[serde(default)]
    pub kind: Option<String>,
    /// `error` or `warning`.
    #[schema(required)]
    #[serde(default)]
    pub severity: String,
    /// What is wrong, for people.
    pub message: String,
    /// The file, below the directory of the groups.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1, in characters.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The line where the place ends.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The column where the place ends.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// The group, where the finding is about one.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub group: Nullable,
    /// What to do.
    #[schema(value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub help: Nullable,
    /// Other places that have to do with it.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<Vec<RelatedPlace>>,
    /// The part of a JSON Schema that is broken.
    #[schema(value_type = Object, nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A text, null, or nothing at all.
type Nullable = Option<Option<String>>;

/// A place that has to do with a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RelatedPlace {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
    /// What is there.
    pub message: String,
}

/// Tells a null from a field that is absent.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Nullable, D::Error> {
    Option::deserialize(field).map(Some)
}

impl Finding {
    /// Returns a finding about a commit as a whole.
    pub fn of_commit(message: String) -> Self {
        Self {
            kind: None,
            severity: "error".to_owned(),
            message,
            file: None,
            line: None,
            column: None,
            end_line: None,
            end_column: None,
            group: None,
            help: None,
            related: None,
            schema: None,
        }
    }

    /// Returns the address of the page about the kind.
    pub fn page(&self) -> Option<String> {
        let kind = Kind::ALL.iter().find(|it| Some(it.as_str()) == self.kind.as_deref());
        kind.map(|it| it.page())
    }
}

impl From<&Diagnostic> for Finding {
    fn from(diagnostic: &Diagnostic) -> Self {
        let span = diagnostic.place.span;
        let related = diagnostic.related.iter().map(|it| RelatedPlace {
            file: it.place.file.to_string(),
            line: it.place.span.start.line,
            column: it.place.span.start.column,
            message: it.message.clone(),
        });
        Self {
            kind: Some(diagnostic.kind.as_str().to_owned()),
            severity: diagnostic.severity.as_str().to_owned(),
            message: diagnostic.message.clone(),
            file: Some(diagnostic.place.file.to_string()),
            line: Some(span.start.line),
            column: Some(span.start.column),
            end_line: Some(span.end.line),
            end_column: Some(span.end.column),
            group: Some(diagnostic.group.clone()),
            help: Some(diagnostic.help.clone()),
            related: Some(related.collect()),
            schema: diagnostic.schema.as_deref().cloned(),
        }
    }
}

impl From<Finding> for Value {
    fn from(finding: Finding) -> Self {
        // Text and numbers are always written.
        serde_json::to_value(finding).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::diagnostic::{Colour, Format, Kind, Place, Report};
    use crate::document::{Position, Span};

    #[test]
    fn what_is_written_is_read() {
        for written in [
            json!({"kind": null, "severity": "error", "message": "no signature"}),
            json!({
                "kind": "missing-parent", "severity": "error", "message": "m", "file": "groups/a.yaml",
                "line": 1, "column": 2, "end_line": 1, "end_column": 9, "group": null, "help": "h",
                "related": [{"file": "f", "line": 1, "column": 1, "message": "m"}],
            }),
            json!({
                "kind": "schema-violation", "severity": "error", "message": "m", "file": "groups/a.yaml",
                "line": 1, "column": 2, "end_line": 1, "end_column": 9, "group": null, "help": null,
                "related": [], "schema": {"type": "integer"},
            }),
        ] {
            let read: Finding = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), written.to_string());
            assert_eq!(Value::from(read), written);
        }
    }

    #[test]
    fn findings_are_written_as_reports_write_them() {
        let file = |line| {
            let at = |column| Position { offset: 0, line, column };
            Place { file: "groups/a.yaml".into(), span: Span { start: at(1), end: at(9) } }
        };
        let finding = Diagnostic::new(Kind::MissingParent, file(2), "m");
        let more = finding.clone().in_group("A").with_help("h").with_related(file(3), "first");
        let more = more.with_schema(json!({"enum": ["a"]}));
        let findings = [finding, more];
        let written = findings.each_ref().map(|it| Value::from(Finding::from(it)));
        let report = Report {
            commit: None,
            groups: 0,
            diagnostics: findings.map(std::sync::Arc::new).into(),
            files: Vec::new(),
            prefix: String::new(),
            sources: BTreeMap::new(),
        };
        let report: Value =
            serde_json::from_str(&report.render(Format::Json, Colour::Plain)).unwrap();
        assert_eq!(Value::from(Vec::from(written)).to_string(), report["diagnostics"].to_string());
    }
}
