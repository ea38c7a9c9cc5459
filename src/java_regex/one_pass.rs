//! Patterns that are found without trying anything twice.
//!
//! Most patterns of node names are a few texts and runs of characters, one behind the other: `^web-\d+\.ams\.`.
//! Where no character of a run can begin what follows it, a match goes on in one way only. Such a pattern
//! needs no automaton, which takes kilobytes and many cache misses: it is some bytes of code that lie together.

use super::ast::{Assertion, Ast, Repeat, RepeatMode};
use super::required::SHORT;
use super::set::CodeSet;

/// The code of a pattern that matches in one pass, for subjects of one line in ASCII.
///
/// One branch behind the other; one that matches is enough. A branch is its length, where it is anchored, and its
/// items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnePass(Box<[u8]>);

/// The most bytes of code.
const CODE: usize = 192;

/// How many steps a character of the subject may take: a run that begins at many of them is walked from each.
const STEPS: usize = 8;

/// Any number of times.
const ANY: u8 = u8::MAX;

/// A branch matches only at the start, or only up to the end.
const AT_START: u8 = 1;
const AT_END: u8 = 2;

/// What comes next in a branch: a text behind its length; characters of a set, behind how many at the least and
/// at the most; one of several texts, behind their number.
const TEXT: u8 = 0;
const RUN: u8 = 1;
const CHOICE: u8 = 2;

/// The bytes of a set: a bit for each character.
const SET: usize = 16;

/// Characters in ASCII.
type AsciiSet = u128;

/// A part of a branch.
#[derive(Clone, Debug)]
enum PatternItem {
    Text(Vec<u8>),
    Run { set: AsciiSet, least: u8, most: u8 },
    Choice(Vec<Vec<u8>>),
}

/// A part of a pattern from its start to its end.
#[derive(Clone, Debug, Default)]
struct Branch {
    items: Vec<PatternItem>,
    is_at_start: bool,
    is_at_end: bool,
}

impl OnePass {
    /// Returns the code of a pattern, if it is one of these.
    pub(super) fn of(ast: &Ast) -> Option<Self> {
        let mut code = Vec::new();
        match whole(ast) {
            Ast::Choice(parts) => parts.iter().try_for_each(|part| write(part, &mut code))?,
            part => write(part, &mut code)?,
        }
        (code.len() <= CODE).then(|| Self(code.into()))
    }

    /// Returns the code, for [`Self::is_found_by`].
    pub fn code(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether it can match nowhere but at the start of a subject.
    pub fn is_at_start(&self) -> bool {
        branches(&self.0).all(|(anchors, _)| anchors & AT_START != 0)
    }

    /// Returns whether the pattern is found in a subject of one line in ASCII; `None` if finding out takes more than a
    /// few looks at each character, or the subject is long.
    pub fn is_found_in(&self, subject: &str) -> Option<bool> {
        Self::is_found_by(&self.0, subject)
    }

    /// The same, by the code alone.
    pub fn is_found_by(code: &[u8], subject: &str) -> Option<bool> {
        let subject = subject.as_bytes();
        if subject.len() > SHORT {
            return None;
        }
        let mut steps = STEPS * subject.len() + code.len();
        for (anchors, items) in branches(code) {
            if matches(items, anchors, subject, &mut steps)? {
                return Some(true);
            }
        }
        Some(false)
    }
}

/// Returns where each branch is anchored, and its items.
fn branches(code: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = code;
    std::iter::from_fn(move || {
        let (&[low, high, anchors], behind) = rest.split_first_chunk()?;
        let (items, behind) =
            behind.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        rest = behind;
        Some((anchors, items))
    })
}

/// Returns a pattern without the group around it.
fn whole(ast: &Ast) -> &Ast {
    match ast {
        Ast::Capture(_, body) => whole(body),
        Ast::Sequence(parts) if parts.len() == 1 => parts.first().map_or(ast, whole),
        _ => ast,
    }
}

/// Returns whether a branch matches from any character, or from the first; `None` if there are no steps left.
fn matches(items: &[u8], anchors: u8, subject: &[u8], steps: &mut usize) -> Option<bool> {
    if anchors & AT_START != 0 {
        return matches_here(items, anchors, subject, steps);
    }
    // Most begin with a text: then few characters are worth a try.
    let first = if let [TEXT, _, first, ..] = items { Some(*first) } else { None };
    for at in 0..=subject.len() {
        let is_worth_it = first.is_none() || subject.get(at).copied() == first;
        if is_worth_it && matches_here(items, anchors, subject.get(at..)?, steps)? {
            return Some(true);
        }
    }
    Some(false)
}

/// Returns whether a branch matches from here.
fn matches_here(
    mut items: &[u8],
    anchors: u8,
    mut subject: &[u8],
    steps: &mut usize,
) -> Option<bool> {
    loop {
        let before = subject.len();
        let (rest, looks) = match items {
            [TEXT, length, rest @ ..] => (text(rest, *length, &mut subject), 1),
            [RUN, least, most, rest @ ..] => (run(rest, (*least, *most), &mut subject), 1),
            [CHOICE, count, rest @ ..] => (choice(rest, *count, &mut subject), usize::from(*count)),
            _ => return Some(anchors & AT_END == 0 || subject.is_empty()),
        };
        *steps = steps.checked_sub(looks + before - subject.len())?;
        let Some(rest) = rest else { return Some(false) };
        items = rest;
    }
}

/// Takes a text; returns what stands behind it in the code.
fn text<'c>(code: &'c [u8], length: u8, subject: &mut &[u8]) -> Option<&'c [u8]> {
    let (text, rest) = code.split_at_checked(usize::from(length))?;
    *subject = subject.strip_prefix(text)?;
    Some(rest)
}

