//! Strings between quotes.

use super::lexer::{DEPTH, Lexer};
use super::token::Sort;
use crate::puppet::CodeFault;

impl Lexer<'_> {
    /// Takes the rest of a single-quoted string: only `\'` and `\\` are escapes.
    pub(super) fn single_quoted(&mut self, start: usize) -> Result<String, CodeFault> {
        let mut text = String::new();
        while let Some(next) = self.advance() {
            match next {
                '\'' => return Ok(text),
                '\\' if self.rest().starts_with(['\'', '\\']) => text.extend(self.advance()),
                it => text.push(it),
            }
        }
        Err(self.fault(start, "a string is not closed"))
    }

    /// Takes the rest of a double-quoted string; nothing is returned if it has an expression.
    pub(super) fn double_quoted(
        &mut self,
        start: usize,
        depth: usize,
    ) -> Result<Option<String>, CodeFault> {
        let mut text = String::new();
        let mut literal = true;
        while let Some(next) = self.advance() {
            match next {
                '"' => return Ok(literal.then_some(text)),
                '\\' => match self.escape() {
                    Some(it) => text.push_str(&it),
                    None => literal = false,
                },
                '$' if self.rest().starts_with('{') => {
                    self.at += 1;
                    self.expression(start, depth)?;
                    literal = false;
                }
                '$' if self.rest().starts_with(starts_variable) => literal = false,
                it => text.push(it),
            }
        }
        Err(self.fault(start, "a string is not closed"))
    }

    /// Skips an expression in a string up to the brace that closes it.
    fn expression(&mut self, start: usize, depth: usize) -> Result<(), CodeFault> {
        if depth >= DEPTH {
            return Err(self.fault(start, format!("strings are nested over {DEPTH} levels deep")));
        }
        let mut open = 1_usize;
        let mut before = None;
        while let Some(token) = self.next(before.as_ref(), depth + 1)? {
            match token.sort {
                Sort::Mark('{') => open += 1,
                Sort::Mark('}') => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
            before = Some(token);
        }
        Err(self.fault(start, "an expression in a string is not closed"))
    }

    /// Takes what follows a backslash between double quotes; nothing if it is not a character.
    fn escape(&mut self) -> Option<String> {
        let plain = match self.advance()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            's' => ' ',
            '\n' => return Some(String::new()),
            'u' => return self.unicode().map(String::from),
            it @ ('"' | '\'' | '\\' | '$') => it,
            // Puppet warns, and keeps both characters.
            it => return Some(format!("\\{it}")),
        };
        Some(plain.into())
    }

    /// Takes the digits of `\uXXXX` or `\u{X…}`.
    fn unicode(&mut self) -> Option<char> {
        let rest = self.rest();
        let (digits, length) = match rest.strip_prefix('{') {
            Some(inside) => {
                let digits = inside.split_once('}')?.0;
                (digits, digits.len() + 2)
            }
            None => (rest.get(..4)?, 4),
        };
        let parsed = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?;
        self.at += length;
        Some(parsed)
    }
}

/// Returns whether a variable can start with a character.
pub(super) fn starts_variable(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_' || it == ':'
}
