//! Daemons that keep their nodes in one PostgreSQL, which goes away at times.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::postgres::{PASSWORD, Postgres};
use crate::program::{Daemon, GitRepository, clade, run};

/// A rule by a fact, so that nodes without facts need what is stored.
const GROUPS: [(&str, &str); 2] = [
    ("groups/debian.yaml", "name: Debian\nrule: fact.family = Debian\nclasses: {apt: {}}\n"),
    ("groups/suse.yaml", "name: Suse\nrule: fact.family = Suse\nclasses: {zypper: {}}\n"),
];

fn repository() -> GitRepository {
    let repository = GitRepository::new();
    repository.commit("groups", &GROUPS);
    repository
}

fn start(repository: &GitRepository, store: &str) -> Daemon {
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--store", store]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    daemon
}

fn upload(daemon: &Daemon, name: &str, family: &str) -> u16 {
    let body = json!({"name": name, "facts": {"family": family}}).to_string();
    daemon.request("POST", "/api/hosts/facts", &body).status
}

fn ask(daemon: &Daemon, name: &str, family: &str) -> u16 {
    let body = json!({"fact": {"family": family}, "trusted": {}}).to_string();
    daemon.request("POST", &format!("/v1/classified/nodes/{name}"), &body).status
}

fn names(daemon: &Daemon) -> Vec<String> {
    let listed = daemon.get("/v1/nodes?limit=10000").json();
    let listed = listed.as_array().cloned().unwrap_or_default();
    listed.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

fn conditions(daemon: &Daemon) -> Value {
    daemon.get("/controller/status").json()["conditions"].clone()
}

fn assert_no_password(daemon: &Daemon) {
    let status = daemon.get("/controller/status").body;
    let log = daemon.log_lines().join("\n");
    assert!(!status.contains(PASSWORD) && !log.contains(PASSWORD), "{status}\n{log}");
}

#[test]
fn what_one_daemon_is_told_all_know() {
    let Some(server) = Postgres::shared() else { return };
    let (repository, store) = (repository(), server.schema());
    let daemons = [start(&repository, &store), start(&repository, &store)];
    assert_eq!(ask(&daemons[0], "web1", "Debian"), 200);
    assert_eq!(upload(&daemons[1], "web2", "Suse"), 201);
    for daemon in &daemons {
        daemon.wait_until("it knows both", |it| names(it) == ["web1", "web2"]);
        let classes = |name: &str| {
            let answer = daemon.get(&format!("/enc/{name}"));
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.json()["classes"].clone()
        };
        assert_eq!((classes("web1"), classes("web2")), (json!({"apt": {}}), json!({"zypper": {}})));
        assert_no_password(daemon);
    }
    // Nor does one answer from what it printed before another daemon was told more.
    let classes = |name: &str| daemons[1].get(&format!("/enc/{name}")).json()["classes"].clone();
    assert_eq!(upload(&daemons[0], "web2", "Debian"), 201);
    assert_eq!(classes("web2"), json!({"apt": {}}));
    assert_eq!(daemons[0].request("DELETE", "/controller/nodes/web1", "").status, 204);
    assert_eq!(classes("web1"), json!({}));
}

#[test]
fn what_is_acknowledged_outlives_a_daemon_that_is_killed() {
    let Some(server) = Postgres::shared() else { return };
    let (repository, store) = (repository(), server.schema());
    let steady = start(&repository, &store);
    let doomed = start(&repository, &store);
    let doomed_at = Daemon::at(doomed.address());
    let (ends, sent) = (AtomicBool::new(false), AtomicUsize::new(0));
    let work = |thread, daemon: &Daemon| work(thread, daemon, &ends, &sent);
    let reached = |count: usize| {
        let deadline = Instant::now() + Duration::from_secs(90);
        while sent.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < deadline, "the requests do not go on");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|it| {
                let daemon = if it % 2 == 0 { &steady } else { &doomed_at };
                scope.spawn(move || work(it, daemon))
            })
            .collect();
        reached(60);
        doomed.kill();
        reached(sent.load(Ordering::Relaxed) + 60);
        ends.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let again = start(&repository, &store);
    assert!(acknowledged.len() > 30, "{}", acknowledged.len());
    for daemon in [&steady, &again] {
        let known = names(daemon);
        for name in &acknowledged {
            assert!(known.contains(name), "{name} is lost");
        }
    }
    steady.wait_until("both say the same", |it| {
        let all = "/v1/nodes?limit=10000&facts=true";
        it.get(all).body == again.get(all).body
    });
    check_chains(server, &store);
    assert_no_password(&steady);
}

