//! Metrics, for Prometheus.
//!
//! No label holds a certname, a path, a URL or anything else without bounds; the one commit that is
//! a label is that of the snapshot that answers.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::catalogue::{Description, Labels, describe};
use super::series_cache::SeriesCache;

/// How a classification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum ClassificationOutcome {
    /// With an answer.
    Answered,
    /// With leaves that differ.
    Conflict,
    /// With a pattern that used up its step budget, or facts that made a value too long.
    EvaluationError,
    /// With a rule that needs a value that was not stored.
    Withheld,
}

/// How the building of a commit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuildOutcome {
    /// It is live.
    Live,
    /// It is valid, and an operator or the remote keeps it from being live.
    Held,
    /// With findings.
    Rejected,
    /// A newer commit came.
    Superseded,
    /// It could not be read.
    Error,
}

/// Why the daemon ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum ConnectionEnd {
    /// It gave way to another one.
    GaveWay,
    /// A body came too slowly.
    SlowBody,
    /// An answer was taken too slowly.
    SlowReader,
    /// The handshake took too long.
    SlowHandshake,
    /// The client certificate is not valid, or not any more.
    CertificateRefused,
}

/// How a webhook's request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivered {
    /// The branch is fetched.
    Accepted,
    /// It was here before.
    Duplicate,
    /// It is about something else.
    Ignored,
    /// Its signature is wrong or missing.
    Unauthenticated,
    /// It cannot be read.
    Malformed,
    /// It is too large.
    TooLarge,
}

/// Why a check-in was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// More waits to be written than the queue holds, or it was answered by too many commits.
    QueueFull,
    /// The store has as many nodes or bytes as its limits allow.
    Limit,
    /// The store cannot be written.
    StorageFailed,
    /// The name is too long for a certname, or has a NUL character.
    Name,
}

/// Why a line of the decision log was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecisionDrop {
    /// More waits to be written than the queue holds, or it was answered by too many commits.
    QueueFull,
    /// The log cannot be written.
    WriteFailed,
}

impl DecisionDrop {
    const ALL: [Self; 2] = [Self::QueueFull, Self::WriteFailed];

    fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::WriteFailed => "write-failed",
        }
    }
}

impl ClassificationOutcome {
    const ALL: [Self; 4] = [Self::Answered, Self::Conflict, Self::EvaluationError, Self::Withheld];
}

impl DropReason {
    const ALL: [Self; 4] = [Self::QueueFull, Self::Limit, Self::StorageFailed, Self::Name];

    fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Limit => "limit",
            Self::StorageFailed => "storage-failed",
            Self::Name => "name",
        }
    }
}

impl BuildOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Held => "held",
            Self::Rejected => "rejected",
            Self::Superseded => "superseded",
            Self::Error => "error",
        }
    }
}

impl Delivered {
    const ALL: [Self; 6] = [
        Self::Accepted,
        Self::Duplicate,
        Self::Ignored,
        Self::Unauthenticated,
        Self::Malformed,
        Self::TooLarge,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Ignored => "ignored",
            Self::Unauthenticated => "unauthenticated",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
        }
    }
}

macro_rules! labels {
    ($($name:ident { $($label:ident: $of:ty),+ })+) => {
        $(#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name { $(pub(super) $label: $of),+ }

        impl Labels for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($label)),+];
        })+
    };
}

