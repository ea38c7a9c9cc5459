//! Fetching where libgit2 cannot read the history that is here: it names its newest commits to the remote, and fails at a
//! malformed one, be it of a pull request.
#![expect(clippy::disallowed_methods, reason = "packs are files")]

use std::io;
use std::path::Path;

use git2::{Direction, Sort};

use super::{Mirror, download};
use crate::git::cut_history::CutHistory;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::repository::Repository;
use crate::git::transport::Attempt;

/// How many commits are read: more than the 256 that libgit2 names, since their order may be another one.
const NAMED: usize = 512;

impl Mirror {
    /// Brings the objects of some refs, and names no commit to the remote but that of the watched ref.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be brought; the one before, if the history is not why.
    pub(super) fn bring_without_history(
        &self,
        repository: &Repository,
        specs: &[String],
        before: FetchError,
    ) -> Result<(), FetchError> {
        let inner = repository.inner();
        if is_history_readable(inner) {
            return Err(before);
        }
        let failed = |error: &io::Error| {
            let failure = FetchFailure::of_io(error);
            FetchError::at(&self.remote, failure, format_args!("a place for objects: {error}"))
        };
        let watched = inner.head().and_then(|it| it.peel_to_commit()).map(|it| it.id()).ok();
        let cut = CutHistory::to_fetch_after(inner, watched).map_err(|it| failed(&it))?;
        let attempt = Attempt::fetch(&self.remote, &self.options);
        let _entered = attempt.enter();
        let fail = |error: git2::Error| attempt.explain(&error);
        let address = self.remote.address();
        let mut remote = cut.repository.remote_anonymous(&address).map_err(fail)?;
        let mut connection = remote.connect_auth(Direction::Fetch, None, None).map_err(fail)?;
        download(&attempt, connection.remote(), specs)?;
        move_packs(&cut.objects(), &inner.commondir().join("objects")).map_err(|it| failed(&it))
    }
}

/// Returns whether libgit2 can read the newest commits that refs lead to.
fn is_history_readable(repository: &git2::Repository) -> bool {
    let read = || {
        let mut walk = repository.revwalk()?;
        walk.set_sorting(Sort::TIME)?;
        walk.push_glob("refs/*")?;
        walk.take(NAMED).try_for_each(|it| it.map(drop))
    };
    read().is_ok()
}

/// Moves all packs from one directory of objects to another one on the same disk.
fn move_packs(from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.join("pack"), to.join("pack"));
    std::fs::create_dir_all(&to)?;
    let names = std::fs::read_dir(&from)?.map(|it| Ok(it?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    // The index, by which a pack is found, is the last of its files.
    names.sort_by_key(|it| Path::new(it).extension().is_some_and(|it| it == "idx"));
    names.iter().try_for_each(|it| std::fs::rename(from.join(it), to.join(it)))
}
