//! What people write in rules because other notations have it, and what it is here.

use super::super::fault::{RuleFault, RuleFaultKind};
use crate::model::{Path, is_bare_segment};

/// Returns the fault of a string that has the array form in it.
pub(super) fn array_in_string(text: &str) -> Option<RuleFault> {
    let trimmed = text.trim();
    let is_array = trimmed.starts_with('[')
        && serde_json::from_str::<Vec<serde::de::IgnoredAny>>(trimmed).is_ok();
    is_array.then(|| RuleFault {
        kind: RuleFaultKind::Grammar,
        element: Vec::new(),
        characters: None,
        message: "a rule in the array form is a list, here it is a string".to_owned(),
        help: Some("write it without the quotes around it".to_owned()),
    })
}

/// Returns what is wrong with a path that starts like one of another language.
pub(super) fn no_path(text: &str) -> Option<&'static str> {
    if text.starts_with('$') {
        return Some("a rule has no variables: a path starts with the name of a fact");
    }
    text.starts_with("%{").then_some("a rule has no interpolation: a path stands alone")
}

/// Returns a path of Puppet or Hiera, such as `$facts['os']["family"]`, in the notation of rules.
pub(super) fn dotted(text: &str) -> Option<String> {
    let text = text.strip_prefix("%{").unwrap_or(text);
    let text = text.strip_prefix('$').unwrap_or(text);
    let mut rest = text.strip_prefix("::").unwrap_or(text);
    let mut path = String::new();
    let mut keys = Vec::new();
    let is_word = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
    loop {
        let length = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
        let (key, behind) = rest.split_at(length);
        if !key.is_empty() {
            keys.push(key);
            rest = behind;
        } else if let Some(inside) = rest.strip_prefix('[') {
            let (key, behind) = inside.split_once(']')?;
            keys.push(key.trim().trim_matches(['"', '\'']));
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix('.') {
            rest = behind;
        } else {
            break;
        }
    }
    let mut keys = keys.into_iter().peekable();
    let is_root = keys.peek().is_some_and(|it| matches!(*it, "facts" | "fact"));
    if is_root {
        keys.next();
    }
    for key in keys {
        if !path.is_empty() && key.bytes().all(|it| it.is_ascii_digit()) {
            path.extend(["[", key, "]"]);
            continue;
        }
        path.push_str(if path.is_empty() { "" } else { "." });
        path.push_str(&if is_bare_segment(key) { key.to_owned() } else { quoted(key) });
    }
    Some(path).filter(|it| !it.is_empty())
}

/// Returns the advice for a word in the place of an operator.
pub(super) fn operator_help(word: &str, path: &Path) -> Option<String> {
    let word = word.trim();
    Some(match word.to_lowercase().as_str() {
        "in" => format!(
            "that a list has an element is written `LIST <: ELEMENT`, the list first; that a value is \
             one of several `{path} = … or {path} = …`"
        ),
        "contains" | "includes" | "has" => {
            format!("that a list has an element is written `{path} <: …`")
        }
        "is" | "eq" | "equals" | "equal" => "equality is `=`".to_owned(),
        "ne" | "isnt" => "inequality is `!=`".to_owned(),
        "matches" | "match" | "like" | "regex" => "a regular expression is `~`".to_owned(),
        "gt" => "greater is `>`".to_owned(),
        "ge" => "at least is `>=`".to_owned(),
        "lt" => "less is `<`".to_owned(),
        "le" => "at most is `<=`".to_owned(),
        _ => return None,
    })
}

/// Returns the advice for a sign in the place of `and` or `or`.
pub(super) fn join_help(word: &str) -> Option<&'static str> {
    match word {
        "&&" | "&" | "," => Some("write `and`"),
        "||" | "|" => Some("write `or`"),
        _ => None,
    }
}

/// Returns the text up to the next quotation mark, if it starts with one of a word processor.
pub(crate) fn opens_foreign_quote(text: &str) -> Option<&str> {
    const MARKS: [char; 9] = ['“', '”', '„', '‟', '‘', '’', '‚', '«', '»'];
    text.strip_prefix(MARKS)?.split(MARKS).next()
}

/// Writes a text in the quotes of rules.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
