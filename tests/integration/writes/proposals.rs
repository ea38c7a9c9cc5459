//! Writes for review.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{Hub, ROOT, groups, post};
use crate::git::server::Server;
use crate::program::Daemon;
use crate::table::each_row;

#[test]
fn a_write_becomes_a_branch_for_review() {
    let hub = Hub::new(&[("groups/a.yaml", "name: A # one\n")]);
    let before = hub.head_id();
    let data = tempfile::tempdir().unwrap();
    let (path, data) = (hub.text_path(), data.path().to_str().unwrap().to_owned());
    let daemon = Daemon::start(&["--repo", &path, "--data-dir", &data, "--writes", "propose"]);
    let a = groups(&daemon).iter().find(|it| it["name"] == "A").unwrap()["id"].clone();
    let edit = format!("/v1/groups/{}", a.as_str().unwrap());
    let body = json!({"description": "first"});
    let proposed = post(&daemon, &edit, &body);
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    let branch = proposed.json()["branch"].as_str().unwrap().to_owned();
    assert!(branch.starts_with("clade/") && branch.len() == 18, "{branch}");
    assert_eq!(proposed.json()["url"], Value::Null);
    let listed = daemon.get("/controller/commits").json();
    let listed: Vec<&Value> = listed.as_array().unwrap().iter().map(|it| &it["commit"]).collect();
    assert!(listed.contains(&&proposed.json()["commit"]), "{listed:?}");
    let text = hub.show_at(&format!("refs/heads/{branch}"), "groups/a.yaml").unwrap();
    assert_eq!(text, "name: A # one\ndescription: first\n");
    // The branch that is followed stays, and so do the answers.
    assert_eq!(hub.head_id(), before);
    assert_eq!(daemon.get(&edit).json().get("description"), None);
    // The same proposed again is the same branch.
    assert_eq!(post(&daemon, &edit, &body).json()["branch"], branch.as_str());
    // That of a new group too, though its id is made up each time.
    let new = json!({"name": "B", "parent": ROOT, "classes": {}});
    let first = post(&daemon, "/v1/groups", &new).json();
    assert!(first["branch"].is_string(), "{first}");
    for _ in 0..16 {
        let again = post(&daemon, "/v1/groups", &new).json();
        assert_eq!((&first["branch"], &first["commit"]), (&again["branch"], &again["commit"]));
    }
    // An invalid write is refused at once, and a write without a change needs no review.
    assert_eq!(post(&daemon, "/v1/groups", &json!({"name": "B"})).status, 400);
    assert_eq!(post(&daemon, &edit, &json!({"name": "A"})).status, 200);
}

#[test]
fn a_proposal_opens_a_pull_request_on_the_forge() {
    let asked: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let forge = Server::http({
        let asked = Arc::clone(&asked);
        move |request| {
            let token = request.headers.get("authorization").cloned().unwrap_or_default();
            asked.lock().unwrap().push((request.target.clone(), token));
            let body = r#"{"html_url": "https://forge.example.com/o/r/pulls/7"}"#;
            format!(
                "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
            .into()
        }
    });
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let token = hub.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let data = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &hub.text_path(),
        "--data-dir",
        data.path().to_str().unwrap(),
        "--writes",
        "propose",
        "--forge",
        "gitea",
        "--forge-url",
        &format!("http://127.0.0.1:{}", forge.port),
        "--forge-repository",
        "o/r",
        "--forge-token-file",
        token.to_str().unwrap(),
    ]);
    let proposed =
        post(&daemon, "/v1/groups", &json!({"name": "B", "parent": ROOT, "classes": {}}));
    assert_eq!(proposed.status, 202, "{}", proposed.body);
    assert_eq!(proposed.json()["url"], "https://forge.example.com/o/r/pulls/7");
    let asked = asked.lock().unwrap();
    let pulls = asked.iter().filter(|(path, _)| path == "/repos/o/r/pulls");
    assert_eq!(pulls.map(|(_, token)| token.as_str()).collect::<Vec<_>>(), ["token secret"]);
}

/// A reviewer who merges proposals and keeps their branches.
struct Reviewed {
    hub: Hub,
    daemon: Daemon,
    _data: tempfile::TempDir,
}

