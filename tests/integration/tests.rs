//! `clade test`: what it says of tests that fail, in every format.

use clade::internals::document::{ValueLayout, write};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::program::{Done, GitRepository, clade};
use crate::table::each_row;

const GROUPS: &str = "\
name: Debian
rule: os.family = Debian
environment: staging
classes: {apt: {}, web: {port: 80}}
variables: {tier: gold}
---
name: Large
parent: Debian
environment: staging
rule: memory >= 10 and not name ~ small
---
name: A
rule: os.family = SUSE
variables: {v: 1}
---
name: B
rule: os.family = SUSE
variables: {v: 2}
";

const TESTS: &str = "\
- name: it is fine
  node: web1
  facts: {os: {family: Debian}, memory: 16}
  expect: {groups: [Debian, Large], environment: staging, variables: {tier: gold, gone: null}}
- name: 'not #1: groups'
  node: small1
  facts: {os: {family: Debian}, memory: 16}
  expect: {groups: [Large, A, Debiann]}
- name: not its values
  node: web1
  facts: {os: {family: Debian}}
  expect:
    environment: production
    classes: {web: {port: 8080, docroot: /srv}, atp: {}}
    variables: {tier: silver}
    config_data: {web: {}}
- name: a conflict
  node: n
  facts: {os: {family: SUSE}}
  expect: {conflict: false}
- name: no conflict
  node: n
  facts_file: n.yaml
  expect: {conflict: true}
- name: no file
  node: n
  facts_file: none.yaml
  expect: {conflict: false}
";

fn test(more: &[&str]) -> Done {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("groups/g.yaml", GROUPS),
        ("tests/t.yaml", TESTS),
        ("tests/n.yaml", "[]\n"),
        ("facts/n.yaml", "os: {family: Debian}\n"),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = content.replace("facts_file: n.yaml", "facts_file: ../facts/n.yaml");
        std::fs::write(path, content).unwrap();
    }
    let all = [&["test"], more].concat();
    clade(&all).current_dir(directory.path()).output().unwrap().into()
}

