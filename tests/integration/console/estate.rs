//! Estates to look at.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::postgres::Postgres;
use crate::program::{Daemon, GitRepository, root};
use crate::readme::{fleet_repository, serve_fleet};

/// What would run if a page wrote it as markup.
pub(crate) const SCRIPT: &str = "<script>window.pwned=1</script>";

/// The file that later commits change.
const WEB_SERVERS: &str = "examples/fleet/groups/roles/web.yaml";

/// The fleet of the examples, with check-ins of its nodes.
pub(crate) fn checked_in_fleet() -> (GitRepository, Daemon) {
    let (repository, daemon) = serve_fleet();
    all_check_in(&daemon);
    (repository, daemon)
}

fn all_check_in(daemon: &Daemon) {
    for node in ["web1.example.com", "web2.example.com", "db1.example.com", "mail1.example.com"] {
        assert_eq!(check_in(daemon, node), 200);
    }
    wait_for_nodes(daemon, 4);
}

/// The fleet after a second commit, which some nodes have, and a third one that is rejected.
pub(crate) fn fleet_with_a_past() -> (GitRepository, Daemon) {
    let (repository, daemon) = checked_in_fleet();
    let longer = keep_connections(&repository, &daemon);
    let file = WEB_SERVERS;
    let rejected = longer.replace("parent: Roles", "parent: Rolls");
    let rejected = repository.commit("Move the web servers", &[(file, &rejected)]);
    daemon.wait_until("the third commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == rejected.as_str()
    });
    (repository, daemon)
}

/// Makes a second commit, which all nodes but one have, and returns its text of [`WEB_SERVERS`].
fn keep_connections(repository: &GitRepository, daemon: &Daemon) -> String {
    let text = std::fs::read_to_string(root().join(WEB_SERVERS)).unwrap();
    let longer = text.replace("keepalive_timeout: 5", "keepalive_timeout: 15");
    let live = repository.commit("Keep connections for 15 s, not 5", &[(WEB_SERVERS, &longer)]);
    daemon.wait_until("the second commit answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == live.as_str()
    });
    for node in ["web1.example.com", "web2.example.com", "db1.example.com"] {
        assert_eq!(check_in(daemon, node), 200);
    }
    daemon.wait_until("the nodes are answered from two commits", |it| {
        let counts = it.get("/controller/node-counts").json();
        counts["commits"].as_array().unwrap().len() == 2
    });
    longer
}

/// The fleet on a daemon whose first page has all that it can have: graphs (that of check-ins after a minute), a
/// webhook that was refused, and, where PostgreSQL is installed, other replicas.
pub(crate) struct FullHome {
    pub(crate) daemon: Daemon,
    /// What the page must say.
    pub(crate) texts: Vec<String>,
    _repository: GitRepository,
    _data: tempfile::TempDir,
}

