//! Logs and metrics.

mod catalogue;
mod line;
mod metrics;

use tracing_subscriber::EnvFilter;

pub use catalogue::Description;
pub use metrics::{Built, Classified, ConnectionEnd, Delivered, Metrics, Scrape};

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// Writes the log to stderr: a line an event, from `info` on unless `CLADE_LOG` says otherwise.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_env("CLADE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || line::Lines::new(format))
        .with_ansi(false)
        .with_target(false);
    // In tests there may be a log already.
    let _there_already = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}
