//! From a new set of groups to changed files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::context::WriteContext;
use super::document::{amended, house_layout, new_document};
use super::group_changes::GroupChanges;
use super::layout::path_of;
use super::parent_names::ParentNames;
use super::rejection::{Rejection, RejectionKind};
use super::taken_paths::TakenPaths;
use crate::document::{self, EditError, Limits, Node};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Group, GroupId};
use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

/// The files while they are changed.
struct FilesDraft<'g> {
    context: &'g WriteContext<'g>,
    parents: ParentNames<'g>,
    files: BTreeMap<String, Option<String>>,
    /// The files of new groups.
    created: HashMap<GroupId, String>,
    taken: TakenPaths<'g>,
}

/// The groups of one file that a write changes: the file is read once for all of them.
#[derive(Default)]
struct FileEdits<'g> {
    edited: Vec<(&'g Group, &'g Group)>,
    removed: Vec<&'g Group>,
}

/// Returns the files that differ between the groups as they are and as they shall be.
pub(super) fn changes(
    context: &WriteContext<'_>,
    changes: &GroupChanges,
    new: &Hierarchy,
) -> Result<BTreeMap<String, Option<String>>, Rejection> {
    let old = &context.estate.hierarchy;
    let written: BTreeSet<GroupIndex> =
        changes.written.iter().filter_map(|it| new.find(it.id)).collect();
    let fresh = changes.written.iter().filter(|it| old.find(it.id).is_none());
    // Where a group has this name, it was its child that named its parent so.
    let fresh: Vec<String> = fresh.map(|it| it.id.to_string()).collect();
    let mut moved = moved_names(old, changes);
    moved.extend(fresh.iter().map(String::as_str));
    let naming = naming_moved(old, new, &moved);
    let concerned: Vec<&Group> = written.union(&naming).map(|it| new.group(*it)).collect();
    let mut draft = FilesDraft {
        context,
        parents: ParentNames::of(new, concerned.iter().copied()),
        files: BTreeMap::new(),
        created: HashMap::new(),
        taken: TakenPaths::new(context.names),
    };
    let mut by_file: BTreeMap<&Arc<str>, FileEdits<'_>> = BTreeMap::new();
    for group in concerned {
        let Some(before) = old.find(group.id).map(|it| old.group(it)) else { continue };
        match context.origins.get(&group.id) {
            Some(place) => by_file.entry(&place.file).or_default().edited.push((before, group)),
            // A root group that no file has.
            None => draft.create(group, None)?,
        }
    }
    let mut removed: Vec<GroupIndex> =
        changes.removed.iter().filter_map(|it| old.find(*it)).collect();
    removed.sort_unstable();
    for group in removed.into_iter().map(|it| old.group(it)) {
        if let Some(place) = context.origins.get(&group.id) {
            by_file.entry(&place.file).or_default().removed.push(group);
        }
    }
    for (path, edits) in &by_file {
        draft.edit(path, edits)?;
    }
    for index in written {
        // A root group that no file has is there all the same.
        if old.find(new.group(index).id).is_none() {
            let parent = new.parent(index).map(|it| new.group(it).id);
            draft.create(new.group(index), parent.filter(|it| *it != GroupId::ROOT))?;
        }
    }
    let unchanged = |path: &String, text: &Option<String>| (context.read)(path) == *text;
    draft.files.retain(|path, text| !unchanged(path, text));
    Ok(draft.files)
}

/// Returns the names that mean another group than before, or several, or none: those that groups have lost or
/// got.
fn moved_names<'g>(old: &'g Hierarchy, changes: &'g GroupChanges) -> HashSet<&'g str> {
    let before = |id: GroupId| old.find(id).map(|it| old.group(it).name.as_str());
    let mut moved: HashSet<&str> = changes.removed.iter().filter_map(|it| before(*it)).collect();
    for group in &changes.written {
        let (before, after) = (before(group.id), group.name.as_str());
        if before != Some(after) {
            moved.extend(before);
            moved.insert(after);
        }
    }
    moved
}

/// Returns the groups that may name their parent by one of these names: that of the parent that they had, or
/// that they have.
fn naming_moved(old: &Hierarchy, new: &Hierarchy, moved: &HashSet<&str>) -> BTreeSet<GroupIndex> {
    if moved.is_empty() {
        return BTreeSet::new();
    }
    let had = old.named(moved).flat_map(|it| heirs(old, it)).map(|it| old.group(it).id);
    let have = new.named(moved).flat_map(|it| heirs(new, it));
    had.filter_map(|it| new.find(it)).chain(have).collect()
}

/// Returns the groups whose parent a group is; the root group is its own.
fn heirs(hierarchy: &Hierarchy, group: GroupIndex) -> impl Iterator<Item = GroupIndex> {
    let itself = (group == hierarchy.root()).then_some(group);
    itself.into_iter().chain(hierarchy.children(group))
}

