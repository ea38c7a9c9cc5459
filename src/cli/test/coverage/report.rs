//! What no test reaches, for people and programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Coverage, CoveredCondition, Share};
use crate::diagnostic::{Place, visible};

/// Something that no test reaches.
struct Gap<'c> {
    kind: &'static str,
    place: &'c Place,
    group: &'c str,
    /// The comparison or value.
    what: Option<&'c str>,
    message: String,
}

impl Coverage {
    /// Writes what no test reaches, a line each, and how much all tests reach.
    pub(in crate::cli::test) fn text(&self, prefix: &str) -> String {
        let mut text = String::new();
        for gap in self.gaps() {
            let start = gap.place.span.start;
            let (file, message) = (visible(&gap.place.file), visible(&gap.message));
            let _infallible =
                writeln!(text, "{prefix}{file}:{}:{}: {message}", start.line, start.column);
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let _infallible = writeln!(
            text,
            "coverage: groups {}, outcomes of conditions {}, values {}",
            self.of_groups(),
            self.of_outcomes(),
            self.of_values()
        );
        text
    }

    /// Returns the same for programs.
    pub(in crate::cli::test) fn to_value(&self, prefix: &str) -> Value {
        let share = |it: Share| json!({"reached": it.reached, "total": it.total});
        let gap = |gap: &Gap<'_>| {
            let start = gap.place.span.start;
            json!({
                "kind": gap.kind,
                "file": format!("{prefix}{}", gap.place.file),
                "line": start.line,
                "column": start.column,
                "group": gap.group,
                "what": gap.what,
                "message": gap.message,
            })
        };
        json!({
            "groups": share(self.of_groups()),
            "outcomes": share(self.of_outcomes()),
            "values": share(self.of_values()),
            "unreached": self.gaps().iter().map(gap).collect::<Vec<_>>(),
        })
    }

    fn gaps(&self) -> Vec<Gap<'_>> {
        let mut gaps = Vec::new();
        for group in &self.groups {
            let name = group.name.as_str();
            if group.tests == Some(0) {
                let message = format!("no test has a node in the group `{name}`");
                gaps.push(Gap {
                    kind: "group",
                    place: &group.place,
                    group: name,
                    what: None,
                    message,
                });
            }
            for condition in &group.conditions {
                let Some(never) = never(condition) else { continue };
                let (place, what) = (&condition.place, condition.text.as_str());
                let message = format!("`{what}` {never} in a test");
                gaps.push(Gap { kind: "condition", place, group: name, what: Some(what), message });
            }
            for value in group.values.iter().filter(|it| it.tests == 0) {
                let (place, what) = (&value.place, value.text.as_str());
                let message = format!("no test gets {what} from the group `{name}`");
                gaps.push(Gap { kind: "value", place, group: name, what: Some(what), message });
            }
        }
        gaps.sort_by_key(|it| it.place);
        gaps
    }
}

/// Says which outcome of a comparison no test sees.
fn never(condition: &CoveredCondition) -> Option<&'static str> {
    match (condition.held, condition.failed) {
        (0, 0) => Some("is never evaluated"),
        (0, _) => Some("is never true"),
        (_, 0) => Some("is never false"),
        _ => None,
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { reached, total } = *self;
        write!(f, "{reached}/{total}")?;
        match (reached * 100).checked_div(total) {
            Some(percent) => write!(f, " ({percent} %)"),
            None => Ok(()),
        }
    }
}
