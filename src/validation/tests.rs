mod cases;
mod conflicts;
mod group_places;
mod incremental;
mod independent_faults;
mod other_trees;
mod policies;
mod schemas;

use std::sync::Arc;

use indoc::{formatdoc, indoc};

use super::*;
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::Hierarchy;
use crate::model::{Budget, Interpolation, Meter};
use crate::table::each_row;

/// Validates files given as `path` and text.
fn checked(files: &[(&str, &str)]) -> Checked {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: Arc::from(*path),
        content: SourceContent::Bytes(text.as_bytes().into()),
    };
    validate(&files.iter().map(file).collect::<Vec<_>>(), Search::Everything)
}

/// Writes findings as `file:line:column kind message`, help behind `//`.
pub(super) fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let line = |it: &Arc<Diagnostic>| {
        let start = it.place.span.start;
        let help = it.help.as_ref().map_or(String::new(), |help| format!(" // {help}"));
        format!(
            "{}:{}:{} {} {}{help}",
            it.place.file, start.line, start.column, it.kind, it.message
        )
    };
    checked(files).diagnostics.iter().map(line).collect()
}

/// Writes the related places of a finding as `file:line:column message`.
fn related(found: &Diagnostic) -> Vec<String> {
    let line = |it: &crate::diagnostic::Related| {
        let start = it.place.span.start;
        format!("{}:{}:{} {}", it.place.file, start.line, start.column, it.message)
    };
    found.related.iter().map(line).collect()
}

fn group(text: &str) -> Vec<String> {
    findings(&[("groups/g.yaml", text)])
}

#[test]
fn something_is_done_with_the_tree_beside_the_checks_if_no_file_is_wrong() {
    let counted = |text: &str| {
        let (layout, meter) = (Layout::default(), Arc::new(Meter::new(Budget::DEFAULT)));
        let file = SourceFile {
            path: "groups/g.yaml".into(),
            content: SourceContent::Bytes(text.as_bytes().into()),
        };
        let kind = layout.kind_of(&file).unwrap();
        let readings = [Arc::new(read_file(&file, kind))];
        let commit = Commit {
            layout: &layout,
            readings: &readings,
            schemas: &Arc::default(),
            read: &|_| None,
        };
        let groups = std::sync::Mutex::new(Vec::new());
        let count = |it: &Hierarchy| groups.lock().unwrap().push(it.len());
        let checked = check(&commit, Search::Everything, &meter, &count);
        (checked.estate.is_some(), groups.into_inner().unwrap())
    };
    let valid = "name: A\nparent: All Nodes\nenvironment: production\n";
    assert_eq!(counted(valid), (true, vec![2]));
    assert_eq!(counted(&format!("{valid}x: 1\n")), (false, vec![]));
    let never = format!("{valid}rule: \"name = a and name = b\"\n");
    assert_eq!(counted(&never), (true, vec![2]));
}

