//! Properties: `\p{Lu}`, `\p{IsGreek}`, `\p{InCyrillic}`, `\p{javaLowerCase}`, and the classes that
//! flag `U` widens.

mod block;

use super::source::PatternToken;
use super::{Parser, Parsing};
use crate::java_regex::set::CodeSet;

/// A property with the characters to add to it, and those to take away.
type PropertyPatch = (&'static str, &'static [(u32, u32)], &'static [(u32, u32)]);

/// Characters that had another property in Unicode 13, found by comparing every property at every
/// code point with Java 17.
const SINCE_13: &[PropertyPatch] = &[
    (
        "Alphabetic",
        &[],
        &[(0x363, 0x36f), (0xc04, 0xc04), (0xf82, 0xf83), (0x1dd3, 0x1de6), (0x11080, 0x11081)],
    ),
    ("Lowercase", &[], &[(0x10fc, 0x10fc), (0xab69, 0xab69)]),
    ("gc=Mn", &[(0x1734, 0x1734), (0x1171e, 0x1171e)], &[]),
    ("gc=Mc", &[], &[(0x1734, 0x1734), (0x1171e, 0x1171e)]),
    ("ID_Start", &[(0x2e2f, 0x2e2f)], &[]),
    ("ID_Continue", &[(0x2e2f, 0x2e2f)], &[(0x30fb, 0x30fb), (0xff65, 0xff65)]),
    ("sc=Common", &[(0x16fe2, 0x16fe3)], &[]),
    ("sc=Han", &[], &[(0x16fe2, 0x16fe3)]),
];

/// Returns the characters of a property in the tables of the `regex` crate.
fn table(property: &str) -> Option<CodeSet> {
    let hir = regex_syntax::Parser::new().parse(&format!(r"\p{{{property}}}")).ok()?;
    match hir.kind() {
        regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            let ranges = class.iter().map(|it| (u32::from(it.start()), u32::from(it.end())));
            Some(CodeSet::of_ranges(ranges))
        }
        regex_syntax::hir::HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(CodeSet::of_ranges(text.chars().map(|it| (u32::from(it), u32::from(it)))))
        }
        _ => None,
    }
}

/// Returns the characters that have one of some properties in Unicode 13, which Java 17 has.
pub(in crate::java_regex) fn unicode(properties: &[&str]) -> Option<CodeSet> {
    let known = table("age=13.0")?;
    let in_13 = |property: &str| {
        let found = table(property)?.intersect(&known);
        let change = SINCE_13.iter().find(|(name, ..)| name.eq_ignore_ascii_case(property));
        Some(change.map_or(found.clone(), |(_, add, take)| {
            let set = |ranges: &[(u32, u32)]| CodeSet::of_ranges(ranges.iter().copied());
            found.union(&set(add)).intersect(&set(take).negate())
        }))
    };
    properties.iter().try_fold(CodeSet::default(), |all, it| Some(all.union(&in_13(it)?)))
}

/// The code points that no character has, surrogates included in `Cs`.
fn category(name: &str) -> Option<CodeSet> {
    let surrogates = CodeSet::range(0xd800, 0xdfff);
    Some(match name {
        "Cs" => surrogates,
        "Cn" => unassigned()?,
        "C" => categories(&["Cc", "Cf", "Cn", "Co", "Cs"])?,
        "LC" => categories(&["Lu", "Ll", "Lt"])?,
        "LD" => categories(&["L", "Nd"])?,
        "L1" => CodeSet::range(0, 0xff),
        "all" => CodeSet::all(),
        "ASCII" => CodeSet::range(0, 0x7f),
        "Lu" | "Ll" | "Lt" | "Lm" | "Lo" | "L" | "Mn" | "Me" | "Mc" | "M" | "Nd" | "Nl" | "No"
        | "N" | "Pd" | "Ps" | "Pe" | "Pc" | "Po" | "Pi" | "Pf" | "P" | "Sm" | "Sc" | "Sk"
        | "So" | "S" | "Zs" | "Zl" | "Zp" | "Z" | "Cc" | "Cf" | "Co" => {
            unicode(&[&format!("gc={name}")])?
        }
        _ => return None,
    })
}