/// Starts a daemon on a store that has a past, so that its first samples have changes of answers and two commits.
pub(crate) fn full_home() -> FullHome {
    let repository = fleet_repository();
    let (path, data) = (repository.text_path(), tempfile::tempdir().unwrap());
    let secret = data.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef\n").unwrap();
    let server = Postgres::shared();
    let file = data.path().join("data").to_str().unwrap().to_owned();
    let store = server.map_or_else(
        || vec!["--data-dir".to_owned(), file],
        |it| vec!["--store".to_owned(), it.schema()],
    );
    let mut arguments: Vec<&str> = vec!["--repo", &path, "--path", "examples/fleet"];
    arguments.extend(["--webhook-secret-file", secret.to_str().unwrap()]);
    arguments.extend(store.iter().map(String::as_str));
    let before = Daemon::start(&arguments);
    all_check_in(&before);
    keep_connections(&repository, &before);
    assert_eq!(before.terminate(), 0);
    let mut texts = ["unauthenticated", "2 at most", "(this one)"].map(str::to_owned).to_vec();
    if let Some(server) = server {
        let schema = store[1].rsplit_once('=').unwrap().1;
        let long = "w".repeat(64);
        let now = "(extract(epoch FROM now()) * 1000000)::bigint";
        server.sql(&format!(
            "INSERT INTO {schema}.replicas (id, name, version, commit_id, started_at, seen_at) VALUES \
             ('1', 'behind', '0.1.0', decode('{commit}', 'hex'), {now}, {now}), \
             ('2', '{long}', '0.1.0', NULL, {now} - 70000000, {now} - 61000000)",
            commit = "01".repeat(20),
        ));
        texts.extend(["behind", &long, "missing"].map(str::to_owned));
    }
    let daemon = Daemon::start(&arguments);
    assert_eq!(daemon.request("POST", "/webhook/github", "{}").status, 401);
    daemon.wait_until("the store was read", |it| {
        let trends = it.get("/controller/trends").json();
        let is_there = |series: &str| trends[series].as_array().is_some_and(|it| !it.is_empty());
        is_there("nodes_by_commit") && is_there("changes")
    });
    // Enough for its first minute to have a bar.
    all_check_in(&daemon);
    FullHome { daemon, texts, _repository: repository, _data: data }
}

/// The fleet after a commit that sets a parameter of `web2.example.com` a second time.
pub(crate) fn fleet_in_conflict() -> (GitRepository, Daemon) {
    let (repository, daemon) = checked_in_fleet();
    let file = "examples/fleet/groups/trial.yaml";
    let text = "name: Trial\ndescription: Keep connections longer\nrule: name = web2.example.com\nclasses: {apache: {keepalive_timeout: 99}}\n";
    let commit = repository.commit("Try a longer timeout", &[(file, text)]);
    daemon.wait_until("the trial answers", |it| {
        it.get("/controller/status").json()["active"]["commit"] == commit.as_str()
    });
    // Puppet Enterprise answers so, too.
    assert_eq!(check_in(&daemon, "web2.example.com"), 500);
    daemon.wait_until("the conflict is stored", |it| {
        it.get("/controller/node-counts").json()["conflict"] == 1
    });
    (repository, daemon)
}

