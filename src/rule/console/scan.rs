//! The tokens of the console's notation.
//!
//! What a character means depends on where it stands (a dot parts the segments
//! of a path but belongs to a value), so the reader asks for the token it needs.

use std::num::{IntErrorKind, ParseIntError};

use super::familiar::{opens_foreign_quote, quoted};
use super::fault::{BoxedFault, fault};
use crate::model::{Order, Segment, shared_text};
use crate::rule::comparison::ComparisonOperator;

/// A token where a condition starts or ends.
pub(super) enum ConsoleToken {
    /// The end of the text.
    End,
    /// `(`
    Open,
    /// `)`
    Close,
    /// Anything else.
    Word(String),
}

/// A value, as compared.
pub(super) struct ConsoleValue {
    /// The text without quotes and escapes.
    pub(super) content: String,
    /// Whether every character stands for itself in the rule.
    pub(super) verbatim: bool,
    /// How many characters of the rule come before the text: 1 for a quote.
    pub(super) inset: usize,
}

pub(super) struct ConsoleScanner {
    characters: Vec<char>,
    at: usize,
    /// Where the last value starts.
    value_at: usize,
}

impl ConsoleScanner {
    pub(super) fn new(text: &str) -> Self {
        Self { characters: text.chars().collect(), at: 0, value_at: 0 }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn peek_at(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn take_while(&mut self, wanted: impl Fn(&Self, char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(character) = self.peek().filter(|character| wanted(self, *character)) {
            taken.push(character);
            self.at += 1;
        }
        taken
    }

    /// Returns the place of the next token, in characters from 0.
    pub(super) fn position(&mut self) -> usize {
        let end = self.at;
        self.skip_blanks();
        if self.peek().is_none() { end } else { self.at }
    }

    /// Returns the place behind the last token.
    pub(super) fn end(&self) -> usize {
        self.at
    }

    /// Returns the text from a place on, as far as it may matter.
    pub(super) fn ahead(&self, at: usize) -> String {
        /// No path that people write is longer.
        const LONGEST: usize = 200;
        self.characters.iter().skip(at).take(LONGEST).collect()
    }

    /// Returns the text between two places.
    pub(super) fn slice(&self, range: std::ops::Range<usize>) -> String {
        self.characters.iter().skip(range.start).take(range.len()).collect()
    }

    /// Returns how many characters follow a place up to a blank, at least one.
    pub(super) fn word_length(&self, at: usize) -> usize {
        let rest = self.characters.iter().skip(at);
        rest.take_while(|it| !it.is_whitespace()).count().max(1)
    }

    /// Returns whether a quote stands at the place.
    pub(super) fn was_quoted(&self, at: usize) -> bool {
        matches!(self.characters.get(at), Some('"' | '\''))
    }

    /// Takes the next token where a condition could go on.
    pub(super) fn condition_token(&mut self) -> Result<ConsoleToken, BoxedFault> {
        self.skip_blanks();
        Ok(match self.peek() {
            None => ConsoleToken::End,
            Some('(') => {
                self.at += 1;
                ConsoleToken::Open
            }
            Some(')') => {
                self.at += 1;
                ConsoleToken::Close
            }
            Some('"' | '\'') => ConsoleToken::Word(self.quoted()?.content),
            Some(_) => ConsoleToken::Word(self.bare_value()),
        })
    }

    /// Takes the character if it is the next token.
    pub(super) fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        self.take_adjacent(wanted)
    }

    /// Takes the character if nothing stands before it.
    pub(super) fn take_adjacent(&mut self, wanted: char) -> bool {
        let taken = self.peek() == Some(wanted);
        self.at += usize::from(taken);
        taken
    }

    /// Takes the keyword if it is the next token: a whole word. A `not` that an operator follows
    /// is a path, since a fact may be called so.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let length = word.chars().count();
        let ahead = self.characters.get(self.at..self.at + length);
        if !ahead.is_some_and(|ahead| ahead.iter().copied().eq(word.chars())) {
            return false;
        }
        let after = self.characters.get(self.at + length..).unwrap_or_default();
        let ends = after.first().is_none_or(|next| next.is_whitespace() || *next == '(');
        let next = after.iter().find(|next| !next.is_whitespace());
        let is_path = word == "not" && next.is_some_and(|next| "=~<>!/".contains(*next));
        let taken = ends && !is_path;
        self.at += if taken { length } else { 0 };
        taken
    }

    /// Takes a segment of a path that is not an index.
    pub(super) fn segment(&mut self) -> Result<Segment, BoxedFault> {
        self.skip_blanks();
        let start = self.at;
        if matches!(self.peek(), Some('"' | '\'')) {
            return Ok(Segment::Key(shared_text(&self.quoted()?.content)));
        }
        let key = self.take_while(|it, character| {
            let slash_operator = character == '/' && it.peek_at(1) == Some(':');
            !character.is_whitespace() && !".[]()\"'=~<>!".contains(character) && !slash_operator
        });
        if key.is_empty() {
            let found =
                self.peek().map_or("the end".to_owned(), |character| format!("`{character}`"));
            let message = format!("expected a path such as `os.family`, found {found}");
            let help = (self.peek() == Some('!')).then_some("write `not`");
            return Err(fault(start..start + 1, message, help));
        }
        Ok(Segment::Key(shared_text(&key)))
    }

    /// Takes the rest of an index after its `[`.
    pub(super) fn index(&mut self) -> Result<Segment, BoxedFault> {
        let start = self.at;
        let digits = self.take_while(|_, character| character != ']' && !character.is_whitespace());
        let index = digits.parse();
        match &index {
            Ok(index) if self.take(']') && !digits.starts_with('+') => Ok(Segment::Index(*index)),
            _ => {
                let is_too_large =
                    |error: &ParseIntError| error.kind() == &IntErrorKind::PosOverflow;
                let message = match index.err().is_some_and(|it| is_too_large(&it)) {
                    true => {
                        "the index is too large: an index into a list is at most 18446744073709551615"
                    }
                    false => "expected an index such as `[0]`",
                };
                Err(fault(start..self.at.max(start + 1), message, None))
            }
        }
    }

    /// Takes an operator; returns whether it is negated, and the operator itself.
    pub(super) fn operator(&mut self) -> Result<(bool, ComparisonOperator), BoxedFault> {
        const OPERATORS: [(&str, bool, ComparisonOperator); 10] = [
            ("<:", false, ComparisonOperator::Contains),
            ("/:", true, ComparisonOperator::Contains),
            ("!=", true, ComparisonOperator::Equals),
            ("!~", true, ComparisonOperator::Finds),
            (">=", false, ComparisonOperator::Number(Order::AtLeast)),
            ("<=", false, ComparisonOperator::Number(Order::AtMost)),
            ("=", false, ComparisonOperator::Equals),
            ("~", false, ComparisonOperator::Finds),
            (">", false, ComparisonOperator::Number(Order::Greater)),
            ("<", false, ComparisonOperator::Number(Order::Less)),
        ];
        let start = self.position();
        for (text, negated, operator) in OPERATORS {
            let length = text.chars().count();
            let ahead = self.characters.get(self.at..self.at + length);
            if ahead.is_some_and(|ahead| ahead.iter().copied().eq(text.chars())) {
                self.at += length;
                if matches!(self.peek(), Some('=' | '~')) {
                    let help = "equality is `=`, a regular expression is `~`";
                    let wrong: String =
                        [text, &self.peek().map(String::from).unwrap_or_default()].concat();
                    return Err(fault(
                        start..self.at + 1,
                        format!("`{wrong}` is not an operator"),
                        Some(help),
                    ));
                }
                return Ok((negated, operator));
            }
        }
        let word = self.take_while(|_, character| !character.is_whitespace());
        let found = if word.is_empty() { "the end".to_owned() } else { format!("`{word}`") };
        let help = "the operators are `=`, `!=`, `~`, `!~`, `>`, `>=`, `<`, `<=`, `<:`, `/:`";
        let message = format!("expected an operator, found {found}");
        Err(fault(start..self.at.max(start + 1), message, Some(help)))
    }

    /// Takes a value: a quoted string, or everything up to the next blank or parenthesis.
    pub(super) fn value(&mut self) -> Result<ConsoleValue, BoxedFault> {
        let start = self.position();
        self.value_at = start;
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.quoted();
        }
        let text = self.bare_value();
        let help = "put the value in quotes";
        if text.is_empty() {
            return Err(fault(start..start + 1, "expected a value", Some(help)));
        }
        if matches!(text.as_str(), "and" | "or" | "not") {
            let message = format!("expected a value, found `{text}`");
            return Err(fault(start..self.at, message, Some(help)));
        }
        Ok(ConsoleValue { content: text, verbatim: true, inset: 0 })
    }

