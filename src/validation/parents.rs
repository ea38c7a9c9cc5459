//! Who the parent of each group is.

use std::cell::{Cell, LazyCell};
use std::collections::HashSet;

use hashbrown::HashMap;

use super::group::{GroupFile, ParentName};
use crate::diagnostic::{Diagnostic, Kind, KnownNames};
use crate::hierarchy::root_group;
use crate::model::{GroupId, GroupName};

/// For how many parents that do not exist others are looked for that may be meant: each is compared with all.
const SUGGESTED: usize = 1_000;

/// The same for parents that are given by id: all ids have the same letters, so each takes longer.
const SUGGESTED_IDS: usize = 50;

/// How many groups of one name are named.
const NAMESAKES: usize = 10;

/// Which groups of a commit are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownGroups {
    All,
    /// Not those of a file that could not be read to its end: a parent that does not exist may be there.
    Part,
}

/// Returns the parent of each group; `None` where it cannot be told, which is said.
pub(super) fn resolve(
    files: &[&GroupFile],
    known: KnownGroups,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Option<GroupId>> {
    let by_name = namesakes(files);
    let by_id = names_like_ids(&by_name, files);
    let written_root = files.iter().find(|file| file.id() == Some(GroupId::ROOT));
    // A root group that no file has has its name all the same.
    let is_root_also = |name: &str| name == GroupName::ROOT && written_root.is_none();
    let names = LazyCell::new(|| {
        let of_root = written_root.is_none().then_some(GroupName::ROOT);
        let mut names: Vec<&str> = by_name.keys().copied().chain(of_root).collect();
        names.sort_unstable();
        KnownNames::new(names.into_iter())
    });
    let missing = LazyCell::new(|| MissingNames {
        names: &names,
        meant: meant_names(files).collect(),
        known,
        suggested: Cell::new(0),
    });
    let root = root_group();
    // One in the environment of the root group is an error of its own.
    let is_apart = |file: &GroupFile| {
        let environment = file.environment();
        environment.is_some_and(|it| root.as_ref().is_some_and(|root| root.environment != *it))
    };
    files
        .iter()
        .map(|file| {
            let Some(parent) = &file.parent else { return Some(GroupId::ROOT) };
            let name = match parent {
                ParentName::Id(id) => match by_id.get(id) {
                    Some(name) => name,
                    None => return Some(*id),
                },
                ParentName::Name(name) => name.as_ref(),
            };
            match by_name.get(name) {
                Some((only, others))
                    if others.is_empty() && !(is_root_also(name) && is_apart(only)) =>
                {
                    // A group with errors of its own still is the parent that is meant.
                    Some(only.checked_group().map_or(GroupId::ROOT, |it| it.id))
                }
                Some((first, others)) => {
                    diagnostics.extend(ambiguous(file, name, (first, others), is_root_also(name)));
                    None
                }
                None if is_root_also(name) => Some(GroupId::ROOT),
                None => {
                    let root = written_root.filter(|_| name == GroupName::ROOT);
                    diagnostics.extend(missing.report(file, name, root.and_then(|it| it.name())));
                    None
                }
            }
        })
        .collect()
}

/// The first group of each name, and the others.
type Namesakes<'f> = HashMap<&'f str, (&'f GroupFile, Vec<&'f GroupFile>)>;

fn namesakes<'f>(files: &[&'f GroupFile]) -> Namesakes<'f> {
    let mut by_name: Namesakes<'_> = HashMap::with_capacity(files.len());
    for file in files {
        if let Some(name) = file.name() {
            let known = by_name.entry(name.as_str());
            known.and_modify(|(_, others)| others.push(file)).or_insert((file, Vec::new()));
        }
    }
    by_name
}

/// Returns the names that read as ids, by the ids that no group has: a parent can be named so.
fn names_like_ids<'f>(
    by_name: &Namesakes<'f>,
    files: &[&'f GroupFile],
) -> HashMap<GroupId, &'f str> {
    let like_id = |name: &&'f str| Some((GroupId::from_canonical(name)?, *name));
    let mut names: HashMap<GroupId, &str> = by_name.keys().filter_map(like_id).collect();
    if !names.is_empty() {
        let ids = files.iter().filter_map(|file| file.id()).chain([GroupId::ROOT]);
        for id in ids {
            names.remove(&id);
        }
    }
    names
}

/// Returns the texts that may be meant as names or ids of groups with errors.
fn meant_names<'f>(files: &[&'f GroupFile]) -> impl Iterator<Item = &'f str> {
    files.iter().flat_map(|it| it.meant_names()).map(String::as_str)
}

/// Reports parents that do not exist.
struct MissingNames<'n> {
    /// The names of all groups.
    names: &'n KnownNames<'n>,
    /// What may be meant as the name of a group, too.
    meant: HashSet<&'n str>,
    known: KnownGroups,
    /// For how many parents similar names were looked for.
    suggested: Cell<usize>,
}

