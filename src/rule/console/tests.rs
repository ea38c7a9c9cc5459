use std::ops::Range;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::rule;
use crate::table::each_row;

#[test]
fn the_notation_compiles_to_the_array_form() {
    let rows = [
        (
            r#"trusted.certname ~ "www" and memory.system.total_bytes >= 512"#,
            json!([
                "and",
                ["~", ["trusted", "certname"], "www"],
                [">=", ["fact", "memory", "system", "total_bytes"], "512"]
            ]),
        ),
        ("name = web1.example.com", json!(["=", "name", "web1.example.com"])),
        ("os.family=Debian", json!(["=", ["fact", "os", "family"], "Debian"])),
        ("fact.os.family = Debian", json!(["=", ["fact", "os", "family"], "Debian"])),
        ("fact = x", json!(["=", ["fact", "fact"], "x"])),
        ("fact.name = x", json!(["=", ["fact", "name"], "x"])),
        ("\"name\" = x", json!(["=", ["fact", "name"], "x"])),
        (
            "processors.models[0] ~ Intel",
            json!(["~", ["fact", "processors", "models", 0], "Intel"]),
        ),
        (
            r#"trusted.extensions."1.3.6.1" = 'a b'"#,
            json!(["=", ["trusted", "extensions", "1.3.6.1"], "a b"]),
        ),
        ("a != b", json!(["not", ["=", ["fact", "a"], "b"]])),
        ("a !~ b", json!(["not", ["~", ["fact", "a"], "b"]])),
        ("a /: b", json!(["not", ["<:", ["fact", "a"], "b"]])),
        ("a <: b", json!(["<:", ["fact", "a"], "b"])),
        ("a/b/:c", json!(["not", ["<:", ["fact", "a/b"], "c"]])),
        (
            "a = 1 or b = 2 and not c = 3",
            json!([
                "or",
                ["=", ["fact", "a"], "1"],
                ["and", ["=", ["fact", "b"], "2"], ["not", ["=", ["fact", "c"], "3"]]]
            ]),
        ),
        (
            "(a = 1 or b = 2) and not (c = 3 and d = 4)",
            json!([
                "and",
                ["or", ["=", ["fact", "a"], "1"], ["=", ["fact", "b"], "2"]],
                ["not", ["and", ["=", ["fact", "c"], "3"], ["=", ["fact", "d"], "4"]]]
            ]),
        ),
        (r#"name ~ "^web\d+\.example\.com$""#, json!(["~", "name", r"^web\d+\.example\.com$"])),
        (r#"a = "say \"x\" \\ y""#, json!(["=", ["fact", "a"], r#"say "x" \ y"#])),
        ("a = ''", json!(["=", ["fact", "a"], ""])),
        ("not = x", json!(["=", ["fact", "not"], "x"])),
        (
            "android = 1 and order = 2",
            json!(["and", ["=", ["fact", "android"], "1"], ["=", ["fact", "order"], "2"]]),
        ),
        ("  a\n =\t1  ", json!(["=", ["fact", "a"], "1"])),
        ("サーバ = アプリ", json!(["=", ["fact", "サーバ"], "アプリ"])),
    ];
    each_row(rows, |(text, expected)| {
        assert_eq!(read_console(text).map(|rule| rule::to_value(&rule)), Ok(expected), "{text}");
    });
}

#[test]
fn faults_name_the_place_and_the_remedy() {
    let rows = [
        ("", 0..1, "expected a path such as `os.family`, found the end"),
        ("a", 1..2, "expected an operator, found the end"),
        ("a =", 3..4, "expected a value"),
        ("a = b c = d", 6..7, "expected `and`, `or` or the end, found `c`"),
        ("a = b AND c = d", 6..9, "expected `and`, `or` or the end, found `AND`"),
        ("(a = b", 0..1, "this `(` is never closed"),
        ("a = b)", 5..6, "expected `and`, `or` or the end, found `)`"),
        ("a == b", 2..4, "`==` is not an operator"),
        ("a =~ b", 2..4, "`=~` is not an operator"),
        ("a is b", 2..4, "expected an operator, found `is`"),
        ("a[x] = 1", 2..3, "expected an index such as `[0]`"),
        (
            "a[99999999999999999999] = 1",
            2..22,
            "the index is too large: an index into a list is at most 18446744073709551615",
        ),
        ("a = \"b", 4..5, "this quote is never closed"),
        ("a = 1 and", 9..10, "expected a path such as `os.family`, found the end"),
        ("a = and", 4..7, "expected a value, found `and`"),
    ];
    each_row(rows, |(text, place, message)| {
        let faults = read_console(text).unwrap_err();
        let found = (faults[0].characters.clone(), faults[0].message.as_str());
        assert_eq!(found, (Some(place), message), "{text}");
    });
}

/// Text, place of the fault, message, help.
const FOREIGN: &[(&str, Option<Range<usize>>, &str, &str)] = &[
    (
        r#"["=", "name", "x"]"#,
        None,
        "a rule in the array form is a list, here it is a string",
        "write it without the quotes around it",
    ),
    (
        r#"$facts["os"]['family'] = Debian"#,
        Some(0..22),
        "a rule has no variables: a path starts with the name of a fact",
        "write `os.family`",
    ),
    (
        "a = 1 and $trusted['extensions']['1.3.6'] = x",
        Some(10..41),
        "a rule has no variables: a path starts with the name of a fact",
        "write `trusted.extensions.\"1.3.6\"`",
    ),
    (
        "%{facts['os']['family']} = x",
        Some(0..24),
        "a rule has no interpolation: a path stands alone",
        "write `os.family`",
    ),
    (
        "trusted['certname'] = x",
        Some(8..18),
        "expected an index such as `[0]`",
        "write `trusted.certname`",
    ),
    (
        "facts['processors']['models'][0] = x",
        Some(6..18),
        "expected an index such as `[0]`",
        "write `processors.models[0]`",
    ),
    ("a = 1 && b = 2", Some(6..8), "expected `and`, `or` or the end, found `&&`", "write `and`"),
    ("a = 1 || b = 2", Some(6..8), "expected `and`, `or` or the end, found `||`", "write `or`"),
    ("! a = 1", Some(0..1), "expected a path such as `os.family`, found `!`", "write `not`"),
    ("a <> b", Some(2..4), "`<>` is not an operator", "inequality is `!=`"),
    ("a => 5", Some(2..4), "`=>` is not an operator", "at least is `>=`"),
    (
        "'web' in tags",
        Some(6..8),
        "expected an operator, found `in`",
        "that a list has an element is written `LIST <: ELEMENT`, the list first; that a value is one of several `web = … or web = …`",
    ),
    (
        "tags contains web",
        Some(5..13),
        "expected an operator, found `contains`",
        "that a list has an element is written `tags <: …`",
    ),
    ("a is b", Some(2..4), "expected an operator, found `is`", "equality is `=`"),
    (
        "a matches b",
        Some(2..9),
        "expected an operator, found `matches`",
        "a regular expression is `~`",
    ),
    (
        "os.family = “Red Hat”",
        Some(12..13),
        "this is not a quote that a rule knows, but a letter of the value",
        "write \"Red Hat\"",
    ),
    (
        "name ~ '*.web'",
        Some(8..9),
        "`*.web` is not a pattern: dangling meta character `*`",
        "a regular expression is expected, not a glob: write `\\.web$`",
    ),
];

#[test]
fn what_other_notations_have_is_answered_with_what_it_is_here() {
    each_row(FOREIGN, |(text, place, message, help)| {
        let faults = read_console(text).unwrap_err();
        let found = (faults[0].characters.clone(), faults[0].message.as_str());
        assert_eq!(found, (place.clone(), *message), "{text}");
        assert_eq!(faults[0].help.as_deref(), Some(*help), "{text}");
    });
    // What has a meaning keeps it: `clade validate` warns of it.
    for text in [
        "\"$x\" = 1",
        "a = \"“x”\"",
        "\"%{x}\" = 1",
        "$::osfamily = Debian",
        "%{facts.os.family} = x",
        "a = “x”",
        "(a = “x” or b =>5) and c = >",
        "a <> and b = 1",
    ] {
        assert!(read_console(text).is_ok(), "{text}");
    }
}

#[test]
fn every_condition_is_written_in_the_notation_and_read_back() {
    let rows = [
        (json!(["=", "name", "x"]), "name = x"),
        (json!(["=", ["fact", "os", "family"], "Red Hat"]), "os.family = \"Red Hat\""),
        (json!(["not", ["~", ["fact", "a"], r"\d"]]), r#"a !~ "\\d""#),
        (json!(["not", [">", ["fact", "a"], "1.5"]]), "not a > 1.5"),
        (
            json!(["not", ["or", ["=", "name", "a"], ["=", "name", "b"]]]),
            "not (name = a or name = b)",
        ),
        (
            json!([
                "and",
                ["or", ["=", "name", "a"], ["=", "name", "b"]],
                ["and", ["=", "name", "c"], ["=", "name", "d"]]
            ]),
            "(name = a or name = b) and (name = c and name = d)",
        ),
        (json!(["=", ["fact", "name"], "x"]), "fact.name = x"),
        (json!(["=", ["fact", "m", 0, "a.b"], ""]), "m[0].\"a.b\" = \"\""),
        (
            json!(["=", ["trusted", "extensions", "1.3.6"], "or"]),
            "trusted.extensions.\"1.3.6\" = \"or\"",
        ),
    ];
    each_row(rows, |(rule, written)| {
        let condition = rule::read(&rule).unwrap();
        assert_eq!(to_console(&condition).as_deref(), Ok(written));
        assert_eq!(read_console(written).map(|rule| rule::to_value(&rule)), Ok(rule));
    });
}

#[test]
fn hostile_nesting_is_refused() {
    let deep = format!("{}a = 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(read_console(&deep).unwrap_err()[0].message.contains("nested over 64 deep"));
    let value: Value = "not ".repeat(100_000).into();
    assert!(rule::read(&value).is_err());
}

#[test]
fn a_path_without_a_form_in_the_notation_is_refused() {
    for (path, message) in [
        (
            json!("clientcert"),
            "the console's notation cannot write the path `\"clientcert\"`, at which no node has a \
             value; for the fact write [\"fact\", \"clientcert\"]",
        ),
        (
            json!(["name", "x"]),
            "the console's notation cannot write the path `[\"name\",\"x\"]`, at which no node has a \
             value; for a fact write [\"fact\", …]",
        ),
        (
            json!(["fact"]),
            "the console's notation cannot write the path `[\"fact\"]`, at which no node has a value; \
             for a fact write [\"fact\", …]",
        ),
        (
            json!(["facts", 0, "x"]),
            "the console's notation cannot write the path `[\"facts\",0,\"x\"]`, at which no node has \
             a value; for a fact write [\"fact\", …]",
        ),
    ] {
        let rule = json!(["or", ["=", "name", "x"], ["not", ["=", path, "x"]]]);
        let error = to_console(&rule::read(&rule).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_0-9-]{1,4}",
        "[ab .\"'\\\\()\\[\\]=~!<>:/é\n\t-]{0,4}",
        prop_oneof![
            Just("and"),
            Just("OR"),
            Just("not"),
            Just("name"),
            Just("fact"),
            Just("facts"),
            Just("trusted"),
            Just("0"),
            Just("1.5"),
            Just(".")
        ]
        .prop_map(str::to_owned),
    ]
}

fn any_path() -> impl Strategy<Value = Value> {
    let segment = prop_oneof![any_text().prop_map(Value::from), (0_u64..20).prop_map(Value::from)];
    let root = prop_oneof![Just("fact"), Just("facts"), Just("trusted"), Just("name")];
    prop_oneof![
        1 => Just(json!("name")),
        1 => any_text().prop_map(Value::from),
        8 => (root, prop::collection::vec(segment, 0..4)).prop_map(|(root, mut rest)| {
            rest.insert(0, root.into());
            Value::from(rest)
        }),
    ]
}

fn any_rule() -> impl Strategy<Value = Value> {
    let operator =
        prop_oneof![Just("="), Just("~"), Just(">"), Just(">="), Just("<"), Just("<="), Just("<:")];
    let test = (operator, any_path(), any_text()).prop_map(|(operator, path, text)| {
        // A pattern that is valid whatever the text is.
        let text = if operator == "~" { format!("\\Q{text}\\E") } else { text };
        json!([operator, path, text])
    });
    test.prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|it| json!(["not", it])),
            (prop_oneof![Just("and"), Just("or")], prop::collection::vec(inner, 1..4)).prop_map(
                |(word, mut terms)| {
                    terms.insert(0, word.into());
                    Value::from(terms)
                }
            ),
        ]
    })
}

