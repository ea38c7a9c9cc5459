//! The files of a commit that decide what one node gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::answer::Answer;
use crate::blame::may_be_in;
use crate::classification::references_of_estate;
use crate::hierarchy::Estate;
use crate::model::{CommitId, Node, Path};
use crate::validation::{Checked, FileReading, Layout, node_estate};

/// Of how many files one at most may decide what a node gets: where more do, the whole commit is built as fast from the
/// one before.
const SHARE: usize = 8;

/// So few files are faster in any case.
const FEW: usize = 64;

/// The files of a valid commit that decide what one node gets: those of groups that the node may be in as far as
/// each group alone can tell, and that of the node itself.
///
/// Another commit has mostly the same, so what the node gets there costs what these few files cost, and not what
/// the whole commit does.
#[derive(Debug)]
pub(super) struct NodeFiles {
    pub(super) commit: CommitId,
    layout: Arc<Layout>,
    files: BTreeMap<Arc<str>, Arc<FileReading>>,
}

impl NodeFiles {
    /// Returns the files of a commit that was read as a whole; `None` if they are many, it is not valid, or there may
    /// be two of one path, since what of a name is not UTF-8 is shown as one character.
    pub(super) fn of(commit: CommitId, checked: &Checked, node: &Node) -> Option<Self> {
        checked.estate.as_ref()?;
        let most = FEW.max(checked.readings().count() / SHARE);
        let mut files = BTreeMap::new();
        for file in checked.readings() {
            if !is_plain(&file.path) {
                return None;
            }
            if decides(file, node) {
                files.insert(Arc::clone(&file.path), Arc::clone(file));
            }
            if files.len() > most {
                return None;
            }
        }
        Some(Self { commit, layout: Arc::new(checked.layout().clone()), files })
    }

    /// Returns the layout of the commit.
    pub(super) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Removes what stands at a path, if anything of it counts.
    pub(super) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Puts a file in the place of what stands at its path.
    pub(super) fn put(&mut self, file: Arc<FileReading>, node: &Node) {
        if decides(&file, node) {
            self.files.insert(Arc::clone(&file.path), file);
        } else {
            self.files.remove(&file.path);
        }
    }

    /// Returns what the node gets, and passes on the paths that the values mention; `None` if only the whole commit
    /// can tell.
    pub(super) fn answer(&self, node: &Node, each: &mut impl FnMut(&Path)) -> Option<Answer> {
        let estate = self.estate(node)?;
        references_of_estate(&estate, &mut |it| each(&it.decisive()));
        Some(Answer::of(&estate, node).unwrap_or_default())
    }

    fn estate(&self, node: &Node) -> Option<Estate> {
        let files = self.files.values().map(AsRef::as_ref);
        node_estate(files, self.layout.interpolation, &|group| may_be_in(group, node))
    }
}

/// Returns whether a path tells its file from all others.
pub(super) fn is_plain(path: &str) -> bool {
    !path.contains(char::REPLACEMENT_CHARACTER)
}

/// Returns whether a file has a group that the node may be in, or values of the node.
fn decides(file: &FileReading, node: &Node) -> bool {
    let may_have = |group: &_| may_be_in(group, node);
    file.node() == Some(&node.name)
        || file.groups().iter().any(|it| it.group().is_none_or(may_have))
}