/// Uploads facts under new names, and asks for nodes that others ask for too; returns the names that were acknowledged.
fn work(thread: usize, daemon: &Daemon, ends: &AtomicBool, sent: &AtomicUsize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for round in 0_usize.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let family = ["Debian", "Suse", "RedHat"][(round + thread) % 3];
        let name = format!("own{thread}-{round}");
        let body = json!({"name": name, "facts": {"family": family}}).to_string();
        // The daemon may be gone just now.
        if daemon.try_request("POST", "/api/hosts/facts", &body) == Some(201) {
            acknowledged.push(name);
        }
        let body = json!({"fact": {"family": family}, "trusted": {}}).to_string();
        let shared = format!("/v1/classified/nodes/shared{}", round % 5);
        daemon.try_request("POST", &shared, &body);
        sent.fetch_add(1, Ordering::Relaxed);
    }
    acknowledged
}

/// Each change begins with what the one before ended with, and the last with what the node has.
fn check_chains(server: &Postgres, store: &str) {
    let schema = store.rsplit_once('=').unwrap().1;
    let broken = server.sql(&format!(
        "SELECT COUNT(*) FROM (SELECT answer_before, LAG(answer_after) OVER (PARTITION BY node ORDER BY time) AS expected \
         FROM {schema}.changes) AS chain WHERE answer_before IS DISTINCT FROM expected"
    ));
    let unfinished = server.sql(&format!(
        "SELECT COUNT(*) FROM {schema}.nodes n WHERE answer IS DISTINCT FROM \
         (SELECT answer_after FROM {schema}.changes WHERE node = n.id ORDER BY time DESC LIMIT 1)"
    ));
    let changes = server.sql(&format!("SELECT COUNT(*) FROM {schema}.changes"));
    assert_eq!((broken.as_str(), unfinished.as_str()), ("0", "0"), "of {changes}");
    assert!(changes.parse::<u64>().unwrap() > 5, "{changes}");
    let totals = server.sql(&format!(
        "SELECT (SELECT nodes FROM {schema}.totals) - (SELECT COUNT(*) FROM {schema}.nodes)"
    ));
    assert_eq!(totals, "0");
}

#[test]
fn while_the_database_is_away_answers_go_on() {
    let Some(server) = Postgres::start() else {
        eprintln!("skipped: needs postgresql");
        return;
    };
    let repository = repository();
    let daemon = start(&repository, &server.url("sslmode=prefer"));
    assert_eq!(upload(&daemon, "web1", "Debian"), 201);
    assert_eq!(conditions(&daemon).as_array().unwrap().len(), 1);

    // Connections that end are replaced, and that is all.
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'postgres'",
    );
    daemon.wait_until("it has reconnected", |it| upload(it, "web2", "Suse") == 201);
    assert_eq!(daemon.get("/enc/web1").json()["classes"], json!({"apt": {}}));

    server.stop();
    daemon.wait_until("it says so", |it| {
        // Each answer is one from the rules or the error, never that of an unknown node.
        let stored = it.get("/enc/web1");
        assert!(stored.status == 503 || stored.json()["classes"] == json!({"apt": {}}));
        assert_eq!(ask(it, "web1", "Debian"), 200);
        conditions(it).as_array().unwrap().len() > 1
    });
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(ask(&daemon, "web3", "Suse"), 200);
        assert!(begun.elapsed() < Duration::from_secs(3), "an answer waits for the database");
        // What waits to be written is known: `web1` has asked meanwhile, and `web2` has not.
        let stored = daemon.get("/enc/web2");
        assert_eq!(stored.status, 503, "{}", stored.body);
        assert_eq!(daemon.get("/v1/nodes/web2").status, 503);
        assert_eq!(daemon.get("/v1/nodes").status, 503);
        assert_eq!(upload(&daemon, "web1", "Suse"), 503);
    }
    let said = conditions(&daemon);
    assert!(said.to_string().contains("what needs them is answered 503"), "{said}");
    // One that starts meanwhile answers too.
    let early = start(&repository, &server.url("sslmode=prefer"));
    assert_eq!(ask(&early, "web4", "Debian"), 200);
    assert_eq!(early.get("/enc/web1").status, 503);

    server.start_again();
    for daemon in [&daemon, &early] {
        daemon.wait_until("all is well again", |it| conditions(it).as_array().unwrap().len() == 1);
        assert_eq!(upload(daemon, "web5", "Suse"), 201);
        daemon.wait_until("what waited is stored", |it| {
            names(it) == ["web1", "web2", "web3", "web4", "web5"]
        });
        assert_eq!(daemon.get("/enc/web1").json()["classes"], json!({"apt": {}}));
        assert_no_password(daemon);
    }
}

