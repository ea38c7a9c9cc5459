//! Where a branch of a remote is, without fetching it.

use git2::{Direction, ErrorCode, RemoteHead};

use super::failure::FetchError;
use super::object_guard::guard;
use super::object_id::id_of;
use super::options::MirrorOptions;
use super::remote::Remote;
use super::repository::Repository;
use super::transport::Attempt;
use crate::expected_panic;
use crate::model::CommitId;

/// Asks a remote where a branch is, by its full name; `own` is the repository that the connection belongs to.
///
/// # Errors
///
/// Returns an error if the remote cannot be asked.
pub(super) fn find_branch(
    own: &Repository,
    remote: &Remote,
    options: &MirrorOptions,
    branch: &str,
) -> Result<Option<CommitId>, FetchError> {
    let attempt = Attempt::fetch(remote, options);
    let _entered = attempt.enter();
    let fail = |error: git2::Error| attempt.explain(&error);
    if let Some(directory) = remote.directory() {
        let there = git2::Repository::open(directory).and_then(guard).map_err(fail)?;
        return match there.refname_to_id(branch) {
            Ok(id) => Ok(Some(id_of(id))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(fail(error)),
        };
    }
    let mut asked = own.inner().remote_anonymous(&remote.address()).map_err(fail)?;
    let connection = asked.connect_auth(Direction::Fetch, None, None).map_err(fail)?;
    let heads = connection.list().map_err(fail)?;
    // git2 panics at a name that is not UTF-8.
    let is_it = |head: &&RemoteHead<'_>| expected_panic::catch(|| head.name() == branch);
    Ok(heads.iter().find(|it| is_it(it) == Some(true)).map(|it| id_of(it.oid())))
}