/// Takes as many characters of a set as there are, also where these are too few.
fn run<'c>(code: &'c [u8], (least, most): (u8, u8), subject: &mut &[u8]) -> Option<&'c [u8]> {
    let (set, rest) = code.split_first_chunk::<SET>()?;
    let set = AsciiSet::from_le_bytes(*set);
    let most = if most == ANY { usize::MAX } else { usize::from(most) };
    let count = subject.iter().take(most).take_while(|it| has(set, **it)).count();
    *subject = subject.get(count..)?;
    (count >= usize::from(least)).then_some(rest)
}

/// Takes the only text of several that is here.
fn choice<'c>(mut code: &'c [u8], count: u8, subject: &mut &[u8]) -> Option<&'c [u8]> {
    let mut found = None;
    for _ in 0..count {
        let (length, rest) = code.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        found = found.or_else(|| subject.strip_prefix(text));
        code = rest;
    }
    *subject = found?;
    Some(code)
}

fn has(set: AsciiSet, character: u8) -> bool {
    character < 0x80 && set >> character & 1 == 1
}

/// Adds the code of a branch.
fn write(ast: &Ast, code: &mut Vec<u8>) -> Option<()> {
    let mut branch = Branch::default();
    branch.part(ast)?;
    if !branch.goes_on_in_one_way() {
        return None;
    }
    branch.shorten();
    let mut items = Vec::new();
    for item in &branch.items {
        item.write(&mut items)?;
    }
    code.extend(u16::try_from(items.len()).ok()?.to_le_bytes());
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    code.push(flag(branch.is_at_start, AT_START) | flag(branch.is_at_end, AT_END));
    code.extend(items);
    Some(())
}

impl Branch {
    /// Adds a part of a pattern; `None` if it is none of these.
    fn part(&mut self, ast: &Ast) -> Option<()> {
        match ast {
            Ast::Empty => Some(()),
            Ast::Sequence(parts) => parts.iter().try_for_each(|part| self.part(part)),
            Ast::Capture(_, body) => self.part(body),
            // What goes on in one way is not tried otherwise in any case; but here as few as possible would be final.
            Ast::Atomic(body) => (!is_lazy(body)).then(|| self.part(body))?,
            Ast::Assert(Assertion::Start | Assertion::LineStart(_)) => {
                self.is_at_start = true;
                // Behind an end there is none, either.
                (self.items.is_empty() && !self.is_at_end).then_some(())
            }
            Ast::Assert(Assertion::End | Assertion::BeforeFinal(_) | Assertion::LineEnd(_)) => {
                self.is_at_end = true;
                Some(())
            }
            _ if self.is_at_end => None,
            Ast::Set(set) => {
                self.push_set(ascii(set));
                Some(())
            }
            Ast::Repeat(repeat) => {
                self.items.push(repeated(repeat)?);
                Some(())
            }
            Ast::Choice(parts) => {
                let texts: Option<Vec<Vec<u8>>> = parts.iter().map(only_text).collect();
                self.items.push(PatternItem::Choice(texts?));
                Some(())
            }
            _ => None,
        }
    }

    fn push_set(&mut self, set: AsciiSet) {
        match (only(set), self.items.last_mut()) {
            (Some(character), Some(PatternItem::Text(text))) => text.push(character),
            (Some(character), _) => self.items.push(PatternItem::Text(vec![character])),
            (None, _) => self.items.push(PatternItem::Run { set, least: 1, most: 1 }),
        }
    }

    /// Takes from the ends what decides nothing: where a match may begin or end anywhere, a run of as many
    /// characters as it has at the least will do.
    fn shorten(&mut self) {
        let is_done = |item: &mut PatternItem| match item {
            PatternItem::Run { least: 0, .. } => false,
            PatternItem::Run { least, most, .. } => {
                *most = *least;
                true
            }
            _ => true,
        };
        while !self.is_at_start && self.items.first_mut().is_some_and(|it| !is_done(it)) {
            self.items.remove(0);
        }
        while !self.is_at_end && self.items.last_mut().is_some_and(|it| !is_done(it)) {
            self.items.pop();
        }
    }

