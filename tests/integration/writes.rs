//! Writes through the classifier API: each is a commit.

mod classes;
mod clients;
mod crashes;
mod damage;
mod durability;
mod edits;
mod environments;
mod faults;
mod hidden;
mod lagging;
mod other_refs;
mod permissions;
mod proposals;
mod pull_requests;
mod real;
mod recorded;
mod remotes;
mod repeated;
mod retries;
mod rights_first;
mod unchanged;
mod workflow;
mod working_trees;

use std::path::Path;

use serde_json::Value;

use crate::git::server::Server;
use crate::hub::Hub;
use crate::program::{Daemon, Response};

pub(crate) const ROOT: &str = "00000000-0000-4000-8000-000000000000";

/// Starts a daemon that follows and writes to the hub behind a server.
fn serve_over_http(server: &Server, data: &Path) -> Daemon {
    let url = format!("http://127.0.0.1:{}/hub.git", server.port);
    let data = data.to_str().unwrap();
    let remote = ["--allow-insecure-remotes", "--git-proxy", "none", "--writes", "commit"];
    Daemon::start(&[["--repo", &url, "--data-dir", data].as_slice(), &remote].concat())
}

fn post(daemon: &Daemon, path: &str, body: &Value) -> Response {
    daemon.request("POST", path, &body.to_string())
}

/// Makes a group and returns its id.
fn create(daemon: &Daemon, body: &Value) -> String {
    let made = post(daemon, "/v1/groups", body);
    assert_eq!(made.status, 303, "{}", made.body);
    let location = made.header("Location").unwrap();
    location.strip_prefix("/v1/groups/").unwrap().to_owned()
}

fn groups(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/v1/groups").json().as_array().unwrap().clone()
}

/// Returns a group or several without what counts their edits.
fn without_edits(groups: &Value) -> Value {
    let mut groups = groups.clone();
    let all = match &mut groups {
        Value::Array(groups) => groups.iter_mut().collect(),
        group => vec![group],
    };
    for fields in all.into_iter().filter_map(Value::as_object_mut) {
        fields.retain(|key, _| !matches!(key.as_str(), "serial_number" | "last_edited"));
    }
    groups
}

fn has_git() -> bool {
    let found = std::process::Command::new("git").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: needs git");
    }
    found
}
