//! A value as a line.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::age::age;
use crate::diagnostic::visible;
use crate::http::types::BlamedValue;

/// How many characters of a commit's id are shown.
const SHORT: usize = 8;

/// How many characters of an author's name are shown.
const AUTHOR: usize = 16;

/// How many characters of a value are shown.
const LONGEST: usize = 60;

/// Writes a value as a line, in the manner of `git blame`.
pub(super) fn line(value: &BlamedValue, now: Timestamp) -> String {
    let boundary = if value.boundary { "^" } else { "" };
    let mut commit = format!("{boundary}{}", value.commit.id);
    commit.truncate(SHORT);
    let author: String = visible(&value.commit.author).chars().take(AUTHOR).collect();
    let age = age(value.commit.time, now);
    let place = match (&value.file, value.line) {
        (Some(file), Some(line)) => format!("{}:{line}", visible(file)),
        _ => "-".to_owned(),
    };
    let pull_request = value.commit.pull_request.as_ref();
    let pull_request = pull_request.map_or_else(String::new, |it| format!("#{} ", it.number));
    let mut text = format!("{commit} {author:<AUTHOR$} {age:>12}  {pull_request}{place}");
    if let Some(group) = &value.group {
        let _infallible = write!(text, " ({})", visible(group));
    }
    let _infallible = write!(text, "  {}", visible(&value.key));
    if !is_membership(&value.key) {
        let written = value.value.to_string();
        let shown = visible(&written);
        let cut: String = shown.chars().take(LONGEST).collect();
        let more = if cut.len() < shown.len() { "…" } else { "" };
        let _infallible = write!(text, " = {cut}{more}");
    }
    text.push('\n');
    text
}

/// Returns whether a key says all: that the node has a class or is in a group.
fn is_membership(key: &str) -> bool {
    let is_class = |class: &str| !class.contains('.');
    key.starts_with("groups.") || key.strip_prefix("classes.").is_some_and(is_class)
}
