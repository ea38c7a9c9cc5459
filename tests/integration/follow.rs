//! What a daemon answers from, and what it says of itself.

use serde_json::Value;

use crate::program::Daemon;

/// Returns the reasons of the conditions that hold beside `Ready`, by type.
pub(crate) fn conditions(daemon: &Daemon) -> Vec<(String, String)> {
    let status = daemon.get("/controller/status").json();
    let all = status["conditions"].as_array().unwrap().iter();
    all.filter(|it| it["type"] != "Ready")
        .map(|it| (text(&it["type"]), text(&it["reason"])))
        .collect()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn has(daemon: &Daemon, kind: &str) -> bool {
    conditions(daemon).iter().any(|(it, _)| it == kind)
}

/// Returns the commit that answers.
pub(crate) fn live(daemon: &Daemon) -> Option<String> {
    daemon.get("/v1/groups").header("X-Clade-Commit").map(str::to_owned)
}

pub(crate) fn wait_for(daemon: &Daemon, commit: &str) {
    daemon.wait_until("the commit answers", |it| live(it).as_deref() == Some(commit));
}
