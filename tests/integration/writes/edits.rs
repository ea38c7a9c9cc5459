//! When and how often groups were edited, from the history of the branch.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Hub, ROOT, create, post};
use crate::program::{Daemon, GitRepository};

const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const B: &str = "aaaaaaaa-0000-4000-8000-000000000002";

fn path(id: &str) -> String {
    format!("/v1/groups/{id}")
}

/// Commits files at a minute of the first of January 2024.
fn commit(hub: &Hub, minute: i64, files: &[(&str, &str)]) {
    let time = git2::Time::new(1_704_067_200 + minute * 60, 60);
    let ada = git2::Signature::new("Ada", "ada@example.com", &time).unwrap();
    hub.commit_as(&ada, &format!("Minute {minute}"), files);
}

/// Commits a symbolic link among the groups.
fn commit_link(hub: &Hub) {
    let head = hub.inner.head().unwrap().peel_to_commit().unwrap();
    let blob = hub.inner.blob(b"../x.yaml").unwrap();
    let mut update = git2::build::TreeUpdateBuilder::new();
    update.upsert("groups/link.yaml", blob, git2::FileMode::Link);
    let tree = update.create_updated(&hub.inner, &head.tree().unwrap()).unwrap();
    let tree = hub.inner.find_tree(tree).unwrap();
    let time = git2::Time::new(1_704_067_200, 60);
    let ada = git2::Signature::new("Ada", "ada@example.com", &time).unwrap();
    hub.inner.commit(Some("HEAD"), &ada, &ada, "Link", &tree, &[&head]).unwrap();
}

/// Returns the edit keys of an existing group.
fn edits(group: &Value) -> (Option<u64>, Option<&str>) {
    assert!(group["name"].is_string(), "{group}");
    (group["serial_number"].as_u64(), group["last_edited"].as_str())
}

fn wait(daemon: &Daemon) {
    daemon.wait_until("the history is known", |it| {
        it.get(&path(A)).json()["last_edited"].is_string()
    });
}

/// Both in one file: edited alone, commented, moved, edited in the new file, gone and back.
fn hub() -> Hub {
    let a = format!("name: A\nid: {A}\n");
    let b = format!("name: B\nid: {B}\nparent: A\n");
    let hub = Hub::new(&[("README.md", "# Groups\n")]);
    commit(&hub, 1, &[("groups/all.yaml", &format!("{a}---\n{b}"))]);
    commit(&hub, 2, &[("groups/all.yaml", &format!("{a}description: d\n---\n# why\n{b}"))]);
    commit(&hub, 3, &[("groups/all.yaml", &format!("{a}description: d\n")), ("groups/b.yaml", &b)]);
    commit(&hub, 4, &[("groups/b.yaml", &b.replace("name: B", "name: C"))]);
    commit(&hub, 5, &[("groups/b.yaml", "not: [closed\n")]);
    commit(&hub, 6, &[("groups/b.yaml", "")]);
    commit(&hub, 7, &[("groups/b.yaml", &b.replace("name: B", "name: C"))]);
    commit(&hub, 8, &[("groups/c.yaml", "name: New\n"), ("README.md", "# Other\n")]);
    hub
}

#[test]
fn the_history_of_a_group_is_in_every_answer_about_it() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    wait(&daemon);
    let of_a = (Some(2), Some("2024-01-01T00:02:00.000Z"));
    let of_b = (Some(4), Some("2024-01-01T00:07:00.000Z"));
    for query in ["", "?inherited=true"] {
        assert_eq!(edits(&daemon.get(&format!("{}{query}", path(A))).json()), of_a);
        let list = daemon.get(&format!("/v1/groups{query}")).json();
        let find = |name: &str| {
            let found = list.as_array().unwrap().iter().find(|it| it["name"] == name);
            edits(found.unwrap())
        };
        assert_eq!((find("A"), find("C")), (of_a, of_b));
        assert_eq!(find("New"), (Some(1), Some("2024-01-01T00:08:00.000Z")));
        // No file has the root group.
        assert_eq!(find("All Nodes"), (None, None));
    }
    let tree = daemon.get(&format!("/v1/group-children/{A}")).json();
    assert_eq!((edits(&tree[0]), edits(&tree[0]["children"][0])), (of_a, of_b));
    // Of a commit that does not answer it is not found out.
    assert_eq!(edits(&daemon.get(&format!("{}?commit=HEAD~1", path(A))).json()), (None, None));
}

