//! What groups are checked against.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::super::catalogue::Catalogues;
use super::super::incomplete::IncompleteGroups;
use super::super::layout::ValidationPolicy;
use super::super::places::Places;
use super::super::search::Search;
use crate::diagnostic::KnownNames;
use crate::hierarchy::{Catalogue, Hierarchy};
use crate::java_regex::Automata;
use crate::model::{ClassName, Interpolation, Key, Meter, Table, Value};

/// What groups are checked against.
pub(in crate::validation) struct CheckContext<'r> {
    pub(in crate::validation) hierarchy: &'r Hierarchy,
    pub(in crate::validation) catalogues: &'r Catalogues,
    pub(in crate::validation) names: CatalogueNames<'r>,
    pub(in crate::validation) places: Places<'r>,
    pub(in crate::validation) incomplete: &'r IncompleteGroups,
    pub(in crate::validation) policy: ValidationPolicy,
    pub(in crate::validation) interpolation: Interpolation,
    pub(in crate::validation) search: Search,
    pub(in crate::validation) automata: &'r Arc<Automata>,
    pub(in crate::validation) meter: &'r Meter,
}

/// For how many missing classes and parameters a similar one is looked for: each is compared with all. Which ones these are, of
/// more, depends on the order in which threads come to them.
const SUGGESTED: usize = 1_000;

/// How many lists of names are prepared at a time.
const PREPARED: usize = 4;

/// The names of classes and of the parameters of classes, which others may have been meant to be.
#[derive(Default)]
pub(in crate::validation) struct CatalogueNames<'r> {
    /// For how many names similar ones were looked for.
    suggested: AtomicUsize,
    /// Those that were looked through last, by the place of their table.
    prepared: Mutex<VecDeque<(usize, KnownNames<'r>)>>,
}

impl<'r> CatalogueNames<'r> {
    /// Returns the class of a catalogue that is most like a name, if one is like it at all.
    pub(super) fn class(&self, wanted: &str, catalogue: &'r Catalogue) -> Option<&'r str> {
        let classes = &catalogue.classes;
        let names = || KnownNames::new(classes.keys().map(ClassName::as_str));
        self.closest(wanted, std::ptr::from_ref(classes).addr(), names)
    }

    /// Returns the parameter of a class that is most like a name, if one is like it at all.
    pub(super) fn parameter(
        &self,
        wanted: &str,
        parameters: &'r Table<Key, Value>,
    ) -> Option<&'r str> {
        let names = || KnownNames::new(parameters.keys().map(Key::as_str));
        self.closest(wanted, std::ptr::from_ref(parameters).addr(), names)
    }

    fn closest(
        &self,
        wanted: &str,
        place: usize,
        names: impl FnOnce() -> KnownNames<'r>,
    ) -> Option<&'r str> {
        if self.suggested.fetch_add(1, Ordering::Relaxed) >= SUGGESTED {
            return None;
        }
        let mut prepared = self.prepared.lock().ok()?;
        if let Some((_, known)) = prepared.iter().find(|(it, _)| *it == place) {
            return known.closest(wanted);
        }
        prepared.truncate(PREPARED - 1);
        prepared.push_front((place, names()));
        prepared.front()?.1.closest(wanted)
    }
}
