//! A place in Puppet code, and how it moves on.

use crate::puppet::CodeFault;

/// The levels of expressions in strings.
pub(super) const DEPTH: usize = 64;

pub(super) struct Lexer<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    pub(super) heredocs: Heredocs,
}

impl<'t> Lexer<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn advance(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn slice(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn fault(&self, at: usize, reason: impl Into<String>) -> CodeFault {
        CodeFault::at(self.text, at, reason)
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|it| !wanted(it)).unwrap_or(rest.len());
    }

    /// Moves behind a text that must come; what is left open is named if it does not.
    pub(super) fn find_end(
        &mut self,
        start: usize,
        end: &str,
        open: &str,
    ) -> Result<(), CodeFault> {
        match self.rest().find(end) {
            Some(found) => {
                self.at += found + end.len();
                Ok(())
            }
            None => Err(self.fault(start, format!("{open} is not closed"))),
        }
    }
}

/// Where the texts of the current line's heredocs end.
#[derive(Default)]
pub(super) struct Heredocs {
    /// The end of the line that the heredocs stand on, and of their texts.
    pub(super) pending: Option<(usize, usize)>,
}

impl Heredocs {
    /// Returns where the code goes on that has come to the start of a line.
    pub(super) fn after_line(&mut self, start: usize) -> usize {
        match self.pending {
            Some((line, end)) if start >= line => {
                self.pending = None;
                end.max(start)
            }
            _ => start,
        }
    }
}
