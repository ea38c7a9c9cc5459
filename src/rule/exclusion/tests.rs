use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::*;
use crate::model::Node;
use crate::rule::{evaluate, read_console};
use crate::table::each_row;

/// How much a proof may take.
#[derive(Clone, Copy)]
enum Effort {
    Quick,
    Thorough,
}

fn prover<'r>(effort: Effort) -> Prover<'r> {
    match effort {
        Effort::Quick => Prover::quick(),
        Effort::Thorough => Prover::thorough(&Arc::default()),
    }
}

fn excludes(rules: &[&str], effort: Effort) -> bool {
    let rules: Vec<Condition> = rules.iter().map(|it| read_console(it).unwrap()).collect();
    let mut prover = prover(effort);
    let claims: Vec<Claim<'_>> = rules.iter().map(|it| prover.claim(it)).collect();
    prover.excludes(&claims.iter().collect::<Vec<_>>(), 10_000)
}

#[test]
fn what_excludes_each_other_is_proven() {
    let rows = [
        &["a = x", "a = y"][..],
        &["a = x and a != x"],
        &["a = x", "a !~ x"],
        &["a = x", "a ~ \"^y\""],
        &["a ~ \"x\" and a !~ \"x\""],
        &["a <: x and a /: x"],
        &["a <: x", "a = x"],
        &["n > 5 and n < 3"],
        &["n > 5", "n <= 5"],
        &["n >= 1e3 and not (n >= 1000.0)"],
        &["n = 7", "n > 7"],
        &["n = abc", "n > 1"],
        &["name = x and trusted.certname = y"],
        &["name ~ \"^web\"", "trusted.certname = db1"],
        &["not (name ~ \".*\")"],
        &["name <: x"],
        &["name = a or name = b", "name = c"],
        &["(a = x or b = x) and a = y and b = y"],
        &["not (a = x or b = x)", "b = x"],
        &["os = Linux", "os.family = Debian"],
        &["os <: Linux", "os.family = Debian"],
        &["a.b = x", "a[0] = x"],
        &["fact.a = x", "facts.a = y"],
    ];
    each_row(rows, |rules| {
        assert!(excludes(rules, Effort::Quick), "{rules:?}");
    });
}

#[test]
fn patterns_that_exclude_each_other_are_proven_with_more_effort() {
    for rules in [
        &["name ~ \"^web\"", "name ~ \"^db\""][..],
        &["name ~ \"^web\"", "name !~ \"^w\""],
        &["a ~ \"^web\"", "a ~ \"^db\""],
        &["a ~ \"^[a-c]+$\"", "a ~ \"^[d-f]\""],
        &["a ~ \"^web-\\\\d+$\"", "a ~ \"^web-[a-z]\""],
        &["name ~ \"^web$\" and name != web"],
    ] {
        assert!(!excludes(rules, Effort::Quick), "{rules:?}");
        assert!(excludes(rules, Effort::Thorough), "{rules:?}");
    }
}

#[test]
fn what_can_hold_or_is_not_understood_is_not_refuted() {
    let rows = [
        &["a != x and a != y"][..],
        &["a != x", "a !~ \".*\""],
        &["n > 5 and n != 6"],
        &["n > 5 and n < 6"],
        &["n >= 5 and n <= 5"],
        &["n >= 5 and n <= 5 and n != 5"],
        &["n > 9223372036854775807 and n < 9223372036854775808"],
        &["not (n > 5) and not (n <= 5)"],
        &["a <: x", "a <: y"],
        &["tags <: web", "tags[0] = db"],
        &["a = \"5\" and a > 4"],
        &["a = true and a !~ t"],
        &["name = x and a = y"],
        &["name != x", "trusted.certname != y"],
        // What is said otherwise.
        &["n > 10K"],
        &["os = x", "os.family != y"],
        // Texts beyond printable ASCII on one line.
        &["a ~ \"^x$\" and a != x"],
        &["a ~ \"^[^a]$\"", "a ~ \"^[^ -`b-~]$\""],
        &["a ~ \"^(é|ab)$\"", "a ~ \"^(é|cd)$\""],
        &["a ~ \"^$\"", "a ~ \"^[a-z]*$\""],
        &["a ~ \"^a\" and a ~ \"b$\" and a !~ \"a.*b\""],
        &["a ~ \"(?i)^WEB\"", "a ~ \"^web\""],
        &["a ~ \"\\\\s\"", "a ~ \"^[a-z]\""],
        &["a ~ \"a(?=b)\"", "a ~ \"^c\""],
    ];
    each_row(rows, |rules| {
        assert!(!excludes(rules, Effort::Quick), "{rules:?}");
        assert!(!excludes(rules, Effort::Thorough), "{rules:?}");
    });
}

