//! Where the keys of a change are written.
//!
//! Nothing but the place of each group is kept; the two files of a change are read again when it is
//! shown.

use std::collections::BTreeMap;

use super::Side;
use super::changed_key::ChangedKey;
use super::groups::How;
use super::report::Impact;
use crate::diagnostic::Place;
use crate::document::{Limits, Node, read};
use crate::model::GroupId;

/// How many changes are located; of others the group's own line is shown.
const MOST: usize = 1_000;

/// A state whose files can be read.
#[derive(Clone, Copy)]
pub struct StateFiles<'a> {
    /// The state.
    pub side: Side<'a>,
    /// Returns what a file says; none if it cannot be read.
    pub read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

impl std::fmt::Debug for StateFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("side", &self.side).finish_non_exhaustive()
    }
}

/// How many levels of a key are told apart: a value is replaced whole.
fn levels(key: &str) -> usize {
    match key {
        "classes" | "config_data" => 3,
        "variables" => 2,
        _ => 1,
    }
}

/// Collects the keys in which two mappings differ, in the order of the second.
fn collect(old: &Node, new: &Node, path: &[String], line: u32, found: &mut Vec<ChangedKey>) {
    let at = |key: &str| -> Vec<String> {
        let key = key.strip_prefix("::").unwrap_or(key);
        path.iter().cloned().chain([key.to_owned()]).collect()
    };
    // A description changes nothing on a node.
    let counts = |key: &str| !path.is_empty() || key != "description";
    for entry in new.entries().iter().filter(|it| counts(&it.key)) {
        let path = at(&entry.key);
        let line = entry.key_span.start.line;
        match old.get(&entry.key) {
            Some(before) if before.to_value() == entry.value.to_value() => {}
            Some(before)
                if path.first().is_some_and(|top| path.len() < levels(top))
                    && !before.entries().is_empty()
                    && !entry.value.entries().is_empty() =>
            {
                collect(before, &entry.value, &path, line, found);
            }
            _ => found.push(ChangedKey { path, line }),
        }
    }
    for entry in old.entries().iter().filter(|it| counts(&it.key)) {
        if new.get(&entry.key).is_none() {
            found.push(ChangedKey { path: at(&entry.key), line });
        }
    }
}

/// The documents of the file that was read last: changes stand together in files.
#[derive(Default)]
struct Last(Option<(String, Vec<Node>)>);

impl Last {
    fn document(&mut self, files: &StateFiles<'_>, place: &Place) -> Option<&Node> {
        if self.0.as_ref().is_none_or(|(path, _)| *path != *place.file) {
            let bytes = (files.read)(&place.file)?;
            let documents = read(&bytes, &Limits::DEFAULT).documents;
            self.0 = Some((place.file.to_string(), documents));
        }
        let (_, documents) = self.0.as_ref()?;
        documents.iter().find(|it| it.name_span() == place.span)
    }
}

impl Impact {
    /// Finds out where the keys of the changes are written.
    pub fn locate(&mut self, base: &StateFiles<'_>, head: &StateFiles<'_>) {
        let (mut before, mut after) = (Last::default(), Last::default());
        let mut keys = |old: Option<&Place>, new: Option<&Place>| -> Option<Vec<ChangedKey>> {
            let old = before.document(base, old?)?;
            let new = after.document(head, new?)?;
            let mut found = Vec::new();
            collect(old, new, &[], new.name_span().start.line, &mut found);
            Some(found)
        };
        let origin = |origins: &BTreeMap<GroupId, Place>, id: GroupId| origins.get(&id).cloned();
        for change in self.groups.iter_mut().take(MOST) {
            let former = match &change.how {
                How::Modified(_) => change.id,
                How::Renamed { from, .. } => *from,
                How::Added | How::Removed => continue,
            };
            let old = origin(base.side.origins, former);
            let new = origin(head.side.origins, change.id);
            change.keys = keys(old.as_ref(), new.as_ref()).unwrap_or_default();
            change.line = change.keys.iter().map(|it| it.line).min().or(change.line);
        }
        for change in self.node_files.iter_mut().take(MOST) {
            if let How::Modified(_) = change.how {
                let old = base.side.node_origins.get(&change.node);
                change.keys =
                    keys(old, head.side.node_origins.get(&change.node)).unwrap_or_default();
                change.line = change.keys.iter().map(|it| it.line).min().or(change.line);
            }
        }
    }
}
