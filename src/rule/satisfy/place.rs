//! Places in a node, and which of them can hold values together.

use super::formula::Variable;
use crate::model::Segment;

/// A place that rules ask about.
#[derive(Debug)]
pub(super) struct ValuePlace {
    pub(super) way: Vec<Segment>,
    /// The places whose values have to do with the one here.
    pub(super) related: Vec<(Variable, Relation)>,
}

/// How a place stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The other is inside an object here.
    HoldsInObject,
    /// The other is inside a list here: an element, or something in one.
    HoldsInList(PathDepth),
    /// This one is inside an object there.
    InObject,
    /// This one is inside a list there.
    InList(PathDepth),
    /// One needs an object where the other needs a list.
    Apart,
}

/// How far inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathDepth {
    /// It is an element.
    Element(u64),
    /// It is in an element.
    Deeper(u64),
}

impl PathDepth {
    /// Returns the place of the element in its list.
    pub(super) fn index(self) -> u64 {
        match self {
            Self::Element(index) | Self::Deeper(index) => index,
        }
    }
}

impl Relation {
    /// Returns how one place stands to another; none if they have nothing to do with each other.
    pub(super) fn of(one: &[Segment], other: &[Segment]) -> Option<Self> {
        let shared = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        let (mine, theirs) = (one.get(shared..)?, other.get(shared..)?);
        match (mine, theirs) {
            ([], inside) => Self::inside(inside, Self::HoldsInObject, Self::HoldsInList),
            (inside, []) => Self::inside(inside, Self::InObject, Self::InList),
            ([Segment::Key(_), ..], [Segment::Index(_), ..])
            | ([Segment::Index(_), ..], [Segment::Key(_), ..]) => Some(Self::Apart),
            _ => None,
        }
    }

    fn inside(rest: &[Segment], object: Self, list: fn(PathDepth) -> Self) -> Option<Self> {
        match rest {
            [] => None,
            [Segment::Key(_), ..] => Some(object),
            [Segment::Index(index)] => Some(list(PathDepth::Element(*index))),
            [Segment::Index(index), ..] => Some(list(PathDepth::Deeper(*index))),
        }
    }

    /// Returns how the other place stands to this one.
    pub(super) fn inverse(self) -> Self {
        match self {
            Self::HoldsInObject => Self::InObject,
            Self::HoldsInList(depth) => Self::InList(depth),
            Self::InObject => Self::HoldsInObject,
            Self::InList(depth) => Self::HoldsInList(depth),
            Self::Apart => Self::Apart,
        }
    }
}
