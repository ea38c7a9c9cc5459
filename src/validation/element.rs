//! Where the parts of a rule are written.

use crate::document::{Node, Position, Span};

/// Returns the element that a path of indexes leads to.
pub(super) fn element<'n>(node: &'n Node, path: &[usize]) -> &'n Node {
    path.iter().fold(node, |node, index| node.elements().get(*index).unwrap_or(node))
}

/// Returns the place of some characters of a string in the text of its file, if each of its characters stands for
/// itself; else the place of the whole string.
pub(super) fn part_of(node: &Node, file: &[u8], from: usize, to: usize) -> Span {
    TextParts::of(node, file).span(from, to)
}

/// The places of parts of one string. Parts that are asked for in order take one pass over the string.
pub(super) struct TextParts<'n> {
    whole: Span,
    /// How many characters stand between the beginning of the string and its text; none if its characters do not
    /// stand for themselves.
    inset: Option<usize>,
    text: &'n str,
    length: usize,
    /// The characters before the part that was asked for last, and their bytes.
    before: (usize, usize),
    /// Where each character stands, and the end, of a string on several lines; empty if they do not stand for themselves.
    of_lines: Vec<Position>,
}

impl<'n> TextParts<'n> {
    /// Finds the characters of a string in the text of its file, which is needed only for one on several lines.
    pub(super) fn of(node: &'n Node, file: &[u8]) -> Self {
        let Span { start, end } = node.span;
        let text = node.as_str().unwrap_or_default();
        let length = text.chars().count();
        let written = end.column.saturating_sub(start.column) as usize;
        let inset = match written.checked_sub(length) {
            Some(0) => Some(0),
            Some(2) => Some(1),
            _ => None,
        };
        let inset = inset.filter(|_| start.line == end.line);
        let written = file.get(start.offset as usize..end.offset as usize);
        let written = written.filter(|_| start.line < end.line);
        let of_lines = written.and_then(|it| positions(text, it, start)).unwrap_or_default();
        Self { whole: node.span, inset, text, length, before: (0, 0), of_lines }
    }

    /// Returns the place of some characters, or that of the string.
    pub(super) fn span(&mut self, from: usize, to: usize) -> Span {
        if let (Some(start), Some(end)) =
            (self.of_lines.get(from), self.of_lines.get(to.min(self.length)))
        {
            return Span { start: *start, end: *end };
        }
        let Some(inset) = self.inset.filter(|_| from <= self.length) else { return self.whole };
        let (first, first_byte) = self.before(from);
        self.before = (first, first_byte);
        let (last, last_byte) = self.before(to.min(self.length));
        let start = self.whole.start;
        let shift = |characters: usize, bytes: usize| {
            let number = |it: usize| u32::try_from(it + inset).unwrap_or_default();
            Position {
                offset: start.offset + number(bytes),
                line: start.line,
                column: start.column + number(characters),
            }
        };
        Span { start: shift(first, first_byte), end: shift(last, last_byte) }
    }

    /// Returns so many characters with the bytes that they have, counted on from the last part.
    fn before(&self, characters: usize) -> (usize, usize) {
        let (known, bytes) = if self.before.0 <= characters { self.before } else { (0, 0) };
        let rest = self.text.get(bytes..).unwrap_or_default().chars();
        let more: usize = rest.take(characters - known).map(char::len_utf8).sum();
        (characters, bytes + more)
    }
}

/// Returns where the characters of a string on several lines are written, and where it ends; `None` if one of them is not
/// written as itself. Blanks and line breaks may be others: those of an indentation have none in the string, and a folded
/// line break is a blank in it.
fn positions(text: &str, written: &[u8], start: Position) -> Option<Vec<Position>> {
    let mut written = WrittenRest { rest: std::str::from_utf8(written).ok()?, at: start };
    match written.rest.chars().next()? {
        // The text of a block begins on the next line.
        '|' | '>' => while written.step()? != '\n' {},
        '"' | '\'' => {
            written.step()?;
        }
        _ => {}
    }
    let mut found = Vec::with_capacity(text.len() + 1);
    for character in text.chars() {
        let is_blank = is_blank(character);
        while !is_blank && written.rest.starts_with(self::is_blank) {
            written.step()?;
        }
        found.push(written.at);
        if is_blank {
            written.rest.starts_with(self::is_blank).then(|| written.step());
        } else if written.step()? != character {
            return None;
        }
    }
    found.push(written.at);
    Some(found)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// The rest of a file, and where it begins.
struct WrittenRest<'f> {
    rest: &'f str,
    at: Position,
}

impl WrittenRest<'_> {
    /// Goes on behind the next character, and returns it.
    fn step(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        self.at.offset += u32::try_from(character.len_utf8()).unwrap_or_default();
        match character {
            '\n' => (self.at.line, self.at.column) = (self.at.line + 1, 1),
            _ => self.at.column += 1,
        }
        Some(character)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Limits, read};

    /// Returns what of the file is at each place of a word of the rule, with line and column.
    fn places(file: &str, word: &str) -> Vec<(String, u32, u32)> {
        let documents = read(file.as_bytes(), &Limits::DEFAULT).documents;
        let rule = documents[0].get("rule").unwrap();
        let text = rule.as_str().unwrap();
        let mut found = Vec::new();
        for (byte, _) in text.match_indices(word) {
            let from = text.get(..byte).unwrap().chars().count();
            let span = part_of(rule, file.as_bytes(), from, from + word.chars().count());
            let written = file.get(span.start.offset as usize..span.end.offset as usize);
            found.push((written.unwrap().to_owned(), span.start.line, span.start.column));
        }
        found
    }

    #[test]
    fn words_are_found_in_every_style() {
        let rows: [(&str, u32, u32); 9] = [
            ("rule: ä = b and WÖRT\n", 1, 17),
            ("rule: 'ä = b and WÖRT'\n", 1, 18),
            ("# é\nrule: |\n  ä = b and\n  ü = WÖRT\n", 4, 7),
            ("rule: |2-\n\n    ä = b and\n\n   ü = WÖRT\nname: a\n", 5, 8),
            ("rule: | # é\r\n  ä = b and\r\n  ü = WÖRT\r\n", 3, 7),
            ("rule: >\n  ä = b and\n  ü = WÖRT\n\n", 3, 7),
            ("rule: ä = b and\n  ü = WÖRT or\n  x = y\n", 2, 7),
            ("rule: 'ä = b and\n\n  ü = WÖRT'\n", 3, 7),
            ("rule: \"ä = b and\n  ü = WÖRT\"\n", 2, 7),
        ];
        for (file, line, column) in rows {
            assert_eq!(places(file, "WÖRT"), [("WÖRT".to_owned(), line, column)], "{file}");
        }
    }

    #[test]
    fn where_a_character_does_not_stand_for_itself_the_whole_string_is_meant() {
        for file in ["rule: \"\\x61 =\n  WORT\"\n", "rule: 'it''s =\n  WORT'\n"] {
            let [(written, line, column)] = places(file, "WORT").try_into().unwrap();
            assert!(written.ends_with('\'') || written.ends_with('"'), "{written}");
            assert_eq!((line, column), (1, 7), "{file}");
        }
    }
}
