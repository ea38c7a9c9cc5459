//! The fast paths of a snapshot agree with the plain ones.

mod bodies;
mod changing;
mod changing_world;
mod withheld;

use std::sync::Arc;

use clade::internals::classification::{self, ClassificationError, Outcome, Version};
use clade::internals::hierarchy::{Estate, GroupIndex};
use clade::internals::mentioned::MentionedPaths;
use clade::internals::model::{Budget, BudgetItem, Meter, Node};
use clade::internals::snapshot::{AnsweredNode, Index, LiveSnapshot, NoDocument, Snapshot};
use clade::internals::validation::{
    FileKind, Search, SourceContent, SourceFile, read_file_within, validate,
};
use fastrand::Rng;

use self::bodies::{in_full, reads_the_same};
use crate::world::{Scale, estates, nodes, odd};

/// Compares the index with asking every group; returns what both say.
fn matches(
    estate: &Estate,
    index: &Index,
    node: &Node,
) -> Result<Vec<GroupIndex>, ClassificationError> {
    let plain = classification::matches(&estate.hierarchy, node);
    assert_eq!(index.matches(&estate.hierarchy, &index.resolve(node)), plain, "{node:?}");
    if let Ok(found) = &plain {
        let some = estate.hierarchy.indexes().step_by(1 + estate.hierarchy.len() / 8);
        for group in found.iter().copied().chain(some) {
            let is_member = classification::is_member(&estate.hierarchy, group, node);
            assert_eq!(is_member, Ok(found.contains(&group)), "{node:?}");
        }
    }
    plain
}

fn files(groups: usize) -> Vec<SourceFile> {
    let files = estates::files(Scale::of(groups), 1).into_iter();
    let file = |(path, text): (String, String)| SourceFile {
        path: path.into(),
        content: SourceContent::Bytes(text.into_bytes().into()),
    };
    files.map(file).collect()
}

fn estate(groups: usize) -> Estate {
    let checked = validate(&files(groups), Search::Decisive);
    checked.estate.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics.first()))
}

#[test]
fn an_estate_of_10000_groups_takes_half_of_the_budget_at_most() {
    let meter = Arc::new(Meter::new(Budget::DEFAULT));
    for file in files(10_000) {
        read_file_within(&file, FileKind::Groups, &meter).unwrap();
    }
    let counts = meter.counts();
    for item in BudgetItem::ALL {
        assert!(2 * counts.get(item) <= Budget::DEFAULT.limit(item), "{item}: {counts:?}");
    }
}

#[test]
fn the_index_agrees_with_asking_every_group_in_odd_estates() {
    let mut rng = Rng::with_seed(7);
    let (mut found, mut errors) = (0, 0);
    for _ in 0..300 {
        let estate = odd::estate(&mut rng);
        let index = Index::new(&estate.hierarchy);
        for _ in 0..12 {
            match matches(&estate, &index, &odd::node(&mut rng)) {
                Ok(groups) => found += groups.len() - 1,
                Err(_) => errors += 1,
            }
        }
    }
    // The worlds have something to compare.
    assert!(found > 1000 && errors > 20, "{found} {errors}");
}

#[test]
fn the_index_agrees_with_asking_every_group_in_a_usual_estate() {
    let scale = Scale::of(1000);
    let estate = estate(scale.groups);
    let index = Index::new(&estate.hierarchy);
    let mut found = 0;
    for node in nodes::nodes(scale, 100, 2) {
        found += matches(&estate, &index, &node).unwrap().len();
    }
    assert!(found > 300, "{found}");
}

/// The document by the plain path, or the error in its place.
fn plainly(estate: &Estate, node: &Node, version: Version) -> Result<String, String> {
    let explanation = classification::classify(estate, node).map_err(|it| it.to_string())?;
    match &explanation.outcome {
        Outcome::Classified(result) => {
            Ok(classification::classified(&explanation, result, version).to_string())
        }
        Outcome::Conflict(conflicts) => {
            Err(classification::conflict_details(&estate.hierarchy, conflicts).to_string())
        }
    }
}

/// Answers from an empty cache, from a full one and without one: all three are the same.
fn quickly(live: &LiveSnapshot, node: &Node, version: Version) -> Result<String, String> {
    let snapshot = live.snapshot();
    let index = snapshot.index();
    let hierarchy = &snapshot.estate.hierarchy;
    let groups = index.matches(hierarchy, &index.resolve(node)).map_err(|it| it.to_string())?;
    let text = |answer: Result<Vec<u8>, NoDocument<'_>>| match answer {
        Ok(bytes) => Ok(String::from_utf8(bytes).unwrap()),
        Err(NoDocument::Conflict(conflicts)) => {
            Err(classification::conflict_details(hierarchy, &conflicts).to_string())
        }
        Err(NoDocument::Failed(error)) => Err(error.to_string()),
    };
    let body = nodes::body(node);
    let request = index.read(&node.name, &body).unwrap_or_else(|| panic!("{node:?}"));
    let (parsed, received) =
        (AnsweredNode::from(node), AnsweredNode::received(&node.name, &request));
    let first = text(live.classified(&received, &groups, version));
    assert_eq!(text(live.classified(&received, &groups, version)), first, "from the cache");
    assert_eq!(text(live.classified(&parsed, &groups, version)), first, "of a node");
    assert_eq!(text(snapshot.classified(&received, &groups, version)), first, "without a cache");
    first
}

