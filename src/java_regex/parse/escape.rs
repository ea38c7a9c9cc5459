//! Escapes.

use super::source::PatternToken;
use super::{Parser, Parsing};
use crate::java_regex::ast::{Assertion, Ast, Reference};
use crate::java_regex::set::{CodeSet, vertical};

/// What an escape stands for.
pub(super) enum Escape {
    /// A character.
    Character(u32),
    /// A set of characters.
    Set(CodeSet),
    /// Something else.
    Part(Ast),
}

const UNSUPPORTED: &str = "illegal/unsupported escape sequence";

/// Where an escape stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapeContext {
    Pattern,
    Class,
    RangeStart,
    RangeEnd,
}

impl Parser {
    /// Reads an escape outside of classes, from its backslash on.
    pub(super) fn escaped_atom(&mut self) -> Parsing<Ast> {
        self.source.at += 1;
        Ok(match self.escape(EscapeContext::Pattern)? {
            Escape::Character(code) => self.literal(code),
            Escape::Set(set) => Ast::Set(set),
            Escape::Part(part) => part,
        })
    }

    /// Reads an escape in a class, after its backslash.
    pub(super) fn escape_in_class(&mut self) -> Parsing<Escape> {
        let starts_range = self.source.peek_at(1) == Some(PatternToken::Plain('-'));
        self.escape(if starts_range { EscapeContext::RangeStart } else { EscapeContext::Class })
    }

    /// Reads an escape behind the dash of a range, after its backslash.
    pub(super) fn escape_as_range_end(&mut self) -> Parsing<Escape> {
        self.escape(EscapeContext::RangeEnd)
    }

    fn escape(&mut self, place: EscapeContext) -> Parsing<Escape> {
        let at = self.source.at.saturating_sub(1);
        let in_class = place != EscapeContext::Pattern;
        let character = match self.source.next() {
            None => return Err(self.error_at(at, "unexpected end of the pattern behind `\\`")),
            Some(PatternToken::Quoted(_)) => return Err(self.error_at(at, UNSUPPORTED)),
            Some(PatternToken::Plain(character)) => character,
        };
        let unicode = self.flags.unicode_classes;
        let part = |part: Assertion| Escape::Part(Ast::Assert(part));
        let set =
            |set: CodeSet, negative: bool| Escape::Set(if negative { set.negate() } else { set });
        Ok(match character {
            '0' => Escape::Character(self.octal(at)?),
            '1'..='9' if !in_class => Escape::Part(self.numbered_reference(character)),
            'A' if !in_class => part(Assertion::Start),
            'G' if !in_class => part(Assertion::Start),
            'z' if !in_class => part(Assertion::End),
            'Z' if !in_class => part(Assertion::BeforeFinal(self.flags.lines())),
            'b' if !in_class => self.boundary(at)?,
            'B' if !in_class => part(Assertion::WordBoundary { negative: true, unicode }),
            'R' if !in_class => Escape::Part(Ast::LineBreak),
            'X' if !in_class => Escape::Part(Ast::Grapheme),
            'k' if !in_class => Escape::Part(self.named_reference(at)?),
            'd' | 'D' => set(self.digits(), character == 'D'),
            'w' | 'W' => set(self.word(), character == 'W'),
            's' | 'S' => set(self.blanks(), character == 'S'),
            'h' | 'H' => set(horizontal(), character == 'H'),
            'v' if matches!(place, EscapeContext::RangeStart | EscapeContext::RangeEnd) => {
                Escape::Character(0x0b)
            }
            'v' | 'V' => set(vertical(), character == 'V'),
            'p' | 'P' => Escape::Set(self.property(character == 'P', at)?),
            'N' => {
                return Err(
                    self.error_at(at, "`\\N{…}` is not supported: write the character itself")
                );
            }
            'a' => Escape::Character(0x07),
            'e' => Escape::Character(0x1b),
            'f' => Escape::Character(0x0c),
            'n' => Escape::Character(0x0a),
            'r' => Escape::Character(0x0d),
            't' => Escape::Character(0x09),
            'c' => match self.read() {
                Some(token) => Escape::Character(control(token, self, at)?),
                None => return Err(self.error_at(at, "illegal control escape sequence")),
            },
            'u' => Escape::Character(self.utf16(at)?),
            'x' => Escape::Character(self.hexadecimal(at)?),
            it if it.is_ascii_alphanumeric() => return Err(self.error_at(at, UNSUPPORTED)),
            it => Escape::Character(u32::from(it)),
        })
    }

    fn boundary(&mut self, at: usize) -> Parsing<Escape> {
        let unicode = self.flags.unicode_classes;
        if self.peek_is('{') {
            let cluster = self.source.peek_at(1) == Some(PatternToken::Plain('g'));
            if !cluster {
                // What stands here is a quantifier, or the fault of one.
                return Ok(Escape::Part(Ast::Assert(Assertion::WordBoundary {
                    negative: false,
                    unicode,
                })));
            }
            if self.source.peek_at(2) != Some(PatternToken::Plain('}')) {
                return Err(self.error_at(at, UNSUPPORTED));
            }
            self.source.at += 3;
            return Ok(Escape::Part(Ast::Assert(Assertion::GraphemeBoundary)));
        }
        Ok(Escape::Part(Ast::Assert(Assertion::WordBoundary { negative: false, unicode })))
    }

