//! Reports as a code quality report of GitLab.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{Place, Report, Severity, visible};

pub(super) fn render(report: &Report) -> String {
    // A fingerprint must be unique and outlive changes elsewhere in the file: it hangs on what is
    // said, not on the line, and on how often it was said before.
    let mut said: BTreeMap<String, usize> = BTreeMap::new();
    let findings: Vec<Value> = report
        .diagnostics
        .iter()
        .map(|it| {
            let path = format!("{}{}", report.prefix, visible(&it.place.file));
            let group = it.group.as_deref().unwrap_or_default();
            let what = format!("{path}\n{}\n{group}\n{}", it.kind, it.message);
            let times = said.entry(what.clone()).or_default();
            *times += 1;
            let name = format!("{what}\n{times}");
            let help = it.help.as_ref().map_or(String::new(), |help| format!(" ({})", visible(help)));
            let location = |path: String, place: &Place| {
                json!({"path": path, "lines": {"begin": place.span.start.line, "end": place.span.end.line}})
            };
            // A field of Code Climate, of which the format of GitLab is a part.
            let others: Vec<Value> = (it.related.iter())
                .map(|it| {
                    location(format!("{}{}", report.prefix, visible(&it.place.file)), &it.place)
                })
                .collect();
            let mut finding = json!({
                "description": format!("{}{help}", visible(&it.message)),
                "check_name": it.kind.as_str(),
                "fingerprint": Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string(),
                "severity": match it.severity {
                    Severity::Error => "major",
                    Severity::Warning => "minor",
                },
                "location": location(path, &it.place),
            });
            if let Value::Object(fields) = &mut finding
                && !others.is_empty()
            {
                fields.insert("other_locations".to_owned(), others.into());
            }
            finding
        })
        .collect();
    format!("{:#}\n", Value::from(findings))
}
