//! Groups that come, go, get another name or move are checked as all files are.

use super::*;
use crate::model::{Budget, Meter};

type Files<'t> = Vec<(&'t str, &'t str)>;

fn sources(files: &[(&str, &str)]) -> Vec<SourceFile> {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: Arc::from(*path),
        content: SourceContent::Bytes(text.as_bytes().into()),
    };
    files.iter().map(file).collect()
}

/// Checks what is other than in a valid commit, and compares with a check of everything; returns whether
/// the short way was taken.
pub(super) fn is_short(before: &[(&str, &str)], after: &[(&str, &str)]) -> bool {
    let known = validate(&sources(before), Search::Decisive);
    assert!(known.is_valid(), "{:?}", known.diagnostics);
    let differing: Files<'_> = after.iter().filter(|it| !before.contains(it)).copied().collect();
    let has = |path: &str| after.iter().any(|it| it.0 == path);
    let removed: Vec<&str> = before.iter().map(|it| it.0).filter(|it| !has(it)).collect();
    let layout = known.layout();
    let read = |file: &SourceFile| Some(Arc::new(read_file(file, layout.kind_of(file)?)));
    let changed: Vec<Arc<FileReading>> = sources(&differing).iter().filter_map(read).collect();
    let all = validate(&sources(after), Search::Decisive);
    let Some(found) = known.incremental(&changed, &removed, &Meter::new(Budget::DEFAULT)) else {
        return false;
    };
    assert!(all.is_valid(), "{:?}", all.diagnostics);
    assert_eq!(found.diagnostics, all.diagnostics);
    assert_eq!((&found.origins, found.groups), (&all.origins, all.groups));
    let groups = |it: &Checked| -> Vec<crate::model::Group> {
        it.estate.iter().flat_map(|it| it.hierarchy.groups()).cloned().collect()
    };
    assert_eq!(groups(&found), groups(&all));
    assert!(found.files().eq(all.files()));
    true
}

const BEFORE: &[(&str, &str)] = &[
    (
        "clade.yaml",
        "policy: {missing_referents: warn, redundant_values: warn, untested_groups: warn}\n",
    ),
    ("environments/production.yaml", "classes: {a: {parameters: {p: 1}}}\n"),
    ("nodes/n.yaml", "variables: {v: '${fact}'}\n"),
    ("README.md", "Groups of this site"),
    ("tests/t.yaml", "- {name: t, node: n, expect: {groups: [A]}}\n"),
    ("groups/a.yaml", "name: A\nrule: name = a\nclasses: {a: {p: 1}, b: {}}\n"),
    ("groups/b.yaml", "name: B\nparent: A\nrule: name = a\nclasses: {a: {p: 1}}\n"),
    (
        "groups/c.yaml",
        "name: C\nparent: B\nenvironment: dev\n---\nname: D\nparent: C\nenvironment: test\n",
    ),
    (
        "groups/e.yaml",
        "name: E\nid: aaaaaaaa-0000-4000-8000-000000000001\n---\nname: F\nparent: aaaaaaaa-0000-4000-8000-000000000001\n",
    ),
];

/// What changes, the files that are other then, none for one that is removed, and whether that is
/// checked by itself.
type Row = (&'static str, &'static [(&'static str, Option<&'static str>)], bool);

