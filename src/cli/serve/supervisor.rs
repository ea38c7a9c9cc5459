//! Signals to the daemon, and notifications of its supervisor, such as systemd.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Notifies the supervisor of a state, if there is one.
pub(super) fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "sd_notify failed");
    }
}

/// Notifies the supervisor that the daemon is ready, and then that it is alive, as often as it demands.
pub(super) async fn supervise() {
    notify(sd_notify::NotifyState::Ready);
    let Some(every) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(every / 2).await;
        notify(sd_notify::NotifyState::Watchdog);
    }
}

/// Makes a write beyond the limit of the size of files an error, as on a full disk; else the signal ends the process.
pub(super) fn outlive_size_limits(runtime: &Runtime) -> Result<()> {
    let _entered = runtime.enter();
    // Waited for once, the signal ends the process no more.
    let caught = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    caught.map(drop).context("cannot wait for signals")
}

/// Returns what waits for SIGTERM or SIGINT, sets `since`, and cancels `stop`.
pub(super) fn signals(
    stop: CancellationToken,
    since: Arc<OnceLock<Instant>>,
) -> Result<Pin<Box<dyn Future<Output = ()> + Send>>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        since.set(Instant::now()).ok();
        stop.cancel();
    }))
}