impl FilesDraft<'_> {
    /// Edits the documents of groups in a file, and takes those of others out.
    fn edit(&mut self, path: &Arc<str>, edits: &FileEdits<'_>) -> Result<(), Rejection> {
        let text = (self.context.read)(path).unwrap_or_default();
        let documents = document::read(text.as_bytes(), &Limits::DEFAULT).documents;
        let numbers = numbers(path, &text, &documents);
        let find = |group: &Group| {
            numbers.get(&group.id).copied().ok_or_else(|| stuck(group.name.as_str(), path))
        };
        let mut targets = BTreeMap::new();
        for (before, after) in &edits.edited {
            let number = find(before)?;
            let value = documents.get(number).map(Node::to_value).unwrap_or_default();
            let parent = new_parent(&value, before, after, &self.parents);
            targets.insert(number, amended(&value, before, after, parent));
        }
        let removed = edits.removed.iter().map(|it| find(it));
        let removed = removed.collect::<Result<BTreeSet<usize>, Rejection>>()?;
        let mut filled = documents.iter().enumerate().filter(|(_, it)| !it.is_null());
        let left = if filled.all(|(number, _)| removed.contains(&number)) {
            None
        } else {
            match edited(&text, &targets, &removed) {
                Ok(text) => Some(text),
                Err(EditFault::Document(number)) => {
                    return Err(stuck_at(number, &numbers, edits, path));
                }
                Err(EditFault::Size(error)) => return Err(too_large(path, &error)),
            }
        };
        if left.is_none() {
            self.taken.note_removed(path);
        }
        self.files.insert(path.to_string(), left);
        Ok(())
    }

    /// Returns whether the files in a directory below that of groups are no groups: `nodes: groups/nodes` is read for nodes.
    fn is_of_others(&self, directory: &str) -> bool {
        let layout = self.context.layout;
        let content = SourceContent::Bytes(Vec::new().into());
        let file = SourceFile { path: format!("{directory}/x.yaml").into(), content };
        let is_below =
            directory.strip_prefix(&*layout.groups).is_some_and(|it| it.starts_with('/'));
        match layout.kind_of(&file) {
            Some(kind) => kind != FileKind::Groups,
            None => is_below,
        }
    }

    /// Writes a new group into a file of its own.
    fn create(&mut self, group: &Group, parent: Option<GroupId>) -> Result<(), Rejection> {
        self.taken.check_directory(&self.context.layout.groups)?;
        let parent_file = parent.and_then(|parent| {
            let written = self.context.origins.get(&parent).map(|it| it.file.as_ref());
            written.or_else(|| self.created.get(&parent).map(String::as_str))
        });
        let path = path_of(
            group,
            parent_file,
            &self.context.layout.groups,
            &|it| self.taken.is_taken(it),
            &|it| self.taken.is_file(it) || self.is_of_others(it),
        );
        self.taken.note_written(&path);
        self.created.insert(group.id, path.clone());
        self.files.insert(path, Some(new_document(group, &self.parents)));
        Ok(())
    }
}

/// Why the documents of a file cannot be edited.
enum EditFault {
    /// One of them, by its number, cannot be.
    Document(usize),
    /// The file would be too large.
    Size(EditError),
}

/// Returns a file after its documents are edited and removed.
fn edited(
    text: &str,
    targets: &BTreeMap<usize, Value>,
    removed: &BTreeSet<usize>,
) -> Result<String, EditFault> {
    let edit =
        |targets: &BTreeMap<usize, Value>| document::edit_documents(text, targets, &house_layout);
    let edited = edit(targets).map_err(|error| {
        if matches!(error, EditError::TooLarge(_)) {
            return EditFault::Size(error);
        }
        let fails = |(number, value): &(&usize, &Value)| {
            edit(&BTreeMap::from([(**number, (*value).clone())])).is_err()
        };
        let number = targets.iter().find(fails).or_else(|| targets.iter().next());
        EditFault::Document(number.map_or(0, |it| *it.0))
    })?;
    if removed.is_empty() {
        return Ok(edited);
    }
    let first = removed.first().copied().unwrap_or(0);
    document::remove_documents(&edited, removed).map_err(|_| EditFault::Document(first))
}

/// Returns how a group names its parent, if that is to change.
fn new_parent(
    document: &Value,
    before: &Group,
    after: &Group,
    parents: &ParentNames<'_>,
) -> Option<String> {
    if after.id == GroupId::ROOT {
        return None;
    }
    let written = document.get("parent").and_then(Value::as_str);
    if before.parent == after.parent {
        // What is written may still mean the same.
        let stays = written.is_none_or(|it| {
            it.parse::<GroupId>() == Ok(after.parent) || parents.is_name_of_parent(after, it)
        });
        return (!stays).then(|| parents.parent_of(after));
    }
    Some(parents.parent_of(after))
}

/// Returns the numbers of the documents of a file that are groups.
fn numbers(path: &Arc<str>, text: &str, documents: &[Node]) -> HashMap<GroupId, usize> {
    let content = SourceContent::Bytes(text.as_bytes().into());
    let reading = read_file(&SourceFile { path: Arc::clone(path), content }, FileKind::Groups);
    let named = documents.iter().enumerate();
    let places: HashMap<u32, usize> = named
        .filter_map(|(number, it)| Some((it.get("name")?.span.start.offset, number)))
        .collect();
    let groups = reading.groups().iter();
    groups.filter_map(|it| Some((it.id()?, *places.get(&it.place().span.start.offset)?))).collect()
}

/// Says of which group the document with a number cannot be edited.
fn stuck_at(
    number: usize,
    numbers: &HashMap<GroupId, usize>,
    edits: &FileEdits<'_>,
    path: &str,
) -> Rejection {
    let mut all = edits.edited.iter().map(|it| it.0).chain(edits.removed.iter().copied());
    let group = all.find(|it| numbers.get(&it.id) == Some(&number));
    let name = group.map_or("?", |it| it.name.as_str());
    stuck(name, path)
}

fn too_large(path: &str, error: &EditError) -> Rejection {
    let message =
        format!("The file {path} cannot be written: {error}. Move groups to other files.");
    Rejection::new(RejectionKind::InvalidCommit, message, Value::Array(Vec::new()))
}

fn stuck(group: &str, path: &str) -> Rejection {
    let message = format!(
        "The group \"{group}\" in the file {path} cannot be edited by this program: change the file itself."
    );
    Rejection::new(RejectionKind::InvalidCommit, message, Value::Array(Vec::new()))
}

#[cfg(test)]
mod tests;
