use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn values(text: &str) -> Vec<Value> {
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    assert_eq!(contents.faults, [], "{text}");
    contents.documents.iter().map(Node::to_value).collect()
}

/// Writes faults as `line:column-line:column kind message`.
fn faults(bytes: &[u8]) -> Vec<String> {
    let place = |it: Position| format!("{}:{}", it.line, it.column);
    let contents = read(bytes, &Limits::DEFAULT);
    contents
        .faults
        .iter()
        .map(|it| {
            format!("{}-{} {:?} {}", place(it.span.start), place(it.span.end), it.kind, it.message)
        })
        .collect()
}

#[test]
fn lists_and_mappings_take_no_more_room_than_they_need() {
    let contents = read(b"[{a: 1}, 2, 3, 4, 5]", &Limits::DEFAULT);
    let Content::Sequence(elements) = &contents.documents[0].content else { panic!("a list") };
    let Content::Mapping(entries) = &elements[0].content else { panic!("a mapping") };
    assert_eq!((elements.capacity(), entries.capacity()), (5, 1));
}

#[test]
fn documents_are_read_to_json_values() {
    for (text, expected) in [
        ("", vec![]),
        ("# only a comment\n", vec![]),
        ("a: 1\nb: [x, {c: null}]\n", vec![json!({"a": 1, "b": ["x", {"c": null}]})]),
        ("a: 1\n---\nb: 2\n", vec![json!({"a": 1}), json!({"b": 2})]),
        ("\u{feff}a: 1\r\nb:\r\n  - x\r\n", vec![json!({"a": 1, "b": ["x"]})]),
        ("a: |\n  # no comment\n  x\n", vec![json!({"a": "# no comment\nx\n"})]),
        ("a: \"yes\"\nb: '0644'\n", vec![json!({"a": "yes", "b": "0644"})]),
        ("a: &x [1, 2]\nb: *x\n", vec![json!({"a": [1, 2], "b": [1, 2]})]),
        ("{\"a\": \"\\ud83d\\ude00\", \"b\": 1}", vec![json!({"a": "😀", "b": 1})]),
        ("a: '\\ud83d\\ude00'\n", vec![json!({"a": "\\ud83d\\ude00"})]),
        ("a: ${x}\n", vec![json!({"a": "${x}"})]),
    ] {
        assert_eq!(values(text), expected, "{text}");
    }
}

/// As `PyYAML` reads them.
#[test]
fn a_block_scalar_ends_with_the_file_without_another_line_break() {
    for (text, expected) in [
        ("x: |\n  hi", "hi"),
        ("x: |+\n  hi", "hi"),
        ("x: |-\n  hi", "hi"),
        ("x: |2\n   hi", " hi"),
        ("x: |\n  hi\r\n  ho", "hi\nho"),
        ("x: |\n  hi # no", "hi # no"),
        ("x: |\n  é", "é"),
        ("x: >\n  a\n  b", "a b"),
        ("x: >\n  a\n   b", "a\n b"),
        ("x: >+\n  a\n\n  b", "a\nb"),
        ("x: |\n  hi\n    ", "hi\n  "),
        ("x: |\n  hi\n", "hi\n"),
        ("x: |\n  hi\n  ", "hi\n"),
        ("x: |\n  hi\n\n", "hi\n"),
        ("x: |+\n  hi\n\n  ", "hi\n\n"),
        ("x: |+\n  hi\n\n\n  ho\n ", "hi\n\n\nho\n"),
        ("x: |\r\n  hi\r\n  ", "hi\n"),
        ("x: |\n  hi\n ", "hi\n"),
        ("x: |+\n  hi\n ", "hi\n"),
        ("x: |+\n  hi\n  ", "hi\n"),
        ("x: |+\n  hi\n\n ", "hi\n\n"),
        ("x: >+\n  a\n  b\n  ", "a b\n"),
        ("x: >\n  a\n  b\n     ", "a b\n   "),
        ("x: |2\n     ", "   "),
        ("x: |+\n\n  ", "\n"),
        ("x: |\n  hi\n   \n  ", "hi\n \n"),
        ("x: |\n  hi\n   \n ", "hi\n \n"),
        ("x: |\n    hi\n     \n     ", "hi\n \n "),
        ("x: |\n  c\n# c", "c\n"),
        ("x: |\n  a # c\n# c", "a # c\n"),
        ("x: |\n  a # c\n # c", "a # c\n"),
        ("x: |\n  hi\n...", "hi\n"),
        ("x: |", ""),
        ("x: |+\n", ""),
        ("x: |+\n  ", ""),
    ] {
        assert_eq!(values(text), [json!({"x": expected})], "{text:?}");
    }
    assert_eq!(values("- |\n hi"), [json!(["hi"])]);
}

