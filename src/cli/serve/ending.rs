//! The end of the daemon's threads within the grace period, whatever hangs.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;

use crate::reconcile::Controller;

/// How long background work may delay the end.
pub(super) const LAST_WORK: Duration = Duration::from_secs(1);

/// Does the work that ends the threads. When `grace` is over, pushes and fetches under way are
/// interrupted; when `last` is over too, threads that hang are abandoned.
pub(super) async fn within(
    grace: Duration,
    last: Duration,
    controller: &Controller,
    work: impl FnOnce() + Send + 'static,
) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    let end = move || {
        work();
        // The receiver is gone if this took too long.
        sender.send(()).ok();
    };
    std::thread::Builder::new()
        .name("ending".to_owned())
        .spawn(end)
        .context("cannot start a thread")?;
    let over = Arc::new(Mutex::new(receiver));
    if !is_over(&over, grace).await {
        controller.interrupt();
        controller.stop();
        if !is_over(&over, last).await {
            tracing::warn!("threads that hang are abandoned");
        }
    }
    Ok(())
}

async fn is_over(over: &Arc<Mutex<mpsc::Receiver<()>>>, longest: Duration) -> bool {
    let over = Arc::clone(over);
    let wait =
        move || !matches!(over.lock().recv_timeout(longest), Err(mpsc::RecvTimeoutError::Timeout));
    tokio::task::spawn_blocking(wait).await.unwrap_or(true)
}

/// Waits for a thread.
pub(super) fn join(thread: JoinHandle<()>, what: &str) {
    if thread.join().is_err() {
        tracing::error!("{what} failed");
    }
}
