//! A pattern in the syntax of `PostgreSQL`, where its meaning can be kept.
//!
//! `PostgreSQL` looks for the longest match and Java for the first one; whether there is one is the
//! same for what is written here.

use std::fmt::Write as _;

use super::ast::{Assertion, Ast, Direction, Lines, Look, Repeat, RepeatMode};
use super::set::CodeSet;

/// The most times that `PostgreSQL` repeats a part.
const REPEATS: u32 = 255;

/// The most ranges of a set that is written.
const RANGES: usize = 64;

/// Java's `$`: the end, or before a line terminator that ends the text; never within `\r\n`.
const BEFORE_FINAL: &str =
    r"(?:$|(?=(?:\u000d\u000a|[\u000d\u0085\u2028\u2029])$)|(?<!\u000d)(?=\u000a$))";

/// Writes a pattern for `PostgreSQL`.
///
/// # Errors
///
/// Returns what `PostgreSQL` does not have, as the end of a sentence.
pub(super) fn write(ast: &Ast) -> Result<String, &'static str> {
    let mut writer = PostgresWriter { text: String::new() };
    match ast {
        // The branches of the whole need no parentheses.
        Ast::Choice(parts) => writer.branches(parts)?,
        _ => writer.part(ast)?,
    }
    Ok(writer.text)
}

/// Writes text so that `PostgreSQL` takes every character for itself.
pub fn postgres_literal(text: &str) -> String {
    let mut writer = PostgresWriter { text: String::new() };
    text.chars().for_each(|character| writer.character(character));
    writer.text
}

struct PostgresWriter {
    text: String,
}

