//! Which of many nodes a rule matches.

use std::collections::{BTreeMap, BTreeSet};

use super::error::EvaluationError;
use super::evaluate::evaluate;
use super::lookup::lookup;
use crate::model::{Condition, Node, Path};

/// The most paths whose values are counted.
const PATHS: usize = 64;

/// A rule that is searched for.
#[derive(Clone, Debug)]
pub struct RuleSearch {
    condition: Condition,
    /// The paths that it reads, the first of them.
    paths: Vec<Path>,
}

/// What a rule does to one node.
#[derive(Clone, Debug)]
pub struct SearchedNode {
    name: String,
    outcome: Result<bool, EvaluationError>,
    /// A bit for each path where the node has a value.
    found: u64,
}

/// A part of the nodes that match, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchRange {
    /// How many are left out first.
    pub offset: usize,
    /// How many are named at most, of those that match and of those of which it is not known.
    pub limit: usize,
}

/// The nodes that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleMatches {
    range: SearchRange,
    /// How many nodes were searched.
    pub searched: u64,
    /// How many of them match.
    pub total: u64,
    /// Of how many it is not known.
    pub undecided: u64,
    /// Each path that the rule reads, with how many nodes have a value there.
    pub paths: Vec<(Path, u64)>,
    /// The first that match, those that are left out included.
    names: BTreeSet<String>,
    errors: BTreeMap<String, EvaluationError>,
}

impl RuleSearch {
    /// Makes a search.
    pub fn new(condition: Condition) -> Self {
        let mut paths = Vec::new();
        collect(&condition, &mut paths);
        Self { condition, paths }
    }

    /// Returns the rule.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Returns what the rule does to a node.
    pub fn examine(&self, node: &Node) -> SearchedNode {
        let has = |path: &Path| lookup(path, node).is_some_and(|it| !it.is_null());
        let bits = self.paths.iter().enumerate().filter(|(_, path)| has(path));
        let found = bits.fold(0, |found, (at, _)| found | 1 << at);
        let outcome = evaluate(&self.condition, node);
        SearchedNode { name: node.name.clone(), outcome, found }
    }

    /// Returns that no node was searched yet.
    pub fn matches(&self, range: SearchRange) -> RuleMatches {
        RuleMatches {
            range,
            searched: 0,
            total: 0,
            undecided: 0,
            paths: self.paths.iter().map(|path| (path.clone(), 0)).collect(),
            names: BTreeSet::new(),
            errors: BTreeMap::new(),
        }
    }
}

/// Collects the paths of facts and trusted data, each once.
fn collect(condition: &Condition, paths: &mut Vec<Path>) {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => {
            for term in terms {
                collect(term, paths);
            }
        }
        Condition::Not(inner) => collect(inner, paths),
        Condition::Test(test) => {
            let is_data = matches!(test.path, Path::Segments(_));
            if is_data && paths.len() < PATHS && !paths.contains(&test.path) {
                paths.push(test.path.clone());
            }
        }
    }
}

impl RuleMatches {
    /// Adds what the rule does to a node. Nodes come in any order.
    pub fn add(&mut self, node: SearchedNode) {
        let SearchedNode { name, outcome, found } = node;
        self.searched += 1;
        for (at, (_, count)) in self.paths.iter_mut().enumerate() {
            *count += found >> at & 1;
        }
        let SearchRange { offset, limit } = self.range;
        match outcome {
            Ok(true) => {
                self.total += 1;
                self.names.insert(name);
                if self.names.len() > offset.saturating_add(limit) {
                    self.names.pop_last();
                }
            }
            Ok(false) => {}
            Err(error) => {
                self.undecided += 1;
                self.errors.insert(name, error);
                if self.errors.len() > limit {
                    self.errors.pop_last();
                }
            }
        }
    }

    /// Returns the names of the range.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().skip(self.range.offset).map(String::as_str)
    }

    /// Returns the first nodes of which it is not known, each with the reason.
    pub fn errors(&self) -> impl Iterator<Item = (&str, &EvaluationError)> {
        self.errors.iter().map(|(name, error)| (name.as_str(), error))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rule::read_console;

    fn node(name: &str, fact: serde_json::Value) -> Node {
        let serde_json::Value::Object(fact) = fact else { panic!("facts are an object") };
        Node { name: name.to_owned(), fact, ..Node::named(String::new()) }
    }

    fn search(rule: &str, range: SearchRange) -> RuleMatches {
        let search = RuleSearch::new(read_console(rule).unwrap());
        let mut matches = search.matches(range);
        for (name, fact) in [
            ("c", json!({"x": "1"})),
            ("a", json!({"x": "1", "y": null})),
            ("e", json!({"x": format!("{}!", "a".repeat(2_000))})),
            ("b", json!({"x": "1"})),
            ("d", json!({})),
        ] {
            matches.add(search.examine(&node(name, fact)));
        }
        matches
    }

    #[test]
    fn a_range_is_by_name_whatever_the_order() {
        let matches = search("x = 1", SearchRange { offset: 1, limit: 1 });
        assert_eq!((matches.searched, matches.total, matches.undecided), (5, 3, 0));
        assert_eq!(matches.names().collect::<Vec<_>>(), ["b"]);
        let all = search("x = 1", SearchRange { offset: 0, limit: usize::MAX });
        assert_eq!(all.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        let beyond = search("x = 1", SearchRange { offset: 3, limit: 1 });
        assert_eq!((beyond.total, beyond.names().count()), (3, 0));
    }

    #[test]
    fn a_node_that_cannot_be_decided_neither_matches_nor_not() {
        let rule = r#"x ~ "^(a|aa)+\\1b" or y = 1"#;
        let matches = search(rule, SearchRange { offset: 0, limit: 9 });
        assert_eq!((matches.searched, matches.total, matches.undecided), (5, 0, 1));
        let errors: Vec<&str> = matches.errors().map(|(name, _)| name).collect();
        assert_eq!(errors, ["e"]);
        let counts: Vec<_> = matches.paths.iter().map(|(path, n)| format!("{path} {n}")).collect();
        assert_eq!(counts, ["x 4", "y 0"], "null is not a value");
    }
}