labels! {
    Result { result: ClassificationOutcome }
    Named { result: &'static str }
    Fetch { trigger: &'static str, outcome: &'static str }
    Reason { reason: &'static str }
    Triggered { trigger: &'static str }
    Finding { code: &'static str, severity: &'static str }
    Webhook { provider: &'static str, result: &'static str }
    RequestLabels { route: String, method: &'static str, code: u16 }
    RequestShape { shape: &'static str }
    Revision { revision: String }
    ReplicaLabels { replica: String, revision: String }
    Standing { r#type: String, status: &'static str }
    Connections { listener: &'static str }
    ConnectionEnded { listener: &'static str, reason: ConnectionEnd }
    FileReload { file: &'static str, result: &'static str }
    WatchedFile { file: &'static str }
}

/// How things stand at the time of a scrape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// The commit that answers.
    pub revision: Option<String>,
    /// Its groups, the root group counted.
    pub groups: usize,
    /// How many commits are kept built.
    pub retained: usize,
    /// Conditions: type, and whether it holds.
    pub conditions: Vec<(String, bool)>,
    /// When the remote was tried last, in seconds since 1970.
    pub last_attempt: Option<i64>,
    /// When it answered last.
    pub last_contact: Option<i64>,
    /// When the branch moved last.
    pub last_change: Option<i64>,
    /// When a commit began to answer last.
    pub last_activation: Option<i64>,
    /// For how many seconds the branch was not seen.
    pub staleness: u64,
    /// How many looks failed in a row.
    pub failures: u32,
}

type Seconds = Gauge<f64, AtomicU64>;

macro_rules! metrics {
    ($($field:ident: $of:ty = $make:expr, $name:literal, $help:literal;)+) => {
        /// What the daemon counts.
        #[derive(Debug)]
        pub struct Metrics {
            registry: Registry,
            /// Held while all is written: what each reading sets is the same for all metrics.
            rendering: Mutex<()>,
            known_classifications: SeriesCache<Result, Counter, 4>,
            known_shapes: SeriesCache<RequestShape, Counter, 7>,
            $($field: $of,)+
        }

        impl Default for Metrics {
            fn default() -> Self {
                let mut registry = Registry::with_prefix("clade");
                let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
                registry.register("build", "The version of the daemon", build);
                $(
                    let $field: $of = $make;
                    registry.register($name, $help, $field.clone());
                )+
                let metrics = Self {
                    registry,
                    rendering: Mutex::default(),
                    known_classifications: SeriesCache::default(),
                    known_shapes: SeriesCache::default(),
                    $($field,)+
                };
                metrics.begin();
                metrics
            }
        }

        impl Metrics {
            /// Describes every metric, in the order in which they are written.
            pub fn catalogue() -> Vec<Description> {
                let build = Description {
                    name: "clade_build_info".to_owned(),
                    kind: "gauge",
                    labels: vec!["version"],
                    help: "The version of the daemon",
                };
                let mut all = vec![build];
                $(all.push(describe::<$of>($name, $help));)+
                all
            }
        }
    };
}

metrics! {
    classifications: Family<Result, Counter> = Family::default(),
        "classifications", "Classifications, by result";
    rule_evaluation_errors: Counter = Counter::default(),
        "rule_evaluation_errors", "Classifications that failed because a pattern used up its step budget or facts made a value too long";
    request_shapes: Family<RequestShape, Counter> = Family::default(),
        "request_shapes", "Classification requests, by the form of their body";
    requests: Family<RequestLabels, Counter> = Family::default(),
        "http_requests", "Answered requests";
    request_duration: Family<RequestLabels, Histogram> = Family::new_with_constructor(durations),
        "http_request_duration_seconds", "Time from the head of a request to the head of its answer";
    fetches: Family<Fetch, Counter> = Family::default(),
        "source_fetches", "Fetches of the branch, by trigger and outcome";
    fetch_errors: Family<Reason, Counter> = Family::default(),
        "source_fetch_errors", "Failed fetches of the branch, by reason";
    fetch_duration: Family<Fetch, Histogram> = Family::new_with_constructor(durations),
        "source_fetch_duration_seconds", "Duration of a fetch of the branch";
    builds: Family<Named, Counter> = Family::default(),
        "snapshot_builds", "Builds of commits, by result: live, held, rejected, superseded, error";
    build_duration: Family<Named, Histogram> = Family::new_with_constructor(durations),
        "snapshot_build_duration_seconds", "Time to verify, validate and build a commit";
    findings: Family<Finding, Counter> = Family::default(),
        "snapshot_findings", "Findings in built commits, by kind and severity";
    activation_latency: Family<Triggered, Histogram> = Family::new_with_constructor(durations),
        "activation_latency_seconds", "Time from the first notice of a commit until it is live";
    check_ins_written: Counter = Counter::default(),
        "check_ins_written", "Check-ins written to the store; of a node, those that wait and were answered alike are one";
    check_ins_dropped: Family<Reason, Counter> = Family::default(),
        "check_ins_dropped", "Dropped check-ins, by reason: queue-full, limit, storage-failed, name";
    store_failures: Counter = Counter::default(),
        "check_ins_store_failures", "Failed attempts to open or write the store of check-ins";
    check_ins_nodes: Gauge = Gauge::default(),
        "check_ins_nodes", "Nodes in the store of check-ins, at the last write";
    check_ins_bytes: Gauge = Gauge::default(),
        "check_ins_bytes", "Bytes of the check-ins in the store, at the last write";
    decisions_logged: Counter = Counter::default(),
        "decision_log_lines", "Lines written to the decision log";
    decisions_dropped: Family<Reason, Counter> = Family::default(),
        "decision_log_lines_dropped", "Dropped lines of the decision log, by reason: queue-full, write-failed";
    generation: Counter = Counter::default(),
        "snapshot_generation", "How often the live commit changed";
    webhooks: Family<Webhook, Counter> = Family::default(),
        "webhook_requests", "Requests of webhooks, by provider and result";
    commit_statuses: Family<Webhook, Counter> = Family::default(),
        "commit_status_posts", "Commit statuses, by forge and result: posted, retried, refused; evicted: too many waited";
    head_checks: Family<Named, Counter> = Family::default(),
        "head_checks", "Checked heads of pull requests, by result: valid, invalid, failed; not-started: retried";
    revision: Family<Revision, Gauge> = Family::default(),
        "source_live_revision_info", "The live commit";
    conditions: Family<Standing, Gauge> = Family::default(),
        "source_condition", "Conditions of the status document: 1 for the status that holds";
    groups: Gauge = Gauge::default(),
        "snapshot_groups", "Groups of the live commit, the root group counted; 0 without a live commit";
    retained: Gauge = Gauge::default(),
        "snapshots_retained", "Commits whose snapshots are cached";
    last_attempt: Seconds = Gauge::default(),
        "source_last_attempt_timestamp_seconds", "Time of the last fetch, successful or not";
    last_contact: Seconds = Gauge::default(),
        "source_last_contact_timestamp_seconds", "Time of the last successful fetch";
    last_change: Seconds = Gauge::default(),
        "source_last_change_timestamp_seconds", "Time of the last change of the branch";
    last_activation: Seconds = Gauge::default(),
        "source_last_activation_timestamp_seconds", "Time of the last activation";
    staleness: Seconds = Gauge::default(),
        "source_staleness_seconds", "Seconds since the last successful fetch, across restarts; since the start before the first one";
    connections: Family<Connections, Gauge> = Family::default(),
        "http_connections", "Open connections, by listener";
    connection_ends: Family<ConnectionEnded, Counter> = Family::default(),
        "http_connections_ended", "Connections that the daemon closed before their client, by reason";
    log_lines_dropped: Counter = Counter::default(),
        "log_lines_dropped", "Log lines that were dropped because stderr was not read, or could not be written";
    file_reloads: Family<FileReload, Counter> = Family::default(),
        "file_reloads", "Reloads of watched files (tokens, certificates, revocation lists, secrets), by result";
    file_reload_failing: Family<WatchedFile, Gauge> = Family::default(),
        "file_reload_failing", "1 while a changed file cannot be loaded and the former content stays in use";
    tls_not_after: Family<WatchedFile, Seconds> = Family::default(),
        "tls_not_after_timestamp_seconds", "Time at which certificates and revocation lists in use expire";
    replicas: Family<ReplicaLabels, Gauge> = Family::default(),
        "replica_info", "The daemons that share the store, each with the commit that answers there; empty before there is one";
    failures: Gauge = Gauge::default(),
        "source_consecutive_failures", "Failed fetches of the branch in a row";
}

/// From a tenth of a millisecond to two minutes.
fn durations() -> Histogram {
    Histogram::new([
        0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0,
        2.5, 5.0, 10.0, 30.0, 60.0, 120.0,
    ])
}

impl Metrics {
    /// Begins counts at zero: of one that begins at its first event, no increase is seen.
    fn begin(&self) {
        for result in ClassificationOutcome::ALL {
            drop(self.classifications.get_or_create(&Result { result }));
        }
        for why in DecisionDrop::ALL {
            drop(self.decisions_dropped.get_or_create(&Reason { reason: why.as_str() }));
        }
        for why in DropReason::ALL {
            drop(self.check_ins_dropped.get_or_create(&Reason { reason: why.as_str() }));
        }
    }

    /// Begins the counts of the deliveries of one provider of webhooks at zero.
    pub fn begin_webhooks(&self, provider: &'static str) {
        for delivered in Delivered::ALL {
            let webhook = Webhook { provider, result: delivered.as_str() };
            drop(self.webhooks.get_or_create(&webhook));
        }
    }

    /// Begins the counts of the commit statuses for a forge at zero.
    pub fn begin_commit_statuses(&self, provider: &'static str) {
        for result in ["posted", "retried", "refused", "evicted"] {
            drop(self.commit_statuses.get_or_create(&Webhook { provider, result }));
        }
    }

    /// Counts a classification.
    pub fn count(&self, result: ClassificationOutcome) {
        self.known_classifications.increment(&self.classifications, &Result { result });
        if result == ClassificationOutcome::EvaluationError {
            self.rule_evaluation_errors.inc();
        }
    }

    /// Counts the shape of a classification request's body.
    pub fn count_shape(&self, shape: &'static str) {
        self.known_shapes.increment(&self.request_shapes, &RequestShape { shape });
    }

    /// Returns what counts and times the requests with these labels.
    pub(super) fn of_requests(&self, labels: &RequestLabels) -> (Counter, Histogram) {
        let counter = self.requests.get_or_create_owned(labels);
        (counter, self.request_duration.get_or_create_owned(labels))
    }

    /// Counts a fetch: whether the branch moved, or why the fetch failed.
    pub fn count_fetch(
        &self,
        trigger: &'static str,
        moved: std::result::Result<bool, &'static str>,
        time: Duration,
    ) {
        let outcome = match moved {
            Ok(true) => "updated",
            Ok(false) => "unchanged",
            Err(_) => "error",
        };
        let fetch = Fetch { trigger, outcome };
        self.fetches.get_or_create(&fetch).inc();
        self.fetch_duration.get_or_create(&fetch).observe(time.as_secs_f64());
        if let Err(reason) = moved {
            self.fetch_errors.get_or_create(&Reason { reason }).inc();
        }
    }

    /// Counts a decision about a commit.
    pub fn count_build(&self, built: BuildOutcome, time: Duration) {
        let result = Named { result: built.as_str() };
        self.builds.get_or_create(&result).inc();
        self.build_duration.get_or_create(&result).observe(time.as_secs_f64());
    }

    /// Counts a finding.
    pub fn count_finding(&self, code: &'static str, severity: &'static str) {
        self.findings.get_or_create(&Finding { code, severity }).inc();
    }

    /// Counts an activation.
    pub fn count_activation(&self, trigger: &'static str, since_first_sign: Duration) {
        let latency = self.activation_latency.get_or_create(&Triggered { trigger });
        latency.observe(since_first_sign.as_secs_f64());
        self.generation.inc();
    }

    /// Counts a request of a webhook.
    pub fn count_webhook(&self, provider: &'static str, delivered: Delivered) {
        let webhook = Webhook { provider, result: delivered.as_str() };
        self.webhooks.get_or_create(&webhook).inc();
    }

    /// Counts a commit status that was posted, or not.
    pub fn count_commit_status(&self, provider: &'static str, result: &'static str) {
        self.commit_statuses.get_or_create(&Webhook { provider, result }).inc();
    }

    /// Counts a head of a pull request that was checked.
    pub fn count_head_check(&self, result: &'static str) {
        self.head_checks.get_or_create(&Named { result }).inc();
    }

    /// Says how many lines of the log were dropped so far.
    pub fn set_log_lines_dropped(&self, lines: u64) {
        let counted = self.log_lines_dropped.get();
        self.log_lines_dropped.inc_by(lines.saturating_sub(counted));
    }

    /// Says how many connections are open at a listener.
    pub fn set_connections(&self, listener: &'static str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.connections.get_or_create(&Connections { listener }).set(count);
    }

    /// Counts a connection that the daemon ended.
    pub fn count_connection_end(&self, listener: &'static str, reason: ConnectionEnd) {
        self.connection_ends.get_or_create(&ConnectionEnded { listener, reason }).inc();
    }

    /// Counts a reload of a watched file, or that it failed.
    pub fn count_reload(&self, file: &'static str, loaded: std::result::Result<(), ()>) {
        let (result, failing) = if loaded.is_ok() { ("loaded", 0) } else { ("failed", 1) };
        self.file_reloads.get_or_create(&FileReload { file, result }).inc();
        self.file_reload_failing.get_or_create(&WatchedFile { file }).set(failing);
    }

    /// Says until when a certificate or revocation list in use is valid, in seconds since 1970.
    pub fn set_not_after(&self, file: &'static str, until: i64) {
        let until = jiff::SignedDuration::from_secs(until).as_secs_f64();
        self.tls_not_after.get_or_create(&WatchedFile { file }).set(until);
    }

    /// Counts check-ins that were written.
    pub fn count_check_ins(&self, count: usize) {
        self.check_ins_written.inc_by(count as u64);
    }

    /// Returns how many check-ins were written.
    pub fn check_ins_written(&self) -> u64 {
        self.check_ins_written.get()
    }

    /// Notes the daemons that share the store, each with its commit.
    pub fn set_replicas<'r>(&self, replicas: impl Iterator<Item = (&'r str, Option<String>)>) {
        let _rendering = self.rendering.lock();
        self.replicas.clear();
        for (replica, revision) in replicas {
            let labels = ReplicaLabels {
                replica: replica.to_owned(),
                revision: revision.unwrap_or_default(),
            };
            self.replicas.get_or_create(&labels).set(1);
        }
    }

    /// Counts check-ins that are not kept.
    pub fn count_dropped_check_ins(&self, why: DropReason, count: usize) {
        self.check_ins_dropped.get_or_create(&Reason { reason: why.as_str() }).inc_by(count as u64);
    }

    /// Counts lines of the decision log that were written.
    pub fn count_logged_decisions(&self, count: usize) {
        self.decisions_logged.inc_by(count as u64);
    }

    /// Counts lines of the decision log that were dropped.
    pub fn count_dropped_decisions(&self, why: DecisionDrop, count: usize) {
        if count > 0 {
            self.decisions_dropped
                .get_or_create(&Reason { reason: why.as_str() })
                .inc_by(count as u64);
        }
    }

    /// Returns how many lines of the decision log were dropped.
    pub fn dropped_decisions(&self) -> u64 {
        let count = |why: DecisionDrop| {
            self.decisions_dropped.get(&Reason { reason: why.as_str() }).map_or(0, |it| it.get())
        };
        DecisionDrop::ALL.into_iter().map(count).sum()
    }

    /// Counts a failure of the store of check-ins.
    pub fn count_store_failure(&self) {
        self.store_failures.inc();
    }

    /// Notes how much the store of check-ins holds.
    pub fn set_check_ins(&self, nodes: u64, bytes: u64) {
        self.check_ins_nodes.set(i64::try_from(nodes).unwrap_or(i64::MAX));
        self.check_ins_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Writes all metrics in the text format of OpenMetrics.
    pub fn render(&self, scrape: &Scrape) -> String {
        let _rendering = self.rendering.lock();
        self.revision.clear();
        if let Some(revision) = &scrape.revision {
            self.revision.get_or_create(&Revision { revision: revision.clone() }).set(1);
        }
        self.conditions.clear();
        for (kind, holds) in &scrape.conditions {
            for (status, value) in [("true", *holds), ("false", !*holds)] {
                let standing = Standing { r#type: kind.clone(), status };
                self.conditions.get_or_create(&standing).set(i64::from(value));
            }
        }
        let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        self.groups.set(count(scrape.groups));
        self.retained.set(count(scrape.retained));
        self.failures.set(i64::from(scrape.failures));
        for (gauge, value) in [
            (&self.last_attempt, scrape.last_attempt),
            (&self.last_contact, scrape.last_contact),
            (&self.last_change, scrape.last_change),
            (&self.last_activation, scrape.last_activation),
            (&self.staleness, i64::try_from(scrape.staleness).ok()),
        ] {
            // Seconds since 1970 are exact in a double for longer than needed.
            gauge.set(jiff::SignedDuration::from_secs(value.unwrap_or_default()).as_secs_f64());
        }
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // A string takes whatever is written to it.
            Err(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_rendered() {
        let metrics = Metrics::default();
        metrics.count(ClassificationOutcome::Answered);
        metrics.count(ClassificationOutcome::EvaluationError);
        metrics.count_fetch("poll", Ok(true), Duration::from_millis(3));
        metrics.count_fetch("poll", Err("Timeout"), Duration::from_secs(3));
        metrics.count_build(BuildOutcome::Live, Duration::from_millis(30));
        metrics.count_webhook("github", Delivered::TooLarge);
        let scrape = Scrape {
            groups: 42,
            revision: Some("abc".to_owned()),
            conditions: vec![("Ready".to_owned(), true)],
            staleness: 7,
            ..Scrape::default()
        };
        metrics.render(&Scrape { revision: Some("old".to_owned()), ..scrape.clone() });
        let text = metrics.render(&scrape);
        for line in [
            "clade_build_info{version=\"0.1.0\"} 1",
            "clade_classifications_total{result=\"Answered\"} 1",
            "clade_rule_evaluation_errors_total 1",
            "clade_classifications_total{result=\"Conflict\"} 0",
            "clade_source_fetches_total{trigger=\"poll\",outcome=\"updated\"} 1",
            "clade_source_fetch_errors_total{reason=\"Timeout\"} 1",
            "clade_snapshot_builds_total{result=\"live\"} 1",
            "clade_webhook_requests_total{provider=\"github\",result=\"too_large\"} 1",
            "clade_source_live_revision_info{revision=\"abc\"} 1",
            "clade_source_condition{type=\"Ready\",status=\"true\"} 1",
            "clade_source_condition{type=\"Ready\",status=\"false\"} 0",
            "clade_source_staleness_seconds 7.0",
            "clade_snapshot_groups 42",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
        assert!(!text.contains("revision=\"old\""));
    }
}