impl Reviewed {
    fn new() -> Self {
        let hub = Hub::new(&[
            ("groups/a.yaml", &format!("name: A\nid: {A}\nvariables: {{v: none}}\n")),
            ("groups/b.yaml", "name: B\n"),
        ]);
        let data = tempfile::tempdir().unwrap();
        let (path, directory) = (hub.text_path(), data.path().to_str().unwrap().to_owned());
        let daemon =
            Daemon::start(&["--repo", &path, "--data-dir", &directory, "--writes", "propose"]);
        Self { hub, daemon, _data: data }
    }

    /// Proposes a change, which is to be made to the branch as it is now; returns its branch.
    fn propose(&self, method: &str, path: &str, body: &Value) -> String {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let proposed = self.daemon.request(method, path, &body);
        assert_eq!(proposed.status, 202, "{method} {path}: {}", proposed.body);
        let proposed = proposed.json();
        let branch = proposed["branch"].as_str().unwrap().to_owned();
        let head = self.hub.inner.find_reference(&format!("refs/heads/{branch}")).unwrap();
        let head = head.peel_to_commit().unwrap();
        assert_eq!(proposed["commit"], head.id().to_string());
        let main = self.hub.head().unwrap();
        let base = self.hub.inner.merge_base(head.id(), main.id()).unwrap();
        assert_ne!(base, head.id(), "{branch} brings nothing");
        let mut merged = self.hub.inner.merge_commits(&main, &head, None).unwrap();
        assert!(!merged.has_conflicts(), "{branch} cannot be merged");
        let tree = merged.write_tree_to(&self.hub.inner).unwrap();
        assert_ne!(tree, main.tree_id(), "{branch} changes nothing");
        branch
    }

    fn wait(&self) {
        self.daemon.request("POST", "/controller/reconcile", "");
        self.daemon.wait_until("the merge is live", |it| {
            it.get("/controller/status").json()["active"]["commit"] == self.hub.head_id()
        });
    }

    /// Merges a branch: the main branch goes to it, or gets a commit of its own with what it changes.
    fn merge(&self, branch: &str, is_squashed: bool) {
        let repository = &self.hub.inner;
        let head = repository.find_reference(&format!("refs/heads/{branch}")).unwrap();
        let (head, main) = (head.peel_to_commit().unwrap(), self.hub.head().unwrap());
        let mut merged = repository.merge_commits(&main, &head, None).unwrap();
        let tree = repository.find_tree(merged.write_tree_to(repository).unwrap()).unwrap();
        let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
        let parents = if is_squashed { vec![&main] } else { vec![&main, &head] };
        repository.commit(Some("refs/heads/main"), &ada, &ada, "Merge", &tree, &parents).unwrap();
        self.wait();
    }
}

const A: &str = "aaaaaaaa-0000-4000-8000-00000000000a";

#[test]
fn a_change_that_was_merged_and_undone_is_proposed_again() {
    for is_squashed in [false, true] {
        let reviewed = Reviewed::new();
        let path = format!("/v1/groups/{A}");
        let (pin, unpin) = (format!("{path}/pin"), format!("{path}/unpin"));
        let nodes = json!({"nodes": ["web1"]});
        let new = json!({"name": "N", "parent": ROOT, "classes": {}});
        for _ in 0..3 {
            let branch = reviewed.propose("POST", &pin, &nodes);
            // It waits for review, whatever is changed elsewhere.
            assert_eq!(reviewed.propose("POST", &pin, &nodes), branch);
            let text = format!("name: B\ndescription: {:?}\n", reviewed.hub.head_id());
            reviewed.hub.commit("Elsewhere", &[("groups/b.yaml", &text)]);
            reviewed.wait();
            assert_eq!(reviewed.propose("POST", &pin, &nodes), branch);
            reviewed.merge(&branch, is_squashed);
            reviewed.merge(&reviewed.propose("POST", &unpin, &nodes), is_squashed);

            reviewed.merge(&reviewed.propose("POST", "/v1/groups", &new), is_squashed);
            let groups = groups(&reviewed.daemon);
            let made = groups.iter().find(|it| it["name"] == "N").unwrap()["id"].clone();
            let made = format!("/v1/groups/{}", made.as_str().unwrap());
            reviewed.merge(&reviewed.propose("DELETE", &made, &Value::Null), is_squashed);

            let fresh = "/v1/environments/fresh";
            reviewed.merge(&reviewed.propose("PUT", fresh, &Value::Null), is_squashed);
            reviewed.merge(&reviewed.propose("DELETE", fresh, &Value::Null), is_squashed);
        }
    }
}

