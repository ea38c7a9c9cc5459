//! What there is to know of a metric, for documents.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// A metric, for documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, as it stands in queries; of a histogram the part before `_bucket`.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels.
    pub labels: Vec<&'static str>,
    /// What it counts.
    pub help: &'static str,
}

/// The labels of a family.
pub(super) trait Labels {
    /// Their names.
    const NAMES: &'static [&'static str];
}

/// What the type of a metric says of it.
pub(super) trait MetricShape {
    /// Its kind.
    const KIND: &'static str;
    /// Its labels.
    const LABELS: &'static [&'static str] = &[];
}

impl MetricShape for Counter {
    const KIND: &'static str = "counter";
}

impl<N, A> MetricShape for Gauge<N, A> {
    const KIND: &'static str = "gauge";
}

impl MetricShape for Histogram {
    const KIND: &'static str = "histogram";
}

impl<L: Labels, M: MetricShape, C> MetricShape for Family<L, M, C> {
    const KIND: &'static str = M::KIND;
    const LABELS: &'static [&'static str] = L::NAMES;
}

/// Describes a metric by its type, its name without prefix, and its help.
pub(super) fn describe<S: MetricShape>(name: &str, help: &'static str) -> Description {
    let suffix = if S::KIND == "counter" { "_total" } else { "" };
    Description {
        name: format!("clade_{name}{suffix}"),
        kind: S::KIND,
        labels: S::LABELS.iter().map(|it| it.trim_start_matches("r#")).collect(),
        help,
    }
}
