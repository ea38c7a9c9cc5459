//! Logs and metrics.

mod metrics;

use tracing_subscriber::EnvFilter;

pub use metrics::{Classified, Metrics};

/// Writes the log to stderr: a line an event, from `info` on unless `CLADE_LOG` says otherwise.
pub fn init() {
    let filter = EnvFilter::try_from_env("CLADE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // In tests there may be a log already.
    let _there_already = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .try_init();
}
