//! The commands, as people and pipelines run them.

use std::process::Stdio;

use indoc::indoc;
use serde_json::Value;

use crate::formats::read_by_ruby;
use crate::program::{Done, GitRepository, clade, root, run};

#[test]
fn the_example_estates_are_valid_and_pass_their_tests() {
    for estate in ["examples/fleet", "examples/minimal"] {
        let validated = run(&["validate", estate]);
        assert_eq!(validated.status, 0, "{}", validated.stdout);
        let tested = run(&["test", estate]);
        assert_eq!(tested.status, 0, "{}", tested.stdout);
        assert!(tested.stdout.ends_with(" passed, 0 failed\n"), "{}", tested.stdout);
    }
}

#[test]
fn a_broken_estate_is_reported_whole() {
    let done = run(&["validate", "examples/broken"]);
    assert_eq!((done.status, done.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(done.stdout);
}

#[test]
fn every_format_is_well_formed() {
    let of = |format: &str| run(&["validate", "examples/broken", "--format", format]).stdout;
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!((json["valid"].as_bool(), json["commit"].is_null()), (Some(false), true));
    assert_eq!(
        json["summary"]["error"],
        json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["severity"] == "error")
            .count()
    );
    let gitlab: Value = serde_json::from_str(&of("gitlab")).unwrap();
    assert_eq!(gitlab.as_array().unwrap().len(), json["diagnostics"].as_array().unwrap().len());
    let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert!(of("github").lines().all(|line| line.starts_with("::error file=examples/broken/")
        || line.starts_with("::warning file=examples/broken/")));
    assert!(of("junit").starts_with("<?xml"));
}

#[test]
fn a_forge_finds_files_from_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().canonicalize().unwrap();
    for name in ["here/est/groups", "beside/groups"] {
        std::fs::create_dir_all(here.join(name)).unwrap();
        std::fs::write(here.join(name).join("a.yaml"), "nam: A\n").unwrap();
    }
    std::os::unix::fs::symlink("here", here.join("link")).unwrap();
    let absolute = |name: &str| here.join(name).to_str().unwrap().to_owned();
    let rows = [
        ("est".to_owned(), "est/groups/a.yaml"),
        ("./est/".to_owned(), "est/groups/a.yaml"),
        // No forge has a file at `../`.
        ("../beside".to_owned(), "groups/a.yaml"),
        ("../here/est".to_owned(), "est/groups/a.yaml"),
        ("est/../est".to_owned(), "est/groups/a.yaml"),
        (absolute("here/../beside"), "groups/a.yaml"),
        (absolute("here/../here/est"), "est/groups/a.yaml"),
        (absolute("here/est"), "est/groups/a.yaml"),
        (absolute("here/est/"), "est/groups/a.yaml"),
        (absolute("link/est"), "est/groups/a.yaml"),
        (absolute("beside"), "groups/a.yaml"),
    ];
    crate::table::each_row(rows, |(given, file)| {
        let mut command = clade(&["validate", &given, "--format", "github"]);
        let done: Done = command.current_dir(here.join("here")).output().unwrap().into();
        let start = format!("::error file={file},");
        assert!(done.stdout.starts_with(&start), "{}", done.stdout);
    });
}

#[test]
fn a_forge_finds_files_from_the_top_of_the_repository() {
    let repository = GitRepository::new();
    repository.commit("one", &[("x/groups/a.yaml", "nam: A\n")]);
    let top = std::path::PathBuf::from(repository.text_path());
    std::fs::create_dir_all(top.join("x/groups")).unwrap();
    std::fs::write(top.join("x/groups/a.yaml"), "nam: A\n").unwrap();
    std::fs::create_dir(top.join("y")).unwrap();
    let absolute = top.join("x");
    let absolute = absolute.to_str().unwrap();
    let rows = [
        (".", "x"),
        ("x", "."),
        ("x/groups", ".."),
        ("y", "../x"),
        ("x", absolute),
        ("/", absolute),
    ];
    crate::table::each_row(rows, |(here, given)| {
        for more in [&[][..], &["--rev", "HEAD"]] {
            let arguments = [&["validate", given, "--format", "github"], more].concat();
            let done = clade(&arguments).current_dir(top.join(here)).output().unwrap();
            let done: Done = done.into();
            let start = "::error file=x/groups/a.yaml,";
            assert!(done.stdout.starts_with(start), "{arguments:?} {}", done.stdout);
        }
    });
}