#[test]
fn a_proof_that_takes_too_long_is_given_up() {
    let wide: Vec<String> = (0..12)
        .map(|at| format!("(a{at} = x or b{at} = x or c{at} = x)"))
        .chain(["z = 1 or z = 2".to_owned(), "z = 3 or z = 4".to_owned()])
        .collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    assert!(excludes(&wide, Effort::Quick), "the fewest alternatives come first");
    let names: Vec<String> = (0..200).map(|at| format!("name = n{at}")).collect();
    let others: Vec<String> = (200..400).map(|at| format!("name = n{at}")).collect();
    let (names, others) = (names.join(" or "), others.join(" or "));
    assert!(!excludes(&[&names, &others], Effort::Quick));
}

#[test]
fn a_name_decides_some_conditions() {
    for (rule, expected) in [
        ("name = web1", Some(true)),
        ("trusted.certname ~ \"^db\"", Some(false)),
        ("not (name ~ \"^web\")", Some(false)),
        ("name = web1 and a = x", None),
        ("name = db1 and a = x", Some(false)),
        ("name = web1 or a = x", Some(true)),
        ("name = db1 or a = x", None),
        ("not (name = db1 or a = x)", None),
    ] {
        assert_eq!(decide_by_name(&read_console(rule).unwrap(), "web1"), expected, "{rule}");
    }
}

/// Rules over few paths and values, so that many hold together by chance.
fn rules() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["name", "a", "b", "b.c", "b[0]", "trusted.certname"]);
    let test = (path, 0..8_usize, 0..7_usize).prop_map(|(path, operator, value)| {
        let texts = ["x", "y", "xy", "2", "true", "1e3", "1E+3"];
        let patterns = ["^x", "y$", "^[xy]+$", "^.{2}$", "[^x]", "e", "^1e3$"];
        let numbers = ["0", "1", "2", "2.5", "x", "1e3", "999"];
        match operator {
            0 | 1 => format!("{path} = {}", texts[value]),
            2 | 3 => format!("{path} ~ \"{}\"", patterns[value]),
            4 => format!("{path} > \"{}\"", numbers[value]),
            5 => format!("{path} <= \"{}\"", numbers[value]),
            6 => format!("{path} != {}", texts[value]),
            _ => format!("{path} <: {}", texts[value]),
        }
    });
    test.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|it| format!("({})", it.join(" and "))),
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|it| format!("({})", it.join(" or "))),
            inner.prop_map(|it| format!("not ({it})")),
        ]
    })
}

/// Nodes over the same few values, and some beside them.
fn nodes() -> Vec<Node> {
    let values = [
        "null",
        "\"\"",
        "\"x\"",
        "\"y\"",
        "\"xy\"",
        "1e3",
        "\"1e3\"",
        "[1e3]",
        "\"yx\"",
        "\"x\\n\"",
        "\"é\"",
        "\"2\"",
        "2",
        "1.5",
        "2.25",
        "3",
        "true",
        "\"true\"",
        "[]",
        "[\"x\"]",
        "[\"y\", 2]",
        "[\"x\", \"y\", \"xy\", \"2\", \"true\"]",
    ];
    let nested = values.iter().map(|it| format!("{{\"c\": {it}}}"));
    let at_b: Vec<String> = values.iter().map(|it| (*it).to_owned()).chain(nested).collect();
    let mut nodes = Vec::new();
    for name in ["x", "y", "xy", "2", "yx", "true", "db"] {
        for a in values {
            for b in &at_b {
                let fact = format!("{{\"a\": {a}, \"b\": {b}}}");
                let trusted = format!("{{\"certname\": \"{name}\"}}");
                nodes.push(Node {
                    name: name.to_owned(),
                    fact: serde_json::from_str(&fact).unwrap(),
                    trusted: serde_json::from_str(&trusted).unwrap(),
                });
            }
        }
    }
    nodes
}

#[test]
fn what_a_node_meets_is_never_refuted() {
    use proptest::test_runner::{Config, TestRunner};
    let nodes = nodes();
    let mut proven = 0;
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(400) });
    let strategy = (rules(), rules());
    for _ in 0..400 {
        let tree = strategy.new_tree(&mut runner).unwrap();
        let (one, two): (String, String) = tree.current();
        let effort = if proven % 2 == 0 { Effort::Thorough } else { Effort::Quick };
        if !excludes(&[&one, &two], effort) {
            continue;
        }
        proven += 1;
        let (a, b) = (read_console(&one).unwrap(), read_console(&two).unwrap());
        let meets = |it: &&Node| evaluate(&a, it) == Ok(true) && evaluate(&b, it) == Ok(true);
        assert!(
            !nodes.iter().any(|it| meets(&it)),
            "{:?} meets {one} and {two}",
            nodes.iter().find(meets)
        );
    }
    assert!(proven > 20, "{proven}");
}

#[test]
fn what_the_name_decides_holds_for_every_node_of_the_name() {
    use proptest::test_runner::TestRunner;
    let nodes = nodes();
    let mut runner = TestRunner::default();
    for _ in 0..100 {
        let rule = rules().new_tree(&mut runner).unwrap().current();
        let condition = read_console(&rule).unwrap();
        for node in nodes.iter().step_by(7) {
            if let Some(decided) = decide_by_name(&condition, &node.name) {
                assert_eq!(evaluate(&condition, node), Ok(decided), "{rule} {node:?}");
            }
        }
    }
}