/// Returns a rule without the differences that have no meaning: how a path starts, and `and` or
/// `or` of one condition.
fn meaning(rule: &Value) -> Value {
    let parts = rule.as_array().unwrap();
    match parts[0].as_str().unwrap() {
        "and" | "or" if parts.len() == 2 => meaning(&parts[1]),
        word @ ("and" | "or" | "not") => {
            let terms = parts.iter().skip(1).map(meaning);
            std::iter::once(word.into()).chain(terms).collect()
        }
        _ => {
            let mut parts = parts.clone();
            if parts[1] == json!(["name"]) {
                parts[1] = "name".into();
            } else if parts[1].is_array() && parts[1][0] == "facts" {
                parts[1][0] = "fact".into();
            }
            Value::from(parts)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_means_what_was_read(rule in any_rule()) {
        let condition = rule::read(&rule).unwrap();
        match to_console(&condition) {
            Ok(text) => {
                let back = read_console(&text);
                prop_assert!(back.is_ok(), "{} {} {:?}", rule, text, back);
                prop_assert_eq!(meaning(&rule::to_value(&back.unwrap())), meaning(&rule), "{}", text);
            }
            Err(_) => prop_assert!(unwritable(&condition).is_some()),
        }
    }
}

/// Returns a path of so many segments behind its root, in both notations.
fn path_of(segments: usize) -> [Value; 2] {
    let array: Vec<&str> = std::iter::once("fact").chain((0..segments).map(|_| "a")).collect();
    [json!(["=", array, "x"]), format!("{} = x", vec!["a"; segments].join(".")).into()]
}

#[test]
fn a_path_leads_no_deeper_than_facts_are_read() {
    let depth = crate::model::FACT_DEPTH;
    let [array, console] = path_of(depth);
    assert_eq!(rule::read(&array), rule::read(&console));
    assert_eq!(rule::to_value(&rule::read(&console).unwrap()), array);
    for segments in [depth + 1, depth + 2, 20_000] {
        for (rule, element) in path_of(segments).into_iter().zip([vec![1], vec![]]) {
            let faults = rule::read(&rule).unwrap_err();
            assert_eq!((faults.len(), &faults[0].element), (1, &element));
            assert_eq!(faults[0].message, "the path has more than 200 segments behind its root");
            let help =
                "facts are read 200 levels deep, so no node has a value there: shorten the path";
            assert_eq!(faults[0].help.as_deref(), Some(help));
        }
    }
    for root in ["trusted", "fact", "facts"] {
        let path = |segments| format!("{root}{} = x", ".a".repeat(segments));
        assert!(read_console(&path(depth)).is_ok(), "{root}");
        assert!(read_console(&path(depth + 1)).is_err(), "{root}");
    }
}

#[test]
fn no_more_comparisons_are_read_than_wanted() {
    let rule = Value::from(format!("a = x{}", " or a = x".repeat(9)));
    assert!(rule::read_within(&rule, 10).is_ok());
    let faults = rule::read_within(&rule, 9).unwrap_err();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].kind, faults[0].characters.clone()), (RuleFaultKind::Size, Some(81..82)));
    assert_eq!(faults[0].message, "the rule has more than 9 comparisons");
    // Where a list is expected, a long text is not read to say how it is written as one.
    let text = format!("a = x{}", " or a = x".repeat(200_000));
    let faults = rule::read(&json!(["and", text])).unwrap_err();
    assert!(faults[0].help.as_ref().unwrap().len() < 100);
}
