//! A status for people.

use jiff::Timestamp;

use super::fleet::{FleetCounts, NamedNodes};
use crate::age::age;
use crate::cli::page::{BOLD, Cell, GREEN, Page, RED, YELLOW};
use crate::diagnostic::visible_up_to;
use crate::http::types::{
    ActiveCommit, Commit, CommitState, Condition, ConditionStatus, FailedCommit, PinnedBy, Remote,
    Replica, Repository, Status, StoreInfo,
};
use crate::model::CommitId;
use crate::wording::counted;

/// The longest text of a commit or a message that is shown.
const LONGEST: usize = 400;

/// The longest subject of a commit in a list.
const SUBJECT: usize = 72;

/// How much of a commit id is shown where the whole is not needed.
const SHORT: usize = 12;

/// What there is to show.
pub(super) struct Screen<'s> {
    pub(super) status: &'s Status,
    /// The nodes, or why they could not be counted.
    pub(super) fleet: &'s Result<FleetCounts, String>,
    /// The newest commits.
    pub(super) commits: &'s [Commit],
}

/// Returns whether a condition needs attention. Negative conditions are present only while they are true; a
/// type that is not known here counts as one.
pub(super) fn needs_attention(condition: &Condition) -> bool {
    match condition.kind.as_str() {
        "Ready" | "SourceVerified" => condition.status != ConditionStatus::True,
        "Reconciling" => false,
        _ => condition.status == ConditionStatus::True,
    }
}

impl Screen<'_> {
    pub(super) fn write(&self, now: Timestamp, page: Page) -> String {
        let mut fields = self.commit_fields(now);
        fields.extend(self.fleet_fields());
        let status = self.status;
        let daemon = format!("{}, started {}", status.version, age(status.started_at, now));
        fields.push(("daemon", shown(&daemon)));
        fields.extend(status.store.as_ref().map(|it| ("store", shown(&describe_store(it)))));
        let mut text = page.fields(&fields);
        if !self.commits.is_empty() {
            text.push('\n');
            let rows: Vec<_> = self.commits.iter().map(|it| commit_row(it, now)).collect();
            text.push_str(&page.table(["COMMIT", "STATE", "SINCE", "AUTHOR", "SUBJECT"], &rows));
        }
        if status.replicas.len() > 1 {
            text.push('\n');
            let rows: Vec<_> = status.replicas.iter().map(|it| self.replica_row(it, now)).collect();
            text.push_str(&page.table(["REPLICA", "COMMIT", "VERSION", "STARTED", "SEEN"], &rows));
        }
        text.push('\n');
        let rows: Vec<_> = status.conditions.iter().map(|it| condition_row(it, now)).collect();
        text.push_str(&page.table(["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"], &rows));
        text
    }

    fn replica_row(&self, replica: &Replica, now: Timestamp) -> [Cell; 5] {
        let active = self.status.active.as_ref().map(|it| it.commit);
        let commit = match replica.commit {
            None => Cell::painted("none", RED),
            Some(commit) if Some(commit) == active => short(commit).into(),
            Some(commit) => Cell::painted(short(commit), YELLOW),
        };
        let seen = age(replica.seen_at, now);
        let seen = if replica.missing {
            Cell::painted(format!("{seen}, missing"), YELLOW)
        } else {
            seen.into()
        };
        [
            shown(&replica.name),
            commit,
            shown(&replica.version),
            age(replica.started_at, now).into(),
            seen,
        ]
    }

    fn commit_fields(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let status = self.status;
        let mut fields = vec![("repository", shown(&describe_repository(&status.repository)))];
        fields.push((
            "active",
            match &status.active {
                Some(active) => {
                    Cell::painted(visible_up_to(&describe_active(active, now), LONGEST), BOLD)
                }
                None => Cell::painted("none: no commit answers", RED),
            },
        ));
        fields.extend(status.observed.as_ref().map(|it| {
            let is_active = status.active.as_ref().is_some_and(|active| active.commit == it.commit);
            let commit = if is_active { "the active commit".to_owned() } else { short(it.commit) };
            ("newest", shown(&format!("{commit}, fetched {}", age(it.fetched_at, now))))
        }));
        fields.extend(status.pinned.map(|commit| {
            ("pinned", attention(&describe_pin(commit, status.pinned_by.as_ref(), now)))
        }));
        fields.extend(status.last_failed.as_ref().map(|it| {
            let rejected = |it: &&Condition| it.kind == "CandidateRejected";
            let since = status.conditions.iter().find(rejected).map(|it| it.last_transition);
            ("rejected", attention(&describe_failed(it, since, now)))
        }));
        fields.extend(describe_remote(&status.remote, now).map(|it| ("remote", attention(&it))));
        fields
    }

    fn fleet_fields(&self) -> Vec<(&'static str, Cell)> {
        let fleet = match self.fleet {
            Ok(fleet) => fleet,
            Err(error) => {
                return vec![("nodes", attention(&format!("cannot be counted: {error}")))];
            }
        };
        let nodes = match (fleet.total, fleet.current) {
            (0, _) => "none have checked in".to_owned(),
            (total, current) => format!("{total}, {current} answered by the active commit"),
        };
        let mut fields = vec![("nodes", Cell::from(nodes))];
        for group in &fleet.groups {
            fields.push((group.label, attention(&describe_nodes(group))));
        }
        fields
    }
}

