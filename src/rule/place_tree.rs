//! The places that rules ask about, as a tree, and which of them can hold values together.
//!
//! A value at one place leaves no room for others: what is inside it wants a mapping or a list there. Each place
//! knows its way up, and each place on that way counts what is held below it, so a look takes as long as the way
//! and not as there are places.

use hashbrown::{Equivalent, HashMap};

use crate::model::Segment;

/// The number of a place.
pub(super) type PlaceNumber = usize;

/// The places that rules ask about.
#[derive(Debug, Default)]
pub(super) struct PlaceTree {
    /// All that is passed on the way to a place, the places among it.
    stations: Vec<Station>,
    /// What lies behind a station and a segment.
    behind: HashMap<(usize, Segment), usize>,
    /// Where each place is among the stations.
    places: Vec<usize>,
}

#[derive(Debug)]
struct Station {
    /// The station before this one, and how it leads here; none for those where ways begin.
    before: Option<(usize, Passage)>,
    /// How many segments lead here.
    depth: usize,
    place: Option<PlaceNumber>,
    /// The elements, where this is a list.
    elements: Vec<usize>,
}

/// How one station leads to the next.
#[derive(Clone, Copy, Debug)]
enum Passage {
    Key,
    Index(u64),
}

/// A station and a segment that are looked up; they have the same hash.
#[derive(Hash)]
struct BorrowedPassage<'s>(usize, &'s Segment);

impl Equivalent<(usize, Segment)> for BorrowedPassage<'_> {
    fn equivalent(&self, (station, segment): &(usize, Segment)) -> bool {
        self.0 == *station && self.1 == segment
    }
}

/// What must be at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldKind {
    Nothing,
    /// What can be a list.
    List,
    Single,
}

impl PlaceTree {
    /// Returns how many places there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the number of a place: its own if it is known, otherwise the next.
    pub(super) fn number(&mut self, way: &[Segment]) -> PlaceNumber {
        if self.stations.is_empty() {
            self.stations.push(Station {
                before: None,
                depth: 0,
                place: None,
                elements: Vec::new(),
            });
        }
        let at = way.iter().fold(0, |station, segment| self.pass(station, segment));
        let next = self.places.len();
        let Some(station) = self.stations.get_mut(at) else { return next };
        if let Some(known) = station.place {
            return known;
        }
        station.place = Some(next);
        self.places.push(at);
        next
    }

    /// Returns the station behind another one.
    fn pass(&mut self, station: usize, segment: &Segment) -> usize {
        if let Some(known) = self.behind.get(&BorrowedPassage(station, segment)) {
            return *known;
        }
        let next = self.stations.len();
        let passage = match segment {
            Segment::Key(_) => Passage::Key,
            Segment::Index(index) => Passage::Index(*index),
        };
        let depth = self.stations.get(station).map_or(0, |it| it.depth) + 1;
        let before = Some((station, passage));
        self.stations.push(Station { before, depth, place: None, elements: Vec::new() });
        if let (Passage::Index(_), Some(list)) = (passage, self.stations.get_mut(station)) {
            list.elements.push(next);
        }
        self.behind.insert((station, segment.clone()), next);
        next
    }

    fn station(&self, place: PlaceNumber) -> Option<&Station> {
        self.stations.get(*self.places.get(place)?)
    }

    /// Returns how many segments lead to a place.
    pub(super) fn depth(&self, place: PlaceNumber) -> usize {
        self.station(place).map_or(0, |it| it.depth)
    }

    /// Returns the places that are elements of the list at a place.
    pub(super) fn elements(&self, place: PlaceNumber) -> Vec<PlaceNumber> {
        let elements = self.station(place).map_or(&[][..], |it| it.elements.as_slice());
        elements.iter().filter_map(|it| self.stations.get(*it)?.place).collect()
    }

    /// Returns the places in whose values a place is as an element or in an element, and which element that is.
    pub(super) fn lists_around(
        &self,
        place: PlaceNumber,
    ) -> impl Iterator<Item = (PlaceNumber, u64)> {
        self.way_up(place).filter_map(|(station, passage)| match passage {
            Passage::Key => None,
            Passage::Index(index) => Some((self.stations.get(station)?.place?, index)),
        })
    }

    /// Returns what is passed on the way up from a place, and how each station leads to the one before it.
    fn way_up(&self, place: PlaceNumber) -> impl Iterator<Item = (usize, Passage)> {
        let before = |at: usize| self.stations.get(at)?.before;
        std::iter::successors(self.station(place).and_then(|it| it.before), move |it| before(it.0))
    }
}

/// Which places hold a value.
#[derive(Debug, Default)]
pub(super) struct HeldPlaces {
    /// How many hold one below each station.
    below: Vec<HeldBelow>,
}

/// How many places hold a value below a station.
#[derive(Clone, Copy, Debug, Default)]
struct HeldBelow {
    keys: u32,
    indexes: u32,
}

impl HeldPlaces {
    /// Makes room for all places of a tree.
    pub(super) fn fit(&mut self, tree: &PlaceTree) {
        self.below.resize(tree.stations.len().max(self.below.len()), HeldBelow::default());
    }

