//! What an answer depends on beside the commit.

use std::collections::HashSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::model::{Node, Path};
use crate::rule::{Actual, actual, lookup};

/// The paths that the rules of some commits mention, and what a node has there, as a digest: facts hold
/// secrets, which are not kept.
#[derive(Clone, Debug)]
pub struct Inputs {
    paths: Arc<[Path]>,
    digest: [u8; 32],
}

impl Inputs {
    /// Returns what a node has at some paths.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>, node: &Node) -> Self {
        let paths: Arc<[Path]> = paths.into_iter().cloned().collect();
        let digest = digest(&paths, node);
        Self { paths, digest }
    }

    /// Returns what a node has at the paths of both.
    #[must_use]
    pub fn and(&self, other: &Self, node: &Node) -> Self {
        let paths: HashSet<&Path> = self.paths.iter().chain(&*other.paths).collect();
        Self::of(paths, node)
    }

    /// Returns the paths.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// Returns about how many bytes they take.
    pub fn bytes(&self) -> usize {
        100 + size_of_val(&*self.paths)
    }

    /// Returns whether a node has the same there, so that each of the rules says the same of it.
    pub fn are_those_of(&self, node: &Node) -> bool {
        digest(&self.paths, node) == self.digest
    }
}

/// Digests what rules compare at some paths of a node.
fn digest(paths: &[Path], node: &Node) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut part = |kind: u8, text: &str| {
        hash.update([kind]);
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for path in paths {
        match actual(path, node) {
            Ok(Actual::Missing) => part(0, ""),
            Ok(Actual::Text(text)) => part(1, text),
            Ok(Actual::Scalar(text)) => part(2, text),
            // The elements are compared one by one.
            Ok(Actual::List(elements)) => {
                part(3, &elements.len().to_string());
                for element in elements {
                    part(4, &element.to_string());
                }
            }
            // It may be put into values as a whole.
            Ok(Actual::Object) => part(5, &lookup(path, node).unwrap_or_default().to_string()),
            // The value was not stored.
            Err(_) => part(6, ""),
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blame::paths_of;
    use crate::rule::read_console;

    fn node(fact: &serde_json::Value) -> Node {
        serde_json::from_value(json!({"name": "n", "fact": fact, "trusted": {}})).unwrap()
    }

    #[test]
    fn only_what_rules_mention_counts() {
        let rule = read_console("os.family = Debian and not (name ~ db or cpus[0] = x)").unwrap();
        let mut paths = HashSet::new();
        paths_of(&rule, &mut |path| {
            paths.insert(path.clone());
        });
        assert_eq!(paths.len(), 3);
        let before = Inputs::of(&paths, &node(&json!({"os": {"family": "Debian"}, "uptime": 1})));
        for (fact, same) in [
            (json!({"os": {"family": "Debian"}, "uptime": 2}), true),
            (json!({"os": {"family": "Debian", "name": "Ubuntu"}, "cpus": [null, "x"]}), true),
            (json!({"os": {"family": "Debian"}, "cpus": ["x"]}), false),
            (json!({"os": {"family": "RedHat"}}), false),
            (json!({"os": {"family": ["Debian"]}}), false),
            (json!({"os": "Debian"}), false),
            (json!({}), false),
        ] {
            assert_eq!(before.are_those_of(&node(&fact)), same, "{fact}");
        }
    }
}
