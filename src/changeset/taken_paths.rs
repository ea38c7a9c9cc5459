//! The paths that a new file cannot have: file systems may tell neither upper from lower case nor a composed character
//! from a decomposed one, and keep one of two files there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use super::context::PathKind;
use super::rejection::{Rejection, RejectionKind};

/// The names in a directory that are the same to such a file system, with what stands there.
type SameNames = HashMap<String, Vec<(String, PathKind)>>;

/// What the repository has while a write changes it.
pub(super) struct TakenPaths<'g> {
    /// Returns the names in a directory of the repository.
    names: &'g dyn Fn(&str) -> Vec<(String, PathKind)>,
    /// The directories that were listed.
    listed: RefCell<HashMap<String, Rc<SameNames>>>,
    /// The files that the write adds, as they are compared.
    written: BTreeSet<String>,
    /// The files that it removes.
    removed: HashSet<String>,
}

impl<'g> TakenPaths<'g> {
    pub(super) fn new(names: &'g dyn Fn(&str) -> Vec<(String, PathKind)>) -> Self {
        Self {
            names,
            listed: RefCell::default(),
            written: BTreeSet::new(),
            removed: HashSet::new(),
        }
    }

    pub(super) fn note_written(&mut self, path: &str) {
        self.written.insert(folded(path));
    }

    pub(super) fn note_removed(&mut self, path: &str) {
        self.removed.insert(path.to_owned());
    }

    /// Returns whether a file or directory is in the way of a new file. One that is removed makes room for its own path
    /// alone.
    pub(super) fn is_taken(&self, path: &str) -> bool {
        let is_left = |(there, kind): &(String, PathKind)| {
            *kind == PathKind::Directory || there != path || !self.removed.contains(path)
        };
        let compared = folded(path);
        let below = format!("{compared}/");
        self.written.contains(&compared)
            || self.written.range(below.clone()..).next().is_some_and(|it| it.starts_with(&below))
            || self.found(path).iter().any(is_left)
    }

    /// Returns whether a path cannot be a directory: a file that the write removes is there until then.
    pub(super) fn is_file(&self, path: &str) -> bool {
        self.written.contains(&folded(path))
            || self.found(path).iter().any(|(_, kind)| *kind == PathKind::File)
    }

    /// Returns what keeps a path from being a directory, if the repository has a file there or on the way to it that the
    /// write does not remove.
    pub(super) fn file_at(&self, directory: &str) -> Option<String> {
        let ends = directory.match_indices('/').map(|(at, _)| at).chain([directory.len()]);
        let is_file = |path: &&str| {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            let there = self.listed(above).get(&folded(name)).cloned().unwrap_or_default();
            let is_it = |(it, kind): &(String, PathKind)| it == name && *kind == PathKind::File;
            there.iter().any(is_it) && !self.removed.contains(*path)
        };
        ends.filter_map(|at| directory.get(..at)).find(is_file).map(str::to_owned)
    }

    /// Refuses to write below a path that cannot be a directory.
    pub(super) fn check_directory(&self, directory: &str) -> Result<(), Rejection> {
        let Some(file) = self.file_at(directory) else { return Ok(()) };
        let message = format!(
            "a new file would be below `{file}`, which is not a directory: remove or rename it by a commit."
        );
        Err(Rejection::new(RejectionKind::InvalidCommit, message, Value::Array(Vec::new())))
    }

    /// Returns what the repository has at a path, and at those that are the same to such a file system.
    fn found(&self, path: &str) -> Vec<(String, PathKind)> {
        let mut found = vec![(String::new(), PathKind::Directory)];
        for part in path.split('/') {
            let part = folded(part);
            let mut below = Vec::new();
            for (directory, _) in found.iter().filter(|(_, kind)| *kind == PathKind::Directory) {
                let listed = self.listed(directory);
                let same = listed.get(&part).into_iter().flatten();
                below.extend(same.map(|(name, kind)| (join(directory, name), *kind)));
            }
            found = below;
        }
        found
    }

