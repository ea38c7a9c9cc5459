use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::model::{Condition, Node};
use crate::rule::{evaluate, read, read_console};
use crate::table::each_row;

fn paths(rules: &[Condition]) -> MentionedPaths {
    MentionedPaths::of_rules(rules.iter())
}

fn mentioned_by(rules: &[&str]) -> MentionedPaths {
    paths(&rules.iter().map(|it| read_console(it).unwrap()).collect::<Vec<_>>())
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

#[test]
fn what_rules_can_tell_apart_is_kept() {
    let facts = json!({
        "os": {"family": "Debian", "name": "Debian", "release": {"major": "12", "full": "12.5"}},
        "os.family": "dotted",
        "cpus": ["x", "y", {"z": 1, "w": 2}, ["a"], null, 5],
        "virtual": true, "n": null, "load": 1.50,
    });
    let rows = [
        (&["os.family = x"][..], json!({"os": {"family": "Debian"}})),
        (
            &["facts.os.family = x", "os.release.major = 1"],
            json!({"os": {"family": "Debian", "release": {"major": "12"}}}),
        ),
        (&["\"os.family\" = x"], json!({"os.family": "dotted"})),
        // An object is not text, and has no elements.
        (&["os = x"], json!({"os": {}})),
        (&["os = x", "os.name = x"], json!({"os": {"name": "Debian"}})),
        (&["cpus <: x"], json!({"cpus": ["x", "y", {}, [], null, 5]}).clone()),
        (&["cpus <: x", "cpus[2].z = 1"], json!({"cpus": ["x", "y", {"z": 1}, [], null, 5]})),
        (&["cpus[1] = y"], json!({"cpus": [null, "y"]})),
        (
            &["cpus[2].w = y", "cpus[3][0] = a", "cpus[4] = a"],
            json!({"cpus": [null, null, {"w": 2}, ["a"]]}),
        ),
        (&["cpus[3] <: a"], json!({"cpus": [null, null, null, ["a"]]})),
        (&["cpus[18446744073709551615] = a", "cpus.x = a", "cpus[0].x = a"], json!({})),
        (&["virtual = x and not (n = x or load > 1)"], json!({"virtual": true, "load": 1.50})),
        (&["os.family.x = a", "os[0] = a", "absent = a", "name = a"], json!({})),
    ];
    each_row(rows, |(rules, kept)| {
        let paths = mentioned_by(rules);
        let node = Node { fact: object(facts.clone()), ..Node::named("n") };
        let expected = Node { fact: object(kept), ..Node::named("n") };
        assert_eq!(paths.keep(&node), expected, "{rules:?}");
        let (fact, trusted) = paths.keep_text(&facts.to_string(), "{}").unwrap();
        assert_eq!(Node { fact, trusted, ..Node::named("n") }, expected, "{rules:?}");
    });
}

#[test]
fn facts_and_trusted_data_are_different_roots() {
    let paths = mentioned_by(&["trusted.extensions.pp_role = web", "extensions = x"]);
    let (fact, trusted) = paths
        .keep_text(
            r#"{"extensions": {"pp_role": "a"}}"#,
            r#"{"extensions": {"pp_role": "b"}, "x": 1}"#,
        )
        .unwrap();
    assert_eq!(Value::from(fact), json!({"extensions": {}}));
    assert_eq!(Value::from(trusted), json!({"extensions": {"pp_role": "b"}}));
}

#[test]
fn a_set_is_written_and_read_back() {
    let paths =
        mentioned_by(&["trusted.a = x", "facts.b[1].\"c.d\" = x", "fact.b = x", "name = x"]);
    let text = r#"[["fact","b"],["fact","b",1,"c.d"],["trusted","a"]]"#;
    assert_eq!(paths.to_string(), text);
    assert_eq!(text.parse::<MentionedPaths>().unwrap(), paths);
    assert_eq!("[]".parse::<MentionedPaths>().unwrap(), MentionedPaths::default());
    assert_eq!(r#"[["facts","b"]]"#.parse::<MentionedPaths>().unwrap(), mentioned_by(&["b = x"]));
    for wrong in [
        "",
        "{}",
        "[[]]",
        r#"[["fact"]]"#,
        r#"[["fact",0]]"#,
        r#"[["name"]]"#,
        r#"[["fact","a",-1]]"#,
    ] {
        assert!(wrong.parse::<MentionedPaths>().is_err(), "{wrong}");
    }
}

#[test]
fn a_set_covers_its_parts() {
    let (a, b) = (mentioned_by(&["a = x", "b = x"]), mentioned_by(&["b = x", "c = x"]));
    let both = a.union(&b);
    assert!(both.covers(&a) && both.covers(&b) && both.covers(&both));
    assert!(!a.covers(&b) && !a.covers(&both));
    assert_eq!(both, b.union(&a));
    assert_eq!(both, mentioned_by(&["c = x or (a = x and not b = x)"]));
    assert!(a.covers(&MentionedPaths::default()));
}

#[test]
fn differences_are_shown_as_people_write_paths() {
    let paths = mentioned_by(&[
        "os.family = x",
        "cpus[1] = x",
        "mounts <: x",
        "gone = x",
        "same = x",
        "trusted.extensions.\"1.3.6\" = x",
        "disk = x",
    ]);
    let before = Node {
        fact: object(
            json!({"os": {"family": "A"}, "cpus": [1, 2], "mounts": ["a", {"b": 1}], "gone": null, "disk": {"a": 1}, "same": 1, "other": 1}),
        ),
        ..Node::named("n")
    };
    let after = Node {
        fact: object(
            json!({"os": {"family": "B"}, "cpus": [1], "mounts": ["a", {"b": 2}], "disk": {}, "same": 1, "other": 2}),
        ),
        trusted: object(json!({"extensions": {"1.3.6": "web"}})),
        name: "n".to_owned(),
    };
    let found = differences(&before, &after, &paths);
    let shown: Vec<_> =
        found.iter().map(|it| (it.path.as_str(), it.before.clone(), it.after.clone())).collect();
    assert_eq!(
        shown,
        [
            ("cpus[1]", Some(json!(2)), None),
            ("os.family", Some(json!("A")), Some(json!("B"))),
            ("trusted.extensions.\"1.3.6\"", None, Some(json!("web"))),
        ]
    );
    assert_eq!(differences(&paths.keep(&before), &paths.keep(&after), &paths), found);
}

#[test]
fn text_that_is_not_an_object_is_an_error() {
    let paths = mentioned_by(&["a = x"]);
    for wrong in ["", "null", "[]", "{", "{\"a\":1}x", "{\"b\":01}", "{\"b\":\"\\ud800\"}"] {
        assert!(paths.keep_text(wrong, "{}").is_err(), "{wrong}");
        assert!(paths.keep_text("{}", wrong).is_err(), "{wrong}");
    }
}

/// Writes JSON text, in which keys may come twice and be escaped.
fn text(depth: u32) -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "[0-2]".prop_map(|it| it),
        Just("1e3".to_owned()),
        Just("-0".to_owned()),
        Just("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"".to_owned()),
        "[ab1]{0,2}".prop_map(|it| format!("\"{it}\"")),
        Just("\"\\u0061\"".to_owned()),
        Just("{\"$serde_json::private::Number\":\"1\"}".to_owned()),
    ];
    scalar.prop_recursive(depth, 40, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|it| format!("[ {} ]", it.join(", "))),
            entries(inner),
        ]
    })
}