fn describe_store(store: &StoreInfo) -> String {
    match (store.nodes, store.bytes) {
        (Some(nodes), Some(bytes)) => format!("{}, {nodes} nodes, {bytes} bytes", store.kind),
        _ => store.kind.clone(),
    }
}

fn describe_nodes(group: &NamedNodes) -> String {
    let NamedNodes { condition, total, names, .. } = group;
    let names: Vec<String> = names.iter().map(|it| visible_up_to(it, SUBJECT)).collect();
    let more = if *total > names.len() as u64 { ", …" } else { "" };
    let names = names.join(", ");
    format!("{total} ({names}{more}): `clade nodes {condition}`")
}

fn commit_row(commit: &Commit, now: Timestamp) -> [Cell; 5] {
    let (state, since) = match commit.state {
        CommitState::Live { since } => (Cell::painted("live", GREEN), Some(since)),
        CommitState::Replaced { until, .. } => (Cell::from("replaced"), Some(until)),
        CommitState::Rejected { since, .. } => (Cell::painted("rejected", RED), Some(since)),
        CommitState::Superseded { since, .. } => (Cell::from("superseded"), Some(since)),
        CommitState::Pending { since } => (Cell::painted("pending", YELLOW), since),
        CommitState::Held { since } => (Cell::painted("held", YELLOW), since),
        CommitState::Older => (Cell::from("older"), None),
        CommitState::Elsewhere => (Cell::from("elsewhere"), None),
        CommitState::Unknown => (Cell::from("unknown"), None),
    };
    [
        short(commit.commit).into(),
        state,
        since.map_or_else(|| "-".to_owned(), |it| age(it, now)).into(),
        visible_up_to(&commit.author, SUBJECT).into(),
        visible_up_to(&commit.subject, SUBJECT).into(),
    ]
}

fn condition_row(condition: &Condition, now: Timestamp) -> [Cell; 5] {
    let kind = visible_up_to(&condition.kind, LONGEST);
    let code = if needs_attention(condition) { RED } else { GREEN };
    [
        Cell::painted(kind, code),
        shown(&format!("{:?}", condition.status)),
        shown(&condition.reason),
        age(condition.last_transition, now).into(),
        shown(&condition.message),
    ]
}

fn shown(text: &str) -> Cell {
    visible_up_to(text, LONGEST).into()
}

fn attention(text: &str) -> Cell {
    Cell::painted(visible_up_to(text, LONGEST), YELLOW)
}

fn describe_pin(commit: CommitId, by: Option<&PinnedBy>, now: Timestamp) -> String {
    let by = by.map(|PinnedBy { actor, reason, since }| {
        let actor = actor.as_ref().map(|it| format!(" by {it}")).unwrap_or_default();
        let reason = reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        format!(" {}{actor}{reason}", age(*since, now))
    });
    let by = by.unwrap_or_default();
    format!("{}{by}; `clade resume` follows the branch again", short(commit))
}

