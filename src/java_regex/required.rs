//! What a subject must contain for a pattern to be found in it.

use wide::u8x16;

use super::ast::Ast;
use super::backtrack;
use super::program::{Instruction, Program};
use super::set::CodeSet;
use super::translate::{self, translate};

/// What must be in a subject for a pattern to be found in it.
///
/// It only says so of patterns and subjects for which asking the pattern itself cannot fail: what
/// lacks the texts is then not merely unlikely to match, the answer is known to be no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    /// Of each of these sets of texts, at least one is in the subject.
    pub texts: Box<[Box<[Box<str>]>]>,
    /// The subjects of which this is known.
    pub of: KnownSubjects,
}

impl Required {
    /// Returns whether the pattern is known not to be found in a subject, which is of this kind.
    pub(super) fn is_missing_in(&self, subject: &str, kind: SubjectKind) -> bool {
        let is_known = match self.of {
            KnownSubjects::Lines => kind >= SubjectKind::Line,
            KnownSubjects::AsciiLines => kind == SubjectKind::AsciiLine,
            KnownSubjects::Short => subject.len() <= SHORT,
        };
        let is_absent = |set: &[Box<str>]| !set.iter().any(|text| subject.contains(&**text));
        is_known && self.texts.iter().any(|set| is_absent(set))
    }
}

/// Subjects about which a pattern can be asked without failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownSubjects {
    /// Those of one line.
    Lines,
    /// Those of one line in ASCII.
    AsciiLines,
    /// Those of at the most [`SHORT`] bytes: no search in them takes more steps than are allowed.
    Short,
}

/// The most bytes of a short subject; no certname is longer.
pub const SHORT: usize = 255;

/// What sort of subject a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubjectKind {
    /// It is empty or has several lines: nothing is known of it without asking the pattern.
    Odd,
    /// One line.
    Line,
    /// One line in ASCII.
    AsciiLine,
}

impl SubjectKind {
    /// Returns the sort of a text.
    pub fn of(subject: &str) -> Self {
        let marks = ByteMarks::of(subject.as_bytes());
        if subject.is_empty() || marks.may_end_line() && subject.contains(backtrack::is_terminator)
        {
            Self::Odd
        } else if marks.is_ascii() {
            Self::AsciiLine
        } else {
            Self::Line
        }
    }
}

/// What the bytes of a subject say of it. All of them are read, sixteen at once, which is faster than to stop early.
#[derive(Default)]
struct ByteMarks {
    /// Which may begin what ends a line.
    line_ends: u8x16,
    /// The bits that any of them has.
    bits: u8x16,
}

impl ByteMarks {
    fn of(bytes: &[u8]) -> Self {
        let mut marks = Self::default();
        let (chunks, rest) = bytes.as_chunks();
        for chunk in chunks {
            marks.add(*chunk);
        }
        // Some are read twice rather than one by one.
        marks.add(bytes.last_chunk().copied().unwrap_or_else(|| {
            let mut chunk = [0; 16];
            chunk.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            chunk
        }));
        marks
    }

    #[inline]
    fn add(&mut self, chunk: [u8; 16]) {
        let bytes = u8x16::new(chunk);
        let is = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
        self.line_ends |= is(b'\n') | is(b'\r') | is(0xc2) | is(0xe2);
        self.bits |= bytes;
    }

    fn may_end_line(&self) -> bool {
        self.line_ends.to_bitmask() != 0
    }

    fn is_ascii(&self) -> bool {
        self.bits.to_bitmask() == 0
    }
}

/// The most ranges of code points, over all instructions, of a pattern that certainly fits into
/// the size that the matcher in linear time may have.
const RANGES: usize = 500;

/// The most texts of a set.
const TEXTS: usize = 32;

/// The most characters of a set that are told apart.
const CHARACTERS: u32 = 4;

/// Returns what a pattern requires, if it is one that can be asked without failing.
pub(super) fn required(ast: &Ast, program: &Program) -> Option<Required> {
    let of = subjects(ast, program)?;
    let texts = collect(ast);
    (!texts.is_empty()).then(|| Required {
        texts: texts
            .into_iter()
            .map(|set| set.into_iter().map(String::into_boxed_str).collect())
            .collect(),
        of,
    })
}

