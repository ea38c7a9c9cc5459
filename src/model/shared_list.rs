//! Lists that share what they have in common.

use std::ops::Index;
use std::sync::Arc;

/// How many elements a piece has.
const PIECE: usize = 64;

/// A list that shares its pieces with those that are made of it, but for the pieces that differ.
///
/// A commit changes a few groups of thousands. To count one more user of each of the others, and one less when the
/// commit before is forgotten, would drive what requests need out of the caches of the processor.
#[derive(Clone, Debug)]
pub struct SharedList<T> {
    /// All but the last have [`PIECE`] elements.
    pieces: Arc<[Arc<[T]>]>,
    length: usize,
}

impl<T> SharedList<T> {
    /// Returns how many elements there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the element before which so many stand.
    pub fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / PIECE)?.get(at % PIECE)
    }

    /// Returns the elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// Returns how many elements at the beginning are wanted, where all that are wanted stand before the others.
    pub fn partition_point(&self, is_wanted: impl Fn(&T) -> bool) -> usize {
        let whole = self.pieces.partition_point(|piece| piece.last().is_some_and(&is_wanted));
        let rest = self.pieces.get(whole).map(|piece| piece.partition_point(&is_wanted));
        rest.map_or(self.length, |rest| whole * PIECE + rest)
    }

    /// Returns the list with other elements in some places; those behind its end are left out.
    #[must_use]
    pub fn with(&self, others: impl IntoIterator<Item = (usize, T)>) -> Self
    where
        T: Clone,
    {
        let mut pieces = self.pieces.to_vec();
        for (at, other) in others {
            let place = pieces.get_mut(at / PIECE).map(Arc::make_mut);
            if let Some(place) = place.and_then(|piece| piece.get_mut(at % PIECE)) {
                *place = other;
            }
        }
        Self { pieces: pieces.into(), length: self.length }
    }

    /// Returns the places and elements of both lists where they do not share a piece, up to the end of the shorter one.
    pub fn apart<'l>(&'l self, other: &'l Self) -> impl Iterator<Item = (usize, &'l T, &'l T)> {
        let pieces = self.pieces.iter().zip(other.pieces.iter()).enumerate();
        let apart = pieces.filter(|(_, (one, other))| !Arc::ptr_eq(one, other));
        apart.flat_map(|(number, (one, other))| {
            let pairs = one.iter().zip(other.iter()).enumerate();
            pairs.map(move |(at, (one, other))| (number * PIECE + at, one, other))
        })
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { pieces: Arc::default(), length: 0 }
    }
}

impl<T> Index<usize> for SharedList<T> {
    type Output = T;

    #[expect(
        clippy::indexing_slicing,
        reason = "an index behind the end is a fault, as in a slice"
    )]
    fn index(&self, at: usize) -> &T {
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<T> FromIterator<T> for SharedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut elements = elements.into_iter();
        let mut length = 0;
        let next = || {
            let piece: Arc<[T]> = elements.by_ref().take(PIECE).collect();
            length += piece.len();
            (!piece.is_empty()).then_some(piece)
        };
        let pieces = std::iter::from_fn(next).collect();
        Self { pieces, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_that_of_its_elements() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 1000] {
            let list: SharedList<usize> = (0..length).collect();
            assert_eq!((list.len(), list.is_empty()), (length, length == 0));
            assert!(list.iter().copied().eq(0..length));
            assert!(list.iter().rev().copied().eq((0..length).rev()));
            assert!((0..length).all(|at| list.get(at) == Some(&at) && list[at] == at));
            assert_eq!(list.get(length), None);
            assert!((0..=length).all(|at| list.partition_point(|it| *it < at) == at));
            assert_eq!(list.apart(&list.clone()).count(), 0);
        }
    }

    #[test]
    fn others_are_put_in_their_places_and_the_rest_is_shared() {
        let list: SharedList<usize> = (0..200).collect();
        let places = [0, 1, 130, 199, 200, 10_000];
        let other = list.with(places.map(|at| (at, at + 1000)));
        assert!(list.iter().copied().eq(0..200), "the one before stays as it was");
        for at in 0..200 {
            assert_eq!(other[at], if places.contains(&at) { at + 1000 } else { at });
        }
        let shared: Vec<bool> =
            list.pieces.iter().zip(other.pieces.iter()).map(|(a, b)| Arc::ptr_eq(a, b)).collect();
        assert_eq!(shared, [false, true, false, false]);
        let differ: Vec<usize> =
            list.apart(&other).filter(|(_, a, b)| a != b).map(|(at, ..)| at).collect();
        assert_eq!(differ, [0, 1, 130, 199]);
        assert!(list.with([]).apart(&list).next().is_none());
    }
}