/// What CI says of a node is what Puppet Server is answered.
#[test]
fn all_commands_read_the_same_trusted_data_of_a_certname() {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let file = directory.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    put("groups/d.yaml", "name: D\nrule: trusted.domain = example.com\nclasses: {d: {}}\n");
    put("groups/h.yaml", "name: H\nrule: trusted.hostname = web1\nclasses: {h: {}}\n");
    put("groups/r.yaml", "name: R\nrule: trusted.authenticated = remote\nclasses: {r: {}}\n");
    put("fd/web1.example.com.json", "{\"a\": 1}");
    put(
        "tests/t.yaml",
        "- {name: t, node: web1.example.com, expect: {classes: {d: {}, h: {}, r: {}}}}\n",
    );
    let run_here = |arguments: &[&str]| -> Done {
        clade(arguments).current_dir(directory.path()).output().unwrap().into()
    };
    let node = "web1.example.com";
    let facts = ["--facts", "fd/web1.example.com.json"];
    for arguments in [
        &["enc", node, "--repo", ".", "--facts-dir", "fd"][..],
        &[&["classify", node, "."], &facts[..]].concat(),
        &["classify", node, "."],
    ] {
        let done = run_here(arguments);
        let said = done.stdout.replace('"', "");
        let has_all = ["d: {}", "h: {}", "r: {}"].map(|it| said.contains(it));
        assert_eq!((done.status, has_all), (0, [true; 3]), "{arguments:?} {}", done.stdout);
    }
    assert_eq!(run_here(&["test"]).status, 0);
    for rule in ["trusted.domain = example.com", "trusted.hostname = web1"] {
        let done = run_here(&["query", rule, "--facts", "fd"]);
        assert!(done.stdout.contains("1 of 1 node"), "{}", done.stdout);
    }
    // A variable of a shell that is not set.
    for command in ["classify", "explain"] {
        let done = run_here(&[command, "", "."]);
        assert_eq!(done.status, 2);
        assert!(done.stderr.contains("the name of the node is empty"), "{}", done.stderr);
    }
    // A copy of a file of facts has the name of the first in it.
    put("fd/web2.json", "{\"name\": \"web1.example.com\", \"values\": {\"a\": 2}}");
    let done = run_here(&["query", "name ~ web", "--facts", "fd"]);
    let said =
        "`fd/web2.json` holds the facts of `web1.example.com`, as `fd/web1.example.com.json` does";
    assert!(done.stderr.contains(said), "{} {}", done.stdout, done.stderr);
    put("fd/web2.json", "{\"name\": \"other\", \"values\": {\"a\": 2}}");
    assert!(run_here(&["query", "name = other", "--facts", "fd"]).stdout.contains("1 of 2 nodes"));
}

#[test]
fn a_reader_of_help_may_go_away() {
    let status = |arguments: &[&str]| {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        clade(arguments).stdout(write).status().unwrap().code()
    };
    crate::table::each_row(
        [&["--help"][..], &["--version"], &["help", "serve"], &["serve", "--help"], &["lint"]],
        |arguments| assert_eq!(status(arguments), Some(0)),
    );
    assert_eq!(status(&["no-such-command"]), Some(2));
}

#[test]
fn a_revision_is_validated_as_it_was_committed() {
    let repository = GitRepository::new();
    let good = repository.commit("good", &[("estate/groups/a.yaml", "name: a\n")]);
    repository.commit("bad", &[("estate/groups/a.yaml", "nam: a\n")]);
    let directory = format!("{}/estate", repository.text_path());
    let of = |revision: &str| run(&["validate", &directory, "--rev", revision, "--format", "json"]);
    let (first, second) = (of("HEAD~1"), of("main"));
    assert_eq!((first.status, second.status), (0, 1));
    let report: Value = serde_json::from_str(&first.stdout).unwrap();
    assert_eq!(report["commit"], good.as_str());
    let unknown = of("nope");
    assert_eq!(
        (unknown.status, unknown.stderr.as_str()),
        (2, "error: `nope` is not a commit of the repository\n")
    );
}

