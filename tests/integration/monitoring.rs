//! The alerts and the dashboard: they speak of what the daemon counts.

use std::collections::BTreeMap;
use std::process::Command;

use clade::internals::telemetry::{Description, Metrics};
use serde_json::Value;

use crate::program::root;
use crate::readme::serve_fleet;

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join("examples/monitoring").join(name)).unwrap()
}

fn catalogue() -> BTreeMap<String, Description> {
    Metrics::catalogue().into_iter().map(|it| (it.name.clone(), it)).collect()
}

/// Returns the metric that a series belongs to.
fn metric<'a>(
    catalogue: &'a BTreeMap<String, Description>,
    series: &str,
) -> Option<&'a Description> {
    let parts = ["_bucket", "_sum", "_count"].iter().find_map(|it| series.strip_suffix(it));
    let histogram = parts.and_then(|it| catalogue.get(it)).filter(|it| it.kind == "histogram");
    histogram.or_else(|| catalogue.get(series).filter(|it| it.kind != "histogram"))
}

fn name_at(text: &str) -> &str {
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Checks every metric of a query, and the labels that it is selected by.
fn check(place: &str, query: &str) -> usize {
    let catalogue = catalogue();
    let mut checked = 0;
    for (start, _) in query.match_indices("clade_") {
        let series = name_at(&query[start..]);
        let found = metric(&catalogue, series);
        let found = found.unwrap_or_else(|| panic!("{place}: the daemon has no {series}"));
        checked += 1;
        let Some(selected) = query[start + series.len()..].strip_prefix('{') else { continue };
        // Values hold braces of their own, in quotes.
        for matcher in selected.split('"').step_by(2) {
            let label = name_at(matcher.trim_start_matches([',', ' ']));
            let ends = matcher.starts_with('}');
            if ends {
                break;
            }
            let known = found.labels.contains(&label) || ["job", "instance"].contains(&label);
            assert!(known, "{place}: {series} has no label `{label}`");
        }
    }
    checked
}

#[test]
fn alerts_use_metrics_of_the_daemon_and_have_a_section() {
    let rules: Value = serde_yaml::from_str(&read("alerts.yaml")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/guides/operations.md")).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() > 10);
    for rule in rules {
        let name = rule["alert"].as_str().unwrap();
        assert!(check(name, rule["expr"].as_str().unwrap()) > 0, "{name}");
        assert!(
            page.contains(&format!("\n### {name}\n")),
            "{name} has no section in operations.md"
        );
        let runbook = rule["annotations"]["runbook_url"].as_str().unwrap();
        assert!(runbook.ends_with(&format!("docs/guides/operations.md#{}", name.to_lowercase())));
    }
    for heading in page.lines().filter_map(|line| line.strip_prefix("### Clade")) {
        let name = format!("Clade{heading}");
        assert!(rules.iter().any(|it| it["alert"] == name), "there is no alert {name}");
    }
}

#[test]
fn the_dashboard_uses_metrics_of_the_daemon() {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let mut checked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            checked += check(title, target["expr"].as_str().unwrap());
        }
    }
    assert!(checked > 15);
    for list in ["/annotations/list", "/templating/list"] {
        for entry in dashboard.pointer(list).unwrap().as_array().unwrap() {
            let query = entry.get("expr").or_else(|| entry.get("query")).unwrap();
            check(list, query.as_str().unwrap());
        }
    }
}

#[test]
fn the_dashboard_measures_the_routes_of_the_alert() {
    let alerts = read("alerts.yaml");
    let (_, rest) = alerts.split_once("alert: CladeSlow").unwrap();
    let (_, rest) = rest.split_once("route=~\"").unwrap();
    let (routes, _) = rest.split_once('"').unwrap();
    // It stands in JSON, with escaped quotes.
    assert_eq!(read("dashboard.json").matches(&format!("route=~\\\"{routes}\\\"")).count(), 2);
}

#[test]
fn prometheus_accepts_the_alerts_and_they_fire_when_they_should() {
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts-test.yaml"]] {
        let done = Command::new("promtool")
            .args(arguments)
            .current_dir(root().join("examples/monitoring"))
            .output();
        let Ok(done) = done else {
            eprintln!("skipped: needs promtool");
            return;
        };
        let said = String::from_utf8_lossy(&done.stdout).into_owned()
            + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
    }
    let tests = read("alerts-test.yaml");
    let rules: Value = serde_yaml::from_str(&read("alerts.yaml")).unwrap();
    for rule in rules["groups"][0]["rules"].as_array().unwrap() {
        let name = rule["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} is not tested");
    }
}

#[test]
fn what_is_scraped_is_in_the_catalogue() {
    let (_repository, daemon) = serve_fleet();
    daemon.get("/enc/web1.example.com");
    daemon.request("POST", "/webhook/github", "{}");
    let catalogue = catalogue();
    let text = daemon.get("/metrics").body;
    let mut seen = 0;
    for line in text.lines().filter(|it| it.starts_with("clade_")) {
        let series = name_at(line);
        let found = metric(&catalogue, series).unwrap_or_else(|| panic!("{series} is unknown"));
        let labels = line[series.len()..].split(['{', '}']).nth(1).unwrap_or_default();
        for label in labels.split("\",").filter(|it| !it.is_empty()) {
            let label = name_at(label);
            assert!(found.labels.contains(&label) || label == "le", "{series}: {label}");
        }
        seen += 1;
    }
    assert!(seen > 30, "{text}");
}