#[test]
fn a_change_is_proposed_against_what_the_group_says_now() {
    let reviewed = Reviewed::new();
    let path = format!("/v1/groups/{A}");
    let body = json!({"variables": {"v": "one"}});
    let branch = reviewed.propose("POST", &path, &body);
    let text = format!("name: A\nid: {A}\nvariables: {{v: two}}\n");
    reviewed.hub.commit("By hand", &[("groups/a.yaml", &text)]);
    reviewed.wait();
    // The first branch and the branch that is followed change the same line.
    let next = reviewed.propose("POST", &path, &body);
    assert_ne!(next, branch);
    assert_eq!(reviewed.propose("POST", &path, &body), next);
    // A branch that was deleted is made again.
    let mut gone = reviewed.hub.inner.find_reference(&format!("refs/heads/{next}")).unwrap();
    gone.delete().unwrap();
    reviewed.propose("POST", &path, &body);
}

/// Returns how often the branch was fetched for writes.
fn fetches_of_writes(daemon: &Daemon) -> u32 {
    let metrics = daemon.get("/metrics").body;
    let of_writes = "clade_source_fetches_total{trigger=\"write\"";
    let lines = metrics.lines().filter(|it| it.starts_with(of_writes));
    lines.map(|it| it.rsplit_once(' ').unwrap().1.parse::<u32>().unwrap()).sum()
}

fn proposals(hub: &Hub) -> Vec<String> {
    let all = hub.inner.references_glob("refs/heads/clade/*").unwrap();
    all.map(|it| it.unwrap().name().unwrap().to_owned()).collect()
}

/// Starts a daemon that fetches nothing on its own.
fn serve_unpolled(hub: &Hub) -> Daemon {
    let (path, data) = (hub.text_path(), hub.directory.path().join("data"));
    let follow = ["--repo", &path, "--data-dir", data.to_str().unwrap(), "--interval", "1h"];
    Daemon::start(&[&follow[..], &["--writes", "propose"]].concat())
}

fn with_variable(text: &str) -> String {
    format!("name: A\nid: {A}\nvariables: {{v: {text}}}\n")
}

/// What others do to a hub.
type ByOthers = fn(&Hub);

/// Each row: what others did since the branch was fetched, and what an edit is answered then.
#[test]
fn a_proposal_is_made_on_the_newest_commit_of_the_remote() {
    let path = format!("/v1/groups/{A}");
    let edit = |number: &Value| json!({"variables": {"v": "one"}, "serial_number": number});
    let rows: [(&str, ByOthers, u16, &str); 3] = [
        (
            "edited",
            |hub| {
                hub.commit("By hand", &[("groups/a.yaml", &with_variable("two"))]);
            },
            409,
            "write-conflict",
        ),
        (
            "deleted",
            |hub| hub.inner.find_reference("refs/heads/main").unwrap().delete().unwrap(),
            503,
            "remote-unreachable",
        ),
        (
            "away",
            |hub| std::fs::rename(hub.path().join("objects"), hub.path().join("away")).unwrap(),
            503,
            "remote-unreachable",
        ),
    ];
    each_row(rows, |(_, by_others, status, kind)| {
        let hub = Hub::new(&[("groups/a.yaml", &with_variable("none"))]);
        let daemon = serve_unpolled(&hub);
        let number = || daemon.get(&path).json()["serial_number"].clone();
        daemon.wait_until("its edits are counted", |_| number().is_number());
        let body = edit(&number());
        by_others(&hub);
        let refused = post(&daemon, &path, &body);
        assert_eq!((refused.status, &refused.json()["kind"]), (status, &json!(kind)));
        let away = hub.path().join("away");
        if away.exists() {
            std::fs::rename(away, hub.path().join("objects")).unwrap();
        }
        assert_eq!(proposals(&hub), Vec::<String>::new());
    });
}

