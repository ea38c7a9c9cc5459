//! What a group gives to nodes.

use crate::model::{ClassName, Key, VariableName};

/// Something that a group gives to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting<'e> {
    /// Its environment.
    Environment,
    /// A parameter of a class.
    Parameter(&'e ClassName, &'e Key),
    /// A variable.
    Variable(&'e VariableName),
    /// An item of config data.
    ConfigData(&'e ClassName, &'e Key),
}
