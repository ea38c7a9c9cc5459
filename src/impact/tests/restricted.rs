//! A node is compared by what rules mention alone, and nodes that cannot differ are not classified twice.

use super::*;
use crate::mentioned::MentionedPaths;

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
        let paths = [&base, &head].map(|it| MentionedPaths::of(&it.hierarchy));
        let paths = paths[0].union(&paths[1]);
        for number in 0..12 {
            let mut node = Node::named(format!("n{number}"));
            node.fact.insert("a".to_owned(), json!(number / 3 % 3));
            node.fact.insert("b".to_owned(), json!(number % 3));
            node.fact.insert("c".to_owned(), json!({"other": [1, 2, 3]}));
            if number == 11 {
                node.fact.insert("x".to_owned(), json!(format!("{}!", "a".repeat(2_000))));
            }
            let compared = comparison.node(&node);
            assert_eq!(comparison.node(&paths.keep(&node)), compared);
            let expected = [&base, &head].map(|estate| standing(estate, &node));
            assert_eq!(compared.standing, expected, "{:?}", comparison.groups());
            let kind = format!("{expected:?} {}", compared.change.is_some());
            *seen.entry(kind).or_default() += 1;
        }
    }
    assert!(seen.len() > 10 && seen.values().all(|it| *it > 1), "{seen:#?}");
}