#[test]
fn a_node_that_the_database_refuses_keeps_no_other_out() {
    let Some(server) = Postgres::shared() else { return };
    let (repository, store) = (repository(), server.schema());
    let daemon = start(&repository, &store);
    assert_eq!(upload(&daemon, "web1", "Debian"), 201);
    let schema = store.rsplit_once('=').unwrap().1;
    server.sql(&format!(
        "CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN RAISE EXCEPTION 'no such text' USING ERRCODE = '22021'; END$$; \
         CREATE TRIGGER refuse BEFORE INSERT ON {schema}.nodes FOR EACH ROW \
         WHEN (NEW.name = 'bad') EXECUTE FUNCTION {schema}.refuse()"
    ));
    let all = ["bad", "web2", "web3", "web4", "web5"];
    for name in all {
        assert_eq!(ask(&daemon, name, "Suse"), 200);
    }
    daemon.wait_until("the others are stored", |it| {
        names(it) == ["web1", "web2", "web3", "web4", "web5"]
    });
    assert_eq!(upload(&daemon, "bad", "Debian"), 503);
    assert_eq!(upload(&daemon, "web6", "Debian"), 201);
    assert_eq!(daemon.get("/enc/web6").json()["classes"], json!({"apt": {}}));
    assert_eq!(conditions(&daemon).as_array().unwrap().len(), 1, "the store is well");
    let dropped = "clade_check_ins_dropped_total{reason=\"storage-failed\"} 2";
    let metrics = daemon.get("/metrics").body;
    assert!(metrics.contains(dropped), "{metrics}");
}

#[test]
fn the_server_proves_who_it_is_where_that_is_asked_for() {
    let Some(server) = Postgres::shared() else { return };
    let repository = repository();
    let schema = server.schema();
    let ca = server.ca();
    let verified = format!("{schema}&sslmode=verify-full&sslrootcert={}", ca.display());
    let daemon = start(&repository, &verified);
    daemon.wait_until("it stores", |it| upload(it, "web1", "Debian") == 201);
    // No CA of this machine has signed its certificate.
    let daemon = start(&repository, &format!("{schema}&sslmode=verify-full"));
    assert_eq!(upload(&daemon, "web1", "Debian"), 503);
    daemon.wait_until("it says so", |it| conditions(it).as_array().unwrap().len() > 1);
    assert_eq!(ask(&daemon, "web1", "Debian"), 200);
    assert_no_password(&daemon);
}

#[test]
fn no_password_of_a_store_is_shown() {
    let Some(server) = Postgres::shared() else { return };
    let repository = repository();
    server.sql("CREATE ROLE guarded LOGIN PASSWORD 'another'");
    for store in [
        format!("postgres://guarded:{PASSWORD}@127.0.0.1:{}/postgres", server.port()),
        format!("postgres://guarded@127.0.0.1:{}/postgres?password={PASSWORD}", server.port()),
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:1/postgres"),
        format!("postgres://postgres:{PASSWORD}@no-such-host.invalid/postgres"),
        format!("postgres://postgres:{PASSWORD}@127.0.0.1:{}/no-such-database", server.port()),
    ] {
        let daemon = start(&repository, &store);
        daemon.wait_until("it says so", |it| conditions(it).as_array().unwrap().len() > 1);
        assert_eq!((upload(&daemon, "n", "Debian"), ask(&daemon, "n", "Debian")), (503, 200));
        assert_no_password(&daemon);
    }
    // A URL with a mistake is not repeated.
    for store in [
        format!("postgres://clade:{PASSWORD}@db:port/clade"),
        format!("postgres//clade:{PASSWORD}@db/clade"),
    ] {
        let by_flag = clade(&["serve", "--repo", "/nowhere", "--store", &store]).output().unwrap();
        let mut by_variable = clade(&["serve", "--repo", "/nowhere"]);
        let by_variable = by_variable.env("CLADE_STORE", &store).output().unwrap();
        for done in [by_flag, by_variable] {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(!done.status.success() && said.contains("--store"), "{said}");
            assert!(!said.contains(PASSWORD), "{said}");
        }
    }
}

/// A daemon with a name, which fetches when it is told to.
fn named(repository: &GitRepository, store: &str, name: &str) -> Daemon {
    let path = repository.text_path();
    let daemon =
        Daemon::start(&["--repo", &path, "--store", store, "--instance", name, "--interval", "1h"]);
    daemon.wait_until("it answers", |it| it.get("/v1/groups").status == 200);
    daemon
}

fn replicas(daemon: &Daemon) -> Vec<Value> {
    let status = daemon.get("/controller/status").json();
    status["replicas"].as_array().unwrap().clone()
}

/// Waits until a daemon lists replicas with these names, commits and whether they are missing.
fn lists(daemon: &Daemon, expected: &[(&str, &str, bool)]) {
    let expected: Vec<Value> =
        expected.iter().map(|(name, commit, missing)| json!([name, commit, missing])).collect();
    daemon.wait_until(&format!("it lists {expected:?}"), |it| {
        let listed = replicas(it);
        let said = listed.iter().map(|it| json!([it["name"], it["commit"], it["missing"]]));
        said.eq(expected.iter().cloned())
    });
}