const ROWS: &[Row] = &[
    (
        "a group comes",
        &[("groups/n.yaml", Some("name: N\nrule: name = n\nclasses: {x: {}}\n"))],
        true,
    ),
    (
        "a group comes in a file of others",
        &[(
            "groups/a.yaml",
            Some("name: N\n---\nname: A\nrule: name = a\nclasses: {a: {p: 1}, b: {}}\n"),
        )],
        true,
    ),
    (
        "a group comes between a class and its use",
        &[("groups/n.yaml", Some("name: '0'\nparent: C\nenvironment: production\n"))],
        true,
    ),
    (
        "an environment comes that no file describes",
        &[("groups/n.yaml", Some("name: '0'\nenvironment: qa\n"))],
        true,
    ),
    (
        "another group names an environment first",
        &[("groups/n.yaml", Some("name: '0'\nenvironment: dev\n"))],
        true,
    ),
    (
        "a leaf goes",
        &[("groups/e.yaml", Some("name: E\nid: aaaaaaaa-0000-4000-8000-000000000001\n"))],
        true,
    ),
    ("a file goes", &[("groups/c.yaml", None)], true),
    ("a file of no group goes", &[("README.md", None)], true),
    (
        "a file gets another name",
        &[
            ("groups/c.yaml", None),
            (
                "groups/0.yaml",
                Some(
                    "name: C\nparent: B\nenvironment: dev\n---\nname: D\nparent: C\nenvironment: test\n",
                ),
            ),
        ],
        true,
    ),
    (
        "a leaf gets another name",
        &[(
            "groups/e.yaml",
            Some(
                "name: E\nid: aaaaaaaa-0000-4000-8000-000000000001\n---\nname: Z\nparent: aaaaaaaa-0000-4000-8000-000000000001\n",
            ),
        )],
        true,
    ),
    (
        "a parent gets another name, its child names it by id",
        &[(
            "groups/e.yaml",
            Some(
                "name: Z\nid: aaaaaaaa-0000-4000-8000-000000000001\n---\nname: F\nparent: aaaaaaaa-0000-4000-8000-000000000001\n",
            ),
        )],
        true,
    ),
    (
        "a parent and the name in its child change",
        &[
            ("groups/a.yaml", Some("name: A2\nrule: name = a\n")),
            ("groups/b.yaml", Some("name: B\nparent: A2\nclasses: {a: {p: 1}}\n")),
        ],
        true,
    ),
    (
        "a group moves",
        &[("groups/b.yaml", Some("name: B\nparent: E\nrule: name = a\nclasses: {a: {p: 1}}\n"))],
        true,
    ),
    (
        "a group moves to the top",
        &[("groups/b.yaml", Some("name: B\nrule: name = a\nclasses: {a: {p: 1}}\n"))],
        true,
    ),
    (
        "two groups change places",
        &[("groups/a.yaml", Some("name: A\nparent: B\n")), ("groups/b.yaml", Some("name: B\n"))],
        true,
    ),
    (
        "a group gets another environment",
        &[(
            "groups/c.yaml",
            Some(
                "name: C\nparent: B\nenvironment: qa\n---\nname: D\nparent: C\nenvironment: test\n",
            ),
        )],
        true,
    ),
    (
        "a group gets another id",
        &[(
            "groups/c.yaml",
            Some(
                "name: C\nparent: B\nenvironment: dev\n---\nname: D\nid: aaaaaaaa-0000-4000-8000-000000000002\nparent: C\n",
            ),
        )],
        true,
    ),
    (
        "a parent by its id",
        &[("groups/n.yaml", Some("name: N\nparent: aaaaaaaa-0000-4000-8000-000000000001\n"))],
        true,
    ),
    (
        "the root group as parent by its name",
        &[("groups/n.yaml", Some("name: N\nparent: All Nodes\n"))],
        true,
    ),
    (
        "the same name in another environment, which no group calls its parent",
        &[("groups/n.yaml", Some("name: F\nenvironment: dev\n"))],
        true,
    ),
    (
        "a child of a group that comes",
        &[("groups/n.yaml", Some("name: N\nparent: O\n---\nname: O\nparent: D\n"))],
        true,
    ),
    // Errors.
    ("a parent that is not there", &[("groups/n.yaml", Some("name: N\nparent: O\n"))], false),
    ("a parent goes", &[("groups/a.yaml", None)], false),
    (
        "a parent goes that is named by its id",
        &[("groups/e.yaml", Some("name: F\nparent: aaaaaaaa-0000-4000-8000-000000000001\n"))],
        false,
    ),
    ("a parent gets another name", &[("groups/a.yaml", Some("name: A2\n"))], false),
    (
        "the same name in another environment",
        &[("groups/n.yaml", Some("name: A\nenvironment: dev\n"))],
        false,
    ),
    ("the same name in the same environment", &[("groups/n.yaml", Some("name: F\n"))], false),
    (
        "two groups of one name come",
        &[(
            "groups/n.yaml",
            Some("name: N\n---\nname: N\nid: aaaaaaaa-0000-4000-8000-000000000003\n"),
        )],
        false,
    ),
    (
        "the id of another group",
        &[("groups/n.yaml", Some("name: N\nid: aaaaaaaa-0000-4000-8000-000000000001\n"))],
        false,
    ),
    (
        "one id twice",
        &[(
            "groups/n.yaml",
            Some(
                "name: N\nid: aaaaaaaa-0000-4000-8000-000000000003\n---\nname: O\nid: aaaaaaaa-0000-4000-8000-000000000003\n",
            ),
        )],
        false,
    ),
    ("a group below itself", &[("groups/a.yaml", Some("name: A\nparent: D\n"))], false),
    ("a group that is its own parent", &[("groups/n.yaml", Some("name: N\nparent: N\n"))], false),
    (
        "a name that two groups have",
        &[(
            "groups/n.yaml",
            Some("name: N\n---\nname: N\nenvironment: dev\n---\nname: O\nparent: N\n"),
        )],
        false,
    ),
    ("a file that cannot be read", &[("groups/n.yaml", Some("name: N\nfoo: 1\n"))], false),
    // Valid, and left to a check of everything.
    (
        "the root group is written",
        &[("groups/n.yaml", Some("name: Top\nid: 00000000-0000-4000-8000-000000000000\n"))],
        false,
    ),
    (
        "a group with the name of the root group",
        &[("groups/n.yaml", Some("name: All Nodes\n---\nname: O\nparent: All Nodes\n"))],
        false,
    ),
    (
        "another child means another group",
        &[(
            "groups/a.yaml",
            Some(
                "name: A2\nrule: name = a\n---\nname: A\nid: aaaaaaaa-0000-4000-8000-000000000004\n",
            ),
        )],
        false,
    ),
    ("a node", &[("nodes/m.yaml", Some("variables: {v: 1}\n"))], false),
    ("a catalogue", &[("environments/production.yaml", None)], false),
    ("a test", &[("tests/t.yaml", None)], false),
    (
        "all groups go",
        &[
            ("groups/a.yaml", None),
            ("groups/b.yaml", None),
            ("groups/c.yaml", None),
            ("groups/e.yaml", None),
        ],
        false,
    ),
];

