//! `clade test --coverage`, `--lcov` and `--mutate`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Done, clade};

const GROUPS: &str = "\
name: Debian
rule: os.family = Debian
classes: {apt: {}, web: {port: 80}}
variables: {tier: gold, gone: null}
---
name: Large
parent: Debian
rule:
  - and
  - ['>=', [fact, memory], '10']
  - [not, ['~', name, small]]
classes: {web: {port: 81}}
---
name: Pinned
pinned: [a, b]
config_data: {web: {key: 1}}
---
name: Folder
variables: {x: 1}
---
name: Inner
parent: Folder
rule: site = ams
";

const TESTS: &str = "\
- name: a large machine
  node: web1
  facts: {os: {family: Debian}, memory: 16}
  expect: {groups: [Debian, Large], classes: {web: {port: 81}, apt: {}}}
- name: a small one
  node: web2
  facts: {os: {family: Debian}, memory: 8}
  expect: {groups: [Debian]}
- name: a pinned one
  node: a
  expect: {groups: [Pinned]}
";

struct Repository(tempfile::TempDir);

impl Repository {
    fn new(tests: &str) -> Self {
        let it = Self(tempfile::tempdir().unwrap());
        for (path, text) in [("groups/g.yaml", GROUPS), ("tests/t.yaml", tests)] {
            let path = it.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        it
    }

    fn test(&self, arguments: &[&str]) -> Done {
        let all = [&["test"], arguments].concat();
        clade(&all).current_dir(self.0.path()).output().unwrap().into()
    }
}

/// Returns what is printed after the outcome of the tests.
fn behind(done: &Done) -> &str {
    done.stdout.split_once(" failed\n\n").unwrap_or_else(|| panic!("{}", done.stdout)).1
}

#[test]
fn coverage_names_what_no_test_reaches_with_its_place() {
    let done = Repository::new(TESTS).test(&["--coverage"]);
    assert_eq!(done.status, 0);
    assert_eq!(
        behind(&done),
        "\
groups/g.yaml:4:25: no test gets the variable `gone` from the group `Debian`
groups/g.yaml:11:11: `name ~ small` is never true in a test
groups/g.yaml:15:13: `name = b` is never true in a test
groups/g.yaml:18:7: no test gets the variable `x` from the group `Folder`
groups/g.yaml:21:7: no test has a node in the group `Inner`
groups/g.yaml:23:7: `site = ams` is never true in a test

coverage: groups 3/4 (75 %), outcomes of conditions 9/12 (75 %), values 5/7 (71 %)
"
        .replace("groups/g.yaml:18:7", "groups/g.yaml:19:13")
    );
}

#[test]
fn a_rule_is_evaluated_only_for_nodes_that_match_its_ancestors() {
    let none = "- {name: t, node: n, facts: {memory: 16}, expect: {groups: []}}\n";
    let done = Repository::new(none).test(&["--coverage"]);
    let text = behind(&done);
    assert!(text.contains("g.yaml:10:5: `memory >= 10` is never evaluated in a test\n"), "{text}");
    assert!(text.contains("g.yaml:2:7: `os.family = Debian` is never true in a test\n"), "{text}");
}

#[test]
fn a_null_is_reached_where_it_removes_something() {
    let repository = Repository::new("- {name: t, node: web, expect: {groups: [Web, Inner]}}\n");
    let groups = "name: Web\nrule: name = web\nvariables: {a: null, b: 1}\nclasses: {c: {p: null, q: 1}}\n---\n\
                  name: Inner\nparent: Web\nrule: name = web\nvariables: {a: null, b: null}\nclasses: {c: {p: null, q: null}}\n";
    std::fs::write(repository.0.path().join("groups/g.yaml"), groups).unwrap();
    let done = repository.test(&["--coverage"]);
    let unreached = behind(&done).lines().filter(|it| it.contains("no test gets"));
    let unreached: Vec<&str> = unreached.collect();
    assert_eq!(
        unreached,
        [
            "groups/g.yaml:3:13: no test gets the variable `a` from the group `Web`",
            "groups/g.yaml:3:22: no test gets the variable `b` from the group `Web`",
            "groups/g.yaml:4:15: no test gets `p` of the class `c` from the group `Web`",
            "groups/g.yaml:4:24: no test gets `q` of the class `c` from the group `Web`",
            "groups/g.yaml:9:13: no test gets the variable `a` from the group `Inner`",
            "groups/g.yaml:10:15: no test gets `p` of the class `c` from the group `Inner`",
        ]
    );
}

#[test]
fn coverage_is_written_for_programs() {
    let done = Repository::new(TESTS).test(&["--coverage", "--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let coverage = &document["coverage"];
    assert_eq!(coverage["groups"], json!({"reached": 3, "total": 4}));
    assert_eq!(coverage["outcomes"], json!({"reached": 9, "total": 12}));
    assert_eq!(coverage["values"], json!({"reached": 5, "total": 7}));
    assert_eq!(
        coverage["unreached"][1],
        json!({
            "kind": "condition", "file": "groups/g.yaml", "line": 11, "column": 11,
            "group": "Large", "what": "name ~ small",
            "message": "`name ~ small` is never true in a test",
        })
    );
    assert_eq!(document["passed"], 3);
}

/// One file of a tracefile: its lines by key.
type FileTrace = BTreeMap<String, Vec<String>>;

/// Reads a tracefile as its format demands, and checks what can be counted.
fn read_trace(text: &str) -> BTreeMap<String, FileTrace> {
    let mut files = BTreeMap::new();
    let mut present = FileTrace::new();
    for line in text.lines() {
        if line == "end_of_record" {
            let record = std::mem::take(&mut present);
            check_counts(&record);
            files.insert(record["SF"][0].clone(), record);
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("{line}"));
        present.entry(key.to_owned()).or_default().push(value.to_owned());
    }
    assert!(present.is_empty(), "{present:?}");
    files
}

fn check_counts(record: &FileTrace) {
    let all = |key: &str| record.get(key).cloned().unwrap_or_default();
    let number = |key: &str| all(key)[0].parse::<usize>().unwrap();
    let is_hit = |line: &String| {
        let hits = line.rsplit(',').next().unwrap();
        hits.parse::<usize>().map_or_else(|_| assert_eq!(hits, "-"), |_| ());
        !matches!(hits, "0" | "-")
    };
    for (lines, found, hit) in [("DA", "LF", "LH"), ("BRDA", "BRF", "BRH")] {
        assert_eq!(all(lines).len(), number(found), "{lines}");
        assert_eq!(all(lines).iter().filter(|it| is_hit(it)).count(), number(hit), "{lines}");
    }
    let names = |key: &str| -> BTreeSet<String> {
        all(key).iter().map(|it| it.split_once(',').unwrap().1.to_owned()).collect()
    };
    assert_eq!(names("FN"), names("FNDA"));
    assert_eq!(names("FN").len(), number("FNF"));
    let called = all("FNDA").iter().filter(|it| !it.starts_with("0,")).count();
    assert_eq!(called, number("FNH"));
    let lines: Vec<u32> =
        all("DA").iter().map(|it| it.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(lines.is_sorted_by(|a, b| a < b), "{lines:?}");
    for line in all("BRDA").iter().chain(&all("FN")) {
        let at = line.split(',').next().unwrap().parse().unwrap();
        assert!(lines.contains(&at), "{line} is on no line");
    }
}

#[test]
fn the_tracefile_is_one_that_lcov_reads() {
    let repository = Repository::new(TESTS);
    let file = repository.0.path().join("lcov.info");
    let path = file.to_str().unwrap();
    let done = repository.test(&["--lcov", path, "--format", "junit"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stdout.contains("<testsuite"), "{}", done.stdout);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(repository.test(&["--coverage=lcov"]).stdout, text);
    let trace = read_trace(&text);
    let groups = &trace["groups/g.yaml"];
    assert_eq!(groups["FN"], ["1,Debian", "6,Large", "14,Pinned", "21,Inner"]);
    assert_eq!(groups["FNDA"], ["2,Debian", "1,Large", "1,Pinned", "0,Inner"]);
    assert_eq!(
        groups["BRDA"],
        [
            "2,0,0,2", "2,0,1,1", "10,0,0,1", "10,0,1,1", "11,0,0,0", "11,0,1,2", "15,0,0,1",
            "15,0,1,2", "15,1,0,0", "15,1,1,3", "23,0,0,0", "23,0,1,3",
        ]
    );
    let Ok(version) = Command::new("genhtml").arg("--version").output() else {
        eprintln!("skipped: needs lcov");
        return;
    };
    assert!(version.status.success());
    let done = Command::new("genhtml")
        .args(["--branch-coverage", "--quiet", "-o", "html", path])
        .current_dir(repository.0.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(repository.0.path().join("html/index.html").is_file());
    let summary = Command::new("lcov").args(["--summary", path]).output().unwrap();
    let said = String::from_utf8_lossy(&summary.stdout) + String::from_utf8_lossy(&summary.stderr);
    assert!(summary.status.success() && said.contains("75.0% (3 of 4 functions)"), "{said}");
}

#[test]
fn changes_that_no_test_notices_are_named() {
    let done = Repository::new(TESTS).test(&["--mutate"]);
    assert_eq!((done.status, done.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(behind(&done));
}

#[test]
fn changes_that_no_test_notices_are_written_for_programs() {
    let done = Repository::new(TESTS).test(&["--mutate", "--format", "json"]);
    assert_eq!(done.status, 1);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let mutants = &document["mutants"];
    let survivors = mutants["survivors"].as_array().unwrap();
    let number = |key: &str| mutants[key].as_u64().unwrap();
    assert_eq!(number("survived"), survivors.len() as u64);
    assert_eq!(number("tried"), number("noticed") + number("survived"));
    assert_eq!(number("tried"), number("total"));
    let pin = survivors.iter().find(|it| it["change"] == "drop-pin").unwrap();
    assert_eq!(
        *pin,
        json!({
            "file": "groups/g.yaml", "line": 15, "column": 13, "group": "Pinned",
            "change": "drop-pin", "what": "name = b", "reached": true,
            "message": "no test notices that `name = b` is gone, in the group `Pinned`",
        })
    );
}

#[test]
fn tests_that_hold_everything_leave_no_survivor() {
    let repository = Repository::new(
        "- {name: t, node: web1, facts: {x: 1}, expect: {groups: [G], variables: {v: 1}}}\n- {name: u, node: web1, facts: {x: 2}, expect: {groups: []}}\n",
    );
    let group = "name: G\nrule: x = 1\nvariables: {v: 1}\n";
    std::fs::write(repository.0.path().join("groups/g.yaml"), group).unwrap();
    let done = repository.test(&["--mutate"]);
    assert_eq!(behind(&done), "mutants: 3 tried, 3 noticed, 0 survived\n");
    assert_eq!(done.status, 0);
}

#[test]
fn what_is_not_tried_is_counted() {
    let repository = Repository::new(TESTS);
    let done = repository.test(&["--mutate", "--max-mutants", "3", "--format", "json"]);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["mutants"]["tried"], 3);
    assert!(document["mutants"]["total"].as_u64().unwrap() > 10);
    let done = repository.test(&["--mutate", "--max-mutants", "3"]);
    assert!(done.stdout.contains(" not tried\n"), "{}", done.stdout);
}

/// Every group has the same three changes in the same order, of which no test notices the last.
#[test]
fn a_sample_has_changes_of_every_kind() {
    let numbers = || 0..30;
    let test = |it| {
        format!("- {{name: t{it}, node: n, facts: {{x: r{it}}}, expect: {{groups: [G{it}]}}}}\n")
    };
    let group = |it| format!("name: G{it}\nrule: x = r{it}\nvariables: {{v: {it}}}\n");
    let repository = Repository::new(&numbers().map(test).collect::<String>());
    let groups: Vec<String> = numbers().map(group).collect();
    std::fs::write(repository.0.path().join("groups/g.yaml"), groups.join("---\n")).unwrap();
    for most in ["30", "45"] {
        let arguments = ["--mutate", "--max-mutants", most, "--format", "json"];
        let done = repository.test(&arguments);
        assert_eq!(repository.test(&arguments).stdout, done.stdout);
        let document: Value = serde_json::from_str(&done.stdout).unwrap();
        let mutants = &document["mutants"];
        assert_eq!(mutants["tried"].to_string(), most);
        assert!(mutants["survived"].as_u64().unwrap() > 3, "{mutants}");
        assert!(mutants["noticed"].as_u64().unwrap() > 10, "{mutants}");
    }
}

#[test]
fn nothing_is_tried_while_tests_fail() {
    let done = Repository::new("- {name: t, node: a, expect: {groups: []}}\n").test(&["--mutate"]);
    assert_eq!(done.status, 1);
    assert_eq!(done.stderr, "error: no changes are tried while 1 test fails: mend it first\n");
    assert!(!done.stdout.contains("mutants:"), "{}", done.stdout);
}

#[test]
fn formats_that_have_no_room_for_it_are_refused() {
    let repository = Repository::new(TESTS);
    for arguments in [
        &["--coverage", "--format", "tap"][..],
        &["--mutate", "--format", "junit"],
        &["--mutate", "--update"],
        &["--coverage", "--update"],
        &["--max-time", "1s"],
        &["--mutate", "--max-mutants", "0"],
    ] {
        assert_eq!(repository.test(arguments).status, 2, "{arguments:?}");
    }
}