/// Returns the subjects about which a pattern can be asked without failing.
fn subjects(ast: &Ast, program: &Program) -> Option<KnownSubjects> {
    let ranges_of = |instruction: &Instruction| match instruction {
        Instruction::Set(set) => program.sets.get(*set as usize).map_or(0, |it| it.ranges().len()),
        _ => 0,
    };
    let ranges: usize = program.code.iter().map(ranges_of).sum();
    match translate(ast).filter(|_| ranges <= RANGES) {
        Some((_, translate::Subjects::OneLine)) => Some(KnownSubjects::Lines),
        Some((_, translate::Subjects::OneLineAscii)) => Some(KnownSubjects::AsciiLines),
        None => backtrack::always_ends(program, SHORT).then_some(KnownSubjects::Short),
    }
}

/// Returns sets of texts, of each of which one is in whatever the part matches.
fn collect(ast: &Ast) -> Vec<Vec<String>> {
    let mut run = PatternWalk::default();
    run.part(ast);
    run.end();
    run.found
}

/// A walk along a pattern.
struct PatternWalk {
    /// What the characters just before this place can be.
    here: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Default for PatternWalk {
    fn default() -> Self {
        Self { here: vec![String::new()], found: Vec::new() }
    }
}

impl PatternWalk {
    fn part(&mut self, ast: &Ast) {
        if let Some(only) = only_character(ast) {
            append(&mut self.here, only);
            return;
        }
        if let Some(texts) = exact(ast) {
            self.extend(&texts);
            return;
        }
        match ast {
            Ast::Sequence(parts) => parts.iter().for_each(|part| self.part(part)),
            Ast::Capture(_, body) | Ast::Atomic(body) => self.part(body),
            Ast::Repeat(repeat) if repeat.least > 0 => {
                // The first time follows what is here; then anything may come.
                self.part(&repeat.body);
                self.end();
            }
            Ast::Choice(parts) => {
                self.end();
                let best = |part: &Ast| collect(part).into_iter().max_by_key(|set| worth(set));
                let all: Option<Vec<Vec<String>>> = parts.iter().map(best).collect();
                if let Some(all) = all {
                    let mut union: Vec<String> = all.into_iter().flatten().collect();
                    union.sort_unstable();
                    union.dedup();
                    if union.len() <= TEXTS {
                        self.found.push(union);
                    }
                }
            }
            _ => self.end(),
        }
    }

    fn extend(&mut self, texts: &[String]) {
        if self.here.len() * texts.len() > TEXTS {
            self.end();
        }
        self.here = join(&self.here, texts);
    }

    /// Ends what is known of adjacent characters.
    fn end(&mut self) {
        let here = std::mem::replace(&mut self.here, vec![String::new()]);
        if here.iter().all(|text| !text.is_empty()) {
            self.found.push(here);
        }
    }
}

/// Returns how much a set of texts is worth: long ones are rare.
fn worth(set: &[String]) -> (usize, std::cmp::Reverse<usize>) {
    (set.iter().map(String::len).min().unwrap_or(0), std::cmp::Reverse(set.len()))
}

/// Returns every text that a part can match, if these are few.
///
/// What takes no characters counts as matching: too many texts are no fault.
fn exact(ast: &Ast) -> Option<Vec<String>> {
    let texts = match ast {
        Ast::Empty | Ast::Look(_) | Ast::Assert(_) => vec![String::new()],
        Ast::Set(set) => characters(set)?,
        Ast::Sequence(parts) => {
            parts.iter().try_fold(vec![String::new()], |mut before, part| {
                if let Some(only) = only_character(part) {
                    append(&mut before, only);
                    return Some(before);
                }
                let texts = exact(part)?;
                (before.len() * texts.len() <= TEXTS).then(|| join(&before, &texts))
            })?
        }
        Ast::Choice(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(exact(part)?);
                if all.len() > TEXTS {
                    return None;
                }
            }
            all
        }
        Ast::Capture(_, body) | Ast::Atomic(body) => exact(body)?,
        Ast::Repeat(repeat) if repeat.most == Some(1) && repeat.least == 0 => {
            let mut texts = exact(&repeat.body)?;
            texts.push(String::new());
            texts
        }
        Ast::Repeat(_) | Ast::Reference(_) | Ast::LineBreak | Ast::Grapheme => return None,
    };
    let mut texts = texts;
    texts.sort_unstable();
    texts.dedup();
    (texts.len() <= TEXTS).then_some(texts)
}