impl PostgresWriter {
    fn part(&mut self, ast: &Ast) -> Result<(), &'static str> {
        match ast {
            Ast::Empty => self.text.push_str("(?:)"),
            Ast::Set(set) => self.set(set)?,
            Ast::Sequence(parts) => parts.iter().try_for_each(|part| self.part(part))?,
            Ast::Choice(parts) => {
                self.text.push_str("(?:");
                self.branches(parts)?;
                self.text.push(')');
            }
            Ast::Capture(_, body) => self.part(body)?,
            Ast::Repeat(repeat) => self.repeat(repeat)?,
            Ast::Assert(assertion) => self.assertion(*assertion)?,
            Ast::Look(look) => self.look(look)?,
            Ast::Atomic(_) => return Err("PostgreSQL has no atomic groups"),
            Ast::Reference(_) => return Err("PostgreSQL reads references to groups differently"),
            Ast::LineBreak | Ast::Grapheme => return Err(r"PostgreSQL has no `\R` and `\X`"),
        }
        Ok(())
    }

    fn branches(&mut self, parts: &[Ast]) -> Result<(), &'static str> {
        for (index, part) in parts.iter().enumerate() {
            self.text.push_str(if index > 0 { "|" } else { "" });
            self.part(part)?;
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat) -> Result<(), &'static str> {
        // Java leaves a loop at an iteration that matches nothing.
        let loops = repeat.most.is_none_or(|most| most > 1);
        if repeat.mode == RepeatMode::Possessive {
            return Err("PostgreSQL has no possessive repetitions");
        }
        if loops && repeat.body.is_nullable() {
            return Err("PostgreSQL repeats what matches nothing differently");
        }
        if repeat.least > REPEATS || repeat.most.is_some_and(|most| most > REPEATS) {
            return Err("PostgreSQL repeats nothing more than 255 times");
        }
        if matches!(&repeat.body, Ast::Set(_)) {
            self.part(&repeat.body)?;
        } else {
            self.text.push_str("(?:");
            self.part(&repeat.body)?;
            self.text.push(')');
        }
        let _infallible = match (repeat.least, repeat.most) {
            (0, Some(1)) => write!(self.text, "?"),
            (0, None) => write!(self.text, "*"),
            (1, None) => write!(self.text, "+"),
            (least, None) => write!(self.text, "{{{least},}}"),
            (least, Some(most)) if least == most => write!(self.text, "{{{least}}}"),
            (least, Some(most)) => write!(self.text, "{{{least},{most}}}"),
        };
        Ok(())
    }

    fn assertion(&mut self, assertion: Assertion) -> Result<(), &'static str> {
        self.text.push_str(match assertion {
            Assertion::Start => "^",
            Assertion::End => "$",
            Assertion::BeforeFinal(Lines::All) => BEFORE_FINAL,
            Assertion::BeforeFinal(Lines::Unix) => r"(?:$|(?=\u000a$))",
            Assertion::LineStart(_) | Assertion::LineEnd(_) => {
                return Err("PostgreSQL has other lines than `(?m)`");
            }
            Assertion::WordBoundary { .. } | Assertion::GraphemeBoundary => {
                return Err(r"PostgreSQL has other words than `\b`");
            }
        });
        Ok(())
    }

    fn look(&mut self, look: &Look) -> Result<(), &'static str> {
        self.text.push_str(match (look.direction, look.negative) {
            (Direction::Ahead, false) => "(?=",
            (Direction::Ahead, true) => "(?!",
            (Direction::Behind { .. }, false) => "(?<=",
            (Direction::Behind { .. }, true) => "(?<!",
        });
        if let Direction::Behind { least, most } = look.direction {
            let mut plain = least >= 0 && most >= least;
            look.body.walk(&mut |part| {
                plain &= !matches!(part, Ast::Look(_) | Ast::Assert(_));
            });
            if !plain {
                return Err("PostgreSQL looks behind differently");
            }
        }
        self.part(&look.body)?;
        self.text.push(')');
        Ok(())
    }

    fn set(&mut self, set: &CodeSet) -> Result<(), &'static str> {
        if *set == CodeSet::all() {
            self.text.push('.');
            return Ok(());
        }
        if let Some(character) = set.only()
            && character != '\0'
        {
            self.character(character);
            return Ok(());
        }
        let complement = set.negate();
        let is_shorter = complement.ranges().len() <= set.ranges().len()
            && set.contains(u32::from(char::MAX))
            && complement.ranges() != [(0, 0)];
        self.text.push_str(if is_shorter { "[^" } else { "[" });
        let written = if is_shorter { &complement } else { set };
        if written.ranges().len() > RANGES {
            return Err("one of its classes is too large for PostgreSQL");
        }
        let mut empty = true;
        for (first, last) in written.ranges() {
            // Neither U+0000 nor surrogates are in a text of PostgreSQL.
            let pieces = [((*first).max(1), (*last).min(0xd7ff)), ((*first).max(0xe000), *last)];
            for (first, last) in pieces.into_iter().filter(|(first, last)| first <= last) {
                let (Some(first), Some(last)) = (char::from_u32(first), char::from_u32(last))
                else {
                    continue;
                };
                empty = false;
                self.character(first);
                if first < last {
                    let is_pair = u32::from(first) + 1 == u32::from(last);
                    self.text.push_str(if is_pair { "" } else { "-" });
                    self.character(last);
                }
            }
        }
        self.text.push(']');
        if empty { Err("one of its classes has no character of PostgreSQL") } else { Ok(()) }
    }

    fn character(&mut self, character: char) {
        let _infallible = match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | ' ' | '_' | '/' | ':' | ',' | '@' | '%' => {
                write!(self.text, "{character}")
            }
            '!'..='~' => write!(self.text, r"\{character}"),
            '\u{10000}'.. => write!(self.text, r"\U{:08x}", u32::from(character)),
            _ if character.is_alphabetic() => write!(self.text, "{character}"),
            _ => write!(self.text, r"\u{:04x}", u32::from(character)),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::java_regex::Pattern;
    use crate::table::each_row;

    #[test]
    fn patterns_are_written_for_postgresql() {
        let rows = [
            ("", Ok("(?:)")),
            ("^web", Ok("^web")),
            (r"a.b", Ok(r"a[^\u000a\u000d\u0085\u2028\u2029]b")),
            (r"(?s).", Ok(".")),
            (
                r"^db-?\d{2,3}\.example$",
                Ok(
                    "^db\\-?[0-9]{2,3}\\.example(?:$|(?=(?:\\u000d\\u000a|[\\u000d\\u0085\\u2028\\u2029])$)|(?<!\\u000d)(?=\\u000a$))",
                ),
            ),
            (r"^(a|bc)+?\z", Ok("^(?:(?:a|bc))+$")),
            (r"(?i)ab", Ok("[Aa][Bb]")),
            (r"[\w.-]", Ok(r"[\-\.0-9A-Z_a-z]")),
            ("a|é|😀", Ok(r"a|é|\U0001f600")),
            ("(?!a)b(?<=b)", Ok("(?!a)b(?<=b)")),
            (r"\x01*", Ok(r"\u0001*")),
            (r"\bweb", Err(r"PostgreSQL has other words than `\b`")),
            ("(?m)^a", Err("PostgreSQL has other lines than `(?m)`")),
            ("(a)\\1", Err("PostgreSQL reads references to groups differently")),
            ("a++", Err("PostgreSQL has no possessive repetitions")),
            ("(?>a)b", Err("PostgreSQL has no atomic groups")),
            ("(a?)*", Err("PostgreSQL repeats what matches nothing differently")),
            ("a{256}", Err("PostgreSQL repeats nothing more than 255 times")),
            (r"\p{L}", Err("one of its classes is too large for PostgreSQL")),
            (r"\x00", Err("one of its classes has no character of PostgreSQL")),
        ];
        each_row(rows, |(java, postgres)| {
            let written = Pattern::parse(java).unwrap().to_postgres();
            assert_eq!(written.as_deref().map_err(|it| *it), postgres, "{java}");
        });
    }
}