/// It is in every answer, so a client that read it with values must not overwrite it without them.
#[test]
fn the_root_group_counts_when_its_file_goes_and_comes_back() {
    let root = "name: All Nodes\nvariables: {dns: 1}\n";
    let hub = Hub::new(&[("groups/a.yaml", &format!("name: A\nid: {A}\n"))]);
    // A link is none of the files that cannot be read.
    commit_link(&hub);
    commit(&hub, 1, &[("groups/root.yaml", root)]);
    commit(&hub, 2, &[("groups/root.yaml", "")]);
    let daemon = hub.serve(&[]);
    wait(&daemon);
    let of_root = (Some(2), Some("2024-01-01T00:02:00.000Z"));
    assert_eq!(edits(&daemon.get(&path(ROOT)).json()), of_root);
    let delta = |body: &Value| daemon.request("POST", &path(ROOT), &body.to_string());
    assert_eq!(delta(&json!({"variables": {"dns": 1}})).json()["serial_number"], 3);
    let stale = delta(&json!({"variables": {"dns": 2}, "serial_number": 2}));
    assert_eq!(stale.status, 409, "{}", stale.body);
}

/// Such commits never answer: what is read by them is as it was before.
#[test]
fn settings_that_cannot_be_read_and_second_documents_are_no_edits() {
    let a = format!("name: A\nid: {A}\n");
    let hub = Hub::new(&[("README.md", "# Groups\n")]);
    let settings = "groups: mine\n";
    commit(&hub, 1, &[("clade.yaml", settings), ("mine/a.yaml", &a), ("mine/b.yaml", "name: B\n")]);
    commit(&hub, 2, &[("clade.yaml", "groups: [mine\n")]);
    commit(&hub, 3, &[("clade.yaml", settings)]);
    commit(&hub, 4, &[("mine/again.yaml", &a)]);
    commit(&hub, 5, &[("mine/again.yaml", "")]);
    // Moved, and not to be read there for a while.
    commit(&hub, 6, &[("mine/a.yaml", ""), ("mine/c.yaml", &format!("{a}---\nx: [\n"))]);
    commit(&hub, 7, &[("mine/c.yaml", &a)]);
    commit(&hub, 8, &[("clade.yaml", "groups: mine\ninterpolate: true\n")]);
    let daemon = hub.serve(&[]);
    wait(&daemon);
    let of_a = daemon.get(&path(A)).json();
    assert_eq!(edits(&of_a), (Some(1), Some("2024-01-01T00:01:00.000Z")));
}

