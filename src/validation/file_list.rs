//! The files of a commit.

use std::collections::HashSet;
use std::sync::Arc;

use super::reading::FileReading;
use crate::model::SharedList;

/// The files of a commit as they were read, in the order of their paths.
#[derive(Clone, Debug, Default)]
pub(super) struct FileList {
    all: SharedList<Arc<FileReading>>,
    /// Those in which something was found, or whose comments silence warnings, in the same order: mostly few, so that
    /// the others need not be read after each change.
    remarked: Arc<[Arc<FileReading>]>,
}

impl FileList {
    /// Puts files in order.
    pub(super) fn of(files: &[Arc<FileReading>]) -> Self {
        let all: SharedList<Arc<FileReading>> = in_order(files.iter());
        let remarked = all.iter().filter(|it| is_remarked(it)).cloned().collect();
        Self { all, remarked }
    }

    /// Returns the files.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<FileReading>> {
        self.all.iter()
    }

    /// Returns the files in which something was found, or whose comments silence warnings.
    pub(super) fn remarked(&self) -> &[Arc<FileReading>] {
        &self.remarked
    }

    /// Returns the file of a path.
    pub(super) fn find(&self, path: &str) -> Option<&Arc<FileReading>> {
        self.all_of(path).next()
    }

    /// Returns the files of a path: names that are not UTF-8 can be shown alike.
    pub(super) fn all_of(&self, path: &str) -> impl Iterator<Item = &Arc<FileReading>> {
        let start = self.position(path);
        (start..).map_while(|at| self.all.get(at)).take_while(move |it| &*it.path == path)
    }

    /// Returns where the file of a path stands, or where it would.
    fn position(&self, path: &str) -> usize {
        self.all.partition_point(|it| &*it.path < path)
    }

    /// Returns the files with some in the places of those of their paths, or between them, and without those of other
    /// paths. No path stands twice among those that differ.
    pub(super) fn with(&self, changed: &[Arc<FileReading>], removed: &[&str]) -> Self {
        let is_known = |path: &str| self.find(path).is_some();
        let placed = |it: &Arc<FileReading>| (self.position(&it.path), Arc::clone(it));
        let paths: HashSet<&str> =
            changed.iter().map(|it| &*it.path).chain(removed.iter().copied()).collect();
        let others = |it: &&Arc<FileReading>| !paths.contains(&*it.path);
        let are_known = changed.iter().all(|it| is_known(&it.path));
        let all = if are_known && !removed.iter().any(|it| is_known(it)) {
            self.all.with(changed.iter().map(placed))
        } else {
            in_order(self.all.iter().filter(others).chain(changed))
        };
        let changed = changed.iter().filter(|it| is_remarked(it));
        Self { all, remarked: in_order(self.remarked.iter().filter(others).chain(changed)) }
    }
}

/// Returns files by path.
fn in_order<'r, C: FromIterator<Arc<FileReading>>>(
    files: impl Iterator<Item = &'r Arc<FileReading>>,
) -> C {
    let mut files: Vec<&Arc<FileReading>> = files.collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.into_iter().cloned().collect()
}

fn is_remarked(file: &FileReading) -> bool {
    !file.diagnostics.is_empty() || !file.ignores.is_empty()
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

    /// Reads a file, of some kinds of which there is something to say.
    fn file(path: &str, kind: u8) -> Arc<FileReading> {
        let text = match kind {
            0 => "# clade: ignore suspicious-rule\nname: A\n",
            1 => "name: A\nrule: [\"=\", [fact, osfamily], x]\n",
            _ => "name: A\n",
        };
        let content = SourceContent::Bytes(text.as_bytes().to_vec().into());
        read_file(&SourceFile { path: path.into(), content }, FileKind::Groups).into()
    }

    fn addresses(files: &[Arc<FileReading>]) -> Vec<*const FileReading> {
        files.iter().map(Arc::as_ptr).collect()
    }

    #[test]
    fn a_list_with_other_files_is_that_of_all_files() {
        let mut random = Rng::with_seed(25);
        let path = |number: usize| format!("groups/{number}.yaml");
        let random_file = |random: &mut Rng, number| file(&path(number), random.u8(..8));
        let mut all: Vec<_> = (0..150).map(|number| random_file(&mut random, number)).collect();
        let mut list = FileList::of(&all);
        for round in 0..60 {
            let of_new = if round % 3 == 0 { 150..300 } else { 0..150 };
            let changed: Vec<_> =
                (0..random.usize(..5)).map(|_| random.usize(of_new.clone())).collect();
            let gone = if round % 2 == 0 { vec![random.usize(..150)] } else { Vec::new() };
            let numbers: HashSet<usize> = changed.into_iter().collect();
            let gone: Vec<usize> = gone.into_iter().filter(|it| !numbers.contains(it)).collect();
            let changed: Vec<_> = numbers.iter().map(|it| random_file(&mut random, *it)).collect();
            let gone: Vec<String> = gone.into_iter().map(path).collect();
            let removed: Vec<&str> = gone.iter().map(String::as_str).collect();
            all.retain(|it| {
                !removed.contains(&&*it.path) && !changed.iter().any(|other| other.path == it.path)
            });
            all.extend(changed.iter().cloned());
            list = list.with(&changed, &removed);
            let expected = FileList::of(&all);
            let files = |list: &FileList| list.iter().map(Arc::as_ptr).collect::<Vec<_>>();
            assert_eq!(files(&list), files(&expected));
            assert_eq!(addresses(list.remarked()), addresses(expected.remarked()));
            for file in &all {
                assert!(list.find(&file.path).is_some_and(|it| Arc::ptr_eq(it, file)));
            }
            assert!(list.find("groups/").is_none() && list.find("h").is_none());
        }
        assert!(list.remarked().len() > 10, "{}", list.remarked().len());
    }
}