/// The fleet with more nodes than a page searches at once.
pub(crate) fn large_fleet() -> (GitRepository, Daemon) {
    let (repository, daemon) = serve_fleet();
    for number in 0..1_003 {
        let path = format!("/v1/classified/nodes/n{number:04}.example.com");
        assert_eq!(daemon.request("POST", &path, r#"{"fact": {"even": true}}"#).status, 200);
    }
    wait_for_nodes(&daemon, 1_003);
    (repository, daemon)
}

fn check_in(daemon: &Daemon, node: &str) -> u16 {
    let facts = root().join(format!("examples/facts/{node}.json"));
    let facts = std::fs::read_to_string(facts).unwrap();
    let path = format!("/v1/classified/nodes/{node}");
    daemon.request("POST", &path, &facts).status
}

/// A fleet that several tests read at once.
pub(crate) struct SharedFleet {
    pub(crate) daemon: Daemon,
    _repository: Mutex<GitRepository>,
}

impl SharedFleet {
    /// Returns the commit that answers.
    pub(crate) fn head(&self) -> String {
        let status = self.daemon.get("/controller/status").json();
        status["active"]["commit"].as_str().unwrap().to_owned()
    }
}

/// The same for all tests that only read; it stops when the last of them ends.
pub(crate) fn shared_fleet() -> Arc<SharedFleet> {
    static SHARED: Mutex<Weak<SharedFleet>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(fleet) = shared.upgrade() {
        return fleet;
    }
    let (repository, daemon) = checked_in_fleet();
    let fleet = Arc::new(SharedFleet { daemon, _repository: Mutex::new(repository) });
    *shared = Arc::downgrade(&fleet);
    fleet
}

/// Waits until the store has so many nodes.
pub(crate) fn wait_for_nodes(daemon: &Daemon, nodes: u64) {
    daemon.wait_until("all nodes are stored", |it| {
        it.get("/controller/node-counts").json()["total"].as_u64() == Some(nodes)
    });
}

/// An estate whose every name and value is hostile.
pub(crate) fn hostile() -> (GitRepository, Daemon) {
    let long = "w".repeat(10_000);
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let names = [
        SCRIPT.to_owned(),
        "\"><img src=x onerror=window.pwned=1>".to_owned(),
        "a\u{202e}b\u{2066}c".to_owned(),
        "javascript:window.pwned=1".to_owned(),
        "../../etc & ' \" `".to_owned(),
        format!("long {}", "w".repeat(200)),
    ];
    let mut files = vec![("clade.yaml".to_owned(), "groups: groups\n".to_owned())];
    for (at, name) in names.iter().enumerate() {
        let text = format!(
            "name: {}\ndescription: {}\nrule: [\"~\", \"name\", \".*\"]\nvariables: {{v{at}: {}, l{at}: {}}}\n",
            quoted(name),
            quoted(SCRIPT),
            quoted(name),
            quoted(&long)
        );
        files.push((format!("groups/{at}.yaml"), text));
    }
    let mut deep = String::new();
    for level in 0..200 {
        let parent =
            if level == 0 { "All Nodes".to_owned() } else { format!("level {}", level - 1) };
        write!(deep, "---\nname: level {level}\nparent: {parent}\nrule: name = nowhere\n").unwrap();
    }
    files.push(("groups/deep.yaml".to_owned(), deep));
    let repository = GitRepository::new();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    repository.commit(&format!("{SCRIPT} a\u{202e}b"), &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let facts = serde_json::json!({"fact": {
        SCRIPT: SCRIPT, "bidi": "a\u{202e}b", "long": long, "nul": "\u{0}", "html": "</pre><script>",
    }});
    for node in ["<script>window.pwned=1", "a\"onmouseover=\"x", "..", "a/b?c#d"] {
        let name = percent(node);
        let path = format!("/v1/classified/nodes/{name}");
        assert_eq!(daemon.request("POST", &path, &facts.to_string()).status, 200, "{node}");
    }
    wait_for_nodes(&daemon, 4);
    (repository, daemon)
}

fn percent(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Every page that links lead to from the first one, up to so many; with its text.
pub(crate) fn crawl(daemon: &Daemon, most: usize) -> Vec<(String, String)> {
    let mut waiting = VecDeque::from([
        "/".to_owned(),
        "/problems".to_owned(),
        "/groups".to_owned(),
        "/query?rule=name%20%3D%20%3Cscript%3E".to_owned(),
        "/nowhere%3Cscript%3E".to_owned(),
        "/groups?name=%3Cscript%3Ewindow.pwned%3D1".to_owned(),
        "/nodes?q=%22%3E%3Cscript%3E".to_owned(),
    ]);
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut pages = Vec::new();
    while let Some(path) = waiting.pop_front() {
        if pages.len() == most {
            break;
        }
        let answer = daemon.request_with("GET", &path, "Accept: text/html\r\n", "");
        assert!(answer.status < 500, "{path}: {} {}", answer.status, answer.body);
        if answer.status == 303 {
            continue;
        }
        for link in links(&answer.body) {
            let is_page =
                !["/v1/", "/controller/", "/assets/"].iter().any(|it| link.starts_with(it));
            assert!(link.starts_with('/') || link.starts_with('#'), "{path} leads to {link}");
            let link = link.split('#').next().unwrap_or_default().to_owned();
            if is_page && !link.is_empty() && seen.insert(link.clone()) {
                waiting.push_back(link);
            }
        }
        pages.push((path, answer.body));
    }
    pages
}

/// The addresses that a page leads to.
pub(crate) fn links(page: &str) -> Vec<String> {
    let links = page.split("href=\"").skip(1).filter_map(|it| it.split('"').next());
    links.map(|it| it.replace("&amp;", "&").replace("&#38;", "&")).collect()
}
