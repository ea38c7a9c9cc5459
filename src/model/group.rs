//! Node groups and individual classifications.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::{ClassName, Condition, EnvironmentName, GroupId, GroupName, Key, Table, VariableName};

/// Class -> parameter -> value; a class without parameters has an empty map, and a null value
/// removes what is inherited.
pub type Classes = Table<ClassName, Table<Key, Value>>;

/// Shares classes; what most groups do not have takes no memory.
pub(crate) fn shared_classes(classes: Classes) -> Arc<Classes> {
    static NONE: LazyLock<Arc<Classes>> = LazyLock::new(Arc::default);
    if classes.is_empty() { Arc::clone(&NONE) } else { Arc::new(classes) }
}

/// Shares variables; what most groups do not have takes no memory.
pub(crate) fn shared_variables(
    variables: Table<VariableName, Value>,
) -> Arc<Table<VariableName, Value>> {
    static NONE: LazyLock<Arc<Table<VariableName, Value>>> = LazyLock::new(Arc::default);
    if variables.is_empty() { Arc::clone(&NONE) } else { Arc::new(variables) }
}

/// A node group that is valid by itself; its parent is an id that may or may not exist.
///
/// The large parts are shared: snapshots of several commits, and the files they were read from,
/// hold them once.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The id, unique.
    pub id: GroupId,
    /// The name, unique within the environment.
    pub name: GroupName,
    /// The id of the parent; the root group is its own.
    pub parent: GroupId,
    /// The environment that matching nodes get.
    pub environment: EnvironmentName,
    /// Whether the environment wins over that of groups where this is false.
    pub environment_trumps: bool,
    /// What the group is for.
    pub description: Option<Arc<str>>,
    /// Which nodes match; `None` matches none and is skipped when rules are inherited.
    pub rule: Option<Arc<Condition>>,
    /// Classes and their parameters.
    pub classes: Arc<Classes>,
    /// Top-scope variables.
    pub variables: Arc<Table<VariableName, Value>>,
    /// Data for Hiera, in the shape of classes.
    pub config_data: Arc<Classes>,
}

/// Values set for one node alone; they override those of its groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Individual {
    /// Classes and their parameters.
    pub classes: Classes,
    /// Top-scope variables.
    pub variables: Table<VariableName, Value>,
    /// Data for Hiera, in the shape of classes.
    pub config_data: Classes,
}
