//! What is read plainly is what the parser reads, and plain files are read so.

mod nasty;

use super::comparison::fuzz_plain as is_plain;
use crate::document::{Count, Limits, ValueLayout, read_counted, write};
use crate::table::each_row;
use nasty::NastyTexts;
use proptest::prelude::ProptestConfig;
use serde_json::json;

/// Files that are read plainly; others are made from them.
const PLAIN: &[&str] = &[
    "",
    "# only a comment\n",
    "\n\n",
    "a: 1",
    "---\na: 1\n",
    "# of all\n---\n# of a\na: 1\n\n# the end",
    "\u{feff}a: b\n",
    "name: All Nodes\nid: 00000000-0000-4000-8000-000000000000\ndescription: \"a \\\"b\\\" \\\\d \\n \\t \\/\"\nenvironment: production\nenvironment_trumps: true\n",
    "rule: [\"and\", [\"=\", [\"fact\", \"os\", \"family\"], \"Debian\"], [\"~\", \"name\", \"^web\\\\d+\\\\.example\"]]\n",
    "rule: [and, [=, [fact, os], x], [~, name, '^a\\d''b'], [>, [fact, n], 5], [<=, [fact, n], -1.5]]\n",
    "rule:\n  - and\n  - [\"=\", name, x]\n  -\n    - or\n    - - not\n      - [a]\n",
    "rule: [\n  \"and\",\n  [\"=\", # of =\n    name, x],\n\n  # of it\n  y\n  ]\n",
    "rule: [or, [a, b],\n       [c, d]] # of rule\nb: c\n",
    "classes:\n  ntp: {}\n  profile::base:\n    servers: [a, b]\n    \"quoted key\": 'it''s'\n  empty:\n  c:  # of c\n    d: ~\n    e: null\n",
    "pinned:\n- a.example.com\n- b.example.com\nparent: Web\n",
    "pinned:\n    -   a\n    -   b\n\nlist: []\n",
    "- a: 1\n  b:\n  - c\n  -\n-\n- - d\n  - e: f\n",
    "a: {b: 1, \"c\": [x, {d: e}], 'f':\"g\"}\n",
    "{\n  \"a\": 1,\n  \"b\": [true, null],\n  \"c\":{}\n}\n",
    "[\"and\", [\"=\", \"name\", \"x\"]]",
    "a: #ops\nb:   #x y  \nc:\n  - #z\n    d: e\n  - #f\n",
    "# clade: ignore unused\na: 1\nb:\n  # clade: ignore x, y\n\n  # z\n  c: 1\n",
    "ä: ö ü # é\n'日本': [\"語\", 🎉]\nb: \u{a0}x\n",
    "a:\n  some words\nb:\n  \"quoted\"\nc:\n  [d]\n",
    "a: 0x1F\nb: 1.5e+3\nc: 12:99\nd: a:b\ne: a#b\nf: a - b\ng: ~x\nh: ^x\n",
    "  a: 1\n  b: 2\n",
    "a: \"x\u{2028}\"\nb: '\u{85}'\n",
];

