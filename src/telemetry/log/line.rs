//! One line of the log: what an event quotes of a repository or a request stays within its line.

use serde_json::Value;

use crate::diagnostic::{visible, visible_up_to};

/// The most characters of a line for people.
const LONGEST: usize = 4_000;

/// The longest line of JSON, in bytes.
const LIMIT: usize = 8 << 10;

/// How long a string of a JSON line that is too long may be, tried in this order.
const STRINGS: [usize; 3] = [1024, 128, 16];

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::telemetry) enum LineForm {
    /// A line for people.
    Text,
    /// An object of JSON.
    Json,
}

impl LineForm {
    /// Returns a line that can be written: one line, no longer than the limit.
    pub(super) fn bounded(self, bytes: &[u8]) -> Vec<u8> {
        let event = String::from_utf8_lossy(bytes);
        let event = event.strip_suffix('\n').unwrap_or(&event);
        let mut line = match self {
            Self::Text => visible_up_to(event, LONGEST),
            Self::Json if event.len() <= LIMIT => visible(event).into_owned(),
            Self::Json => visible(&shortened(event)).into_owned(),
        };
        line.push('\n');
        line.into_bytes()
    }

    /// Returns a line that says how many were lost.
    pub(super) fn lost(self, lines: u64) -> Vec<u8> {
        let time = jiff::Timestamp::now();
        let message = format!(
            "{lines} lines of the log were dropped: stderr was not read, or could not be written"
        );
        match self {
            Self::Text => format!("{time} WARN {message}\n").into_bytes(),
            Self::Json => {
                let line = serde_json::json!({
                    "timestamp": time.to_string(), "level": "WARN", "message": message, "lines": lines,
                });
                format!("{line}\n").into_bytes()
            }
        }
    }
}

/// Shortens the strings of a line, which stays JSON.
fn shortened(event: &str) -> String {
    let whole = serde_json::from_str::<Value>(event).unwrap_or_default();
    for limit in STRINGS {
        let mut value = whole.clone();
        shorten(&mut value, limit);
        let line = value.to_string();
        if line.len() <= LIMIT {
            return line;
        }
    }
    let field = |name: &str| whole.get(name).cloned().unwrap_or_default();
    let message = format!("a line of {} bytes is not shown", event.len());
    let line = serde_json::json!({
        "timestamp": field("timestamp"), "level": field("level"), "message": message,
    });
    line.to_string()
}

fn shorten(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let end = text.floor_char_boundary(limit);
            let rest = text.len() - end;
            text.truncate(end);
            text.push_str("… (");
            text.push_str(&rest.to_string());
            text.push_str(" bytes more)");
        }
        Value::Array(items) => items.iter_mut().for_each(|it| shorten(it, limit)),
        Value::Object(fields) => fields.values_mut().for_each(|it| shorten(it, limit)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(form: LineForm, text: &str) -> String {
        String::from_utf8(form.bounded(text.as_bytes())).unwrap()
    }

    #[test]
    fn an_event_is_one_line() {
        let text = |event: &str| bounded(LineForm::Text, event);
        assert_eq!(text("a\n::error::b\u{1b}[0m\n"), "a\u{fffd}::error::b\u{fffd}[0m\n");
        assert_eq!(text(&"x".repeat(900_000)).chars().count(), LONGEST + 2);
        assert_eq!(bounded(LineForm::Json, "{\"a\":\"\u{202e}\"}\n"), "{\"a\":\"\u{fffd}\"}\n");
    }

    #[test]
    fn a_long_line_of_json_stays_json() {
        let name = "x".repeat(900_000);
        let line =
            serde_json::json!({"timestamp": "t", "level": "INFO", "message": "m", "group": name});
        let short: Value =
            serde_json::from_str(&bounded(LineForm::Json, &line.to_string())).unwrap();
        assert_eq!((&short["message"], &short["level"]), (&Value::from("m"), &Value::from("INFO")));
        assert!(short["group"].as_str().unwrap().ends_with("… (898976 bytes more)"));
        let many: Vec<String> = (0..100_000).map(|it| it.to_string()).collect();
        let line = serde_json::json!({"timestamp": "t", "level": "INFO", "groups": many});
        let short: Value =
            serde_json::from_str(&bounded(LineForm::Json, &line.to_string())).unwrap();
        assert_eq!(short["level"], "INFO");
    }
}
