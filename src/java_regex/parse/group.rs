//! Groups, look-around and inline flags.

use super::source::PatternToken;
use super::study::study;
use super::{Flags, Parser, Parsing};
use crate::java_regex::ast::{Ast, Direction, Look};

impl Parser {
    /// Reads a group from its `(` on; `None` are flags alone.
    pub(super) fn group(&mut self) -> Parsing<Option<Ast>> {
        let opened = self.source.at;
        self.source.at += 1;
        let flags = self.flags;
        if !self.take('?') {
            return self.capture(flags).map(Some);
        }
        // Even with `x`, only flags may stand behind a blank here.
        let kind = match self.source.peek() {
            Some(PatternToken::Plain(kind)) => kind,
            _ => '\0',
        };
        let ast = match kind {
            ':' => {
                self.source.at += 1;
                grouped(self.alternatives()?)
            }
            '=' | '!' => {
                self.source.at += 1;
                let body = self.alternatives()?;
                let negative = kind == '!';
                Ast::Look(Box::new(Look { body, direction: Direction::Ahead, negative }))
            }
            '>' => {
                self.source.at += 1;
                Ast::Atomic(Box::new(self.alternatives()?))
            }
            '<' => {
                self.source.at += 1;
                let Some(PatternToken::Plain(sign @ ('=' | '!'))) = self.peek() else {
                    self.name_capture(opened)?;
                    return self.capture(flags).map(Some);
                };
                self.source.at += 1;
                let (body, direction) = self.behind(opened)?;
                Ast::Look(Box::new(Look { body, direction, negative: sign == '!' }))
            }
            '$' | '@' => return Err(self.error_here("unknown group type")),
            _ => {
                self.inline_flags()?;
                match self.read() {
                    Some(PatternToken::Plain(')')) => return Ok(None),
                    Some(PatternToken::Plain(':')) => grouped(self.alternatives()?),
                    _ => {
                        self.source.at = self.source.at.saturating_sub(1);
                        return Err(self.error_here("unknown inline modifier"));
                    }
                }
            }
        };
        self.close(flags)?;
        Ok(Some(ast))
    }

    /// Reads the body of a look-behind, whose text must have a bounded length.
    fn behind(&mut self, opened: usize) -> Parsing<(Ast, Direction)> {
        let body = self.alternatives()?;
        let lengths = study(&body);
        if !lengths.is_bounded {
            let message = "look-behind group does not have an obvious maximum length";
            return Err(self.error_at(opened, message));
        }
        Ok((body, Direction::Behind { least: lengths.least, most: lengths.most }))
    }

    /// Reads the name of the capture that follows.
    fn name_capture(&mut self, opened: usize) -> Parsing<()> {
        let name = self.group_name()?;
        if self.names.iter().any(|(known, _)| *known == name) {
            let message = format!("named capturing group `{name}` is already defined");
            return Err(self.error_at(opened, message));
        }
        self.names.push((name, self.captures + 1));
        Ok(())
    }

    fn capture(&mut self, flags: Flags) -> Parsing<Ast> {
        self.captures += 1;
        let number = self.captures;
        let body = self.alternatives()?;
        self.close(flags)?;
        Ok(Ast::Capture(number, Box::new(body)))
    }

    /// Takes the `)`; flags set inside of a group end with it.
    fn close(&mut self, flags: Flags) -> Parsing<()> {
        if !self.take(')') {
            return Err(self.error_here("unclosed group"));
        }
        self.flags = flags;
        Ok(())
    }

    /// Reads a name and its `>`.
    pub(super) fn group_name(&mut self) -> Parsing<String> {
        let mut name = String::new();
        while let Some(PatternToken::Plain(character)) = self.peek() {
            let fits = match name.is_empty() {
                true => character.is_ascii_alphabetic(),
                false => character.is_ascii_alphanumeric(),
            };
            if !fits {
                break;
            }
            name.push(character);
            self.source.at += 1;
        }
        if name.is_empty() {
            return Err(self.error_here("capturing group name does not start with a Latin letter"));
        }
        if self.read() != Some(PatternToken::Plain('>')) {
            self.source.at = self.source.at.saturating_sub(1);
            return Err(self.error_here("named capturing group is missing trailing `>`"));
        }
        Ok(name)
    }

    fn inline_flags(&mut self) -> Parsing<()> {
        let mut on = true;
        while let Some(PatternToken::Plain(letter)) = self.peek() {
            match letter {
                'i' => self.flags.case_insensitive = on,
                'm' => self.flags.multiline = on,
                's' => self.flags.dot_all = on,
                'd' => self.flags.unix_lines = on,
                'u' => self.flags.unicode_case = on,
                'x' => self.flags.comments = on,
                'U' => {
                    self.flags.unicode_classes = on;
                    self.flags.unicode_case = on;
                }
                'c' => {
                    return Err(
                        self.error_here("canonical equivalence, flag `c`, is not supported")
                    );
                }
                '-' if on => on = false,
                _ => break,
            }
            self.source.at += 1;
        }
        Ok(())
    }
}

/// Returns the part in a group that captures nothing. To a quantifier behind the group it is not an atom,
/// as look-around and atomic groups are.
fn grouped(body: Ast) -> Ast {
    match body {
        Ast::Look(_) | Ast::Atomic(_) => Ast::Sequence(vec![body]),
        body => body,
    }
}
