//! Texts and paths that many parts of an estate have.
//!
//! Thousands of groups read the same facts, set the same parameters and are of the same environments. Each thread
//! keeps what it made last and shares it with what it makes next. What is shared is compared in full.

use std::cell::RefCell;
use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::Segment;

/// How many texts, and how many paths, a thread keeps.
const SLOTS: usize = 1024;

/// The longest text that is kept, in bytes.
const LONGEST: usize = 64;

/// The longest path that is kept, in segments.
const SEGMENTS: usize = 8;

thread_local! {
    static TEXTS: RefCell<Recent<str>> = RefCell::default();
    static PATHS: RefCell<Recent<[Segment]>> = RefCell::default();
}

/// What was made last, by its hash.
struct Recent<T: ?Sized> {
    slots: Vec<Option<Arc<T>>>,
    hasher: DefaultHashBuilder,
}

impl<T: ?Sized> Default for Recent<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T: ?Sized + Hash + Eq> Recent<T> {
    fn get(&mut self, value: &T) -> Arc<T>
    where
        for<'v> Arc<T>: From<&'v T>,
    {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, None);
        }
        let hash = usize::try_from(self.hasher.hash_one(value) % SLOTS as u64).unwrap_or_default();
        let Some(slot) = self.slots.get_mut(hash) else { return value.into() };
        match slot {
            Some(known) if **known == *value => Arc::clone(known),
            _ => Arc::clone(slot.insert(value.into())),
        }
    }
}

/// Returns a text, which other parts of an estate may share.
pub(crate) fn shared_text(text: &str) -> Arc<str> {
    if text.len() > LONGEST {
        return text.into();
    }
    TEXTS.try_with(|recent| recent.borrow_mut().get(text)).unwrap_or_else(|_| text.into())
}

/// Returns the segments of a path, which other rules may share.
pub(crate) fn shared_path(segments: &[Segment]) -> Arc<[Segment]> {
    if segments.len() > SEGMENTS {
        return segments.into();
    }
    PATHS.try_with(|recent| recent.borrow_mut().get(segments)).unwrap_or_else(|_| segments.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_and_paths_are_shared_and_others_are_not() {
        let texts: Vec<String> =
            (0..3000).map(|number| format!("text-{}", number % 2000)).collect();
        for text in texts.iter().map(String::as_str).chain(["", &"x".repeat(100)]) {
            assert_eq!(&*shared_text(text), text);
            assert_eq!(Arc::ptr_eq(&shared_text(text), &shared_text(text)), text.len() <= LONGEST);
            let path = |last: Segment| vec![Segment::Key(shared_text("fact")), last];
            for path in [path(Segment::Key(text.into())), path(Segment::Index(text.len() as u64))] {
                assert_eq!(*shared_path(&path), *path);
                assert!(Arc::ptr_eq(&shared_path(&path), &shared_path(&path)));
            }
        }
        let long = vec![Segment::Index(1); 100];
        assert_eq!(*shared_path(&long), *long);
        assert!(!Arc::ptr_eq(&shared_path(&long), &shared_path(&long)));
    }
}
