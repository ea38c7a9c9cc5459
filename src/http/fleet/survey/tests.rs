#![expect(clippy::disallowed_methods, reason = "facts are files")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::*;
use crate::diagnostic::Place;
use crate::facts::{FactsDirectory, Unlimited};
use crate::hierarchy::Estate;
use crate::impact::{Impact, Side, StateComparison, Survey};
use crate::model::GroupId;
use crate::validation::{Search, SourceContent, SourceFile, validate};

/// A stored node as text.
#[derive(Clone)]
struct TextRow {
    name: String,
    fact: String,
    trusted: String,
}

impl FleetRow for TextRow {
    fn decode(self, paths: &MentionedPaths) -> Result<Option<FleetNode>, StoreError> {
        if self.fact == "damaged" {
            return Err(StoreError::interrupted());
        }
        let (fact, trusted) = paths.keep_text(&self.fact, &self.trusted).unwrap();
        let node = Node { name: self.name, fact, trusted };
        let is_bare = self.fact == "{}";
        Ok(Some(if is_bare { FleetNode::Bare(node) } else { FleetNode::Known(node) }))
    }
}

impl TextRow {
    fn random(number: usize, chance: &mut fastrand::Rng) -> Self {
        let (a, b) = (chance.u8(..3), chance.u8(..3));
        let fact = match chance.u8(..100) {
            0..10 => "{}".to_owned(),
            10..20 => "damaged".to_owned(),
            20 => json!({"x": format!("{}!", "a".repeat(2_000)), "a": a}).to_string(),
            _ => json!({"a": a, "b": {"c": [b, "z"]}, "noise": [1, {"x": "y"}]}).to_string(),
        };
        let trusted =
            json!({"extensions": {"pp_role": (["web", "db"][usize::from(chance.bool())])}});
        Self { name: format!("node{number}"), fact, trusted: trusted.to_string() }
    }
}

fn group(number: usize, chance: &mut fastrand::Rng) -> String {
    let rule = match chance.u8(..8) {
        0 => r#"["~", [fact, x], "^(a|aa)+\\1b"]"#.to_owned(),
        1 => r#"["<:", [fact, b, c], "1"]"#.to_owned(),
        2 => "trusted.extensions.pp_role = web".to_owned(),
        3 => "name ~ \"1$\"".to_owned(),
        other => format!("a = {} and b.c[0] >= {}", other % 3, chance.u8(..3)),
    };
    let port = chance.u8(..2);
    format!("name: G{number}\nrule: {rule}\nclasses: {{c: {{port: {port}}}, d{number}: {{}}}}\n")
}

fn estate(groups: &[String], own: &str) -> Estate {
    let file = |(number, text): (usize, &String)| (format!("groups/g{number}.yaml"), text.clone());
    let own = ("nodes/node3.yaml".to_owned(), format!("variables: {{own: {own}}}\n"));
    let files: Vec<SourceFile> = groups
        .iter()
        .enumerate()
        .map(file)
        .chain([own])
        .map(|(path, text)| SourceFile {
            path: path.into(),
            content: SourceContent::Bytes(text.as_bytes().into()),
        })
        .collect();
    let checked = validate(&files, Search::Decisive);
    checked.estate.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// What came of a fleet, and why some nodes were not compared.
type Surveyed = (Survey, Vec<String>);

/// Compares whole nodes one after the other.
fn one_by_one(comparison: &StateComparison<'_>, facts: &FactsPolicy, rows: &[TextRow]) -> Surveyed {
    let (mut survey, mut unreadable) = Surveyed::default();
    let (mut nodes, mut bare) = (Vec::new(), Vec::new());
    let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
    for TextRow { name, fact, trusted } in rows {
        match fact.as_str() {
            "damaged" => unreadable.push(StoreError::interrupted().to_string()),
            fact => {
                let name = name.clone();
                let node = Node { name, fact: object(fact), trusted: object(trusted) };
                if node.fact.is_empty() { bare.push(node) } else { nodes.push(node) }
            }
        }
    }
    for node in bare {
        match facts.complete(node, &Unlimited).unwrap() {
            CompletedNode::Classified(node) => nodes.push(node),
            CompletedNode::FactsMissing(name) => unreadable.push(format!(
                "`{name}` has checked in without facts, which `--enc-facts required` demands"
            )),
            CompletedNode::Unreadable(it) => unreadable.push(it.reason),
        }
    }
    let compared = nodes.iter().map(|node| (node.name.clone(), comparison.node(node)));
    survey.extend(compared);
    (survey, unreadable)
}

fn written(
    comparison: &StateComparison<'_>,
    (survey, unreadable): Surveyed,
) -> (String, Vec<String>) {
    let (groups, node_files) = (comparison.groups(), comparison.node_files());
    let impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey).unwrap();
    (serde_json::to_value(&impact).unwrap().to_string(), unreadable)
}

