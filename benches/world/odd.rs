//! Small estates and nodes full of what is rare: errors, lists, numbers, negations, missing values.

use std::collections::BTreeMap;
use std::sync::Arc;

use clade::internals::hierarchy::{Estate, Hierarchy};
use clade::internals::model::{Group, GroupId, Interpolation, Node};
use clade::internals::rule;
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Patterns of all sorts; the last ones run out of their budget on the long texts below.
const PATTERNS: &[&str] = &[
    "a",
    "^ab",
    "b$",
    "(?i)AB",
    "a|b",
    "^(ab|ba)+$",
    r"\d",
    r"^a.*b",
    "x?",
    ".*",
    "",
    r"\bab\b",
    "é",
    "^(a|aa)+\\1b",
    "^(?!a)b",
    "(?=.*b)a",
    r"(a)\1",
    r"(?m)^b$",
    "a{2,3}b",
    "[ab]c",
    "[^a]b",
    "ab(c|d)?",
    r"(a*)*\1b",
    r"^(a|aa)+\1b",
    r"(?:a*a*a*a*)*\Rb",
];

const TEXTS: &[&str] = &[
    "a", "b", "ab", "ba", "abab", "aab", "", "5", "5.0", "-1", "true", "null", "é", "abé", "a\nb",
    "b\n", "xabx", "abc", "10K", " 7 ", "1e3", "1E+3",
];

/// What is read as a number once for all rules, since it is long: whole numbers and what is none.
fn long_number(rng: &mut Rng) -> String {
    let digits = "7".repeat(70);
    match rng.u8(..5) {
        0 => format!("{}5", "0".repeat(70)),
        1 => format!("{digits}x"),
        2 => format!(" {digits} "),
        3 => format!("{digits}.0"),
        _ => digits,
    }
}

fn text(rng: &mut Rng) -> String {
    match rng.u8(..10) {
        // What the worst of the patterns cannot be searched in.
        0 => "a".repeat(60),
        1 => format!("{}b", "a".repeat(60)),
        2 => long_number(rng),
        _ => rng.choice(TEXTS).map(ToString::to_string).unwrap_or_default(),
    }
}

fn key(rng: &mut Rng) -> &'static str {
    rng.choice(["a", "b", "c", "trusted", "name", "0"].as_slice()).copied().unwrap_or("a")
}

fn path(rng: &mut Rng) -> Value {
    match rng.u8(..10) {
        0..3 => json!("name"),
        8.. => json!(["trusted", "certname"]),
        3 => json!(["name"]),
        4 => json!(["fact"]),
        5 => json!("a"),
        6 => json!(["name", "a"]),
        _ => {
            let root = *rng.choice(["fact", "facts", "trusted"].as_slice()).unwrap();
            let mut segments = vec![json!(root), json!(key(rng))];
            while rng.u8(..3) == 0 {
                segments.push(if rng.bool() { json!(key(rng)) } else { json!(rng.u8(..3)) });
            }
            segments.into()
        }
    }
}

fn condition(depth: u8, rng: &mut Rng) -> Value {
    let choice = if depth == 0 { rng.u8(3..10) } else { rng.u8(..10) };
    let terms = |operator: &str, rng: &mut Rng| -> Value {
        let count = rng.usize(1..5);
        std::iter::once(json!(operator))
            .chain((0..count).map(|_| condition(depth - 1, rng)))
            .collect()
    };
    match choice {
        0 => terms("and", rng),
        1 => terms("or", rng),
        2 => json!(["not", condition(depth - 1, rng)]),
        3..5 if rng.u8(..3) == 0 => json!(["~", path(rng), r"^(a|aa)+\1b"]),
        3..5 => json!(["~", path(rng), rng.choice(PATTERNS)]),
        5 => {
            let operator = *rng.choice([">", ">=", "<", "<="].as_slice()).unwrap();
            json!([operator, path(rng), text(rng)])
        }
        6 => json!(["<:", path(rng), text(rng)]),
        _ => json!(["=", path(rng), text(rng)]),
    }
}

fn value(depth: u8, rng: &mut Rng) -> Value {
    match rng.u8(..if depth == 0 { 7 } else { 10 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.i8(..)),
        3 => {
            let long = "7".repeat(70);
            let numbers = ["5.0", "1e3", "-0", "5", &long];
            serde_json::from_str(rng.choice(numbers.as_slice()).unwrap()).unwrap()
        }
        7 => (0..rng.usize(..4)).map(|_| value(depth - 1, rng)).collect(),
        8 | 9 => map(depth - 1, rng).into(),
        _ => json!(text(rng)),
    }
}

fn map(depth: u8, rng: &mut Rng) -> Map<String, Value> {
    (0..rng.usize(..5)).map(|_| (key(rng).to_owned(), value(depth, rng))).collect()
}

/// Makes a node.
pub fn node(rng: &mut Rng) -> Node {
    let (name, mut trusted) = (text(rng), map(3, rng));
    // Mostly the certificate has the name of the node.
    let certname = match rng.u8(..6) {
        0 => None,
        1 => Some(value(1, rng)),
        2 => Some(json!(text(rng))),
        _ => Some(json!(name)),
    };
    trusted.extend(certname.map(|it| ("certname".to_owned(), it)));
    Node { name, fact: map(3, rng), trusted }
}