#[test]
fn keys_of_any_length_are_written_as_they_are_read() {
    for key in [1019, 1020, 1021, 1022, 1023, 1024, 1025, 4000].map(|it| "k".repeat(it)) {
        for value in [json!(1), json!({"a": {"b": [1]}}), json!(["x"]), json!(null), json!({})] {
            let value = json!({"first": 1, key.clone(): value, "last": {key.clone(): 2}});
            for layout in [ValueLayout::Block, ValueLayout::Flow] {
                assert_eq!(values(&write(&value, &|_| layout)), std::slice::from_ref(&value));
            }
        }
    }
    let escaped = json!({"\u{1}".repeat(200): {"x": 1}, "y": 2});
    assert_eq!(values(&write(&escaped, &|_| ValueLayout::Block)), [escaped]);
}

#[test]
fn faults_are_found_all_and_with_their_place() {
    for (text, expected) in [
        ("a: 1\nb: 2\na: 3\n", vec!["3:1-3:2 DuplicateKey key `a` is set twice"]),
        (
            "a: yes\nb: 0644\n",
            vec![
                "1:4-1:7 AmbiguousScalar `yes` is not the same to all YAML readers: Ruby reads a boolean",
                "2:4-2:8 AmbiguousScalar `0644` is not the same to all YAML readers: YAML 1.1 reads an octal number, YAML 1.2 a decimal one",
            ],
        ),
        (
            "é: {on: 1}\n",
            vec![
                "1:5-1:7 AmbiguousScalar `on` is not the same to all YAML readers: Ruby reads a boolean",
            ],
        ),
        (
            "a: x\u{2028}y\nb: 'x\u{85}'\n# \u{2029}\n",
            vec![
                "1:4-1:7 AmbiguousScalar `x\u{2028}y` is not the same to all YAML readers: YAML 1.1 ends a line within it",
            ],
        ),
        ("1: x\n", vec!["1:1-1:2 Refused the key `1` is a number, a key must be a string"]),
        ("? [a]\n: x\n", vec!["1:3-1:6 Malformed a key is a list, it must be a string"]),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", vec!["3:3-3:5 Refused merge keys are not allowed"]),
        (
            "a: !!str 1\n",
            vec!["1:4-1:11 Refused tags such as `tag:yaml.org,2002:!str` are not allowed"],
        ),
        ("a: &x [*x]\n", vec!["1:8-1:10 Malformed an alias stands inside of what it refers to"]),
        (
            "a: &x 1\n---\nb: 2\nc: [*x]\n",
            vec!["4:5-4:7 Malformed an alias refers to an anchor of an earlier document"],
        ),
        (
            "a: &x 1\n---\nb: &x [*x]\n",
            vec!["3:8-3:10 Malformed an alias stands inside of what it refers to"],
        ),
        ("a: \u{1}\n", vec!["1:4-1:4 Malformed the file has the control character U+0001"]),
    ] {
        assert_eq!(faults(text.as_bytes()), expected, "{text}");
    }
    assert_eq!(
        faults(b"a: 1\nb: \xff\n"),
        ["2:4-2:4 Malformed the file is not UTF-8: found the byte 0xff"]
    );
}

