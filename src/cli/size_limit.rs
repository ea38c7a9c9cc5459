//! The limit of the size of files, `ulimit -f`.

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Makes a write beyond the limit of the size of files an error, as on a full disk; else the signal ends the process.
/// It is called within a runtime.
pub(super) fn outlive_size_limits() -> Result<()> {
    // Waited for once, the signal ends the process no more, also when the runtime is gone.
    let caught = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    caught.map(drop).context("cannot wait for signals")
}

/// Does the same in a program without a runtime.
pub(super) fn outlive_size_limits_alone() -> Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build();
    let runtime = runtime.context("cannot wait for signals")?;
    let _entered = runtime.enter();
    outlive_size_limits()
}