#[test]
fn other_trees_are_checked_as_all_files_are() {
    each_row(ROWS.iter(), |(what, files, short)| {
        let mut after: Files<'_> = BEFORE.to_vec();
        after.retain(|(path, _)| files.iter().all(|it| it.0 != *path));
        after.extend(files.iter().filter_map(|(path, text)| Some((*path, (*text)?))));
        assert_eq!(is_short(BEFORE, &after), *short, "{what}");
    });
}

#[test]
fn a_written_root_group_is_a_parent_like_others() {
    let root = "name: Top\nid: 00000000-0000-4000-8000-000000000000\n";
    let before = [("groups/r.yaml", root), ("groups/a.yaml", "name: A\nparent: Top\n")];
    let with = |file| [before.as_slice(), &[file]].concat();
    assert!(is_short(&before, &with(("groups/n.yaml", "name: N\nparent: Top\n"))));
    assert!(!is_short(&before, &with(("groups/n.yaml", "name: N\nparent: All Nodes\n"))));
    assert!(!is_short(&before, &with(("groups/n.yaml", "name: Top\nenvironment: dev\n"))));
    let other =
        [("groups/r.yaml", "name: Roof\nid: 00000000-0000-4000-8000-000000000000\n"), before[1]];
    assert!(!is_short(&before, &other));
}

#[test]
fn a_parent_whose_name_reads_as_an_id_is_looked_for_in_all_files() {
    let name = "33333333-1111-4111-8111-111111111111";
    let parent = format!("name: {name}\n");
    let child = format!("name: A\nparent: {name}\n");
    let before = [("groups/p.yaml", parent.as_str()), ("groups/a.yaml", child.as_str())];
    let with = |file| [before.as_slice(), &[file]].concat();
    assert!(is_short(&before, &with(("groups/n.yaml", "name: N\nparent: A\n"))));
    let second = format!("name: N\nparent: {name}\n");
    assert!(!is_short(&before, &with(("groups/n.yaml", &second))));
    // Now the parent of `A` is another group.
    let id = format!("name: N\nid: {name}\n");
    assert!(!is_short(&before, &with(("groups/n.yaml", &id))));
    let kept = format!("name: A2\nid: {}\n", id_of(&before, name));
    assert!(!is_short(&before, &[("groups/p.yaml", kept.as_str()), before[1]]));
}

/// Returns the id of the group with a name.
fn id_of(files: &[(&str, &str)], name: &str) -> String {
    let checked = validate(&sources(files), Search::Decisive);
    let mut groups = checked.estate.as_ref().unwrap().hierarchy.groups();
    groups.find(|it| it.name.as_str() == name).unwrap().id.to_string()
}

#[test]
fn a_policy_that_looks_for_conflicts_looks_through_all_groups() {
    let before = [
        ("clade.yaml", "policy: {potential_conflicts: error}\n"),
        ("groups/a.yaml", "name: A\nrule: name = a\nvariables: {v: 1}\n"),
    ];
    let other = ("groups/n.yaml", "name: N\nrule: name = a\nvariables: {v: 2}\n");
    assert!(!is_short(&before, &[before.as_slice(), &[other]].concat()));
}

#[test]
fn so_many_groups_may_differ() {
    let named = |letter: char, count: usize| -> String {
        let documents: Vec<String> = (0..count).map(|it| format!("name: {letter}{it}\n")).collect();
        documents.join("---\n")
    };
    // So many that others change nothing for what proofs may cost.
    let (known, some, many) = (named('A', 2_100), named('G', 256), named('G', 257));
    let before = ("groups/a.yaml", known.as_str());
    assert!(is_short(&[before], &[before, ("groups/n.yaml", &some)]));
    assert!(!is_short(&[before], &[before, ("groups/n.yaml", &many)]));
}

#[test]
fn groups_more_or_less_do_not_change_what_proofs_may_cost() {
    let same = |before, after| checks::is_same_among(before, after);
    assert!(same(10_000, 10_001) && same(1, 190) && same(30_000, 50_000));
    assert!(!same(10_240, 10_241), "the next thousands");
}
