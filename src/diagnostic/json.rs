//! Reports as one JSON object.

use serde_json::{Value, json};

use super::{Diagnostic, Report, Severity};

pub(super) fn render(report: &Report) -> String {
    let diagnostics: Vec<Value> = report.diagnostics.iter().map(|it| to_value(it)).collect();
    let object = json!({
        "commit": report.commit,
        "valid": report.is_valid(),
        "groups": report.groups,
        "summary": {
            "error": report.count(Severity::Error),
            "warning": report.count(Severity::Warning),
        },
        "diagnostics": diagnostics,
    });
    format!("{object:#}\n")
}

/// Writes one finding as a JSON object.
fn to_value(diagnostic: &Diagnostic) -> Value {
    let span = diagnostic.place.span;
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|it| {
            json!({
                "file": it.place.file,
                "line": it.place.span.start.line,
                "column": it.place.span.start.column,
                "message": it.message,
            })
        })
        .collect();
    let mut object = json!({
        "kind": diagnostic.kind.as_str(),
        "severity": diagnostic.severity.as_str(),
        "message": diagnostic.message,
        "file": diagnostic.place.file,
        "line": span.start.line,
        "column": span.start.column,
        "end_line": span.end.line,
        "end_column": span.end.column,
        "group": diagnostic.group,
        "help": diagnostic.help,
        "related": related,
    });
    if let (Some(schema), Value::Object(fields)) = (&diagnostic.schema, &mut object) {
        fields.insert("schema".to_owned(), Value::clone(schema));
    }
    object
}
