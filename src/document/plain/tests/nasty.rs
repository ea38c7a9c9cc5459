//! Texts that are nearly plain, and those of the worst that YAML has.

use std::fmt::Write as _;

use fastrand::Rng;

const PARTS: &[&str] = &[
    "-",
    "- ",
    "- - ",
    ": ",
    ":",
    "a: ",
    "b:",
    "c",
    "'d': ",
    "\"e\": ",
    "a b",
    "::",
    " #",
    "#",
    " # clade: ignore x",
    "# clade: ignore unused, b",
    "#ops",
    "'",
    "\"",
    "'x'",
    "\"y\\\\d\"",
    "''",
    "\"\\n\"",
    "\\",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ",",
    "[a, b]",
    "[]",
    "{}",
    "{a: 1}",
    "{\"a\":1}",
    "[a: b]",
    "|",
    ">-",
    "&a ",
    "*a",
    "!t ",
    "<<",
    "~",
    "yes",
    "null",
    "true",
    "0x1F",
    "1e3",
    "012",
    "-5",
    "1.5",
    ".inf",
    ".",
    "2024-01-01",
    "\t",
    "\r",
    "\u{a0}",
    "é",
    "🎉",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "---",
    "...",
    "%YAML",
    "?",
    "? ",
    "@",
    "`",
    "%",
    "\\ud83d\\ude00",
    "\\u00e9",
    " ",
    "  ",
    "=",
    "^x$",
    "(",
    "\u{1}",
    "/x",
    "a#b",
    "a:b",
    "- a",
    "- b: c",
    "[\n",
    ",\n  ",
    "\n]",
];

const WHOLE_LINES: &[&str] = &[
    "a: 1",
    "b: x y",
    "c:",
    "d: [a, [b, 'c'], \"d\"]",
    "e: {f: 1, g: [h]}",
    "- i",
    "- j: k",
    "-",
    "- - l",
    "# m",
    "",
    "'n': \"o\"",
    "p: #q",
    "r: 's' # t",
    "- [u, v]",
    "w: [",
    "]",
    "x,",
    "y: 'z",
    "é: ü",
    "---",
    "- # a",
    "b: |",
    "text",
];

/// A source of texts by their number.
pub(super) struct NastyTexts<'s> {
    seeds: &'s [&'s [u8]],
}

impl<'s> NastyTexts<'s> {
    pub(super) fn new(seeds: &'s [&'s [u8]]) -> Self {
        Self { seeds }
    }

    /// Returns the text with a number.
    pub(super) fn text(&mut self, number: u64) -> Vec<u8> {
        let rng = &mut Rng::with_seed(number);
        let mut text = match rng.u8(..10) {
            0 => parts(rng).into_bytes(),
            1..=4 => lines(rng).into_bytes(),
            _ => rng.choice(self.seeds).copied().unwrap_or_default().to_vec(),
        };
        // Long files are cut, so that changes are dense and the cases many.
        if text.len() > 600 {
            let from = line_start(&text, rng.usize(..text.len()));
            text.drain(..from);
            let end = line_start(&text, text.len().min(rng.usize(1..600)));
            text.truncate(end);
        }
        for _ in 0..rng.usize(..4) {
            change(rng, &mut text);
        }
        text
    }
}

fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1)
}

fn one_of<'t>(rng: &mut Rng, all: &[&'t str]) -> &'t str {
    rng.choice(all).copied().unwrap_or_default()
}

fn line_end(rng: &mut Rng) -> &'static str {
    match rng.u8(..60) {
        0 => "\r\n",
        1 => "\r",
        2 => " \n",
        3 => "\n\n",
        4 => "",
        _ => "\n",
    }
}

/// Lines of parts that fit nowhere.
fn parts(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..rng.usize(1..6) {
        text.push_str(&" ".repeat(rng.usize(..9)));
        for _ in 0..rng.usize(..6) {
            text.push_str(one_of(rng, PARTS));
        }
        text.push_str(line_end(rng));
    }
    text
}

/// Lines that are plain by themselves, with an indent that mostly fits.
fn lines(rng: &mut Rng) -> String {
    let mut text = String::new();
    let mut indent = 0_usize;
    for number in 0..rng.usize(1..10) {
        match rng.u8(..12) {
            0..=3 => indent += 2 * usize::from(number > 0),
            4 => indent = indent.saturating_sub(2),
            5 => indent = 0,
            6 => indent = rng.usize(..9),
            _ => {}
        }
        text.push_str(&" ".repeat(indent));
        if rng.u8(..4) == 0 {
            text.push_str("- ");
        }
        // Keys differ, so that they are not refused for that.
        if rng.u8(..3) > 0 {
            let _infallible = write!(text, "k{number}:");
            match rng.u8(..5) {
                0 => {}
                1 => text.push_str(one_of(rng, PARTS)),
                _ => text.push_str(
                    [" v", " [a, b]", " 'x'", " \"y\"", " {a: 1}", " # c", ""][rng.usize(..7)],
                ),
            }
        } else {
            text.push_str(one_of(rng, WHOLE_LINES));
        }
        text.push_str(line_end(rng));
    }
    text
}

/// Changes a text in one place.
fn change(rng: &mut Rng, text: &mut Vec<u8>) {
    let at = rng.usize(..=text.len());
    let line = line_start(text, at);
    let end =
        text[line..].iter().position(|it| *it == b'\n').map_or(text.len(), |it| line + it + 1);
    match rng.u8(..10) {
        0 if at < text.len() => drop(text.remove(at)),
        1 => drop(text.splice(at..at, one_of(rng, PARTS).bytes())),
        2 => drop(text.drain(line..end)),
        3 => drop(text.splice(line..line, text[line..end].to_vec())),
        4 => drop(text.splice(line..line, " ".repeat(rng.usize(1..4)).bytes())),
        5 if text.get(line) == Some(&b' ') => drop(text.remove(line)),
        6 => {
            let part = format!("{}{}\n", " ".repeat(rng.usize(..5)), one_of(rng, WHOLE_LINES));
            drop(text.splice(line..line, part.bytes()));
        }
        7 => drop(text.splice(line..end, one_of(rng, PARTS).bytes())),
        8 if at + 1 < text.len() => text.swap(at, at + 1),
        9 => text.truncate(at),
        _ => drop(text.splice(at..at, one_of(rng, PARTS).bytes())),
    }
}
