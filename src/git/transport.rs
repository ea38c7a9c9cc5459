//! Our transports, each for the [`Attempt`] that its thread has entered.
//!
//! Those of libgit2 know time-outs per read only, so that a remote that sends a byte now and then
//! holds a fetch for ever; and its `ssh` needs OpenSSH.

mod advertisement;
mod attempt;
mod daemon;
mod guard;
mod here;
mod http;
mod ref_line;
mod ssh;

pub use ssh::{check_known_hosts, check_private_key};

use git2::transport::Transport;

use self::attempt::current;

pub(super) use advertisement::NeededRefs;
pub(super) use attempt::Attempt;
pub(super) use guard::STRUCTURE;
pub(super) use here::{check_owner, git_is_here};

/// The scheme by which git itself pushes on this machine; the path is that of the attempt.
pub(super) const LOCAL_PUSH: &str = "clade-here";

/// Makes the transport of `http` and `https`.
pub(super) fn http(remote: &git2::Remote<'_>) -> Result<Transport, git2::Error> {
    Transport::smart(remote, true, http::Http::new(current()?))
}

/// Makes the transport of `ssh`.
pub(super) fn ssh(remote: &git2::Remote<'_>) -> Result<Transport, git2::Error> {
    Transport::smart(remote, false, ssh::Ssh::new(current()?))
}

/// Makes the transport by which git itself pushes on this machine.
pub(super) fn here(remote: &git2::Remote<'_>) -> Result<Transport, git2::Error> {
    Transport::smart(remote, false, here::Here::new(current()?))
}

/// Makes the transport of `git`.
pub(super) fn daemon(remote: &git2::Remote<'_>) -> Result<Transport, git2::Error> {
    Transport::smart(remote, false, daemon::Daemon::new(current()?))
}
