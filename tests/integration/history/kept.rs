//! Which answers the history keeps where several come before the next write.

use serde_json::{Value, json};

use super::{DB, WEB, fleet_with, follow};
use crate::program::{Daemon, GitRepository, run};

/// Lets a node check in with facts.
fn ask(daemon: &Daemon, query: &str, facts: &Value) {
    let body = json!({"fact": facts}).to_string();
    let answer = daemon.request("POST", &format!("/v1/classified/nodes/n{query}"), &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
}

/// A daemon of one group, of which a variable has the fact of its name as its value.
fn with_fact_in_value(fact: &str) -> (GitRepository, Daemon) {
    let repository = GitRepository::new();
    let group = format!("name: G\nrule: role = web\nvariables: {{{fact}: \"${{{fact}}}\"}}\n");
    let files = [("clade.yaml", "interpolate: true\n"), ("groups/g.yaml", group.as_str())];
    let commit = repository.commit("first", &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    follow(&daemon, &commit);
    (repository, daemon)
}

fn changes(daemon: &Daemon) -> Vec<Value> {
    let history = daemon.get("/controller/nodes/n/history?limit=1000").json();
    history.as_array().cloned().unwrap_or_default()
}

fn counter(daemon: &Daemon, name: &str) -> u64 {
    let metrics = daemon.get("/metrics").body;
    let values = metrics.lines().filter(|it| it.starts_with(name));
    values.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// The groups stay the same, and the value is another.
#[test]
fn each_answer_with_another_fact_in_a_value_is_a_change() {
    let (_repository, daemon) = with_fact_in_value("site");
    // The clock of the machine makes no difference: what waits, waits together.
    for (at, site) in ["a", "b", "b", "c", "a"].iter().enumerate() {
        ask(&daemon, "", &json!({"role": "web", "site": site, "uptime": at}));
    }
    daemon.wait_until("all are kept", |it| {
        let sites: Vec<String> =
            changes(it).iter().map(|it| it["changes"][0]["after"].to_string()).collect();
        sites.len() == 4
    });
    assert_eq!(counter(&daemon, "clade_check_ins_dropped_total"), 0);
}

#[test]
fn answers_that_are_too_many_before_a_write_are_counted() {
    let (_repository, daemon, _) = fleet_with(&[]);
    let sent = 200;
    for at in 0..sent {
        ask(&daemon, "", &json!({"role": if at % 2 == 0 { "web" } else { "db" }}));
    }
    daemon.wait_until("each is written or dropped", |it| {
        let dropped = counter(it, "clade_check_ins_dropped_total");
        // Three are of the fleet.
        counter(it, "clade_check_ins_written_total") + dropped == sent + 3
    });
    let dropped = counter(&daemon, "clade_check_ins_dropped_total");
    // Where one is dropped, those before and after it are alike.
    let kept = u64::try_from(changes(&daemon).len()).unwrap();
    assert!(kept <= sent - dropped && kept + 2 * dropped >= sent, "{kept} of {sent}");
}

#[test]
fn a_question_about_another_commit_leaves_the_facts_of_the_node() {
    let (repository, daemon, first) = fleet_with(&["--store-facts", "mentioned"]);
    let other = WEB.replace("role = web", "tier = front");
    let second =
        repository.commit("second", &[("groups/web.yaml", &other), ("groups/db.yaml", DB)]);
    follow(&daemon, &second);
    let facts = json!({"role": "web", "tier": "front"});
    ask(&daemon, "", &facts);
    let got = |path: &str| {
        daemon.wait_until("it is known", |it| it.get("/controller/nodes/n").status == 200);
        daemon.get(path).json()
    };
    let enc = daemon.get("/enc/n");
    assert!(enc.status == 200 && enc.body.contains("apache"), "{}", enc.body);
    let before = got("/controller/nodes/n");
    for query in
        [&format!("?commit={first}"), &format!("?commit={}", &first[..12]), "?commit=HEAD~1"]
    {
        ask(&daemon, query, &json!({"role": "db"}));
    }
    // What comes after it is written after it.
    let body = json!({"fact": {"role": "db"}}).to_string();
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/last", &body).status, 200);
    daemon.wait_until("it is written", |it| it.get("/controller/nodes/last").status == 200);
    let after = daemon.get("/controller/nodes/n").json();
    assert_eq!((&after["facts"], &after["last_seen"]), (&before["facts"], &before["last_seen"]));
    assert_eq!(daemon.get("/enc/n").body, enc.body);
}

/// The facts of few check-ins, which compress well, make changes that are large.
#[test]
fn a_history_of_large_changes_is_read_a_few_at_a_time() {
    let (_repository, daemon) = with_fact_in_value("blob");
    for letter in ["a", "b", "c", "d", "e", "f"] {
        ask(&daemon, "", &json!({"role": "web", "blob": letter.repeat(1 << 20)}));
    }
    daemon.wait_until("all are kept", |it| {
        it.get("/controller/nodes/n/history?limit=1").json()[0]["changes"][0]["after"]
            .as_str()
            .is_some_and(|it| it.starts_with('f'))
    });
    let all = daemon.get("/controller/nodes/n/history?limit=100");
    assert_eq!((all.status, &all.json()["kind"]), (413, &json!("payload-too-large")));
    assert_eq!(
        daemon.get("/controller/nodes/n/history?limit=2").json().as_array().unwrap().len(),
        2
    );
    let url = format!("http://{}", daemon.address);
    let done = run(&["history", "n", "--format", "json", "--server", &url]);
    let changes: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((done.status, changes.as_array().unwrap().len()), (0, 6));
    for page in ["/nodes/n", "/nodes/n/history"] {
        let page = daemon.get(page);
        assert!(page.status == 200 && page.body.contains("blob"), "{}", page.status);
    }
}
