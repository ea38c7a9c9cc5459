//! The directory that was meant where one has no groups: the one above the groups, or one below; and files of a group
//! repository in the place of others.

use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};

use super::layout_of_directory;
use crate::cli::shell::word_of_shell;
use crate::git::Repository;
use crate::validation::{Layout, SourceContent, SourceFile, is_yaml};

/// How deep files of groups are looked for.
const LEVELS: usize = 5;

/// How many directories of a level are asked whether they are the repository.
const ASKED: usize = 1_000;

/// How many entries of directories are listed to find them.
const LISTED: usize = 10_000;

/// A group repository near a directory that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum MeantDirectory {
    /// The directory is a part of it, such as that of its groups, or lies beside these.
    Above(PathBuf),
    /// It lies in the directory.
    Below(PathBuf),
}

impl MeantDirectory {
    /// Looks for the repository that was meant by a directory without groups. Files that look like groups are a sign
    /// that the directory is the one of the groups.
    pub(super) fn find(directory: &Path, has_meant_files: bool) -> Option<Self> {
        if has_settings(directory) {
            return None;
        }
        above(directory, &|it, here| has_part(it, here, has_meant_files))
            .map(Self::Above)
            .or_else(|| below(directory).map(Self::Below))
            .or_else(|| around(directory).map(Self::Above))
    }

    /// Looks for the repository that was meant by a directory, as it is in the working tree.
    pub(in crate::cli) fn of(directory: &Path) -> Option<Self> {
        Self::find(directory, has_yaml_near(directory))
    }

    /// Returns what to do, with a command that takes the directory.
    pub(in crate::cli) fn help(&self, command: &str) -> String {
        let word = word_of_shell(&self.path().to_string_lossy());
        format!("{}: name that directory, as in `{command} {word}`", self.relation())
    }

    /// Returns what to do where a flag takes the directory.
    pub(in crate::cli) fn help_with_flag(&self) -> String {
        let word = word_of_shell(&self.path().to_string_lossy());
        format!("{}: name that directory with `--repo {word}`", self.relation())
    }

    fn path(&self) -> &Path {
        let (Self::Above(path) | Self::Below(path)) = self;
        path
    }

    fn relation(&self) -> String {
        let what = match self {
            Self::Above(_) => "this is a part of the repository",
            Self::Below(_) => "this may be the directory around the repository",
        };
        format!("{what} `{}`", self.path().display())
    }
}

/// Returns the group repository that has a directory as a part of it, such as that of its groups. The directory need not
/// exist yet.
pub(in crate::cli) fn repository_with_part(directory: &Path) -> Option<PathBuf> {
    let there = directory.ancestors().find(|it| it.as_os_str().is_empty() || it.exists())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let has_meant_files = has_yaml_near(there);
    above(there, &|it, here| has_part(it, here, has_meant_files))
}

/// Refuses files of a directory that a group repository reads: they are not the facts of nodes.
///
/// # Errors
///
/// Returns an error that says where facts files are.
pub(in crate::cli) fn refuse_documents(directory: &Path, files: &[PathBuf]) -> Result<()> {
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let Some((file, repository)) = repository_file(here, files) else { return Ok(()) };
    let facts = repository.join("facts");
    let facts = if repository == Path::new(".") { PathBuf::from("facts") } else { facts };
    let help = if facts.is_dir() && facts.canonicalize().ok() != here.canonicalize().ok() {
        format!("facts files are in a directory of their own, such as `{}`", facts.display())
    } else {
        "name the directory that has the facts of each node in `<certname>.json` or `.yaml`"
            .to_owned()
    };
    bail!(
        "`{}` is a file of the group repository `{}`, and does not have the facts of a node: {help}",
        file.display(),
        repository.display()
    )
}

