//! Text of a repository in lines for people and pipelines.
//!
//! File names, group names and values come from the author of a commit: with line breaks, terminal
//! escapes or marks that reverse the direction of text. In a pipeline a line is also a command.

use std::borrow::Cow;

/// What stands in the place of a character that must not be written.
const REPLACEMENT: char = '\u{fffd}';

/// Returns a text on one line, without anything that moves the cursor, colours a terminal, changes
/// the direction of writing, or is a command to a pipeline.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) && !COMMANDS.iter().any(|it| text.contains(it)) {
        return Cow::Borrowed(text);
    }
    let mut shown: String =
        text.chars().map(|it| if is_hidden(it) { REPLACEMENT } else { it }).collect();
    for command in COMMANDS {
        // What follows the first character tells a command from a heading.
        let rest: String = command.chars().skip(1).collect();
        shown = shown.replace(command, &format!("#{REPLACEMENT}{rest}"));
    }
    Cow::Owned(shown)
}

/// Returns a text as [`visible`] does, with at most so many characters.
pub fn visible_up_to(text: &str, longest: usize) -> String {
    let end = text.char_indices().nth(longest).map(|(end, _)| end);
    match end.and_then(|end| text.get(..end)) {
        Some(start) => format!("{}…", visible(start)),
        None => visible(text).into_owned(),
    }
}

/// Returns whether a character is not seen, or changes how others are.
pub(super) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
        || is_noncharacter(character)
}

/// Returns whether Unicode will never give a code to a character, such as U+FFFE, which XML does not have.
fn is_noncharacter(character: char) -> bool {
    matches!(character, '\u{fdd0}'..='\u{fdef}') || u32::from(character) & 0xfffe == 0xfffe
}

/// Commands that GitHub's runner and Azure's agent find in the middle of a line, too.
pub(super) const COMMANDS: [&str; 2] = ["##[", "##vso["];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn a_text_stays_on_its_line() {
        let rows = [
            ("groups/größe ok.yaml", "groups/größe ok.yaml"),
            ("a\n::error::x", "a\u{fffd}::error::x"),
            ("a\u{1b}[31mb\u{9b}c\u{7f}", "a\u{fffd}[31mb\u{fffd}c\u{fffd}"),
            ("a\u{fffe}b\u{fdd0}c\u{1ffff}d", "a\u{fffd}b\u{fffd}c\u{fffd}d"),
            ("a\u{202e}b\u{2066}c\u{2028}d", "a\u{fffd}b\u{fffd}c\u{fffd}d"),
            ("x ##[add-mask]y ##vso[task]z", "x #\u{fffd}#[add-mask]y #\u{fffd}#vso[task]z"),
        ];
        each_row(rows, |(text, shown)| {
            assert_eq!(visible(text), shown);
        });
        assert_eq!(visible_up_to("abc", 3), "abc");
        assert_eq!(visible_up_to("ab\ncd", 3), "ab\u{fffd}…");
    }
}