fn entries(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let key = prop_oneof![12 => "[abc]", 1 => Just("a.b".to_owned()), 1 => Just("\\u0061".to_owned()), 1 => Just(String::new())];
    proptest::collection::vec((key, inner), 0..7).prop_map(|it| {
        let entries: Vec<String> =
            it.into_iter().map(|(key, value)| format!("\"{key}\" : {value}")).collect();
        format!("{{{}}}", entries.join(" , "))
    })
}

fn path() -> impl Strategy<Value = Value> {
    let segment = prop_oneof![
        3 => "[abc]".prop_map(Value::from),
        1 => Just(json!("a.b")),
        1 => Just(json!("")),
        2 => (0..4_u64).prop_map(Value::from),
    ];
    let root =
        prop_oneof![3 => Just("fact"), 1 => Just("facts"), 2 => Just("trusted"), 1 => Just("name")];
    prop_oneof![
        1 => Just(json!("name")),
        1 => Just(json!("a")),
        12 => (root, proptest::collection::vec(segment, 0..4)).prop_map(|(root, rest)| {
            Value::Array([json!(root)].into_iter().chain(rest).collect())
        }),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let operand = prop_oneof![
        Just("a"),
        Just("1"),
        Just("1000"),
        Just("1e3"),
        Just("true"),
        Just("null"),
        Just("{}"),
        Just("")
    ];
    let operator = prop_oneof![Just("="), Just("<:"), Just(">"), Just("<=")];
    let pattern = prop_oneof![Just("^(a|aa)+\\1b"), Just("a"), Just(".*"), Just("^$")];
    let test = prop_oneof![
        3 => (operator, path(), operand).prop_map(|(operator, path, operand)| json!([operator, path, operand])),
        1 => (path(), pattern).prop_map(|(path, pattern)| json!(["~", path, pattern])),
    ];
    test.prop_recursive(3, 8, 3, |inner| {
        let some = proptest::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            inner.prop_map(|it| json!(["not", it])),
            (prop_oneof![Just("and"), Just("or")], some).prop_map(|(operator, terms)| {
                Value::Array([json!(operator)].into_iter().chain(terms).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rules_say_the_same_of_a_restricted_node(
        rules in proptest::collection::vec(rule(), 1..6),
        fact in entries(text(4)),
        trusted in entries(text(2)),
    ) {
        let rules: Vec<Condition> = rules.iter().map(|it| read(it).unwrap()).collect();
        let paths = paths(&rules);
        let parsed = |text: &str| serde_json::from_str::<Map<String, Value>>(text);
        let (Ok(whole), Ok(proved)) = (parsed(&fact), parsed(&trusted)) else {
            prop_assert!(paths.keep_text(&fact, &trusted).is_err());
            return Ok(());
        };
        let node = Node { name: "a".to_owned(), fact: whole, trusted: proved };
        let kept = paths.keep(&node);
        for rule in &rules {
            prop_assert_eq!(evaluate(rule, &kept), evaluate(rule, &node), "{:?} {:?}", rule, kept);
        }
        let (kept_fact, kept_trusted) = paths.keep_text(&fact, &trusted).unwrap();
        prop_assert_eq!(&kept.fact, &kept_fact);
        prop_assert_eq!(&kept.trusted, &kept_trusted);
        // One text for one content, whatever the order of the facts.
        prop_assert_eq!(Value::from(kept_fact).to_string(), Value::from(kept.fact.clone()).to_string());
        // What is restricted stays as it is, in a larger set too.
        prop_assert_eq!(&paths.keep(&kept), &kept);
        let first = MentionedPaths::of_rules(rules.iter().take(1));
        prop_assert_eq!(first.keep(&kept), first.keep(&node));
        prop_assert!(paths.covers(&first));
        prop_assert_eq!(&paths.union(&first), &paths);
        prop_assert_eq!(&paths.to_string().parse::<MentionedPaths>().unwrap(), &paths);
        prop_assert!(differences(&node, &kept, &paths).is_empty());
    }
}

/// Prints what restricting costs: `cargo test --release --lib mentioned -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn restricting_costs() {
    let rules = [
        "os.family = x",
        "os.release.major = 1",
        "cpus[0] = x",
        "trusted.extensions.pp_role = web",
        "kernel = Linux",
        "fact_100 = x",
    ];
    let paths = mentioned_by(&rules);
    let mut facts =
        object(json!({"os": {"family": "Debian", "release": {"major": "12"}}, "kernel": "Linux"}));
    for at in 0..300 {
        facts.insert(
            format!("fact_{at}"),
            json!({"a": "some text of a fact", "b": [1, 2, 3], "c": {"d": "x".repeat(20)}}),
        );
    }
    let text = Value::from(facts).to_string();
    let mut best = Duration::MAX;
    for _ in 0..200 {
        let began = Instant::now();
        assert!(paths.keep_text(&text, "{}").is_ok());
        best = best.min(began.elapsed());
    }
    println!("{} bytes: {best:?}", text.len());
}
