use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{Condition, Node};
use crate::rule::{evaluate, read_console};
use crate::table::each_row;

fn solve(rules: &[&str]) -> Satisfiability {
    let mut solver = Solver::default();
    let rules: Vec<Condition> = rules.iter().map(|it| read_console(it).unwrap()).collect();
    let formulas: Vec<Formula> = rules.iter().map(|it| solver.compile(it)).collect();
    let verdict = solver.solve(&formulas.iter().collect::<Vec<_>>());
    if let Satisfiability::Together(node) = &verdict {
        for rule in &rules {
            assert_eq!(evaluate(rule, node), Ok(true), "{rule:?} {node:?}");
        }
    }
    verdict
}

#[test]
fn what_can_hold_together_is_shown_and_what_cannot_is_known() {
    let rows = [
        (&["os.family = Debian", "os.family = RedHat"][..], false),
        (&["os.family = Debian", "os.name = CentOS"], true),
        (&["name ~ \"^web\"", "trusted.certname ~ \"^db\""], false),
        (&["name ~ \"^web\"", "name ~ \"com$\""], true),
        (&["name ~ \"^web\" and not (name ~ \"^web1\")", "name = web1"], false),
        (&["memory.total >= 10", "memory.total < 10"], false),
        (&["memory.total > 10", "memory.total < 11"], true),
        (&["memory.total > 10", "memory.total < 11", "not (memory.total > 10)"], false),
        (&["release ~ \"^2$\"", "release < 10"], true),
        (&["release ~ \"^2019$\"", "release >= 2016"], true),
        (&["release ~ \"^[78]$\"", "release < 10"], true),
        (&["release ~ \"2$\"", "release > 1.5"], true),
        (&["memory ~ \"5\"", "memory > 100"], true),
        (&["memory ~ \"5\"", "memory > 100", "memory <= 105", "memory !~ \"^105\""], true),
        (&["offset ~ \"7\"", "offset < -100", "offset != -107"], true),
        (&["release ~ \"^8[.]\"", "release > 8", "release < 9"], true),
        (&["release >= 8 and release < 9", "release ~ \"^8\""], true),
        (&["disks <: sda", "disks <: sdb", "not (disks <: sdc)"], true),
        (&["disks <: sda", "disks = sda"], false),
        (&["name = a or name = b", "name = b or name = c"], true),
        (&["name = a or name = b", "name = c or name = d"], false),
        (&["not (role = web)", "not (role = db)"], true),
        (&["processors.models[1] ~ Intel", "processors.models[0] = x"], true),
        (&["virtual = true", "not (virtual ~ t)"], true),
        (&["port = 5", "port > 5"], false),
        (&["port = \"5\" and port >= 5"], true),
        (&["a != x and a !~ y", "a = z"], true),
        (&["a ~ \"^$\"", "b = x"], true),
        (&["a ~ \"^$\"", "a = \"\""], true),
        (&["a ~ \"^$\"", "a ~ x"], false),
        (&["name ~ \"^$\""], false),
        (&["tags <: web", "tags[0] = db"], true),
        (&["tags <: web", "tags[0] = web"], true),
        (&["not (tags <: web)", "tags[0] = web"], false),
        (&["tags[0] ~ \"^web\"", "not (tags <: web)"], true),
        (&["tags <: web", "not (tags[0] = web)", "not (tags[1] ~ web)"], true),
        (&["tags <: web", "tags <: db", "tags[2].x = y"], true),
        (&["tags = web", "tags[0] = db"], false),
        (&["tags <: web", "tags.x = db"], false),
        (&["tags[0] = a", "tags.x = a"], false),
        (&["lists[0] <: a", "lists[0][0] = b"], true),
        (&["os = Linux", "os.family = Debian"], false),
        (&["os = Linux or os.family = x", "os.family = x"], true),
        (&["name = a or name = b or role = x", "name = c or name ~ \"^b\""], true),
        (&["not (name = a or name = b)", "name = a or name = b"], false),
        (&["not (name = a or name = b)", "name = a or name = b or name = c"], true),
        (&["port = 5 or port = 6", "port > 5"], true),
        (&["trusted.certname.x = a"], false),
        (&["a = 1e3", "a = 1E+3"], true),
        (&["a = 1e3", "a = 1e+4"], false),
        (&["a = 1e3", "not (a ~ \"\")"], true),
        (&["a = 1e3", "a ~ x"], false),
        (&["name = 1e3", "name = 1e+3"], false),
        (&["a = 1e3 or a = x", "a = 1e+3 or a = y"], true),
    ];
    each_row(rows, |(rules, together)| check(rules, together));
}

