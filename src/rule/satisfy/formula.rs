//! Rules with every `not` at a test, over numbered variables and tests.

use std::sync::Arc;

use crate::model::Comparison;

/// The number of a path.
pub(super) type Variable = usize;

/// The number of a test.
pub(super) type TestNumber = usize;

/// A compiled rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// It always holds.
    True,
    /// It never holds.
    False,
    /// All of them hold.
    And(Vec<Self>),
    /// At least one of them holds.
    Or(Vec<Self>),
    /// The value of a variable passes a test, or does not.
    Demand(Variable, TestNumber, bool),
}

/// What a value is tested for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trial {
    /// What a rule says.
    Comparison(Comparison),
    /// Its text is one of these, in order: what an `or` of `=` says, such as a list of pins.
    OneOf(Box<[Arc<str>]>),
}

/// A test that must hold, or must not.
pub(super) type Demand = (TestNumber, bool);
