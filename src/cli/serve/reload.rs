//! Reloads of files that change while the daemon runs: by polling, and at SIGHUP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::layers::Layering;
use super::prepare::Prepared;
use crate::config::watched::{ReloadCause, Reloaded, SETTLE, WatchError};
use crate::http::{Access, Tls, Webhooks};
use crate::telemetry::{Log, Metrics};

/// How often files are compared with what is loaded.
const INTERVAL: Duration = Duration::from_secs(1);

/// After how many polls a reload that still fails is logged once more.
const REMIND: u32 = 600;

/// Returns what waits for SIGHUP, which from then on does not end the process.
pub(super) fn hangups() -> Result<Signal> {
    signal(SignalKind::hangup()).context("cannot wait for signals")
}

/// Reloads the settings.
pub(super) struct SettingsReloader {
    pub(super) log: Log,
    pub(super) layering: Layering,
}

impl SettingsReloader {
    /// Reads the settings once more, and returns whether they can be used. Only the log filter can change while the daemon runs.
    fn reload(&self) -> bool {
        match self.layering.reload() {
            Ok((serve, changed)) => {
                self.log.set_filter(&serve.log);
                let others: Vec<&str> =
                    changed.iter().map(String::as_str).filter(|it| *it != "log").collect();
                if !others.is_empty() {
                    tracing::warn!("changed settings need a restart: {}", others.join(", "));
                }
                true
            }
            Err(error) => {
                tracing::warn!("reload failed, the former settings stay in use: {error:#}");
                false
            }
        }
    }
}

/// The files to load again.
pub(super) struct Reloader {
    files: Arc<ReloadableFiles>,
    metrics: Arc<Metrics>,
    problems: BTreeMap<String, Problem>,
    settings: SettingsReloader,
}

struct ReloadableFiles {
    tls: Option<Arc<Tls>>,
    access: Arc<Access>,
    webhooks: Arc<Webhooks>,
}

/// What is wrong, and for how many polls.
struct Problem {
    message: String,
    polls: u32,
}

type FileOutcome = (&'static str, Result<Reloaded, String>);

impl Reloader {
    pub(super) fn new(
        prepared: &Prepared,
        metrics: Arc<Metrics>,
        settings: SettingsReloader,
    ) -> Self {
        let files = ReloadableFiles {
            tls: prepared.tls.clone(),
            access: Arc::clone(&prepared.access),
            webhooks: Arc::clone(&prepared.webhooks),
        };
        Self { files: Arc::new(files), metrics, problems: BTreeMap::new(), settings }
    }

    /// Loads what changes, for ever.
    pub(super) async fn keep_fresh(mut self, mut hangups: Signal) {
        self.warn();
        loop {
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => self.poll(ReloadCause::Poll).await,
                _ = hangups.recv() => {
                    tracing::info!("reloading at SIGHUP");
                    let is_usable = self.settings.reload();
                    // What changed has to stay the same for two polls, declared complete or not.
                    self.poll(ReloadCause::Declared).await;
                    tokio::time::sleep(SETTLE).await;
                    self.poll(ReloadCause::Declared).await;
                    let failed = self.problems.keys().find(|it| !it.starts_with(EXPIRY));
                    match failed.map(String::as_str).or((!is_usable).then_some("config")) {
                        None => tracing::info!("reloaded at SIGHUP"),
                        Some(file) => tracing::warn!(file, "reloaded at SIGHUP, but for what failed"),
                    }
                }
            }
            self.warn();
            self.metrics.set_log_lines_dropped(self.settings.log.dropped());
        }
    }

    async fn poll(&mut self, cause: ReloadCause) {
        let files = Arc::clone(&self.files);
        // A file system may hang.
        let outcomes = tokio::task::spawn_blocking(move || files.reload(cause)).await;
        let outcomes = outcomes.unwrap_or_else(|error| {
            tracing::error!(%error, "not every changed file was read");
            Vec::new()
        });
        for (file, outcome) in outcomes {
            match outcome {
                Ok(Reloaded::Pending) => {}
                Ok(Reloaded::Unchanged) => {
                    if self.problems.remove(file).is_some() {
                        self.metrics.count_reload(file, Ok(()));
                        tracing::info!(file, "the file has the content in use again");
                    }
                }
                Ok(Reloaded::Loaded) => {
                    self.problems.remove(file);
                    self.metrics.count_reload(file, Ok(()));
                    tracing::info!(file, "reloaded");
                }
                Err(message) => {
                    self.metrics.count_reload(file, Err(()));
                    if self.is_due(file.to_owned(), &message) {
                        tracing::warn!(
                            file,
                            "reload failed, the former content stays in use: {message}"
                        );
                    }
                }
            }
        }
    }

    /// Logs what is wrong with the certificates in use.
    fn warn(&mut self) {
        let Some(tls) = self.files.tls.clone() else { return };
        for (file, until) in tls.valid_until() {
            self.metrics.set_not_after(file, until);
        }
        let warnings = tls.warnings(jiff::Timestamp::now());
        self.problems.retain(|name, _| {
            !name.starts_with(EXPIRY) || {
                warnings.iter().any(|it| name.strip_prefix(EXPIRY) == Some(it))
            }
        });
        for message in warnings {
            if self.is_due(format!("{EXPIRY}{message}"), &message) {
                tracing::warn!("{message}");
            }
        }
    }

    /// Returns whether to log a problem: it is new, or has lasted for a while.
    fn is_due(&mut self, name: String, message: &str) -> bool {
        match self.problems.get_mut(&name) {
            Some(problem) if problem.message == message => {
                problem.polls += 1;
                problem.polls.is_multiple_of(REMIND)
            }
            _ => {
                let problem = Problem { message: message.to_owned(), polls: 0 };
                self.problems.insert(name, problem);
                true
            }
        }
    }
}

/// What the names of problems begin with that no file change causes.
const EXPIRY: &str = "expiry: ";

impl ReloadableFiles {
    fn reload(&self, cause: ReloadCause) -> Vec<FileOutcome> {
        let mut all: Vec<FileOutcome> = Vec::new();
        all.extend(self.tls.iter().map(|it| ("tls", outcome(it.reload(cause)))));
        all.extend(self.access.reload(cause).into_iter().map(|(file, it)| (file, outcome(it))));
        all.extend(self.webhooks.reload(cause).map(|it| ("webhook-secret-file", outcome(it))));
        all
    }
}

/// Writes an error with its causes.
fn outcome<E: std::error::Error + Send + Sync + 'static>(
    outcome: Result<Reloaded, WatchError<E>>,
) -> Result<Reloaded, String> {
    outcome.map_err(|error| format!("{:#}", anyhow::Error::new(error)))
}
