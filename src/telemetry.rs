//! Logs and metrics.

mod catalogue;
mod filter;
mod log;
mod metrics;
mod request_metrics;
mod series_cache;

use tracing_subscriber::{EnvFilter, reload};

pub use catalogue::Description;
pub use filter::check_filter;
pub use log::LogGuard;
pub use metrics::{
    BuildOutcome, ClassificationOutcome, ConnectionEnd, DecisionDrop, Delivered, DropReason,
    Metrics, Scrape,
};
pub use request_metrics::RequestMetrics;

use crate::expected_panic;
use log::{LineForm, LogQueue};

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The log of the process.
pub struct Log {
    queue: LogQueue,
    _last_lines: LogGuard,
    filter: Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Log {
    /// Writes the log to stderr, a line an event, until this is dropped. Logging never blocks.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread that writes cannot be started.
    pub fn start(format: LogFormat, filter: &str) -> std::io::Result<Self> {
        let form = match format {
            LogFormat::Text => LineForm::Text,
            LogFormat::Json => LineForm::Json,
        };
        let (queue, last_lines) = LogQueue::start(form, std::io::stderr())?;
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(filter))
            .with_writer(queue.clone())
            .with_ansi(false)
            .with_target(false);
        // In tests there may be a log already.
        let filter: Box<dyn Fn(EnvFilter) -> _ + Send + Sync> = match format {
            LogFormat::Text => {
                let log = log.with_filter_reloading();
                let handle = log.reload_handle();
                let _there_already = log.try_init();
                Box::new(move |it| handle.reload(it))
            }
            LogFormat::Json => {
                let log = log.json().flatten_event(true).with_filter_reloading();
                let handle = log.reload_handle();
                let _there_already = log.try_init();
                Box::new(move |it| handle.reload(it))
            }
        };
        // Below that, libraries write what they send and receive: tokens and facts.
        ::log::set_max_level(::log::max_level().min(::log::LevelFilter::Debug));
        // The usual hook writes to stderr, which may not be read.
        std::panic::set_hook(Box::new(|panic| {
            if !expected_panic::is_expected() {
                tracing::error!("panic: {panic}");
            }
        }));
        Ok(Self { queue, _last_lines: last_lines, filter })
    }

    /// Replaces the filter of events.
    pub fn set_filter(&self, filter: &str) {
        if let Err(error) = (self.filter)(EnvFilter::new(filter)) {
            tracing::warn!(%error, "the log filter cannot be changed");
        }
    }

    /// Returns how many lines were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}