#[test]
fn numbers_are_chosen_between_the_nearest_bounds() {
    let rows = [
        (
            &[
                "n > \"-170141183460469231731687303715884105728\"",
                "n < \"170141183460469231731687303715884105727\"",
            ],
            true,
        ),
        (&["n > 1 and n > 2 and n > 3", "n < 9 and n < 7 and not (n <= 4)"], true),
        (&["n > 1 and n > 7", "n < 9 and n < 7"], false),
        (&["n > abc", "n > 5"], false),
        (&["n >= 5 and n <= 5.0", "not (n > 5)"], true),
    ];
    each_row(rows, |(rules, together)| check(rules, together));
}

fn check(rules: &[&str], together: bool) {
    match solve(rules) {
        Satisfiability::Together(_) => assert!(together, "{rules:?}"),
        Satisfiability::Never => assert!(!together, "{rules:?}"),
        Satisfiability::Undecided => panic!("undecided: {rules:?}"),
    }
}

#[test]
fn what_cannot_be_decided_is_said() {
    assert_eq!(solve(&["name ~ \"a(?=b)\""]), Satisfiability::Undecided);
    // No list is made as long as that.
    assert_eq!(solve(&["disks[5000] = sda"]), Satisfiability::Undecided);
}

/// Rules over few paths and values, so that many hold together by chance.
fn rules() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["name", "a", "a[0]", "b", "b.c", "trusted.certname"]);
    let test = (path, 0..7_usize, 0..6_usize).prop_map(|(path, operator, value)| {
        // The last two are one number, and two strings.
        let texts = ["x", "y", "xy", "z", "1e3", "1E+3"];
        let patterns = ["^x", "y$", "^[xy]*$", "^.{2}$", "e", "^1e3$"];
        match operator {
            0 | 1 => format!("{path} = {}", texts[value]),
            2 | 3 => format!("{path} ~ \"{}\"", patterns[value]),
            4 => format!("{path} > {value}"),
            5 => format!("{path} <= {value}"),
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

/// Nodes over the same few values.
fn nodes() -> Vec<Node> {
    let values = [
        "null",
        "\"\"",
        "\"x\"",
        "\"xy\"",
        "\"z\"",
        "1",
        "3",
        "1e3",
        "\"1e3\"",
        "[\"x\"]",
        "[\"y\", \"z\"]",
        "[1e3]",
    ];
    let mut nodes = Vec::new();
    for name in ["x", "y", "xy", "z", "2", "yx"] {
        for a in values {
            for c in values {
                let fact = format!("{{\"a\": {a}, \"b\": {{\"c\": {c}}}}}");
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

proptest! {
    #[test]
    fn a_node_that_meets_rules_contradicts_never(one in rules(), two in rules()) {
        let verdict = solve(&[&one, &two]);
        let (one, two) = (read_console(&one).unwrap(), read_console(&two).unwrap());
        let mut solver = Solver::default();
        let formulas = [&one, &two].map(|rule| solver.compile(rule));
        let [a, b] = [0, 1].map(|at| solver.outline(&[&formulas[at]]));
        let may_meet = solver.may_meet(&a, &b);
        let meets = |node: &Node| evaluate(&one, node) == Ok(true) && evaluate(&two, node) == Ok(true);
        if let Some(node) = nodes().iter().find(|it| meets(it)) {
            prop_assert!(verdict != Satisfiability::Never, "{:?} meets both", node);
            prop_assert!(may_meet, "{:?} meets both", node);
        }
    }
}

/// Tests of one value, of which many exclude each other at a glance.
fn demands() -> impl Strategy<Value = String> {
    let test = prop::sample::select(vec![
        "@ = web",
        "@ = db",
        "@ = 1",
        "@ = \"é\"",
        "@ = web or @ = db",
        "@ = webx or @ = wex",
        "@ = 5 or @ = 6",
        "@ = a or @ = \"é\"",
        "@ ~ \"^web\"",
        "@ ~ \"^we\"",
        "@ ~ \"^wex\"",
        "@ ~ \"x$\"",
        "@ ~ \"b$\"",
        "@ ~ \"^(web|db)$\"",
        "@ ~ \"(e|w)b$\"",
        "@ ~ \"^$\"",
        "@ ~ \"^[a-z]{3}$\"",
        "@ ~ \"^.$\"",
        "@ ~ \"^é|^a\"",
        "@ ~ \"^w|b\"",
        "@ ~ \"(?i)^web$\"",
        "@ ~ \"^5\"",
        "@ > 5",
        "@ >= 5",
        "@ < 5",
        "@ <= 5",
        "@ > 6",
        "@ < 6.5",
        "@ >= 1e1",
        "@ <: web",
        "not (@ = web)",
        "not (@ ~ \"^web\")",
        "not (@ > 5)",
    ]);
    prop::collection::vec(test, 1..3).prop_map(|tests| format!("({})", tests.join(") and (")))
}

proptest! {
    #[test]
    fn rules_that_outlines_tell_apart_hold_together_never(
        path in prop::sample::select(vec!["name", "fact.a"]),
        one in demands(),
        other in demands(),
    ) {
        let mut solver = Solver::default();
        let [one, other] =
            [one, other].map(|it| read_console(&it.replace('@', path)).unwrap());
        let formulas = [solver.compile(&one), solver.compile(&other)];
        let [mine, theirs] = [&formulas[0], &formulas[1]].map(|it| solver.outline(&[it]));
        let together = solver.solve(&[&formulas[0], &formulas[1]]);
        if let Satisfiability::Together(node) = &together {
            prop_assert!(solver.may_meet(&mine, &theirs), "{node:?}");
        }
        // Values that the solver need not have thought of.
        let texts = ["", "web", "db", "wex", "webx", "a", "é", "WEB", "1", "4", "5", "6", "6.2", "10"];
        let numbers = [1, 4, 5, 6, 10].map(serde_json::Value::from);
        for value in texts.iter().map(|it| (*it).into()).chain(numbers).chain([["web"].into()]) {
            let name = value.as_str().filter(|it| !it.is_empty()).unwrap_or("n").to_owned();
            let mut node = Node::named(name);
            node.fact.insert("a".to_owned(), value);
            let both = [&one, &other].map(|it| evaluate(it, &node));
            if both == [Ok(true), Ok(true)] && node.fact["a"] != "é" {
                prop_assert!(solver.may_meet(&mine, &theirs), "{node:?}");
            }
        }
    }
}

#[test]
fn only_patterns_that_outlines_ask_for_are_prepared() {
    let many = |count: usize| (0..count).map(|it| format!("x ~ \"a{it}\"")).collect::<Vec<_>>();
    let rows = [
        ("x ~ a".to_owned(), 1, 1),
        ("x ~ a and y ~ b".to_owned(), 2, 2),
        ("x ~ a and x !~ b".to_owned(), 1, 2),
        ("not (x ~ a)".to_owned(), 0, 0),
        ("name !~ a".to_owned(), 1, 1),
        (many(16).join(" or "), 16, 16),
        (many(17).join(" or "), 0, 0),
        ("x = 1 or (y = 2 and (x ~ a or y ~ b))".to_owned(), 0, 0),
    ];
    each_row(rows, |(rule, prepared, asked_for)| {
        let automata = Arc::default();
        let mut solver = Solver::sharing(&automata);
        let formula = solver.compile(&read_console(&rule).unwrap());
        solver.prepare(std::iter::once(vec![&formula]));
        assert_eq!(automata.count(), prepared, "{rule}");
        solver.outline(&[&formula]);
        assert_eq!(automata.count(), asked_for, "{rule}");
    });
}
