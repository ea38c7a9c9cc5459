//! Everything that one commit says, valid together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Hierarchy;
use crate::model::{Classes, EnvironmentName, Individual, Interpolation, Key, Table, Value};

/// The groups, individual classifications and class catalogues of one commit, which may share them
/// with others.
#[derive(Clone, Debug)]
pub struct Estate {
    /// The groups.
    pub hierarchy: Hierarchy,
    /// The individual classification of each node that has one, by certname.
    pub individuals: Arc<BTreeMap<String, Individual>>,
    /// The environments that have a file, and which.
    pub environments: Arc<BTreeMap<EnvironmentName, Arc<str>>>,
    /// The class catalogue of each environment that has one.
    pub catalogues: Arc<BTreeMap<EnvironmentName, Catalogue>>,
    /// Whether facts are put into values.
    pub interpolation: Interpolation,
}

impl Estate {
    /// Returns the environments that exist: those that have a file or are that of a group.
    pub fn environment_names(&self) -> BTreeSet<&EnvironmentName> {
        let of_groups = self.hierarchy.groups().map(|group| &group.environment);
        let names = of_groups.chain(self.environments.keys());
        names.filter(|name| !name.is_agent_specified()).collect()
    }
}

/// The classes that exist in an environment: class -> parameter -> default; null means no default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The classes with their parameters.
    pub classes: Classes,
}

/// The parameters that Puppet accepts for every class: its metaparameters, and `name`, which sets `$name` in the
/// class. Tried with Puppet 7.23 and an ENC.
const OF_EVERY_CLASS: [&str; 12] = [
    "alias",
    "audit",
    "before",
    "loglevel",
    "name",
    "noop",
    "notify",
    "require",
    "schedule",
    "stage",
    "subscribe",
    "tag",
];

/// Returns whether a class with these parameters in the catalogue has a parameter: its own, or one of every class.
pub fn has_parameter(known: &Table<Key, Value>, parameter: &Key) -> bool {
    known.contains_key(parameter) || OF_EVERY_CLASS.contains(&parameter.as_str())
}
