//! `clade validate` and groups that could conflict: pages, comments, policy, known nodes.

use std::fmt::Write as _;

use indoc::indoc;
use serde_json::Value;

use crate::program::{Done, clade, run, started_by};

/// A repository of files, and a directory of facts beside it.
struct Estate {
    directory: tempfile::TempDir,
}

impl Estate {
    fn new(files: &[(&str, &str)]) -> Self {
        let it = Self { directory: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            it.put(path, text);
        }
        it
    }

    fn put(&self, path: &str, text: &str) {
        let file = self.directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn validate(&self, options: &[&str]) -> Done {
        let directory = self.directory.path().to_str().unwrap();
        run(&[&["validate", directory, "--format", "json"], options].concat())
    }

    /// Returns the exit status, and the groups that could conflict as `severity line message`.
    fn found(&self, options: &[&str]) -> (i32, Vec<String>) {
        let done = self.validate(options);
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        let line = |it: &Value| {
            let (severity, line) = (it["severity"].as_str().unwrap(), &it["line"]);
            format!("{severity} {line} {}", it["message"].as_str().unwrap())
        };
        let all = report["diagnostics"].as_array().unwrap().iter();
        let found = all.filter(|it| it["kind"] == "potential-conflict").map(line).collect();
        (done.status, found)
    }
}

/// Twelve pairs of groups, each with a conflict of its own.
fn twelve_pairs() -> String {
    let mut text = String::new();
    for number in 0..12 {
        for side in ["a", "b"] {
            writeln!(
                text,
                "---\nname: G{number}{side}\nrule: role = r{number} and {side} = x\nvariables: {{v{number}: {side}}}"
            )
            .unwrap();
        }
    }
    text
}

/// Three groups that set one variable differently from a fourth: one cause.
const JOINED: &str = indoc! {"
    name: Base
    rule: kernel = Linux
    classes:
      ntp:
        servers: [a]
    ---
    name: One
    rule: role = one
    parent: Base
    ---
    name: Two
    rule: role = two
    parent: Base
    ---
    name: Loud
    rule: loud = x
    classes:
      ntp:
        servers: [b]
"};

#[test]
fn a_page_of_conflicts_is_shown_and_all_of_them_on_demand() {
    let estate = Estate::new(&[("groups/g.yaml", &twelve_pairs())]);
    let (status, page) = estate.found(&[]);
    assert_eq!((status, page.len()), (0, 11), "{page:#?}");
    assert!(page.iter().any(|it| it == "warning 1 2 more possible conflicts are not shown"));
    let (status, all) = estate.found(&["--all-conflicts"]);
    assert_eq!((status, all.len()), (0, 12), "{all:#?}");
    for number in 0..12 {
        let pair = [format!("`G{number}a`"), format!("`G{number}b`")];
        let names = |it: &&String| pair.iter().all(|name| it.contains(name.as_str()));
        assert_eq!(all.iter().filter(names).count(), 1, "{number}: {all:#?}");
    }
}

#[test]
fn a_comment_silences_an_alarm_that_joins_several_pairs() {
    let estate = Estate::new(&[("groups/g.yaml", JOINED)]);
    let (status, found) = estate.found(&[]);
    assert_eq!((status, found.len()), (0, 1), "{found:#?}");
    assert!(found[0].contains("; so do 2 more pairs of groups"), "{found:#?}");
    // It counts above the place of the finding, the value further down, not above the other.
    let silenced = |from: &str| {
        estate.put(
            "groups/g.yaml",
            &JOINED.replace(from, &format!("    # clade: ignore potential-conflict\n{from}")),
        );
        estate.found(&[])
    };
    assert_eq!(silenced("    servers: [a]").1.len(), 1);
    assert_eq!(silenced("    servers: [b]"), (0, Vec::new()));
    assert_eq!(estate.found(&["--all-conflicts"]), (0, Vec::new()));
}

#[test]
fn where_policy_says_so_a_joined_alarm_is_an_error_that_no_comment_silences() {
    let policy = "policy: {potential_conflicts: error}\n";
    let estate = Estate::new(&[("groups/g.yaml", JOINED), ("clade.yaml", policy)]);
    let (status, found) = estate.found(&[]);
    assert_eq!((status, found.len()), (1, 1), "{found:#?}");
    assert!(
        found[0].starts_with("error ") && found[0].contains("so do 2 more pairs"),
        "{found:#?}"
    );
    let comment = "    # clade: ignore potential-conflict\n    servers: [b]";
    estate.put("groups/g.yaml", &JOINED.replace("    servers: [b]", comment));
    let (again, still) = estate.found(&[]);
    assert_eq!((again, still.len()), (1, 1), "{still:#?}");
    // Twelve are a page and the rest, all of them errors.
    estate.put("groups/g.yaml", &twelve_pairs());
    let (status, page) = estate.found(&[]);
    assert_eq!((status, page.len()), (1, 11), "{page:#?}");
    assert!(page.iter().all(|it| it.starts_with("error ")), "{page:#?}");
    assert_eq!(estate.found(&["--all-conflicts"]).1.len(), 12);
}

#[test]
fn conflicts_of_known_nodes_come_before_possible_ones() {
    for policy in ["warn", "error"] {
        let settings = format!("policy: {{potential_conflicts: {policy}}}\n");
        let estate = Estate::new(&[("groups/g.yaml", &twelve_pairs()), ("clade.yaml", &settings)]);
        let facts =
            |number: u32| format!("{{\"role\": \"r{number}\", \"a\": \"x\", \"b\": \"x\"}}");
        estate.put("facts/n11.json", &facts(11));
        estate.put("facts/n10.json", &facts(10));
        let directory = estate.directory.path().join("facts");
        let options = ["--facts", directory.to_str().unwrap()];
        let is_real =
            |it: &&String| it.contains("match the same node") && it.contains("seen on `n1");
        let (status, page) = estate.found(&options);
        // A conflict of a real node is an error under every policy.
        assert_eq!(status, 1, "{policy}: {page:#?}");
        assert_eq!(page.iter().filter(is_real).count(), 2, "{policy}: {page:#?}");
        let told = page.iter().filter(|it| it.contains("was classified into groups")).count();
        assert_eq!(told, 2, "{policy}: {page:#?}");
        // Beside them, eight of the ten that only could be.
        let possible = page.iter().filter(|it| it.contains("can match the same node")).count();
        assert_eq!(possible, 8, "{policy}: {page:#?}");
        let (_, all) = estate.found(&[&options[..], &["--all-conflicts"]].concat());
        assert_eq!(all.iter().filter(is_real).count(), 2, "{policy}: {all:#?}");
        let possible = all.iter().filter(|it| it.contains("can match the same node")).count();
        assert_eq!(possible, 10, "{policy}: {all:#?}");
    }
}

/// A rule of many comparisons that the search for conflicts could take for ever with, by the number of its group.
type LargeRule = fn(usize) -> String;

/// How many comparisons such a rule has.
const COMPARISONS: usize = 400;

fn joined(operator: &str, term: impl Fn(usize) -> String) -> String {
    let terms: Vec<String> = (0..COMPARISONS).map(term).collect();
    format!(r#"["{operator}", {}]"#, terms.join(", "))
}

#[test]
fn rules_of_many_comparisons_are_searched_within_a_budget() {
    let shapes: [(&str, LargeRule); 10] = [
        ("other facts", |group| {
            joined("and", |it| format!(r#"["=", ["fact", "f{group}x{it}"], "v"]"#))
        }),
        ("choices of facts", |group| {
            joined("and", |it| {
                let one = |fact: &str| format!(r#"["=", ["fact", "{fact}{group}x{it}"], "v"]"#);
                format!(r#"["or", {}, {}]"#, one("f"), one("g"))
            })
        }),
        ("keys and elements", |group| {
            joined("or", |it| match it % 2 {
                0 => format!(r#"["=", ["fact", "a", "k{group}x{it}"], "v"]"#),
                _ => format!(r#"["=", ["fact", "a", {}], "v"]"#, group * COMPARISONS + it),
            })
        }),
        ("numbers", |group| {
            joined("and", |it| format!(r#"[">", ["fact", "n"], "{}"]"#, group * COMPARISONS + it))
        }),
        ("patterns", |group| {
            joined("and", |it| format!(r#"["~", ["fact", "os"], "x{group}y{it}"]"#))
        }),
        ("patterns of names", |group| {
            joined("and", |it| format!(r#"["~", "name", "x{group}y{it}"]"#))
        }),
        ("absent patterns", |group| {
            joined("and", |it| format!(r#"["not", ["~", ["fact", "os"], "^x{group}y{it}"]]"#))
        }),
        ("choices of patterns", |group| {
            joined("or", |it| format!(r#"["~", ["fact", "os"], "^x{group}y{it}"]"#))
        }),
        ("large automata", |group| {
            let pattern = |it: usize| format!("[ab]*a[ab]{{{}}}{group}x{it}", 8 + it % 6);
            joined("and", |it| format!(r#"["~", ["fact", "f{}"], "{}"]"#, it / 2, pattern(it)))
        }),
        ("lists", |group| joined("and", |it| format!(r#"["<:", ["fact", "l"], "e{group}x{it}"]"#))),
    ];
    for (name, rule) in shapes {
        let groups: String = (0..20).fold(String::new(), |mut text, group| {
            let rule = rule(group);
            write!(text, "---\nname: G{group}\nrule: {rule}\nclasses: {{c: {{p: {group}}}}}\n")
                .unwrap();
            text
        });
        let estate = Estate::new(&[("groups/all.yaml", &groups)]);
        let mut launcher = std::process::Command::new("sh");
        launcher.args(["-c", r#"ulimit -v 2000000; exec "$0" "$@""#]);
        let program = clade(&["validate", estate.directory.path().to_str().unwrap()]);
        let began = std::time::Instant::now();
        let done = started_by(launcher, &program).output().unwrap();
        let taken = began.elapsed();
        assert!(matches!(done.status.code(), Some(0 | 1)), "{name}: {done:?}");
        // 35 to 50 s in a debug build with little beside it; without a budget it would not end.
        assert!(taken.as_secs() < 240, "{name}: {taken:?}");
        eprintln!("{name}: {taken:?}");
    }
}
