//! Daemons that keep their nodes in one PostgreSQL, which goes away at times.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::postgres::{PASSWORD, Postgres};
use crate::program::{Daemon, GitRepository, clade};

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