fn categories(names: &[&str]) -> Option<CodeSet> {
    names.iter().try_fold(CodeSet::default(), |set, name| Some(set.union(&category(name)?)))
}

fn unassigned() -> Option<CodeSet> {
    let assigned = table("gc=Cn")?.negate().intersect(&table("age=13.0")?);
    Some(assigned.union(&CodeSet::range(0xd800, 0xdfff)).negate())
}

fn ranges(ranges: &[(u8, u8)]) -> CodeSet {
    CodeSet::of_ranges(ranges.iter().map(|(first, last)| (u32::from(*first), u32::from(*last))))
}

/// The ASCII classes of POSIX.
fn posix(name: &str, any_case: bool) -> Option<CodeSet> {
    let letters = [(b'A', b'Z'), (b'a', b'z')];
    Some(match name {
        "Alnum" => ranges(&[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
        "Alpha" => ranges(&letters),
        "Blank" => ranges(&[(b' ', b' '), (b'\t', b'\t')]),
        "Cntrl" => ranges(&[(0, 0x1f), (0x7f, 0x7f)]),
        "Digit" => ranges(&[(b'0', b'9')]),
        "Graph" => ranges(&[(0x21, 0x7e)]),
        "Lower" | "Upper" if any_case => ranges(&letters),
        "Lower" => ranges(&[(b'a', b'z')]),
        "Upper" => ranges(&[(b'A', b'Z')]),
        "Print" => ranges(&[(0x20, 0x7e)]),
        "Punct" => ranges(&[(0x21, 0x2f), (0x3a, 0x40), (0x5b, 0x60), (0x7b, 0x7e)]),
        "Space" => ranges(&[(b' ', b' '), (0x09, 0x0d)]),
        "XDigit" => ranges(&[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
        _ => return None,
    })
}

/// The methods of `Character`.
fn java(name: &str, any_case: bool) -> Option<CodeSet> {
    let cased = || unicode(&["Lowercase", "Uppercase", "gc=Lt"]);
    let ignorable = || {
        let controls = ranges(&[(0, 8), (0x0e, 0x1b), (0x7f, 0x9f)]);
        Some(controls.union(&unicode(&["gc=Cf"])?))
    };
    let spaces = || unicode(&["gc=Zs", "gc=Zl", "gc=Zp"]);
    Some(match name {
        "javaLowerCase" | "javaUpperCase" | "javaTitleCase" if any_case => cased()?,
        "javaLowerCase" => unicode(&["Lowercase"])?,
        "javaUpperCase" => unicode(&["Uppercase"])?,
        "javaTitleCase" => unicode(&["gc=Lt"])?,
        "javaAlphabetic" => unicode(&["Alphabetic"])?,
        "javaIdeographic" => unicode(&["Ideographic"])?,
        "javaDigit" => unicode(&["gc=Nd"])?,
        "javaDefined" => unassigned()?.negate(),
        "javaLetter" => category("L")?,
        "javaLetterOrDigit" => category("LD")?,
        "javaSpaceChar" => spaces()?,
        "javaWhitespace" => {
            let no_break = CodeSet::of_ranges([(0xa0, 0xa0), (0x2007, 0x2007), (0x202f, 0x202f)]);
            spaces()?.intersect(&no_break.negate()).union(&ranges(&[(0x09, 0x0d), (0x1c, 0x1f)]))
        }
        "javaISOControl" => ranges(&[(0, 0x1f), (0x7f, 0x9f)]),
        "javaMirrored" => block::mirrored(),
        "javaIdentifierIgnorable" => ignorable()?,
        "javaJavaIdentifierStart" => unicode(&["gc=L", "gc=Nl", "gc=Sc", "gc=Pc"])?,
        "javaJavaIdentifierPart" => {
            let start = unicode(&["gc=L", "gc=Nl", "gc=Sc", "gc=Pc", "gc=Nd", "gc=Mc", "gc=Mn"])?;
            start.union(&ignorable()?)
        }
        "javaUnicodeIdentifierStart" => unicode(&["ID_Start"])?,
        "javaUnicodeIdentifierPart" => unicode(&["ID_Continue"])?.union(&ignorable()?),
        _ => return None,
    })
}

/// The properties behind `Is`, and behind nothing with flag `U`.
fn binary(name: &str, any_case: bool) -> Option<CodeSet> {
    let cased = || unicode(&["Lowercase", "Uppercase", "gc=Lt"]);
    Some(match name.to_ascii_uppercase().as_str() {
        "ALPHABETIC" => unicode(&["Alphabetic"])?,
        "LETTER" => category("L")?,
        "IDEOGRAPHIC" => unicode(&["Ideographic"])?,
        "LOWERCASE" | "UPPERCASE" | "TITLECASE" if any_case => cased()?,
        "LOWERCASE" => unicode(&["Lowercase"])?,
        "UPPERCASE" => unicode(&["Uppercase"])?,
        "TITLECASE" => unicode(&["gc=Lt"])?,
        "WHITE_SPACE" | "WHITESPACE" => unicode(&["White_Space"])?,
        "CONTROL" => category("Cc")?,
        "PUNCTUATION" => category("P")?,
        "HEX_DIGIT" | "HEXDIGIT" => unicode(&["gc=Nd"])?.union(&CodeSet::of_ranges([
            (0x30, 0x39),
            (0x41, 0x46),
            (0x61, 0x66),
            (0xff10, 0xff19),
            (0xff21, 0xff26),
            (0xff41, 0xff46),
        ])),
        "ASSIGNED" => unassigned()?.negate(),
        "NONCHARACTER_CODE_POINT" | "NONCHARACTERCODEPOINT" => {
            let ends =
                (0..=0x10_u32).map(|plane| (plane * 0x10000 + 0xfffe, plane * 0x10000 + 0xffff));
            CodeSet::of_ranges(ends.chain([(0xfdd0, 0xfdef)]))
        }
        "DIGIT" => category("Nd")?,
        "ALNUM" => unicode(&["Alphabetic", "gc=Nd"])?,
        "BLANK" => category("Zs")?.union(&CodeSet::of(0x09)),
        "GRAPH" => graph()?,
        "PRINT" => {
            let blank = category("Zs")?.union(&CodeSet::of(0x09));
            let controls = category("Cc")?.negate();
            graph()?.union(&blank).intersect(&controls)
        }
        "WORD" => word()?,
        "JOIN_CONTROL" | "JOINCONTROL" => CodeSet::range(0x200c, 0x200d),
        _ => return None,
    })
}

fn graph() -> Option<CodeSet> {
    let outside = unicode(&["gc=Zs", "gc=Zl", "gc=Zp", "gc=Cc"])?
        .union(&CodeSet::range(0xd800, 0xdfff))
        .union(&unassigned()?);
    Some(outside.negate())
}

/// What `\w` is with flag `U`.
pub(in crate::java_regex) fn word() -> Option<CodeSet> {
    let words = unicode(&["Alphabetic", "gc=Mn", "gc=Me", "gc=Mc", "gc=Nd", "gc=Pc"])?;
    Some(words.union(&CodeSet::range(0x200c, 0x200d)))
}

/// The POSIX classes with flag `U`.
fn wide_posix(name: &str, any_case: bool) -> Option<CodeSet> {
    match name.to_ascii_uppercase().as_str() {
        "ALPHA" => binary("ALPHABETIC", any_case),
        "LOWER" => binary("LOWERCASE", any_case),
        "UPPER" => binary("UPPERCASE", any_case),
        "SPACE" => binary("WHITE_SPACE", any_case),
        "PUNCT" => binary("PUNCTUATION", any_case),
        "XDIGIT" => binary("HEX_DIGIT", any_case),
        "ALNUM" => binary("ALNUM", any_case),
        "CNTRL" => binary("CONTROL", any_case),
        "DIGIT" => binary("DIGIT", any_case),
        "BLANK" => binary("BLANK", any_case),
        "GRAPH" => binary("GRAPH", any_case),
        "PRINT" => binary("PRINT", any_case),
        _ => None,
    }
}

fn script(name: &str) -> Option<CodeSet> {
    match block::script(name)? {
        "UNKNOWN" => categories(&["Cn", "Co", "Cs"]),
        name => unicode(&[&format!("sc={name}")]),
    }
}

fn general(name: &str, any_case: bool) -> Option<CodeSet> {
    if any_case && matches!(name, "Lu" | "Ll" | "Lt") {
        return category("LC");
    }
    category(name)
}

impl Parser {
    /// Reads a property after its `p` or `P`.
    pub(super) fn property(&mut self, negative: bool, at: usize) -> Parsing<CodeSet> {
        let name = if self.take('{') {
            // With `x`, blanks may stand before the name, not behind it.
            let _first = self.peek();
            let mut name = String::new();
            loop {
                match self.source.next() {
                    Some(PatternToken::Plain('}')) => break,
                    Some(PatternToken::Plain(character)) => name.push(character),
                    Some(PatternToken::Quoted(character)) => {
                        name.push('\\');
                        name.push(character);
                    }
                    None => return Err(self.error_at(at, "unclosed character family")),
                }
            }
            if name.is_empty() {
                return Err(self.error_at(at, "empty character family"));
            }
            name
        } else {
            match self.read() {
                Some(PatternToken::Plain(character)) => character.to_string(),
                Some(PatternToken::Quoted(_)) => "\\".to_owned(),
                None => return Err(self.error_at(at, "unclosed character family")),
            }
        };
        let any_case = self.flags.case_insensitive;
        let found = if let Some((key, value)) = name.split_once('=') {
            match key.to_ascii_lowercase().as_str() {
                "sc" | "script" => script(value),
                "blk" | "block" => block::find(value),
                "gc" | "general_category" => general(value, any_case)
                    .or_else(|| posix(value, any_case))
                    .or_else(|| java(value, any_case)),
                _ => None,
            }
        } else if let Some(block) = name.strip_prefix("In") {
            block::find(block)
        } else if let Some(rest) = name.strip_prefix("Is") {
            binary(rest, any_case)
                .or_else(|| general(rest, any_case))
                .or_else(|| posix(rest, any_case))
                .or_else(|| java(rest, any_case))
                .or_else(|| script(rest))
        } else {
            let wide = if self.flags.unicode_classes { wide_posix(&name, any_case) } else { None };
            wide.or_else(|| general(&name, any_case))
                .or_else(|| posix(&name, any_case))
                .or_else(|| java(&name, any_case))
        };
        match found {
            Some(set) => Ok(if negative { set.negate() } else { set }),
            None => Err(self.error_at(at, format!("unknown character property name `{name}`"))),
        }
    }

    pub(super) fn digits(&self) -> CodeSet {
        self.widened("DIGIT", || ranges(&[(b'0', b'9')]))
    }

    pub(super) fn word(&self) -> CodeSet {
        self.widened("WORD", || ranges(&[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')]))
    }

    pub(super) fn blanks(&self) -> CodeSet {
        self.widened("WHITE_SPACE", || ranges(&[(b' ', b' '), (0x09, 0x0d)]))
    }

    fn widened(&self, property: &str, ascii: impl Fn() -> CodeSet) -> CodeSet {
        let wide = if self.flags.unicode_classes { binary(property, false) } else { None };
        wide.unwrap_or_else(ascii)
    }
}