/// Says which branch of which repository a daemon follows, and from which directory.
pub(in crate::cli) fn describe_repository(repository: &Repository) -> String {
    let branch = repository
        .branch
        .as_deref()
        .map_or_else(|| "detached HEAD".to_owned(), |branch| format!("branch {branch}"));
    match repository.path.as_str() {
        "." | "" => format!("{}, {branch}", repository.url),
        path => format!("{}, {branch}, path {path}", repository.url),
    }
}

fn describe_active(active: &ActiveCommit, now: Timestamp) -> String {
    format!(
        "{} {} ({}), {}, activated {}",
        short(active.commit),
        active.subject,
        active.author,
        counted(active.groups, "group"),
        age(active.activated_at, now)
    )
}

/// A remote that can be fetched is not worth a line.
fn describe_remote(remote: &Remote, now: Timestamp) -> Option<String> {
    let failures = Some(remote.consecutive_failures).filter(|it| *it > 0)?;
    let fetches = counted(failures, "failed fetch");
    let contact = remote.last_contact.map_or_else(
        || "never fetched".to_owned(),
        |time| format!("last fetched {}", age(time, now)),
    );
    let error = remote.error.as_deref().unwrap_or("no reason");
    Some(format!("{fetches}, {contact}: {error}"))
}

fn describe_failed(failed: &FailedCommit, since: Option<Timestamp>, now: Timestamp) -> String {
    let commit = short(failed.commit);
    let since = since.map(|it| format!(" {}", age(it, now))).unwrap_or_default();
    let Some(first) = failed.diagnostics.first() else {
        return format!("{commit}{since}, at {}", failed.stage.as_str());
    };
    let more = match failed.diagnostics.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more: `clade why {commit}`)"),
    };
    let place = first.file.as_ref().map(|file| {
        let (line, column) = (first.line.unwrap_or_default(), first.column.unwrap_or_default());
        format!("{file}:{line}:{column}: ")
    });
    format!(
        "{commit}{since}, at {}: {}{}{more}",
        failed.stage.as_str(),
        place.unwrap_or_default(),
        first.message
    )
}