/// The console wraps each rule, and clients compare what they sent with what they read.
#[test]
fn a_rule_is_read_as_it_was_sent_whatever_the_notation_of_its_file() {
    let text = format!("name: T\nid: {A}\nrule: os.family = Debian\n");
    let hub = Hub::new(&[("groups/t.yaml", &text)]);
    let daemon = hub.serve(&[]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    let os = json!(["=", ["fact", "os", "family"], "RedHat"]);
    let name = json!(["=", "name", "a"]);
    for rule in [
        os.clone(),
        json!(["and", os]),
        json!(["or", ["and", os], name]),
        json!(["=", ["facts", "os", "family"], "RedHat"]),
        json!(["or", name, os]),
    ] {
        let answer = daemon.request("POST", &path(A), &json!({"rule": rule}).to_string());
        assert_eq!((answer.status, &answer.json()["rule"]), (200, &rule), "{}", answer.body);
        assert_eq!(daemon.get(&path(A)).json()["rule"], rule);
    }
    let unpinned = daemon.request("POST", &format!("{}/unpin?nodes=a", path(A)), "");
    assert_eq!(unpinned.status, 204, "{}", unpinned.body);
    assert_eq!(daemon.get(&path(A)).json()["rule"], json!(["or", os]));
}

#[test]
fn a_write_returns_the_new_number_and_refuses_a_stale_one() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    let delta = |more: &str| {
        let body = format!("{{\"variables\": {{\"v\": {{\"n\": 1}}}}{more}}}");
        daemon.request("POST", &path(A), &body)
    };
    // The check waits until the history is known.
    let first = delta(", \"serial_number\": 2");
    assert_eq!(first.status, 200, "{}", first.body);
    let group = first.json();
    assert_eq!(group["serial_number"], 3);
    let time: jiff::Timestamp = group["last_edited"].as_str().unwrap().parse().unwrap();
    assert_eq!(time.as_second(), hub.head().unwrap().time().seconds());
    assert_eq!(daemon.get(&path(A)).json(), group);
    let before = hub.head_id();
    let stale = delta(", \"serial_number\": 2, \"description\": \"e\"");
    assert_eq!((stale.status, &stale.json()["kind"]), (409, &json!("write-conflict")));
    assert_eq!(stale.json()["details"], json!({"submitted": 2, "current": 3}));
    assert_eq!(delta(", \"serial_number\": \"3\"").status, 400);
    assert_eq!(hub.head_id(), before);
    // A write without a change is not an edit; without a number nothing is checked.
    assert_eq!(delta("").json()["serial_number"], 3);
    assert_eq!(
        delta(", \"serial_number\": null, \"description\": \"e\"").json()["serial_number"],
        4
    );
    let put = daemon.request("PUT", &path(A), &group.to_string());
    assert_eq!((put.status, &put.json()["serial_number"]), (201, &json!(5)));
    assert_eq!(post(&daemon, &format!("{}/pin", path(A)), &json!({"nodes": ["n"]})).status, 204);
    assert_eq!(daemon.get(&path(A)).json()["serial_number"], 6);
    let new = create(&daemon, &json!({"name": "N", "parent": ROOT, "classes": {}}));
    assert_eq!(daemon.get(&path(&new)).json()["serial_number"], 1);
    // Others number theirs by the same commits.
    let shown = daemon.get(&path(A)).json();
    assert_eq!(daemon.terminate(), 0);
    let kept = std::fs::read(hub.directory.path().join("data/edits.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["history"]["commit"], hub.head_id());
    for daemon in [hub.serve(&[]), Daemon::start(&["--repo", &hub.text_path()])] {
        wait(&daemon);
        assert_eq!(daemon.get(&path(A)).json(), shown);
    }
}

#[test]
fn a_damaged_file_of_edits_is_made_again_from_the_history() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    wait(&daemon);
    let shown = daemon.get(&path(A)).json();
    daemon.terminate();
    let file = hub.directory.path().join("data/edits.json");
    let whole = std::fs::read(&file).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let at = |before: &str| text.find(before).unwrap() + before.len();
    let serial =
        at(&format!("\"{A}\"")) + text[at(&format!("\"{A}\""))..].find("\"serial\":").unwrap();
    let serial = serial + "\"serial\":".len();
    assert_eq!(whole[serial], b'2', "{text}");
    let flipped = {
        let mut bytes = whole.clone();
        bytes[serial] ^= 1 << 2;
        bytes
    };
    let cut = whole[..whole.len() / 2].to_vec();
    let without_groups = br#"{"sha256":"","history":{}}"#.to_vec();
    for damaged in [flipped, cut, Vec::new(), without_groups] {
        std::fs::write(&file, &damaged).unwrap();
        let daemon = hub.serve(&[]);
        wait(&daemon);
        assert_eq!(daemon.get(&path(A)).json(), shown);
        let noted = |daemon: &Daemon| {
            let says = |it: &&String| it.contains("edits.json") && it.contains("damaged");
            daemon.log_lines().iter().filter(says).count()
        };
        daemon.wait_until("the damage is logged", |it| noted(it) > 0);
        assert_eq!(noted(&daemon), 1, "{:?}", daemon.log_lines());
        daemon.terminate();
        assert_eq!(std::fs::read(&file).unwrap(), whole);
    }
    // Nothing is wrong with one that is not there, nor with a whole one.
    std::fs::remove_file(&file).unwrap();
    for _ in 0..2 {
        let daemon = hub.serve(&[]);
        wait(&daemon);
        assert!(!daemon.log_lines().iter().any(|it| it.contains("edits.json")));
        daemon.terminate();
    }
}

#[test]
fn writes_that_are_pushed_together_have_each_its_number() {
    let hub = hub();
    let daemon = hub.serve(&[]);
    wait(&daemon);
    let numbers: BTreeSet<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..20)
            .map(|number| {
                let daemon = Daemon::at(&daemon.address);
                let body = json!({"variables": {format!("v{number}"): number}});
                scope.spawn(move || post(&daemon, &path(A), &body).json()["serial_number"].as_u64())
            })
            .collect();
        writers.into_iter().map(|it| it.join().unwrap().unwrap()).collect()
    });
    assert_eq!(numbers, (3..=22).collect());
    // A colleague's commit is counted as well, and a rewritten history is read again.
    hub.commit("By hand", &[("groups/all.yaml", &format!("name: A\nid: {A}\n"))]);
    let serial = |it: &Daemon| it.get(&path(A)).json()["serial_number"].as_u64();
    daemon.wait_until("it is counted", |it| serial(it) == Some(23));
    let second = hub.inner.revparse_single("HEAD~28").unwrap().id();
    hub.inner.reference("refs/heads/main", second, true, "rewind").unwrap();
    hub.commit("Again", &[("groups/all.yaml", &format!("name: A\nid: {A}\n"))]);
    daemon.wait_until("it is counted again", |it| {
        it.get("/v1/groups").header("X-Clade-Commit") == Some(&hub.head_id())
            && serial(it).is_some()
    });
    assert_eq!(serial(&daemon), Some(1));
}

