//! The directories of the repository and of the daemon's data, checked before they are opened.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::ServeSettings;
use crate::cli::repository::MeantDirectory;
use crate::cli::shell::word_of_shell;
use crate::git::{OpenError, Remote, Repository, foreign_entry};
use crate::store::StoreLocation;

/// The sticky bit, and that every user can write.
const SHARED: u32 = 0o1002;

/// A data directory that is in no repository, as an example.
const OUTSIDE: &str = "/var/lib/clade";

/// That the group can write.
const GROUP_WRITES: u32 = 0o0020;

/// Refuses a directory inside of a repository in its place, and a data directory that is not the daemon's.
pub(super) fn check(serve: &ServeSettings, remote: &Remote) -> Result<()> {
    check_top(remote, &serve.path)?;
    check_store(serve)?;
    let Some(data) = serve.data_dir.as_deref() else { return Ok(()) };
    check_data(data, remote)?;
    if let Some(top) = working_tree_around(data) {
        tracing::warn!(
            "`--data-dir {}` is inside the git working tree `{}`: a `.gitignore` in it keeps facts and tokens out of commits; \
             better name a directory outside, such as `{OUTSIDE}`",
            data.display(),
            top.display()
        );
    }
    Ok(())
}

/// Keeps what is in a data directory out of the commits of a working tree around it.
pub(super) fn keep_out_of_commits(data: &Path) -> Result<()> {
    let path = data.join(".gitignore");
    if working_tree_around(data).is_none() || path.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::write(
        &path,
        "# clade serve keeps its own files here; none belongs into a commit.\n*\n",
    )
    .with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns the top of the git working tree that a directory lies in, or would lie in.
fn working_tree_around(data: &Path) -> Option<PathBuf> {
    let data = std::path::absolute(data).ok()?;
    let there = data.ancestors().find_map(|it| it.canonicalize().ok())?;
    let repository = Repository::discover(&there).ok()?;
    let top = repository.worktree()?.canonicalize().ok()?;
    let git = repository.directory().canonicalize().ok()?;
    (there.starts_with(&top) && !there.starts_with(git)).then_some(top)
}

/// Refuses a directory inside of a repository: what is served and written would be at its root.
fn check_top(remote: &Remote, groups: &str) -> Result<()> {
    let Some(directory) = remote.directory() else { return Ok(()) };
    // What else is wrong is an error when it is opened; a repository that is followed already may be gone for now.
    let Err(OpenError::Inside { top, below, .. }) = Repository::at(&directory) else {
        return Ok(());
    };
    let word = |path: &Path| word_of_shell(&path.to_string_lossy());
    // Of a part of a group repository, that repository is meant.
    let meant = match MeantDirectory::of(&directory.join(groups)) {
        Some(MeantDirectory::Above(meant)) => meant.canonicalize().ok(),
        _ => None,
    };
    let real_top = top.canonicalize().ok();
    let meant = meant.and_then(|it| Some(it.strip_prefix(real_top?).ok()?.to_owned()));
    let below = below.map(|it| if groups == "." { it } else { it.join(groups) });
    let below = meant.or(below).filter(|it| !it.as_os_str().is_empty());
    let below = below.map_or_else(String::new, |it| format!(" --path {}", word(&it)));
    let shown = top.display();
    let top = word_of_shell(&remote.at(&top));
    bail!("`--repo {remote}` is inside the git repository `{shown}`: write `--repo {top}{below}`")
}

/// Refuses a directory as the file of nodes.
fn check_store(serve: &ServeSettings) -> Result<()> {
    let Some(StoreLocation::Sqlite(path)) = &serve.store else { return Ok(()) };
    if path.is_dir() || serve.data_dir.as_ref().is_some_and(|it| path == it) {
        bail!(
            "`--store sqlite:{}` is a directory: name a file in it, such as `sqlite:{}`",
            path.display(),
            path.join("nodes.sqlite").display()
        );
    }
    Ok(())
}

/// Refuses the repository itself, and directories that others use: the daemon takes its data directory for itself.
fn check_data(data: &Path, remote: &Remote) -> Result<()> {
    let Ok(here) = data.canonicalize() else { return Ok(()) };
    let repository = remote.directory().and_then(|it| Repository::discover(&it).ok());
    let directories = repository.iter().flat_map(|it| [it.worktree(), Some(it.directory())]);
    let own: Vec<PathBuf> = directories.flatten().filter_map(|it| it.canonicalize().ok()).collect();
    let shown = data.display();
    if own.contains(&here) {
        bail!(
            "`--data-dir {shown}` is the repository itself, and the daemon keeps its own files there, which no other user may read: \
             name a directory outside of the repository, such as `{OUTSIDE}`"
        );
    }
    let (why, instead) = match own.iter().any(|it| here.starts_with(it)) {
        true => ("is inside the repository", Path::new(OUTSIDE).to_owned()),
        false if is_shared(&here) => ("can be written by other users", data.join("clade")),
        false => return Ok(()),
    };
    if let Some(entry) = foreign_entry(&here) {
        bail!(
            "`--data-dir {shown}` {why} and has files of others, such as `{entry}`: \
             the daemon takes its data directory for itself; name one of its own, such as `{}`",
            instead.display()
        );
    }
    Ok(())
}

/// Returns whether a directory is for several users. A group of its own is that of one user.
fn is_shared(directory: &Path) -> bool {
    let Ok(found) = std::fs::metadata(directory) else { return false };
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    let is_of_others = is_ours && found.gid() != rustix::process::getegid().as_raw();
    let shared = if is_of_others { SHARED | GROUP_WRITES } else { SHARED };
    found.mode() & shared != 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_in_a_working_tree_stay_out_of_its_commits() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let repository = git2::Repository::init(base.join("g")).unwrap();
        for path in ["g/data", "g/.git/data", "plain"] {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        for (path, is_inside) in
            [("g/data", true), ("g/absent/x", true), ("g/.git/data", false), ("plain", false)]
        {
            let top = working_tree_around(&base.join(path));
            assert_eq!(top, is_inside.then(|| base.join("g")), "{path}");
        }
        for (path, expected) in [("g/data", true), ("g/.git/data", false), ("plain", false)] {
            keep_out_of_commits(&base.join(path)).unwrap();
            assert_eq!(base.join(path).join(".gitignore").exists(), expected, "{path}");
        }
        std::fs::write(base.join("g/data/nodes.sqlite"), "facts").unwrap();
        assert_eq!(foreign_entry(&base.join("g/data")), None);
        let mut index = repository.index().unwrap();
        index.add_all(["*"], git2::IndexAddOption::DEFAULT, None).unwrap();
        assert_eq!(index.len(), 0);
        let own = "!nodes.sqlite\n";
        std::fs::write(base.join("g/data/.gitignore"), own).unwrap();
        keep_out_of_commits(&base.join("g/data")).unwrap();
        assert_eq!(std::fs::read_to_string(base.join("g/data/.gitignore")).unwrap(), own);
    }

    #[test]
    fn a_data_directory_is_not_the_repository_and_not_shared() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        git2::Repository::init(base.join("groups")).unwrap();
        git2::Repository::init_bare(base.join("hub.git")).unwrap();
        for path in ["groups/data/x", "groups/new", "shared/x", "plain/x", "used/journal", "fresh"]
        {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        for (path, mode) in
            [("shared", 0o1777), ("used", 0o1777), ("fresh", 0o777), ("plain", 0o775)]
        {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(base.join(path), mode).unwrap();
        }
        std::fs::create_dir(base.join("fresh/lost+found")).unwrap();
        for (repository, data, expected) in [
            ("groups", "groups", Some("is the repository itself")),
            ("groups", "groups/.git", Some("is the repository itself")),
            ("groups/.git", "groups", Some("is the repository itself")),
            ("hub.git", "hub.git", Some("is the repository itself")),
            ("groups", "groups/data", Some("is inside the repository")),
            ("groups", "groups/.git/refs", Some("is inside the repository")),
            ("groups", "groups/new", None),
            ("groups", "groups/absent", None),
            ("hub.git", "groups/data", None),
            (
                "groups",
                "shared",
                Some("can be written by other users and has files of others, such as `x`"),
            ),
            ("groups", "used", None),
            ("groups", "fresh", None),
            ("groups", "plain", None),
            ("absent", "plain", None),
        ] {
            for scheme in ["", "file://"] {
                let remote = format!("{scheme}{}", base.join(repository).display());
                let done = check_data(&base.join(data), &Remote::parse(&remote).unwrap());
                let error = done.err().map(|it| it.to_string());
                let fits = |error: &String| expected.is_some_and(|it| error.contains(it));
                assert!(error.as_ref().map_or(expected.is_none(), fits), "{data}: {error:?}");
            }
        }
    }
}
