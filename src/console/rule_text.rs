//! Rules and their explanations for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::markup::{Markup, line};
use crate::rule::{read, to_console};

/// How deep an explanation is drawn; below it is written as text.
const DEEPEST: usize = 24;

/// How many conditions stand in one line.
const REASONS: usize = 3;

/// Returns a rule in the console's notation, where that can say it.
pub(super) fn console(rule: &Value) -> Option<String> {
    to_console(&read(rule).ok()?).ok()
}

/// Returns a rule in the array form.
pub(super) fn array(rule: &Value) -> String {
    rule.to_string()
}

/// Draws an evaluated rule: each condition with whether it holds and what it saw.
pub(super) fn explained(explanation: &Value) -> Markup {
    let mut markup = String::from("<ul class=\"tree\">");
    draw(&mut markup, explanation, 0);
    markup.push_str("</ul>");
    Markup::of_parts(markup)
}

/// Returns whether a rule has more than one condition.
pub(super) fn is_composed(explanation: &Value) -> bool {
    matches!(operator(explanation), Some("and" | "or" | "not"))
}

/// Draws in one line the conditions that are enough for a rule to hold.
pub(super) fn reason(explanation: &Value) -> Markup {
    let mut decisive = Vec::new();
    collect_decisive(explanation, &mut decisive, 0);
    let mut markup = String::new();
    for (number, condition) in decisive.iter().take(REASONS).enumerate() {
        markup.push_str(if number == 0 { "because " } else { " and " });
        match condition.get("form").and_then(Value::as_array).map(Vec::as_slice) {
            Some([operator, seen, operand]) => draw_condition(&mut markup, operator, seen, operand),
            _ => markup.push_str("of a condition with <code>not</code>"),
        }
    }
    if decisive.len() > REASONS {
        let _ = write!(markup, " and {} more", decisive.len() - REASONS);
    }
    Markup::of_parts(markup)
}

/// Finds conditions that are enough: all of an `and`, the first that holds of an `or`.
fn collect_decisive<'e>(explanation: &'e Value, found: &mut Vec<&'e Value>, depth: usize) {
    let form = explanation.get("form").and_then(Value::as_array).map(Vec::as_slice);
    match (operator(explanation), form) {
        (Some("and"), Some([_, terms @ ..])) if depth < DEEPEST => {
            for term in terms {
                collect_decisive(term, found, depth + 1);
            }
        }
        (Some("or"), Some([_, terms @ ..])) if depth < DEEPEST => {
            let holds = |it: &&Value| it.get("value") == Some(&Value::Bool(true));
            if let Some(term) = terms.iter().find(holds) {
                collect_decisive(term, found, depth + 1);
            }
        }
        _ => found.push(explanation),
    }
}

fn operator(explanation: &Value) -> Option<&str> {
    explanation.get("form")?.get(0)?.as_str()
}

/// Draws a condition, and what it saw where that does not stand in it.
fn draw_condition(markup: &mut String, operator: &Value, seen: &Value, operand: &Value) {
    let path = seen.get("path").map(path_text).unwrap_or_default();
    let value = seen.get("value").unwrap_or(&Value::Null);
    let (operator, wanted) = (bare(operator), bare(operand));
    let _ = write!(
        markup,
        "<code>{} {} {}</code>",
        line(&path),
        line(&operator),
        line(quoted(&wanted))
    );
    if bare(value) == wanted {
        return;
    }
    let saw = match value {
        Value::Null => "has no value".to_owned(),
        Value::String(text) => format!("is \"{text}\""),
        other => format!("is {other}"),
    };
    let _ = write!(markup, " <span class=\"muted\">{} {}</span>", line(&path), line(&saw));
}

fn draw(markup: &mut String, explanation: &Value, depth: usize) {
    let holds = explanation.get("value").and_then(Value::as_bool);
    let class = match holds {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    let words = match holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None => "cannot be evaluated",
    };
    let form = explanation.get("form").and_then(Value::as_array).map(Vec::as_slice);
    let _ = write!(
        markup,
        "<li><span class=\"row\"><span class=\"{class}\"><span class=\"away\">{words}: </span></span>"
    );
    match form {
        Some([Value::String(operator), terms @ ..])
            if matches!(operator.as_str(), "and" | "or" | "not") && depth < DEEPEST =>
        {
            let all = match operator.as_str() {
                "and" => "all of",
                "or" => "one of",
                _ => "not",
            };
            let _ = write!(markup, "<span>{all}</span></span><ul>");
            for term in terms {
                draw(markup, term, depth + 1);
            }
            markup.push_str("</ul></li>");
            return;
        }
        Some([operator, seen, operand]) => {
            draw_condition(markup, operator, seen, operand);
        }
        _ => {
            let _ = write!(markup, "<code>{}</code>", line(explanation));
        }
    }
    if let Some(error) = explanation.get("error").map(bare) {
        let _ = write!(markup, " <span class=\"badge bad\">{}</span>", line(&error));
    }
    markup.push_str("</span></li>");
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// Writes a path as people do: `os.family`, `trusted.certname`.
fn path_text(path: &Value) -> String {
    match path {
        Value::Array(segments) => {
            let segments: Vec<String> = segments.iter().map(bare).collect();
            match segments.split_first() {
                Some((first, rest)) if matches!(first.as_str(), "fact" | "facts") => rest.join("."),
                _ => segments.join("."),
            }
        }
        other => bare(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_explanation_says_what_each_condition_saw() {
        let explanation = json!({"value": false, "form": ["and",
            {"value": true, "form": ["=", {"path": ["fact", "os", "family"], "value": "<b>"}, "<b>"]},
            {"value": false, "form": ["=", {"path": ["trusted", "x"], "value": null}, "y"]}]});
        let drawn = explained(&explanation).to_string();
        assert!(drawn.contains(
            "<code><bdi>os.family</bdi> <bdi>=</bdi> <bdi>&quot;&lt;b&gt;&quot;</bdi></code>"
        ));
        assert!(drawn.contains("has no value"));
        assert!(!drawn.contains("<b>"));
    }

    #[test]
    fn a_reason_is_what_is_enough() {
        let holds = |path: &str, is: &str| json!({"value": true, "form": ["=", {"path": path, "value": is}, is]});
        let fails = json!({"value": false, "form": ["=", {"path": "a", "value": "1"}, "2"]});
        let rule = json!({"value": true, "form": ["or", fails, {"value": true, "form":
            ["and", holds("b", "1"), holds("c", "2")]}]});
        assert!(is_composed(&rule));
        assert_eq!(
            reason(&rule).to_string(),
            "because <code><bdi>b</bdi> <bdi>=</bdi> <bdi>&quot;1&quot;</bdi></code> and \
             <code><bdi>c</bdi> <bdi>=</bdi> <bdi>&quot;2&quot;</bdi></code>"
        );
        assert!(!is_composed(&holds("b", "1")));
    }
}