/// Files that the parser must read, with the reason.
const DECLINED: &[(&str, &str)] = &[
    ("a: &x 1\nb: *x\n", "an anchor"),
    ("a: !!str 1\n", "a tag"),
    ("a: 1\n---\nb: 1\n", "two documents"),
    ("a: 1\n...\n", "the end of a document"),
    ("%YAML 1.2\n---\na: 1\n", "a directive"),
    ("--- a\n", "a value behind the beginning"),
    ("---\n", "a document without a value"),
    ("? a\n: b\n", "a question mark"),
    ("a: 1\na: 2\n", "a key twice"),
    ("<<: {a: 1}\n", "a merge key"),
    ("1: a\n", "a key that is a number"),
    ("~: a\n", "a key that is null"),
    ("a: yes\n", "an ambiguous value"),
    ("on: a\n", "an ambiguous key"),
    ("a: 0644\n", "an ambiguous number"),
    ("a: b\n  c\n", "a value over two lines"),
    ("a: b\n\n  c\n", "a value over two lines with one between"),
    ("a: \"b\n  c\"\n", "a quoted value over two lines"),
    ("a: [b\n  c]\n", "a value over two lines in a list"),
    ("a: b # c\n  d\n", "a comment within a value"),
    ("a: b: c\n", "a mapping within a line"),
    ("a: - b\n", "a list within a line"),
    ("a: [b: c]\n", "a pair in a list"),
    ("a: {b}\n", "a key without a value in braces"),
    ("a: {b: }\n", "a value that is not there in braces"),
    ("a: [b,, c]\n", "an element that is not there in brackets"),
    ("a: [b]: c\n", "a list as a key"),
    ("[a]: b\n", "a list as a key at the begin"),
    ("a: [b] c\n", "text behind a bracket"),
    ("a: \"b\" c\n", "text behind a quote"),
    ("a: \"b\"#c\n", "no comment behind a quote"),
    ("a: [b]#c\n", "no comment behind a bracket"),
    ("a: [b,#c\n  d]\n", "no comment behind a comma"),
    ("a: [\n]\n", "a bracket that is not indented"),
    ("a: [b\n", "a bracket that is not closed"),
    ("a: [b}\n", "the other bracket"),
    ("a: \"b\n", "a quote that is not closed"),
    ("a: \"\\u00e9\"\n", "an escape by number"),
    ("a: '\\ud83d\\ude00'\n", "half a character"),
    ("a:\tb\n", "a tab"),
    ("a: b\r\n", "a carriage return"),
    ("a: \u{feff}b\n", "a byte-order mark within"),
    ("a: x\u{2028}y\n", "a line of other readers"),
    ("a\n", "a text alone"),
    ("\"a\"\n", "a quoted text alone"),
    ("- a\nb: c\n", "a list and a mapping"),
    ("a: b\n- c\n", "a mapping and a list"),
    ("  a: 1\nb: 2\n", "less indented than the first"),
    ("a:\n    b: 1\n  c: 2\n", "indented in between"),
    ("a: |\n  b\n", "a text over several lines"),
    ("a: %b\n", "a percent sign"),
    ("a: @b\n", "an at sign"),
    ("a: `b\n", "a backtick"),
    ("a: ?b\n", "a question mark before a value"),
    ("a: -\n", "a dash alone"),
    ("a: [a -, b]\n", "a dash before a comma"),
    ("a : b\n", "a blank before a colon"),
    ("a: \u{1}\n", "a control character"),
];

#[test]
fn plain_files_are_read_plainly() {
    each_row(PLAIN, |text| assert!(is_plain(text.as_bytes(), &Limits::DEFAULT), "{text}"));
}

