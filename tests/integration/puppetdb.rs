//! Our translations of rules find the nodes that the rules match, in a real `PuppetDB`.
//! One boot of `PuppetDB` and its `PostgreSQL` does all of it. What it does only by chance, a stub does.

mod completed;
mod inventory;
mod nodes;
mod refused_queries;
mod rules;
mod server;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::program::{Daemon, GitRepository, run};
use clade::internals::model::{Condition, Node};
use clade::internals::rule::{self, QueryFormat, evaluate, to_query};
use rules::Seed;
use server::{NOW, PuppetDb};

/// The number of random rules.
const RANDOM: usize = 1500;

#[test]
#[ignore = "boots a PuppetDB, which takes a minute; .ci/run does"]
fn a_real_puppetdb_finds_the_nodes_that_rules_match() {
    if let Some(missing) = server::missing() {
        eprintln!("skipped: needs {missing}");
        return;
    }
    let pdb = PuppetDb::start();
    nodes::store(&pdb);
    let nodes = nodes::read(&pdb);
    let mut tally = Tally::default();
    for rule in rules::everyday() {
        for format in [QueryFormat::Nodes, QueryFormat::Inventory] {
            tally.count(check(&pdb, &nodes, &rule, format));
        }
    }
    eprintln!("everyday rules: {tally}");
    assert!(tally.wrong.is_empty(), "{}", tally.first_wrong());
    assert_eq!(tally.refused + tally.no_rules, 0, "people write these");
    let mut tally = Tally::default();
    let mut seed = Seed(2026);
    for _ in 0..RANDOM {
        let rule = seed.rule(3);
        for format in [QueryFormat::Nodes, QueryFormat::Inventory] {
            tally.count(check(&pdb, &nodes, &rule, format));
        }
    }
    eprintln!("random rules: {tally}");
    assert!(tally.wrong.is_empty(), "{}", tally.first_wrong());
    assert!(tally.translated > RANDOM * 3 / 2, "too few have a query");
    check_refusals();
    check_exponents(&pdb, &nodes);
    check_daemon(&pdb);
    check_trust(&pdb);
}

#[derive(Default)]
struct Tally {
    translated: usize,
    refused: usize,
    no_rules: usize,
    wrong: Vec<String>,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { translated, refused, no_rules, wrong } = self;
        let wrong = wrong.len();
        write!(f, "{translated} translated, {refused} refused, {no_rules} no rules, {wrong} wrong")
    }
}

impl Tally {
    fn first_wrong(&self) -> String {
        self.wrong.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n\n")
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Found => self.translated += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::NoRule => self.no_rules += 1,
            Outcome::Wrong(what) => self.wrong.push(what),
        }
    }
}

enum Outcome {
    /// There is a query, and it finds the right nodes.
    Found,
    /// It is not a rule, such as one whose pattern Java does not take.
    NoRule,
    /// There is no query.
    Refused,
    /// The query finds other nodes.
    Wrong(String),
}

/// Compares what a query finds with what the rule matches.
fn check(pdb: &PuppetDb, nodes: &[Node], rule: &Value, format: QueryFormat) -> Outcome {
    let Ok(condition) = rule::read(rule) else { return Outcome::NoRule };
    let Ok(query) = to_query(&condition, format) else { return Outcome::Refused };
    let query = query.unwrap_or_else(|| json!(["~", "certname", ".*"]));
    let found = match found(pdb, &query, format) {
        Ok(found) => found,
        Err(words) => return Outcome::Wrong(format!("{rule}\n{query}\n{words}")),
    };
    let mut expected = matching(nodes, &condition);
    let bare = Node::named("catalog");
    if format == QueryFormat::Nodes && evaluate(&condition, &bare) == Ok(true) {
        expected.insert(bare.name);
    }
    let compares = has_order(&condition);
    let mut different: Vec<&String> = found.symmetric_difference(&expected).collect();
    // These differ: see `check_exponents`.
    different.retain(|it| !(compares && is_exponent(nodes, it)));
    if different.is_empty() {
        return Outcome::Found;
    }
    Outcome::Wrong(format!("{rule}\n{query}\n{format:?} differs in {different:?}"))
}

fn found(pdb: &PuppetDb, query: &Value, format: QueryFormat) -> Result<BTreeSet<String>, String> {
    let entity = match format {
        QueryFormat::Nodes => "nodes",
        QueryFormat::Inventory => "inventory",
    };
    let entries = pdb.query(entity, &json!(["extract", "certname", query]))?;
    Ok(entries.iter().map(|it| it["certname"].as_str().unwrap().to_owned()).collect())
}

fn matching(nodes: &[Node], condition: &Condition) -> BTreeSet<String> {
    let matching = nodes.iter().filter(|it| evaluate(condition, it) == Ok(true));
    matching.map(|it| it.name.clone()).collect()
}

fn has_order(condition: &Condition) -> bool {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().any(has_order),
        Condition::Not(inner) => has_order(inner),
        Condition::Test(test) => matches!(test.comparison.operator(), ">" | ">=" | "<" | "<="),
    }
}

fn is_exponent(nodes: &[Node], name: &str) -> bool {
    let node = nodes.iter().find(|it| it.name == name);
    node.is_some_and(|it| {
        nodes::EXPONENTS.iter().any(|text| it.fact.get("x") == Some(&json!(text)))
    })
}

/// Each construct that no query can say is refused with its reason.
fn check_refusals() {
    for (rule, reason) in rules::refused() {
        let condition = rule::read(&rule).unwrap_or_else(|it| panic!("{rule}: {it:?}"));
        let refused = to_query(&condition, QueryFormat::Inventory);
        assert_eq!(refused.map_err(|it| it.reason), Err(reason), "{rule}");
    }
}

