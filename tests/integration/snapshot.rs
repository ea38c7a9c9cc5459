//! The fast paths of a snapshot agree with the plain ones.

mod bodies;
mod withheld;

use std::fmt::Write as _;
use std::sync::Arc;

use clade::internals::classification::{self, ClassificationError, Outcome, Version};
use clade::internals::hierarchy::{Estate, GroupIndex};
use clade::internals::mentioned::MentionedPaths;
use clade::internals::model::{Budget, BudgetItem, Meter, Node};
use clade::internals::snapshot::{AnsweredNode, Index, LiveSnapshot, NoDocument, Snapshot};
use clade::internals::validation::{
    Checked, FileKind, Search, SourceContent, SourceFile, read_file, read_file_within, validate,
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

/// A repository that changes, a file at a time.
struct Changing {
    rng: Rng,
    files: Vec<SourceFile>,
    /// What each group says of its name, environment and parent.
    heads: Vec<String>,
}

impl Changing {
    const POLICY: &str = "policy: {missing_referents: warn, potential_conflicts: off, redundant_values: warn, repeated_rules: warn, untested_groups: warn, too_many_pins: warn, max_pins: 1, catalogue_mismatches: warn}\n";
    const CATALOGUE: &str = "classes:\n  a: {parameters: {p: 1, q: null}, types: {p: Integer}}\n  b: {parameters: {p: 1}}\n  c:\n";

    fn new(seed: u64) -> Self {
        let mut it = Self { rng: Rng::with_seed(seed), files: Vec::new(), heads: Vec::new() };
        let puts_facts = if seed % 2 == 1 { "interpolate: true\n" } else { "" };
        it.put("clade.yaml", format!("{}{puts_facts}", Self::POLICY));
        it.put("environments/production.yaml", Self::CATALOGUE.to_owned());
        // A default that differs is a finding, too.
        it.put("environments/dev.yaml", Self::CATALOGUE.replace("q: null", "q: 2"));
        for number in 0..30 {
            let environment = it.rng.choice(["production", "dev", "test"]).unwrap();
            let mut head = format!("name: Group {number}\nenvironment: {environment}\n");
            if number > 3 && it.rng.bool() {
                writeln!(head, "parent: Group {}", it.rng.usize(..number)).unwrap();
            }
            it.heads.push(head);
            it.change(number);
        }
        it
    }

    fn put(&mut self, path: &str, text: String) -> SourceFile {
        let content = SourceContent::Bytes(text.into_bytes().into());
        let file = SourceFile { path: path.into(), content };
        self.files.retain(|it| it.path != file.path);
        self.files.push(file.clone());
        file
    }

    /// Gives a group another rule and other values.
    fn change(&mut self, number: usize) -> SourceFile {
        let mut text = String::new();
        let rng = &mut self.rng;
        if rng.bool() {
            text.push_str("# moves what follows\n");
        }
        text.push_str(&self.heads[number]);
        if rng.u8(..4) == 0 {
            text.push_str("# clade: ignore never-matches\n");
        }
        let test = |rng: &mut Rng| match rng.u8(..7) {
            3 => format!("fact{} != {}", rng.u8(..2), rng.u8(..2)),
            4 => format!("trusted.certname = n{}", rng.u8(..4)),
            5 => format!("size < {}", rng.u8(..2)),
            0 => format!("name ~ 'n{}'", rng.u8(..3)),
            1 => format!("size >= {}", rng.u8(..3)),
            2 => format!("not new{} = 1", rng.u8(..3)),
            _ => format!("fact{} = {}", rng.u8(..2), rng.u8(..2)),
        };
        if !number.is_multiple_of(7) {
            let joint = rng.choice([" and ", " or "]).unwrap();
            let tests: Vec<String> = (0..rng.usize(1..3)).map(|_| test(rng)).collect();
            writeln!(text, "rule: \"{}\"", tests.join(joint)).unwrap();
        }
        if rng.u8(..3) == 0 {
            writeln!(text, "pinned: [n{}, n{}]", rng.u8(..4), rng.u8(..4)).unwrap();
        }
        text.push_str("classes:\n");
        for class in ["a", "b", "c", "d"] {
            if rng.u8(..3) == 0 {
                let values = ["1", "text", "null", "[1]", "'${new0[a]}$fact0'", "[$size]"];
                let (p, q) = (rng.choice(values).unwrap(), rng.choice(values).unwrap());
                writeln!(text, "  {class}: {{p: {p}, q: {q}}}").unwrap();
            }
        }
        text.push_str("  z:\n");
        if rng.bool() {
            writeln!(text, "variables: {{v{}: {}}}", rng.u8(..3), rng.u8(..2)).unwrap();
        }
        if rng.bool() {
            writeln!(text, "config_data: {{m: {{k{}: {}}}}}", rng.u8(..2), rng.u8(..2)).unwrap();
        }
        self.put(&format!("groups/{number}.yaml"), text)
    }

    fn node(&mut self) -> Node {
        let rng = &mut self.rng;
        let facts = serde_json::json!({
            "fact0": rng.u8(..2).to_string(), "fact1": rng.u8(..2), "size": rng.u8(..4),
            "new0": {"a": rng.u8(..2)}, "new1": 1, "new2": "0",
        });
        let mut node = Node::named(format!("n{}", rng.u8(..4)));
        node.fact = facts.as_object().cloned().unwrap();
        node
    }
}

#[test]
fn what_a_commit_does_not_change_need_not_be_built_again() {
    let (mut amended, mut warnings, mut indexes) = (0, 0, 0);
    for seed in 0..4 {
        let mut repository = Changing::new(seed);
        let mut before = validate(&repository.files, Search::Decisive);
        let commit = "0123456789012345678901234567890123456789".parse().unwrap();
        let of = |checked: &Checked| {
            let estate =
                checked.estate.clone().unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
            (estate, Arc::clone(&checked.origins), checked.diagnostics.clone())
        };
        let (estate, origins, found) = of(&before);
        let mut snapshot = Snapshot::new(commit, estate, origins, found);
        for step in 0..40 {
            let number = repository.rng.usize(..30);
            let changes_the_tree = step % 20 == 19;
            if changes_the_tree {
                let head = format!("name: Group {number}\nenvironment: environment_{step}\n");
                repository.heads[number] = head;
            }
            let mut files = vec![repository.change(number)];
            if step % 3 == 0 {
                files.push(repository.change((number + 1) % 30));
            }
            let readings: Vec<_> =
                files.iter().map(|it| Arc::new(read_file(it, FileKind::Groups))).collect();
            let all = validate(&repository.files, Search::Decisive);
            let again = before.incremental(&readings, &Meter::new(Budget::DEFAULT));
            assert_eq!(again.is_none(), changes_the_tree);
            let checked = again.unwrap_or_else(|| all.clone());
            assert_eq!(checked.diagnostics, all.diagnostics);
            assert_eq!((&checked.origins, checked.groups), (&all.origins, all.groups));
            let (estate, origins, found) = of(&checked);
            let whole = of(&all).0;
            assert!(estate.hierarchy.groups().eq(whole.hierarchy.groups()));
            let index = Index::new(&whole.hierarchy);
            snapshot = snapshot.amended(commit, estate, origins, found);
            let live = LiveSnapshot::new(Arc::new(snapshot.clone()));
            for _ in 0..10 {
                let node = repository.node();
                let groups = matches(&snapshot.estate, snapshot.index(), &node).unwrap();
                assert_eq!(groups, matches(&whole, &index, &node).unwrap());
                assert_eq!(quickly(&live, &node, Version::V2), plainly(&whole, &node, Version::V2));
            }
            amended += usize::from(!changes_the_tree);
            warnings += all.diagnostics.len();
            indexes += 1;
            before = checked;
        }
    }
    assert!(amended > indexes / 2 && warnings > 1000, "{amended} of {indexes}, {warnings}");
}
