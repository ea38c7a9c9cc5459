//! Metrics, for Prometheus.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// How a classification ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Classified {
    /// With an answer.
    Answered,
    /// With leaves that differ.
    Conflict,
    /// With a pattern that used up its step budget.
    EvaluationError,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Result {
    result: Classified,
}

/// What the daemon counts. No label holds a certname, a commit or anything else without bounds.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    classifications: Family<Result, Counter>,
    rule_evaluation_errors: Counter,
    groups: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("clade");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the daemon", build);
        let classifications = Family::default();
        let help = "Classifications, by how they ended";
        registry.register("classifications", help, classifications.clone());
        let rule_evaluation_errors = Counter::default();
        let help = "Classifications that failed for a pattern that used up its step budget";
        registry.register("rule_evaluation_errors", help, rule_evaluation_errors.clone());
        let groups = Gauge::default();
        let help = "Groups of the commit that answers, the root group counted; 0 if none answers";
        registry.register("snapshot_groups", help, groups.clone());
        Self { registry, classifications, rule_evaluation_errors, groups }
    }
}

impl Metrics {
    /// Counts a classification.
    pub fn count(&self, result: Classified) {
        self.classifications.get_or_create(&Result { result }).inc();
        if result == Classified::EvaluationError {
            self.rule_evaluation_errors.inc();
        }
    }

    /// Writes all metrics in the text format of `OpenMetrics`.
    pub fn render(&self, groups: usize) -> String {
        self.groups.set(i64::try_from(groups).unwrap_or(i64::MAX));
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
        metrics.count(Classified::Answered);
        metrics.count(Classified::EvaluationError);
        let text = metrics.render(42);
        for line in [
            "clade_build_info{version=\"0.1.0\"} 1",
            "clade_classifications_total{result=\"Answered\"} 1",
            "clade_rule_evaluation_errors_total 1",
            "clade_snapshot_groups 42",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
    }
}
