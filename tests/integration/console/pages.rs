//! What pages show, without a browser.

use std::ops::Range;

use super::estate::{
    SCRIPT, checked_in_fleet, crawl, fleet_in_conflict, hostile, large_fleet, links, shared_fleet,
    wait_for_nodes,
};
use crate::program::{Daemon, GitRepository};
use crate::table::each_row;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Joins what is written of each number.
fn joined(numbers: Range<usize>, text: impl Fn(usize) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

fn page(daemon: &Daemon, path: &str) -> String {
    let answer = daemon.request_with("GET", path, "Accept: text/html\r\n", "");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    assert_eq!(answer.header("Content-Security-Policy"), Some(POLICY), "{path}");
    assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"), "{path}");
    answer.body
}

/// Returns a text without its markup.
fn text(page: &str) -> String {
    let parts = page.split('<').map(|it| it.split_once('>').map_or(it, |(_, text)| text));
    parts.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_page_of_the_contract_is_there_with_its_policy() {
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let web = "58463036-0efa-4365-b367-b5401c0711d3";
    let group = format!("/groups/{web}");
    let rows = [
        ("/", "The newest commit answers"),
        ("/nodes", "web1.example.com"),
        ("/nodes?q=WEB1&state=classified", "web1.example.com"),
        ("/nodes/web1.example.com", "examples/fleet/groups/roles/web.yaml"),
        ("/nodes/web1.example.com?blame=on", "the fleet"),
        ("/nodes/web1.example.com?group=Databases", "is not in the group"),
        ("/nodes/web1.example.com/history", "first answer"),
        ("/nodes/web1.example.com/facts", "&quot;family&quot;"),
        ("/groups", "Webservers"),
        ("/groups?name=web", "Webservers"),
        (&group, "web1.example.com"),
        ("/commits", "the fleet"),
        ("/commits/HEAD", "live"),
        ("/compare/HEAD...HEAD", "No node gets another answer"),
        ("/query", "What would this rule match?"),
        ("/query?rule=os.family%20%3D%20Debian", "nodes match"),
        ("/query?rule=os.family%20%3D", "error"),
        ("/problems", "What is wrong"),
        ("/login", "no tokens"),
    ];
    each_row(rows, |(path, expected)| {
        let page = page(daemon, path);
        let expected = expected.replace("examples/fleet/", "");
        assert!(page.contains(&expected), "{path} lacks {expected}: {}", text(&page));
    });
}

#[test]
fn a_page_that_is_made_from_one_commit_names_it() {
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let live = daemon.get("/v1/groups?limit=0").header("X-Clade-Commit").map(str::to_owned);
    assert!(live.is_some());
    let group = "/groups/58463036-0efa-4365-b367-b5401c0711d3";
    let node = "/nodes/web1.example.com";
    for path in [group, "/groups", "/groups?commit=HEAD", node, "/problems"] {
        let answer = daemon.request_with("GET", path, "Accept: text/html\r\n", "");
        assert_eq!(
            (answer.status, answer.header("X-Clade-Commit")),
            (200, live.as_deref()),
            "{path}"
        );
    }
    for path in ["/", "/nodes", "/commits", "/compare/HEAD...HEAD", "/login"] {
        let answer = daemon.request_with("GET", path, "Accept: text/html\r\n", "");
        assert_eq!((answer.status, answer.header("X-Clade-Commit")), (200, None), "{path}");
    }
}

#[test]
fn numbers_are_those_of_the_api() {
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let counts = daemon.get("/controller/node-counts").json();
    let home = page(daemon, "/");
    for (key, words) in [
        ("total", "nodes"),
        ("classified", "classified"),
        ("conflict", "in conflict"),
        ("error", "in error"),
        ("silent", "silent for 2 h"),
    ] {
        let tile = format!("<b>{}</b><span>{words}</span>", counts[key]);
        assert!(home.contains(&tile), "{tile}");
    }
    let status = daemon.get("/controller/status").json();
    let groups = format!("{} groups", status["active"]["groups"]);
    assert!(text(&home).contains(&groups), "{groups}");
    let members = daemon.get("/controller/group-members").json();
    let tree = text(&page(daemon, "/groups"));
    for member in members.as_array().unwrap() {
        let id = member["id"].as_str().unwrap();
        let group = daemon.get(&format!("/v1/groups/{id}")).json();
        let nodes = member["nodes"].as_u64().unwrap();
        let unit = if nodes == 1 { "node" } else { "nodes" };
        let row = format!("{} {nodes} {unit}", group["name"].as_str().unwrap());
        assert!(tree.contains(&row), "{row}: {tree}");
        // The list of nodes counts the same.
        let listed = daemon.get(&format!("/controller/nodes?group={id}")).json();
        assert_eq!(listed["total"], member["nodes"], "{group}");
        let own = text(&page(daemon, &format!("/groups/{id}")));
        assert!(own.contains(&format!("1–{nodes} of {nodes}")), "{nodes}: {own}");
    }
    assert!(tree.contains(&groups), "{groups}: {tree}");
    numbers_of_lists(daemon);
    numbers_of_questions(daemon);
}

fn numbers_of_lists(daemon: &Daemon) {
    let nodes = daemon.get("/controller/nodes").json();
    let list = page(daemon, "/nodes");
    let total = &nodes["total"];
    assert!(text(&list).contains(&format!("1–{total} of {total}")), "{total}");
    for node in nodes["nodes"].as_array().unwrap() {
        let name = node["name"].as_str().unwrap();
        let row = list.split("<tr>").find(|it| it.contains(&format!("/nodes/{name}\""))).unwrap();
        let groups = node["groups"].as_array().unwrap().len();
        assert!(row.contains(&format!("<td class=\"number\">{groups}</td>")), "{name}: {row}");
        let values = daemon.get(&format!("/controller/nodes/{name}/values")).json();
        // A node that has checked in without facts has no values.
        let Some(values) = values.as_array() else { continue };
        let values = values.iter().filter(|it| !it["key"].as_str().unwrap().starts_with("groups."));
        let own = text(&page(daemon, &format!("/nodes/{name}")));
        let count = format!("{} values from", values.count());
        assert!(own.contains(&count), "{count}: {own}");
    }
    let counts = daemon.get("/controller/node-counts").json();
    let commits = page(daemon, "/commits");
    for commit in daemon.get("/controller/commits").json().as_array().unwrap() {
        let id = commit["commit"].as_str().unwrap();
        let row =
            commits.split("<tr>").find(|it| it.contains(&format!("/commits/{id}\""))).unwrap();
        let moved = nodes_of(&counts["moved"], id);
        for number in [&commit["groups"].to_string(), &moved.to_string()] {
            assert!(
                row.contains(&format!("<td class=\"number\">{number}</td>")),
                "{number}: {row}"
            );
        }
        let own = text(&page(daemon, &format!("/commits/{id}")));
        let answered = nodes_of(&counts["commits"], id);
        let last = format!("{answered} were answered from it last; it gave {moved} another answer");
        assert!(own.contains(&last), "{last}: {own}");
    }
}

fn numbers_of_questions(daemon: &Daemon) {
    let rule = "os.family%20%3D%20Debian";
    let matches = daemon.get(&format!("/controller/query?rule={rule}")).json();
    let query = text(&page(daemon, &format!("/query?rule={rule}")));
    let found = format!("{} of {} nodes match", matches["total"], matches["searched"]);
    assert!(query.contains(&found), "{found}: {query}");
    let summary = daemon.get("/controller/diff/HEAD/HEAD").json()["summary"].clone();
    let compare = text(&page(daemon, "/compare/HEAD...HEAD"));
    let moved =
        format!("{} of {} nodes that have checked in", summary["changed"], summary["nodes"]);
    assert!(compare.contains(&moved), "{moved}: {compare}");
    let groups = daemon.get("/v1/groups").json();
    let members = daemon.get("/controller/group-members?matched_within=90d").json();
    let is_used =
        |id: &serde_json::Value| members.as_array().unwrap().iter().any(|it| it["id"] == *id);
    let unused = groups.as_array().unwrap().iter();
    let unused = unused.filter(|it| it["rule"].is_array() && !is_used(&it["id"])).count();
    let problems = text(&page(daemon, "/problems"));
    let heading = format!("Groups that match no node {unused} ");
    assert!(problems.contains(&heading), "{heading}: {problems}");
}

#[test]
fn a_large_fleet_is_searched_in_two_steps() {
    let (_repository, daemon) = large_fleet();
    let part = page(&daemon, "/query?rule=even%20%3D%20true");
    let said = text(&part);
    assert!(said.contains("1 000 of the first 1 000 nodes match"), "{said}");
    assert!(said.contains("Search the other 3 nodes too"), "{said}");
    let whole = "/query?rule=even%20%3D%20true&all=true";
    assert!(part.contains(&format!("href=\"{}\"", whole.replace('&', "&#38;"))), "{part}");
    let said = text(&page(&daemon, whole));
    assert!(said.contains("1 003 of 1 003 nodes match"), "{said}");
    the_next_page_begins_behind_the_last_node(&daemon);
}

/// A node that moved behind a page made the next page leave one out.
fn the_next_page_begins_behind_the_last_node(daemon: &Daemon) {
    let sorted = "sort=last-seen";
    let page_of = |query: &str| daemon.get(&format!("/controller/nodes?{sorted}&{query}")).json();
    let listed = page_of("limit=51");
    let name = |at: usize| listed["nodes"][at]["name"].as_str().unwrap().to_owned();
    let (moved, expected) = (name(0), name(50));
    let first = page(daemon, &format!("/nodes?{sorted}"));
    let (_, rest) = first.split_once("rel=\"next\" href=\"").unwrap();
    let next = rest.split_once('"').unwrap().0.replace("&#38;", "&");
    let path = format!("/v1/classified/nodes/{moved}");
    assert_eq!(daemon.request("POST", &path, r#"{"fact": {"even": true}}"#).status, 200);
    daemon.wait_until("it has moved", |_| page_of("limit=1")["nodes"][0]["name"] != moved.as_str());
    assert!(page(daemon, &next).contains(&expected), "{next} lacks {expected}");
    assert_eq!(page_of("offset=1000").get("next"), None);
    // PostgreSQL fails at a NUL, and the store was closed.
    for (query, schema) in [
        ("sort=last-seen&after=x", "NodeCursor"),
        ("sort=state&after=7:a", "NodeCursor"),
        ("after=:%00", "NodeCursor"),
        ("q=%00", "NamePart"),
    ] {
        let wrong = daemon.get(&format!("/controller/nodes?{query}")).json();
        let found = (wrong["kind"].as_str(), wrong["details"]["schema"].as_str());
        assert_eq!(found, (Some("schema-violation"), Some(schema)), "{query}");
    }
}

#[test]
fn a_node_whose_explanation_is_too_large_says_so() {
    let repository = GitRepository::new();
    let terms = vec![r#"["=", [fact, x], a]"#; 57].join(", ");
    let group = format!("name: A\nrule: [or, [\"~\", name, n], {terms}]\n");
    repository.commit("one", &[("groups/a.yaml", &group)]);
    let values = ["one", "two"]
        .map(|it| format!("name: {it}\nrule: [\"=\", name, torn]\nvariables: {{v: {it}}}\n"));
    let [one, two] = &values;
    repository.commit("two", &[("groups/one.yaml", one), ("groups/two.yaml", two)]);
    let known = tempfile::tempdir().unwrap();
    let large = "b".repeat(300_000);
    let file = serde_json::json!({"name": "known", "values": {"x": large}}).to_string();
    std::fs::write(known.path().join("known.json"), file).unwrap();
    let directory = known.path().to_str().unwrap();
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--facts-dir", directory]);
    let facts = format!(r#"{{"fact": {{"x": "{large}"}}}}"#);
    for (node, status) in [("n", 200), ("torn", 500)] {
        let path = format!("/v1/classified/nodes/{node}");
        assert_eq!(daemon.request("POST", &path, &facts).status, status, "{node}");
    }
    wait_for_nodes(&daemon, 2);
    let shown = |node: &str| {
        let path = format!("/nodes/{node}");
        text(&daemon.request_with("GET", &path, "Accept: text/html\r\n", "").body)
    };
    let too_large = "The explanation is too large";
    let expected = format!("It is not known which groups match. {too_large}");
    assert!(shown("n").contains(&expected), "{}", shown("n"));
    assert!(!shown("n").contains("Groups that match disagree"), "{}", shown("n"));
    let expected = format!("The values that differ cannot be shown. {too_large}");
    assert!(shown("torn").contains(&expected), "{}", shown("torn"));
    assert!(shown("known").contains(too_large), "{}", shown("known"));
}

/// Returns how many nodes a commit has in a list.
fn nodes_of(counted: &serde_json::Value, commit: &str) -> u64 {
    let mut counted = counted.as_array().unwrap().iter();
    let found = counted.find(|it| it["commit"] == commit);
    found.map_or(0, |it| it["nodes"].as_u64().unwrap())
}

#[test]
fn a_group_shows_the_history_of_its_file_and_leads_to_the_forge() {
    let repository = GitRepository::new();
    let forge = "https://github.com/example/groups";
    repository.git().remote("origin", &format!("{forge}.git")).unwrap();
    let file = "below/groups/a.yaml";
    let first = repository.commit("one", &[(file, "name: A\nvariables: {x: 1}\n")]);
    repository.commit("another file", &[("below/groups/b.yaml", "name: B\n")]);
    let last = repository.commit("three (#7)", &[(file, "name: A\nvariables: {x: 2}\n")]);
    let head = repository.commit("elsewhere", &[("README.md", "text\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--path", "below"]);
    let groups = daemon.get("/v1/groups").json();
    let group = groups.as_array().unwrap().iter().find(|it| it["name"] == "A").unwrap();
    let page = page(&daemon, &format!("/groups/{}", group["id"].as_str().unwrap()));
    let (_, history) = page.split_once("History of the file").unwrap();
    let at = |commit: &str| history.find(&format!("href=\"/commits/{commit}\""));
    assert!(at(&last).unwrap() < at(&first).unwrap(), "{history}");
    assert_eq!(history.matches("href=\"/commits/").count(), 2, "{history}");
    for address in [
        format!("{forge}/commit/{last}"),
        format!("{forge}/pull/7"),
        format!("{forge}/blob/{head}/{file}#L1"),
    ] {
        assert!(page.contains(&format!("href=\"{address}\"")), "{address}: {page}");
    }
}

#[test]
fn ten_thousand_groups_fit_a_page() {
    use std::fmt::Write as _;
    let repository = GitRepository::new();
    let mut files = Vec::new();
    for file in 0..100 {
        let mut text = format!("name: Area {file}\nrule: location.area = {file}\n");
        for group in 0..99 {
            writeln!(text, "---\nname: Service {file}-{group}\nparent: Area {file}").unwrap();
            writeln!(text, "rule: service.number = {group}\nvariables: {{service: {group}}}")
                .unwrap();
        }
        files.push((format!("groups/{file}.yaml"), text));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    repository.commit("10,000 groups", &files);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let home = page(&daemon, "/");
    let addresses = home.split('"').filter(|it| it.starts_with("/assets/console."));
    let addresses: std::collections::BTreeSet<&str> = addresses.collect();
    assert_eq!(addresses.len(), 2, "a style sheet and a script: {addresses:?}");
    let assets: usize = addresses.iter().map(|it| compressed(&daemon.get(it).body)).sum();
    for path in ["/", "/groups", "/groups?name=service", "/problems"] {
        let page = page(&daemon, path);
        let all = compressed(&page) + assets;
        assert!(all <= 60 << 10, "{path} takes {all} bytes on a first visit");
    }
    let tree = page(&daemon, "/groups");
    assert!(text(&tree).contains("Area 99"), "{}", text(&tree));
    assert!(tree.contains("<details"), "the tree can be folded");
}

/// Returns how many bytes a text takes compressed, as the daemon does it.
fn compressed(text: &str) -> usize {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(4));
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().len()
}

#[test]
fn what_a_node_gets_is_what_the_api_says() {
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let values = daemon.get("/controller/nodes/web1.example.com/values").json();
    let page = page(daemon, "/nodes/web1.example.com");
    for value in values.as_array().unwrap() {
        let key = value["key"].as_str().unwrap();
        if key.starts_with("groups.") {
            continue;
        }
        assert!(
            page.contains(&format!("<code><bdi>{key}</bdi></code>")) || page.contains(key),
            "{key}"
        );
        let place = format!("{}:{}</bdi>", value["file"].as_str().unwrap(), value["line"]);
        assert!(page.contains(&place), "{key}: {place}");
    }
    let blame = daemon.get("/controller/nodes/web1.example.com/blame").json();
    for (value, blamed) in values.as_array().unwrap().iter().zip(blame.as_array().unwrap()) {
        for key in ["key", "value", "group", "group_id", "file", "line"] {
            assert_eq!(value[key], blamed[key], "{value}");
        }
    }
    let enc = daemon.get("/controller/nodes/web1.example.com/enc").body;
    assert_eq!(enc, daemon.get("/enc/web1.example.com?commit=HEAD").body);
}

#[test]
fn a_conflict_shows_both_sides_and_the_ways_out() {
    let (_repository, daemon) = fleet_in_conflict();
    let page = text(&page(&daemon, "/nodes/web2.example.com"));
    for expected in [
        "classes.apache.keepalive_timeout",
        "99 from Trial",
        "5 from Webservers",
        "Ways out",
        "nodes/ web2.example.com .yaml",
        "conflicting values",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    // Each group stands below the next one above it that matches.
    let groups = ["All Environments", "Debian family", "Ubuntu", "Webservers leaf", "Trial leaf"];
    let places = groups.map(|it| page.find(&format!("{it} because")).unwrap());
    assert!(places.is_sorted(), "{places:?}: {page}");
}

#[test]
fn looking_at_a_node_is_not_a_check_in() {
    let (_repository, daemon) = checked_in_fleet();
    let seen = || daemon.get("/controller/nodes/web1.example.com").json()["last_seen"].clone();
    let before = seen();
    page(&daemon, "/nodes/web1.example.com?blame=on");
    assert_eq!(seen(), before);
    assert_eq!(daemon.get("/nodes/nowhere.example.com").status, 404);
    assert_eq!(daemon.get("/controller/node-counts").json()["total"], 4);
}

#[test]
fn a_rejected_commit_shows_its_finding_with_the_line() {
    let repository = GitRepository::new();
    let good = repository.commit("good", &[("groups/a.yaml", "name: A\nvariables: {x: 1}\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--interval", "1s"]);
    let bad = repository.commit("bad", &[("groups/a.yaml", "name: A\nparent: Nowhere\n")]);
    daemon.wait_until("the commit is rejected", |it| {
        it.get("/controller/status").json()["last_failed"]["commit"] == bad.as_str()
    });
    let home = text(&page(&daemon, "/"));
    for expected in [
        "The newest commit is rejected",
        &good[..10],
        &bad[..10],
        "missing-parent",
        "groups/a.yaml:2:9",
    ] {
        assert!(home.contains(expected), "{expected}: {home}");
    }
    let commit = page(&daemon, &format!("/commits/{bad}"));
    assert!(
        commit.contains(
            "<span class=\"hit\"><span class=\"lineno\">2</span><bdi>parent: Nowhere</bdi></span>"
        ),
        "{commit}"
    );
    let then = page(&daemon, &format!("/nodes?commit={good}"));
    assert!(text(&then).contains("Not what is live"), "{then}");
}

#[test]
fn hostile_names_and_values_are_text() {
    let (_repository, daemon) = hostile();
    let pages = crawl(&daemon, 400);
    assert!(pages.len() > 200, "{}", pages.len());
    for (path, page) in pages {
        assert!(!page.contains(SCRIPT), "{path} has a script of the estate");
        assert_eq!(page.matches("<script").count(), 1, "{path}");
        for markup in
            ["<img src=x", " onmouseover=\"x", "\u{202e}", "\u{2066}", "href=\"javascript"]
        {
            assert!(!page.contains(markup), "{path} has {markup:?}");
        }
    }
}

#[test]
fn browsers_get_errors_as_pages_and_programs_as_json() {
    let fleet = shared_fleet();
    let daemon = &fleet.daemon;
    let html = "Accept: text/html,application/xhtml+xml\r\n";
    for (path, headers, status, kind) in [
        ("/nowhere", html, 404, "text/html; charset=utf-8"),
        ("/nowhere", "", 404, "application/json"),
        ("/v1/nowhere", html, 404, "application/json"),
        ("/groups/00000000-0000-4000-8000-00000000000f", html, 404, "text/html; charset=utf-8"),
        ("/groups/x", html, 400, "text/html; charset=utf-8"),
        ("/nodes/web1.example.com?at=x", html, 400, "text/html; charset=utf-8"),
        ("/groups/x", "", 400, "application/json"),
        ("/nodes/web1.example.com?at=x", "Accept: application/json\r\n", 400, "application/json"),
        ("/commits/nope", "Accept: */*\r\n", 404, "application/json"),
        ("/assets/x.css", html, 404, "application/json"),
    ] {
        let answer = daemon.request_with("GET", path, headers, "");
        assert_eq!((answer.status, answer.header("Content-Type")), (status, Some(kind)), "{path}");
        if kind == "application/json" {
            assert!(answer.json()["kind"].is_string(), "{path}: {}", answer.body);
        }
        if kind.starts_with("text/html") {
            let id = answer.header("X-Request-Id").unwrap().to_owned();
            assert!(answer.body.contains(&id), "{path} shows its request id");
        }
    }
}

/// A browser takes what stands behind `//` or `/\` for the name of a host.
#[test]
fn no_page_leads_to_a_host_that_its_address_names() {
    let fleet = shared_fleet();
    let html = "Accept: text/html\r\n";
    for path in ["//evil.example/x", "/\\evil.example/x", "///evil.example/x"] {
        for query in ["", "?commit=main", "?at=2030-01-01T00:00:00Z&q=x", "?commit=nope"] {
            let page = fleet.daemon.request_with("GET", &format!("{path}{query}"), html, "").body;
            for attribute in ["href=\"", "action=\"", "src=\""] {
                let values = page.split(attribute).skip(1);
                let led = values.filter(|it| it.starts_with("//") || it.starts_with("/\\"));
                assert_eq!(led.count(), 0, "{path}{query}: {page}");
            }
        }
    }
}

#[test]
fn what_the_pages_do_not_take_is_refused_as_the_api_does() {
    let fleet = shared_fleet();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let json = "Content-Type: application/json\r\n";
    for (method, path, headers, body, status, kind) in [
        ("POST", "/", "", "", 405, "method-not-allowed"),
        ("PUT", "/nodes", "", "", 405, "method-not-allowed"),
        ("OPTIONS", "/", "", "", 405, "method-not-allowed"),
        ("DELETE", "/groups/x", "", "", 405, "method-not-allowed"),
        ("POST", "/login", json, "{}", 400, "malformed-request"),
        ("POST", "/logout", "", "", 400, "malformed-request"),
        ("POST", "/login", form, "token=x", 403, "permission-denied"),
        ("POST", "/logout", form, "x=y", 403, "permission-denied"),
        ("POST", "/actions/pin", json, "{}", 400, "malformed-request"),
        ("POST", "/actions/pin", form, "reason=x", 403, "permission-denied"),
    ] {
        let answer = fleet.daemon.request_with(method, path, headers, body);
        let said = (answer.status, answer.json()["kind"].clone());
        assert_eq!(said, (status, kind.into()), "{method} {path}");
        assert_eq!(answer.header("Allow").is_some(), status == 405, "{method} {path}");
    }
}

#[test]
fn a_filter_that_is_not_valid_can_be_corrected() {
    let fleet = shared_fleet();
    for (query, said) in [
        ("silent_for=x", "duration"),
        ("state=x", "state"),
        ("sort=x", "last-seen"),
        ("answered_by=x", "commit"),
    ] {
        let html = "Accept: text/html\r\n";
        let answer = fleet.daemon.request_with("GET", &format!("/nodes?q=web&{query}"), html, "");
        assert_eq!(answer.status, 400, "{query}");
        let message = text(&answer.body);
        assert!(message.contains("This filter is not valid."), "{query}: {message}");
        let message = message.split("not valid.").nth(1).unwrap();
        assert!(message.contains(said), "{query}: {message}");
        assert!(answer.body.contains(r#"<input name="q" value="web""#), "{query}");
    }
}

#[test]
fn all_is_below_a_base_path_too() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--base-path", "/clade"]);
    for path in ["/clade/", "/clade/groups", "/groups"] {
        let page = page(&daemon, path);
        let own = page
            .split("href=\"")
            .skip(1)
            .all(|it| it.starts_with("/clade/") || it.starts_with('#'));
        assert!(own, "{path}: {page}");
    }
    assert_eq!(daemon.get("/clade/v1/groups").status, 200);
    assert_eq!(daemon.get("/v1/groups").status, 200);
    let style = page(&daemon, "/clade/")
        .split("href=\"")
        .find_map(|it| it.strip_prefix("/clade/assets/console.").map(str::to_owned));
    let style = format!("/clade/assets/console.{}", style.unwrap().split('"').next().unwrap());
    let answer = daemon.get(&style);
    assert_eq!(answer.header("Cache-Control"), Some("public, max-age=31536000, immutable"));
}

/// Every address that a page of the console leads to answers, and every group with the commit that has it.
fn assert_links_lead_somewhere(daemon: &Daemon, path: &str) -> Vec<String> {
    let found = links(&page(daemon, path));
    for link in &found {
        let address = link.split('#').next().unwrap();
        // "Back to now" leads to the group as it is now, if it still is.
        let now = path.split_once("commit=").map_or("", |(now, _)| now);
        let is_now = address == now.trim_end_matches(['?', '&']);
        if address.is_empty() || address.starts_with("/assets/") || is_now {
            continue;
        }
        let answer = daemon.request_with("GET", address, "Accept: text/html\r\n", "");
        assert!(answer.status < 400, "{path} leads to {link}: {} {}", answer.status, answer.body);
    }
    found
}

/// A repository whose second commit removes a group, whose branch `topic` has another one, and a node that was in
/// both of the first two.
fn past_and_topic() -> (GitRepository, Daemon, [String; 3]) {
    let repository = GitRepository::new();
    let gone = "name: Gone\nrule: name ~ web\nvariables: {gone: 1}\n";
    let stays = "name: Stays\nrule: name ~ web\nvariables: {stays: 1}\n";
    let first = repository.commit("first", &[("groups/gone.yaml", gone), ("groups/a.yaml", stays)]);
    let topic = repository.commit("topic", &[("groups/new.yaml", "name: New\nrule: name ~ web\n")]);
    let git = repository.git();
    git.reference("refs/heads/topic", topic.parse().unwrap(), true, "").unwrap();
    git.reference("refs/heads/main", first.parse().unwrap(), true, "").unwrap();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let check_in = |commit: &str| {
        daemon.wait_until("the commit answers", |it| {
            it.get("/controller/status").json()["active"]["commit"] == commit
        });
        assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", "{}").status, 200);
        daemon.wait_until("the check-in is kept", |it| {
            it.get("/controller/nodes/web1").json()["commit"] == commit
        });
    };
    check_in(&first);
    let removed = [
        ("groups/gone.yaml", ""),
        ("groups/new.yaml", ""),
        ("nodes/db1.yaml", "variables: {x: 1}\n"),
    ];
    let second = repository.commit("second", &removed);
    check_in(&second);
    (repository, daemon, [first, second, topic])
}

#[test]
fn links_to_groups_name_a_commit_that_has_them() {
    let (_repository, daemon, [first, second, topic]) = past_and_topic();
    let groups = |path: &str| {
        let found = assert_links_lead_somewhere(&daemon, path);
        found.into_iter().filter(|it| it.starts_with("/groups/")).collect::<Vec<String>>()
    };
    let compared = groups(&format!("/compare/{first}...{second}"));
    assert!(compared.iter().any(|it| it.ends_with(&format!("?commit={first}"))), "{compared:?}");
    let topics = groups(&format!("/compare/{second}...{topic}"));
    assert!(topics.iter().any(|it| it.ends_with(&format!("?commit={topic}"))), "{topics:?}");
    for path in ["/nodes/web1", "/nodes/web1/history", &format!("/nodes/web1?commit={first}")] {
        let found = groups(path);
        assert!(
            found.iter().any(|it| it.ends_with(&format!("?commit={first}"))),
            "{path}: {found:?}"
        );
    }
    // What is live is shown as live.
    assert!(groups("/nodes/web1/history").iter().any(|it| !it.contains('?')));
}

#[test]
fn links_of_another_point_of_history_keep_it() {
    let repository = GitRepository::new();
    let children = joined(0..160, |it| format!("---\nname: Child {it}\nparent: Top\n"));
    let top = format!("name: Top\n{children}---\nname: Leaf\nparent: Child 0\n");
    let first = repository.commit("first", &[("groups/top.yaml", &top)]);
    repository.commit("second", &[("groups/top.yaml", "name: Other\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let all = daemon.get(&format!("/v1/groups?commit={first}")).json();
    let id = |name: &str| {
        let found = all.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    for path in [
        format!("/groups/{}", id("Top")),
        format!("/groups?under={}", id("Child 0")),
        "/groups?name=Leaf".to_owned(),
    ] {
        let separator = if path.contains('?') { '&' } else { '?' };
        let found =
            assert_links_lead_somewhere(&daemon, &format!("{path}{separator}commit={first}"));
        // That of "back to now" is the page itself.
        let below = found.iter().filter(|it| it.contains("under=") && **it != path);
        for link in below {
            assert!(link.ends_with(&format!("&commit={first}")), "{path}: {link}");
        }
    }
}

#[test]
fn long_lists_say_what_they_leave_out_and_where_it_is() {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let groups = joined(0..450, |it| format!("---\nname: G{it}\nrule: name = none\n"));
    let values = joined(0..2_100, |it| format!("  v{it}: {it}\n"));
    let many = format!("name: A\nrule: name ~ web\nvariables:\n{values}");
    let second = repository
        .commit("second", &[("groups/many.yaml", &groups[4..]), ("groups/a.yaml", &many)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", "{}").status, 200);
    daemon.wait_until("the check-in is kept", |it| it.get("/controller/nodes/web1").status == 200);
    let all = daemon.get("/v1/groups").json();
    let a = all.as_array().unwrap().iter().find(|it| it["name"] == "A").unwrap();
    let a = format!("/groups/{}", a["id"].as_str().unwrap());
    for (path, said, json) in [
        (
            &*format!("/compare/{first}...{second}"),
            "251 more differences in the JSON of the comparison .",
            &*format!("/controller/diff/{first}/{second}"),
        ),
        (&a, "100 more values in the JSON of the group .", &format!("/v1{a}?inherited=true")),
        (
            "/nodes/web1",
            "1 604 more values in the JSON of the history .",
            "/controller/nodes/web1/history?limit=10",
        ),
        (
            "/nodes/web1/history",
            "1 604 more values in the JSON of the history .",
            "/controller/nodes/web1/history?limit=50",
        ),
    ] {
        let page = page(&daemon, path);
        let words = text(&page);
        let left_out: Vec<&str> = words.split(". ").filter(|it| it.contains(" more ")).collect();
        assert!(words.contains(said), "{path}: {said}: {left_out:?}");
        assert!(links(&page).iter().any(|it| it == json), "{path} does not lead to {json}");
        assert_eq!(daemon.get(json).status, 200, "{json}");
    }
}

#[test]
fn a_page_behind_the_end_of_a_list_says_so() {
    let fleet = shared_fleet();
    let web = "58463036-0efa-4365-b367-b5401c0711d3";
    for path in [
        "/nodes?offset=99999",
        "/nodes?q=web&offset=99999",
        "/groups?offset=99999",
        "/groups?name=e&offset=99999",
        "/query?rule=name%20~%20e&offset=99999",
        "/commits?offset=99999",
        &format!("/groups/{web}?offset=99999"),
    ] {
        let found = page(&fleet.daemon, path);
        let words = text(&found);
        assert!(words.contains("There is nothing on this page: "), "{path}: {words}");
        for wrong in ["No node", "No group", "99 999"] {
            assert!(!words.contains(wrong), "{path}: {words}");
        }
        let first = path.rsplit_once(['?', '&']).unwrap().0;
        assert!(links(&found).iter().any(|it| it.starts_with(first)), "{path}: {found}");
    }
}

#[test]
fn problems_are_listed_while_no_commit_answers() {
    let (invalid, stale) = (GitRepository::new(), GitRepository::new());
    invalid.commit("bad", &[("groups/a.yaml", "name: A\nparent: Nowhere\n")]);
    stale.commit("good", &[("groups/a.yaml", "name: A\n")]);
    let stale_at = ["--max-staleness", "1s", "--on-stale", "refuse", "--interval", "1h"];
    for (repository, more, said) in
        [(invalid, &[][..], "ValidationFailed"), (stale, &stale_at, "MaxStalenessExceeded")]
    {
        let path = repository.text_path();
        let daemon = Daemon::start(&[&["--repo", path.as_str()], more].concat());
        daemon.wait_until("no commit answers", |it| it.get("/v1/groups").status == 503);
        let words = text(&page(&daemon, "/problems"));
        assert!(words.contains("The controller") && words.contains(said), "{words}");
        assert!(!words.contains("Nothing is wrong"), "{words}");
    }
}

/// Nothing explains what a node gets whose facts are not kept.
#[test]
fn a_node_without_facts_leads_to_no_explanation() {
    let repository = GitRepository::new();
    repository.commit("one", &[("groups/a.yaml", "name: A\nrule: a = 1\n")]);
    for (kept, explained) in [("none", false), ("all", true)] {
        let daemon = Daemon::start(&["--repo", &repository.text_path(), "--store-facts", kept]);
        let facts = r#"{"fact": {"a": 1}}"#;
        assert_eq!(daemon.request("POST", "/v1/classified/nodes/web1", facts).status, 200);
        daemon.wait_until("the check-in is kept", |it| {
            it.get("/controller/nodes/web1").status == 200
        });
        let found = assert_links_lead_somewhere(&daemon, "/nodes/web1");
        assert_eq!(
            found.iter().any(|it| it.ends_with("/explanation")),
            explained,
            "{kept}: {found:?}"
        );
    }
}

#[test]
fn pages_are_shown_while_the_store_cannot_be_read() {
    let repository = GitRepository::new();
    let web = "58463036-0efa-4365-b367-b5401c0711d3";
    let file = format!("name: Web\nid: {web}\nrule: name = web1\n");
    repository.commit("The web", &[("groups/web.yaml", &file)]);
    // Nothing listens there.
    let store = "postgres://clade@127.0.0.1:9/clade";
    let daemon = Daemon::start(&["--repo", &repository.text_path(), "--store", store]);
    let failed = "\"CheckInsFailed\"";
    daemon.wait_until("the store fails", |it| it.get("/controller/status").body.contains(failed));
    let reason = "the check-ins cannot be";
    let group = format!("/groups/{web}");
    let rows: [(&str, &[&str]); 6] = [
        ("/", &["The newest commit answers", "The nodes are not known now.", "CheckInsFailed"]),
        (
            "/problems",
            &["CheckInsFailed", "What is wrong with nodes, groups and pins is not known"],
        ),
        ("/commits", &["The web", "not known"]),
        ("/commits/HEAD", &["The web", "not known now: "]),
        ("/groups", &["Web", "The numbers of nodes are not known now."]),
        (&group, &["Web", "The nodes are not known now."]),
    ];
    each_row(rows, |(path, expected)| {
        let text = text(&page(&daemon, path));
        for words in expected {
            assert!(text.contains(words), "{path} lacks {words}: {text}");
        }
        assert!(!text.contains("Nothing is wrong"), "{path}: {text}");
    });
    // What is about nodes alone says why it is not there.
    each_row([("/nodes",), ("/compare/HEAD...HEAD",)], |(path,)| {
        let answer = daemon.request_with("GET", path, "Accept: text/html\r\n", "");
        assert_eq!(answer.status, 503, "{path}");
        let text = text(&answer.body);
        assert!(text.contains("CheckInsFailed") && text.contains(reason), "{path}: {text}");
    });
}
