//! Pins to nodes that were not seen for a long time.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use crate::age::age;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};
use crate::hierarchy::Estate;
use crate::rule::parts;
use crate::validation::Checked;

/// The nodes that groups pin, and when each of them was seen last.
pub(super) struct Pins<'e> {
    estate: &'e Estate,
    /// The pinned nodes by name, those that were not seen with `None`.
    seen: BTreeMap<&'e str, Option<LastSeen>>,
}

/// When a node was seen last.
#[derive(Clone, Copy)]
enum LastSeen {
    At(Timestamp),
    /// The source of nodes does not say; it knows the node.
    Unknown,
}

impl<'e> Pins<'e> {
    pub(super) fn of(estate: &'e Estate) -> Self {
        let rules = estate.hierarchy.groups().filter_map(|it| it.rule.as_deref());
        let names: BTreeSet<&str> = rules.flat_map(|it| parts(it).1).map(AsRef::as_ref).collect();
        Self { estate, seen: names.into_iter().map(|it| (it, None)).collect() }
    }

    /// Notes that a node is known.
    pub(super) fn note(&mut self, name: &str, seen: Option<Timestamp>) {
        if let Some(last) = self.seen.get_mut(name) {
            *last = Some(seen.map_or(LastSeen::Unknown, LastSeen::At));
        }
    }

    /// Reports each pin to a node that is not known, or was not seen for so many days.
    pub(super) fn stale(
        &self,
        checked: &Checked,
        severity: Severity,
        days: u32,
        now: Timestamp,
    ) -> Vec<Diagnostic> {
        let hierarchy = &self.estate.hierarchy;
        let longest = SignedDuration::from_hours(i64::from(days) * 24);
        let mut found = Vec::new();
        for index in hierarchy.indexes() {
            let group = hierarchy.group(index);
            let Some(rule) = group.rule.as_deref() else { continue };
            let Some(written) = checked.group_file(group.id) else { continue };
            // A group can pin as many nodes as fit into a file.
            let places: LazyCell<HashMap<&str, Place>, _> = LazyCell::new(|| {
                let mut places = HashMap::new();
                for (name, place) in written.named_pins() {
                    places.entry(name).or_insert(place);
                }
                places
            });
            for name in parts(rule).1 {
                let message = match self.seen.get(name.as_ref()).copied().flatten() {
                    Some(LastSeen::Unknown) => continue,
                    Some(LastSeen::At(then)) if now.duration_since(then) < longest => continue,
                    Some(LastSeen::At(then)) => {
                        format!("the pinned node `{name}` was seen last {}", age(then, now))
                    }
                    None => format!("the pinned node `{name}` is not among the known nodes"),
                };
                let pin = places.get(name.as_ref()).cloned();
                let place = pin.or_else(|| written.rule_place()).unwrap_or_else(|| written.place());
                let mut diagnostic = Diagnostic::new(Kind::StalePin, place, message)
                    .in_group(group.name.as_str())
                    .with_help("remove the pin if the machine is gone");
                diagnostic.severity = severity;
                found.push(diagnostic);
            }
        }
        found
    }
}
