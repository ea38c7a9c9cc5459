//! Policies of groups: each finds what it is for when it is on, and nothing otherwise.

use super::*;
use crate::diagnostic::Severity;

/// Validates groups with a policy; findings are written with their related places.
fn with(policy: &str, files: &[(&str, &str)]) -> Vec<String> {
    let settings = format!("policy: {{{policy}}}\n");
    let all: Vec<(&str, &str)> =
        files.iter().copied().chain([("clade.yaml", settings.as_str())]).collect();
    let line = |it: &Arc<Diagnostic>| {
        let start = it.place.span.start;
        let places = related(it);
        let related =
            if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
        format!("{}:{} {} {}{related}", start.line, start.column, it.kind, it.message)
    };
    checked(&all).diagnostics.iter().map(line).collect()
}

fn of_group(policy: &str, text: &str) -> Vec<String> {
    with(policy, &[("groups/g.yaml", text)])
}

const REDUNDANT: &str = indoc! {"
    name: Top
    classes: {a: {y: 0}}
    ---
    name: Parent
    parent: Top
    classes: {a: {x: 1, y: null, z: [1]}, b: {x: 1}}
    variables: {v: 1, w: {k: 1.0}}
    config_data: {a: {x: 1}}
    ---
    name: Child
    parent: Parent
    classes:
      a: {x: 1, y: null, z: [1, 2]}
      b:
      c: {x: null}
    variables: {v: '1', w: {k: 1.0}, u: null}
    config_data: {a: {x: 1, y: 2}}
    ---
    name: Grandchild
    parent: Child
    classes: {a: {x: 1, y: 3}, b: {x: 2}}
    variables: {v: 1}
"};

#[test]
fn values_that_are_inherited_are_found_whatever_they_are() {
    assert_eq!(of_group("", REDUNDANT), Vec::<String>::new());
    assert_eq!(
        of_group("redundant_values: warn", REDUNDANT),
        [
            "13:7 redundant-value `x` of the class `a` is inherited from `Parent` with the same value (groups/g.yaml:6:15 `Parent` sets it here)",
            "13:13 redundant-value `y` of the class `a` is removed by `Parent` already (groups/g.yaml:6:21 `Parent` removes it here)",
            "14:3 redundant-value the class `b` is inherited from `Parent` (groups/g.yaml:6:39 `Parent` names it here)",
            "15:7 redundant-value `x` of the class `c` is null, which removes nothing: no ancestor sets it",
            "16:21 redundant-value the variable `w` is inherited from `Parent` with the same value (groups/g.yaml:7:19 `Parent` sets it here)",
            "16:34 redundant-value the variable `u` is null, which removes nothing: no ancestor sets it",
            "17:19 redundant-value `x` of the config data of `a` is inherited from `Parent` with the same value (groups/g.yaml:8:19 `Parent` sets it here)",
            "21:15 redundant-value `x` of the class `a` is inherited from `Child` with the same value (groups/g.yaml:13:7 `Child` sets it here)",
        ]
    );
}

#[test]
fn what_is_redundant_can_be_removed_without_a_difference() {
    let without = REDUNDANT
        .replace(
            "  a: {x: 1, y: null, z: [1, 2]}\n  b:\n  c: {x: null}\n",
            "  a: {z: [1, 2]}\n  c:\n",
        )
        .replace("{v: '1', w: {k: 1.0}, u: null}", "{v: '1'}")
        .replace("{a: {x: 1, y: 2}}", "{a: {y: 2}}")
        .replace("{a: {x: 1, y: 3}, b", "{a: {y: 3}, b");
    assert_eq!(of_group("redundant_values: error", &without), Vec::<String>::new());
    let [before, after] =
        [REDUNDANT, without.as_str()].map(|text| checked(&[("groups/g.yaml", text)]));
    let values = |checked: &Checked| -> Vec<String> {
        let hierarchy = &checked.estate.as_ref().unwrap().hierarchy;
        let value = |index| {
            let it = hierarchy.inherited(index);
            let classes: Vec<String> = it
                .classes
                .iter()
                .chain(&it.config_data)
                .map(|(class, it)| {
                    let parameters = it.parameters.iter().map(|(key, it)| (*key, it.value));
                    format!("{class} {:?}", parameters.collect::<Vec<_>>())
                })
                .collect();
            let variables = it.variables.iter().map(|(key, it)| (*key, it.value));
            format!("{classes:?} {:?}", variables.collect::<Vec<_>>())
        };
        hierarchy.indexes().map(value).collect()
    };
    assert_eq!(values(&before), values(&after));
}

#[test]
fn rules_that_ancestors_demand_are_found_in_either_notation() {
    let on = "repeated_rules: warn";
    let parent = "name: P\nrule: os.family = Debian and name ~ web\n";
    each_row(
        [
            (
                "rule: os.family = Debian",
                Some("the rule repeats that of `P`: the group matches whenever its parent does"),
            ),
            (
                "rule: [and, ['~', name, web], ['=', [facts, os, family], Debian]]",
                Some("the rule repeats that of `P`: the group matches whenever its parent does"),
            ),
            (
                "rule: os.family = Debian\npinned: [a]",
                Some("the rule repeats that of `P`: the group matches whenever its parent does"),
            ),
            (
                "rule: os.family = Debian and x = 1",
                Some("`os.family = Debian`: `P` demands the same"),
            ),
            ("rule: os.family = Debian or x = 1", None),
            ("rule: not os.family = Debian and x = 1", None),
            ("rule: x = 1", None),
            ("pinned: [a]", None),
        ],
        |(rule, expected)| {
            let groups = format!("{parent}---\nname: C\nparent: P\n{rule}\n");
            let messages: Vec<String> = of_group(on, &groups)
                .into_iter()
                .filter_map(|it| Some(it.split_once(" repeated-rule ")?.1.to_owned()))
                .map(|it| it.split(" (").next().unwrap_or_default().to_owned())
                .collect();
            assert_eq!(
                messages,
                expected.map(ToOwned::to_owned).into_iter().collect::<Vec<_>>(),
                "{rule}"
            );
            assert!(!of_group("", &groups).iter().any(|it| it.contains("repeated-rule")), "{rule}");
        },
    );
    // Every node matches the root group.
    let any = "name: A\nrule: ['~', name, '.*']\n";
    assert!(!of_group(on, any).iter().any(|it| it.contains("repeated-rule")));
    let pins = "name: P\npinned: [a, b]\n---\nname: C\nparent: P\npinned: [a, b]\n";
    assert_eq!(of_group(on, pins).len(), 1);
}

#[test]
fn a_group_is_tested_if_a_test_expects_it_by_name() {
    let groups = "name: A\nrule: x = 1\n---\nname: B\npinned: [b]\n---\nname: Folder\n---\nname: C\nrule: x = 3\n";
    let tests = "- {name: t, node: b, expect: {groups: [A]}}\n- {name: u, node: b, expect: {groups: [B]}}\n";
    let files = [("groups/g.yaml", groups), ("tests/t.yaml", tests)];
    assert_eq!(
        with("untested_groups: warn", &files),
        ["9:7 untested-group no test expects the group `C`"]
    );
    assert_eq!(with("untested_groups: warn", &files[..1]).len(), 3);
}

#[test]
fn pins_are_counted_as_they_are_written_and_in_rules() {
    let on = "too_many_pins: warn, max_pins: 2";
    let too_many = "too-many-pins 3 nodes are pinned, the policy allows 2";
    assert_eq!(of_group(on, "name: A\npinned: [a, b]\n"), Vec::<String>::new());
    assert_eq!(
        of_group(on, "name: A\npinned:\n  - a\n  - b\n  - c\n"),
        [format!("3:5 {too_many}")]
    );
    let rule = "name: A\nrule: x = 1 or name = a or name = b or name = c\n";
    assert_eq!(of_group(on, rule), [format!("2:7 {too_many}")]);
    assert_eq!(
        of_group("too_many_pins: warn, max_pins: 1", "name: A\nrule: name = a\n"),
        Vec::<String>::new()
    );
}

#[test]
fn a_class_must_be_the_same_where_it_is_used() {
    let differ = |production: &str, staging: &str, groups: &str| {
        with(
            "catalogue_mismatches: warn, missing_referents: \"off\"",
            &[
                ("environments/production.yaml", &format!("classes: {{a: {production}}}\n")),
                ("environments/staging.yaml", &format!("classes: {{a: {staging}}}\n")),
                ("groups/g.yaml", groups),
            ],
        )
    };
    let inherited =
        "name: P\nclasses: {a: {}}\n---\nname: C\nparent: P\nenvironment: staging\nrule: x = 1\n";
    let apart = "name: P\nclasses: {a: {}}\n---\nname: C\nenvironment: staging\nclasses: {a: {}}\n";
    let message = "2:11 catalogue-mismatch the class `a` is used in `production` and `staging`, whose catalogues differ: ";
    each_row(
        [
            ("{parameters: {x: 1}}", "{parameters: {x: 1}}", None),
            ("{parameters: {x: 1}}", "{}", Some("only `production` has the parameter `x`")),
            ("{}", "{parameters: {x: 1}}", Some("only `staging` has the parameter `x`")),
            ("{parameters: {x: 1}}", "{parameters: {x: 2}}", Some("`x` has another default")),
            (
                "{parameters: {x: 1}, types: {x: Integer}}",
                "{parameters: {x: 1}, types: {x: String}}",
                Some("`x` is `Integer` in `production` and `String` in `staging`"),
            ),
            ("{parameters: {x: 1}, types: {x: Integer}}", "{parameters: {x: 1}}", None),
        ],
        |(production, staging, how)| {
            let expected: Vec<String> =
                how.map(|how| format!("{message}{how}")).into_iter().collect();
            assert_eq!(differ(production, staging, inherited), expected);
            let related = " (groups/g.yaml:6:11 `C` names it for the other environment)";
            let expected: Vec<String> =
                expected.iter().map(|it| format!("{it}{related}")).collect();
            assert_eq!(differ(production, staging, apart), expected);
        },
    );
    let once = "name: P\nclasses: {a: {}}\n";
    assert_eq!(differ("{}", "{parameters: {x: 1}}", once), Vec::<String>::new());
}

#[test]
fn a_policy_decides_on_the_severity_and_a_comment_silences_warnings() {
    let group = "name: A\npinned:\n  # clade: ignore too-many-pins\n  - a\n  - b\n";
    let severities = |policy: &str| -> Vec<Severity> {
        let settings = format!("policy: {{{policy}, max_pins: 1}}\n");
        let checked = checked(&[("groups/g.yaml", group), ("clade.yaml", &settings)]);
        checked.diagnostics.iter().map(|it| it.severity).collect()
    };
    assert_eq!(severities("too_many_pins: warn"), []);
    assert_eq!(severities("too_many_pins: error"), [Severity::Error]);
    assert_eq!(severities("too_many_pins: off"), []);
}