/// A string of a number with an exponent is the one thing that no query finds by its number.
fn check_exponents(pdb: &PuppetDb, nodes: &[Node]) {
    for (operator, number, missed) in
        [(">", "500", "1e3"), ("<", "-100", "-2.5E+2"), (">=", "7", "7e0")]
    {
        let condition = rule::read(&json!([operator, ["fact", "x"], number])).unwrap();
        let query = to_query(&condition, QueryFormat::Inventory).unwrap().unwrap();
        let found = found(pdb, &query, QueryFormat::Inventory).unwrap();
        let matching = matching(nodes, &condition);
        assert!(found.is_subset(&matching), "{operator} {number}");
        let node = nodes.iter().find(|it| it.fact.get("x") == Some(&json!(missed))).unwrap();
        assert!(matching.contains(&node.name) && !found.contains(&node.name), "{missed}");
        assert!(matching.difference(&found).all(|it| is_exponent(nodes, it)));
    }
}

const GROUPS: &str = "\
name: Web
id: aaaaaaaa-0000-4000-8000-000000000001
rule: trusted.extensions.pp_role = web
classes: {web: {}}
---
name: Big
id: aaaaaaaa-0000-4000-8000-000000000002
rule: memory.system.total_bytes > 9000000000
classes: {big: {}}
";

/// A daemon and `clade diff` read nodes from the same `PuppetDB`.
fn check_daemon(pdb: &PuppetDb) {
    let repository = GitRepository::new();
    let base = repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &pdb.url()]);
    // The served trusted data is that of the certificate.
    let rule = json!(["not", ["~", ["fact", "os", "family"], "^win"]]);
    for (format, entity) in [(QueryFormat::Nodes, "nodes"), (QueryFormat::Inventory, "inventory")] {
        let path = format!("/v1/rules/translate?format={entity}");
        let answer = daemon.request("POST", &path, &rule.to_string());
        let condition = rule::read(&rule).unwrap();
        assert_eq!(answer.json(), json!({"query": to_query(&condition, format).unwrap()}));
    }
    let rules = daemon.get("/v1/groups/aaaaaaaa-0000-4000-8000-000000000001/rules").json();
    for (key, format) in [
        ("nodes_query_format", QueryFormat::Nodes),
        ("inventory_query_format", QueryFormat::Inventory),
    ] {
        let found = found(pdb, &rules["translated"][key], format).unwrap();
        let expected = ["web1.example.com", "web2.example.com"].map(str::to_owned);
        // A bare string `web` is not a role of any other node.
        assert_eq!(found, BTreeSet::from(expected), "{key}");
    }
    for (name, classes) in [
        ("web1.example.com", json!({"web": {}, "big": {}})),
        ("web2.example.com", json!({"web": {}})),
        ("db1.example.com", json!({"big": {}})),
        ("unknown.example.com", json!({})),
    ] {
        let document = daemon.get(&format!("/enc/{name}"));
        assert_eq!((document.status, &document.json()["classes"]), (200, &classes), "{name}");
    }
    // The nodes of a group are those of PuppetDB, and check-ins of a node come first.
    let members = |number: u8| {
        daemon.get(&format!("/v1/groups/aaaaaaaa-0000-4000-8000-00000000000{number}/nodes")).json()
    };
    assert_eq!(members(1), json!({"nodes": ["web1.example.com", "web2.example.com"]}));
    let big = members(2);
    for (name, is_big) in [("db1.example.com", true), ("web2.example.com", false)] {
        assert_eq!(big["nodes"].as_array().unwrap().contains(&json!(name)), is_big, "{big}");
    }
    let moved = json!({"fact": {"x": 1}, "trusted": {"extensions": {"pp_role": "db"}}});
    for (name, body) in [("web2.example.com", moved), ("web1.example.com", json!({}))] {
        let path = format!("/v1/classified/nodes/{name}");
        assert_eq!(daemon.request("POST", &path, &body.to_string()).status, 200);
    }
    assert_eq!(members(1), json!({"nodes": ["web1.example.com"]}));
    let changed = GROUPS.replace("9000000000", "20000000000");
    let head = repository.commit("less", &[("groups/all.yaml", &changed)]);
    let diff = run(&[
        "diff",
        &base,
        &head,
        "--repo",
        &repository.text_path(),
        "--puppetdb",
        &pdb.url(),
        "--format",
        "json",
    ]);
    assert_eq!((diff.status, diff.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&diff.stdout).unwrap();
    let text = report.to_string();
    assert!(text.contains("web1.example.com") && !text.contains("db1.example.com"), "{report:#}");
}

/// An agent can send a fact named `trusted`; Puppet Server then sends the key twice.
fn check_trust(pdb: &PuppetDb) {
    let repository = GitRepository::new();
    repository.commit("groups", &[("groups/all.yaml", GROUPS)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--puppetdb", &pdb.url()]);
    let payload = |values: &str| {
        format!(
            r#"{{"certname": "eve", "environment": "production", "producer": "p", "producer_timestamp": "{NOW}", "values": {values}}}"#
        )
    };
    let forged = r#""trusted": {"certname": "eve", "extensions": {"pp_role": "web"}}"#;
    let real = r#""trusted": {"certname": "eve", "extensions": {"pp_role": "desktop"}}"#;
    pdb.command("replace_facts", 5, "eve", &payload(&format!("{{{forged}, {real}}}")));
    assert_eq!(daemon.get("/enc/eve").json()["classes"], json!({}));
    let forged = r#"{"fact": {"trusted": {"extensions": {"pp_role": "web"}}}}"#;
    assert_eq!(daemon.request("POST", "/enc/eve", forged).json()["classes"], json!({}));
}