    /// Reads the number of a capture: as many digits as make one that stands before.
    fn numbered_reference(&mut self, first: char) -> Ast {
        let value = |digit: char| u32::from(digit) - u32::from('0');
        let mut group = value(first);
        while let Some(PatternToken::Plain(digit @ '0'..='9')) = self.peek() {
            let longer = group.saturating_mul(10).saturating_add(value(digit));
            if longer > self.captures {
                break;
            }
            group = longer;
            self.source.at += 1;
        }
        Ast::Reference(Reference { group, case: self.flags.case() })
    }

    fn named_reference(&mut self, at: usize) -> Parsing<Ast> {
        if self.read() != Some(PatternToken::Plain('<')) {
            return Err(
                self.error_at(at, "`\\k` is not followed by `<` for a named capturing group")
            );
        }
        let name = self.group_name()?;
        let known = self.names.iter().find(|(known, _)| *known == name);
        match known {
            Some((_, group)) => {
                Ok(Ast::Reference(Reference { group: *group, case: self.flags.case() }))
            }
            None => {
                Err(self.error_at(at, format!("named capturing group `{name}` does not exist")))
            }
        }
    }

    /// Reads `n`, `nn` or `mnn` of `\0mnn`, where m is at the most 3.
    fn octal(&mut self, at: usize) -> Parsing<u32> {
        let digit = |token: Option<PatternToken>| match token {
            Some(PatternToken::Plain(digit @ '0'..='7')) => Some(u32::from(digit) - u32::from('0')),
            _ => None,
        };
        let Some(first) = digit(self.peek()) else {
            return Err(self.error_at(at, "illegal octal escape sequence"));
        };
        self.source.at += 1;
        let Some(second) = digit(self.peek()) else { return Ok(first) };
        self.source.at += 1;
        match digit(self.peek()) {
            Some(third) if first <= 3 => {
                self.source.at += 1;
                Ok(first * 64 + second * 8 + third)
            }
            _ => Ok(first * 8 + second),
        }
    }

    fn hex_digit(&mut self) -> Option<u32> {
        let Some(PatternToken::Plain(digit)) = self.peek() else { return None };
        let value = digit.to_digit(16)?;
        self.source.at += 1;
        Some(value)
    }

    fn hexadecimal(&mut self, at: usize) -> Parsing<u32> {
        if self.peek_is('{') {
            self.source.at += 1;
            let mut code = 0_u32;
            let mut digits = 0;
            while let Some(digit) = self.hex_digit() {
                code = code * 16 + digit;
                digits += 1;
                if code > 0x0010_ffff {
                    return Err(self.error_at(at, "hexadecimal code point is too large"));
                }
            }
            if digits == 0 || self.read() != Some(PatternToken::Plain('}')) {
                return Err(self.error_at(at, "unclosed hexadecimal escape sequence"));
            }
            return Ok(code);
        }
        match (self.hex_digit(), self.hex_digit()) {
            (Some(high), Some(low)) => Ok(high * 16 + low),
            _ => Err(self.error_at(at, "illegal hexadecimal escape sequence")),
        }
    }

    /// Reads `\uXXXX`; two of them can make one character.
    fn utf16(&mut self, at: usize) -> Parsing<u32> {
        let high = self.utf16_unit(at)?;
        if (0xd800..0xdc00).contains(&high)
            && self.peek_is('\\')
            && self.source.peek_at(1) == Some(PatternToken::Plain('u'))
        {
            let back = self.source.at;
            self.source.at += 2;
            let low = self.utf16_unit(at)?;
            if (0xdc00..0xe000).contains(&low) {
                return Ok(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            self.source.at = back;
        }
        Ok(high)
    }

    fn utf16_unit(&mut self, at: usize) -> Parsing<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            match self.hex_digit() {
                Some(digit) => unit = unit * 16 + digit,
                None => return Err(self.error_at(at, "illegal Unicode escape sequence")),
            }
        }
        Ok(unit)
    }
}

/// Returns the character of `\cX`: X with a bit turned over.
fn control(token: PatternToken, parser: &Parser, at: usize) -> Parsing<u32> {
    match token {
        PatternToken::Plain(character) => Ok(u32::from(character) ^ 64),
        PatternToken::Quoted(_) => {
            // What is quoted begins with a backslash, so that is X.
            Err(parser.error_at(at, "illegal control escape sequence before a quote"))
        }
    }
}

fn horizontal() -> CodeSet {
    CodeSet::of_ranges([
        (0x09, 0x09),
        (0x20, 0x20),
        (0xa0, 0xa0),
        (0x1680, 0x1680),
        (0x180e, 0x180e),
        (0x2000, 0x200a),
        (0x202f, 0x202f),
        (0x205f, 0x205f),
        (0x3000, 0x3000),
    ])
}
