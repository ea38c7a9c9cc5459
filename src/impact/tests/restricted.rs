//! A node is compared by what rules mention alone, and nodes that cannot differ are not classified twice.

use super::*;
use crate::impact::read::ImpactError;
use crate::mentioned::MentionedPaths;
use crate::model::{MASKED, STORED_PATHS};

/// The standing of a node, found out without a comparison.
fn standing(estate: &Estate, node: &Node) -> Standing {
    match classify(estate, node) {
        Err(_) => Standing::Error,
        Ok(explanation) => match explanation.outcome {
            Outcome::Classified(_) => Standing::Classified,
            Outcome::Conflict(_) => Standing::Conflict,
        },
    }
}

/// A group whose rule cannot be evaluated for nodes with a certain fact.
fn slow(number: usize, parent: Option<usize>) -> Sketch {
    let id = format!("00000000-0000-4000-9000-{number:012}").parse().unwrap();
    Sketch {
        id,
        name: format!("G{number}"),
        parent,
        rule: Some(json!(["~", ["fact", "x"], "^(a|aa)+\\1b"])),
        environment: "production",
        trumps: false,
        parameters: BTreeMap::new(),
    }
}

/// Checks that what is written of an impact is read back from its text.
fn is_read_back(comparison: &StateComparison<'_>, survey: Survey) {
    let changes = || (comparison.groups().to_vec(), comparison.node_files().to_vec());
    let impact = Impact::gather(changes().0, changes().1, survey).unwrap();
    let written: Value =
        serde_json::from_str(&serde_json::to_value(&impact).unwrap().to_string()).unwrap();
    let written = written.as_object().unwrap();
    let read = Impact::read(changes().0, changes().1, written).unwrap();
    assert_eq!((read.nodes, read.counts), (impact.nodes, impact.counts));
    assert_eq!(read.entries, impact.entries);
    let mut others = changes().0;
    if others.pop().is_some() {
        let other = Impact::read(others, changes().1, written);
        assert!(matches!(other, Err(ImpactError::OtherChanges)), "{other:?}");
    }
}

#[test]
fn a_restricted_node_is_compared_as_the_whole_node() {
    let mut chance = fastrand::Rng::with_seed(18);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..200 {
        let size = chance.usize(3..12);
        let mut before: Vec<Sketch> = (0..size).map(|it| random(&mut chance, it)).collect();
        if chance.u8(..4) == 0 {
            let number = chance.usize(..size);
            before[number] = slow(number, before[number].parent);
        }
        let mut after = before.clone();
        for _ in 0..chance.usize(0..3) {
            let changed = chance.usize(..size);
            let id = after[changed].id;
            after[changed] = match chance.u8(..4) {
                0 => slow(changed, after[changed].parent),
                _ => Sketch { id, ..random(&mut chance, changed) },
            };
        }
        let (base, head) = (build(&before), build(&after));
        let comparison = compare(&base, &head);
        let paths = [&base, &head].map(MentionedPaths::of);
        let paths = paths[0].union(&paths[1]);
        let mut survey = Survey::default();
        for number in 0..12 {
            let mut node = Node::named(format!("n{number}"));
            node.fact.insert("a".to_owned(), json!(number / 3 % 3));
            node.fact.insert("b".to_owned(), json!(number % 3));
            node.fact.insert("c".to_owned(), json!({"other": [1, 2, 3]}));
            // What was not stored is not missing.
            match number {
                9 => node.fact.insert("b".to_owned(), json!(MASKED)),
                10 => node.fact.insert(STORED_PATHS.to_owned(), json!([["a"]])),
                _ => None,
            };
            if number == 10 {
                node.fact.shift_remove("b");
            }
            if number == 11 {
                node.fact.insert("x".to_owned(), json!(format!("{}!", "a".repeat(2_000))));
            }
            let compared = comparison.node(&node);
            survey.extend([(node.name.clone(), compared.clone())]);
            assert_eq!(comparison.node(&paths.keep(&node)), compared);
            let expected = [&base, &head].map(|estate| standing(estate, &node));
            assert_eq!(compared.standing, expected, "{:?}", comparison.groups());
            let kind = format!("{expected:?} {}", compared.change.is_some());
            *seen.entry(kind).or_default() += 1;
        }
        is_read_back(&comparison, survey);
    }
    assert!(seen.len() > 10 && seen.values().all(|it| *it > 1), "{seen:#?}");
}

#[test]
fn a_restricted_node_has_the_facts_that_only_a_mixture_puts_into_values() {
    let mut node = Node::named("n".to_owned());
    for (name, value) in [("a", "x"), ("b", "x"), ("c", "y")] {
        node.fact.insert(name.to_owned(), json!(value));
    }
    let estate = |text: &str, interpolation| {
        let mut estate = build(&[]);
        let variables = [("v".parse().unwrap(), json!(text))].into_iter().collect();
        let individual = Individual { variables, ..Individual::default() };
        estate.individuals = Arc::new([("n".to_owned(), individual)].into_iter().collect());
        Estate { interpolation, ..estate }
    };
    for (base, head) in [("$a", "$b"), ("$a", "$c"), ("$a", "$a"), ("$c", "z")] {
        let states = [estate(base, Interpolation::On), estate(head, Interpolation::Off)];
        for [base, head] in [[&states[0], &states[1]], [&states[1], &states[0]]] {
            let comparison = compare(base, head);
            let paths = MentionedPaths::of(base).union(&MentionedPaths::of(head));
            let paths = paths.with_mixtures([base, head]);
            let compared = comparison.node(&node);
            assert!(compared.change.is_some());
            assert_eq!(comparison.node(&paths.keep(&node)), compared);
        }
    }
}