#[test]
fn groups_that_move_with_their_directory_are_not_edited() {
    let repository = GitRepository::new();
    let a = format!("name: A\nid: {A}\n");
    repository.commit("first", &[("p/groups/a.yaml", &a)]);
    repository.commit(
        "move",
        &[("p/groups/a.yaml", ""), ("p/ng/a.yaml", &a), ("p/clade.yaml", "groups: ng\n")],
    );
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--path", "p"]);
    wait(&daemon);
    assert_eq!(daemon.get(&path(A)).json()["serial_number"], 1);
    repository.commit("edit", &[("p/ng/a.yaml", &format!("{a}description: d\n"))]);
    daemon.wait_until("it is counted", |it| it.get(&path(A)).json()["serial_number"] == 2);
}

#[test]
fn an_unreadable_commit_is_skipped() {
    let hub = hub();
    let a = format!("name: A\nid: {A}\ndescription: e\n");
    hub.commit("Before", &[("groups/all.yaml", &a.replace("e\n", "f\n"))]);
    // Twelve small objects that look like 10^12 files, and an edit beside them.
    let head = hub.head().unwrap();
    let mut tree = hub.inner.find_tree(head.tree_id()).unwrap().get_name("groups").unwrap().id();
    for _ in 0..12 {
        let mut builder = hub.inner.treebuilder(None).unwrap();
        for name in 0..10 {
            builder.insert(name.to_string(), tree, 0o040_000).unwrap();
        }
        tree = builder.write().unwrap();
    }
    let mut update = git2::build::TreeUpdateBuilder::new();
    update.upsert("groups/large", tree, git2::FileMode::Tree);
    let blob = hub.inner.blob(a.as_bytes()).unwrap();
    update.upsert("groups/all.yaml", blob, git2::FileMode::Blob);
    let tree = update.create_updated(&hub.inner, &head.tree().unwrap()).unwrap();
    let tree = hub.inner.find_tree(tree).unwrap();
    let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
    hub.inner.commit(Some("refs/heads/main"), &ada, &ada, "Large", &tree, &[&head]).unwrap();
    hub.commit("After", &[("groups/large", "")]);
    let daemon = hub.serve(&[]);
    wait(&daemon);
    assert_eq!(daemon.get(&path(A)).json()["description"], "e");
    assert_eq!(daemon.get(&path(A)).json()["serial_number"], 4);
}