/// Makes an estate of some groups.
pub fn estate(rng: &mut Rng) -> Estate {
    let count = rng.usize(1..30);
    let ids: Vec<GroupId> = (0..count)
        .map(|it| format!("00000000-0000-4000-8000-{:012}", it + 1).parse().unwrap())
        .collect();
    let groups = ids.iter().enumerate().map(|(at, id)| {
        let parent = if at == 0 || rng.u8(..3) == 0 { GroupId::ROOT } else { ids[rng.usize(..at)] };
        group(*id, parent, at, rng)
    });
    let hierarchy = Hierarchy::build(groups.collect()).unwrap();
    let individuals = if rng.u8(..4) == 0 {
        let own = json!({"a": {"p": value(1, rng)}});
        let individual = clade::internals::model::Individual {
            classes: serde_json::from_value(own).unwrap(),
            ..Default::default()
        };
        [("a".to_owned(), individual)].into_iter().collect()
    } else {
        BTreeMap::default()
    };
    Estate {
        hierarchy,
        individuals: individuals.into(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: Interpolation::Off,
    }
}

/// Puts facts into the values of an estate, often in the same way.
pub fn with_facts_in_values(estate: Estate, rng: &mut Rng) -> Estate {
    let texts = [
        r#""${a[b]} \\$x $b""#,
        r#"{"$k": [["${trusted[certname]}é"], "$c[0]", "${b[0]}"], "l": "\\\"$0"}"#,
        r#""$a""#,
        "1",
    ];
    let mut values = |it: &Map<String, Value>| -> Map<String, Value> {
        let fields = it.iter().map(|(key, value)| match value {
            Value::Object(inner) if key.starts_with(['a', 'b', 'd']) => {
                let inner = inner.iter().map(|(key, it)| (key.clone(), replaced(it, &texts, rng)));
                (key.clone(), Value::Object(inner.collect()))
            }
            value => (key.clone(), replaced(value, &texts, rng)),
        });
        fields.collect()
    };
    let mut changed = |it: Value| -> Value {
        let Value::Object(fields) = it else { return it };
        values(&fields).into()
    };
    let groups = estate.hierarchy.groups().map(|group| {
        let read = |value: Value| serde_json::from_value(value).unwrap();
        let [classes, config_data] = [&group.classes, &group.config_data]
            .map(|it| Arc::new(read(changed(serde_json::to_value(it.as_ref()).unwrap()))));
        let variables = changed(serde_json::to_value(group.variables.as_ref()).unwrap());
        let variables = Arc::new(serde_json::from_value(variables).unwrap());
        Group { classes, config_data, variables, ..group.clone() }
    });
    let hierarchy = Hierarchy::build(groups.collect()).unwrap();
    Estate { hierarchy, interpolation: Interpolation::On, ..estate }
}

/// Returns another value in place of most.
fn replaced(value: &Value, texts: &[&str], rng: &mut Rng) -> Value {
    match rng.usize(..=texts.len()) {
        0 => value.clone(),
        at => serde_json::from_str(texts[at - 1]).unwrap(),
    }
}

fn group(id: GroupId, parent: GroupId, at: usize, rng: &mut Rng) -> Group {
    let rule = (rng.u8(..6) > 0).then(|| rule::read(&condition(2, rng)).unwrap());
    // Often the same, so that leaves agree, and sometimes not; now and then spelt otherwise.
    let value = |rng: &mut Rng| -> Value {
        let text = *rng
            .choice(
                [
                    "1",
                    "1",
                    "1",
                    "1.0",
                    "1.00",
                    "null",
                    "{\"k\": 1, \"l\": \"é\"}",
                    "{\"l\": \"é\", \"k\": 1}",
                ]
                .as_slice(),
            )
            .unwrap();
        serde_json::from_str(text).unwrap()
    };
    let classes = |rng: &mut Rng| {
        let classes: Map<String, Value> = (0..rng.usize(..3))
            .map(|_| {
                let class = *rng.choice(["a", "b::c", "d"].as_slice()).unwrap();
                let parameters: Map<String, Value> =
                    (0..rng.usize(..3)).map(|it| (format!("p{it}"), value(rng))).collect();
                (class.to_owned(), parameters.into())
            })
            .collect();
        Arc::new(serde_json::from_value(classes.into()).unwrap())
    };
    let (own, config_data) = (classes(rng), classes(rng));
    let variables: Map<String, Value> =
        (0..rng.usize(..2)).map(|it| (format!("v{it}"), value(rng))).collect();
    let environment = if rng.u8(..8) == 0 { "other" } else { "production" };
    Group {
        id,
        name: format!("Group \"{at}\" é").parse().unwrap(),
        parent,
        environment: environment.parse().unwrap(),
        environment_trumps: rng.u8(..6) == 0,
        description: None,
        rule: rule.map(Arc::new),
        classes: own,
        variables: Arc::new(serde_json::from_value(variables.into()).unwrap()),
        config_data,
    }
}
