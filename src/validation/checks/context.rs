//! What groups are checked against.

use std::sync::{Arc, Mutex};

use super::super::catalogue::Catalogues;
use super::super::layout::ValidationPolicy;
use super::super::places::Places;
use super::super::search::Search;
use crate::diagnostic::KnownNames;
use crate::hierarchy::{Catalogue, Hierarchy};
use crate::java_regex::Automata;
use crate::model::{ClassName, Interpolation, Meter};

/// What groups are checked against.
pub(in crate::validation) struct CheckContext<'r> {
    pub(in crate::validation) hierarchy: &'r Hierarchy,
    pub(in crate::validation) catalogues: &'r Catalogues,
    pub(in crate::validation) names: ClassNames<'r>,
    pub(in crate::validation) places: Places<'r>,
    pub(in crate::validation) policy: ValidationPolicy,
    pub(in crate::validation) interpolation: Interpolation,
    pub(in crate::validation) search: Search,
    pub(in crate::validation) automata: &'r Arc<Automata>,
    pub(in crate::validation) meter: &'r Meter,
}

/// The names of the classes of a catalogue, that of which a similar one was last looked for: thousands of
/// classes may be missing in it.
#[derive(Default)]
pub(in crate::validation) struct ClassNames<'r>(Mutex<Option<(&'r Catalogue, KnownNames<'r>)>>);

impl<'r> ClassNames<'r> {
    /// Returns the class of a catalogue that is most like a name, if one is like it at all.
    pub(super) fn closest(&self, wanted: &str, catalogue: &'r Catalogue) -> Option<&'r str> {
        let mut last = self.0.lock().ok()?;
        let known = last.take().filter(|(it, _)| std::ptr::eq(*it, catalogue));
        let names = || KnownNames::new(catalogue.classes.keys().map(ClassName::as_str));
        last.insert(known.unwrap_or_else(|| (catalogue, names()))).1.closest(wanted)
    }
}