/// Returns the character that a part stands for, as most parts of most patterns do.
fn only_character(ast: &Ast) -> Option<char> {
    match ast {
        Ast::Set(set) => set.only(),
        _ => None,
    }
}

fn append(texts: &mut [String], character: char) {
    for text in texts {
        text.push(character);
    }
}

fn characters(set: &CodeSet) -> Option<Vec<String>> {
    let count: u32 =
        set.ranges().iter().map(|(first, last)| (last - first).saturating_add(1)).sum();
    if count > CHARACTERS {
        return None;
    }
    let codes = set.ranges().iter().flat_map(|(first, last)| *first..=*last);
    // Surrogates are in no subject.
    Some(codes.filter_map(char::from_u32).map(String::from).collect())
}

fn join(before: &[String], texts: &[String]) -> Vec<String> {
    before.iter().flat_map(|a| texts.iter().map(move |b| format!("{a}{b}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::*;

    #[test]
    fn the_kind_of_a_text_is_that_of_its_characters() {
        let line_ends = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];
        let kind = |text: &str| match text {
            text if text.chars().any(|it| line_ends.contains(&it)) => SubjectKind::Odd,
            text if text.is_ascii() => SubjectKind::AsciiLine,
            _ => SubjectKind::Line,
        };
        assert_eq!(SubjectKind::of(""), SubjectKind::Odd);
        let others = ['x', '\0', '\u{7f}', '\u{80}', '\u{a0}', 'é', 'ﾅ', '\u{2027}', '\u{10ffff}'];
        for length in 0..50 {
            for at in 0..=length {
                for inside in line_ends.into_iter().chain(others) {
                    let mut text = "x".repeat(length);
                    text.insert(at, inside);
                    assert_eq!(SubjectKind::of(&text), kind(&text), "{text:?}");
                }
            }
        }
    }

    fn texts(pattern: &str) -> Option<Vec<Vec<String>>> {
        let pattern = Pattern::parse(pattern).unwrap();
        let sets = pattern.required()?.texts.iter();
        Some(sets.map(|set| set.iter().map(ToString::to_string).collect()).collect())
    }

    #[test]
    fn literals_are_found_in_all_sorts_of_patterns() {
        for (pattern, expected) in [
            (r"^web-\d+\.dc1", vec![vec!["web-"], vec![".dc1"]]),
            ("^(web|db)[0-9]", vec![vec!["db", "web"]]),
            ("(?:web\\d|db)x", vec![vec!["db", "web"], vec!["x"]]),
            ("(?i)ab", vec![vec!["AB", "Ab", "aB", "ab"]]),
            ("colou?r$", vec![vec!["color", "colour"]]),
            ("a(?:bc)+d", vec![vec!["abc"], vec!["d"]]),
            (".*foo.*", vec![vec!["foo"]]),
            ("x{3}y", vec![vec!["x"], vec!["y"]]),
            ("^(?!db).*-7", vec![vec!["-7"]]),
        ] {
            let expected: Vec<Vec<String>> = expected
                .into_iter()
                .map(|set| set.into_iter().map(str::to_owned).collect())
                .collect();
            assert_eq!(texts(pattern), Some(expected), "{pattern}");
        }
        // Nothing is required, or asking may fail.
        for pattern in [".*", r"^\d+$", "(?:web)?", "web|", r"(a)web\1"] {
            assert_eq!(texts(pattern), None, "{pattern}");
        }
    }
}
