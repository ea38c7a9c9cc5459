//! Signals to the daemon, and notifications of its supervisor, such as systemd.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How soon after a signal another one is the same: `timeout` sends one to the process and one to its group.
const ECHO: Duration = Duration::from_millis(200);

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

fn catch(kind: SignalKind) -> Result<UnixSignal> {
    signal(kind).context("cannot wait for signals")
}

/// Whether the daemon is to end, and since when.
#[derive(Default)]
pub(super) struct Shutdown {
    token: CancellationToken,
    since: OnceLock<Instant>,
    /// Whether the daemon began before the first signal came.
    began: OnceLock<bool>,
}

impl Shutdown {
    /// Returns what is cancelled when the daemon is to end.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }

    pub(super) fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until the daemon is to end.
    pub(super) async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Returns how long ago that was.
    pub(super) fn since(&self) -> Duration {
        self.since.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Begins to run; returns false where a signal came before, which then ends the process.
    pub(super) fn begin(&self) -> bool {
        *self.began.get_or_init(|| true)
    }

    /// Waits until a signal comes, and for ever if the daemon had begun by then: it ends in order.
    pub(super) async fn ended_early(&self) {
        self.requested().await;
        if *self.began.get_or_init(|| false) {
            std::future::pending::<()>().await;
        }
    }

    fn request(&self) {
        self.since.set(Instant::now()).ok();
        self.token.cancel();
    }
}

/// SIGTERM and SIGINT, which from then on do not end the process by themselves.
pub(super) struct Signals {
    terminate: UnixSignal,
    interrupt: UnixSignal,
}

impl Signals {
    pub(super) fn catch() -> Result<Self> {
        let terminate = catch(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: catch(SignalKind::interrupt())? })
    }

    /// Requests a shutdown at the first signal, and kills the process at the second.
    pub(super) async fn handle(mut self, shutdown: &Shutdown) -> Infallible {
        self.next().await;
        tracing::info!("stopping");
        shutdown.request();
        notify(sd_notify::NotifyState::Stopping);
        loop {
            self.next().await;
            if shutdown.since() > ECHO {
                // What hangs cannot be ended in order.
                kill_process(getpid(), Signal::KILL).ok();
            }
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