    /// Returns whether no character of a run can begin what follows it, and of several texts at most one can be
    /// somewhere.
    fn goes_on_in_one_way(&self) -> bool {
        self.items.iter().enumerate().all(|(at, item)| match item {
            PatternItem::Text(_) => true,
            PatternItem::Run { least, most, .. } if least == most => true,
            PatternItem::Run { set, .. } => set & self.first_behind(at) == 0,
            PatternItem::Choice(texts) => texts.iter().enumerate().all(|(at, text)| {
                let others = || texts.iter().enumerate().filter(|(it, _)| *it != at);
                !text.is_empty() && !others().any(|(_, other)| other.starts_with(text))
            }),
        })
    }

    /// Returns the characters that can follow an item.
    fn first_behind(&self, at: usize) -> AsciiSet {
        let first = |text: &[u8]| text.first().map_or(0, |it| bit(*it));
        let mut all = 0;
        for item in self.items.iter().skip(at + 1) {
            all |= match item {
                PatternItem::Text(text) => first(text),
                PatternItem::Run { set, .. } => *set,
                PatternItem::Choice(texts) => texts.iter().fold(0, |all, text| all | first(text)),
            };
            if !matches!(item, PatternItem::Run { least: 0, .. }) {
                break;
            }
        }
        all
    }
}

impl PatternItem {
    fn write(&self, code: &mut Vec<u8>) -> Option<()> {
        let push_text = |code: &mut Vec<u8>, text: &[u8]| {
            code.push(u8::try_from(text.len()).ok()?);
            code.extend_from_slice(text);
            Some(())
        };
        match self {
            Self::Text(text) => {
                code.push(TEXT);
                push_text(code, text)?;
            }
            Self::Run { set, least, most } => {
                code.extend([RUN, *least, *most]);
                code.extend(set.to_le_bytes());
            }
            Self::Choice(texts) => {
                code.extend([CHOICE, u8::try_from(texts.len()).ok()?]);
                texts.iter().try_for_each(|text| push_text(code, text))?;
            }
        }
        Some(())
    }
}

/// Returns whether something in a part is repeated as seldom as possible.
fn is_lazy(ast: &Ast) -> bool {
    let mut any = false;
    ast.walk(&mut |it| {
        any |= matches!(it, Ast::Repeat(repeat) if repeat.mode == RepeatMode::Lazy);
    });
    any
}

fn repeated(repeat: &Repeat) -> Option<PatternItem> {
    let Ast::Set(set) = whole(&repeat.body) else { return None };
    let count = |it: u32| u8::try_from(it).ok().filter(|it| *it < ANY);
    let most = repeat.most.map_or(Some(ANY), count)?;
    Some(PatternItem::Run { set: ascii(set), least: count(repeat.least)?, most })
}

/// Returns the only text that a part matches.
fn only_text(ast: &Ast) -> Option<Vec<u8>> {
    match ast {
        Ast::Set(set) => Some(vec![only(ascii(set))?]),
        Ast::Sequence(parts) => {
            let texts: Option<Vec<Vec<u8>>> = parts.iter().map(only_text).collect();
            Some(texts?.concat())
        }
        Ast::Capture(_, body) => only_text(body),
        _ => None,
    }
}

fn bit(character: u8) -> AsciiSet {
    if character < 0x80 { 1 << character } else { 0 }
}

/// Returns the characters of a set that are in ASCII.
fn ascii(set: &CodeSet) -> AsciiSet {
    let within = |(first, last): &(u32, u32)| (*first < 0x80).then(|| (*first, (*last).min(0x7f)));
    // All bits up to the last, without those before the first.
    let bits = |(first, last): (u32, u32)| AsciiSet::MAX >> (0x7f - last) & AsciiSet::MAX << first;
    set.ranges().iter().map_while(within).fold(0, |all, range| all | bits(range))
}

