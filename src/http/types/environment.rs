//! Environments and the classes of their catalogues.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::hierarchy::Catalogue;
use crate::model::{ClassName, EnvironmentName, Key, Table};

/// A class of an environment's catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Class {
    /// Its name.
    pub name: ClassName,
    /// The environment.
    pub environment: EnvironmentName,
    /// Its parameters with their defaults; null for those that have none.
    #[schema(value_type = Object)]
    pub parameters: Table<Key, Value>,
}

impl Class {
    /// Returns the classes of an environment's catalogue.
    pub(in crate::http) fn all_of<'c>(
        environment: &'c EnvironmentName,
        catalogue: &'c Catalogue,
    ) -> impl Iterator<Item = Self> + 'c {
        catalogue.classes.iter().map(|(name, parameters)| Self {
            name: name.clone(),
            environment: environment.clone(),
            parameters: parameters.clone(),
        })
    }
}

/// An environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Environment {
    /// Its name.
    pub name: EnvironmentName,
    /// Always true: a catalogue is a file of the commit that answers, so it is as fresh as everything else.
    pub sync_succeeded: bool,
}

impl Environment {
    /// Returns an environment of the commit that answers.
    pub(in crate::http) fn named(name: EnvironmentName) -> Self {
        Self { name, sync_succeeded: true }
    }
}

/// When classes were updated last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastClassUpdate {
    /// The time; null where it is not known.
    #[schema(required)]
    pub last_update: Option<Timestamp>,
}