    fn listed(&self, directory: &str) -> Rc<SameNames> {
        let mut listed = self.listed.borrow_mut();
        let names = listed.entry(directory.to_owned()).or_insert_with(|| {
            let mut same = SameNames::new();
            for (name, kind) in (self.names)(directory) {
                same.entry(folded(&name)).or_default().push((name, kind));
            }
            Rc::new(same)
        });
        Rc::clone(names)
    }
}

/// Returns a path as it is compared: the same for all that a file system may take for one. It is never shown, and more
/// of them are the same than for any one file system.
pub(super) fn folded(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    // Some letters are the same only in upper case, such as both forms of a small sigma.
    let upper = path.nfd().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfd().collect()
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn paths_are_compared_as_file_systems_do() {
        let rows = [
            ("groups/Web.yaml", "groups/web.yaml", true),
            ("Groups/web.yaml", "groups/WEB.YAML", true),
            ("e\u{301}.yaml", "\u{e9}.yaml", true),
            ("E\u{301}.yaml", "\u{e9}.yaml", true),
            ("stra\u{df}e", "STRASSE", true),
            ("\u{3c3}\u{3c2}", "\u{3a3}\u{3a3}", true),
            ("\u{17f}", "s", true),
            ("\u{212a}", "k", true),
            ("e.yaml", "\u{e9}.yaml", false),
            ("web-1.yaml", "web_1.yaml", false),
        ];
        each_row(rows, |(one, other, are_same)| {
            assert_eq!(folded(one) == folded(other), are_same);
        });
    }

    #[test]
    fn a_file_keeps_its_path_from_being_a_directory() {
        let names = |directory: &str| {
            let all: &[(&str, PathKind)] = match directory {
                "" => &[("GROUPS", PathKind::File), ("a", PathKind::Directory)],
                "a" => &[("b", PathKind::File), ("gone", PathKind::File)],
                _ => &[],
            };
            all.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
        };
        let mut taken = TakenPaths::new(&names);
        taken.note_removed("a/gone");
        let rows = [
            // Whether both can be checked out is for the file system.
            ("groups", None),
            ("GROUPS", Some("GROUPS")),
            ("a/b", Some("a/b")),
            ("a/b/c", Some("a/b")),
            ("a", None),
            ("a/c/b", None),
            ("a/gone", None),
        ];
        each_row(rows, |(path, expected)| {
            assert_eq!(taken.file_at(path).as_deref(), expected);
            assert_eq!(taken.check_directory(path).is_ok(), expected.is_none());
        });
    }

    #[test]
    fn a_path_is_taken_by_what_a_file_system_takes_for_it() {
        let names = |directory: &str| {
            let all: &[(&str, PathKind)] = match directory {
                "" => &[("g", PathKind::Directory), ("G", PathKind::Directory)],
                "g" => &[("Web.yaml", PathKind::File), ("gone.yaml", PathKind::File)],
                "G" => &[("e\u{301}.yaml", PathKind::File), ("Site", PathKind::Directory)],
                _ => &[],
            };
            all.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
        };
        let mut taken = TakenPaths::new(&names);
        taken.note_removed("g/gone.yaml");
        taken.note_written("g/New/kid.yaml");
        let rows = [
            ("g/web.yaml", true, true),
            ("g/\u{e9}.yaml", true, true),
            ("g/site", true, false),
            ("g/gone.yaml", false, true),
            ("g/Gone.yaml", true, true),
            ("g/new", true, false),
            ("g/new/KID.yaml", true, true),
            ("g/other.yaml", false, false),
            ("h/web.yaml", false, false),
            ("g/web.yaml/x", false, false),
        ];
        each_row(rows, |(path, is_taken, is_file)| {
            assert_eq!((taken.is_taken(path), taken.is_file(path)), (is_taken, is_file));
        });
    }
}
