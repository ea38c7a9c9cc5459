//! Sets of demands, numbered.

use hashbrown::HashMap;

use super::formula::Demand;
use super::shape::{TextNumbers, ValueShape};

/// The number of a set of demands on one variable.
pub(super) type Set = u32;

/// The sets of demands that outlines have.
#[derive(Debug, Default)]
pub(super) struct Sets {
    pub(super) numbers: HashMap<(bool, Vec<Demand>), Set>,
    pub(super) all: Vec<Demanded>,
    pub(super) texts: TextNumbers,
    pub(super) compared: HashMap<(Set, Set), bool>,
}

/// A set of demands.
#[derive(Debug)]
pub(super) struct Demanded {
    pub(super) is_name: bool,
    pub(super) demands: Vec<Demand>,
    pub(super) shape: ValueShape,
}