fn live(estate: Estate) -> LiveSnapshot {
    let commit = "0123456789012345678901234567890123456789".parse().unwrap();
    LiveSnapshot::new(Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new())))
}

#[test]
fn answers_are_the_same_bytes_in_both_ways() {
    let mut rng = Rng::with_seed(11);
    let (mut answers, mut conflicts) = (0, 0);
    for round in 0..300 {
        let estate = odd::estate(&mut rng);
        let live = live(match round % 2 {
            0 => estate,
            _ => odd::with_facts_in_values(estate, &mut rng),
        });
        for _ in 0..10 {
            let node = odd::node(&mut rng);
            for version in [Version::V1, Version::V2] {
                let plain = plainly(&live.snapshot().estate, &node, version);
                assert_eq!(quickly(&live, &node, version), plain, "{node:?}");
                *if plain.is_ok() { &mut answers } else { &mut conflicts } += 1;
            }
        }
    }
    assert!(answers > 2000 && conflicts > 200, "{answers} {conflicts}");
    let scale = Scale::of(1000);
    let usual = live(estate(scale.groups));
    for node in nodes::nodes(scale, 40, 3) {
        let plain = plainly(&usual.snapshot().estate, &node, Version::V1);
        assert!(plain.is_ok(), "{plain:?}");
        assert_eq!(quickly(&usual, &node, Version::V1), plain);
    }
}

/// Damages a body: one byte or part is lost, doubled or another one.
fn damage(body: &mut Vec<u8>, rng: &mut Rng) {
    const PARTS: &[&str] = &[
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        " ",
        "\n",
        "0",
        "-",
        ".",
        "e",
        "E+",
        "\\u00e9",
        "\\ud800",
        "\\n",
        "\u{1}",
        "é",
        "null",
        "true",
        "\"a\":",
        "\"fact\":",
        "\"facts\":{},",
        "\"trusted\":{},",
        "\"trusted\":null,",
        "\"transaction_uuid\":\"x\",",
        "1e5",
        "1E+5",
        "-0",
        "01",
        "{\"$serde_json::private::Number\":\"1\"}",
        "\"name\":\"n\",\"values\":{\"a\":1}",
    ];
    let at = rng.usize(..=body.len());
    match rng.u8(..5) {
        0 => body.truncate(at),
        1 if at < body.len() => drop(body.remove(at)),
        2 if at < body.len() => body[at] = rng.u8(..),
        3 => {
            let end = rng.usize(at..=body.len()).min(at + 20);
            let part = body[at..end].to_vec();
            body.splice(at..at, part);
        }
        _ => {
            let part = *rng.choice(PARTS).unwrap();
            body.splice(at..at, part.bytes());
        }
    }
}

#[test]
fn bodies_are_read_the_same_selectively_and_in_full() {
    let mut rng = Rng::with_seed(13);
    let (mut read, mut whole) = (0, 0);
    for round in 0..150 {
        let estate = odd::estate(&mut rng);
        let live = live(match round % 2 {
            0 => estate,
            _ => odd::with_facts_in_values(estate, &mut rng),
        });
        let index = live.snapshot().index();
        let in_values = MentionedPaths::in_values(&live.snapshot().estate);
        let reads_the_same = |index: &Index, body: &[u8]| {
            let is_read = reads_the_same(index, body);
            if let (Some(request), Some(node)) = (index.read("n", body), in_full(body)) {
                assert_eq!(request.facts_in_values("n"), Some(in_values.keep(&node.0)), "{node:?}");
            }
            is_read
        };
        for _ in 0..20 {
            let body = nodes::body(&odd::node(&mut rng));
            whole += u32::from(reads_the_same(index, &body));
            for _ in 0..15 {
                let mut damaged = body.clone();
                for _ in 0..rng.usize(1..3) {
                    damage(&mut damaged, &mut rng);
                }
                read += u32::from(reads_the_same(index, &damaged));
            }
        }
    }
    // The fast path rarely declines an undamaged body.
    assert!(whole > 2500 && read > 3000, "{whole} {read}");
    for depth in [5, 90, 99, 126, 127, 128, 200] {
        let index = Index::new(&odd::estate(&mut rng).hierarchy);
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        reads_the_same(&index, format!("{{\"fact\":{{\"z\":{open}{close}}}}}").as_bytes());
        reads_the_same(&index, format!("{{\"z\":{open}{close}}}").as_bytes());
    }
    let scale = Scale::of(100);
    let index = Index::new(&estate(scale.groups).hierarchy);
    for node in nodes::nodes(scale, 20, 4) {
        assert!(reads_the_same(&index, &nodes::body(&node)));
    }
}
