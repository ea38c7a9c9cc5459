//! Faults of one document that have nothing to do with each other: each is found, and nothing that only follows.

use std::collections::BTreeMap;

use super::{checked, findings};
use crate::table::each_row;

const OTHER_ID: &str = "11111111-1111-4111-8111-111111111111";

/// Where a fault stands in the group.
#[derive(Clone, Copy)]
enum Slot {
    /// The value of a key, which has one fault.
    Key(&'static str, &'static str),
    /// A line of its own at the end of the document.
    Line(&'static str),
    Class(&'static str),
    Variable(&'static str),
}
use Slot::{Class, Key, Line, Variable};

/// A fault, how its finding begins, and a second group that it needs.
type FaultOfGroup = (Slot, &'static str, &'static str);

const FAULTS: &[FaultOfGroup] = &[
    (Variable("d: 1\n  d: 2"), "duplicate-key key `d`", ""),
    (Variable("m: yes"), "ambiguous-scalar `yes`", ""),
    (Variable("t: !x a"), "malformed-yaml tags such as `!x`", ""),
    (Variable("<<: {z: 1}"), "malformed-yaml merge keys", ""),
    (Variable("5: x"), "malformed-yaml the key `5`", ""),
    (Line("foo: 1"), "schema-violation unknown key `foo`", ""),
    (Line("<<: {parent: B}"), "malformed-yaml merge keys", ""),
    (Line("config_data: !y {ok: {a: 1}}"), "malformed-yaml tags such as `!y`", ""),
    (Key("environment", "my-env"), "schema-violation `my-env`", ""),
    (Key("environment", "nowhere"), "suspicious-value no file describes", ""),
    (Key("environment_trumps", "5"), "schema-violation `environment_trumps`", ""),
    (Key("environment_trumps", "on"), "ambiguous-scalar `on`", ""),
    (Key("pinned", "web"), "schema-violation `pinned`", ""),
    (Key("description", "5"), "schema-violation `description`", ""),
    (Key("description", "no"), "ambiguous-scalar `no`", ""),
    (Class("Bad: {x: 1}"), "schema-violation `Bad`", ""),
    (Class("ok: 7"), "schema-violation the parameters of `ok`", ""),
    (Class("twice: {a: 1}\n  \"::twice\": {b: 1}"), "duplicate-key the class `twice`", ""),
    (Variable("facts: 1"), "schema-violation `facts`", ""),
    (Variable("deep: {\"<<\": 1}"), "schema-violation `<<`", ""),
    (Key("id", "zz"), "malformed-uuid `zz`", ""),
    (Key("rule", "[foo]"), "invalid-rule", ""),
    (Key("rule", "[\"~\", name, \"(\"]"), "invalid-regex", ""),
    (Key("rule", "'os.family = x and os.family = y'"), "never-matches", ""),
    (
        Key("id", OTHER_ID),
        "uniqueness-violation the id",
        "name: Other\nid: 11111111-1111-4111-8111-111111111111\n",
    ),
    (
        Line("# name"),
        "uniqueness-violation the environment `production` has a second group",
        "name: G\nid: 22222222-2222-4222-8222-222222222222\n",
    ),
    (Key("parent", "Far"), "inheritance-cycle", "name: Far\nparent: G\n"),
    (Key("parent", "Nope"), "missing-parent", ""),
    (Class("nope: {x: 1}"), "missing-class", ""),
    (Class("known: {nope: 1}"), "missing-parameter", ""),
    (Class("typed: {port: x}"), "parameter-type", ""),
    (Variable("u: \"$os\""), "uninterpolated-value", ""),
];

const CATALOGUE: &str = "classes:\n  known:\n  ok:\n  twice: {parameters: {a: , b: }}\n  typed: {parameters: {port: }, types: {port: Integer}}\n";

/// Writes a group with some faults, and the other groups that they need; `None` if both stand in one place.
fn files(faults: &[&FaultOfGroup]) -> Option<(String, String)> {
    let (mut keys, mut lines) = (BTreeMap::new(), String::new());
    let (mut classes, mut variables, mut others) = (String::new(), String::new(), Vec::new());
    for (slot, _, other) in faults {
        match slot {
            Key(key, value) if keys.insert(*key, *value).is_some() => return None,
            Key(..) => {}
            Line(line) => lines.extend([line, "\n"]),
            Class(line) => classes.extend(["  ", line, "\n"]),
            Variable(line) => variables.extend(["  ", line, "\n"]),
        }
        others.extend((!other.is_empty()).then_some(*other));
    }
    let mut text = "name: G\n".to_owned();
    text.extend(keys.iter().map(|(key, value)| format!("{key}: {value}\n")));
    text += &lines;
    for (key, entries) in [("classes", classes), ("variables", variables)] {
        if !entries.is_empty() {
            text.extend([key, ":\n", &entries]);
        }
    }
    Some((text, others.join("---\n")))
}

/// Returns whether one fault leaves open whether there is the other.
fn is_open(one: &FaultOfGroup, other: &FaultOfGroup) -> bool {
    let (one, other) = (one.1, other.1);
    let of_catalogue = ["missing-class", "missing-parameter", "parameter-type"];
    let needs_environment =
        of_catalogue.contains(&other) || other.starts_with("uniqueness-violation the env");
    let has_environment = !one.contains("`my-env`") && !one.contains("no file describes");
    // A name that two groups have names no parent, which is said.
    let is_ambiguous =
        one.starts_with("uniqueness-violation the env") && other == "inheritance-cycle";
    needs_environment && !has_environment || is_ambiguous
}

fn found(faults: &[&FaultOfGroup]) -> Option<(String, Vec<String>)> {
    let (group, others) = files(faults)?;
    let mut files = vec![
        ("groups/g.yaml", group.as_str()),
        ("environments/production.yaml", CATALOGUE),
        ("environments/staging.yaml", "{}\n"),
    ];
    files.extend((!others.is_empty()).then_some(("groups/a.yaml", others.as_str())));
    let found = findings(&files).into_iter();
    let kinds =
        found.map(|it| it.split_once(' ').map_or_else(String::new, |(_, it)| it.to_owned()));
    Some((group.clone(), kinds.collect()))
}

#[test]
fn each_two_faults_of_a_group_are_both_found_and_nothing_else() {
    let mut pairs = Vec::new();
    for (at, one) in FAULTS.iter().enumerate() {
        pairs.push(vec![one]);
        let others = FAULTS.iter().skip(at + 1);
        let decided = others.filter(|it| !is_open(one, it) && !is_open(it, one));
        pairs.extend(decided.map(|it| vec![one, it]));
    }
    let mut wrong = Vec::new();
    let mut compared = 0;
    for faults in pairs {
        let Some((text, found)) = found(&faults) else { continue };
        compared += 1;
        let has = |it: &&FaultOfGroup| found.iter().any(|found| found.starts_with(it.1));
        if found.len() != faults.len() || !faults.iter().all(has) {
            let expected: Vec<&str> = faults.iter().map(|it| it.1).collect();
            wrong.push(format!("{text}expected {expected:#?}, found {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(compared > 400, "{compared}");
}

/// Writes the findings of one file beside a valid group, without file and help.
fn of_file(path: &str, text: &str) -> Vec<String> {
    let all = findings(&[("groups/valid.yaml", "name: Valid\n"), (path, text)]);
    let short = |it: &String| {
        let it = it.strip_prefix(path).and_then(|it| it.strip_prefix(':')).unwrap_or(it);
        it.split(" // ").next().unwrap_or_default().to_owned()
    };
    all.iter().map(short).collect()
}

/// Compares that each two faults of a document are both found; each has a line of its own.
fn check_pairs(path: &str, faults: &[(&str, &str)]) {
    for (at, one) in faults.iter().enumerate() {
        for other in &faults[at + 1..] {
            let text = [one.0, other.0].concat();
            let found = of_file(path, &text);
            let has = |it: &str| found.iter().any(|found| found.contains(it));
            assert!(has(one.1) && has(other.1) && found.len() == 2, "{text}{found:#?}");
        }
    }
}

#[test]
fn each_two_faults_of_a_node_are_both_found() {
    let faults = [
        ("name: 5\n", "schema-violation `name`"),
        ("variables: {x: yes}\n", "ambiguous-scalar `yes`"),
        ("<<: {a: 1}\n", "malformed-yaml merge keys"),
        ("foo: 1\n", "schema-violation unknown key `foo`"),
        ("classes: {Bad: }\n", "schema-violation `Bad`"),
        ("config_data: 5\n", "schema-violation `config_data`"),
    ];
    check_pairs("nodes/n.yaml", &faults);
    assert_eq!(
        of_file("nodes/n.yaml", "variables: {x: yes, facts: 1}\n"),
        [
            "1:16 ambiguous-scalar `yes` is not the same to all YAML readers: Ruby reads a boolean",
            "1:21 schema-violation `facts` is not a variable name: Puppet reserves it and fails the run",
        ]
    );
}

#[test]
fn each_two_faults_of_a_file_of_tests_are_both_found() {
    let faults = [
        ("- {name: a, node: n, facts: {f: yes}, expect: {groups: []}}\n", "ambiguous-scalar `yes`"),
        ("- {name: a, node: n, facts: {<<: {f: 1}}, expect: {groups: []}}\n", "merge keys"),
        ("- {name: a, node: n, expect: {groups: !x []}}\n", "tags such as `!x`"),
        ("- {node: n, expect: {groups: []}}\n", "schema-violation a test needs `name`"),
        ("- 5\n", "schema-violation a test: expected a mapping, found a number"),
        ("- {name: a, node: n, expect: {}}\n", "says nothing that could fail"),
        ("- {name: a, node: n}\n", "schema-violation a test needs `expect`"),
        ("- {name: a, node: n, expect: {variables: {facts: 1}}}\n", "schema-violation `facts`"),
        ("- {name: 7, node: n, expect: {groups: []}}\n", "schema-violation `name`"),
        ("- {name: a, node: n, expect: {environment: a-b}}\n", "schema-violation `a-b`"),
    ];
    check_pairs("tests/t.yaml", &faults);
}

/// Groups with faults that others seem to follow from, and the kinds of all findings.
const FOLLOWED: &[(&str, &str)] = &[
    ("name: A\nenvironment_trumps: on\n", "ambiguous-scalar"),
    ("name: A\npinned: on\n", "ambiguous-scalar"),
    ("name: !!str 5\n", "malformed-yaml"),
    ("name: A\nparent: no\n", "ambiguous-scalar"),
    ("name: A\nrule: on\n", "ambiguous-scalar"),
    ("name: A\nid: 0644\n", "ambiguous-scalar"),
    ("<<: {name: A}\n", "malformed-yaml"),
    ("name: {{ a }}\n", "malformed-yaml"),
    // The class is not missing: its name is refused.
    ("name: A\nclasses: {Bad: {x: 1}}\n", "schema-violation"),
    ("name: A\nclasses: {typed: {port: 0644}}\n", "ambiguous-scalar"),
    ("name: A\nclasses: {typed: {port: [0644]}}\n", "ambiguous-scalar"),
    // The environment is not `production`, though which it is is not known.
    ("name: A\nenvironment: a-b\nclasses: {nope: }\n", "schema-violation"),
    ("name: A\nenviroment: dev\nclasses: {nope: }\n", "schema-violation"),
    ("name: A\n<<: {environment: dev}\nclasses: {nope: }\n", "malformed-yaml"),
    ("name: A\nenvironment: dev\nenvironment: x\nclasses: {nope: }\n", "duplicate-key"),
    // Which parent is meant is not known.
    ("name: A\nparent: B\nparent: C\n---\nname: B\nparent: A\n", "duplicate-key"),
    ("name: A\nparent: [B]\n---\nname: B\nparent: A\n", "schema-violation"),
    ("name: A\nid: zz\n---\nname: B\nparent: A\n", "malformed-uuid"),
    // Two ids and two environments that cannot be read are not the same.
    ("name: A\nid: zz\n---\nname: B\nid: zz\n", "malformed-uuid malformed-uuid"),
    (
        "name: A\nenvironment: a-b\n---\nname: A\nenvironment: a-b\n",
        "schema-violation schema-violation",
    ),
    // Nodes that are pinned may be others than those of the rule.
    (
        "name: A\nrule: name = a\npinned: b\n---\nname: B\nparent: A\nrule: name = b\n",
        "schema-violation",
    ),
    (
        "name: A\nrule: name = a\npined: [b]\n---\nname: B\nparent: A\nrule: name = b\n",
        "schema-violation",
    ),
    (
        "name: A\nrul: name = a\npinned: [c]\n---\nname: B\nparent: A\nrule: name = b\n",
        "schema-violation",
    ),
    (
        "name: A\npinned: [x]\npinned: [b]\n---\nname: B\nparent: A\nrule: name = b\n",
        "duplicate-key",
    ),
    (
        "{name: A, pinned: [x], pinned: [b]}\n---\nname: B\nparent: A\nrule: name = b\n",
        "duplicate-key",
    ),
    // A group whose name could not be read may be the parent that is meant.
    ("nmae: Web\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("title: Web\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("- name: Web\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("groups:\n  - name: Web\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("group:\n  name: Web\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("Web:\n  rule: name = a\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("name: 404\n---\nname: B\nparent: \"404\"\n", "schema-violation"),
    ("name: [Web]\n---\nname: B\nparent: Web\n", "schema-violation"),
    ("name: G\nname: H\n---\nname: B\nparent: H\n", "duplicate-key"),
    ("name: G\nname: H\n---\nname: B\nparent: I\n", "duplicate-key missing-parent"),
    ("<<: {name: Web}\n---\nname: B\nparent: Web\n", "malformed-yaml"),
    (
        "name: G\nid: 22222222-2222-4222-8222-222222222222\nid: 11111111-1111-4111-8111-111111111111\n---\nname: B\nparent: 11111111-1111-4111-8111-111111111111\n",
        "duplicate-key",
    ),
    (
        "nmae: G\nid: 11111111-1111-4111-8111-111111111111\n---\nname: B\nparent: 11111111-1111-4111-8111-111111111111\n",
        "schema-violation",
    ),
    // The groups behind the fault are not known, but a name that is like another one is most likely misspelt.
    ("name: Web\n---\nname: B\nparent: Datbase\n---\nname: [\n", "malformed-yaml"),
    (
        "name: Database\n---\nname: B\nparent: Datbase\n---\nname: [\n",
        "missing-parent malformed-yaml",
    ),
    // Two groups of one id are not two groups that a parent may be.
    ("name: A\n---\nname: A\n---\nname: B\nparent: A\n", "uniqueness-violation"),
    ("name: A\nrule: [foo]\n---\nname: B\nparent: A\nrule: name = b\n", "invalid-rule"),
    ("name: All Nodes\nrule: [foo]\n", "invalid-rule"),
    ("name: All Nodes\nid: zz\n", "malformed-uuid"),
];

#[test]
fn what_only_follows_from_a_fault_is_not_a_finding() {
    each_row(FOLLOWED.iter().copied(), |(text, expected)| {
        let checked =
            checked(&[("groups/g.yaml", text), ("environments/production.yaml", CATALOGUE)]);
        let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
        assert_eq!(kinds.join(" "), expected, "{text}{:#?}", checked.diagnostics);
        assert!(checked.estate.is_none(), "{text}");
    });
}

#[test]
fn faults_among_groups_are_found_beside_those_of_a_group() {
    let catalogue = ("environments/production.yaml", "classes: {}\n");
    let policy = ("clade.yaml", "policy: {require_ids: true}\n");
    let rows = [
        (
            "name: A\nparent: B\nclasses: {Bad: }\n---\nname: B\nparent: A\n",
            "2:9 inheritance-cycle; 3:11 schema-violation",
        ),
        // A member that is far from the first one has the other fault.
        (
            "name: A\nparent: C\n---\nname: B\nparent: A\n---\nname: C\nparent: B\nid: zz\n",
            "2:9 inheritance-cycle; 9:5 malformed-uuid",
        ),
        (
            "name: A\n---\nname: A\n---\nname: A\nenvironment: dev\n---\nname: B\nparent: A\n",
            "3:7 uniqueness-violation; 6:14 suspicious-value; 9:9 ambiguous-parent",
        ),
        ("name: A\nid: zz\nclasses: {nope: }\n", "2:5 malformed-uuid; 3:11 missing-class"),
        (
            "name: All Nodes\nrule: name = a\nparent: X\nclasses: {Bad: }\nvariables: {facts: 1}\nid: 00000000-0000-4000-8000-000000000000\n---\nname: X\n",
            "2:7 root-group; 3:9 root-group; 4:11 schema-violation; 5:13 schema-violation",
        ),
        // A class that stands twice does not shift the places of those behind it.
        (
            "name: A\nclasses: {b: , \"::b\": , C: {x: 1}, d: }\n",
            "2:16 duplicate-key; 2:16 missing-class; 2:25 schema-violation; 2:36 missing-class",
        ),
        // What no variable can be called may be called so as a parameter, where an alias repeats it.
        (
            "name: A\nvariables: &v {facts: 1, zoo: 2}\nclasses: {p: *v, q: {bad: 1}}\n",
            "2:16 schema-violation; 3:11 missing-class; 3:18 missing-class",
        ),
    ];
    each_row(rows, |(text, expected)| {
        let all = findings(&[("groups/g.yaml", text), catalogue]);
        let short = |it: &String| {
            let (place, rest) = it.strip_prefix("groups/g.yaml:")?.split_once(' ')?;
            Some(format!("{place} {}", rest.split(' ').next()?))
        };
        let found: Vec<String> = all.iter().filter_map(short).collect();
        assert_eq!(found.join("; "), expected, "{text}{all:#?}");
    });
    for (text, count) in [("name: A\nfoo: 1\n", 2), ("name: A\nuuid: 1\n", 1)] {
        assert_eq!(findings(&[("groups/g.yaml", text), policy]).len(), count, "{text}");
    }
}

const PRODUCTION: &str = "environments/production.yaml";

const DEV: &str = "environments/dev.yaml";

const BOTH: &str = "classes: {apache: {parameters: {port: }}, c: {parameters: {p: }}}\n";

/// The same of other files, by their path.
const FOLLOWED_OF_OTHERS: &[(&str, &str, &str)] = &[
    (PRODUCTION, BOTH, ""),
    (PRODUCTION, "classes: {Apache: , c: {parameters: {p: }}}\n", "schema-violation"),
    (
        PRODUCTION,
        "classes: {apache: {parameters: [port]}, c: {parameters: {p: }}}\n",
        "schema-violation",
    ),
    (PRODUCTION, "classes: {apache: [port], c: {parameters: {p: }}}\n", "schema-violation"),
    (
        PRODUCTION,
        "classes: {apache: {params: {port: }}, c: {parameters: {p: }}}\n",
        "schema-violation",
    ),
    (
        PRODUCTION,
        "classes: {apache: {types: {port: Integer}}, c: {parameters: {p: }}}\n",
        "schema-violation",
    ),
    (
        PRODUCTION,
        "classes: {apache: , apache: {parameters: {port: }}, c: {parameters: {p: }}}\n",
        "duplicate-key",
    ),
    // The class is there, and has the parameters that could be read.
    (
        PRODUCTION,
        "classes: {apache: [port], c: {parameters: {q: }}}\n",
        "schema-violation missing-parameter",
    ),
    (
        PRODUCTION,
        "<<: {classes: {apache: }}\nclasses: {c: {parameters: {p: }}}\n",
        "malformed-yaml missing-class",
    ),
    (PRODUCTION, "<<: {classes: {apache: }}\n", "malformed-yaml"),
    (PRODUCTION, "classes: {<<: {apache: }, c: {parameters: {p: }}}\n", "malformed-yaml"),
    (PRODUCTION, "classes: {c: {parameters: {p: }}}\nclasses: {apache: }\n", "duplicate-key"),
    (PRODUCTION, "classes: [apache, c]\n", "schema-violation"),
    (PRODUCTION, "clases: {apache: }\n", "schema-violation"),
    (PRODUCTION, "- apache\n", "schema-violation"),
    (PRODUCTION, "nmae: dev\nclasses: {d: }\n", "schema-violation"),
    (PRODUCTION, "classes: [\n", "malformed-yaml"),
    (DEV, "name: 5\nclasses: {d: }\n", "schema-violation"),
    (DEV, "classes: [\n", "malformed-yaml"),
    ("environments/x.yaml", "name: [dev]\nclasses: {d: }\n", "schema-violation"),
    ("clade.yaml", "policy: {missing_referents: of}\n", "schema-violation"),
    ("clade.yaml", "policy: {missing_referent: off}\n", "schema-violation"),
    ("clade.yaml", "policy: {missing_referents: off, missing_referents: warn}\n", "duplicate-key"),
    ("clade.yaml", "policy: off\n", "schema-violation"),
    ("clade.yaml", "polcy: {missing_referents: off}\n", "schema-violation"),
    ("clade.yaml", "policy: {missing_referents: off\n", "malformed-yaml"),
];

#[test]
fn what_only_follows_from_a_fault_of_a_catalogue_or_of_the_settings_is_not_a_finding() {
    let groups = "name: A\nclasses: {apache: {port: 1}, c: {p: 1}}\n---\nname: D\nenvironment: dev\n---\nname: E\nenvironment: dev\nclasses: {c: {p: 1}}\n";
    each_row(FOLLOWED_OF_OTHERS.iter().copied(), |(path, text, expected)| {
        let mut files = vec![("groups/g.yaml", groups), (path, text)];
        match path {
            "clade.yaml" => files.push((PRODUCTION, "classes: {}\n")),
            PRODUCTION => files.push((DEV, BOTH)),
            _ => files.push((PRODUCTION, BOTH)),
        }
        let checked = checked(&files);
        let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
        assert_eq!(kinds.join(" "), expected, "{path}: {text}{:#?}", checked.diagnostics);
    });
}

const CHILD: &str = "---\nname: C\nparent: P\nvariables: {x: null}\n";

/// Groups, of which one may set what another one refers to, and the kinds of all findings.
const SET_BY_OTHERS: &[(&str, &str, &str)] = &[
    ("name: P\n", CHILD, "redundant-value"),
    ("name: P\nvariabels: {x: 1}\n", CHILD, "schema-violation"),
    ("name: P\nvars: {x: 1}\n", CHILD, "schema-violation"),
    ("name: P\nvariables: [x]\n", CHILD, "schema-violation"),
    ("name: P\nvariables: {y: 1}\nvariables: {x: 1}\n", CHILD, "duplicate-key"),
    ("name: P\nvariables: {<<: {x: 1}}\n", CHILD, "malformed-yaml"),
    ("name: P\n<<: {variables: {x: 1}}\n", CHILD, "malformed-yaml"),
    // What else is wrong with a group leaves its values known.
    ("name: P\nrule: [foo]\n", CHILD, "invalid-rule redundant-value"),
    ("name: P\nvariables: {y: yes}\n", CHILD, "ambiguous-scalar redundant-value"),
    // Its parent may set them.
    ("name: P\nparnet: Q\n", CHILD, "schema-violation"),
    ("name: P\nparent: Nowhere\n", CHILD, "missing-parent"),
    ("name: P\nparent: P\n", CHILD, "inheritance-cycle"),
    ("nmae: P\n", CHILD, "schema-violation"),
    (
        "name: G\nvariables: {x: 1}\n---\nname: P\nparent: G\nvariabels: {x: 2}\n",
        "---\nname: C\nparent: P\nvariables: {x: 1}\n",
        "schema-violation",
    ),
    (
        "name: P\nclasses: {c: {p: 1}}\n---\nname: C\nparent: P\nenvironment: dev\n",
        "",
        "missing-parameter",
    ),
    (
        "name: P\nclasses: {c: {p: 1}}\n---\nname: C\nparent: P\nenvironment: dev\n",
        "clases: {c: {p: }}\n",
        "schema-violation",
    ),
    (
        "name: P\nclasses: {c: {p: 1}}\n---\nname: C\nparent: P\nenvironment: dev\n",
        "variabels: {x: 1}\n",
        "missing-parameter schema-violation",
    ),
    (
        "name: P\nclasses: {d: }\n---\nname: C\nparent: P\nenvironment: dev\n",
        "clases: {c: {p: }}\n",
        "missing-class missing-class schema-violation",
    ),
];

#[test]
fn what_a_group_with_errors_may_set_is_not_taken_as_not_set() {
    let catalogues = [
        ("environments/production.yaml", "classes: {c: {parameters: {p: }}}\n"),
        ("environments/dev.yaml", "classes: {c: }\n"),
    ];
    each_row(SET_BY_OTHERS.iter().copied(), |(text, rest, expected)| {
        let text = [text, rest].concat();
        let policy = ("clade.yaml", "policy: {redundant_values: warn}\n");
        let checked = checked(&[("groups/g.yaml", &text), policy, catalogues[0], catalogues[1]]);
        let kinds: Vec<&str> = checked.diagnostics.iter().map(|it| it.kind.as_str()).collect();
        assert_eq!(kinds.join(" "), expected, "{text}{:#?}", checked.diagnostics);
    });
    let tested = |tests: &str| {
        let policy = ("clade.yaml", "policy: {untested_groups: warn}\n");
        let group = ("groups/g.yaml", "name: A\nrule: name = a\n");
        let checked = checked(&[group, policy, ("tests/t.yaml", tests)]);
        checked.diagnostics.iter().map(|it| it.kind.to_string()).collect::<Vec<_>>()
    };
    let other = "- {name: t, node: n, expect: {groups: []}}\n";
    assert_eq!(tested(other), ["untested-group"]);
    assert_eq!(tested(&format!("{other}- [\n")), ["malformed-yaml"]);
    assert_eq!(tested(&format!("{other}- 5\n")), ["schema-violation"]);
}