#[test]
fn a_commit_whose_history_is_missing_says_nothing_of_others() {
    let group = format!("name: A\nid: {A}\nrule: name ~ \"^web\"\nclasses: {{a: {{}}}}\n");
    let hub = Hub::new(&[("groups/a.yaml", &group)]);
    let (head, ada) = (hub.head().unwrap(), git2::Signature::now("Ada", "a@example.com").unwrap());
    let tree = head.tree().unwrap();
    let other = hub.inner.commit(Some("refs/heads/other"), &ada, &ada, "Other", &tree, &[&head]);
    let other = other.unwrap();
    let daemon = hub.serve(&[]);
    daemon.wait_until("the branch is there", |it| {
        it.get("/v1/groups?commit=other").header("X-Clade-Commit") == Some(&other.to_string())
    });
    assert_eq!(daemon.terminate(), 0);
    let data = hub.directory.path().join("data");
    std::fs::remove_file(data.join("edits.json")).ok();
    std::fs::write(data.join("mirror.git/shallow"), format!("{other}\n")).unwrap();
    let daemon = hub.serve(&[]);
    wait(&daemon);
    assert_eq!(daemon.get(&path(A)).json()["serial_number"], 1);
    assert_eq!(daemon.request("POST", "/v2/classified/nodes/web1", "{}").status, 200);
    daemon
        .wait_until("the node is known", |it| it.get("/controller/nodes/web1/blame").status == 200);
    let blamed = daemon.get("/controller/nodes/web1/blame").json().to_string();
    assert!(blamed.contains(r#""boundary":false"#), "{blamed}");
    assert!(!blamed.contains(r#""boundary":true"#), "{blamed}");
    let mistyped = daemon.get("/v1/groups?commit=mian");
    assert_eq!(mistyped.status, 404, "{}", mistyped.body);
    assert!(!mistyped.body.contains("shallow"), "{}", mistyped.body);
}

#[test]
fn where_the_history_was_cut_no_number_is_made_up() {
    let hub = hub();
    let cut = hub.inner.revparse_single("HEAD~5").unwrap().id();
    std::fs::write(hub.path().join("shallow"), format!("{cut}\n")).unwrap();
    let daemon = Daemon::start(&["--repo", &hub.text_path(), "--writes", "commit"]);
    daemon.wait_until("the history is known", |it| {
        it.get(&path(B)).json()["last_edited"] == "2024-01-01T00:07:00.000Z"
    });
    let (a, b) = (daemon.get(&path(A)).json(), daemon.get(&path(B)).json());
    assert_eq!((edits(&a), edits(&b).0), ((None, None), None));
    let body = json!({"description": "e", "serial_number": 2});
    assert_eq!(post(&daemon, &path(A), &body).status, 409);
    let edited = post(&daemon, &path(A), &json!({"description": "e"})).json();
    assert_eq!((edits(&edited).0, edits(&edited).1.is_some()), (None, true));
}
