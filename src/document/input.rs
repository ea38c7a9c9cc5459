//! The text of a file, character by character as the parser asks for it.

use saphyr_parser::Input;
use saphyr_parser::input::is_breakz;

/// How many characters the parser looks ahead at once. It begins a plain scalar with room for 32 bytes, and makes room
/// for this many behind its first character: with the 128 of the library's own input it would allocate twice for each.
const LOOKAHEAD: usize = 31;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Does as the library's `StrInput` does in fewer instructions, since nearly all characters are single bytes; of a
/// directive it counts the characters, where that counts the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextInput<'t> {
    text: &'t str,
    /// The byte at which the next character begins.
    at: usize,
    /// The most characters that the parser asked to look ahead.
    looked_ahead: usize,
}

impl<'t> TextInput<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, looked_ahead: 0 }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Returns the character that begins at a byte.
    #[inline]
    fn character(&self, at: usize) -> Option<char> {
        match self.byte(at)? {
            byte if byte.is_ascii() => Some(char::from(byte)),
            _ => self.long_character(at),
        }
    }

    #[cold]
    fn long_character(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Returns the place behind the character that begins at a byte.
    #[inline]
    fn behind(&self, at: usize) -> usize {
        match self.byte(at) {
            None => at,
            Some(..0x80) => at + 1,
            Some(..0xe0) => at + 2,
            Some(..0xf0) => at + 3,
            Some(_) => at + 4,
        }
    }
}

/// Returns whether a byte, or the end of the text, ends a word.
#[inline]
fn ends_word(byte: Option<u8>) -> bool {
    matches!(byte, None | Some(b' ' | b'\t' | b'\n' | b'\r' | 0))
}

#[inline]
fn is_flow_indicator(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

impl Input for TextInput<'_> {
    #[inline]
    fn lookahead(&mut self, count: usize) {
        self.looked_ahead = self.looked_ahead.max(count);
    }

    #[inline]
    fn buflen(&self) -> usize {
        self.looked_ahead
    }

    #[inline]
    fn bufmaxlen(&self) -> usize {
        LOOKAHEAD
    }

    #[inline]
    fn raw_read_ch(&mut self) -> char {
        let next = self.peek();
        self.skip();
        next
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        let next = self.peek_opt().filter(|it| !is_breakz(*it) && *it != BYTE_ORDER_MARK)?;
        self.skip();
        Some(next)
    }

    #[inline]
    fn skip(&mut self) {
        self.at = self.behind(self.at);
    }

    #[inline]
    fn skip_n(&mut self, count: usize) {
        for _ in 0..count {
            self.skip();
        }
    }

    #[inline]
    fn peek(&self) -> char {
        self.peek_opt().unwrap_or_default()
    }

    #[inline]
    fn peek_nth(&self, n: usize) -> char {
        let at = (0..n).fold(self.at, |at, _| self.behind(at));
        self.character(at).unwrap_or_default()
    }

    #[inline]
    fn peek_opt(&self) -> Option<char> {
        self.character(self.at)
    }

    #[inline]
    fn next_is_blank_or_breakz(&self) -> bool {
        ends_word(self.byte(self.at))
    }

    #[inline]
    fn next_can_be_plain_scalar(&self, in_flow: bool) -> bool {
        let next = || self.byte(self.at + 1);
        match self.byte(self.at) {
            Some(b':') => !(ends_word(next()) || in_flow && next().is_some_and(is_flow_indicator)),
            Some(0xef) => self.peek() != BYTE_ORDER_MARK,
            Some(byte) => !(in_flow && is_flow_indicator(byte)),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use saphyr_parser::{Event, Input, Parser, ScanError, Span, StrInput};

    use super::*;

    /// What the parser reads of a text, up to its first error.
    fn events<'t>(input: impl Input + 't) -> Vec<Result<(Event<'t>, Span), ScanError>> {
        let mut all = Vec::new();
        for event in Parser::new(input) {
            let is_error = event.is_err();
            all.push(event);
            if is_error {
                break;
            }
        }
        all
    }

    /// A part of a YAML text. Those of the library's own lookahead and of this one are among them.
    fn part() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z0-9 :,#\\[\\]{}&*!|>'\"%@`?~.+-]{0,6}",
            3 => "(\n|\r\n|\r|\n\n)[ ]{0,6}(- |\\? |[a-z]{1,4}: )?",
            1 => "[\u{feff}\u{e9}\u{2028}\u{1f600}\t\\\\]{1,2}",
            1 => prop::sample::select(vec!["---\n", "...\n", "\n---", "\n...", "---", ": |\n", ": >-\n", "|2\n", "\\u00e9"])
                .prop_map(str::to_owned),
            1 => prop_oneof![28_usize..34, 124_usize..132].prop_map(|it| "a".repeat(it)),
            1 => (26_usize..34).prop_map(|it| format!(": |\n{}x\n", " ".repeat(it))),
            1 => (124_usize..130).prop_map(|it| format!("\n{}a", " ".repeat(it))),
        ]
    }

    proptest! {
        #[test]
        fn the_parser_reads_as_from_the_input_of_its_library(
            text in prop::collection::vec(part(), 0..14).prop_map(|it| it.concat()),
        ) {
            // The library's input counts the bytes of a directive, and not its characters.
            let text = if text.is_ascii() { text } else { text.replace('%', "") };
            let own = events(TextInput::new(&text));
            let theirs = events(StrInput::new(&text));
            prop_assert_eq!(format!("{own:?}"), format!("{theirs:?}"));
        }
    }
}