/// Returns the first of some files of a directory that the group repository reads which the directory lies in, and the
/// directory of the repository.
fn repository_file<'f>(directory: &Path, files: &'f [PathBuf]) -> Option<(&'f Path, PathBuf)> {
    let is_it = |it: &Path| has_settings(it) || is_repository(it);
    let repository = match is_it(directory) {
        true => directory.to_owned(),
        false => above(directory, &|it, _| is_it(it))?,
    };
    let layout = layout_of_directory(&repository).ok()?;
    let inside = directory.canonicalize().ok()?;
    let inside = inside.strip_prefix(repository.canonicalize().ok()?).ok()?;
    let is_read = |file: &&PathBuf| {
        let path = file.file_name().map(|it| inside.join(it));
        let Some(path) = path.as_deref().and_then(Path::to_str) else { return false };
        let content = SourceContent::Bytes(Vec::new().into());
        ["clade.yaml", "clade.yml"].contains(&path)
            || layout.kind_of(&SourceFile { path: path.into(), content }).is_some()
    };
    let file = files.iter().find(is_read)?;
    Some((file, repository))
}

fn has_settings(directory: &Path) -> bool {
    ["clade.yaml", "clade.yml"].iter().any(|it| directory.join(it).is_file())
}

/// Returns the nearest directory above one that is as wanted; that is asked of it and of the one below.
fn above(directory: &Path, is_it: &dyn Fn(&Path, &Path) -> bool) -> Option<PathBuf> {
    let here = directory.canonicalize().ok()?;
    let repository = Repository::discover(&here).ok();
    let top = repository.and_then(|it| it.worktree()?.canonicalize().ok());
    // Outside of a working tree, a directory of this name far above says nothing.
    let count = if top.is_some() { usize::MAX } else { 1 };
    let mut ancestors = here.ancestors().skip(1).take(count).enumerate();
    let (levels, found) = ancestors
        .by_ref()
        .take_while(|(_, it)| top.as_ref().is_none_or(|top| it.starts_with(top)))
        .find(|(_, it)| is_it(it, &here))?;
    let shown = climbed(directory, levels + 1);
    // Behind a link, what is above is another directory.
    let is_same = shown.canonicalize().is_ok_and(|it| it == found);
    Some(if is_same { shown } else { found.to_owned() })
}

/// Returns the group repository around a directory that has no groups and is none of the parts of the repository, such as
/// the one of facts files.
fn around(directory: &Path) -> Option<PathBuf> {
    if directory.join(Layout::default().groups).is_dir() {
        return None;
    }
    above(directory, &|it, _| is_repository(it))
}

/// Returns whether a directory is that of a group repository with another directory as a part of it.
fn has_part(directory: &Path, part: &Path, has_meant_files: bool) -> bool {
    let Ok(Layout { groups, nodes, environments, tests, .. }) = layout_of_directory(directory)
    else {
        return false;
    };
    let is_inside = |it: &String| part.starts_with(directory.join(it));
    match has_settings(directory) {
        true => [&groups, &nodes, &environments, &tests].into_iter().any(is_inside),
        false => has_meant_files && is_inside(&groups),
    }
}

/// Returns the directory that lies so many levels above, as it is named from here.
fn climbed(directory: &Path, levels: usize) -> PathBuf {
    let mut path: PathBuf = directory.components().filter(|it| *it != Component::CurDir).collect();
    for _ in 0..levels {
        match path.components().next_back() {
            Some(Component::Normal(_)) => {
                path.pop();
            }
            _ => path.push(".."),
        }
    }
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

fn below(directory: &Path) -> Option<PathBuf> {
    // A new repository has no groups yet: no other directory is meant.
    if directory.join(Layout::default().groups).is_dir() {
        return None;
    }
    let mut left = LISTED;
    let mut children = subdirectories(directory, &mut left);
    children.truncate(ASKED);
    if let Some(found) = children.iter().find(|it| is_repository(it)) {
        return Some(found.clone());
    }
    let mut inner = children.iter().flat_map(|it| subdirectories(it, &mut left)).take(ASKED);
    inner.find(|it| is_repository(it))
}

/// Returns whether a directory has one of groups, and settings or a file that may be a group.
fn is_repository(directory: &Path) -> bool {
    let Ok(layout) = layout_of_directory(directory) else { return false };
    let groups = directory.join(&layout.groups);
    groups.is_dir() && (has_settings(directory) || has_yaml_near(&groups))
}

/// Returns whether there is a file of YAML in a directory or a few levels below, among the first that are listed.
fn has_yaml_near(directory: &Path) -> bool {
    let mut left = ASKED;
    let mut level = vec![directory.to_owned()];
    for _ in 0..LEVELS {
        if level.iter().any(|it| has_yaml(it, &mut left)) {
            return true;
        }
        level = level.iter().flat_map(|it| subdirectories(it, &mut left)).collect();
    }
    false
}

fn has_yaml(directory: &Path, left: &mut usize) -> bool {
    let is_named_so = |it: &DirEntry| it.file_name().to_str().is_some_and(is_yaml);
    entries(directory, left).any(|it| is_named_so(&it) && it.path().is_file())
}

/// Returns the entries of a directory, as many as are left to list.
fn entries(directory: &Path, left: &mut usize) -> impl Iterator<Item = DirEntry> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.take(*left).inspect(move |_| *left = left.saturating_sub(1)).flatten()
}

