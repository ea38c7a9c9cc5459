use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Operation, PermittedWrite, RejectionKind, read_group};
use super::*;

const ROOT: &str = "00000000-0000-4000-8000-000000000000";
const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const A1: &str = "aaaaaaaa-0000-4000-8000-000000000002";
const B: &str = "aaaaaaaa-0000-4000-8000-000000000003";
const NEW: &str = "aaaaaaaa-0000-4000-8000-000000000004";

/// The groups, each with itself and its ancestors.
const LINEAGES: [(&str, &[&str]); 4] =
    [(ROOT, &[ROOT]), (A, &[A, ROOT]), (A1, &[A1, A, ROOT]), (B, &[B, ROOT])];

fn id(text: &str) -> GroupId {
    text.parse().unwrap()
}

fn group(group: &str, parent: &str) -> Group {
    let rule = json!(["~", "name", ".*"]);
    let body = json!({"id": group, "name": group, "parent": parent, "classes": {}, "rule": rule});
    Group { id: id(group), ..read_group(&body).unwrap() }
}

fn estate() -> Vec<Group> {
    // Properties ask for it thousands of times, and reading its rules takes long.
    static ESTATE: LazyLock<Vec<Group>> =
        LazyLock::new(|| vec![group(ROOT, ROOT), group(A, ROOT), group(A1, A), group(B, ROOT)]);
    ESTATE.clone()
}