impl MissingNames<'_> {
    /// Reports a parent, unless that only follows from another finding; `root` is the root group, if that is meant.
    fn report(&self, file: &GroupFile, name: &str, root: Option<&GroupName>) -> Option<Diagnostic> {
        if self.meant.contains(name) {
            return None;
        }
        let number = self.suggested.replace(self.suggested.get() + 1);
        let similar = (number < SUGGESTED).then(|| self.names.closest(name)).flatten();
        let meant = root.map_or(Meant::of(similar), Meant::Root);
        let is_open = self.known == KnownGroups::Part && matches!(meant, Meant::Unknown);
        if is_open { None } else { missing(file, name, &meant) }
    }
}

/// What is meant by a parent that does not exist.
enum Meant<'n> {
    /// The root group, which is written with this name.
    Root(&'n GroupName),
    /// A group with a similar name or id.
    Similar(&'n str),
    Unknown,
}

impl<'n> Meant<'n> {
    fn of(similar: Option<&'n str>) -> Self {
        similar.map_or(Self::Unknown, Self::Similar)
    }
}

fn missing(file: &GroupFile, name: &str, meant: &Meant<'_>) -> Option<Diagnostic> {
    let place = file.parent_place()?;
    let message = format!("the parent `{name}` does not exist");
    let mut diagnostic = Diagnostic::new(Kind::MissingParent, place, message);
    diagnostic.group = file.name().map(ToString::to_string);
    if file.id() == Some(GroupId::ROOT) {
        // No other parent would do.
        return Some(diagnostic.with_help("leave `parent` out: the root group is its own parent"));
    }
    Some(diagnostic.with_help(match meant {
        Meant::Root(root) => format!("leave `parent` out: the root group is called `{root}` here"),
        Meant::Similar(similar) => format!("did you mean `{similar}`?"),
        Meant::Unknown => "name a group of this repository, by name or id".to_owned(),
    }))
}

/// Returns that a parent is named by the name of several groups; that several have one id is reported already.
fn ambiguous(
    file: &GroupFile,
    name: &str,
    (first, others): (&GroupFile, &[&GroupFile]),
    is_root_also: bool,
) -> Option<Diagnostic> {
    let place = file.parent_place()?;
    let mut seen = HashSet::new();
    let is_other = |it: &&GroupFile| it.id().is_none_or(|id| seen.insert(id));
    let several = std::iter::once(first).chain(others.iter().copied());
    let several: Vec<&GroupFile> = several.filter(is_other).collect();
    let count = several.len() + usize::from(is_root_also);
    if count < 2 {
        return None;
    }
    let root = is_root_also.then_some(GroupId::ROOT);
    let message = format!("the parent `{name}` is the name of {count} groups");
    let known = several.iter().filter_map(|it| it.id()).chain(root);
    let mut ids: Vec<String> = known.map(|id| format!("`{id}`")).take(NAMESAKES).collect();
    if count > NAMESAKES {
        ids.push(format!("that of another of the {count}"));
    }
    let help = match ids.as_slice() {
        [] => "correct the errors of these groups, and name one of them by its id".to_owned(),
        ids => format!("name it by id: {}", ids.join(" or ")),
    };
    let mut diagnostic = Diagnostic::new(Kind::AmbiguousParent, place, message).with_help(help);
    diagnostic.group = file.name().map(ToString::to_string);
    for it in several.iter().take(NAMESAKES) {
        let message = match it.environment() {
            Some(environment) => format!("one in the environment `{environment}`"),
            None => "one in an environment that is not known".to_owned(),
        };
        diagnostic = diagnostic.with_related(it.place(), message);
    }
    Some(diagnostic)
}

/// Reports the parents, given by id, that no group has; one that has errors of its own is there.
pub(super) fn check_ids(
    files: &[&GroupFile],
    children: &[(&GroupFile, GroupId)],
    (valid, known): (&HashSet<GroupId>, KnownGroups),
    diagnostics: &mut Vec<Diagnostic>,
) {
    if children.is_empty() {
        return;
    }
    let ids: Vec<GroupId> = files.iter().filter_map(|it| it.id()).collect();
    let meant = meant_names(files).filter_map(|it| it.parse().ok());
    let written: HashSet<GroupId> = ids.iter().copied().chain(meant).collect();
    let texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let names = LazyCell::new(|| KnownNames::new(texts.iter().map(String::as_str)));
    let is_missing =
        |it: &&(&GroupFile, GroupId)| !written.contains(&it.1) && !valid.contains(&it.1);
    for (number, (file, parent)) in children.iter().filter(is_missing).enumerate() {
        let text = parent.to_string();
        let similar = || names.closest(&text);
        let similar = (number < SUGGESTED_IDS).then(similar).flatten();
        if known == KnownGroups::All || similar.is_some() {
            diagnostics.extend(missing(file, &text, &Meant::of(similar)));
        }
    }
}
