//! Functions that are read without scrolling.

use std::fmt::Write as _;

use regex::Regex;

use super::sources;

/// The most lines of a function, from its signature to its last brace.
const FUNCTION_LINES: usize = 60;

/// Returns the functions of a file with their first line, from 1, and how many lines they have.
///
/// The source is formatted by rustfmt, so a function ends at the first brace in the column of its `fn`.
fn functions(text: &str) -> Vec<(&str, usize, usize)> {
    let signature =
        Regex::new(r"^( *)(?:pub(?:\([^)]*\))? |const |async |unsafe )*fn (\w+)").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(parts) = signature.captures(line) else { continue };
        let (indent, name) = (parts.get(1).unwrap().as_str(), parts.get(2).unwrap().as_str());
        // Of a trait, or on one line.
        if line.ends_with([';', '}']) {
            continue;
        }
        let is_end = |it: &str| {
            let rest = it.strip_prefix(indent).unwrap_or_default();
            rest == "}" || rest.starts_with(')') && rest.ends_with(';')
        };
        let length = lines[at..].iter().position(|it| is_end(it)).unwrap() + 1;
        found.push((name, at + 1, length));
    }
    found
}

#[test]
fn functions_have_at_most_sixty_lines() {
    let mut long = String::new();
    for (path, text) in sources() {
        for (name, number, lines) in functions(&text) {
            if lines > FUNCTION_LINES {
                writeln!(long, "{path}:{number}: `{name}` has {lines} lines").unwrap();
            }
        }
    }
    assert!(long.is_empty(), "functions of over {FUNCTION_LINES} lines:\n{long}");
}

#[test]
fn the_lines_of_functions_are_counted() {
    let text = "
fn a() {}

impl X {
    pub(super) async fn b(
        x: u8,
    ) -> u8 {
        fn c() {
        }
    }
}

trait Y {
    fn d(&self);
    fn e(
        x: u8,
    ) -> u8;
    fn f() {
    }
}
";
    assert_eq!(functions(text), [("b", 5, 6), ("c", 8, 2), ("e", 15, 3), ("f", 18, 2)]);
}
