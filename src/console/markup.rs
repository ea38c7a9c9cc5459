//! Text and values as markup.
//!
//! Nearly all text of the pages comes from others: certnames, facts, names of groups, subjects of commits. It is
//! escaped, isolated so that its direction does not spread, and characters that are not seen are shown by their
//! code points.

use std::borrow::Borrow;
use std::fmt::{self, Display, Write as _};

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use serde_json::Value;

use crate::age::age;
use crate::model::CommitId;
use crate::wording::plural_ending;

/// How many characters of a text are shown before the rest is folded away.
const SHOWN: usize = 240;

/// How many of a sentence, such as a message.
const SENTENCE: usize = 1_000;

/// Markup that is safe to write into a page: what it is made of is escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Markup(String);

impl Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

impl Markup {
    /// Returns markup that is made of markup and of text of our own.
    pub(super) fn of_parts(parts: String) -> Self {
        Self(parts)
    }
}

/// Writes text of others; a long one is folded.
pub(super) fn text(value: impl Display) -> Markup {
    folded(&value.to_string(), "bdi", SENTENCE)
}

/// Writes text of others for a place that has room for one line, such as the cell of a list.
pub(super) fn line(value: impl Display) -> Markup {
    let value = value.to_string();
    let shown: String = value.chars().take(SHOWN).collect();
    let mut markup = String::from("<bdi>");
    escape(&mut markup, &shown);
    if shown.len() < value.len() {
        markup.push('…');
    }
    markup.push_str("</bdi>");
    Markup(markup)
}

/// Writes text of others where there can be no markup, such as the title of a page.
pub(super) fn plain(value: impl Display) -> String {
    /// How many characters a title has.
    const TITLE: usize = 80;
    let mut plain = String::new();
    for character in value.to_string().chars().take(TITLE) {
        if is_unseen(character) {
            let _ = write!(plain, "U+{:04X}", u32::from(character));
        } else {
            plain.push(character);
        }
    }
    plain
}

/// Writes a place in a file, as compilers do.
pub(super) fn place(
    file: impl Display,
    line_number: impl Borrow<Option<u32>>,
    column: impl Borrow<Option<u32>>,
) -> Markup {
    let mut place = file.to_string();
    for number in [line_number.borrow(), column.borrow()].into_iter().map_while(Option::as_ref) {
        let _ = write!(place, ":{number}");
    }
    line(place)
}

/// Writes a link to an address of this daemon.
pub(super) fn link(address: &str, inner: &Markup) -> Markup {
    let mut markup = String::from("<a href=\"");
    escape(&mut markup, address);
    let _ = write!(markup, "\">{inner}</a>");
    Markup(markup)
}

/// Writes a link to a page of another host, such as a forge.
pub(super) fn link_away(address: &str, inner: &Markup) -> Markup {
    let mut markup = String::from("<a class=\"away-link\" rel=\"noreferrer\" href=\"");
    escape(&mut markup, address);
    let _ = write!(markup, "\">{inner}</a>");
    Markup(markup)
}

/// Writes a number with what it counts.
pub(super) fn counted(number: impl Borrow<usize>, one: &str) -> String {
    let number = *number.borrow();
    format!("{} {one}{}", count(number as u64), plural_ending(number, one))
}

/// Writes text of others as it is, in a fixed width and with its lines.
pub(super) fn verbatim(value: impl Display) -> Markup {
    let mut markup = String::new();
    for (number, line) in value.to_string().split('\n').enumerate() {
        if number > 0 {
            markup.push('\n');
        }
        escape(&mut markup, line);
    }
    Markup(markup)
}

/// Writes a value as JSON; a long one is folded.
pub(super) fn value(value: &Value) -> Markup {
    match value {
        Value::Null => Markup("<code class=\"null\">null</code>".to_owned()),
        other => folded(&other.to_string(), "code", SHOWN),
    }
}

/// Writes a value that may be missing.
pub(super) fn maybe(it: impl Borrow<Option<Value>>) -> Markup {
    it.borrow()
        .as_ref()
        .map_or_else(|| Markup("<span class=\"none\">none</span>".to_owned()), value)
}