/// A single change.
#[derive(Clone, Copy, Debug)]
enum Change {
    Edit(&'static str, GroupKey),
    Make(&'static str),
    Remove(&'static str),
    Move(&'static str, &'static str),
    /// Below the group that is made.
    MoveBelowNew(&'static str),
}

impl Change {
    fn all() -> Vec<Self> {
        let mut all = vec![Self::Move(A1, B), Self::Move(B, A), Self::Remove(A1), Self::Remove(B)];
        all.extend([A1, B].map(Self::MoveBelowNew));
        for (group, _) in LINEAGES {
            all.push(Self::Make(group));
            let keys = GroupKey::ALL.into_iter().filter(|key| *key != GroupKey::Parent);
            all.extend(keys.map(|key| Self::Edit(group, key)));
        }
        all
    }

    fn apply(self, groups: &mut Vec<Group>) {
        match self {
            Self::Make(parent) => groups.push(group(NEW, parent)),
            Self::Remove(group) => groups.retain(|it| it.id != id(group)),
            Self::Move(group, parent) => {
                groups.iter_mut().find(|it| it.id == id(group)).unwrap().parent = id(parent);
            }
            Self::MoveBelowNew(group) => Self::Move(group, NEW).apply(groups),
            Self::Edit(group, key) => {
                edit(groups.iter_mut().find(|it| it.id == id(group)).unwrap(), key);
            }
        }
    }

    /// The oracle: what the guide says of scopes, said once more.
    fn is_allowed_by(self, scope: &Scope) -> bool {
        let reaches = |group: &str| {
            let lineage = LINEAGES.iter().find(|(it, _)| *it == group).unwrap().1;
            scope.groups.as_ref().is_none_or(|all| lineage.iter().any(|it| all.contains(&id(it))))
        };
        let has = |key| scope.keys.as_ref().is_none_or(|all| all.contains(&key));
        match self {
            Self::Edit(group, GroupKey::Pinned) => {
                reaches(group) && (has(GroupKey::Pinned) || has(GroupKey::Rule))
            }
            Self::Edit(group, key) => reaches(group) && has(key),
            Self::Make(parent) => reaches(parent) && scope.keys.is_none(),
            Self::Remove(group) => reaches(group) && scope.keys.is_none(),
            Self::Move(group, parent) => reaches(group) && reaches(parent) && has(GroupKey::Parent),
            // To make that group is a change of its own.
            Self::MoveBelowNew(group) => reaches(group) && has(GroupKey::Parent),
        }
    }
}

fn edit(group: &mut Group, key: GroupKey) {
    let mut body =
        json!({"id": group.id, "name": group.name, "parent": group.parent, "classes": {}});
    let value = match key {
        GroupKey::Name => json!("other"),
        GroupKey::Description => json!("text"),
        GroupKey::Environment => json!("test"),
        GroupKey::EnvironmentTrumps => json!(true),
        GroupKey::Rule => json!(["~", "name", "x"]),
        GroupKey::Pinned => json!(["or", ["~", "name", ".*"], ["=", "name", "n"]]),
        GroupKey::Classes | GroupKey::ConfigData => json!({"ntp": {"x": 1}}),
        GroupKey::Variables => json!({"v": 1}),
        GroupKey::Parent => unreachable!("moves are changes of their own"),
    };
    let field = if key == GroupKey::Pinned { "rule" } else { key.as_str() };
    body[field] = value;
    let edited = read_group(&body).unwrap();
    match key {
        GroupKey::Name => group.name = edited.name,
        GroupKey::Description => group.description = edited.description,
        GroupKey::Environment => group.environment = edited.environment,
        GroupKey::EnvironmentTrumps => group.environment_trumps = edited.environment_trumps,
        GroupKey::Rule | GroupKey::Pinned => group.rule = edited.rule,
        GroupKey::Classes => group.classes = edited.classes,
        GroupKey::ConfigData => group.config_data = edited.config_data,
        GroupKey::Variables => group.variables = edited.variables,
        GroupKey::Parent => {}
    }
}

fn grant(scope: Scope) -> WriteGrant {
    WriteGrant { actor: None, scope }
}

/// Checks that one grant allows a change.
fn check(grants: &[WriteGrant], old: &Hierarchy, changes: &GroupChanges) -> Result<(), Rejection> {
    first_allowing(grants, |it| it.check(old, changes)).map(|_| ())
}

fn grants() -> impl Strategy<Value = Vec<WriteGrant>> {
    let groups = proptest::sample::subsequence(vec![ROOT, A, A1, B], 0..=2);
    let keys = proptest::sample::subsequence(GroupKey::ALL.to_vec(), 0..=10);
    let scope = (proptest::option::of(groups), proptest::option::of(keys));
    let scope = scope.prop_map(|(groups, keys)| Scope {
        groups: groups.map(|all| all.into_iter().map(id).collect()),
        keys: keys.map(|all| all.into_iter().collect()),
    });
    proptest::collection::vec(scope.prop_map(grant), 0..=3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// A write of several changes is allowed if and only if one scope allows each of them.
    #[test]
    fn one_scope_allows_a_write_as_a_whole_or_it_is_refused(
        grants in grants(),
        changes in proptest::sample::subsequence(Change::all(), 1..=3),
    ) {
        let rules = |it: &Change| match it {
            Change::Edit(group, GroupKey::Rule | GroupKey::Pinned) => Some(*group),
            _ => None,
        };
        let gone: Vec<&str> = changes
            .iter()
            .filter_map(|it| if let Change::Remove(group) = it { Some(*group) } else { None })
            .collect();
        let moved = |it: &Change| match it {
            Change::Move(group, _) | Change::MoveBelowNew(group) => Some(*group),
            _ => None,
        };
        let made = changes.iter().filter(|it| matches!(it, Change::Make(_))).count();
        // These replace one another, and are then one change.
        prop_assume!(made < 2 && changes.iter().filter_map(rules).count() < 2);
        let moves: Vec<&str> = changes.iter().filter_map(moved).collect();
        prop_assume!(moves.iter().collect::<BTreeSet<_>>().len() == moves.len());
        prop_assume!(changes.iter().all(|it| match it {
            Change::Edit(group, _) | Change::Move(group, _) => !gone.contains(group),
            Change::MoveBelowNew(group) => !gone.contains(group) && made == 1,
            Change::Make(_) | Change::Remove(_) => true,
        }));
        let old = Hierarchy::build(estate()).unwrap();
        let mut new = estate();
        for change in &changes {
            change.apply(&mut new);
        }
        let allowed =
            grants.iter().any(|grant| changes.iter().all(|it| it.is_allowed_by(&grant.scope)));
        prop_assert_eq!(check(&grants, &old, &GroupChanges::between(&old, new)).is_ok(), allowed);
    }
}

#[test]
fn the_right_to_the_rule_is_one_to_pin_and_to_nothing_else() {
    let old = Hierarchy::build(estate()).unwrap();
    let grant = grant(Scope { groups: None, keys: Some([GroupKey::Rule].into()) });
    let with = |keys: &[GroupKey]| {
        let mut groups = estate();
        for key in keys {
            Change::Edit(A, *key).apply(&mut groups);
        }
        check(std::slice::from_ref(&grant), &old, &GroupChanges::between(&old, groups))
    };
    assert_eq!(with(&[GroupKey::Pinned]), Ok(()));
    let refused = with(&[GroupKey::Pinned, GroupKey::Classes]).unwrap_err();
    let message =
        format!("Sorry, but you don't have permission to edit `classes` of the group \"{A}\".");
    assert_eq!(refused.message, message);
}

#[test]
fn without_a_scope_nothing_may_be_written() {
    let old = Hierarchy::build(estate()).unwrap();
    assert!(check(&[], &old, &GroupChanges::between(&old, estate())).is_err());
    assert_eq!(
        check(
            &[WriteGrant::default()],
            &old,
            &GroupChanges::between(&old, vec![group(ROOT, ROOT)])
        ),
        Ok(())
    );
}

#[test]
fn pinning_to_a_rule_that_names_one_node_is_pinning() {
    let name = |node: &str| json!(["=", "name", node]);
    let estate_with = |rule: Value| {
        let body = json!({"id": A, "name": A, "parent": ROOT, "classes": {}, "rule": rule});
        let mut groups = estate();
        let place = groups.iter_mut().find(|it| it.id == id(A)).unwrap();
        *place = Group { id: id(A), ..read_group(&body).unwrap() };
        groups
    };
    let grant = grant(Scope { groups: None, keys: Some([GroupKey::Pinned].into()) });
    let old = Hierarchy::build(estate_with(name("a"))).unwrap();
    for (after, allowed) in [
        (json!(["or", name("a"), name("b")]), true),
        (json!(["or", name("a"), name("b"), name("c")]), true),
        // These replace the rule.
        (name("b"), false),
        (json!(["or", name("b")]), false),
        (json!(["or", name("b"), name("a")]), false),
        (json!(["or", name("a"), ["~", "name", "x"]]), false),
    ] {
        let new = estate_with(after.clone());
        assert_eq!(
            check(std::slice::from_ref(&grant), &old, &GroupChanges::between(&old, new)).is_ok(),
            allowed,
            "{after}"
        );
    }
}

/// A write about one group, and the change that it comes down to.
fn writes() -> Vec<(Operation, Change)> {
    let nodes = || vec!["n".to_owned()];
    let mut all = Vec::new();
    for (group, lineage) in LINEAGES {
        let body = json!({"name": NEW, "parent": group, "classes": {}});
        let parent = lineage.get(1).unwrap_or(&ROOT);
        let edited = json!({
            "name": group, "parent": parent, "classes": {}, "rule": ["~", "name", ".*"],
            "variables": {"v": 1},
        });
        let key = GroupKey::Variables;
        let delta = json!({"variables": {"v": 1}});
        let group_id = id(group);
        all.extend([
            (Operation::Create { id: id(NEW), body: body.clone() }, Change::Make(group)),
            (Operation::Put { id: id(NEW), body }, Change::Make(group)),
            (Operation::Put { id: group_id, body: edited }, Change::Edit(group, key)),
            (Operation::Edit { id: group_id, delta }, Change::Edit(group, key)),
            (Operation::Delete { id: group_id }, Change::Remove(group)),
            (
                Operation::Pin { id: group_id, nodes: nodes() },
                Change::Edit(group, GroupKey::Pinned),
            ),
            (
                Operation::Unpin { id: group_id, nodes: nodes() },
                Change::Edit(group, GroupKey::Pinned),
            ),
        ]);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// A write that would be allowed is never refused early, and one about a group that no scope has always is.
    #[test]
    fn a_write_is_refused_early_where_no_scope_has_its_group(grants in grants()) {
        let old = Hierarchy::build(estate()).unwrap();
        for (operation, change) in writes() {
            let permitted = PermittedWrite::new(&old, &operation, &grants);
            let group = match change {
                Change::Edit(group, _) | Change::Make(group) | Change::Remove(group) => group,
                Change::Move(..) | Change::MoveBelowNew(_) => unreachable!("no such writes"),
            };
            let reaches = |scope: &Scope| {
                scope.has(&old, id(group)) && scope.keys.as_ref().is_none_or(|it| !it.is_empty())
            };
            if grants.iter().any(|it| change.is_allowed_by(&it.scope)) {
                prop_assert!(permitted.is_ok(), "{operation:?}");
            }
            if let Err(refused) = &permitted {
                prop_assert!(refused.kind.is_of_rights());
            }
            if !grants.iter().any(|it| reaches(&it.scope)) {
                let refused = permitted.unwrap_err();
                // The name of a group is its id here; those of others are shown only as the client named them.
                let named = refused.message.matches("aaaaaaaa").count();
                prop_assert!(named <= 1 && !refused.message.contains('`'), "{}", refused.message);
            }
        }
    }
}

/// The refusal is the same for a group or parent that is there and for one that is not: a commit may bring each into a scope.
#[test]
fn a_group_that_is_not_there_is_in_no_scope() {
    const ABSENT: &str = "aaaaaaaa-0000-4000-8000-000000000009";
    let old = Hierarchy::build(estate()).unwrap();
    let limited = |keys: &[GroupKey]| {
        let keys = (!keys.is_empty()).then(|| keys.iter().copied().collect());
        [grant(Scope { groups: Some([id(A)].into()), keys })]
    };
    let put = |parent: &str| Operation::Put {
        id: id(NEW),
        body: json!({"name": NEW, "parent": parent, "classes": {}}),
    };
    let edit = |group: &str, delta: Value| Operation::Edit { id: id(group), delta };
    let all = limited(&[]);
    let classes = limited(&[GroupKey::Classes]);
    for (grants, there, absent, kind) in [
        (&all, put(B), put(ABSENT), RejectionKind::PermissionUnknown),
        (&classes, put(A), put(ABSENT), RejectionKind::PermissionDenied),
        (
            &all,
            edit(A1, json!({"parent": B})),
            edit(A1, json!({"parent": ABSENT})),
            RejectionKind::PermissionUnknown,
        ),
        (
            &classes,
            edit(A1, json!({"name": B})),
            edit(A1, json!({"name": "free"})),
            RejectionKind::PermissionDenied,
        ),
        (&all, edit(B, json!({})), edit(ABSENT, json!({})), RejectionKind::PermissionUnknown),
        (
            &all,
            Operation::Delete { id: id(B) },
            Operation::Delete { id: id(ABSENT) },
            RejectionKind::PermissionUnknown,
        ),
    ] {
        let refused = |operation| PermittedWrite::new(&old, operation, grants).unwrap_err();
        let (there, absent) = (refused(&there), refused(&absent));
        assert_eq!((there.kind, absent.kind), (kind, kind), "{}", absent.message);
        let message = absent.message.replace(ABSENT, B);
        assert_eq!(message, there.message);
    }
    // With a grant for all groups, one that is not there is said to be so.
    let everything = [WriteGrant::default()];
    assert!(PermittedWrite::new(&old, &edit(ABSENT, json!({})), &everything).is_ok());
    // One grant may still allow it.
    let both = [classes, all].concat();
    let refused = PermittedWrite::new(&old, &put(ABSENT), &both).unwrap_err();
    assert_eq!(refused.kind, RejectionKind::PermissionUnknown);
}

/// What is wrong with the body of a group to be replaced would say that there is none.
#[test]
fn a_body_that_makes_no_group_says_nothing_of_another() {
    let old = Hierarchy::build(estate()).unwrap();
    let limited = [grant(Scope { groups: Some([id(A)].into()), keys: None })];
    for body in [
        json!({}),
        Value::Null,
        json!({"name": "n", "parent": "none"}),
        json!({"name": "n", "id": A, "parent": A}),
    ] {
        let put = |group: &str| Operation::Put { id: id(group), body: body.clone() };
        let refused = |group| PermittedWrite::new(&old, &put(group), &limited).unwrap_err().message;
        assert_eq!(refused(NEW).replace(NEW, B), refused(B), "{body}");
        assert!(PermittedWrite::new(&old, &put(NEW), &[WriteGrant::default()]).is_ok(), "{body}");
    }
}

#[test]
fn environments_and_catalogues_need_a_scope_without_limits() {
    let old = Hierarchy::build(estate()).unwrap();
    let name = || "production".parse().unwrap();
    let limited = [
        Scope { groups: None, keys: Some([GroupKey::Pinned].into()) },
        Scope { groups: Some([id(A)].into()), keys: None },
    ]
    .map(grant);
    let everything = [limited[0].clone(), WriteGrant::default()];
    for operation in [
        Operation::RemoveEnvironment { name: name() },
        Operation::UpdateClasses { catalogues: BTreeMap::new() },
    ] {
        assert!(PermittedWrite::new(&old, &operation, &limited).is_err(), "{operation:?}");
        assert!(PermittedWrite::new(&old, &operation, &everything).is_ok(), "{operation:?}");
    }
}

#[test]
fn the_first_grant_that_allows_a_change_is_returned() {
    let old = Hierarchy::build(estate()).unwrap();
    let held = |actor: &str, groups: Option<&str>| WriteGrant {
        actor: Some(actor.to_owned()),
        scope: Scope { groups: groups.map(|it| [id(it)].into()), keys: None },
    };
    let grants = [held("token", Some(A)), held("user", Some(B)), held("certificate", None)];
    for (changed, actor) in [
        (&[A1][..], Some("token")),
        (&[B], Some("user")),
        (&[A, B], Some("certificate")),
        (&[ROOT], Some("certificate")),
    ] {
        let mut groups = estate();
        for group in changed {
            Change::Edit(group, GroupKey::Variables).apply(&mut groups);
        }
        let changes = GroupChanges::between(&old, groups);
        let found = first_allowing(&grants, |it| it.check(&old, &changes)).unwrap();
        assert_eq!(found.actor.as_deref(), actor, "{changed:?}");
    }
}