#[test]
fn what_is_not_as_expected_is_explained() {
    let done = test(&[]);
    assert_eq!((done.status, done.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(done.stdout);
}

#[test]
fn the_outcome_is_written_as_tap() {
    let done = test(&["--format", "tap"]);
    assert_eq!(done.status, 1);
    insta::assert_snapshot!(done.stdout);
}

#[test]
fn the_outcome_is_written_as_junit_and_json() {
    let junit = test(&["--format", "junit"]);
    assert_eq!(junit.status, 1);
    assert!(
        junit.stdout.contains(r#"tests="6" skipped="0" failures="5" errors="0""#),
        "{}",
        junit.stdout
    );
    let document: Value = serde_json::from_str(&test(&["--format", "json"]).stdout).unwrap();
    assert_eq!((document["passed"].as_u64(), document["failed"].as_u64()), (Some(1), Some(5)));
    insta::assert_snapshot!(format!("{:#}", document["tests"][1]));
}

/// No XML has these characters, not even escaped.
#[test]
fn names_and_messages_of_tests_are_written_as_xml_can_say_them() {
    let directory = tempfile::tempdir().unwrap();
    let tests = "- {name: \"x\\uFFFE\\u001B\", node: n, expect: {variables: {\"v\\uFFFF\": 1}}}\n";
    for (path, content) in [("groups/g.yaml", "name: A\n"), ("tests/t.yaml", tests)] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let mut command = clade(&["test", "--format", "junit"]);
    let done = Done::from(command.current_dir(directory.path()).output().unwrap());
    assert_eq!(done.status, 1, "{}", done.stderr);
    assert!(done.stdout.contains("name=\"x"), "{}", done.stdout);
    assert!(!done.stdout.contains(['\u{FFFE}', '\u{FFFF}', '\u{1B}']), "{}", done.stdout);
}

#[test]
fn expectations_are_written_from_what_comes_out() {
    let directory = tempfile::tempdir().unwrap();
    let tests = "\
# Tests of the web
- name: changed   # by an editor
  node: small1
  facts: {os: {family: Debian}, memory: 16}
  # what must come out
  expect:
    groups: [Large, Debian]   # all of them
    environment: production
    classes: {\"::web\": {port: 8080, docroot: /srv}, atp: {}}
    variables:
      tier: silver # for now
      gone: true

- {name: fine, node: n, expect: {groups: []}}
- name: fresh
  node: web1
  facts: {os: {family: Debian}, memory: 16}
  expect: {}
---
- name: a conflict
  node: n
  facts: {os: {family: SUSE}}
  expect: {environment: staging}
- name: no conflict any more
  node: n
  expect: {conflict: true}
";
    for (path, content) in [("groups/g.yaml", GROUPS), ("tests/t.yaml", tests)] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let run = |more: &[&str]| -> Done {
        let all = [&["test"], more].concat();
        clade(&all).current_dir(directory.path()).output().unwrap().into()
    };
    let done = run(&["--update"]);
    assert_eq!(
        (done.status, done.stderr.as_str()),
        (0, "tests/t.yaml: wrote what 4 tests came to\n")
    );
    assert!(done.stdout.contains("expected the variable `tier` to be \"silver\", it is \"gold\""));
    insta::assert_snapshot!(
        std::fs::read_to_string(directory.path().join("tests/t.yaml")).unwrap()
    );
    assert_eq!(run(&[]).status, 0, "{}", run(&[]).stdout);
    let again = run(&["--update"]);
    assert_eq!((again.status, again.stderr.as_str()), (0, "there is nothing to write\n"));

    std::fs::write(
        directory.path().join("tests/t.yaml"),
        "- {name: t, node: n, facts_file: gone.yaml, expect: {groups: [A]}}\n",
    )
    .unwrap();
    assert_eq!(run(&["--update"]).status, 1);
    assert_eq!(run(&["--update", "--rev", "HEAD"]).status, 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// `--update` writes a value that the test then accepts, in place of any former value.
    #[test]
    fn a_test_passes_after_its_expectations_are_written(
        values in prop::collection::vec((any_value(), any_value()), 12..24),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let keyed = |pick: fn(&(Value, Value)) -> &Value, prefix: &str| -> Value {
            let fields = values.iter().map(pick).enumerate();
            fields.map(|(at, it)| (format!("{prefix}{at}"), it.clone())).collect::<Map<_, _>>().into()
        };
        let (now, before) = (keyed(|it| &it.0, "p"), keyed(|it| &it.1, "p"));
        let group = json!({
            "name": "A", "rule": "name = n", "classes": {"c": now}, "variables": {"v": now, "w": now["p0"]},
            "config_data": {"c::d": now},
        });
        let expect = json!({
            "classes": {"c": before}, "variables": {"v": before, "w": before["p0"]},
            "config_data": {"c::d": before},
        });
        for (path, content) in [
            ("groups/g.yaml", write(&group, &|_| ValueLayout::Block)),
            ("tests/t.yaml", write(&json!([{"name": "t", "node": "n", "expect": expect}]), &|_| ValueLayout::Block)),
        ] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let run = |more: &[&str]| -> Done {
            let all = [&["test"], more].concat();
            clade(&all).current_dir(directory.path()).output().unwrap().into()
        };
        let failed = run(&[]).status == 1;
        let done = run(&["--update"]);
        prop_assert_eq!(done.status, 0, "{}", done.stderr);
        let said = if failed { "tests/t.yaml: wrote what 1 test came to\n" } else { "there is nothing to write\n" };
        prop_assert_eq!(done.stderr, said);
        let after = run(&[]);
        prop_assert_eq!(after.status, 0, "{}", after.stdout);
    }
}

/// Returns values that are easily taken for one another.
fn any_value() -> impl Strategy<Value = Value> {
    const NUMBERS: &[&str] = &[
        "0",
        "-0",
        "1",
        "1.0",
        "-1",
        "1.00",
        "10",
        "1.0e+1",
        "1e1",
        "0.1",
        "1e-1",
        "100",
        "1e2",
        "-0.0",
        "0.0",
        "12345678901234567890123",
        "12345678901234567890124",
        "9007199254740993",
        "9007199254740993.0",
        "9007199254740992.0",
        "1.7976931348623157e308",
        "5e-324",
        "1e-7",
        "6.02E+23",
    ];
    const TEXTS: &[&str] = &[
        "",
        "1",
        "1.0",
        "1e3",
        "0644",
        "yes",
        "null",
        "~",
        "true",
        "0x1F",
        "12:30",
        "2024-01-31",
        "1_000",
        ":x",
        " a",
        "a ",
        "a: b",
        "# x",
        "it's",
        "a\nb\n",
        "\u{1f600}",
        "\u{2028}",
        "*x",
        "<<",
        "- a",
        "\t",
        "\\ud83d",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(NUMBERS).prop_map(|it| serde_json::from_str(it).unwrap()),
        prop::sample::select(TEXTS).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-c]|0644|yes", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

#[test]
fn a_test_that_expects_nothing_fails_until_it_is_updated() {
    let directory = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("groups/a.yaml", "name: A\nrule: name = n\n"),
        ("tests/t.yaml", "- name: t\n  node: n\n  expect: {}\n"),
    ] {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let run = |arguments: &[&str]| -> Done {
        clade(arguments).current_dir(directory.path()).output().unwrap().into()
    };
    let done = run(&["test"]);
    assert_eq!(done.status, 1);
    assert!(done.stdout.contains("`expect` says nothing that could fail"), "{}", done.stdout);
    let done = run(&["validate"]);
    assert_eq!(done.status, 1);
    assert!(done.stdout.contains("tests/t.yaml:3:11"), "{}", done.stdout);
    assert_eq!(run(&["test", "--update"]).status, 0);
    assert_eq!((run(&["test"]).status, run(&["validate"]).status), (0, 0));
}

#[test]
fn what_an_update_writes_can_fail() {
    let rows = [
        ("{classes: {ntp: }}", "{groups: [\"A\"], environment: production}"),
        ("{classes: {ntp: {p: 1}}, conflict: false}", "{groups: [\"A\"], environment: production}"),
        ("{config_data: {x: {a: 1}}}", "{groups: [\"A\"], environment: production}"),
        // A former update wrote these.
        ("{classes: {}}", "{groups: [\"A\"], environment: production}"),
        ("{classes: {}, variables: {}}", "{groups: [\"A\"], environment: production}"),
        ("{classes: {ntp: }, groups: [B]}", "{groups: [A]}"),
        ("{classes: {ntp: }, variables: {v: 1}}", "{variables: {v: null}}"),
        ("{classes: {ntp: , apt: {p: 1}}}", "{classes: {apt: {p: null}}}"),
    ];
    each_row(rows, |(expect, written)| {
        let directory = tempfile::tempdir().unwrap();
        let test = |expect: &str| format!("- {{name: t, node: n, expect: {expect}}}\n");
        for (path, content) in [
            ("groups/a.yaml", "name: A\nrule: name = n\nclasses: {apt: }\n"),
            ("tests/t.yaml", &test(expect)),
        ] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let run = |arguments: &[&str]| -> Done {
            clade(arguments).current_dir(directory.path()).output().unwrap().into()
        };
        assert_eq!(run(&["test"]).status, 1);
        assert_eq!(run(&["test", "--update"]).status, 0);
        let text = std::fs::read_to_string(directory.path().join("tests/t.yaml")).unwrap();
        assert_eq!(text, test(written));
        assert_eq!((run(&["test"]).status, run(&["validate"]).status), (0, 0));
        assert_eq!(run(&["test", "--update"]).stderr, "there is nothing to write\n");
    });
}

#[test]
fn facts_outside_the_repository_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.yaml"), "secret: {deep: found}\n").unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["groups", "tests", "facts"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("groups/a.yaml"), "name: A\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), path("facts/away")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), path("facts/link.yaml"))
        .unwrap();
    let run = |file: &str| {
        let test = format!("- {{name: t, node: n, facts_file: {file}, expect: {{groups: [B]}}}}\n");
        std::fs::write(path("tests/t.yaml"), test).unwrap();
        Done::from(clade(&["test"]).current_dir(directory.path()).output().unwrap())
    };
    for file in ["../facts/away/secret.yaml", "../facts/link.yaml"] {
        let done = run(file);
        assert_eq!(done.status, 1);
        assert!(done.stdout.contains("it is behind a link"), "{}", done.stdout);
        assert!(!done.stdout.contains("found"), "{}", done.stdout);
    }
    let absolute = outside.path().join("secret.yaml");
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let beside = run(&format!("../../{name}/secret.yaml"));
    assert_eq!(beside.status, 1);
    assert!(beside.stdout.contains("it is not inside the repository"), "{}", beside.stdout);
    assert!(!beside.stdout.contains("found"), "{}", beside.stdout);
    for file in [absolute.to_str().unwrap(), "../.git/config"] {
        let done = run(file);
        assert_ne!(done.status, 0);
        let all = done.stdout + &done.stderr;
        assert!(all.contains("clade validate") && !all.contains("found"), "{all}");
    }
}

#[test]
fn the_facts_of_a_revision_are_those_of_the_revision() {
    let repository = GitRepository::new();
    let test = |file: &str| {
        format!("- {{name: t, node: n, facts_file: {file}, expect: {{groups: [Web]}}}}\n")
    };
    let first = repository.commit(
        "first",
        &[
            ("est/groups/web.yaml", "name: Web\nrule: role = web\n"),
            ("est/tests/deep/t.yaml", &test("../../facts/n.json")),
            ("est/tests/u.yaml", &test("../../above.json")),
            ("est/facts/n.json", "{\"role\": \"web\"}"),
            ("above.json", "{\"role\": \"web\"}"),
        ],
    );
    let facts = repository.path().join("est/facts/n.json");
    let run = |arguments: &[&str]| -> Done {
        let arguments = [&["test", "est"], arguments].concat();
        clade(&arguments).current_dir(repository.path()).output().unwrap().into()
    };
    // Neither a change of the working tree nor its absence tells of a commit.
    for change in [Some("{\"role\": \"db\"}"), None] {
        match change {
            Some(text) => std::fs::write(&facts, text).unwrap(),
            None => std::fs::remove_file(&facts).unwrap(),
        }
        assert_eq!(run(&[]).status, 1);
        for more in [&["--rev", &first][..], &["--rev", "HEAD", "--mutate"]] {
            let done = run(more);
            assert!(done.stdout.contains("2 passed, 0 failed"), "{}", done.stdout);
        }
    }
    repository.commit("second", &[("est/facts/n.json", "{\"role\": \"db\"}")]);
    std::fs::write(&facts, "{\"role\": \"web\"}").unwrap();
    assert_eq!((run(&[]).status, run(&["--rev", "HEAD"]).status), (0, 1));
    assert_eq!(run(&["--rev", "HEAD~1"]).status, 0);
    let wrong = [
        ("../../../x.json", "it is not inside the repository"),
        ("../facts/none.json", "has no such file"),
        ("../facts", "has no such file"),
        ("../facts/n.json/x", "has no such file"),
        (r#""../facts/n\0""#, "has no such file"),
        (r#""../fac\0ts/n.json""#, "has no such file"),
    ];
    each_row(wrong, |(file, message)| {
        repository.commit("wrong", &[("est/tests/u.yaml", &test(file))]);
        let done = run(&["--rev", "HEAD"]);
        assert!(done.status == 1 && done.stdout.contains(message), "{}", done.stdout);
    });
}

#[test]
fn a_command_to_see_more_is_one_command() {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    put("groups/a.yaml", "name: A\n");
    put(
        "tests/t.yaml",
        "- {name: t, node: n, facts_file: \"x; y's.json\", expect: {groups: [A]}}\n",
    );
    put("tests/x; y's.json", "{}");
    let done = Done::from(clade(&["test"]).current_dir(directory.path()).output().unwrap());
    let command = r"see: clade explain n . --facts 'tests/x; y'\''s.json'";
    assert!(done.stdout.contains(command), "{}", done.stdout);
}

#[test]
fn the_root_group_is_not_expected() {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("groups/g.yaml", "name: G\n"),
        ("tests/t.yaml", "- {name: t, node: n, expect: {groups: [All Nodes, G]}}\n"),
    ] {
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let done = Done::from(clade(&["test"]).current_dir(directory.path()).output().unwrap());
    let said = "expected the group `All Nodes`, the root group, which matches every node and is not counted: leave it out";
    assert!(done.status == 1 && done.stdout.contains(said), "{}", done.stdout);
}

/// One rule that is too wide made each test 6,000 lines long.
#[test]
fn what_a_rule_that_is_too_wide_does_to_a_test_is_shown_in_part() {
    let group =
        |it| format!("name: G{it:02}\nrule: [\"~\", name, n]\nvariables: {{v: {it}, w: {it}}}\n");
    let groups = (0..60).map(group).collect::<Vec<String>>().join("---\n");
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("groups/g.yaml", &*groups),
        ("tests/t.yaml", "- {name: t, node: n, expect: {groups: [G00]}}\n"),
    ] {
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let done = Done::from(clade(&["test"]).current_dir(directory.path()).output().unwrap());
    assert_eq!(done.status, 1, "{}", done.stderr);
    let count = |text: &str| done.stdout.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("matches, which is not expected"), 50, "{}", done.stdout);
    assert_eq!(count("9 more groups match, which is not expected"), 1, "{}", done.stdout);
    assert_eq!([count("variable v"), count("variable w")], [1, 1], "{}", done.stdout);
    assert_eq!(count("and 40 groups more"), 2, "{}", done.stdout);
    assert!(done.stdout.lines().count() < 180, "{}", done.stdout);
}

#[test]
fn without_tests_the_command_names_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let test = || {
        let output = clade(&["test"]).current_dir(directory.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    put("groups/g.yaml", "name: G\n");
    let none = "no tests found: tests are below `tests/`, in files that end in `.yaml` or `.yml`\n";
    assert_eq!(test(), (Some(0), "\n0 passed, 0 failed\n".to_owned(), none.to_owned()));
    // Tests that do not run have not passed.
    let case = "- {name: t, node: n, expect: {groups: []}}\n";
    put("test/t.yaml", case);
    let unread = "test/t.yaml: this file is not read: it looks like tests, which stands below `tests/`: move it to `tests/t.yaml`\n";
    assert_eq!(test(), (Some(1), "\n0 passed, 0 failed\n".to_owned(), format!("{unread}{none}")));
    put("tests/u.yaml", case);
    let (status, said, told) = test();
    assert_eq!((status, &*told), (Some(1), unread), "{said}");
    assert!(said.ends_with("\n1 passed, 0 failed\n"), "{said}");
    std::fs::remove_file(directory.path().join("test/t.yaml")).unwrap();
    assert_eq!((test().0, test().2), (Some(0), String::new()));
    put("clade.yaml", "tests: checks\n");
    assert_eq!(test().2, none.replace("tests/", "checks/"));
    // Nor have those behind a link.
    std::os::unix::fs::symlink("tests", directory.path().join("checks")).unwrap();
    let link = "checks: this is a symbolic link; it is not followed: put the file itself here\n";
    let none = none.replace("tests/", "checks/");
    assert_eq!(test(), (Some(1), "\n0 passed, 0 failed\n".to_owned(), format!("{link}{none}")));
}

/// Suggestions are for the first of many groups that do not exist, whichever thread comes to them first.
#[test]
fn groups_that_do_not_exist_are_guessed_for_the_first_thousand() {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("groups/g.yaml", "name: Debian\nrule: x = 1\n");
    let test = |it| format!("- {{name: t{it}, node: n, expect: {{groups: [Debain]}}}}\n");
    write("tests/t.yaml", &(0..1_200).map(test).collect::<String>());
    let done: Done =
        clade(&["test", "--format", "json"]).current_dir(directory.path()).output().unwrap().into();
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    let has_guess = |it: &Value| it.to_string().contains("did you mean `Debian`?");
    let guesses: Vec<bool> = document["tests"].as_array().unwrap().iter().map(has_guess).collect();
    assert_eq!(guesses.iter().position(|it| !it), Some(1_000));
    assert_eq!(guesses.iter().filter(|it| **it).count(), 1_000);
}

#[test]
fn a_fact_with_the_path_of_another_as_its_name_is_to_be_nested() {
    let directory = tempfile::tempdir().unwrap();
    let test = |facts: &str| {
        format!("- {{name: t, node: n, facts: {facts}, expect: {{groups: [Debian]}}}}\n")
    };
    let run = |facts: &str| -> Done {
        for (path, content) in [("groups/g.yaml", GROUPS), ("tests/t.yaml", &test(facts))] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        clade(&["test"]).current_dir(directory.path()).output().unwrap().into()
    };
    let help = "nest it, as in `facts: {os: {family: \"Debian\"}}`";
    let done = run("{os.family: Debian}");
    assert!(done.status == 1 && done.stdout.contains(help), "{}", done.stdout);
    for other in ["{os: {family: SUSE}, os.family: x}", "{memory: 1}"] {
        let done = run(other);
        assert!(done.status == 1 && !done.stdout.contains("nest it"), "{}", done.stdout);
    }
}
