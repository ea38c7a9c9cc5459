//! Which letters are as good as each other.

use std::hash::Hash;

use hashbrown::HashMap;

use super::ends::ALPHABET;

/// The letters of the alphabet in classes: those of one class lead to the same state from every state.
#[derive(Debug)]
pub(super) struct LetterClasses {
    /// The class of each letter, by its place in the alphabet.
    of_letters: Vec<u8>,
    /// In the order of their first letters.
    classes: Vec<LetterClass>,
}

/// A class of letters.
#[derive(Clone, Copy, Debug)]
pub(super) struct LetterClass {
    /// The place of its first letter in the alphabet.
    pub(super) first: u8,
    /// Whether it has no other letter.
    pub(super) is_alone: bool,
}

impl LetterClasses {
    /// Puts those letters into one class that have the same key; it is asked for by letter and place.
    pub(super) fn by<K: Hash + Eq>(key: impl Fn(u8, usize) -> K) -> Self {
        let mut known: HashMap<K, u8> = HashMap::new();
        let mut classes: Vec<LetterClass> = Vec::new();
        let of_letter = |(place, letter): (u8, &u8)| {
            let new = u8::try_from(classes.len()).unwrap_or(u8::MAX);
            let class = *known.entry(key(*letter, usize::from(place))).or_insert(new);
            match classes.get_mut(usize::from(class)) {
                Some(known) => known.is_alone = false,
                None => classes.push(LetterClass { first: place, is_alone: true }),
            }
            class
        };
        let of_letters = (0..).zip(ALPHABET).map(of_letter).collect();
        Self { of_letters, classes }
    }

    /// Returns how many classes there are.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns the classes in the order of their first letters.
    pub(super) fn iter(&self) -> impl Iterator<Item = &LetterClass> {
        self.classes.iter()
    }

    /// Returns the class of the letter at a place of the alphabet.
    pub(super) fn of(&self, place: impl Into<usize>) -> usize {
        self.of_letters.get(place.into()).copied().map(usize::from).unwrap_or_default()
    }
}