#[test]
fn a_proposal_is_made_where_the_fetched_commit_is_invalid_and_the_remote_has_another() {
    let hub = Hub::new(&[("groups/a.yaml", &with_variable("none"))]);
    let daemon = serve_unpolled(&hub);
    hub.commit("Break", &[("groups/bad.yaml", "name: [")]);
    daemon.request("POST", "/controller/reconcile", "{}");
    daemon
        .wait_until("it is rejected", |it| it.get("/controller/status").body.contains("bad.yaml"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let edit = || post(&daemon, &format!("/v1/groups/{A}"), &json!({"variables": {"v": "one"}}));
    let refused = edit();
    assert_eq!((refused.status, &refused.json()["kind"]), (422, &json!("invalid-commit")));
    hub.commit("Mend", &[("groups/bad.yaml", "name: Good\n")]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(edit().status, 202);
}

#[test]
fn a_change_that_was_merged_a_moment_ago_is_not_proposed_again() {
    let hub = Hub::new(&[("groups/a.yaml", &with_variable("none"))]);
    let daemon = serve_unpolled(&hub);
    let edit = || post(&daemon, &format!("/v1/groups/{A}"), &json!({"variables": {"v": "one"}}));
    assert_eq!(edit().status, 202);
    let branch = proposals(&hub).pop().unwrap();
    let text = hub.show_at(&branch, "groups/a.yaml").unwrap();
    let squashed = hub.commit("Squashed", &[("groups/a.yaml", &text)]);
    hub.inner.find_reference(&branch).unwrap().delete().unwrap();
    let again = edit();
    assert_eq!((again.status, again.header("X-Clade-Commit")), (200, Some(&*squashed)));
    assert_eq!(proposals(&hub), Vec::<String>::new());
}

#[test]
fn the_remote_is_asked_once_for_proposals_that_wait_together() {
    let hub = Hub::new(&[("groups/a.yaml", &with_variable("none"))]);
    let daemon = serve_unpolled(&hub);
    let before = fetches_of_writes(&daemon);
    let edit = |text: &str| {
        let proposed = post(&daemon, &format!("/v1/groups/{A}"), &json!({"description": text}));
        assert_eq!(proposed.status, 202, "{}", proposed.body);
    };
    edit("alone");
    assert_eq!(fetches_of_writes(&daemon), before + 1);
    // The others come while the first one is pushed.
    hub.hook("update", "while [ -e wait ]; do sleep 0.05; done");
    let wait = hub.path().join("wait");
    std::fs::write(&wait, "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| edit("first"));
        daemon.wait_until("the first one is pushed", |it| fetches_of_writes(it) == before + 2);
        for number in 0..5 {
            scope.spawn(move || edit(&format!("other {number}")));
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
        std::fs::remove_file(&wait).unwrap();
    });
    assert_eq!(fetches_of_writes(&daemon), before + 3);
    assert_eq!(proposals(&hub).len(), 7);
}

/// Each row: what a reviewer made of the file on the branch of a proposal.
#[test]
fn a_proposal_that_a_reviewer_changed_is_made_again_beside_it() {
    for mirrored in [true, false] {
        each_row(["none", "two"], |reviewed| {
            let hub = Hub::new(&[("groups/a.yaml", &with_variable("none"))]);
            let path = hub.text_path();
            let daemon = match mirrored {
                true => serve_unpolled(&hub),
                false => Daemon::start(&["--repo", &path, "--writes", "propose"]),
            };
            let edit = || {
                let body = json!({"variables": {"v": "one"}});
                let proposed = post(&daemon, &format!("/v1/groups/{A}"), &body);
                assert_eq!(proposed.status, 202, "{}", proposed.body);
                let branch = proposed.json()["branch"].as_str().unwrap().to_owned();
                (hub.show_at(&format!("refs/heads/{branch}"), "groups/a.yaml").unwrap(), branch)
            };
            let (text, first) = edit();
            assert_eq!(edit(), (text.clone(), first.clone()));
            let head = hub.inner.find_reference(&format!("refs/heads/{first}")).unwrap();
            let head = head.peel_to_commit().unwrap();
            // The commit is made on the main branch, which goes back to where it was.
            let main = hub.head().unwrap().id();
            hub.inner.reference("refs/heads/main", head.id(), true, "").unwrap();
            let changed = hub.commit("Review", &[("groups/a.yaml", &with_variable(reviewed))]);
            hub.inner.reference("refs/heads/main", main, true, "").unwrap();
            let changed = changed.parse().unwrap();
            hub.inner.reference(&format!("refs/heads/{first}"), changed, true, "").unwrap();
            let (again, next) = edit();
            assert_eq!((again, next.clone()), (text, format!("{first}-2")));
            assert_eq!(edit().1, next);
        });
    }
}

#[test]
fn a_tag_with_the_name_of_a_proposal_is_not_taken_for_it() {
    for mirrored in [false, true] {
        let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
        let (path, data) = (hub.text_path(), tempfile::tempdir().unwrap());
        let mut arguments = vec!["--repo", &path, "--writes", "propose"];
        if mirrored {
            arguments.extend(["--data-dir", data.path().to_str().unwrap()]);
        }
        let daemon = Daemon::start(&arguments);
        let body = json!({"name": "B", "parent": ROOT, "classes": {}});
        daemon.wait_until("it is proposed", |it| post(it, "/v1/groups", &body).status == 202);
        let first = post(&daemon, "/v1/groups", &body).json();
        let (head, branch) = (hub.head().unwrap().id(), first["branch"].as_str().unwrap());
        hub.inner.reference(&format!("refs/tags/{branch}"), head, false, "").unwrap();
        assert_eq!(daemon.request("POST", "/controller/reconcile", "").status, 202);
        let again = post(&daemon, "/v1/groups", &body).json();
        assert_eq!((&first["branch"], &first["commit"]), (&again["branch"], &again["commit"]));
    }
}

#[test]
fn a_branch_in_the_way_that_was_made_since_the_last_fetch_is_named() {
    let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
    let (path, data) = (hub.text_path(), tempfile::tempdir().unwrap());
    let data = data.path().to_str().unwrap();
    let daemon = Daemon::start(&[
        "--repo",
        &path,
        "--data-dir",
        data,
        "--writes",
        "propose",
        "--interval",
        "1h",
    ]);
    let head = hub.head().unwrap().id();
    hub.inner.reference("refs/heads/clade", head, false, "").unwrap();
    let refused = post(&daemon, "/v1/groups", &json!({"name": "B", "parent": ROOT, "classes": {}}));
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(refused.body.contains("the branch `clade` is in the way"), "{}", refused.body);
}

#[test]
fn a_branch_that_is_in_the_way_of_proposals_is_named() {
    for (mirrored, hooked) in [(false, false), (false, true), (true, false)] {
        let hub = Hub::new(&[("groups/a.yaml", "name: A\n")]);
        let head = hub.head().unwrap().id();
        let mut other = hub.inner.reference("refs/heads/clade", head, false, "").unwrap();
        if hooked {
            hub.hook("update", "exit 0");
        }
        let (path, data) = (hub.text_path(), tempfile::tempdir().unwrap());
        let mut arguments = vec!["--repo", &path, "--writes", "propose", "--interval", "1s"];
        if mirrored {
            arguments.extend(["--data-dir", data.path().to_str().unwrap()]);
        }
        let daemon = Daemon::start(&arguments);
        let body = json!({"name": "B", "parent": ROOT, "classes": {}});
        daemon.wait_until("the branch is named", |it| {
            let refused = post(it, "/v1/groups", &body);
            assert_ne!(refused.json()["kind"], "write-unknown", "{}", refused.body);
            refused.status == 403 && refused.body.contains("the branch `clade` is in the way")
        });
        other.delete().unwrap();
        daemon.wait_until("it is proposed", |it| post(it, "/v1/groups", &body).status == 202);
    }
}
