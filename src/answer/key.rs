//! What the values of an answer are called.

use crate::model::{ClassName, GroupId, Key, VariableName};

/// One value of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerKey {
    /// The environment.
    Environment,
    /// That the node is in a group.
    Group(GroupId),
    /// That the node gets a class.
    Class(ClassName),
    /// A parameter of a class.
    Parameter(ClassName, Key),
    /// A variable.
    Variable(VariableName),
    /// A key of the config data of a class.
    ConfigData(ClassName, Key),
}

impl AnswerKey {
    /// Returns the path of the value in the document of a group; that of a group is the group itself.
    pub fn path(&self) -> Vec<&str> {
        match self {
            Self::Environment => vec!["environment"],
            Self::Group(_) => Vec::new(),
            Self::Class(class) => vec!["classes", class.as_str()],
            Self::Parameter(class, key) => vec!["classes", class.as_str(), key.as_str()],
            Self::Variable(name) => vec!["variables", name.as_str()],
            Self::ConfigData(class, key) => vec!["config_data", class.as_str(), key.as_str()],
        }
    }
}