    /// Notes that a place, which held no value, holds one.
    pub(super) fn hold(&mut self, tree: &PlaceTree, place: PlaceNumber) {
        self.count(tree, place, |count| *count += 1);
    }

    /// Notes that a place holds no value any more.
    pub(super) fn release(&mut self, tree: &PlaceTree, place: PlaceNumber) {
        self.count(tree, place, |count| *count = count.saturating_sub(1));
    }

    fn count(&mut self, tree: &PlaceTree, place: PlaceNumber, change: impl Fn(&mut u32)) {
        for (station, passage) in tree.way_up(place) {
            let Some(below) = self.below.get_mut(station) else { continue };
            change(match passage {
                Passage::Key => &mut below.keys,
                Passage::Index(_) => &mut below.indexes,
            });
        }
    }

    /// Returns whether a value at a place and those at all others can stand in one node.
    pub(super) fn leave_room(
        &self,
        tree: &PlaceTree,
        place: PlaceNumber,
        held: impl Fn(PlaceNumber) -> HeldKind,
    ) -> bool {
        let below = |station: usize| self.below.get(station).copied().unwrap_or_default();
        let inside = tree.places.get(place).map_or(HeldBelow::default(), |it| below(*it));
        if inside.keys > 0 || (inside.indexes > 0 && held(place) != HeldKind::List) {
            return false;
        }
        tree.way_up(place).all(|(station, passage)| {
            let here = tree.stations.get(station).and_then(|it| it.place);
            let here = here.map_or(HeldKind::Nothing, &held);
            // A mapping has keys and a list has indexes.
            match passage {
                Passage::Key => below(station).indexes == 0 && here == HeldKind::Nothing,
                Passage::Index(_) => below(station).keys == 0 && here != HeldKind::Single,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns whether values at two places can stand in one node.
    fn are_compatible(
        (one, mine): (&[Segment], HeldKind),
        (other, theirs): (&[Segment], HeldKind),
    ) -> bool {
        let shared = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        match (one.get(shared), other.get(shared)) {
            (None, None) => true,
            (Some(Segment::Index(_)), None) => theirs == HeldKind::List,
            (None, Some(Segment::Index(_))) => mine == HeldKind::List,
            (Some(Segment::Key(_)), None) | (None, Some(Segment::Key(_))) => false,
            (Some(a), Some(b)) => matches!(a, Segment::Index(_)) == matches!(b, Segment::Index(_)),
        }
    }

    fn way() -> impl Strategy<Value = Vec<Segment>> {
        let segment = prop_oneof![
            prop::sample::select(vec!["a", "b"]).prop_map(|it| Segment::Key(it.into())),
            (0..2_u64).prop_map(Segment::Index),
        ];
        prop::collection::vec(segment, 1..5)
    }

    proptest! {
        #[test]
        fn values_have_room_where_each_two_have(
            all in prop::collection::vec((way(), prop::bool::ANY, prop::bool::ANY), 1..12),
        ) {
            let mut tree = PlaceTree::default();
            let mut held: Vec<(Vec<Segment>, HeldKind)> = Vec::new();
            let mut places = HeldPlaces::default();
            for (way, is_list, is_released) in all {
                let place = tree.number(&way);
                places.fit(&tree);
                let kind = if is_list { HeldKind::List } else { HeldKind::Single };
                if place == held.len() {
                    held.push((way, HeldKind::Nothing));
                }
                let was_held = held[place].1 != HeldKind::Nothing;
                if was_held && is_released {
                    places.release(&tree, place);
                    held[place].1 = HeldKind::Nothing;
                    continue;
                }
                if !was_held {
                    places.hold(&tree, place);
                }
                held[place].1 = kind;
                let own = (held[place].0.as_slice(), kind);
                let others = held.iter().enumerate().filter(|(at, it)| *at != place && it.1 != HeldKind::Nothing);
                let expected = others.map(|(_, it)| it).all(|it| are_compatible(own, (&it.0, it.1)));
                let has_room = places.leave_room(&tree, place, |it| held[it].1);
                prop_assert_eq!(has_room, expected, "{:?}", held);
            }
        }
    }

    #[test]
    fn a_place_knows_the_lists_around_it_and_its_elements() {
        let key = |text: &str| Segment::Key(text.into());
        let mut tree = PlaceTree::default();
        let list = tree.number(&[key("fact"), key("disks")]);
        let size = tree.number(&[key("fact"), key("disks"), Segment::Index(3), key("size")]);
        let element = tree.number(&[key("fact"), key("disks"), Segment::Index(2)]);
        assert_eq!(tree.number(&[key("fact"), key("disks")]), list);
        assert_eq!(tree.len(), 3);
        assert_eq!(tree.lists_around(size).collect::<Vec<_>>(), [(list, 3)]);
        assert_eq!(tree.elements(list), [element]);
        assert_eq!([list, size, element].map(|it| tree.depth(it)), [2, 4, 3]);
    }
}
