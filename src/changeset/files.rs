//! From a new set of groups to changed files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::context::WriteContext;
use super::document::{amended, house_layout, new_document, parent_name};
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
}

/// Returns the files that differ between the groups as they are and as they shall be.
pub(super) fn changes(
    context: &WriteContext<'_>,
    new: &Hierarchy,
) -> Result<BTreeMap<String, Option<String>>, Rejection> {
    let old = &context.estate.hierarchy;
    let mut draft = FilesDraft { context, files: BTreeMap::new() };
    let renamed = moved_names(old, new);
    for group in new.groups() {
        let Some(before) = old.find(group.id).map(|index| old.group(index)) else { continue };
        if before != group || affected(old, new, before, group, &renamed) {
            draft.edit(before, group, new)?;
        }
    }
    for group in old.groups().filter(|group| new.find(group.id).is_none()) {
        draft.remove(group)?;
    }
    for index in new.indexes() {
        let group = new.group(index);
        // A root group that no file has is there all the same.
        if old.find(group.id).is_none() {
            draft.create(index, new);
        }
    }
    let unchanged = |path: &String, text: &Option<String>| (context.read)(path) == *text;
    draft.files.retain(|path, text| !unchanged(path, text));
    Ok(draft.files)
}

/// Returns the names that mean another group than before, or several, or none.
fn moved_names<'h>(old: &'h Hierarchy, new: &'h Hierarchy) -> BTreeSet<&'h str> {
    let by_name = |hierarchy: &'h Hierarchy| {
        let mut ids: BTreeMap<&'h str, BTreeSet<GroupId>> = BTreeMap::new();
        for group in hierarchy.groups() {
            ids.entry(group.name.as_str()).or_default().insert(group.id);
        }
        ids
    };
    let (before, after) = (by_name(old), by_name(new));
    before
        .iter()
        .filter(|(name, ids)| after.get(*name) != Some(ids))
        .map(|(name, _)| *name)
        .collect()
}

/// Returns whether a group may name its parent by a name that means something else now.
fn affected(
    old: &Hierarchy,
    new: &Hierarchy,
    before: &Group,
    after: &Group,
    renamed: &BTreeSet<&str>,
) -> bool {
    let name = |hierarchy: &Hierarchy, id| {
        hierarchy.find(id).is_some_and(|at| renamed.contains(hierarchy.group(at).name.as_str()))
    };
    !renamed.is_empty() && (name(old, before.parent) || name(new, after.parent))
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
            self.files.insert(path, Some(new_document(after, new)));
            return Ok(());
        };
        let documents = document::read(text.as_bytes(), &Limits::DEFAULT).documents;
        let Some(value) = documents.get(number).map(Node::to_value) else {
            return Err(stuck(before, &path));
        };
        let parent = new_parent(&value, before, after, new);
        let target = amended(&value, before, after, parent);
        let edited = document::edit(&text, number, &target, &house_layout)
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
            let left = document::remove_document(&text, number);
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
            written.or_else(|| self.file_of_new(parent.id))
        });
        let directory = &self.context.layout.groups;
        let path = path_of(group, parent_file.as_deref(), directory, &|it| self.text(it).is_some());
        self.files.insert(path, Some(new_document(group, new)));
    }

    /// Returns the file that a group was given just now.
    fn file_of_new(&self, id: GroupId) -> Option<String> {
        let written = |path: &str, text: &Option<String>| {
            text.as_deref().and_then(|text| locate(&path.into(), text, id)).is_some()
        };
        self.files.iter().find(|(path, text)| written(path, text)).map(|(path, _)| path.clone())
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
    let place = &reading.groups().iter().find(|it| it.id == Some(id))?.place;
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
