//! Puppet code to tokens.

mod heredoc;
mod lexer;
mod string;
mod token;

use lexer::{Heredocs, Lexer};

pub(super) use token::{Lexeme, Sort};

use super::CodeFault;

/// Words that an operand follows, so that a slash after them starts a regular expression.
const BEFORE_OPERANDS: &[&str] =
    &["and", "case", "elsif", "if", "in", "node", "or", "return", "unless"];

/// Splits code into tokens.
pub(super) fn lex(text: &str) -> Result<Vec<Lexeme<'_>>, CodeFault> {
    let mut lexer = Lexer { text, at: 0, heredocs: Heredocs::default() };
    let mut tokens: Vec<Lexeme<'_>> = Vec::new();
    if text.starts_with('\u{feff}') {
        lexer.at = '\u{feff}'.len_utf8();
    }
    while let Some(token) = lexer.next(tokens.last(), 0)? {
        tokens.push(token);
    }
    Ok(tokens)
}

impl<'t> Lexer<'t> {
    /// Takes the next token; `before` is the one before it.
    fn next(
        &mut self,
        before: Option<&Lexeme<'t>>,
        depth: usize,
    ) -> Result<Option<Lexeme<'t>>, CodeFault> {
        self.skip_blanks()?;
        let start = self.at;
        let Some(first) = self.advance() else { return Ok(None) };
        let sort = match first {
            '\'' => Sort::Text(Some(self.single_quoted(start)?)),
            '"' => Sort::Text(self.double_quoted(start, depth)?),
            '@' if self.rest().starts_with('(') => self.heredoc(start)?,
            '$' => self.variable(),
            '/' if operand_follows(before) => self.pattern(start)?,
            ':' if self.rest().starts_with(':') => {
                self.at += 1;
                self.name(start)
            }
            it if it.is_ascii_digit() => {
                // A sign belongs to a number only in its exponent.
                self.take_while(|it| it.is_ascii_alphanumeric());
                if self.rest().starts_with('.')
                    && self.rest().chars().nth(1).is_some_and(|it| it.is_ascii_digit())
                {
                    self.at += 1;
                    self.take_while(|it| it.is_ascii_alphanumeric());
                }
                if self.slice(start).ends_with(['e', 'E'])
                    && !self.slice(start).starts_with("0x")
                    && self.rest().starts_with(['+', '-'])
                {
                    self.at += 1;
                    self.take_while(|it| it.is_ascii_digit());
                }
                Sort::Number(self.slice(start))
            }
            it if it.is_ascii_alphabetic() || it == '_' => {
                self.at = start;
                self.name(start)
            }
            it => Sort::Mark(it),
        };
        Ok(Some(Lexeme { sort, start, end: self.at }))
    }

    /// Skips blanks, comments and the texts of heredocs.
    fn skip_blanks(&mut self) -> Result<(), CodeFault> {
        loop {
            let start = self.at;
            match self.peek() {
                Some('\n') => {
                    self.at += 1;
                    self.at = self.heredocs.after_line(self.at);
                }
                Some(it) if it.is_whitespace() => self.at += it.len_utf8(),
                Some('#') => self.take_while(|it| it != '\n'),
                Some('/') if self.rest().starts_with("/*") => {
                    self.at += 2;
                    self.find_end(start, "*/", "a comment")?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes a name whose segments are joined by `::`; it is a type if a segment is capitalised.
    fn name(&mut self, start: usize) -> Sort<'t> {
        loop {
            // A dash is part of a word if a letter follows it, and of no type.
            self.take_while(|it| it.is_ascii_alphanumeric() || it == '_');
            let rest = self.rest();
            let lower = !self.slice(start).starts_with(|it: char| it.is_ascii_uppercase());
            if rest.starts_with("::") {
                self.at += 2;
            } else if lower
                && rest.starts_with('-')
                && rest.chars().nth(1).is_some_and(|it| it.is_ascii_alphanumeric() || it == '_')
            {
                self.at += 1;
            } else {
                break;
            }
        }
        let name = self.slice(start);
        let first = name.trim_start_matches(':').chars().next();
        match first {
            None => Sort::Mark(':'),
            Some(it) if it.is_ascii_uppercase() => Sort::Type(name),
            Some(_) => Sort::Word(name),
        }
    }

    fn variable(&mut self) -> Sort<'t> {
        let start = self.at;
        loop {
            self.take_while(|it| it.is_ascii_alphanumeric() || it == '_');
            let rest = self.rest();
            let goes_on = rest.strip_prefix("::").is_some_and(|it| {
                it.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_')
            });
            if !goes_on {
                break;
            }
            self.at += 2;
        }
        match self.slice(start) {
            "" => Sort::Mark('$'),
            name => Sort::Variable(name),
        }
    }

    /// Takes a regular expression up to the slash that no backslash precedes.
    fn pattern(&mut self, start: usize) -> Result<Sort<'t>, CodeFault> {
        let mut escaped = false;
        while let Some(next) = self.advance() {
            match next {
                '/' if !escaped => {
                    let end = self.at - 1;
                    let inside = self.text.get(start + 1..end).unwrap_or_default();
                    return Ok(Sort::Pattern(inside));
                }
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        Err(self.fault(start, "a regular expression is not closed"))
    }
}

/// Returns whether an operand may follow a token, so that a slash is not a division.
fn operand_follows(before: Option<&Lexeme<'_>>) -> bool {
    match before.map(|it| &it.sort) {
        None | Some(Sort::Mark('}')) => true,
        Some(Sort::Mark(mark)) => !matches!(mark, ')' | ']'),
        Some(Sort::Word(word)) => BEFORE_OPERANDS.contains(word),
        Some(_) => false,
    }
}
