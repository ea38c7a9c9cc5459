//! From a new set of groups to changed files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde_json::Value;

use super::context::WriteContext;
use super::document::{amended, house_layout, new_document, parent_name};
use super::group_changes::GroupChanges;
use super::layout::path_of;
use super::rejection::{Rejection, RejectionKind};
use crate::document::{self, Limits, Node};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Group, GroupId};
use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

/// The files while they are changed.
struct FilesDraft<'g> {
    context: &'g WriteContext<'g>,
    files: BTreeMap<String, Option<String>>,
    /// The files that new groups were given.
    created: HashMap<GroupId, String>,
}

/// Returns the files that differ between the groups as they are and as they shall be.
pub(super) fn changes(
    context: &WriteContext<'_>,
    changes: &GroupChanges,
    new: &Hierarchy,
) -> Result<BTreeMap<String, Option<String>>, Rejection> {
    let old = &context.estate.hierarchy;
    let mut draft = FilesDraft { context, files: BTreeMap::new(), created: HashMap::new() };
    let written: BTreeSet<GroupIndex> =
        changes.written.iter().filter_map(|it| new.find(it.id)).collect();
    let naming = naming_moved(old, new, &moved_names(old, changes));
    for group in written.union(&naming).map(|it| new.group(*it)) {
        if let Some(before) = old.find(group.id) {
            draft.edit(old.group(before), group, new)?;
        }
    }
    let mut removed: Vec<GroupIndex> =
        changes.removed.iter().filter_map(|it| old.find(*it)).collect();
    removed.sort_unstable();
    for group in removed {
        draft.remove(old.group(group))?;
    }
    for index in written {
        // A root group that no file has is there all the same.
        if old.find(new.group(index).id).is_none() {
            draft.create(index, new);
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
    fn text(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned().unwrap_or_else(|| (self.context.read)(path))
    }

    /// Returns the file of a group, its text, and the number of its document; none for a root group
    /// that no file has.
    fn find(&self, group: &Group) -> Result<Option<(Arc<str>, String, usize)>, Rejection> {
        let Some(place) = self.context.origins.get(&group.id) else { return Ok(None) };
        let path = Arc::clone(&place.file);
        let found = self.text(&path).and_then(|text| {
            let number = locate(&path, &text, group.id)?;
            Some((path, text, number))
        });
        found.map(Some).ok_or_else(|| stuck(group, &place.file))
    }

    fn edit(&mut self, before: &Group, after: &Group, new: &Hierarchy) -> Result<(), Rejection> {
        let Some((path, text, number)) = self.find(before)? else {
            let path =
                path_of(after, None, &self.context.layout.groups, &|it| self.text(it).is_some());
            self.make(path, after, new);
            return Ok(());
        };
        let documents = document::read(text.as_bytes(), &Limits::DEFAULT).documents;
        let Some(value) = documents.get(number).map(Node::to_value) else {
            return Err(stuck(before, &path));
        };
        let parent = new_parent(&value, before, after, new);
        let target = amended(&value, before, after, parent);
        let edited =
            document::edit_documents(&text, &BTreeMap::from([(number, target)]), &house_layout)
                .map_err(|_| stuck(before, &path))?;
        self.files.insert(path.to_string(), Some(edited));
        Ok(())
    }

    fn remove(&mut self, group: &Group) -> Result<(), Rejection> {
        let Some((path, text, number)) = self.find(group)? else { return Ok(()) };
        let documents = document::read(text.as_bytes(), &Limits::DEFAULT).documents;
        let alone = documents.iter().filter(|it| !it.is_null()).count() == 1;
        let left = if alone {
            None
        } else {
            let left = document::remove_documents(&text, &BTreeSet::from([number]));
            Some(left.map_err(|_| stuck(group, &path))?)
        };
        self.files.insert(path.to_string(), left);
        Ok(())
    }

    fn create(&mut self, index: GroupIndex, new: &Hierarchy) {
        let group = new.group(index);
        let parent = new.parent(index).map(|it| new.group(it)).filter(|it| it.id != GroupId::ROOT);
        let parent_file = parent.and_then(|parent| {
            let written = self.context.origins.get(&parent.id).map(|it| it.file.to_string());
            written.or_else(|| self.created.get(&parent.id).cloned())
        });
        let directory = &self.context.layout.groups;
        let path = path_of(group, parent_file.as_deref(), directory, &|it| self.text(it).is_some());
        self.make(path, group, new);
    }

    /// Puts a group into a file of its own.
    fn make(&mut self, path: String, group: &Group, new: &Hierarchy) {
        self.files.insert(path.clone(), Some(new_document(group, new)));
        self.created.insert(group.id, path);
    }
}

/// Returns how a group names its parent, if that is to change.
fn new_parent(document: &Value, before: &Group, after: &Group, new: &Hierarchy) -> Option<String> {
    if after.id == GroupId::ROOT {
        return None;
    }
    let written = document.get("parent").and_then(Value::as_str);
    if before.parent == after.parent {
        // What is written may still mean the same.
        let by_id = written.is_none_or(|it| it.parse::<GroupId>().is_ok());
        let name = parent_name(after, new);
        return Some(name).filter(|name| !by_id && written != Some(name.as_str()));
    }
    Some(parent_name(after, new))
}

/// Returns the number of the document of a group.
fn locate(path: &Arc<str>, text: &str, id: GroupId) -> Option<usize> {
    let content = SourceContent::Bytes(text.as_bytes().into());
    let reading = read_file(&SourceFile { path: Arc::clone(path), content }, FileKind::Groups);
    let place = reading.groups().iter().find(|it| it.id() == Some(id))?.place();
    let documents = document::read(text.as_bytes(), &Limits::DEFAULT).documents;
    documents.iter().position(|it| it.get("name").is_some_and(|name| name.span == place.span))
}

fn stuck(group: &Group, path: &str) -> Rejection {
    let message = format!(
        "The group \"{}\" in the file {path} cannot be edited by this program: change the file itself.",
        group.name
    );
    Rejection::new(RejectionKind::InvalidCommit, message, Value::Array(Vec::new()))
}