#[test]
fn places_are_those_of_the_tokens() {
    let text =
        "name: Webs\nrule: [\"and\",\n  x]\nclasses:\n  ü: {p: 'q'}\n\n  b:\nlast: |\n  t\n\n";
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    let root = &contents.documents[0];
    let at = |node: &Node| {
        text.get(node.span.start.offset as usize..node.span.end.offset as usize).unwrap()
    };
    assert_eq!(at(root.get("name").unwrap()), "Webs");
    assert_eq!(at(root.get("rule").unwrap()), "[\"and\",\n  x]");
    assert_eq!(at(&root.get("rule").unwrap().elements()[0]), "\"and\"");
    let classes = root.get("classes").unwrap();
    assert_eq!(at(classes), "ü: {p: 'q'}\n\n  b:");
    assert_eq!(at(classes.get("ü").unwrap().get("p").unwrap()), "'q'");
    assert_eq!(classes.get("ü").unwrap().span.start.column, 6);
    assert_eq!(root.entry("last").unwrap().key_span.start.line, 8);
    // A comment behind a bracket does not belong to it, and the bracket begins the value.
    let text = "a: &x { # of a\n  b: [ # of b\n    1 ] } # end\n";
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    let a = contents.documents[0].get("a").unwrap();
    let at = |node: &Node| {
        text.get(node.span.start.offset as usize..node.span.end.offset as usize).unwrap()
    };
    assert_eq!(at(a), "{ # of a\n  b: [ # of b\n    1 ] }");
    assert_eq!(at(a.get("b").unwrap()), "[ # of b\n    1 ]");
}

#[test]
fn pairs_of_escapes_are_one_character_in_double_quotes_and_stand_for_themselves_elsewhere() {
    let pair = "\\ud83d\\uDE00";
    for (text, expected) in [
        (format!("a: \"{pair}\"\nb: x\n"), json!({"a": "😀", "b": "x"})),
        (
            format!("a: {pair} x\\{pair}\nb: \"\\\"{pair}\"\n"),
            json!({"a": format!("{pair} x\\{pair}"), "b": "\"😀"}),
        ),
        (
            format!("a: | # {pair}\n  {pair}\n  \\\\{pair}\nb: >-\n  {pair}\n  y\n"),
            json!({"a": format!("{pair}\n\\\\{pair}\n"), "b": format!("{pair} y")}),
        ),
        (format!("# {pair}\n{pair}: &x{pair} ['{pair}']\n"), json!({pair: [pair]})),
    ] {
        assert_eq!(values(&text), [expected], "{text}");
    }
    // Places behind a pair are those of the file.
    let text = format!("a: \"{pair}\" # {pair}\nb: {{c: \"{pair}\", c: 1}}\n");
    assert_eq!(faults(text.as_bytes()), ["2:24-2:25 DuplicateKey key `c` is set twice"]);
}

#[test]
fn comments_silence_the_line_below() {
    let text = "# clade: ignore suspicious-rule\n# why\n\nrule: x\na: |\n  # clade: ignore no-one\n  y\n# clade: ignore a, b\nb: 1\n";
    let ignores = read(text.as_bytes(), &Limits::DEFAULT).ignores;
    let found: Vec<_> = ignores.iter().map(|it| (it.line, it.kinds.join("+"))).collect();
    assert_eq!(found, [(4, "suspicious-rule".to_owned()), (9, "a+b".to_owned())]);
    // A blank of Unicode is a letter to YAML, so this is a key; in a file that is written plainly and in another one.
    for end in ["", "\t# x\n"] {
        let text =
            format!("\u{a0}# clade: ignore a\nb: 1\n{end}").replacen("ignore a", "ignore a: 2", 1);
        assert_eq!(read(text.as_bytes(), &Limits::DEFAULT).ignores, []);
    }
}