#[test]
fn a_node_is_classified_and_explained() {
    let facts = "examples/facts/web1.example.com.json";
    let classified = run(&["classify", "web1.example.com", "examples/fleet", "--facts", facts]);
    let answer: Value = serde_json::from_str(&classified.stdout).unwrap();
    assert_eq!((classified.status, answer["environment"].as_str()), (0, Some("production")));
    assert_eq!(answer["parameters"]["resolvers"], serde_json::json!(["203.0.113.53"]));

    let explained = run(&["explain", "web1.example.com", "examples/fleet", "--facts", facts]);
    assert_eq!(explained.status, 0);
    insta::assert_snapshot!(explained.stdout);

    let document = run(&[
        "explain",
        "web1.example.com",
        "examples/fleet",
        "--facts",
        facts,
        "--format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["final_classification"]["environment"], "production");
}

#[test]
fn one_group_is_explained_by_the_condition_that_keeps_a_node_out() {
    let facts = "examples/facts/web2.example.com.json";
    let done = run(&[
        "explain",
        "web2.example.com",
        "examples/fleet",
        "--facts",
        facts,
        "--group",
        "Large webservers",
    ]);
    insta::assert_snapshot!(done.stdout, @r#"
    web2.example.com is not in the group Large webservers
    because its rule does not hold: memory.system.total_bytes is 17179869184, the rule wants memory.system.total_bytes >= 34359738368

    All Nodes
      yes name ~ ".*"  is "web2.example.com"

      Roles
        no rule

        Webservers
          yes trusted.extensions.pp_role = web  is "web"

          Large webservers
            no  memory.system.total_bytes >= 34359738368  is 17179869184
    "#);
    let unknown = run(&["explain", "n", "examples/fleet", "--group", "Large webserver"]);
    assert_eq!(
        (unknown.status, unknown.stderr.as_str()),
        (2, "error: there is no group `Large webserver`; did you mean `Large webservers`?\n")
    );
}

#[test]
fn a_conflict_is_a_finding_and_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("groups")).unwrap();
    let groups = indoc! {"
        name: a
        rule: name ~ n
        variables: {v: 1}
        ---
        name: b
        rule: name ~ n
        variables: {v: 2}
    "};
    std::fs::write(directory.path().join("groups/g.yaml"), groups).unwrap();
    let path = directory.path().to_str().unwrap();
    let classified = run(&["classify", "n1", path]);
    assert_eq!((classified.status, classified.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(classified.stderr.replace(path, "DIR"), @r#"
    error: The node was classified into groups named "a" and "b" that defined conflicting values for the variables "v".
    help: `clade explain n1 DIR` shows the values side by side
    "#);
    let explained = run(&["explain", "n1", path]);
    assert_eq!(explained.status, 1);
    assert!(
        explained.stdout.contains("conflicts\n  variable v\n    a  1\n    b  2\n"),
        "{}",
        explained.stdout
    );
    let enc = run(&["enc", "n1", "--repo", path]);
    assert_eq!(enc.status, 1);
    assert!(
        enc.stdout.starts_with("clade enc: The node was classified into groups")
            && enc.stdout == enc.stderr
    );
    let test = indoc! {"
        - name: expected
          node: n1
          expect: {conflict: true}
        - name: not expected
          node: n1
          expect: {groups: [a]}
    "};
    std::fs::create_dir(directory.path().join("tests")).unwrap();
    std::fs::write(directory.path().join("tests/t.yaml"), test).unwrap();
    let tested = run(&["test", path]);
    assert_eq!(tested.status, 1);
    insta::assert_snapshot!(tested.stdout, @r#"
    test expected ... ok
    test not expected ... FAILED
      at tests/t.yaml:4:9
      the group `b` matches, which is not expected
        its rule holds: name is "n1", the rule wants name ~ n
      The node was classified into groups named "a" and "b" that defined conflicting values for the variables "v".
        variable v
          a  1
          b  2

    1 passed, 1 failed
    "#);
}

#[test]
fn the_command_that_explains_a_conflict_has_the_arguments_of_the_first() {
    let repository = GitRepository::new();
    let group = |name: &str, value: u8| {
        format!("name: {name}\nrule: a.b = x and trusted.c = y\nvariables: {{v: {value}}}\n")
    };
    repository.commit(
        "one",
        &[
            ("groups/a.yaml", &group("a", 1)),
            ("groups/b.yaml", &group("b", 2)),
            ("f.json", r#"{"a": {"b": "x"}}"#),
            ("t.json", r#"{"c": "y"}"#),
        ],
    );
    let at = |name: &str| repository.path().join(name).to_str().unwrap().to_owned();
    let (path, facts, trusted) = (repository.text_path(), at("f.json"), at("t.json"));
    let usual = ["n1", &path, "--rev", "HEAD", "--facts", &facts, "--trusted", &trusted];
    let done = run(&[&["classify"], &usual[..]].concat());
    let command = format!("help: `clade explain {}` shows", usual.join(" "));
    assert!(done.stderr.contains(&command), "{}", done.stderr);
    assert!(run(&[&["explain"], &usual[..]].concat()).stdout.contains("conflicts\n"));
}

#[test]
fn the_enc_document_is_what_ruby_reads() {
    let done = run(&[
        "enc",
        "web1.example.com",
        "--repo",
        "examples/fleet",
        "--facts-dir",
        "examples/facts",
    ]);
    assert_eq!((done.status, done.stderr.as_str()), (0, ""));
    let ours: Value = serde_json::from_str(&done.stdout).unwrap();
    match read_by_ruby(&done.stdout) {
        Some(theirs) => assert_eq!(ours, theirs),
        None => eprintln!("skipped: needs ruby"),
    }
}

#[test]
fn certnames_that_lead_elsewhere_are_refused() {
    let done = run(&["enc", "../web1", "--repo", "examples/fleet"]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (
            1,
            "clade enc: `../web1` is not a certname: write letters, digits, `.`, `_` and `-`, without a `.` at the start or two in a row\n"
        )
    );
}

#[test]
fn an_export_is_imported_and_exported_the_same() {
    let export = r#"[
      {"name":"All Nodes","id":"00000000-0000-4000-8000-000000000000","parent":"00000000-0000-4000-8000-000000000000","environment":"production","environment_trumps":false,"rule":["and",["~","name",".*"]],"classes":{},"variables":{},"config_data":{}},
      {"name":"PE Infrastructure","id":"af56b3d1-e2ec-420f-aa9e-c420c245e8c5","parent":"00000000-0000-4000-8000-000000000000","environment":"production","environment_trumps":false,"classes":{"puppet_enterprise":{"hosts":["a",1,true,null],"mode":"0644"}},"variables":{"x":"yes"},"config_data":{},"serial_number":4,"last_edited":"2024-07-19T10:53:20.184Z"},
      {"name":"Pins/and rules","id":"6d7e375f-6e46-4946-ab23-60206cd06c6b","parent":"af56b3d1-e2ec-420f-aa9e-c420c245e8c5","environment":"agent-specified","environment_trumps":true,"description":"line\nbreak: x","rule":["or",["and",["~",["fact","os","family"],"^D\\d"]],["=","name","web1.example.com"]],"classes":{"a":{},"b::c":{"p":{"k":[{"n":1.5e3}]}}},"variables":{},"config_data":{"b::c":{"q":"${trusted['certname']}"}}},
      {"name":"pins/AND rules","id":"54b59786-2f29-4833-a904-96d7dec41d61","parent":"af56b3d1-e2ec-420f-aa9e-c420c245e8c5","environment":"production","environment_trumps":false,"rule":["or",["=","name","a"],["=","name","b"]],"classes":{},"variables":{},"config_data":{}},
      {"name":"web.yaml","id":"aaaaaaaa-0000-4000-8000-000000000001","parent":"00000000-0000-4000-8000-000000000000","environment":"production","environment_trumps":false,"classes":{},"variables":{},"config_data":{}},
      {"name":"kid","id":"aaaaaaaa-0000-4000-8000-000000000002","parent":"aaaaaaaa-0000-4000-8000-000000000001","environment":"production","environment_trumps":false,"classes":{},"variables":{},"config_data":{}},
      {"name":"web","id":"aaaaaaaa-0000-4000-8000-000000000003","parent":"00000000-0000-4000-8000-000000000000","environment":"production","environment_trumps":false,"classes":{},"variables":{},"config_data":{}}
    ]"#;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.json");
    std::fs::write(&file, export).unwrap();
    check_round_trip(file.to_str().unwrap());
}

#[test]
fn real_exports_are_imported_and_exported_the_same() {
    let groups = root().join("../shared/data/groups");
    if !groups.exists() {
        eprintln!("skipped: needs ../shared");
        return;
    }
    for file in ["pe-2016-default-groups.json", "pe-2023-peadm-style-groups.json"] {
        check_round_trip(groups.join(file).to_str().unwrap());
    }
}

fn check_round_trip(export: &str) {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("estate");
    let target = target.to_str().unwrap();
    let imported = run(&["import", export, target]);
    assert_eq!(imported.status, 0, "{}", imported.stderr);
    let validated = run(&["validate", target]);
    assert_eq!(validated.status, 0, "{}", validated.stdout);
    let exported = run(&["export", target]);
    let normal = |text: &str| -> Vec<Value> {
        let mut groups: Vec<Value> = serde_json::from_str(text).unwrap();
        for group in &mut groups {
            let group = group.as_object_mut().unwrap();
            group.retain(|key, _| {
                !matches!(key.as_str(), "serial_number" | "last_edited" | "deleted")
            });
            group.entry("config_data").or_insert_with(|| serde_json::json!({}));
            if group["name"] == "All Nodes" || group["id"] == "00000000-0000-4000-8000-000000000000"
            {
                group.entry("rule").or_insert_with(|| serde_json::json!(["~", "name", ".*"]));
            }
        }
        groups.sort_by_key(|group| group["id"].to_string());
        groups
    };
    let given = std::fs::read_to_string(export).unwrap();
    assert_eq!(normal(&exported.stdout), normal(&given));
    let again = run(&["import", export, target]);
    assert_eq!(again.status, 2, "nothing is written over");
}

/// The numbers of an export with one group, before and after.
fn numbers_through_import(numbers: &str) -> (Done, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.json");
    let export = format!(
        r#"[{{"name":"N","id":"58463036-0efa-4365-b367-b5401c0711d3","parent":"00000000-0000-4000-8000-000000000000","environment":"JIRA_123","rule":["=","name","n"],"classes":{{"a":{{"p":{numbers}}}}}}}]"#
    );
    std::fs::write(&file, export).unwrap();
    let target = directory.path().join("estate");
    let target = target.to_str().unwrap();
    let imported = run(&["import", file.to_str().unwrap(), target]);
    let enc = run(&["enc", "n", "--repo", target]);
    let enc = serde_json::from_str(&enc.stdout).unwrap_or_default();
    (imported, enc)
}

#[test]
fn every_number_of_an_export_stays_a_number() {
    let (imported, enc) =
        numbers_through_import(r#"[1e3,1e-7,12e-1,1E+30,-0.0,1.5e3,{"x":1E5},"1e3",1e400e]"#);
    assert_eq!(imported.status, 2, "{enc}");
    let (imported, enc) =
        numbers_through_import(r#"[1e3,1e-7,12e-1,1E+30,-0.0,1.5e3,{"x":1E5},"1e3"]"#);
    assert_eq!(imported.status, 0, "{}", imported.stderr);
    assert_eq!(
        enc["classes"]["a"]["p"].to_string(),
        r#"[1.0e+3,1.0e-7,12.0e-1,1.0e+30,-0.0,1.5e+3,{"x":1.0e+5},"1e3"]"#
    );
    assert_eq!(enc["environment"], "JIRA_123");
    let (imported, _) = numbers_through_import("1E+400");
    assert_eq!(imported.status, 1);
    let said = "`N`: the number `1E+400` at `/classes/a/p` is beyond the floats of Puppet";
    assert!(imported.stderr.contains(said), "{}", imported.stderr);
}

#[test]
fn an_import_reports_every_fault_of_an_export() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("export.json");
    let id = |number: u32| format!("00000000-0000-4000-8000-00000000000{number}");
    let group = |name: &str, own: u32, parent: u32, more: &str| {
        format!(
            r#"{{"name":"{name}","id":"{}","parent":"{}","classes":{{}}{more}}}"#,
            id(own),
            id(parent)
        )
    };
    let groups = [
        group("Good", 1, 0, ""),
        group("Bad", 2, 0, r#","environment":"my-env""#),
        group("Below bad", 3, 2, ""),
        group("Below good", 4, 1, ""),
        group("Orphan", 5, 9, ""),
        group("Ring", 6, 7, ""),
        group("Rang", 7, 6, ""),
        "7".to_owned(),
    ];
    std::fs::write(&file, format!("[{}]", groups.join(","))).unwrap();
    let (file, target) = (file.to_str().unwrap(), directory.path().join("estate"));
    let target = target.to_str().unwrap();
    let done = run(&["import", file, target]);
    assert_eq!((done.status, std::fs::exists(target).unwrap()), (1, false));
    insta::assert_snapshot!(done.stderr, @r"
    error: group 2 `Bad`: `my-env` is not an environment name: Puppet allows ASCII letters, digits and underscores
    error: group 8 ``: expected an object, found a number
    error: group `Rang`: inheritance cycle: Ring -> Rang -> Ring: give one of them another parent
    error: group `Ring`: inheritance cycle: Ring -> Rang -> Ring: give one of them another parent
    error: group `Orphan`: its parent 00000000-0000-4000-8000-000000000009 is not in the export: export all groups
    error: group `Below bad`: its parent cannot be imported
    nothing is written: correct 6 groups in the export, or leave them out with --skip-invalid
    ");
    let done = run(&["import", file, target, "--skip-invalid"]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(done.stderr.starts_with("warning: left out: group 2 `Bad`: "), "{}", done.stderr);
    assert!(done.stderr.ends_with("; 6 groups left out\n"), "{}", done.stderr);
    let exported: Value = serde_json::from_str(&run(&["export", target]).stdout).unwrap();
    let names: Vec<&str> =
        exported.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["All Nodes", "Good", "Below good"]);
    std::fs::write(file, "[]").unwrap();
    let empty = run(&["import", file, "/tmp/never"]);
    assert_eq!(
        (empty.status, empty.stderr.as_str()),
        (2, "error: the export has no groups: it must have the root group at least\n")
    );
}

#[test]
fn rules_are_translated() {
    let done = run(&["translate", "os.family = Debian and not name ~ '^web'"]);
    insta::assert_snapshot!(done.stdout, @r#"
    array      ["and",["=",["fact","os","family"],"Debian"],["not",["~","name","^web"]]]
    console    os.family = Debian and name !~ "^web"
    nodes      ["and",["in","certname",["extract","certname",["select_inventory",["=","facts.os.family","Debian"]]]],["not",["~","certname","^web"]]]
    inventory  ["and",["=","facts.os.family","Debian"],["not",["~","certname","^web"]]]
    "#);
    // A rule without a console form gets no approximate one.
    let bare = run(&["translate", r#"["=", "clientcert", "x"]"#]);
    let console = "console    none: the console's notation cannot write the path `\"clientcert\"`, at which \
         no node has a value; for the fact write [\"fact\", \"clientcert\"]";
    assert_eq!(bare.stdout.lines().nth(1), Some(console));
    let bare = run(&["translate", "--format", "json", r#"["=", "clientcert", "x"]"#]);
    let bare: Value = serde_json::from_str(&bare.stdout).unwrap();
    assert_eq!(bare["console"], Value::Null);
    let wrong = run(&["translate", "os.family == Debian"]);
    assert_eq!(
        (wrong.status, wrong.stderr.as_str()),
        (
            1,
            "error: `==` is not an operator (at character 11, `==`); equality is `=`, a regular expression is `~`\n"
        )
    );
}

#[test]
fn a_word_that_belongs_elsewhere_is_said_to() {
    for (arguments, expected) in [
        (&["serve", "."][..], "note: a flag names the repository: `clade serve --repo .`\n"),
        (
            &["lint", "missing-class"],
            "note: a flag names the kind: `clade lint --explain missing-class`\n",
        ),
        (
            &["lint", "."],
            "note: `clade lint` only explains kinds of findings; `clade validate .` checks a repository\n",
        ),
    ] {
        let done = run(arguments);
        assert_eq!((done.status, done.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(done.stderr.ends_with(expected), "{}", done.stderr);
    }
    assert!(!run(&["validate", "a", "b"]).stderr.contains("note: "));
}

#[test]
fn a_command_that_cannot_run_says_why_on_one_line() {
    for (arguments, expected) in [
        (
            &["validate", "/nonexistent"][..],
            "error: cannot read the directory `/nonexistent`: No such file or directory (os error 2)\n",
        ),
        (
            &["validate", "Cargo.toml"],
            "error: `Cargo.toml` is not a directory: name the directory of the repository, all of which is read\n",
        ),
        (
            &["classify", "n", "examples/minimal", "--facts", "/nonexistent"],
            "error: cannot read the facts in `/nonexistent`: No such file or directory (os error 2)\n",
        ),
        (
            &["classify", "n", "examples/broken"],
            "error: the repository is not valid: groups/files.yaml:3:16: `0644` is not the same to all YAML readers: YAML 1.1 reads an octal number, YAML 1.2 a decimal one (and 5 more); see `clade validate examples/broken`\n",
        ),
        (
            &["test", "examples/broken", "--format", "tap"],
            "error: the repository is not valid: groups/files.yaml:3:16: `0644` is not the same to all YAML readers: YAML 1.1 reads an octal number, YAML 1.2 a decimal one (and 5 more); see `clade validate examples/broken`\n",
        ),
        (&["serve"], "error: `--repo URL|PATH` is missing: the group repository to serve\n"),
        (
            &["serve", "--repo", "/nonexistent"],
            "error: `--repo` must be a git repository: correct the path: `/nonexistent` does not exist\n",
        ),
        (
            &["serve", "--repo", "~/groups"],
            "error: `--repo` must be a git repository: correct the path: `~/groups` does not exist: only a shell expands `~`, and not in quotes or in a file; write the whole path\n",
        ),
        (
            &["serve", "--repo", "ssh://git.example.com/x.git"],
            "error: `--ssh-known-hosts-file FILE` is missing: without it the remote cannot be authenticated; make it by \
             `ssh-keyscan HOST > FILE`, and compare the keys with those that the forge publishes\n",
        ),
        (
            &["serve", "--repo", "http://git.example.com/x.git", "--data-dir", "/tmp/never"],
            "error: repositories over `http://` are not allowed, because they are not authenticated: use `https` or `ssh`, or pass --allow-insecure-remotes\n",
        ),
        (
            &["serve", "--repo", "ftp://git.example.com/x.git"],
            "error: repositories over `ftp` are not supported: use `https://`, `ssh://` or a path\n",
        ),
        (
            &["serve", "--repo", ".", "--listen", "0.0.0.0:0"],
            "error: `--listen 0.0.0.0:0` is reachable from other machines and no authentication is configured: listen on 127.0.0.1, configure `--tokens-file`, `--tls-client-ca` or `--proxy-auth-header`, or pass --allow-anonymous\n",
        ),
        (
            &["serve", "--repo", ".", "--listen", "nowhere"],
            "error: `nowhere` is not an address such as 127.0.0.1:4433: invalid socket address\n",
        ),
        (
            &["import", "Cargo.toml", "/tmp/never"],
            "error: the export is not valid JSON: expected value at line 1 column 2\n",
        ),
    ] {
        let done = run(arguments);
        assert_eq!(
            (done.status, done.stdout.as_str(), done.stderr.as_str()),
            (2, "", expected),
            "{arguments:?}"
        );
    }
    let repository = GitRepository::new();
    repository.commit("x", &[("groups/a.yaml", "name: a\n")]);
    let done = run(&["serve", "--repo", &repository.text_path(), "--branch", "nope"]);
    assert_eq!(
        (done.status, done.stderr.as_str()),
        (
            2,
            "error: the repository has no branch `nope`; it has `main`: choose it with `--branch`\n"
        )
    );
    let unknown = run(&["validate", "--nope"]);
    assert_eq!(unknown.status, 2);
    assert!(unknown.stderr.starts_with("error: unexpected argument '--nope' found"));
}

#[test]
fn a_budget_does_not_go_with_a_daemon() {
    let over = ["--commit-budget", "groups=5"];
    let daemon = ["--server", "http://127.0.0.1:1"];
    for command in ["explain", "blame"] {
        let asked = run(&[&[command, "n"], &over[..], &daemon].concat());
        let refused = "`--commit-budget` does not go with `--server`";
        assert!(asked.status == 2 && asked.stderr.contains(refused), "{}", asked.stderr);
        // In the environment it may be meant for other commands.
        let mut program = clade(&[&[command, "n"], &daemon[..]].concat());
        let asked: Done = program.env("CLADE_COMMIT_BUDGET", "groups=5").output().unwrap().into();
        assert!(asked.status == 2 && !asked.stderr.contains(refused), "{}", asked.stderr);
        // The repository is meant, whatever daemon is in the environment.
        let mut program = clade(&[&[command, "n"], &over[..]].concat());
        program.env("CLADE_SERVER", daemon[1]);
        let directory = tempfile::tempdir().unwrap();
        let asked: Done = program.current_dir(directory.path()).output().unwrap().into();
        assert!(!asked.stderr.contains(daemon[1]), "{}", asked.stderr);
    }
}

#[test]
fn completions_and_schemas_are_printed() {
    assert!(run(&["completions", "bash"]).stdout.contains("clade"));
    for kind in run(&["schema"]).stdout.lines() {
        let schema: Value = serde_json::from_str(&run(&["schema", kind]).stdout).unwrap();
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#", "{kind}");
    }
    let page = run(&["man"]);
    assert_eq!((page.status, &*page.stderr), (0, ""));
    assert!(page.stdout.contains("\n.SH SYNOPSIS\n"), "{}", page.stdout);
    let directory = tempfile::tempdir().unwrap();
    let written = run(&["man", directory.path().to_str().unwrap()]);
    assert_eq!((written.status, &*written.stdout), (0, ""));
    assert_eq!(std::fs::read_to_string(directory.path().join("clade.1")).unwrap(), page.stdout);
}

#[test]
fn colours_are_for_terminals_only() {
    let done = clade(&["validate", "examples/broken"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(!String::from_utf8(done.stdout).unwrap().contains('\u{1b}'));
}

#[test]
fn an_evaluation_error_is_shown_at_its_condition() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("groups")).unwrap();
    let group = "name: Evil\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\n";
    std::fs::write(directory.path().join("groups/evil.yaml"), group).unwrap();
    let facts = directory.path().join("facts.json");
    std::fs::write(
        &facts,
        serde_json::json!({"x": format!("{}!", "a".repeat(10_000))}).to_string(),
    )
    .unwrap();
    let done = run(&[
        "explain",
        "n",
        directory.path().to_str().unwrap(),
        "--facts",
        facts.to_str().unwrap(),
    ]);
    assert_eq!(done.status, 2);
    insta::assert_snapshot!(done.stdout);
    assert_eq!(
        done.stderr,
        "error: the rule of the group `Evil` could not be evaluated: the pattern `^(a|aa)+\\1b` used up its step budget\n"
    );
}

#[test]
fn directories_and_files_that_are_too_large_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups");
    std::fs::create_dir(&groups).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", groups.join("link.yaml")).unwrap();
    std::fs::write(groups.join("big.yaml"), "#".repeat(2 << 20)).unwrap();
    let done = run(&["validate", directory.path().to_str().unwrap()]);
    insta::assert_snapshot!(done.stdout, @r"
    error[file-too-large]: the file has 2097152 bytes, 1048576 are allowed
    --> groups/big.yaml:1:1
     = help: split it into several files
     = note: https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics/file-too-large.md

    warning[not-a-file]: this is a symbolic link; it is not followed
    --> groups/link.yaml:1:1
     = help: put the file itself here
     = note: https://github.com/clade-classifier/clade/blob/main/docs/reference/diagnostics/not-a-file.md

    1 error and 1 warning in 0 groups, 2 files
    ");
}

#[test]
fn fmt_writes_the_canonical_form_and_names_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let files = [
        ("groups/a.yaml", "# A group\nrule: name = x # now\nname:   A\n"),
        ("groups/b.yaml", "name: B\n"),
        ("groups/broken.yaml", "name: [\n"),
        ("nodes/n.yaml", "variables: {a: 1,b: 2}\nclasses:\n    x:\n"),
        ("notes.yaml", "not:   ours\n"),
    ];
    for (file, text) in files {
        let file = directory.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let read = |file: &str| std::fs::read_to_string(directory.path().join(file)).unwrap();
    let broken = "groups/broken.yaml:1:7: the `[` that opens here is not closed: not formatted\n";
    let said = format!("groups/a.yaml\n{broken}nodes/n.yaml\n");
    let over = run(&["fmt", path, "--check", "--commit-budget", "entries=2"]);
    assert_eq!(over.status, 2, "{}", over.stderr);
    let checked = run(&["fmt", path, "--check"]);
    assert_eq!(
        (checked.status, &*checked.stdout, checked.stderr),
        (
            1,
            "groups/a.yaml\nnodes/n.yaml\n",
            format!("{broken}2 files would change, 1 not formatted\n")
        )
    );
    assert_eq!(read("groups/a.yaml"), files[0].1);
    let done = run(&["fmt", path]);
    assert_eq!(
        (done.status, done.stderr),
        (1, format!("{said}2 files changed, 1 not formatted\n"))
    );
    assert_eq!(read("groups/a.yaml"), "name: A\n# A group\nrule: name = x # now\n");
    assert_eq!(read("nodes/n.yaml"), "classes:\n  x:\nvariables: {a: 1, b: 2}\n");
    assert_eq!(
        (read("notes.yaml"), read("groups/broken.yaml")),
        (files[4].1.to_owned(), files[2].1.to_owned())
    );
    std::fs::remove_file(directory.path().join("groups/broken.yaml")).unwrap();
    assert_eq!(run(&["fmt", path, "--check"]).status, 0);
    // With its id written, a group keeps it when it is renamed.
    let before = run(&["export", path]).stdout;
    assert_eq!(run(&["fmt", path, "--ids"]).status, 0);
    assert!(read("groups/b.yaml").starts_with("name: B\nid: "), "{}", read("groups/b.yaml"));
    assert_eq!(run(&["export", path]).stdout, before);
    assert_eq!(run(&["fmt", path, "--ids", "--check"]).status, 0);
}

#[test]
fn fmt_names_line_endings_and_what_to_do_about_them() {
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups");
    std::fs::create_dir(&groups).unwrap();
    std::fs::write(groups.join("a.yaml"), "name: A\r\nclasses:\r\n  ntp: {}\r\n").unwrap();
    std::fs::write(groups.join("b.yaml"), "classes: {}\nname: B\n").unwrap();
    let path = directory.path().to_str().unwrap();
    let checked = run(&["fmt", path, "--check"]);
    assert_eq!((checked.status, &*checked.stdout), (1, "groups/a.yaml\ngroups/b.yaml\n"));
    let lines: Vec<&str> = checked.stderr.lines().collect();
    assert_eq!(
        (lines[0], lines[2]),
        ("groups/a.yaml: line endings are CRLF", "2 files would change")
    );
    assert!(lines[1].contains("`.gitattributes`"), "{}", lines[1]);
    let done = run(&["fmt", path]);
    assert!(done.stderr.contains("`.gitattributes`"), "{}", done.stderr);
    let checked = run(&["fmt", path, "--check"]);
    assert_eq!((checked.status, &*checked.stderr), (0, "0 files would change\n"));
}

#[test]
fn fmt_says_where_and_why_a_file_is_not_formatted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("groups/a.yaml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for (text, reason) in [
        (
            &b"name: A\nclasses: {a: {x: 1e3}}\n"[..],
            "2:18: `1e3` is not the same to all YAML readers",
        ),
        (b"name: A\nname: B\n", "2:1: "),
        (b"name: \xff\n", "1:7: "),
    ] {
        std::fs::write(&file, text).unwrap();
        let done = run(&["fmt", directory.path().to_str().unwrap()]);
        let lines: Vec<&str> = done.stderr.lines().collect();
        let place = format!("groups/a.yaml:{reason}");
        assert!(lines[0].starts_with(&place) && lines[0].ends_with(": not formatted"), "{lines:?}");
        assert_eq!((done.status, &lines[1..]), (1, &["0 files changed, 1 not formatted"][..]));
        assert_eq!(std::fs::read(&file).unwrap(), text);
    }
}

#[test]
fn fmt_writes_the_settings_that_the_manual_gives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    std::fs::create_dir(directory.path().join("groups")).unwrap();
    std::fs::write(directory.path().join("groups/a.yaml"), "name: A\n").unwrap();
    let file = directory.path().join("clade.yaml");
    std::fs::write(&file, "policy:   # of this team\n     missing_referents: off\n").unwrap();
    assert_eq!(run(&["fmt", "--check", path]).status, 1);
    let done = run(&["fmt", path]);
    assert_eq!((done.status, &*done.stderr), (0, "clade.yaml\n1 file changed\n"));
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "policy:   # of this team\n  missing_referents: off\n");
    // A link is passed over, as validation passes over it.
    std::os::unix::fs::symlink("/nonexistent", directory.path().join("groups/link.yaml")).unwrap();
    assert_eq!(run(&["fmt", "--check", path]).status, 0);
    assert_eq!(run(&["validate", path]).status, 0);
}

/// Such as `head`, or `grep -q`, in a pipeline that ends with the first failure.
#[test]
fn a_reader_that_goes_early_is_told_what_was_found_by_the_exit_status() {
    let into_nothing = |arguments: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = clade(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let done = done.wait_with_output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let silently = |status| (Some(status), String::new());
    for format in ["human", "json", "sarif", "junit"] {
        let broken = ["validate", "examples/broken", "--format", format];
        assert_eq!(into_nothing(&broken), silently(1), "{format}");
    }
    assert_eq!(into_nothing(&["validate", "examples/minimal"]), silently(0));
    assert_eq!(into_nothing(&["test", "examples/fleet"]), silently(0));
    let (repository, facts) = (GitRepository::new(), tempfile::tempdir().unwrap());
    std::fs::write(facts.path().join("n1.json"), "{}").unwrap();
    repository.commit("one", &[("groups/a.yaml", "name: A\nrule: ['=', name, n1]\n")]);
    let changed = "name: A\nrule: ['=', name, n1]\nclasses: {ntp: {}}\n";
    repository.commit("two", &[("groups/a.yaml", changed)]);
    let (path, facts) = (repository.text_path(), facts.path().to_str().unwrap());
    for format in ["human", "json", "yaml", "markdown"] {
        let differ =
            ["diff", "HEAD~1", "HEAD", "--repo", &path, "--facts", facts, "--format", format];
        assert_eq!(into_nothing(&differ), silently(0), "{format}");
        let strictly = [&differ[..], &["--exit-code"]].concat();
        assert_eq!(into_nothing(&strictly), silently(1), "{format}");
    }
}

#[test]
fn a_misspelt_key_of_facts_or_trusted_data_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let repository = directory.path().join("estate");
    let repository = repository.to_str().unwrap();
    assert_eq!(run(&["init", repository]).status, 0);
    for (flag, text, noted) in [
        ("--facts", r#"{"fact": {"a": 1}, "trused": {}}"#, Some(("trused", "trusted"))),
        ("--facts", r#"{"trusted": {"extension": {}}}"#, Some(("extension", "extensions"))),
        ("--trusted", r#"{"extension": {}}"#, Some(("extension", "extensions"))),
        ("--facts", r#"{"fact": {"trused": 1, "extension": 1}, "environment": "x"}"#, None),
        ("--trusted", r#"{"extensions": {"pp_rol": "web"}, "role": "web"}"#, None),
        ("--facts", r#"{"trused": {"extension": 1}}"#, None),
    ] {
        let file = directory.path().join("node.json");
        let file = file.to_str().unwrap();
        std::fs::write(file, text).unwrap();
        let done = run(&["classify", "web1", repository, flag, file]);
        assert_eq!(done.status, 0, "{text}: {}", done.stderr);
        let note = noted.map(|(key, meant)| {
            format!("note: `{file}` has an unknown key `{key}`: did you mean `{meant}`?\n")
        });
        match note {
            Some(note) => assert!(done.stderr.contains(&note), "{text}: {}", done.stderr),
            None => assert!(!done.stderr.contains("unknown key"), "{text}: {}", done.stderr),
        }
    }
}
