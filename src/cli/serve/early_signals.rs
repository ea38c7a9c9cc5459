//! Signals to a daemon from its first moment on.
//!
//! A process without a handler ends by the signal; process 1 of a container does not even get it. So the handlers come
//! before the command line is parsed and the settings are read, which may take long: a settings file can be a pipe.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::runtime::Handle;
use tokio::signal::unix::Signal;
use tokio::sync::oneshot;

use super::supervisor::{Shutdown, Signals};
use super::{allocator, ending, reload};
use crate::cli::Exit;
use crate::priority::STACK;

/// What a daemon needs of its first moment.
pub(in crate::cli) struct CaughtSignals {
    pub(super) runtime: Handle,
    /// Requested by the first signal.
    pub(super) shutdown: Arc<Shutdown>,
    pub(super) hangups: Signal,
}

/// Returns whether arguments start a daemon: a check of its settings ends by a signal as every command does.
pub(in crate::cli) fn starts_daemon(arguments: &[OsString]) -> bool {
    let is_serve = arguments.get(1).is_some_and(|it| it == super::FILE.command);
    is_serve && !arguments.iter().any(|it| it == "--check")
}

/// Catches signals, and runs the command line of a daemon in a thread of its own. A signal that comes before the
/// daemon [begins](Shutdown::begin) ends this at once, whatever the thread waits for.
pub(in crate::cli) fn run_caught(
    arguments: Vec<OsString>,
    command: fn(Vec<OsString>, Option<CaughtSignals>) -> Exit,
) -> Result<Exit> {
    allocator::set(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(async {
        let signals = Signals::catch()?;
        let hangups = reload::hangups()?;
        let shutdown = Arc::new(Shutdown::default());
        let caught =
            CaughtSignals { runtime: Handle::current(), shutdown: Arc::clone(&shutdown), hangups };
        let (sender, done) = oneshot::channel();
        let work = move || {
            // Without a receiver this has ended by a signal.
            sender.send(command(arguments, Some(caught))).ok();
        };
        std::thread::Builder::new()
            .name("daemon".to_owned())
            .stack_size(STACK)
            .spawn(work)
            .context("cannot start a thread")?;
        tokio::select! {
            exit = done => exit.context("the daemon failed"),
            () = shutdown.ended_early() => Ok(Exit::Fine),
            never = signals.handle(&shutdown) => match never {},
        }
    });
    // A request to a Puppet Server may still run; its answer is not needed any more.
    runtime.shutdown_timeout(ending::LAST_WORK);
    done
}