#[test]
fn hostile_files_are_faults_and_cost_little() {
    let bomb = {
        let mut text = "a0: &a0 [x, x]\n".to_owned();
        for level in 1..40 {
            let below = level - 1;
            let line = format!("a{level}: &a{level} [*a{below}, *a{below}]\n");
            text += &line;
        }
        text
    };
    let keys = (0..80_000).fold(String::new(), |keys, number| keys + &format!("key{number}: 1\n"));
    let repeated = "k: 1\n".repeat(1000);
    for (name, text, expected) in [
        ("brackets", "[".repeat(200_000), "nested over 64 deep"),
        ("braces", "{a: ".repeat(100_000), "nested over 64 deep"),
        ("dashes", "- ".repeat(100_000), "nested over 64 deep"),
        ("questions", "? ".repeat(100_000), "nested over 64 deep"),
        ("bomb", bomb, "aliases expand to over 50000 values"),
        ("large", "x".repeat((1 << 20) + 1), "the file has 1048577 bytes"),
        ("quote", format!("a: \"{}", "x".repeat(500_000)), ""),
        ("repeated", repeated, "key `k` is set twice"),
        ("nul", "a: \0".to_owned(), "control character U+0000"),
    ] {
        let contents = read(text.as_bytes(), &Limits::DEFAULT);
        assert!(!contents.faults.is_empty(), "{name}");
        assert!(
            contents.faults[0].message.contains(expected),
            "{name}: {}",
            contents.faults[0].message
        );
    }
    assert_eq!(read(keys.as_bytes(), &Limits::DEFAULT).documents[0].entries().len(), 80_000);
    let line = format!("[{}1]", "1, ".repeat(300_000));
    assert_eq!(read(line.as_bytes(), &Limits::DEFAULT).documents[0].elements().len(), 300_001);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,8}",
        "\\PC{0,12}",
        any::<String>(),
        Just("yes".to_owned()),
        Just("0644".to_owned()),
        Just("12:30".to_owned()),
        Just("::ntp".to_owned()),
        Just("profile::base".to_owned()),
        Just("a: b".to_owned()),
        Just("a #b".to_owned()),
        Just("- x".to_owned()),
        Just("😀\u{85}\u{2028}\u{7f}\u{feff}".to_owned()),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |it| it.is_finite())
            .prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().filter(|(key, _)| key != "<<").collect()
            )),
        ]
    })
}

fn same_json(text: &str, value: &Value) -> Result<(), TestCaseError> {
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    prop_assert_eq!(&contents.faults, &[], "{}", text);
    let found = contents.documents.first().map_or(Value::Null, Node::to_value);
    prop_assert!(crate_same(&found, value), "{} is {} not {}", text, found, value);
    Ok(())
}

/// Values are equal; floats by their number, since `1e3` and `1.0e+3` are one.
fn crate_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| crate_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| crate_same(a, b)))
        }
        _ => a == b,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn what_is_written_is_read_back(value in any_value(), flow in any::<bool>()) {
        let layout = if flow { ValueLayout::Flow } else { ValueLayout::Block };
        same_json(&write(&value, &|_| layout), &value)?;
    }

    #[test]
    fn unambiguous_documents_are_read_as_serde_yaml_reads_them(value in any_value()) {
        let text = write(&value, &|_| ValueLayout::Block);
        let theirs: serde_yaml::Value = serde_yaml::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error} {text:?}")))?;
        let ours = read(text.as_bytes(), &Limits::DEFAULT).documents.first().map_or(Value::Null, Node::to_value);
        let ours: serde_yaml::Value = serde_yaml::from_str(&write(&ours, &|_| ValueLayout::Flow)).unwrap();
        prop_assert_eq!(ours, theirs, "{}", text);
    }

    #[test]
    fn no_text_is_too_strange(text in "[ -~\n\t\u{e9}\u{1f600}]{0,200}") {
        let contents = read(text.as_bytes(), &Limits::DEFAULT);
        for fault in contents.faults {
            prop_assert!(fault.span.end.offset as usize <= text.len());
            prop_assert!(fault.span.start <= fault.span.end);
        }
    }
}