#[test]
fn other_files_are_declined() {
    each_row(DECLINED, |(text, what)| {
        assert!(!is_plain(text.as_bytes(), &Limits::DEFAULT), "{what}: {text}");
    });
    let deep = |levels: usize| format!("a: {}{}\n", "[".repeat(levels), "]".repeat(levels));
    assert!(is_plain(deep(63).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(deep(64).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(deep(64).as_bytes(), &Limits { depth: 200, ..Limits::DEFAULT }));
    let key = |length: usize| format!("{}: 1\n", "a".repeat(length));
    assert!(is_plain(key(1_000).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(key(1_001).as_bytes(), &Limits::DEFAULT));
    let list = |length: usize| format!("[{}]", "a,".repeat(length));
    assert!(is_plain(list(99_999).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(list(100_000).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(&[b' '; 11], &Limits { file_bytes: 10, ..Limits::DEFAULT }));
    let keys = |last: usize| {
        let lines = (0..40).chain([last]).map(|it| ["\"key", &it.to_string(), "\": 1\n"].concat());
        lines.collect::<String>()
    };
    assert!(is_plain(keys(40).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(keys(0).as_bytes(), &Limits::DEFAULT));
    assert!(!is_plain(keys(39).as_bytes(), &Limits::DEFAULT));
}

/// The files of the examples that Clade reads, with their paths.
fn example_files() -> Vec<(String, Vec<u8>)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut waiting: Vec<_> = ["first", "fleet", "minimal"].map(|it| root.join(it)).into();
    let mut files = Vec::new();
    while let Some(directory) = waiting.pop() {
        #[expect(clippy::disallowed_methods, reason = "files of the tests")]
        for path in std::fs::read_dir(directory).unwrap().map(|it| it.unwrap().path()) {
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|it| it == "yaml") {
                files.push((path.display().to_string(), std::fs::read(path).unwrap()));
            }
        }
    }
    // A text with a number is the same on every machine.
    files.sort();
    files
}

#[test]
fn what_is_written_and_the_examples_are_read_plainly() {
    let value = json!({
        "name": "Web é", "description": "over\ntwo \"lines\"", "rule": ["~", ["fact", "x"], "^a\\d"],
        "classes": {"ntp": {}, "a::b": {"c": [1, 2.5, true, null, "yes"], "d": {"e": []}}},
        "empty": null, "on": "0644", "list": [{"a": {"b": "c"}}, ["x", []]],
    });
    for layout in [ValueLayout::Block, ValueLayout::Flow] {
        let text = write(&value, &|way| {
            if way.is_empty() { ValueLayout::Block } else { layout }
        });
        assert!(is_plain(text.as_bytes(), &Limits::DEFAULT), "{text}");
    }
    let files = example_files();
    let declined = files.iter().filter(|(_, text)| !is_plain(text, &Limits::DEFAULT));
    let declined: Vec<&str> = declined.map(|(path, _)| path.as_str()).collect();
    assert_eq!((declined, files.len() > 50), (Vec::new(), true));
}

#[test]
fn values_are_counted_once_whichever_reading_counts_them() {
    // A mapping with two keys and their values; the second file is declined at its end.
    for (text, is_read_plainly, values) in [("a: 1\nb: x\n", true, 5), ("a: 1\nb: yes\n", false, 5)]
    {
        assert_eq!(is_plain(text.as_bytes(), &Limits::DEFAULT), is_read_plainly, "{text}");
        let mut counted = 0;
        let contents = read_counted(text.as_bytes(), &Limits::DEFAULT, &mut |more| {
            counted += more;
            Count::Continue
        });
        assert_eq!((counted, contents.documents.len()), (values, 1), "{text}");
        let stopped = read_counted(text.as_bytes(), &Limits::DEFAULT, &mut |_| Count::Stop);
        assert!(stopped.documents.is_empty() && stopped.faults.len() == 1, "{stopped:?}");
    }
}

/// `PROPTEST_CASES=100000 cargo test --release --lib document::plain` tries ten million texts.
#[test]
fn what_is_read_plainly_is_what_the_parser_reads() {
    let files = example_files();
    let seeds: Vec<&[u8]> = PLAIN
        .iter()
        .map(|it| it.as_bytes())
        .chain(files.iter().map(|(_, text)| text.as_slice()))
        .collect();
    let cases = u64::from(ProptestConfig::default().cases) * 100;
    let (mut plain, mut plain_with_values) = (0, 0);
    let mut texts = NastyTexts::new(&seeds);
    for seed in 0..cases {
        let text = texts.text(seed);
        let is_plain = is_plain(&text, &Limits::DEFAULT);
        plain += u64::from(is_plain);
        plain_with_values += u64::from(is_plain && text.len() > 20);
    }
    println!("{plain} of {cases} are plain, {plain_with_values} with over 20 bytes");
    assert!(plain_with_values * 10 >= cases, "{plain_with_values} of {cases}");
}