    /// Returns what is odd about the last value, for where the text does not go on as it should.
    pub(super) fn oddity(&self) -> Option<BoxedFault> {
        let start = self.value_at;
        let rest = self.ahead(start);
        if let Some(inside) = opens_foreign_quote(&rest) {
            let message = "this is not a quote that a rule knows, but a letter of the value";
            let help = format!("write {}", quoted(inside));
            return Some(fault(start..start + 1, message, Some(help.as_str())));
        }
        let sign = start.checked_sub(1).and_then(|it| self.characters.get(it))?;
        let is_word = rest.starts_with('>') && rest.chars().nth(1).is_none_or(char::is_whitespace);
        let help = match sign {
            '<' => "inequality is `!=`",
            '=' => "at least is `>=`",
            _ => return None,
        };
        let message = format!("`{sign}>` is not an operator");
        is_word.then(|| fault(start - 1..start + 1, message, Some(help)))
    }

    fn bare_value(&mut self) -> String {
        self.take_while(|_, character| !character.is_whitespace() && !"()\"'".contains(character))
    }

    /// Takes a quoted string; a backslash escapes the quote and itself, before anything else it
    /// stands for itself, so that patterns need no doubling.
    fn quoted(&mut self) -> Result<ConsoleValue, BoxedFault> {
        let start = self.at;
        let Some(quote) = self.peek() else {
            return Err(fault(start..start + 1, "expected a quote", None));
        };
        self.at += 1;
        let mut text = String::new();
        let mut verbatim = true;
        while let Some(character) = self.peek() {
            self.at += 1;
            match (character, self.peek()) {
                (character, _) if character == quote => {
                    return Ok(ConsoleValue { content: text, verbatim, inset: 1 });
                }
                ('\\', Some(next)) if next == quote || next == '\\' => {
                    self.at += 1;
                    verbatim = false;
                    text.push(next);
                }
                (character, _) => text.push(character),
            }
        }
        Err(fault(start..start + 1, "this quote is never closed", None))
    }
}