/// Returns the character of a set that has one.
fn only(set: AsciiSet) -> Option<u8> {
    if set.is_power_of_two() { u8::try_from(set.trailing_zeros()).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::super::parse;
    use super::*;
    use crate::table::each_row;

    fn of(pattern: &str) -> Option<OnePass> {
        OnePass::of(&parse::parse(pattern).unwrap().ast)
    }

    #[test]
    fn patterns_of_names_match_in_one_pass() {
        let rows = [
            r"^role-12-\d+\.dc3\.",
            r"-12\.dc3\.example\.com$",
            "role-12-",
            "^role-(12|77)-",
            r"^web\d{1,3}$",
            "^[a-z]+-web7-[0-9]+$",
            "(?i)^web",
            "^a|^b",
            "(^web|db$)",
            "a*",
            "",
            "$",
            r"\d+-web",
            "[a-c]?[d-f]*g++$",
            r"^.{3}$",
        ];
        each_row(rows, |pattern| assert!(of(pattern).is_some(), "{pattern}"));
        let rows = [
            "^a+ab",
            r"\w++a",
            "a.*b",
            r"^[\w-]+-\d$",
            "(web|web1)x",
            "(|web)x",
            r"\bweb",
            "(?!a)b",
            "(?:ab)+",
            r"(a)\1",
            "a$b",
            "a^b",
            "^[a-z]*(web|db)$",
        ];
        each_row(rows, |pattern| assert!(of(pattern).is_none(), "{pattern}"));
    }

    #[test]
    fn what_is_too_long_is_not_said() {
        let pattern = of("^a+$").unwrap();
        assert_eq!(pattern.is_found_in(&"a".repeat(SHORT)), Some(true));
        assert_eq!(pattern.is_found_in(&"a".repeat(SHORT + 1)), None);
        assert_eq!(of(&"a".repeat(300)), None);
        assert_eq!(of(&".".repeat(31)), None);
    }

    #[test]
    fn a_search_that_looks_at_characters_again_and_again_is_given_up() {
        let rows = [r"[a-z][a-z]+\d", "[a-z]{254}1", "[a-z][a-z]+1|[a-z][a-z]+2", "a[a-z]+1"];
        each_row(rows, |pattern| {
            let one_pass = of(pattern).unwrap();
            assert_eq!(one_pass.is_found_in(&"a".repeat(SHORT)), None);
            // Then others find out.
            let subject = format!("{}1", "a".repeat(SHORT - 1));
            assert_eq!(Pattern::parse(pattern).unwrap().is_found_in(&"a".repeat(SHORT)), Ok(false));
            assert_eq!(Pattern::parse(pattern).unwrap().is_found_in(&subject), Ok(true));
        });
        assert_eq!(of("web[a-z]+1").unwrap().is_found_in(&"a".repeat(SHORT)), Some(false));
        assert!(of("^web|^db").unwrap().is_at_start() && !of("^web|db").unwrap().is_at_start());
    }

    /// Writes a part of a pattern.
    fn part(rng: &mut fastrand::Rng, depth: u32) -> String {
        let atoms =
            ["a", "b", "c", "-", r"\.", "[ab]", "[^a]", r"\d", "7", ".", r"\w", "(?i:a)", "é"];
        let picked: [&str; 3] = std::array::from_fn(|_| atoms[rng.usize(..atoms.len())]);
        let mut picked = picked.into_iter();
        let mut atom = || picked.next().unwrap();
        match rng.u8(..10) {
            0 if depth > 0 => format!("({}{})", part(rng, depth - 1), part(rng, depth - 1)),
            1 => format!("({}{}|{})", atom(), atom(), atom()),
            2 if depth > 0 => format!("(?>{})", part(rng, depth - 1)),
            3 => format!(
                "{}{}",
                atom(),
                ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}"][rng.usize(..7)]
            ),
            4 => format!(
                "({}){}",
                atom(),
                ["*?", "+?", "++", "*+", "??", "{1,2}+", "{1,2}?"][rng.usize(..7)]
            ),
            _ => atom().to_owned(),
        }
    }

    #[test]
    fn one_pass_finds_what_other_matchers_find() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut asked, mut matched) = (0, 0);
        for _ in 0..6_000 {
            let branch = |rng: &mut fastrand::Rng| {
                let parts: String = (0..rng.usize(..5)).map(|_| part(rng, 2)).collect();
                let start = ["", "", "^", r"\A", "(?m)^", r"\G", "(?d)", "(?i)"][rng.usize(..8)];
                let end = ["", "", "$", r"\z", r"\Z", "(?m)$"][rng.usize(..6)];
                format!("{start}{parts}{end}")
            };
            let mut pattern = branch(&mut rng);
            if rng.u8(..5) == 0 {
                pattern = format!("{pattern}|{}", branch(&mut rng));
            }
            let Some(one_pass) = of(&pattern) else { continue };
            let others = Pattern::parse(&pattern).unwrap();
            for _ in 0..20 {
                let characters = ['a', 'b', 'c', '-', '.', '7', 'A', 'x'];
                let subject: String =
                    (0..rng.usize(1..8)).map(|_| characters[rng.usize(..8)]).collect();
                let found = one_pass.is_found_in(&subject).unwrap();
                assert_eq!(found, others.find(&subject).unwrap().is_some(), "{pattern} {subject}");
                asked += 1;
                matched += usize::from(found);
            }
        }
        assert!(
            asked > 20_000 && matched > asked / 10 && matched < asked * 9 / 10,
            "{asked} {matched}"
        );
    }
}
