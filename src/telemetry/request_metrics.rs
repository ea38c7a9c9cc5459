//! Counts the requests of a route.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use super::metrics::{Metrics, RequestLabels};
use super::series_cache::SeriesCache;

/// The metrics of requests, with the series of one route at hand.
#[derive(Debug)]
pub struct RequestMetrics {
    route: Box<str>,
    metrics: Arc<Metrics>,
    series: SeriesCache<RequestLabels, (Counter, Histogram), 4>,
}

impl RequestMetrics {
    /// Makes the metrics of a route by its template, with no series at hand yet. Routes are declared once, and their
    /// metrics stay until the program ends: requests need not count who uses them.
    pub fn of_route(route: &str, metrics: &Arc<Metrics>) -> &'static Self {
        let (route, metrics) = (route.into(), Arc::clone(metrics));
        Box::leak(Box::new(Self { route, metrics, series: SeriesCache::default() }))
    }

    /// Returns the template of the route.
    pub fn route(&self) -> &str {
        &self.route
    }

    /// Counts a request.
    pub fn count(&self, method: &'static str, code: u16, time: Duration) {
        let are_equal = |it: &RequestLabels| it.code == code && it.method == method;
        let of_family = || {
            let labels = RequestLabels { route: self.route.clone().into(), method, code };
            let series = self.metrics.of_requests(&labels);
            (labels, series)
        };
        self.series.count(are_equal, of_family, |(requests, duration)| {
            requests.inc();
            duration.observe(time.as_secs_f64());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Scrape;

    #[test]
    fn each_request_is_counted_with_its_own_labels() {
        let metrics = Arc::new(Metrics::default());
        let of_route = |route| RequestMetrics::of_route(route, &metrics);
        // A route can be declared twice: for its methods, and for all others.
        let counted = ["/a", "/b"].map(|route| [of_route(route), of_route(route)]);
        let labels = ["/a", "/b"].into_iter().flat_map(|route| {
            ["GET", "HEAD"]
                .into_iter()
                .flat_map(move |method| [200, 404].map(|code| (route, method, code)))
        });
        for (times, (route, method, code)) in labels.clone().enumerate() {
            for _ in 0..=times {
                for metrics in counted.iter().flatten().filter(|it| it.route() == route) {
                    metrics.count(method, code, Duration::from_micros(90));
                }
            }
        }
        let text = metrics.render(&Scrape::default());
        for (times, (route, method, code)) in labels.enumerate() {
            let (labels, counted) =
                (format!("route=\"{route}\",method=\"{method}\",code=\"{code}\""), 2 * (times + 1));
            for line in [
                format!("clade_http_requests_total{{{labels}}} {counted}"),
                format!("clade_http_request_duration_seconds_count{{{labels}}} {counted}"),
            ] {
                assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
            }
        }
    }
}
