use std::ops::Range;

use super::*;
use crate::table::each_row;

fn found(pattern: &str, subject: &str) -> Option<Range<usize>> {
    Pattern::parse(pattern).unwrap().find(subject).unwrap()
}

#[test]
fn everyday_traps_are_javas() {
    let rows = [
        (r"^web\d+$", "web01\n", Some(0..5)),
        (r"^web\d+$", "web01\n\n", None),
        (r"\w+", "é", None),
        ("(?i)É", "é", None),
        ("(?iu)É", "é", Some(0..2)),
        ("a.b", "a\rb", None),
        ("[[:digit:]]", "5", None),
        ("[[:digit:]]", "t", Some(0..1)),
        (r"\bweb\b", "éweb", None),
        ("(?m)^", "", None),
        ("a{2}{3}", "aaaa", Some(0..2)),
        (r"\1(a)", "aa", None),
        ("(?:^|a){2}b", "b", Some(0..1)),
        ("(?<=a+)b", "aab", Some(2..3)),
        (r"\Qa.b\E", "a.b", Some(0..3)),
        ("(?:|a)*", "a", Some(0..0)),
    ];
    each_row(rows, |(pattern, subject, expected)| {
        assert_eq!(found(pattern, subject), expected, "{pattern:?} in {subject:?}");
    });
}

#[test]
fn what_java_refuses_is_refused_with_its_place() {
    let rows = [
        ("a[b", 1, "unclosed character class"),
        ("*a", 0, "dangling meta character `*`"),
        ("a(b", 3, "unclosed group"),
        ("a)b", 1, "unmatched closing `)`"),
        (r"a\i", 1, "illegal/unsupported escape sequence"),
        ("x{,3}", 1, "illegal repetition"),
        ("x{3,2}", 1, "illegal repetition range"),
        ("[b-a]", 2, "illegal character range"),
        (r"\p{Foo}", 0, "unknown character property name `Foo`"),
        ("(?<a_b>x)", 4, "named capturing group is missing trailing `>`"),
        (r"\k<x>", 0, "named capturing group `x` does not exist"),
        ("(?<=(?:ab)*)x", 0, "look-behind group does not have an obvious maximum length"),
        ("(?z)", 2, "unknown inline modifier"),
        (r"\N{DIGIT ONE}", 0, "`\\N{…}` is not supported: write the character itself"),
        ("[ac&&]", 3, "bad class syntax: nothing stands behind `&&`"),
        (
            "(?:a{1000}){1000}",
            0,
            "the pattern is too large: its repetitions expand to over 50,000 steps",
        ),
    ];
    each_row(rows, |(pattern, offset, message)| {
        let error = Pattern::parse(pattern).unwrap_err();
        assert_eq!((error.offset, error.message.as_str()), (offset, message), "{pattern}");
    });
    assert!(Pattern::parse(&"(".repeat(300)).unwrap_err().message.contains("nested over 250 deep"));
    assert!(Pattern::parse(&"a".repeat(9000)).unwrap_err().message.contains("9000 bytes"));
}

#[test]
fn evil_patterns_are_answered() {
    let subject = format!("{}!", "a".repeat(10_000));
    for pattern in [
        "(a+)+$",
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "(.*a){12}$",
        "(x+x+)+y",
        "^(?=(a+)+$)",
        "(?!(a|aa)+$)^a+b",
        "^(?:(?!b)a|a(?!b))*$",
        "^(?>(a|aa)+)b",
    ] {
        assert_eq!(Pattern::parse(pattern).unwrap().is_found_in(&subject), Ok(false), "{pattern}");
    }
}

#[test]
fn a_budget_overrun_is_an_error() {
    let subject = format!("{}!", "a".repeat(10_000));
    assert_eq!(Pattern::parse(r"^(a|aa)+\1b").unwrap().is_found_in(&subject), Err(Overrun));
}

#[test]
fn mistakes_are_suspected_and_nothing_else() {
    for (pattern, expected) in [
        ("[[:digit:]]", "Java has no such classes: this is a set of the characters in it"),
        ("/^web/", "the slashes are part of the pattern"),
        ("puppet.example.com", "a dot matches any character, and this looks like a host name"),
        (r"^web\d+.example.com$", "a dot matches any character, and this looks like a host name"),
        (r"cm\d.lmacchi.vm", "a dot matches any character, and this looks like a host name"),
        ("^*web", "`^*` repeats the start of the string, which matches everywhere"),
        ("ˆweb", "this is the letter `ˆ` (U+02C6), not the anchor `^`"),
        ("(?i)é", "`(?i)` ignores the case of ASCII letters only"),
        (
            r"^(?!.*\d)",
            "look-around without any literal text cannot be indexed: every node pays for it",
        ),
        ("", "the empty pattern is found in every string"),
    ] {
        let found = suspicions(pattern);
        assert_eq!(found.first().map(|it| it.message.as_str()), Some(expected), "{pattern}");
    }
    for pattern in [
        ".*",
        ".+",
        "^web",
        r"\.example\.com$",
        "^puppet/",
        "8.*",
        "^(?!db)",
        r"^pdb\d+\.vm$",
        "a.b",
        "/srv/",
        "web|db",
    ] {
        assert_eq!(suspicions(pattern), [], "{pattern}");
    }
}

/// The table of `docs/reference/regex.md`: where ours differs from Java on purpose or for want of
/// tables. What Java says is in the comments.
#[test]
fn the_known_differences_are_as_documented() {
    // Java goes back by UTF-16 units, one here, and so does not come to the start: not found.
    assert_eq!(found("(?<=^.)x", "😀x"), Some(4..5));
    // Java folds `ß` and `ẞ` in a run of literals.
    assert_eq!(found("(?iu)aß", "aẞ"), None);
    // Java keeps the group of a look-ahead that was backtracked over: found from 1.
    assert_eq!(found("(?=(a))*b\\1", "aba"), None);
    // Java measures the boundary behind a bounded repetition from another place: not found.
    assert_eq!(found("a{1,2}\\b{g}b", "ab"), Some(0..2));
    assert_eq!(found("a+\\b{g}b", "ab"), Some(0..2));
    // U+16AC0 was assigned in Unicode 14: to Java 17 it is not a digit, and so it is none here.
    assert_eq!(found("\\p{Nd}", "\u{16ac0}"), None);
    for refused in ["\\N{DIGIT ONE}", "(?c)a", "[a&&]", "(?:a{1000}){1000}"] {
        assert!(Pattern::parse(refused).is_err(), "{refused}");
    }
}
