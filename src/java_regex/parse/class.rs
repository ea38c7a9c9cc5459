//! Character classes: `[a-z&&[^aeiou]]`.

use super::escape::Escape;
use super::source::PatternToken;
use super::{Parser, Parsing};
use crate::java_regex::set::CodeSet;

impl Parser {
    /// Reads a class after its `[`, which stands at `opened`.
    pub(super) fn class(&mut self, opened: usize) -> Parsing<CodeSet> {
        // With `x`, a blank before the `^` makes it a character.
        let negative = self.source.peek() == Some(PatternToken::Plain('^'));
        self.source.at += usize::from(negative);
        let set = self.class_items(opened, ClassPart::Whole)?;
        self.source.at += 1;
        Ok(if negative { set.negate() } else { set })
    }

    /// Reads the items of a class up to its `]`, which is left.
    fn class_items(&mut self, opened: usize, part: ClassPart) -> Parsing<CodeSet> {
        let mut set: Option<CodeSet> = None;
        loop {
            let at = self.source.at;
            let Some(token) = self.peek() else {
                return Err(self.error_at(opened, "unclosed character class"));
            };
            let item = match token {
                PatternToken::Plain('[') => {
                    let inner = self.source.at;
                    self.source.at += 1;
                    self.deeper(|it| it.class(inner))?
                }
                PatternToken::Plain('&') if self.ampersands() => {
                    self.source.at += 1;
                    self.take('&');
                    let right = self.intersected(opened)?;
                    let left = match (set, right) {
                        (Some(left), Some(right)) => left.intersect(&right),
                        (None, Some(right)) => right,
                        (_, None) => {
                            return Err(
                                self.error_at(at, "bad class syntax: nothing stands behind `&&`")
                            );
                        }
                    };
                    set = Some(left);
                    continue;
                }
                PatternToken::Plain(']') => match set {
                    Some(set) => return Ok(set),
                    // The first is a character, but not of an operand.
                    None if part == ClassPart::Operand => return Ok(CodeSet::default()),
                    None => self.class_item()?,
                },
                _ => self.class_item()?,
            };
            set = Some(match set {
                Some(set) => set.union(&item),
                None => item,
            });
        }
    }

    fn ampersands(&mut self) -> bool {
        let at = self.source.at;
        self.source.at += 1;
        let second = self.peek_is('&');
        self.source.at = at;
        second
    }

    /// Reads what stands behind `&&`, up to the next `&&` or the end of the class.
    fn intersected(&mut self, opened: usize) -> Parsing<Option<CodeSet>> {
        let mut right: Option<CodeSet> = None;
        loop {
            let item = match self.peek() {
                None => return Err(self.error_at(opened, "unclosed character class")),
                Some(PatternToken::Plain(']' | '&')) => return Ok(right),
                Some(PatternToken::Plain('[')) => {
                    let inner = self.source.at;
                    self.source.at += 1;
                    self.deeper(|it| it.class(inner))?
                }
                Some(_) => self.deeper(|it| it.class_items(opened, ClassPart::Operand))?,
            };
            right = Some(match right {
                Some(right) => right.union(&item),
                None => item,
            });
        }
    }

    /// Reads a character, a range or a predefined class.
    fn class_item(&mut self) -> Parsing<CodeSet> {
        let at = self.source.at;
        let first = match self.source.next() {
            None => return Err(self.error_at(at, "unclosed character class")),
            Some(PatternToken::Plain('\\')) => match self.escape_in_class()? {
                Escape::Character(code) => code,
                Escape::Set(set) => return Ok(set),
                Escape::Part(_) => {
                    return Err(self.error_at(at, "illegal/unsupported escape sequence"));
                }
            },
            Some(token) => token.code(),
        };
        if self.peek_is('-') {
            let dash = self.source.at;
            match self.source.peek_at(1) {
                Some(PatternToken::Plain('[' | ']')) => {}
                _ => {
                    self.source.at += 1;
                    let end = self.peek();
                    let last = match end {
                        None => return Err(self.error_at(dash, "illegal character range")),
                        Some(PatternToken::Plain('\\')) => {
                            self.source.at += 1;
                            match self.escape_as_range_end()? {
                                Escape::Character(code) => code,
                                _ => return Err(self.error_at(dash, "illegal character range")),
                            }
                        }
                        Some(token) => {
                            self.source.at += 1;
                            token.code()
                        }
                    };
                    if last < first {
                        return Err(self.error_at(dash, "illegal character range"));
                    }
                    return Ok(self.flags.range(first, last));
                }
            }
        }
        Ok(self.flags.single(first))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClassPart {
    Whole,
    Operand,
}
