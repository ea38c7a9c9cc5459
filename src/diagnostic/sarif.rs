//! Reports as SARIF 2.1.0.

use std::fmt::Write as _;

use hashbrown::HashMap;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Diagnostic, Kind, Place, Report, Severity, visible};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

pub(super) fn render(report: &Report) -> String {
    let rules: Vec<Value> = Kind::ALL.iter().map(|kind| rule(*kind)).collect();
    // What hangs on the message alone is the same for findings that say the same in other lines.
    let mut said: HashMap<(&str, Kind, &str), usize> = HashMap::new();
    let results = report.errors_first().into_iter().map(|it| {
        let earlier = said.entry((&it.place.file, it.kind, &it.message)).or_default();
        *earlier += 1;
        result(it, &report.prefix, *earlier)
    });
    let results: Vec<Value> = results.collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "clade",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            // The tool ran; whether it found something is another matter.
            "invocations": [{"executionSuccessful": true}],
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn rule(kind: Kind) -> Value {
    json!({
        "id": kind.as_str(),
        "shortDescription": {"text": kind.summary()},
        "helpUri": kind.page(),
        "defaultConfiguration": {"level": level(kind.severity())},
    })
}

/// Writes a finding, given how many with this one say the same of its file.
fn result(diagnostic: &Diagnostic, prefix: &str, times: usize) -> Value {
    let text = match &diagnostic.help {
        Some(help) => format!("{}; {}", visible(&diagnostic.message), visible(help)),
        None => visible(&diagnostic.message).into_owned(),
    };
    let related: Vec<Value> = diagnostic
        .related
        .iter()
        .map(|it| {
            let location = location(&it.place, prefix);
            json!({
                "physicalLocation": location.get("physicalLocation"),
                "message": {"text": visible(&it.message)},
            })
        })
        .collect();
    let mut what =
        format!("{}\n{}\n{}", diagnostic.place.file, diagnostic.kind, diagnostic.message);
    if times > 1 {
        write!(what, "\n{times}").ok();
    }
    let index = Kind::ALL.iter().position(|kind| *kind == diagnostic.kind);
    let mut result = json!({
        "ruleId": diagnostic.kind.as_str(),
        "ruleIndex": index,
        "level": level(diagnostic.severity),
        "message": {"text": text},
        "locations": [location(&diagnostic.place, prefix)],
        "partialFingerprints": {
            "clade/v1": Uuid::new_v5(&Uuid::NAMESPACE_URL, what.as_bytes()).simple().to_string(),
        },
    });
    if let Value::Object(fields) = &mut result
        && !related.is_empty()
    {
        fields.insert("relatedLocations".to_owned(), related.into());
    }
    result
}

fn location(place: &Place, prefix: &str) -> Value {
    let span = place.span;
    // In a URI some characters of a path are written otherwise.
    let path = format!("{prefix}{}", place.file);
    let uri = percent_encoding::utf8_percent_encode(&path, PATH).to_string();
    json!({
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": "%SRCROOT%"},
            "region": {
                "startLine": span.start.line,
                "startColumn": span.start.column,
                "endLine": span.end.line,
                "endColumn": span.end.column,
            },
        },
    })
}

/// What a path in a URI escapes.
const PATH: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