fn folded(text: &str, element: &str, most: usize) -> Markup {
    let mut markup = String::new();
    let shown: String = text.chars().take(most).collect();
    let open = |markup: &mut String| {
        let _ = write!(markup, "<{element}>");
    };
    let close = |markup: &mut String| {
        let _ = write!(markup, "</{element}>");
    };
    if shown.len() == text.len() {
        open(&mut markup);
        escape(&mut markup, text);
        close(&mut markup);
        return Markup(markup);
    }
    markup.push_str("<details class=\"long\"><summary>");
    open(&mut markup);
    escape(&mut markup, &shown);
    markup.push('…');
    close(&mut markup);
    let count = text.chars().count();
    let _ = write!(markup, " <span class=\"more\">{count} characters</span></summary>");
    open(&mut markup);
    escape(&mut markup, text);
    close(&mut markup);
    markup.push_str("</details>");
    Markup(markup)
}

/// Writes how long ago a time was, with the time itself for machines and on hover.
pub(super) fn ago(time: &Timestamp, now: &Timestamp) -> Markup {
    let exact = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    let shown = time.strftime("%Y-%m-%d %H:%M:%S UTC");
    let age = age(*time, *now);
    Markup(format!("<time datetime=\"{exact}\" title=\"{shown}\">{age}</time>"))
}

/// Returns the beginning of an id, as people write it.
pub(super) fn short(commit: &CommitId) -> String {
    commit.to_string().chars().take(10).collect()
}

/// Writes a number with its thousands apart.
pub(super) fn count(number: impl Borrow<u64>) -> String {
    let digits = number.borrow().to_string();
    let mut written = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push('\u{202f}');
        }
        written.push(digit);
    }
    written
}

/// Escapes a text; a character that is not seen, or that changes the direction of others, becomes its code point.
fn escape(markup: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            '\t' => markup.push('\t'),
            it if is_unseen(it) => {
                let _ = write!(markup, "<span class=\"unseen\">U+{:04X}</span>", u32::from(it));
            }
            it => markup.push(it),
        }
    }
}

fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_text() {
        for (given, expected) in [
            ("web1", "<bdi>web1</bdi>"),
            ("<script>&\"'", "<bdi>&lt;script&gt;&amp;&quot;&#39;</bdi>"),
            ("a\u{202e}b", "<bdi>a<span class=\"unseen\">U+202E</span>b</bdi>"),
            ("\u{7}", "<bdi><span class=\"unseen\">U+0007</span></bdi>"),
        ] {
            assert_eq!(text(given).to_string(), expected);
            assert_eq!(line(given).to_string(), expected);
        }
    }

    #[test]
    fn long_text_is_folded_and_complete() {
        let long = "é".repeat(SENTENCE + 1);
        let markup = text(&long).to_string();
        assert!(markup.starts_with("<details"));
        assert!(markup.contains(&format!("<bdi>{long}</bdi>")));
        assert!(!line(&long).to_string().contains(&long));
    }

    #[test]
    fn titles_show_what_is_not_seen() {
        assert_eq!(plain("a\u{202e}b<c>"), "aU+202Eb<c>");
        assert_eq!(plain("x".repeat(100)).len(), 80);
    }

    #[test]
    fn places_and_numbers_read_like_text() {
        assert_eq!(place("a.yaml", Some(3), Some(4)).to_string(), "<bdi>a.yaml:3:4</bdi>");
        assert_eq!(place("a.yaml", None, Some(4)).to_string(), "<bdi>a.yaml</bdi>");
        assert_eq!(counted(1, "value"), "1 value");
        assert_eq!(counted(0, "value"), "0 values");
        assert_eq!(counted(2, "class"), "2 classes");
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, expected) in
            [(0, "0"), (999, "999"), (1000, "1\u{202f}000"), (1_234_567, "1\u{202f}234\u{202f}567")]
        {
            assert_eq!(count(number), expected);
        }
    }
}
