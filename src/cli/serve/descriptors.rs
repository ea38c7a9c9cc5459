//! How many connections there are descriptors for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many connections the second address and the unix socket may have, each.
pub(super) const APART: usize = 256;

/// How many descriptors are kept for the second address, the socket, the repository and the store.
const RESERVED: usize = 2 * APART + 256;

/// Returns how many connections the first address may have: what is wanted, or what the limit of open
/// files leaves, which is raised as far as may be.
pub(super) fn connections(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // A sandbox may forbid it; then the limit is what it is.
    let current =
        if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let Some(files) = current.map(|it| usize::try_from(it).unwrap_or(usize::MAX)) else {
        return wanted;
    };
    let left = files.saturating_sub(RESERVED).max(files / 4);
    if left < wanted {
        tracing::warn!(
            "the limit of {files} open files leaves room for {left} of {wanted} connections: raise it, \
             such as by `LimitNOFILE` of the unit, or lower `--max-connections`"
        );
    }
    wanted.min(left)
}