/// The rows of the table of replicas on the first page, without markup.
fn rows_of_the_page(daemon: &Daemon) -> Vec<String> {
    let page = daemon.request_with("GET", "/", "Accept: text/html\r\n", "");
    assert_eq!(page.status, 200, "{}", page.body);
    let (_, table) = page.body.split_once("aria-label=\"Replicas\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let text = |row: &str| {
        let parts = row.split('<').map(|it| it.split_once('>').map_or(it, |(_, text)| text));
        parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    table.split("<tr>").skip(2).map(text).collect()
}

/// The page and `clade status` say of replicas what the API says.
fn assert_said_everywhere(daemon: &Daemon) {
    let listed = replicas(daemon);
    let rows = rows_of_the_page(daemon);
    let server = format!("http://{}", daemon.address());
    let screen = run(&["status", "--server", &server]);
    let table = screen.stdout.split("\n\n").find(|it| it.starts_with("REPLICA"));
    let lines: Vec<&str> = table.unwrap_or(&screen.stdout).lines().skip(1).collect();
    assert_eq!((rows.len(), lines.len()), (listed.len(), listed.len()), "{rows:?} {lines:?}");
    let live = &listed[0]["commit"];
    for (number, replica) in listed.iter().enumerate() {
        let (row, line) = (&rows[number], lines[number]);
        let (name, commit) =
            (replica["name"].as_str().unwrap(), replica["commit"].as_str().unwrap());
        assert!(row.starts_with(name) && row.contains(&commit[..10]), "{row}");
        assert!(line.starts_with(name) && line.contains(&commit[..12]), "{line}");
        assert_eq!(row.contains("(this one)"), number == 0, "{row}");
        assert_eq!(row.contains("another"), replica["commit"] != *live, "{row}");
        for said in [row, line] {
            assert!(said.contains(replica["version"].as_str().unwrap()), "{said}");
            assert_eq!(said.contains("missing"), replica["missing"] == true, "{said}");
        }
    }
    let machine = run(&["status", "--server", &server, "--format", "json"]);
    let machine: Value = serde_json::from_str(&machine.stdout).unwrap();
    for (said, expected) in machine["replicas"].as_array().unwrap().iter().zip(&listed) {
        for key in ["name", "commit", "version", "started_at", "missing"] {
            assert_eq!(said[key], expected[key], "{key}");
        }
    }
}

#[test]
fn replicas_are_shown_with_their_commits_and_whether_they_are_missing() {
    let Some(server) = Postgres::shared() else { return };
    let (repository, store) = (repository(), server.schema());
    let schema = store.rsplit_once('=').unwrap().1.to_owned();
    let first = repository.git().head().unwrap().target().unwrap().to_string();
    let rows = || server.sql(&format!("SELECT name FROM {schema}.replicas ORDER BY name"));
    let amber = named(&repository, &store, "amber");
    lists(&amber, &[("amber", &first, false)]);
    assert!(
        !run(&["status", "--server", &format!("http://{}", amber.address())])
            .stdout
            .contains("REPLICA")
    );
    // Others need not wait for its next beat to learn what it answers from.
    amber.wait_until("it has said its commit", |_| {
        let said = format!("SELECT encode(commit_id, 'hex') FROM {schema}.replicas");
        server.sql(&said) == first
    });
    let second = repository.commit("second", &[("groups/b.yaml", "name: B\n")]);
    let birch = named(&repository, &store, "birch");
    lists(&birch, &[("birch", &second, false), ("amber", &first, false)]);
    assert_said_everywhere(&birch);

    // As if a minute had passed since it was killed; the next commit has the other look at once.
    amber.kill();
    server.sql(&format!(
        "UPDATE {schema}.replicas SET seen_at = seen_at - 61000000 WHERE name = 'amber'"
    ));
    let third = repository.commit("third", &[("groups/b.yaml", "name: C\n")]);
    assert_eq!(birch.request("POST", "/controller/reconcile", "").status, 202);
    lists(&birch, &[("birch", &third, false), ("amber", &first, true)]);
    assert_said_everywhere(&birch);

    // One that is started again has another row; one that stops has none.
    let amber = named(&repository, &store, "amber");
    lists(&amber, &[("amber", &third, false), ("amber", &first, true), ("birch", &third, false)]);
    assert_said_everywhere(&amber);
    assert_eq!(birch.terminate(), 0);
    assert_eq!(rows(), "amber\namber");
    assert_eq!(amber.terminate(), 0);
    assert_eq!(rows(), "amber");
}
