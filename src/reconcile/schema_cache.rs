//! Schemas that are compiled, for as long as their files stay as they are.

use std::sync::Arc;

use parking_lot::Mutex;

use super::commit_tree::CommitTree;
use crate::git::EntryKind;
use crate::validation::{OwnSchemas, SchemaSettings};

/// How many sets of schemas are kept: those of the branch, and of what is compared with it.
const KEPT: usize = 3;

/// Schemas that are compiled, those used last at the end.
#[derive(Debug, Default)]
pub(super) struct SchemaCache {
    known: Mutex<Vec<Known>>,
}

/// Compiled schemas, and the files that they were compiled from.
#[derive(Debug)]
struct Known {
    files: Vec<(Arc<str>, Option<EntryKind>)>,
    schemas: Arc<OwnSchemas>,
}

impl SchemaCache {
    /// Returns the schemas of a commit, which are compiled if there were others before.
    pub(super) fn get(&self, settings: &SchemaSettings, tree: &CommitTree<'_>) -> Arc<OwnSchemas> {
        if settings.all().is_empty() {
            return Arc::default();
        }
        let is_same = |it: &Known| {
            let stands = |(path, kind): &(Arc<str>, Option<EntryKind>)| {
                !tree.is_changed(path) && tree.kind(path) == *kind
            };
            it.schemas.settings() == settings && it.files.iter().all(stands)
        };
        let mut known = self.known.lock();
        if let Some(at) = known.iter().position(is_same) {
            let found = known.remove(at);
            let schemas = Arc::clone(&found.schemas);
            known.push(found);
            return schemas;
        }
        drop(known);
        let schemas = Arc::new(OwnSchemas::load(settings, &|path| tree.read(path)));
        let is_of_git = !schemas.paths().any(|it| tree.is_changed(it));
        if is_of_git && tree.is_whole() {
            let files = schemas.paths().map(|it| (Arc::clone(it), tree.kind(it))).collect();
            let mut known = self.known.lock();
            known.push(Known { files, schemas: Arc::clone(&schemas) });
            if known.len() > KEPT {
                known.remove(0);
            }
        }
        schemas
    }
}
