//! Those who ask beside the agents: a person in the console, a pipeline that compares commits, a client that writes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::{Fleet, WRITTEN, WRITTEN_FILE, is_changed};
use super::histogram::Histogram;
use super::site::Site;
use super::tally::Needs;
use crate::load::{ask, ask_within};

/// How long a person or a pipeline waits: pages and diffs yield to agents, and `clade diff` waits as long.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Loads one page of the console after the other.
pub(super) fn load_pages(site: &Site<'_>, fleet: &Fleet) {
    let groups: Value = get(site, "/v1/groups")
        .map_or(Value::Null, |it| serde_json::from_str(&it).unwrap_or_default());
    let group = groups[250]["id"].as_str().unwrap_or_default();
    for turn in 0.. {
        if site.is_over() {
            break;
        }
        let path = page(site, fleet, group, turn);
        if let Some(body) = timed(&site.page_times, || get(site, &path)) {
            match body.contains("</html>") {
                true => site.tally.count("pages"),
                false => site.tally.broken(format!("{path} is not a page: {body}")),
            }
        }
        site.sleep(site.plan.page_every);
    }
}

fn page(site: &Site<'_>, fleet: &Fleet, group: &str, turn: usize) -> String {
    let number = u32::try_from(turn).unwrap_or_default() * 37;
    // One that has checked in before.
    let node = fleet.name(number % site.plan.pace);
    let change = site.change(turn);
    let commit = change.as_ref().map_or("HEAD", |it| it.commit.as_str());
    let parent = change.as_ref().map_or("HEAD", |it| it.parent.as_str());
    match turn % 14 {
        0 => "/".to_owned(),
        1 => "/nodes".to_owned(),
        2 => format!("/nodes?q={number}.dc"),
        3 => "/nodes?sort=-last-seen".to_owned(),
        4 => "/nodes?sort=-state&offset=500".to_owned(),
        5 => format!("/nodes/{node}"),
        6 => format!("/nodes/{node}/history"),
        7 => format!("/nodes/{node}/facts"),
        8 => "/groups".to_owned(),
        9 => format!("/groups/{group}"),
        10 => "/commits".to_owned(),
        11 => format!("/commits/{commit}"),
        12 => "/problems".to_owned(),
        _ if turn % 28 < 14 => format!("/compare/{parent}...{commit}"),
        _ => "/query?rule=name%20~%20%2277%5C%5C.dc%22".to_owned(),
    }
}

/// Compares two commits over all nodes, as `clade diff --server` has the daemon do.
pub(super) fn compare_commits(site: &Site<'_>) {
    for turn in 0.. {
        site.sleep(site.plan.diff_every);
        if site.is_over() {
            break;
        }
        let Some(change) = site.change(turn) else { continue };
        let path = format!("/controller/diff/{}/{}", change.parent, change.commit);
        let Some(body) = timed(&site.diff_times, || get(site, &path)) else { continue };
        let diff: Value = serde_json::from_str(&body).unwrap_or_default();
        let named = [&diff["base"]["commit"], &diff["head"]["commit"]];
        let changes = diff["changes"].as_array();
        let nodes = changes.into_iter().flatten().filter_map(|it| it["nodes"].as_array());
        let names: Vec<&str> = nodes.flatten().filter_map(Value::as_str).collect();
        let is_right = named == [change.parent.as_str(), change.commit.as_str()]
            && !names.is_empty()
            && names.iter().all(|it| is_changed(it, change.digit));
        let start: String = body.chars().take(500).collect();
        match is_right {
            true => site.tally.count("diffs"),
            false => site.tally.broken(format!("{path}: {start}")),
        }
    }
}

/// Writes one number after the other; one that was answered is on the branch.
pub(super) fn write_groups(site: &Site<'_>) {
    let path = format!("/v1/groups/{WRITTEN}");
    for number in 1_u64.. {
        site.sleep(site.plan.write_every);
        if site.is_over() {
            break;
        }
        let body = json!({"classes": {"written": {"number": number}}}).to_string();
        match ask(&site.address, "POST", &path, &body) {
            Ok((head, _)) if head.starts_with("HTTP/1.1 200") => match written(site) {
                text if text.contains(&format!("number: {number}")) => site.tally.count("writes"),
                text => site.tally.broken(format!("the write {number} is lost: {text}")),
            },
            Ok((head, body)) => site.tally.failed(Needs::Remote, &format!("write: {head} {body}")),
            Err(why) => site.tally.failed(Needs::Remote, &format!("write: {why}")),
        }
    }
}

/// Returns what the branch has of the group that is written.
fn written(site: &Site<'_>) -> String {
    let git = git2::Repository::open(&site.repository).unwrap();
    let tree = git.revparse_single("refs/heads/main").unwrap().peel_to_tree().unwrap();
    let entry = tree.get_path(std::path::Path::new(WRITTEN_FILE)).unwrap();
    String::from_utf8_lossy(git.find_blob(entry.id()).unwrap().content()).into_owned()
}

/// Notes how long what succeeds took.
fn timed(times: &Mutex<Histogram>, get: impl FnOnce() -> Option<String>) -> Option<String> {
    let began = Instant::now();
    let body = get()?;
    times.lock().unwrap().note(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
    Some(body)
}

fn get(site: &Site<'_>, path: &str) -> Option<String> {
    let failed = |what: &str| site.tally.failed(Needs::Daemon, &format!("{path}: {what}"));
    match ask_within(TIMEOUT, &site.address, "GET", path, "") {
        Ok((head, body)) if head.starts_with("HTTP/1.1 200") => return Some(body),
        Ok((head, _)) => failed(head.lines().next().unwrap_or_default()),
        Err(why) => failed(&why),
    }
    None
}