/// Returns the directories in one, by name, without those that are hidden.
fn subdirectories(directory: &Path, left: &mut usize) -> Vec<PathBuf> {
    let is_shown = |name: &str| !name.starts_with('.');
    let mut found: Vec<PathBuf> = entries(directory, left)
        .filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|it| it.file_name().to_str().is_some_and(is_shown))
        .map(|it| match directory {
            here if here == Path::new(".") => PathBuf::from(it.file_name()),
            directory => directory.join(it.file_name()),
        })
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_up_is_short() {
        for (directory, levels, expected) in [
            (".", 1, ".."),
            (".", 2, "../.."),
            ("", 1, ".."),
            ("groups", 1, "."),
            ("./groups/", 1, "."),
            ("estate/groups", 1, "estate"),
            ("groups/web", 3, ".."),
            ("..", 1, "../.."),
            ("/srv/groups", 1, "/srv"),
        ] {
            assert_eq!(climbed(Path::new(directory), levels), Path::new(expected), "{directory}");
        }
    }

    #[test]
    fn the_repository_is_found_above_and_below() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        for path in [
            "a/groups/web",
            "a/tests",
            "a/facts",
            "h/estate/facts",
            "b/groups",
            "c/groups/deep",
            "d/groups/groups",
            "e/roles/users/groups",
            "f/estate/groups/web",
            "g/groups",
            "g/other/groups",
            "h/estate/groups",
        ] {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        for path in [
            "e/roles/users/groups/main.conf",
            "f/estate/groups/web/a.yml",
            "g/other/groups/a.yaml",
            "h/estate/groups/a.yaml",
        ] {
            std::fs::write(base.join(path), "").unwrap();
        }
        for path in ["a/clade.yaml", "d/groups/clade.yaml"] {
            std::fs::write(base.join(path), "allow_empty: true\n").unwrap();
        }
        git2::Repository::init(base.join("c")).unwrap();
        let above = |path: &str| Some(MeantDirectory::Above(base.join(path)));
        let below = |path: &str| Some(MeantDirectory::Below(base.join(path)));
        for (path, has_meant_files, expected) in [
            ("a", true, None),
            ("a/groups", false, above("a")),
            ("a/tests", false, above("a")),
            ("a/facts", false, above("a")),
            ("h/estate/facts", false, above("h/estate")),
            // There is no working tree of git, which would say how far to go.
            ("a/groups/web", true, None),
            ("b/groups", true, above("b")),
            ("b/groups", false, None),
            ("c/groups/deep", true, above("c")),
            ("d/groups", true, None),
            ("b", false, None),
            ("d", false, None),
            ("e", false, None),
            ("f", false, below("f/estate")),
            ("g", false, None),
            ("h", false, below("h/estate")),
            ("", false, below("a")),
        ] {
            let found = MeantDirectory::find(&base.join(path), has_meant_files);
            assert_eq!(found, expected, "{path}");
        }
    }
}