#[test]
fn a_repository_without_groups_is_an_error_unless_it_is_meant() {
    let none = "groups:1:1 no-groups there is no node group below `groups/`";
    let said = |files: &[(&str, &str)]| -> Vec<String> {
        let all = findings(files).into_iter();
        all.map(|it| it.split(" // ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(said(&[]), [none]);
    assert_eq!(said(&[("group/a.yaml", "name: A\n"), ("nodes/a.yaml", "variables: {}\n")]), [none]);
    let empty =
        "groups/a.yaml:1:1 unread-file the file has no effect: there is no node group in it";
    assert_eq!(said(&[("groups/a.yaml", "# nothing yet\n")]), [none, empty]);
    // What is wrong with a file of groups is said, and that is enough.
    assert_eq!(said(&[("groups/a.yaml", "name: [\n")]).len(), 1);
    assert_eq!(said(&[("clade.yaml", "groups: [\n")]).len(), 1);
    // A file that no group is in says nothing of groups.
    for path in ["nodes/a.yaml", "environments/a.yaml", "tests/a.yaml"] {
        let found = said(&[(path, "5\n")]);
        assert_eq!((found.len(), found.contains(&none.to_owned())), (2, true), "{found:?}");
    }
    assert_eq!(said(&[("clade.yaml", "allow_empty: true\n")]), Vec::<String>::new());
}

#[test]
fn clade_yaml_says_whether_facts_are_put_into_values() {
    let of = |settings: &str| {
        let checked = checked(&[("clade.yaml", settings), ("groups/a.yaml", "name: A\n")]);
        (checked.estate.map(|it| it.interpolation), checked.diagnostics.len())
    };
    assert_eq!(of("{}\n"), (Some(Interpolation::Off), 0));
    assert_eq!(of("interpolate: false\n"), (Some(Interpolation::Off), 0));
    assert_eq!(of("interpolate: true\n"), (Some(Interpolation::On), 0));
    assert_eq!(of("interpolate: \"true\"\n"), (None, 1), "it is an error");
}

#[test]
fn an_empty_repository_has_the_root_group() {
    let checked = checked(&[("clade.yaml", "allow_empty: true\n")]);
    let estate = checked.estate.as_ref().unwrap();
    assert_eq!((estate.hierarchy.len(), checked.groups), (1, 0));
}

#[test]
fn what_is_valid_is_read_whole() {
    let checked = checked(&[
        (
            "groups/web.yaml",
            "name: Webservers\nid: 58463036-0efa-4365-b367-b5401c0711d3\nparent: All Nodes\n\
             environment: staging\nenvironment_trumps: true\ndescription: web\n\
             rule: trusted.certname ~ \"www\" and memory.system.total_bytes >= 512\n\
             pinned: [web1.example.com]\nclasses:\n  apache: {keepalive_timeout: 5}\n  \"::ssl\":\n\
             variables: {ntp_servers: [0.pool.ntp.org], gone: null}\nconfig_data: {\"profile::web\": {port: 443}}\n---\n\
             name: Child\nparent: Webservers\n",
        ),
        ("groups/deep/er/root.yml", "name: All Nodes\nclasses: {base: {}}\n"),
        ("groups/README.md", "no group"),
        ("nodes/web1.example.com.yaml", "variables: {x: 1}\n"),
        ("environments/dev.yaml", "classes: {apache: {parameters: {port: 80, docroot: null}}}\n"),
        ("environments/staging.yaml", "# its classes are not known\n"),
        (
            "tests/a.yaml",
            "- name: t\n  node: n\n  facts: {a: 1}\n  expect: {groups: [Child], conflict: false}\n",
        ),
        ("unrelated/x.yaml", "- [\n"),
    ]);
    assert_eq!(checked.diagnostics, []);
    let estate = checked.estate.as_ref().unwrap();
    let names: Vec<&str> = estate.hierarchy.groups().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["All Nodes", "Webservers", "Child"]);
    let web = estate.hierarchy.groups().nth(1).unwrap();
    insta::assert_snapshot!(crate::hierarchy::group_to_value(web), @r#"{"name":"Webservers","id":"58463036-0efa-4365-b367-b5401c0711d3","description":"web","environment":"staging","environment_trumps":true,"parent":"00000000-0000-4000-8000-000000000000","rule":["or",["and",["~",["trusted","certname"],"www"],[">=",["fact","memory","system","total_bytes"],"512"]],["=","name","web1.example.com"]],"classes":{"apache":{"keepalive_timeout":5},"ssl":{}},"variables":{"gone":null,"ntp_servers":["0.pool.ntp.org"]},"config_data":{"profile::web":{"port":443}}}"#);
    assert!(estate.individuals.contains_key("web1.example.com"));
    assert!(estate.catalogues.contains_key("dev"));
    assert_eq!(checked.tests().len(), 1);
    assert_eq!(checked.groups, 3);
}

#[test]
fn an_environment_without_classes_has_no_catalogue() {
    let of = |text: &str| {
        let checked = checked(&[
            ("groups/a.yaml", "name: A\nenvironment: dev\nclasses: {any: {p: 1}}\n"),
            ("environments/dev.yaml", text),
        ]);
        let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
        let estate = checked.estate.map(|it| (it.environments.len(), it.catalogues.len()));
        (estate, kinds.join(" "))
    };
    assert_eq!(of("name: dev\n"), (Some((1, 0)), String::new()));
    assert_eq!(of("{}\n"), (Some((1, 0)), String::new()));
    assert_eq!(of(""), (Some((1, 0)), String::new()));
    assert_eq!(of("name: other\n"), (Some((1, 0)), "suspicious-value".to_owned()));
    // Where classes are named, though none, there are no others.
    assert_eq!(of("classes: {}\n"), (None, "missing-class".to_owned()));
    assert_eq!(of("name: dev\nclasses:\n"), (None, "missing-class".to_owned()));
}

#[test]
fn values_are_checked_against_the_types_of_the_environment() {
    let catalogue = |port: &str| {
        formatdoc!(
            r#"
                classes:
                  web:
                    parameters: {{port: 80, ensure: present, options: {{}}, untyped: null}}
                    types:
                      port: {port}
                      ensure: Optional[Enum[present, absent]]
                      options: Hash[String, Array[Stdlib::Port]]
                type_aliases: {{"Stdlib::Port": Integer}}
            "#
        )
    };
    let (production, staging) = (catalogue("Integer"), catalogue("String"));
    let of = |groups: &str| {
        findings(&[
            ("environments/production.yaml", &production),
            ("environments/staging.yaml", &staging),
            ("groups/g.yaml", groups),
        ])
    };
    assert_eq!(
        of("name: a\nclasses:\n  web: {port: 80, ensure: absent, options: {a: [1]}, untyped: x}\n"),
        Vec::<String>::new()
    );
    assert_eq!(of("name: a\nclasses:\n  web: {port: null, ensure: null}\n"), Vec::<String>::new());
    assert_eq!(
        of("name: a\nclasses:\n  web: {port: \"80\", ensure: presnt, options: {a: [1, \"2\"]}}\n"),
        [
            "groups/g.yaml:3:15 parameter-type `port` of the class `web` is the string \"80\"; the environment `production` wants `Integer` // write it without quotes: 80",
            "groups/g.yaml:3:29 parameter-type `ensure` of the class `web` is the string \"presnt\"; the environment `production` wants `Enum['present', 'absent']` // did you mean `present`?",
            "groups/g.yaml:3:46 parameter-type `options.a[1]` of the class `web` is the string \"2\"; the environment `production` wants `Stdlib::Port` // write it without quotes: 2",
        ]
    );
    // What a child overrides does not count in it, what it inherits does.
    let parent =
        "name: a\nclasses:\n  web: {port: 80}\n---\nname: b\nparent: a\nenvironment: staging\n";
    assert_eq!(
        of(parent),
        [
            "groups/g.yaml:3:15 parameter-type `port` of the class `web` is the number 80; the environment `staging` wants `String` // put it in quotes: \"80\""
        ]
    );
    assert_eq!(of(&format!("{parent}classes:\n  web: {{port: \"80\"}}\n")), Vec::<String>::new());
    assert_eq!(
        of("name: a\nclasses:\n  # clade: ignore parameter-type\n  web: {port: \"80\"}\n"),
        Vec::<String>::new()
    );
}

#[test]
fn of_values_with_facts_in_them_only_what_is_certain_is_found() {
    let catalogue = "classes:\n  web:\n    parameters: {tier: , short: , dollar: , port: , many: }\n    types: {tier: \"Enum['prod', 'dev']\", short: \"String[1, 8]\", dollar: \"Enum['$x']\", port: Integer, many: \"Array[Optional['yes']]\"}\n";
    let group = "name: a\nclasses:\n  web: {tier: \"${tier}\", short: \"${networking[fqdn]}\", dollar: '\\$x', port: \"$port\", many: [\"$yes\"]}\n";
    let of = |settings: &str| {
        let files = [
            ("clade.yaml", settings),
            ("groups/g.yaml", group),
            ("environments/production.yaml", catalogue),
        ];
        findings(&files).into_iter().filter(|it| it.contains("parameter-type")).collect::<Vec<_>>()
    };
    assert_eq!(
        of("interpolate: true\n"),
        [
            "groups/g.yaml:3:77 parameter-type `port` of the class `web` is the string \"$port\"; the environment `production` wants `Integer`"
        ]
    );
    assert_eq!(of("interpolate: false\n").len(), 5);
}

#[test]
fn types_of_a_catalogue_are_read() {
    assert_eq!(
        findings(&[
            ("groups/a.yaml", "name: A\n"),
            (
                "environments/production.yaml",
                "classes:\n  a:\n    parameters: {port: 80}\n    types: {port: \"Integer[\", prot: Integer}\n"
            )
        ]),
        [
            "environments/production.yaml:4:19 schema-violation `Integer[` is not a Puppet type such as Optional[Integer[1, 65535]]",
            "environments/production.yaml:4:31 schema-violation `prot` has a type, but is not in `parameters` // did you mean `port`?",
        ]
    );
}

#[test]
fn classes_are_checked_against_the_catalogue_of_the_environment() {
    let catalogue = (
        "environments/production.yaml",
        "classes:\n  ntp: {parameters: {servers: []}}\n  apache:\n",
    );
    let groups = "name: a\nclasses:\n  npt: {}\n  ntp: {server: x, noop: true, tag: [a], name: n}\n---\nname: b\nparent: a\nclasses: {apache: {}}\n---\n\
                  name: free\nenvironment: dev\nclasses: {anything: {}}\n";
    let dev = ("environments/dev.yaml", "{}\n");
    assert_eq!(
        findings(&[catalogue, dev, ("groups/g.yaml", groups)]),
        [
            "groups/g.yaml:3:3 missing-class the environment `production` has no class `npt` // did you mean `ntp`?",
            "groups/g.yaml:4:9 missing-parameter the class `ntp` has no parameter `server` in the environment `production` // did you mean `servers`?",
        ]
    );
    for (policy, count) in [("warn", 2), ("off", 0)] {
        let settings = format!("policy: {{missing_referents: {policy}}}\n");
        let checked =
            checked(&[catalogue, dev, ("groups/g.yaml", groups), ("clade.yaml", &settings)]);
        assert_eq!((checked.diagnostics.len(), checked.is_valid()), (count, true), "{policy}");
    }
}

#[test]
fn an_environment_that_no_file_describes_is_a_warning_once() {
    let of = |files: &[&str], groups: &str| {
        let mut all = vec![("groups/g.yaml", groups)];
        all.extend(files.iter().map(|it| (*it, "{}\n")));
        findings(&all)
    };
    let production = "environments/production.yaml";
    let misspelt = "name: a\nenvironment: produktion\n";
    assert_eq!(
        of(&[production], misspelt),
        [
            "groups/g.yaml:2:14 suspicious-value no file describes the environment `produktion` // did you mean `production`?"
        ]
    );
    // A branch that r10k made an environment of is as valid as any other.
    let branches = indoc! {"
        name: a
        environment: jira_123
        ---
        name: b
        environment: jira_123
        ---
        name: c
        environment: jira_123
    "};
    assert_eq!(
        of(&[production], branches),
        [
            "groups/g.yaml:2:14 suspicious-value no file describes the environment `jira_123`, which 2 more groups name too // correct the name; if the environment exists, add the file `jira_123.yaml` with `name: jira_123` to the directory of environments"
        ]
    );
    assert!(checked(&[(production, "{}\n"), ("groups/g.yaml", branches)]).is_valid());
    let none: [&str; 0] = [];
    assert_eq!(of(&[], misspelt), none);
    assert_eq!(of(&[production, "environments/jira_123.yaml"], branches), none);
    assert_eq!(of(&["environments/dev.yaml"], "name: a\nenvironment: production\n"), none);
    assert_eq!(of(&[production], "name: a\nenvironment: agent-specified\n"), none);
    let ignored = "name: a\n# clade: ignore suspicious-value\nenvironment: produktion\n";
    assert_eq!(of(&[production], ignored), none);
    // An empty file says that the environment exists, as one without classes does.
    let empty = [(production, ""), ("groups/g.yaml", misspelt)];
    assert_eq!(findings(&empty).len(), 1);
}

#[test]
fn a_null_needs_no_parameter() {
    let catalogues = [
        (
            "environments/production.yaml",
            "classes:\n  ntp: {parameters: {restrict: []}}\n  apache:\n",
        ),
        ("environments/staging.yaml", "classes:\n  ntp:\n"),
    ];
    let staging = "---\nname: b\nparent: a\nenvironment: staging\n";
    for (of_b, of_a, expected) in [
        ("classes: {ntp: {restrict: null}}\n", "ntp: {restrict: x}", 0),
        ("classes: {ntp: {restrict: y}}\n", "ntp: {restrict: x}", 1),
        ("", "ntp: {restrict: x}", 1),
        ("classes: {ntp: {}}\n", "ntp: {restrict: x}", 1),
        ("", "apache: {ports: null}", 1),
        ("environment: production\n", "apache: {ports: null}", 0),
    ] {
        let child = if of_b.starts_with("environment") {
            "---\nname: b\nparent: a\n".to_owned()
        } else {
            format!("{staging}{of_b}")
        };
        let groups = format!("name: a\nclasses: {{{of_a}}}\n{child}");
        let found = findings(&[catalogues[0], catalogues[1], ("groups/g.yaml", &groups)]);
        assert_eq!(found.len(), expected, "{groups}: {found:?}");
    }
}

#[test]
fn what_is_inherited_names_the_group_that_inherits_it() {
    let checked = checked(&[
        ("environments/staging.yaml", "classes: {}\n"),
        (
            "groups/g.yaml",
            "name: a\nclasses: {ntp: {}}\n---\nname: b\nparent: a\nenvironment: staging\n",
        ),
    ]);
    let [found] = checked.diagnostics.as_slice() else { panic!("{:?}", checked.diagnostics) };
    assert_eq!(
        found.message,
        "the environment `staging` has no class `ntp`, where `b` inherits it"
    );
    assert_eq!(related(found), ["groups/g.yaml:6:14 `b` inherits it in `staging`"]);
}

#[test]
fn settings_move_directories_and_demand_more() {
    let settings =
        "groups: estate/groups\npolicy: {require_ids: true, require_description: true}\n";
    assert_eq!(
        findings(&[
            ("clade.yaml", settings),
            ("groups/x.yaml", "["),
            ("estate/groups/a.yaml", "name: a\n")
        ])
        .len(),
        2
    );
    assert_eq!(
        findings(&[("clade.yaml", "group: x\nnodes: ../up\npolicy: {missing_referents: never}\n")]),
        [
            "clade.yaml:1:1 schema-violation unknown key `group` in `clade.yaml` // did you mean `groups`?",
            "clade.yaml:2:8 schema-violation `../up` is not a directory below the root of the repository",
            "clade.yaml:3:29 schema-violation `missing_referents` must be `error`, `warn` or `\"off\"`",
        ]
    );
}

#[test]
fn what_is_not_a_file_is_not_followed() {
    let file = |path: &str, content| SourceFile { path: path.into(), content };
    let checked = validate(
        &[
            file("groups/link.yaml", SourceContent::Link),
            file("groups/sub", SourceContent::Submodule),
            file("elsewhere/link", SourceContent::Link),
            file("groups/big.yaml", SourceContent::TooLarge(1 << 21)),
        ],
        Search::Everything,
    );
    let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["file-too-large", "not-a-file", "not-a-file"]);
    assert!(!checked.is_valid());
}

#[test]
fn files_whose_paths_are_shown_alike_are_all_found() {
    let path = "groups/\u{fffd}.yaml";
    let checked = checked(&[(path, "name: A\n"), (path, "name: B\n"), (path, "name: C\n")]);
    let groups = checked.estate.as_ref().unwrap().hierarchy.groups();
    let found = groups.filter_map(|it| checked.group_file(it.id)?.name());
    assert_eq!(found.map(ToString::to_string).collect::<Vec<_>>(), ["A", "B", "C"]);
}

/// It has no text, so it is neither unknown nor a name that nothing can read.
#[test]
fn of_a_key_that_is_a_list_or_mapping_that_alone_is_said() {
    let files = [
        ("clade.yaml", "? [x]\n: 1\npolicy:\n  ? {a: b}\n  : 1\n"),
        ("groups/a.yaml", "name: A\n? [x]\n: 1\nvariables:\n  ? [x]\n  : 1\n  ? [x]\n  : 2\n"),
        ("nodes/n.yaml", "? [x]\n: 1\nvariables:\n  ? {a: b}\n  : 1\n"),
        ("environments/e.yaml", "classes:\n  b:\n    ? [x]\n    : 1\n"),
        ("tests/t.yaml", "- name: t\n  node: n\n  ? [x]\n  : 1\n  expect:\n    ? [x]\n    : 1\n"),
    ];
    let found = findings(&files);
    assert_eq!(found.len(), 10, "{found:#?}");
    assert!(found.iter().all(|it| it.ends_with(", it must be a string")), "{found:#?}");
}

#[test]
fn a_comment_silences_a_warning_but_no_error() {
    for (comment, count) in
        [("# clade: ignore suspicious-rule\n", 0), ("# clade: ignore never-matches\n", 1), ("", 1)]
    {
        assert_eq!(
            group(&format!("name: g\n{comment}rule: [\"=\", [fact, osfamily], x]\n")).len(),
            count
        );
    }
    assert_eq!(group("name: g\n# clade: ignore schema-violation\nbad: 1\n").len(), 1);
}

#[test]
fn nodes_environments_and_tests_are_checked() {
    assert_eq!(
        findings(&[
            ("groups/g.yaml", "name: G\n"),
            ("nodes/a.yaml", "variables: {x: 1}\n"),
            ("nodes/b.yaml", "name: a\n"),
            ("nodes/c.yaml", "environment: x\n"),
            ("environments/My-Env.yaml", "classes: {}\n"),
            ("environments/p.yaml", "name: production\nclasses: {a: {parameter: 1}}\n"),
            ("environments/production.yaml", "classes: {}\n"),
            (
                "tests/t.yaml",
                "- name: t\n  expect: {group: []}\n- node: n\n  facts: {}\n  facts_file: x\n"
            ),
        ]),
        [
            "environments/My-Env.yaml:1:1 schema-violation `My-Env` is not an environment name: Puppet allows ASCII letters, digits and underscores // rename the file, or write a `name`",
            "environments/p.yaml:2:15 schema-violation unknown key `parameter` in a class // did you mean `parameters`?",
            "environments/production.yaml:1:1 uniqueness-violation the environment `production` has a second file // put both together into one",
            "nodes/b.yaml:1:7 uniqueness-violation the node `a` has a second file // put both together into one",
            "nodes/c.yaml:1:1 schema-violation unknown key `environment` in a node // the keys are `name`, `classes`, `variables`, `config_data`",
            "tests/t.yaml:1:3 schema-violation a test needs `node`",
            "tests/t.yaml:2:12 schema-violation unknown key `group` in `expect` // did you mean `groups`?",
            "tests/t.yaml:3:3 schema-violation a test needs `expect`",
            "tests/t.yaml:3:3 schema-violation a test needs `name`",
            "tests/t.yaml:5:3 schema-violation a test has `facts` or `facts_file`, not both",
        ]
    );
}

#[test]
fn a_name_that_is_not_of_an_environment_is_told_once() {
    let group = ("groups/g.yaml", "name: G\n");
    let test = "- {name: t, node: n, expect: {environment: feature-1}}\n";
    assert_eq!(
        findings(&[group, ("tests/t.yaml", test)]),
        [
            "tests/t.yaml:1:44 schema-violation `feature-1` is not an environment name: Puppet allows ASCII letters, digits and underscores"
        ]
    );
    let said = "suspicious-value `agent-specified` is not an environment: it leaves the choice to the agent // give the file the name of an environment, or remove it";
    for (path, text, at) in [
        ("environments/agent-specified.yaml", "classes: {}\n", "1:1"),
        ("environments/a.yaml", "name: agent-specified\n", "1:7"),
    ] {
        assert_eq!(findings(&[group, (path, text)]), [format!("{path}:{at} {said}")]);
    }
}

#[test]
fn a_test_that_can_only_pass_is_an_error() {
    let of = |expect: &str, search: Search| {
        let file = |path: &str, text: &str| SourceFile {
            path: path.into(),
            content: SourceContent::Bytes(text.as_bytes().into()),
        };
        let test = format!("- name: t\n  node: n\n  expect: {expect}\n");
        let files = [file("groups/a.yaml", "name: A\n"), file("tests/t.yaml", &test)];
        let checked = validate(&files, search);
        let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
        (kinds.join(" "), checked.is_valid())
    };
    for nothing in ["{}", "{classes: {}}", "{variables: {}, config_data: }"] {
        let error = ("schema-violation".to_owned(), false);
        assert_eq!(of(nothing, Search::Everything), error, "{nothing}");
        // A commit answers the same with the test and without.
        assert_eq!(of(nothing, Search::Decisive), (String::new(), true), "{nothing}");
    }
    for something in ["{groups: []}", "{conflict: false}", "{classes: {a: }}", "{environment: e}"] {
        assert_eq!(of(something, Search::Everything), (String::new(), true), "{something}");
    }
}

#[test]
fn files_without_anything_in_them_are_named() {
    let group = ("groups/a.yaml", "name: A\n");
    for (path, text, expected) in [
        ("groups/b.yaml", "", Some("node group")),
        ("groups/b.yaml", "# later\n---\n", Some("node group")),
        ("nodes/n.yaml", "# later\n", Some("document")),
        ("tests/t.yaml", "", Some("test")),
        ("tests/t.yaml", "[]\n", Some("test")),
        ("nodes/n.yaml", "{}\n", None),
        ("environments/production.yaml", "", None),
        ("clade.yaml", "", None),
        ("groups/b.yaml", "---\nname: B\n---\n", None),
    ] {
        let expected: Vec<String> = expected
            .map(|it| format!("{path}:1:1 unread-file the file has no effect: there is no {it} in it // write what is missing, or remove the file"))
            .into_iter()
            .collect();
        assert_eq!(findings(&[group, (path, text)]), expected, "{path}: {text}");
    }
    // What is wrong is said, and that is enough.
    for (path, text) in
        [("tests/t.yaml", "- 5\n"), ("tests/t.yaml", "{}\n"), ("groups/b.yaml", "[\n")]
    {
        assert_eq!(findings(&[group, (path, text)]).len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_path_of_facts_is_relative_and_not_in_git() {
    let tests = |path: &str| {
        format!("- {{name: t, node: n, facts_file: '{path}', expect: {{conflict: false}}}}\n")
    };
    let rows = [
        ("n.yaml", "tests/unit/n.yaml"),
        ("../../facts/./n.yaml", "facts/n.yaml"),
        ("../../facts//a/../n.yaml", "facts/n.yaml"),
        (".gitignore", "tests/unit/.gitignore"),
        ("../../../../facts/n.yaml", "../../facts/n.yaml"),
    ];
    each_row(rows, |(path, expected)| {
        let checked = checked(&[("tests/unit/t.yaml", &tests(path))]);
        assert_eq!(checked.tests()[0].facts_file.as_deref(), Some(expected));
    });
    for path in ["/etc/passwd", "//etc/passwd", "../../.git/config", "../../a/../.GIT/config"] {
        assert_eq!(
            findings(&[("groups/a.yaml", "name: A\n"), ("tests/unit/t.yaml", &tests(path))]),
            [
                "tests/unit/t.yaml:1:34 schema-violation `facts_file` must be a path in the repository, relative to this file"
            ],
            "{path}"
        );
    }
}

#[test]
fn a_search_for_conflicts_that_ends_early_is_a_warning_at_a_group() {
    let checked = checked(&[("groups/a.yaml", "# first\nname: A\n---\nname: B\nparent: A\n")]);
    let estate = checked.estate.as_ref().unwrap();
    let places =
        places::Places { origins: &checked.origins, readings: &checked.readings, all: None };
    let last = estate.hierarchy.indexes().next_back().unwrap();
    let found = overlap::unfinished(last, estate, places).unwrap();
    let start = found.place.span.start;
    assert_eq!((found.place.file.as_ref(), start.line, start.column), ("groups/a.yaml", 4, 7));
    assert_eq!(
        (found.kind, found.severity),
        (Kind::PotentialConflict, crate::diagnostic::Severity::Warning)
    );
    assert_eq!(found.group.as_deref(), Some("B"));
    assert!(found.message.ends_with("the search for conflicts ended at this group"));
    assert!(found.help.is_some_and(|it| it.contains("clade validate --facts")));
}

#[test]
fn a_file_or_test_of_a_node_names_one_that_there_can_be() {
    for (path, text, expected) in [
        (
            "tests/t.yaml",
            "- {name: t, node: Web1, expect: {groups: []}}\n",
            "tests/t.yaml:1:19 suspicious-value certnames are lowercase, so no node has the name `Web1` // write `web1`",
        ),
        (
            "nodes/Web1.yaml",
            "variables: {a: 1}\n",
            "nodes/Web1.yaml:1:1 suspicious-value certnames are lowercase, so no node has the name `Web1` // write `web1`",
        ),
        (
            "nodes/a.yaml",
            "name: ''\nvariables: {a: 1}\n",
            "nodes/a.yaml:1:7 suspicious-value no node has an empty certname // write the certname of the node",
        ),
        (
            "nodes/a.yaml",
            "variables: {a: 1}\nname: web*\n",
            "nodes/a.yaml:2:7 suspicious-value this is the certname of one node, so `web*` is not a pattern // for several nodes, write a group with a rule: `name ~ \"^web\"`",
        ),
    ] {
        let group = ("groups/g.yaml", "name: G\n");
        assert_eq!(findings(&[group, (path, text)]), [expected], "{path}");
    }
}

#[test]
fn values_with_a_dollar_are_found_as_the_setting_says() {
    let group = concat!(
        "name: a\n",
        "classes:\n",
        "  c:\n",
        "    p: 'x ${trusted[certname]}'\n",
        "    q: [{k: '\\$6\\$'}, $6$, 5$]\n",
        "variables: {v: \"a ${$os + 1} $::os\", w: plain}\n",
        "config_data: {c: {p: $os}}\n",
    );
    let node = "variables: {v: '$os', w: \"\\\\$\\n$1\"}\n";
    let of = |settings: &str| {
        let files = [("clade.yaml", settings), ("groups/a.yaml", group), ("nodes/n.yaml", node)];
        let all = findings(&files).into_iter();
        all.map(|it| it.split(" // ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        of("interpolate: false\n"),
        [
            "groups/a.yaml:4:8 uninterpolated-value facts are not put into values, so `x ${trusted[certname]}` stays as it is",
            "groups/a.yaml:5:13 uninterpolated-value facts are not put into values, so `\\$6\\$` stays as it is",
            "nodes/n.yaml:1:16 uninterpolated-value facts are not put into values, so `$os` stays as it is",
            "nodes/n.yaml:1:26 uninterpolated-value facts are not put into values, so `\\$ $1` stays as it is",
        ]
    );
    assert_eq!(
        of("interpolate: true\n"),
        [
            "groups/a.yaml:5:23 suspicious-value `$` stays as it is: a `$` before a digit begins no reference to a fact (and 1 more in this value)",
            "groups/a.yaml:5:29 suspicious-value `$` stays as it is: a `$` that begins no reference to a fact",
            "groups/a.yaml:6:19 suspicious-value `${$os + 1}` stays as it is: values know neither operators nor functions: nothing but indexes may follow the name of a fact (and 1 more in this value)",
            "nodes/n.yaml:1:26 suspicious-value `$` stays as it is: a `$` before a digit begins no reference to a fact",
        ]
    );
}

#[test]
fn a_string_with_too_many_references_is_an_error_where_they_count() {
    let group = format!("name: a\nvariables: {{v: '{}'}}\n", "$a".repeat(1_001));
    let of = |settings: &str| {
        let files = [("clade.yaml", settings), ("groups/a.yaml", group.as_str())];
        checked(&files).diagnostics.iter().map(|it| it.kind).collect::<Vec<_>>()
    };
    assert_eq!(of("interpolate: true\n"), [Kind::SchemaViolation]);
    assert_eq!(of("interpolate: false\n"), [Kind::UninterpolatedValue]);
}

#[test]
fn a_parent_is_looked_for_by_id_and_then_by_name() {
    const ID: &str = "33333333-1111-4111-8111-111111111111";
    let parent_of_kid = |text: &str| {
        let checked =
            checked(&[("groups/g.yaml", &format!("{text}---\nname: Kid\nparent: {ID}\n"))]);
        assert!(checked.is_valid(), "{:?}", checked.diagnostics);
        let hierarchy = checked.estate.unwrap().hierarchy;
        let kid = hierarchy.groups().find(|it| it.name.as_str() == "Kid").unwrap();
        let parent = hierarchy.find(kid.parent).unwrap();
        hierarchy.group(parent).name.to_string()
    };
    assert_eq!(parent_of_kid(&format!("name: A\nid: {ID}\n")), "A");
    assert_eq!(parent_of_kid(&format!("name: {ID}\n")), ID);
    assert_eq!(parent_of_kid(&format!("name: {ID}\n---\nname: A\nid: {ID}\n")), "A");
}

#[test]
fn ten_of_many_groups_of_one_name_are_named() {
    for count in [10, 11, 300] {
        let namesakes = (0..count).map(|it| format!("name: A\nenvironment: e{it}\n"));
        let text: Vec<String> = namesakes.chain(["name: B\nparent: A\n".to_owned()]).collect();
        let found = checked(&[("groups/g.yaml", &text.join("---\n"))]).diagnostics;
        let found = found.iter().find(|it| it.kind == Kind::AmbiguousParent).unwrap();
        let help = found.help.as_deref().unwrap();
        assert_eq!(help.matches('`').count(), 20, "{help}");
        let more = format!(" or that of another of the {count}");
        assert_eq!(help.ends_with(&more), count > 10, "{help}");
        assert_eq!(found.related.len(), 10);
    }
}