#[test]
fn a_fleet_in_batches_gets_the_report_of_whole_nodes_one_by_one() {
    let origins: BTreeMap<GroupId, Place> = BTreeMap::new();
    let node_origins = BTreeMap::new();
    let directory = tempfile::tempdir().unwrap();
    for number in 0..300 {
        let facts = r#"{"a": "1", "b": {"c": ["1"]}}"#;
        std::fs::write(directory.path().join(format!("node{number}.json")), facts).unwrap();
    }
    let mut chance = fastrand::Rng::with_seed(5);
    for case in 0..12 {
        let before: Vec<String> = (0..8).map(|it| group(it, &mut chance)).collect();
        let mut after = before.clone();
        for _ in 0..chance.usize(0..4) {
            let number = chance.usize(..after.len());
            after[number] = group(number, &mut chance);
        }
        let (base, head) = (estate(&before, "1"), estate(&after, ["1", "2"][case % 2]));
        let side = |estate| Side { estate, origins: &origins, node_origins: &node_origins };
        let rows: Vec<TextRow> = (0..600).map(|it| TextRow::random(it, &mut chance)).collect();
        let facts = FactsPolicy {
            directory: (case % 3 == 0)
                .then(|| FactsDirectory::new(directory.path().to_owned()).into()),
            required: case % 3 < 2,
            ..FactsPolicy::default()
        };
        let paths = [&base, &head].map(MentionedPaths::of);
        let paths = paths[0].union(&paths[1]);
        let comparison = StateComparison::new(side(&base), side(&head));
        let examine = |node: Node| (node.name.clone(), comparison.node(&node));
        let watch = &ClientWatch::default();
        let surveyor = Surveyor { examine: &examine, paths: &paths, facts: &facts, watch };
        let mut survey = Survey::default();
        let unreadable = surveyor.survey(
            |each: UseRows<'_, TextRow>| {
                rows.chunks(1 + chance.usize(..200)).for_each(|it| each(it.to_vec()));
                Ok(())
            },
            &mut |compared| survey.extend([compared]),
        );
        let comparison = StateComparison::new(side(&base), side(&head));
        let expected = written(&comparison, one_by_one(&comparison, &facts, &rows));
        assert_eq!(written(&comparison, (survey, unreadable.unwrap())), expected);
    }
}

#[test]
fn a_store_that_fails_is_an_error() {
    let (facts, paths) = (FactsPolicy::default(), MentionedPaths::default());
    let watch = &ClientWatch::default();
    let surveyor = Surveyor { examine: &|_: Node| (), paths: &paths, facts: &facts, watch };
    let row = TextRow { name: "a".to_owned(), fact: "{}".to_owned(), trusted: "{}".to_owned() };
    let surveyed = surveyor.survey(
        |each: UseRows<'_, TextRow>| {
            each(vec![row]);
            Err(StoreError::interrupted())
        },
        &mut |()| {},
    );
    assert!(surveyed.is_err());
}
