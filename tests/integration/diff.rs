//! `clade diff` over real repositories: what reviewers see.

mod limits;

use indoc::{formatdoc, indoc};
use serde_json::{Value, json};

use crate::git::server::Server;
use crate::program::{Daemon, GitRepository, run};

const BASE: &str =
    "name: Base\nrule: os.family = Debian\nclasses: {base: {}, ntp: {servers: [a]}}\n";
const WEB: &str = indoc! {"
    name: Webservers
    parent: Base
    rule: trusted.extensions.pp_role = web
    classes: {apache: {port: 80}}
    variables: {tier: front}
"};
const CANARY: &str =
    "name: Canary\nparent: Webservers\nrule: name ~ canary\nclasses: {apache: {port: 8080}}\n";
const STAGING: &str = "name: Staging\nrule: name ~ \"^stg\"\nenvironment: staging\n";

fn assert_is_of_the_schema(document: &Value) {
    let schema = std::fs::read(crate::program::root().join("schemas/diff.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(document).map(|it| it.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {document:#}");
}

struct Fleet {
    repository: GitRepository,
    facts: tempfile::TempDir,
}

impl Fleet {
    fn new() -> Self {
        let repository = GitRepository::new();
        repository.commit(
            "first",
            &[
                ("groups/base.yaml", BASE),
                ("groups/web.yaml", WEB),
                ("groups/canary.yaml", CANARY),
                ("groups/staging.yaml", STAGING),
            ],
        );
        let facts = tempfile::tempdir().unwrap();
        for (name, family, role) in [
            ("web1", "Debian", "web"),
            ("web2", "Debian", "web"),
            ("web3", "RedHat", "web"),
            ("canary1", "Debian", "web"),
            ("stg1", "Suse", "db"),
            ("db1", "Debian", "db"),
        ] {
            let body = json!({
                "fact": {"os": {"family": family}},
                "trusted": {"certname": name, "extensions": {"pp_role": role}},
            });
            std::fs::write(facts.path().join(format!("{name}.json")), body.to_string()).unwrap();
        }
        Self { repository, facts }
    }

    fn diff(&self, base: &str, more: &[&str]) -> crate::program::Done {
        let (repo, facts) = (self.repository.text_path(), self.facts.path().to_str().unwrap());
        run(&[&["diff", base, "--repo", &repo, "--facts", facts], more].concat())
    }
}

#[test]
fn a_node_that_cannot_be_evaluated_is_counted_and_not_called_unchanged() {
    let fleet = Fleet::new();
    let withheld = json!({"fact": {"os": {"family": "[masked]"}}});
    std::fs::write(fleet.facts.path().join("hidden.json"), withheld.to_string()).unwrap();
    let other = "name: Other\nrule: name = other\n";
    fleet.repository.commit("other", &[("groups/other.yaml", other)]);
    for (options, status) in [(&["HEAD"][..], 0), (&["HEAD", "--exit-code"], 1)] {
        let markdown = fleet.diff("HEAD~1", &[options, &["--format", "markdown"]].concat());
        assert_eq!((markdown.status, markdown.stderr.as_str()), (status, ""));
        let lines = [
            "### Classification: no node of 7 changes, 1 not known",
            "> Rules cannot be evaluated on 1 node, before and after: whether the change affects them is not known.",
        ];
        let has = |line: &&str| markdown.stdout.lines().any(|it| it == *line);
        assert!(lines.iter().all(has), "{}", markdown.stdout);
        let human = fleet.diff("HEAD~1", options);
        assert_eq!(human.status, status);
        let line = "rules cannot be evaluated on 1 node before and after";
        assert!(human.stdout.contains(line), "{}", human.stdout);
    }
}

#[test]
fn a_narrowed_rule_shows_who_leaves_and_why() {
    let fleet = Fleet::new();
    let narrowed = WEB.replace("pp_role = web", "pp_role = web and name != web2");
    fleet.repository.commit("narrow", &[("groups/web.yaml", &narrowed)]);
    let done = fleet.diff("HEAD~1", &["HEAD", "--exit-code"]);
    assert_eq!((done.status, done.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(done.stdout, @r#"
    1 of 6 nodes change between HEAD~1 and HEAD

    1 node: web2
      - group       Webservers  <- Webservers: rule changed (groups/web.yaml:3)
      - class       apache
      apache::port  80 -> not set
      $tier         "front" -> not set
    "#);
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["--format", "markdown"]).stdout, @r#"
    <!-- clade-diff -->
    ### Classification: 1 of 6 nodes change

    | group | change | nodes |
    |---|---|--:|
    | Webservers | rule changed (`groups/web.yaml:3`) | 1 |

    <details><summary><b>1 node: web2</b> · 1 class, 2 values</summary>

    | | before | after | because |
    |---|---|---|---|
    | group | **−** Webservers |  | Webservers: rule changed (groups/web.yaml:3) |
    | class | **−** `apache` |  | Webservers: rule changed (groups/web.yaml:3) |
    | `apache::port` | `80` | *not set* | Webservers: rule changed (groups/web.yaml:3) |
    | `$tier` | `"front"` | *not set* | Webservers: rule changed (groups/web.yaml:3) |

    </details>

    <sub>HEAD~1 → working tree</sub>
    "#);
}

#[test]
fn a_renamed_group_with_children_is_one_change() {
    let fleet = Fleet::new();
    let renamed = WEB.replace("name: Webservers", "name: Web servers");
    let child = CANARY.replace("parent: Webservers", "parent: Web servers");
    fleet
        .repository
        .commit("rename", &[("groups/web.yaml", &renamed), ("groups/canary.yaml", &child)]);
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["--format", "markdown"]).stdout, @r#"
    <!-- clade-diff -->
    ### Classification: 3 of 6 nodes change

    | group | change | nodes |
    |---|---|--:|
    | Web servers | renamed from Webservers (`groups/web.yaml:1`) | 3 |
    | Canary | parent changed (`groups/canary.yaml:2`) | 0 |

    <details><summary><b>3 nodes: canary1, web1, web2</b></summary>

    | | before | after | because |
    |---|---|---|---|
    | group | Webservers | Web servers | Web servers: renamed from Webservers (groups/web.yaml:1) |

    </details>

    <sub>HEAD~1 → working tree</sub>
    "#);
}

#[test]
fn a_trump_added_shows_the_environments_it_takes() {
    let fleet = Fleet::new();
    let trump = "name: Frozen\nrule: name ~ \"^(stg1|web1)$\"\nenvironment: frozen\nenvironment_trumps: true\n";
    let loud = "name: Loud\nrule: name = db1\nclasses: {ntp: {servers: [b]}}\n";
    fleet.repository.commit("trump", &[("groups/frozen.yaml", trump), ("groups/loud.yaml", loud)]);
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["--format", "markdown"]).stdout, @r#"
    <!-- clade-diff -->
    ### Classification: 3 of 6 nodes change

    > [!CAUTION]
    > Conflicts appear on 1 node: the agents there will fail.

    | group | change | nodes |
    |---|---|--:|
    | Frozen | new (`groups/frozen.yaml:1`) | 2 |
    | Loud | new (`groups/loud.yaml:1`) | 1 |

    <details><summary><b>1 node: db1</b> · CONFLICT</summary>

    | | before | after | because |
    |---|---|---|---|
    | group |  | **+** Loud | Loud: new (groups/loud.yaml:1) |
    | conflict |  | **conflict**: The node was classified into groups named "Base" and "Loud" that defined conflicting values for the class parameters "ntp::servers". | Loud: new (groups/loud.yaml:1) |

    </details>

    <details><summary><b>1 node: stg1</b> · environment staging → frozen</summary>

    | | before | after | because |
    |---|---|---|---|
    | group |  | **+** Frozen | Frozen: new (groups/frozen.yaml:1) |
    | environment | `staging` | `frozen` | Frozen: new (groups/frozen.yaml:1) |

    </details>

    <details><summary><b>1 node: web1</b> · environment production → frozen</summary>

    | | before | after | because |
    |---|---|---|---|
    | group |  | **+** Frozen | Frozen: new (groups/frozen.yaml:1) |
    | environment | `production` | `frozen` | Frozen: new (groups/frozen.yaml:1) |

    </details>

    <sub>HEAD~1 → working tree</sub>
    "#);
}

#[test]
fn the_working_tree_is_compared_without_a_second_revision() {
    let fleet = Fleet::new();
    let path = fleet.repository.path().join("groups/staging.yaml");
    std::fs::write(&path, STAGING.replace("environment: staging", "environment: production"))
        .unwrap();
    let done = fleet.diff("HEAD", &["--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_is_of_the_schema(&document);
    assert_eq!(document["head"], json!({"revision": "working tree", "commit": null}));
    assert_eq!(
        document["summary"],
        json!({
            "nodes": 6, "changed": 1,
            "conflicts_appearing": 0, "conflicts_disappearing": 0, "conflicts_staying": 0,
            "errors_appearing": 0, "errors_disappearing": 0, "errors_staying": 0,
            "unclassified_before": 0, "unclassified_after": 0,
        })
    );
    let change = &document["changes"][0];
    assert_eq!(change["nodes"], json!(["stg1"]));
    assert_eq!(change["groups"]["renamed"][0]["to"]["name"], "Staging");
    assert_eq!(change["environment"], json!({"old": "staging", "new": "production"}));
    assert_eq!(change["causes"][0]["file"], "groups/staging.yaml");
}

#[test]
fn a_comparison_that_cannot_run_is_reported() {
    let fleet = Fleet::new();
    std::fs::write(fleet.facts.path().join("half.json"), "{\"os\": {").unwrap();
    let done = fleet.diff("HEAD", &[]);
    assert_eq!(
        (done.status, done.stdout.lines().next()),
        (2, Some("0 of 6 nodes change between HEAD and working tree"))
    );
    assert!(
        done.stderr
            .contains("half.json` cannot be read: line 1, column 8: EOF while parsing an object\n"),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains(
            "error: 1 facts file could not be read; --ignore-bad-facts continues without it\n"
        ),
        "{}",
        done.stderr
    );
    assert_eq!(fleet.diff("HEAD", &["--ignore-bad-facts"]).status, 0);
    let unknown = fleet.diff("nope", &[]);
    assert_eq!(
        (unknown.status, unknown.stderr.as_str()),
        (2, "error: `nope` is not a commit of the repository\n")
    );
    fleet.repository.commit("bad", &[("groups/bad.yaml", "name: Bad\nparent: Nowhere\n")]);
    let bad = fleet.diff("HEAD~1", &["HEAD"]);
    assert_eq!(bad.status, 2);
    assert!(
        bad.stderr.starts_with(
            "error: `HEAD` is not valid, so no node can be classified there: groups/bad.yaml:2:9: "
        ),
        "{}",
        bad.stderr
    );
    let path = fleet.repository.text_path();
    let see = format!("; see `clade validate {path} --rev HEAD`\n");
    assert!(bad.stderr.ends_with(&see), "{}", bad.stderr);
    let none = run(&["diff", "HEAD", "--repo", &path]);
    assert_eq!(none.status, 2);
}

#[test]
fn undoing_a_cause_undoes_the_difference() {
    let fleet = Fleet::new();
    fleet.repository.commit(
        "values of nodes",
        &[("nodes/web1.yaml", "classes: {own: {}}\n"), ("nodes/db1.yaml", "classes: {own: {}}\n")],
    );
    // The ancestor changes, but the narrower rule is what moves web2; two pull ntp of stg1 apart
    // only together.
    fleet.repository.commit(
        "mixed",
        &[
            ("groups/base.yaml", &BASE.replace("Debian", "Debian or name = stg1")),
            ("groups/web.yaml", &WEB.replace("pp_role = web", "pp_role = web and name != web2")),
            ("nodes/web1.yaml", "classes: {other: {}}\n"),
            ("groups/loud.yaml", "name: Loud\nrule: name = stg1\nclasses: {ntp: {servers: [a]}}\n"),
        ],
    );
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["HEAD"]).stdout, @r#"
    3 of 6 nodes change between HEAD~1 and HEAD
    conflicts appear on 1 node

    1 node: stg1
      + group   Base  <- Base: rule changed (groups/base.yaml:2)
      + group   Loud  <- Loud: new (groups/loud.yaml:1)
      conflict  The node was classified into groups named "Base", "Loud", and "Staging" that defined conflicting values for the environment.  <- only together: Base: rule changed (groups/base.yaml:2) + Loud: new (groups/loud.yaml:1)

    1 node: web1
      + class  other  <- node web1: classes changed (nodes/web1.yaml:1)
      - class  own

    1 node: web2
      - group       Webservers  <- Webservers: rule changed (groups/web.yaml:3)
      - class       apache
      apache::port  80 -> not set
      $tier         "front" -> not set
    "#);
    let done = fleet.diff("HEAD~1", &["HEAD", "--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_is_of_the_schema(&document);
    assert_eq!(document["node_files"][0]["file"], "nodes/web1.yaml");
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["--format", "markdown"]).stdout, @r#"
    <!-- clade-diff -->
    ### Classification: 3 of 6 nodes change

    > [!CAUTION]
    > Conflicts appear on 1 node: the agents there will fail.

    | group | change | nodes |
    |---|---|--:|
    | Base | rule changed (`groups/base.yaml:2`) | 1 |
    | Loud | new (`groups/loud.yaml:1`) | 1 |
    | Webservers | rule changed (`groups/web.yaml:3`) | 1 |
    | node web1 | classes changed (`nodes/web1.yaml:1`) | 1 |

    <details><summary><b>1 node: stg1</b> · CONFLICT</summary>

    | | before | after | because |
    |---|---|---|---|
    | group |  | **+** Base | Base: rule changed (groups/base.yaml:2) |
    | group |  | **+** Loud | Loud: new (groups/loud.yaml:1) |
    | conflict |  | **conflict**: The node was classified into groups named "Base", "Loud", and "Staging" that defined conflicting values for the environment. | only together:<br>Base: rule changed (groups/base.yaml:2)<br>Loud: new (groups/loud.yaml:1) |

    </details>

    <details><summary><b>1 node: web1</b> · 2 classes</summary>

    | | before | after | because |
    |---|---|---|---|
    | class |  | **+** `other` | node web1: classes changed (nodes/web1.yaml:1) |
    | class | **−** `own` |  | node web1: classes changed (nodes/web1.yaml:1) |

    </details>

    <details><summary><b>1 node: web2</b> · 1 class, 2 values</summary>

    | | before | after | because |
    |---|---|---|---|
    | group | **−** Webservers |  | Webservers: rule changed (groups/web.yaml:3) |
    | class | **−** `apache` |  | Webservers: rule changed (groups/web.yaml:3) |
    | `apache::port` | `80` | *not set* | Webservers: rule changed (groups/web.yaml:3) |
    | `$tier` | `"front"` | *not set* | Webservers: rule changed (groups/web.yaml:3) |

    </details>

    <sub>HEAD~1 → working tree</sub>
    "#);
}

#[test]
fn the_place_of_a_cause_is_the_line_of_the_changed_key() {
    let fleet = Fleet::new();
    let web = |port: u16, tier: &str, more: &str| {
        formatdoc!(
            r#"
                # The web.
                name: Webservers
                parent: Base
                rule: trusted.extensions.pp_role = web
                classes:
                  "::apache":
                    docroot: /srv
                    port: {port}
                {more}variables:
                  tier: {tier}
            "#
        )
    };
    let two = |web: &str| format!("name: Other\nrule: name = none\n---\n{web}");
    let node = |value: u8| format!("variables:\n  other: 1\n  own: {value}\n");
    let before = fleet.repository.commit(
        "before",
        &[
            ("groups/web.yaml", &two(&web(80, "front", "    gone: 1\n  ssl: {}\n"))),
            ("nodes/web1.yaml", &node(1)),
        ],
    );
    // The file moves, too.
    fleet.repository.commit(
        "after",
        &[
            ("groups/web.yaml", ""),
            ("groups/front.yaml", &two(&web(8080, "back", ""))),
            ("nodes/web1.yaml", &node(2)),
        ],
    );
    let done = fleet.diff(&before, &["HEAD", "--format", "json"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_is_of_the_schema(&document);
    // Lines of groups/front.yaml: 9 is `::apache`, 11 its port, 13 the tier.
    let lines = |document: &Value| -> std::collections::BTreeMap<String, Value> {
        let changes = document["changes"].as_array().unwrap().iter();
        let because = changes.flat_map(|it| it["because"].as_array().unwrap());
        because
            .map(|it| (it["name"].as_str().unwrap().to_owned(), it["causes"][0]["line"].clone()))
            .collect()
    };
    let expected =
        [("apache::gone", 9), ("apache::port", 11), ("own", 3), ("ssl", 8), ("tier", 13)];
    let expected: std::collections::BTreeMap<String, Value> =
        expected.into_iter().map(|(name, line)| (name.to_owned(), line.into())).collect();
    assert_eq!(lines(&document), expected);
    assert_eq!(document["groups"][0]["line"], 8, "the first of them");
    let human = fleet.diff(&before, &["HEAD"]).stdout;
    assert!(
        human.contains("Webservers: classes, variables changed (groups/front.yaml:11)"),
        "{human}"
    );
    assert!(human.contains("node web1: variables changed (nodes/web1.yaml:3)"), "{human}");
    let markdown = fleet.diff(&before, &["HEAD", "--format", "markdown"]).stdout;
    assert!(markdown.contains("(groups/front.yaml:13) |"), "{markdown}");

    let daemon = Daemon::start(&["--repo", &fleet.repository.text_path()]);
    let body =
        r#"{"fact": {"os": {"family": "Debian"}}, "trusted": {"extensions": {"pp_role": "web"}}}"#;
    assert_eq!(daemon.request("POST", "/v1/classified/nodes/web2", body).status, 200);
    daemon.wait_until("the check-in is there", |it| it.get("/v1/nodes/web2").status == 200);
    let answer = daemon.get(&format!("/controller/diff/{before}/HEAD")).json();
    // This node has no values of its own.
    let mut of_groups = expected;
    of_groups.remove("own");
    assert_eq!(lines(&answer), of_groups);
    let places = |document: &Value| {
        let files = document["node_files"].as_array().unwrap().iter();
        files.map(|it| (it["file"].clone(), it["line"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(places(&answer), [("nodes/web1.yaml".into(), 3.into())]);
    assert_eq!(places(&answer), places(&document));
}

#[test]
fn an_evaluation_error_is_not_a_conflict() {
    // One pattern that exceeds its budget for one value.
    let slow = "name: Slow\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\n";
    let fleet = Fleet::new();
    fleet.repository.commit("slow", &[("groups/slow.yaml", slow)]);
    let body = json!({"fact": {"x": format!("{}!", "a".repeat(10_000))}, "trusted": {}});
    std::fs::write(fleet.facts.path().join("slow1.json"), body.to_string()).unwrap();
    let done = fleet.diff("HEAD~1", &["HEAD", "--format", "json"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let count = |key: &str| document["summary"][key].as_u64().unwrap();
    assert_eq!((count("errors_appearing"), count("conflicts_appearing")), (1, 0), "{document:#}");
    let human = fleet.diff("HEAD~1", &["HEAD"]).stdout;
    assert!(human.contains("rules can no longer be evaluated on 1 node"), "{human}");
    assert!(!human.contains("conflict"), "{human}");
}

#[test]
fn a_group_without_id_in_another_environment_shows_its_change() {
    let fleet = Fleet::new();
    let moved = STAGING.replace("environment: staging", "environment: testing");
    fleet.repository.commit("move", &[("groups/staging.yaml", &moved)]);
    let done = fleet.diff("HEAD~1", &["HEAD"]);
    let line = done.stdout.lines().find(|it| it.starts_with("  group")).unwrap_or_default();
    let (before, after) = line.split_once(" -> ").unwrap();
    assert!(before.contains("Staging (id ") && after.starts_with("Staging (id "), "{line}");
    assert_ne!(before.split_once("(id").unwrap().1, after.split_once("(id").unwrap().1);
    assert!(after.contains("<- Staging: environment changed (and so its id)"), "{line}");
}

#[test]
fn a_conflict_of_other_values_is_a_difference() {
    let fleet = Fleet::new();
    let loud = "name: Loud\nrule: name = db1\nclasses: {ntp: {servers: [b]}}\n";
    fleet.repository.commit("loud", &[("groups/loud.yaml", loud)]);
    fleet.repository.commit("louder", &[("groups/loud.yaml", &loud.replace("[b]", "[c]"))]);
    insta::assert_snapshot!(fleet.diff("HEAD~1", &["HEAD"]).stdout, @r#"
    1 of 6 nodes change between HEAD~1 and HEAD
    1 node in conflict before and after
    1 of 6 nodes has no classification (before: 1)

    1 node: db1
      conflict  The node was classified into groups named "Base" and "Loud" that defined conflicting values for the class parameters "ntp::servers". ntp::servers: ["a"] (Base), ["b"] (Loud). -> The node was classified into groups named "Base" and "Loud" that defined conflicting values for the class parameters "ntp::servers". ntp::servers: ["a"] (Base), ["c"] (Loud).  <- Loud: classes changed (groups/loud.yaml:3)
    "#);
    insta::assert_snapshot!(fleet.diff("HEAD", &["HEAD"]).stdout, @r#"
    0 of 6 nodes change between HEAD and HEAD
    1 node in conflict before and after
    1 of 6 nodes has no classification (before: 1)
    no group differs
    "#);
}

#[test]
fn ranges_are_read_as_git_reads_them() {
    let fleet = Fleet::new();
    let narrowed = WEB.replace("pp_role = web", "pp_role = web and name != web2");
    let git = fleet.repository.git();
    let trunk = git.head().unwrap().shorthand().unwrap().to_owned();
    let first = git.head().unwrap().peel_to_commit().unwrap();
    git.branch("change", &first, false).unwrap();
    // The trunk gets another group while the branch narrows one.
    let loud = "name: Loud\nrule: name = db1\nclasses: {loud: {}}\n";
    fleet.repository.commit("trunk", &[("groups/loud.yaml", loud)]);
    git.set_head("refs/heads/change").unwrap();
    git.reset(first.as_object(), git2::ResetType::Hard, None).unwrap();
    fleet.repository.commit("narrow", &[("groups/web.yaml", &narrowed)]);
    let headline = |range: &str| {
        let done = fleet.diff(range, &[]);
        assert_eq!((done.status, done.stderr.as_str()), (0, ""), "{range}");
        done.stdout.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        headline(&format!("{trunk}..change")),
        format!("2 of 6 nodes change between {trunk} and change")
    );
    let since = format!("1 of 6 nodes change between merge base of {trunk} and change and change");
    assert_eq!(headline(&format!("{trunk}...change")), since);
    assert_eq!(
        headline(&format!("{trunk}...")),
        format!("1 of 6 nodes change between merge base of {trunk} and HEAD and HEAD")
    );
    let twice = fleet.diff("a..b", &["HEAD"]);
    assert_eq!(twice.status, 2);
    assert_eq!(twice.stderr, "error: `a..b` names both revisions: leave out `HEAD`\n");
}

#[test]
fn the_check_ins_of_a_daemon_are_nodes_too() {
    let fleet = Fleet::new();
    let daemon = Daemon::start(&["--repo", &fleet.repository.text_path()]);
    for number in 0..3 {
        let body = json!({"fact": {"os": {"family": "Debian"}}, "trusted": {"extensions": {"pp_role": "web"}}});
        let path = format!("/v1/classified/nodes/web{number}");
        assert_eq!(daemon.request("POST", &path, &body.to_string()).status, 200);
    }
    let narrowed = WEB.replace("pp_role = web", "pp_role = web and name != web2");
    fleet.repository.commit("narrow", &[("groups/web.yaml", &narrowed)]);
    let url = format!("http://{}", daemon.address);
    let repo = fleet.repository.text_path();
    let done = run(&["diff", "HEAD~1", "HEAD", "--repo", &repo, "--server", &url]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(
        done.stdout.starts_with("1 of 3 nodes change between HEAD~1 and HEAD\n"),
        "{}",
        done.stdout
    );
    // The daemon says the same by itself.
    let done =
        run(&["diff", "HEAD~1", "HEAD", "--repo", &repo, "--server", &url, "--format", "json"]);
    let said: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_is_of_the_schema(&said);
    let answer = daemon.get("/controller/diff/HEAD~1/HEAD");
    assert_eq!((answer.status, answer.json()), (200, said));
    assert_eq!(daemon.get("/controller/diff/HEAD/nope").json()["kind"], "unknown-commit");
}

#[test]
fn a_daemon_compares_its_nodes_itself_where_it_knows_both_commits() {
    let fleet = Fleet::new();
    fleet.repository.commit("own", &[("nodes/web1.yaml", "variables: {own: 1}\n")]);
    let daemon = Daemon::start(&["--repo", &fleet.repository.text_path()]);
    for (name, family) in [("web1", "Debian"), ("web2", "Debian"), ("db1", "Suse")] {
        let body = json!({"fact": {"os": {"family": family}}, "trusted": {"extensions": {"pp_role": "web"}}});
        let path = format!("/v1/classified/nodes/{name}");
        assert_eq!(daemon.request("POST", &path, &body.to_string()).status, 200);
    }
    let narrowed = WEB.replace("pp_role = web", "pp_role = web and name != web2");
    let loud = "name: Loud\nrule: os.family = Suse\nclasses: {loud: {level: 1.50}}\nvariables: {x: [1, a]}\n";
    fleet.repository.commit(
        "narrow",
        &[
            ("groups/web.yaml", &narrowed),
            ("groups/loud.yaml", loud),
            ("nodes/web1.yaml", "variables:\n  own: 2\n"),
        ],
    );
    let url = format!("http://{}", daemon.address);
    let diff = |repo: &str, revisions: &[&str], format: &str| {
        let more = ["--repo", repo, "--server", &url, "--format", format];
        run(&[&["diff"], revisions, &more].concat())
    };
    let repo = fleet.repository.text_path();
    let asking = format!("asking {url}\n");
    for format in ["human", "markdown", "json"] {
        let there = diff(&repo, &["HEAD~1", "HEAD"], format);
        assert_eq!((there.status, there.stderr.as_str()), (0, asking.as_str()));
        // The working tree is the same, and is compared here.
        let here = diff(&repo, &["HEAD~1"], format);
        let note = "note: the nodes of the daemon are fetched and compared here: it knows commits, and not a working tree\n";
        assert_eq!((here.status, &here.stderr), (0, &format!("{asking}{note}")));
        if format == "json" {
            let [mut there, mut here] =
                [there, here].map(|it| serde_json::from_str::<Value>(&it.stdout).unwrap());
            for document in [&mut there, &mut here] {
                document["head"] = Value::Null;
            }
            assert_eq!(there, here);
        } else {
            let [there, here] = [there, here].map(|it| it.stdout.replace("working tree", "HEAD"));
            assert_eq!(there, here);
        }
    }
    let other = GitRepository::new();
    other.commit("elsewhere", &[("groups/base.yaml", BASE)]);
    other.commit("change", &[("groups/base.yaml", &BASE.replace("[a]", "[b]"))]);
    let done = diff(&other.text_path(), &["HEAD~1", "HEAD"], "human");
    assert!(done.stdout.starts_with("2 of 3 nodes change"), "{} {}", done.stdout, done.stderr);
    assert!(
        done.stderr.contains("fetched and compared here: the daemon answers 404"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_page_of_nodes_may_be_as_large_as_their_facts_are() {
    let fleet = Fleet::new();
    let facts = json!({"os": {"family": "Debian"}, "much": "x".repeat(24_000)});
    let nodes: Vec<Value> = (0..500)
        .map(|number| {
            let trusted = json!({"extensions": {"pp_role": "web"}});
            json!({"certname": format!("web{number}"), "facts": facts, "trusted": trusted})
        })
        .collect();
    let document = Value::from(nodes).to_string();
    let puppetdb = Server::http(move |_| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", document.len());
        [head.as_bytes(), document.as_bytes()].concat()
    });
    let url = format!("http://127.0.0.1:{}", puppetdb.port);
    let narrowed = WEB.replace("pp_role = web", "pp_role = web and name != web2");
    fleet.repository.commit("narrow", &[("groups/web.yaml", &narrowed)]);
    let repo = fleet.repository.text_path();
    let done = run(&["diff", "HEAD~1", "HEAD", "--repo", &repo, "--puppetdb", &url]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    assert!(done.stdout.starts_with("1 of 500 nodes change between HEAD~1 and HEAD\n"));
}

#[test]
fn validation_asks_the_fleet() {
    let fleet = Fleet::new();
    let loud = "name: Loud\nrule: name = db1\nclasses: {ntp: {servers: [b]}}\n";
    let empty = "name: Empty\nrule: site.code = x\n";
    // Silent about what can only happen.
    let quiet = "policy: {potential_conflicts: off}\n";
    fleet.repository.commit(
        "more",
        &[("groups/loud.yaml", loud), ("groups/empty.yaml", empty), ("clade.yaml", quiet)],
    );
    let repo = fleet.repository.text_path();
    let facts = fleet.facts.path().to_str().unwrap();
    let validate = |more: &[&str]| run(&[&["validate", &repo, "--facts", facts], more].concat());
    assert_eq!(run(&["validate", &repo]).status, 0);
    let done = validate(&["--format", "json"]);
    assert_eq!(done.status, 1, "{}", done.stderr);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let found: Vec<String> = found["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", it["severity"], it["kind"], it["message"]).replace('"', ""))
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    warning never-matches no node of the 6 that are known is in this group
    warning suspicious-value no node of the 6 that are known has `site.code`
    error potential-conflict `db1`: The node was classified into groups named \Base\ and \Loud\ that defined conflicting values for the class parameters \ntp::servers\.
    "#);
    std::fs::write(fleet.facts.path().join("half.json"), "{").unwrap();
    assert_eq!(validate(&[]).status, 2);
    assert_eq!(validate(&["--ignore-bad-facts"]).status, 1);
}

#[test]
fn a_comment_is_never_longer_than_forges_take() {
    let fleet = Fleet::new();
    let facts = tempfile::tempdir().unwrap();
    let mut groups = Vec::new();
    for number in 0..600 {
        let name = format!("node-with-a-long-name-{number}.example.com");
        std::fs::write(facts.path().join(format!("{name}.json")), "{\"x\": 1}").unwrap();
        let value = "x".repeat(200);
        groups.push(format!(
            "name: G{number}\nrule: name = \"{name}\"\nclasses: {{c{number}: {{value: {value}}}}}\n"
        ));
    }
    fleet.repository.commit("many", &[("groups/many.yaml", &groups.join("---\n"))]);
    let repo = fleet.repository.text_path();
    let done = run(&[
        "diff",
        "HEAD~1",
        "--repo",
        &repo,
        "--facts",
        facts.path().to_str().unwrap(),
        "--format",
        "markdown",
    ]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stdout.chars().count() < 65_536, "{}", done.stdout.len());
    assert!(
        done.stdout.contains("more nodes are cut; `clade diff` shows them all."),
        "{}",
        done.stdout.len()
    );
}