fn short(commit: CommitId) -> String {
    commit.to_string().chars().take(SHORT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::status::fleet::NamedNodes;
    use crate::diagnostic::Colour;

    const COMMIT: &str = "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f";

    fn status() -> Status {
        serde_json::from_value(json!({
            "version": "0.1.0",
            "started_at": "2026-11-22T09:00:00Z",
            "repository": {"url": "https://git.example.com/groups.git", "branch": "main", "path": "estate"},
            "active": {
                "commit": COMMIT, "author": "Ada", "time": "2026-11-22T11:00:00Z",
                "subject": "Add \u{1b}[31mred", "activated_at": "2026-11-22T11:57:00Z",
                "groups": 812, "trigger": "webhook",
            },
            "observed": {
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "fetched_at": "2026-11-22T11:59:57Z",
            },
            "remote": {
                "last_attempt": "2026-11-22T11:59:57Z", "last_contact": "2026-11-22T11:55:00Z",
                "consecutive_failures": 3, "error": "connection refused", "expected": [],
            },
            "last_failed": {
                "commit": "0123456789abcdef0123456789abcdef01234567", "stage": "check",
                "diagnostics": [
                    {"file": "groups/a.yaml", "line": 2, "column": 9, "message": "the parent `B` does not exist"},
                    {"message": "more"},
                ],
            },
            "pinned": COMMIT,
            "pinned_by": {"actor": "ada", "reason": "an audit", "since": "2026-11-22T11:00:00Z"},
            "a_key_of_later": 1,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Serving", "message": "a commit answers",
                 "last_transition": "2026-11-22T11:57:00Z"},
                {"type": "CandidateRejected", "status": "True", "reason": "ValidationFailed",
                 "message": "the newest commit is not valid", "last_transition": "2026-11-22T11:59:57Z"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn replicas_are_a_table_if_there_are_several() {
        let mut status = status();
        let replica = |name: &str, commit: Option<&str>, seconds: u32, missing: bool| {
            let seen_at = format!("2026-11-22T11:{:02}:{:02}Z", seconds / 60, seconds % 60);
            serde_json::from_value::<Replica>(json!({
                "name": name, "commit": commit, "version": "0.1.0",
                "started_at": "2026-11-22T09:00:00Z", "seen_at": seen_at, "missing": missing,
            }))
            .unwrap()
        };
        let fleet = Ok(FleetCounts { total: 0, current: 0, groups: Vec::new() });
        let now = "2026-11-22T12:00:00Z".parse().unwrap();
        let wide = Page { width: None, colour: Colour::Plain };
        let mut replicas = |replicas: Vec<Replica>| {
            status.replicas = replicas;
            let written = Screen { status: &status, fleet: &fleet, commits: &[] }.write(now, wide);
            let table = written.split("\n\n").find(|it| it.starts_with("REPLICA"));
            table.map(str::to_owned)
        };
        assert_eq!(replicas(vec![replica("here", Some(COMMIT), 3_599, false)]), None);
        let another = "0123456789abcdef0123456789abcdef01234567";
        let table = replicas(vec![
            replica("here", Some(COMMIT), 3_599, false),
            replica("there\u{1b}[31m", Some(another), 3_590, false),
            replica("gone", None, 3_500, true),
        ]);
        insta::assert_snapshot!(table.unwrap(), @r"
        REPLICA     COMMIT        VERSION  STARTED  SEEN
        here        d7e3cef5f336  0.1.0    3 h ago  1 s ago
        there�[31m  0123456789ab  0.1.0    3 h ago  10 s ago
        gone        none          0.1.0    3 h ago  100 s ago, missing
        ");
    }

    #[test]
    fn a_status_is_a_table_with_ages() {
        let status = status();
        let commits: Vec<Commit> = serde_json::from_value(json!([{
            "commit": COMMIT, "author": "Ada", "time": "2026-11-22T11:00:00Z", "subject": "Add",
            "valid": true, "groups": 812, "diagnostics": [], "message": "live",
            "state": "live", "since": "2026-11-22T11:57:00Z",
        }]))
        .unwrap();
        let conflicts = NamedNodes {
            label: "conflict",
            condition: "--state conflict".to_owned(),
            total: 4,
            names: ["a", "b", "c"].map(str::to_owned).to_vec(),
        };
        let fleet = Ok(FleetCounts { total: 200, current: 150, groups: vec![conflicts] });
        let screen = Screen { status: &status, fleet: &fleet, commits: &commits };
        let now = "2026-11-22T12:00:00Z".parse().unwrap();
        let wide = Page { width: None, colour: Colour::Plain };
        insta::assert_snapshot!(screen.write(now, wide), @r"
        repository  https://git.example.com/groups.git, branch main, path estate
        active      d7e3cef5f336 Add �[31mred (Ada), 812 groups, activated 3 min ago
        newest      0123456789ab, fetched 3 s ago
        pinned      d7e3cef5f336 60 min ago by ada: an audit; `clade resume` follows the branch again
        rejected    0123456789ab 3 s ago, at check: groups/a.yaml:2:9: the parent `B` does not exist (and 1 more: `clade why 0123456789ab`)
        remote      3 failed fetches, last fetched 5 min ago: connection refused
        nodes       200, 150 answered by the active commit
        conflict    4 (a, b, c, …): `clade nodes --state conflict`
        daemon      0.1.0, started 3 h ago

        COMMIT        STATE  SINCE      AUTHOR  SUBJECT
        d7e3cef5f336  live   3 min ago  Ada     Add

        CONDITION          STATUS  REASON            SINCE      MESSAGE
        Ready              True    Serving           3 min ago  a commit answers
        CandidateRejected  True    ValidationFailed  3 s ago    the newest commit is not valid
        ");
        let attention: Vec<bool> = status.conditions.iter().map(needs_attention).collect();
        assert_eq!(attention, [false, true]);
    }
}
