//! Everything that one commit says, valid together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Hierarchy;
use crate::model::{Classes, EnvironmentName, Individual};

/// The groups, individual classifications and class catalogues of one commit, which may share them
/// with others.
#[derive(Clone, Debug)]
pub struct Estate {
    /// The groups.
    pub hierarchy: Hierarchy,
    /// The individual classification of each node that has one, by certname.
    pub individuals: Arc<BTreeMap<String, Individual>>,
    /// The class catalogue of each environment that has one.
    pub catalogues: Arc<BTreeMap<EnvironmentName, Catalogue>>,
}

/// The classes that exist in an environment: class -> parameter -> default; null is no default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalogue {
    /// The classes with their parameters.
    pub classes: Classes,
}
