//! The syntax of `java.util.regex.Pattern`, Java 17.

mod class;
mod escape;
mod group;
mod property;
mod source;
mod study;

use super::PatternError;
use super::ast::{Assertion, Ast, Case, Lines, Repeat, RepeatMode};
use super::fold;
use super::set::CodeSet;
use source::{PatternSource, PatternToken};
use study::QuantifierCount;

pub(super) use property::{unicode, word};

/// The longest pattern, in bytes.
const LENGTH_LIMIT: usize = 8192;

/// How deep groups and classes may be nested.
const DEPTH_LIMIT: usize = 250;

/// The most repetitions that Java counts.
const MOST: u32 = 0x7fff_ffff;

/// A pattern that has been read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) ast: Ast,
    /// How many captures there are, the whole match not counted.
    pub(super) captures: u32,
}

/// The flags in force, as the letters that set them.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the syntax and none excludes another"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    /// `i`
    case_insensitive: bool,
    /// `m`
    multiline: bool,
    /// `s`
    dot_all: bool,
    /// `d`
    unix_lines: bool,
    /// `u`
    unicode_case: bool,
    /// `x`
    comments: bool,
    /// `U`
    unicode_classes: bool,
}

impl Flags {
    fn lines(self) -> Lines {
        if self.unix_lines { Lines::Unix } else { Lines::All }
    }

    fn case(self) -> Case {
        match (self.case_insensitive, self.unicode_case) {
            (false, _) => Case::Exact,
            (true, false) => Case::Ascii,
            (true, true) => Case::Unicode,
        }
    }

    /// Returns what a single character stands for.
    fn single(self, code: u32) -> CodeSet {
        match self.case() {
            Case::Exact => CodeSet::of(code),
            Case::Ascii => fold::ascii_range(code, code),
            Case::Unicode => fold::unicode_single(code),
        }
    }

    /// Returns what a range of characters stands for.
    fn range(self, first: u32, last: u32) -> CodeSet {
        match self.case() {
            Case::Exact => CodeSet::range(first, last),
            Case::Ascii => fold::ascii_range(first, last),
            Case::Unicode => fold::unicode_range(first, last),
        }
    }
}

/// Reads a pattern.
///
/// # Errors
///
/// Returns what Java would say of it, or what of it is refused.
pub(super) fn parse(text: &str) -> Result<Parsed, PatternError> {
    if text.len() > LENGTH_LIMIT {
        let message = format!("the pattern has {} bytes, {LENGTH_LIMIT} are allowed", text.len());
        return Err(PatternError { message, offset: 0 });
    }
    let mut parser = Parser {
        source: PatternSource::new(text),
        flags: Flags::default(),
        captures: 0,
        names: Vec::new(),
        depth: 0,
    };
    let ast = parser.alternatives()?;
    match parser.peek() {
        None => Ok(Parsed { ast, captures: parser.captures }),
        // Nothing but this ends the alternatives before the end.
        Some(_) => Err(parser.error_here("unmatched closing `)`")),
    }
}

struct Parser {
    source: PatternSource,
    flags: Flags,
    captures: u32,
    names: Vec<(String, u32)>,
    depth: usize,
}

type Parsing<T> = Result<T, PatternError>;

impl Parser {
    fn error_at(&self, at: usize, message: impl Into<String>) -> PatternError {
        PatternError { message: message.into(), offset: self.source.offset(at) }
    }

    fn error_here(&self, message: impl Into<String>) -> PatternError {
        self.error_at(self.source.at, message)
    }

    /// Returns the next token; with `x`, blanks and comments before it are skipped.
    fn peek(&mut self) -> Option<PatternToken> {
        if self.flags.comments {
            self.source.skip_comments(self.flags.unix_lines);
        }
        self.source.peek()
    }

    /// Takes the next token.
    fn read(&mut self) -> Option<PatternToken> {
        let token = self.peek()?;
        self.source.at += 1;
        Some(token)
    }

    /// Returns the next token if it is this character, unquoted.
    fn peek_is(&mut self, wanted: char) -> bool {
        self.peek() == Some(PatternToken::Plain(wanted))
    }

    fn take(&mut self, wanted: char) -> bool {
        let taken = self.peek_is(wanted);
        self.source.at += usize::from(taken);
        taken
    }

    fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parsing<T>) -> Parsing<T> {
        if self.depth >= DEPTH_LIMIT {
            return Err(
                self.error_here(format!("groups and classes are nested over {DEPTH_LIMIT} deep"))
            );
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn alternatives(&mut self) -> Parsing<Ast> {
        let mut parts = vec![self.sequence()?];
        while self.take('|') {
            parts.push(self.sequence()?);
        }
        Ok(if parts.len() > 1 { Ast::Choice(parts) } else { parts.remove(0) })
    }

    fn sequence(&mut self) -> Parsing<Ast> {
        let mut parts = Vec::new();
        while let Some(token) = self.peek() {
            if matches!(token, PatternToken::Plain('|' | ')')) {
                break;
            }
            if let Some(atom) = self.atom(token)? {
                // Look-around and atomic groups are atoms to a quantifier.
                let is_group = token == PatternToken::Plain('(')
                    && !matches!(atom, Ast::Look(_) | Ast::Atomic(_));
                parts.push(self.quantified(atom, is_group)?);
            }
        }
        Ok(match parts.len() {
            0 => Ast::Empty,
            1 => parts.remove(0),
            _ => Ast::Sequence(parts),
        })
    }

    /// Reads what a quantifier can follow; `None` are flags alone.
    fn atom(&mut self, token: PatternToken) -> Parsing<Option<Ast>> {
        let at = self.source.at;
        let PatternToken::Plain(character) = token else {
            self.source.at += 1;
            return Ok(Some(self.literal(token.code())));
        };
        Ok(Some(match character {
            '(' => return self.deeper(Self::group),
            '[' => {
                self.source.at += 1;
                let set = self.deeper(|it| it.class(at))?;
                Ast::Set(set)
            }
            '\\' => self.escaped_atom()?,
            '^' => {
                self.source.at += 1;
                Ast::Assert(match self.flags.multiline {
                    true => Assertion::LineStart(self.flags.lines()),
                    false => Assertion::Start,
                })
            }
            '$' => {
                self.source.at += 1;
                Ast::Assert(match self.flags.multiline {
                    true => Assertion::LineEnd(self.flags.lines()),
                    false => Assertion::BeforeFinal(self.flags.lines()),
                })
            }
            '.' => {
                self.source.at += 1;
                Ast::Set(self.dot())
            }
            '?' | '*' | '+' => {
                return Err(self.error_at(at, format!("dangling meta character `{character}`")));
            }
            // A count without anything before it repeats nothing.
            '{' => Ast::Empty,
            _ => {
                self.source.at += 1;
                self.literal(u32::from(character))
            }
        }))
    }

    fn literal(&self, code: u32) -> Ast {
        Ast::Set(self.flags.single(code))
    }

    fn dot(&self) -> CodeSet {
        if self.flags.dot_all {
            CodeSet::all()
        } else if self.flags.unix_lines {
            CodeSet::of(0x0a).negate()
        } else {
            CodeSet::of_ranges([(0x0a, 0x0a), (0x0d, 0x0d), (0x85, 0x85), (0x2028, 0x2029)])
                .negate()
        }
    }

    /// Reads the quantifier of an atom, if it has one.
    fn quantified(&mut self, atom: Ast, is_group: bool) -> Parsing<Ast> {
        let Some(PatternToken::Plain(character)) = self.peek() else { return Ok(atom) };
        let counts = match character {
            '?' => QuantifierCount::Optional,
            '*' => QuantifierCount::AtLeast(0),
            '+' => QuantifierCount::AtLeast(1),
            '{' => {
                let counts = self.counts()?;
                return Ok(self.repeated(atom, counts, is_group));
            }
            _ => return Ok(atom),
        };
        self.source.at += 1;
        Ok(self.repeated(atom, counts, is_group))
    }

    fn repeated(&mut self, body: Ast, counts: QuantifierCount, is_group: bool) -> Ast {
        let mode = if self.take('?') {
            RepeatMode::Lazy
        } else if self.take('+') {
            RepeatMode::Possessive
        } else {
            RepeatMode::Greedy
        };
        let looping = study::looping(&body, &counts, mode, is_group);
        let (least, most) = match counts {
            QuantifierCount::Optional => (0, Some(1)),
            QuantifierCount::AtLeast(least) => (least, None),
            QuantifierCount::Between(least, most) => (least, Some(most).filter(|it| *it < MOST)),
        };
        Ast::Repeat(Box::new(Repeat { body, least, most, mode, looping }))
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`; with `x`, blanks may follow a digit or the comma.
    fn counts(&mut self) -> Parsing<QuantifierCount> {
        let at = self.source.at;
        self.source.at += 1;
        if !matches!(self.source.peek(), Some(PatternToken::Plain('0'..='9'))) {
            return Err(self.error_at(at, "illegal repetition"));
        }
        let least = self.count(at)?;
        let mut counts = QuantifierCount::Between(least, least);
        if self.take(',') {
            counts = match self.peek() {
                Some(PatternToken::Plain('}')) => QuantifierCount::AtLeast(least),
                _ => QuantifierCount::Between(least, self.count(at)?),
            };
        }
        if !self.take('}') {
            return Err(self.error_here("unclosed counted closure"));
        }
        match counts {
            QuantifierCount::Between(least, most) if most < least => {
                Err(self.error_at(at, "illegal repetition range"))
            }
            QuantifierCount::Between(0, 1) => Ok(QuantifierCount::Optional),
            counts => Ok(counts),
        }
    }

    fn count(&mut self, start: usize) -> Parsing<u32> {
        let mut count = 0_u32;
        while let Some(PatternToken::Plain(digit @ '0'..='9')) = self.peek() {
            let value = u32::from(digit) - u32::from('0');
            count = count
                .checked_mul(10)
                .and_then(|it| it.checked_add(value))
                .filter(|it| *it <= MOST)
                .ok_or_else(|| self.error_at(start, "illegal repetition range"))?;
            self.source.at += 1;
        }
        Ok(count)
    }
}
