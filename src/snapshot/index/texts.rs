//! Texts that rules compare values with, each once.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::super::paths::PathId;

/// The number of a text.
pub(super) type TextId = u32;

/// What a text is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum TextSide {
    /// The value at a path.
    Value,
    /// An element of the list there.
    Element,
    /// A part of the string there.
    Part,
}

/// Texts with where and how they are compared.
#[derive(Clone, Debug, Default)]
pub(super) struct TextIndex {
    all: Vec<(PathId, TextSide, Arc<str>)>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl TextIndex {
    /// Makes room for so many texts, which is then not made bit by bit.
    pub(super) fn reserve(&mut self, count: usize) {
        self.all.reserve(count);
        let (all, hasher) = (&self.all, &self.hasher);
        self.table.reserve(count, |id| hash_of(all, hasher, *id));
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns every text, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(PathId, TextSide, Arc<str>)> {
        self.all.iter()
    }

    pub(super) fn get(&self, path: PathId, side: TextSide, text: &str) -> Option<TextId> {
        self.find(self.hasher.hash_one((path, side, text)), path, side, text)
    }

    fn find(&self, hash: u64, path: PathId, side: TextSide, text: &str) -> Option<TextId> {
        let is_it = |id: &u32| {
            self.all
                .get(*id as usize)
                .is_some_and(|it| it.0 == path && it.1 == side && it.2.as_ref() == text)
        };
        self.table.find(hash, is_it).copied()
    }

    pub(super) fn intern(&mut self, path: PathId, side: TextSide, text: &Arc<str>) -> TextId {
        let hash = self.hasher.hash_one((path, side, text.as_ref()));
        if let Some(known) = self.find(hash, path, side, text) {
            return known;
        }
        let id = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push((path, side, Arc::clone(text)));
        let (all, hasher) = (&self.all, &self.hasher);
        self.table.insert_unique(hash, id, |id| hash_of(all, hasher, *id));
        id
    }
}

fn hash_of(all: &[(PathId, TextSide, Arc<str>)], hasher: &DefaultHashBuilder, id: TextId) -> u64 {
    all.get(id as usize)
        .map_or(0, |(path, side, text)| hasher.hash_one((path, side, text.as_ref())))
}
