use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::hierarchy::{Estate, Hierarchy, root_group};
use crate::model::{Group, GroupId, Individual, Node};
use crate::rule;
use crate::snapshot::Index;
use crate::table::each_row;

fn id(number: u8) -> GroupId {
    match number {
        0 => GroupId::ROOT,
        number => format!("00000000-0000-4000-8000-0000000000{number:02x}").parse().unwrap(),
    }
}

fn group(number: u8, parent: u8, rule: Option<&Value>, values: &Value) -> Group {
    let mut group = root_group().unwrap();
    if number > 0 {
        group.id = id(number);
        group.parent = id(parent);
        group.name = format!("g{number}").parse().unwrap();
        group.rule = rule.map(|it| Arc::new(rule::read(it).unwrap()));
    }
    let environment = values["environment"].as_str().unwrap_or("production");
    group.environment = environment.parse().unwrap();
    let read = |key: &str| serde_json::from_value(values[key].clone()).unwrap_or_default();
    group.classes = Arc::new(read("classes"));
    group.config_data = Arc::new(read("config_data"));
    group.variables =
        Arc::new(serde_json::from_value(values["variables"].clone()).unwrap_or_default());
    group
}

fn estate(groups: Vec<Group>, own: &[(&str, Value)]) -> Estate {
    let own = own.iter().map(|(name, variables)| {
        let variables = serde_json::from_value(variables.clone()).unwrap();
        ((*name).to_owned(), Individual { variables, ..Individual::default() })
    });
    Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        individuals: Arc::new(own.collect()),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: crate::model::Interpolation::Off,
    }
}

fn always() -> Value {
    json!(["~", "name", ".*"])
}

/// A group that every node matches, below the root group.
fn one(values: &Value) -> Estate {
    let groups = vec![group(0, 0, None, &json!({})), group(1, 0, Some(&always()), values)];
    estate(groups, &[])
}

fn record(estate: &Estate) -> AnswerRecord {
    AnswerRecord::of(estate, &Node::named("n"))
}

/// Writes changes as lines of key, values and group.
fn lines(before: Option<&AnswerRecord>, after: &AnswerRecord) -> Vec<String> {
    let text = |it: &Option<Value>| it.as_ref().map_or("-".to_owned(), Value::to_string);
    let line = |it: &AnswerChange| {
        let because = it.because.as_ref().map_or("-", |it| &it.name);
        format!("{} {} {} {because}", it.key, text(&it.before), text(&it.after))
    };
    changes(before, after).iter().map(line).collect()
}

#[test]
fn a_first_answer_is_new_as_a_whole() {
    let values = json!({
        "environment": "test", "classes": {"apache": {"port": 80}}, "variables": {"v": [1]},
        "config_data": {"ntp": {"servers": "a"}},
    });
    assert_eq!(
        lines(None, &record(&one(&values))),
        [
            "state - \"classified\" -",
            "environment - \"test\" g1",
            "groups.All Nodes - \"All Nodes\" All Nodes",
            "groups.g1 - \"g1\" g1",
            "classes.apache - {} g1",
            "classes.apache.port - 80 g1",
            "variables.v - [1] g1",
            "config_data.ntp.servers - \"a\" g1",
        ]
    );
}

#[test]
fn changes_name_values_and_the_groups_that_define_them() {
    let below = |child: &Value, parent: &Value| {
        let groups = vec![group(0, 0, None, parent), group(1, 0, Some(&always()), child)];
        record(&estate(groups, &[]))
    };
    let port = |port: i64| json!({"classes": {"apache": {"port": port}}});
    let class = json!({"classes": {"apache": {}}});
    let rows = [
        (below(&port(80), &class), below(&port(81), &class), &["classes.apache.port 80 81 g1"][..]),
        // The value is the same, but another group defines it.
        (
            below(&port(80), &class),
            below(&class, &port(80)),
            &["classes.apache.port 80 80 All Nodes"],
        ),
        (below(&port(80), &class), below(&class, &class), &["classes.apache.port 80 - g1"]),
        (below(&port(80), &class), below(&port(80), &class), &[]),
    ];
    each_row(rows, |(before, after, expected)| {
        assert_eq!(lines(Some(&before), &after), expected);
        assert_eq!(before.digest() == after.digest(), expected.is_empty());
    });
}

#[test]
fn a_conflict_and_an_error_stand_in_place_of_the_values() {
    let two = |other: i64| {
        let values = |v: i64| json!({"variables": {"v": v}});
        let all = always();
        record(&estate(
            vec![
                group(0, 0, None, &json!({})),
                group(1, 0, Some(&all), &values(1)),
                group(2, 0, Some(&all), &values(other)),
            ],
            &[],
        ))
    };
    let (agreed, conflict) = (two(1), two(2));
    assert_eq!(conflict.state(), NodeState::Conflict);
    assert_eq!(conflict.group_ids().collect::<Vec<_>>(), [id(0), id(1), id(2)]);
    assert_eq!((conflict.environment(), conflict.classes().count()), (None, 0));
    let share = |number: u8, value: i64| {
        let group = json!({"id": id(number), "name": format!("g{number}")});
        json!({"value": value, "from": group, "defined_by": group})
    };
    let AnswerRecord::Conflict(it) = &conflict else { panic!("a conflict") };
    assert_eq!(it.details, json!({"variables": {"v": [share(1, 1), share(2, 2)]}}));
    let found = lines(Some(&agreed), &conflict);
    assert_eq!(found[0], "state \"classified\" \"conflict\" -");
    assert!(found[1].starts_with("conflict - {\"summary\":\"The node was classified"), "{found:?}");
    assert_eq!(found[2..], ["environment \"production\" - g1", "variables.v 1 - g1"]);

    let failure = RuleFailure {
        group: DefiningGroup { id: id(1), name: "g1".to_owned() },
        message: "too slow".to_owned(),
    };
    let error = AnswerRecord::Error(failure);
    assert_eq!(
        lines(Some(&error), &error.clone()).len() + lines(Some(&conflict), &conflict).len(),
        0
    );
    assert_eq!(lines(None, &error), ["state - \"error\" -", "error - \"too slow\" g1"]);
    for record in [agreed, conflict, error] {
        assert_eq!(AnswerRecord::from_bytes(&record.to_bytes()).unwrap(), record);
        let outline = AnswerOutline::from_bytes(&record.to_bytes()).unwrap();
        assert_eq!((outline.state, outline.environment), (record.state(), record.environment()));
        assert_eq!(outline.groups.iter().collect::<Vec<_>>(), record.groups());
    }
}

#[test]
fn a_conflict_is_kept_up_to_its_bounds() {
    let values = |seed: usize| {
        let long = |key: usize| format!("{seed}{}", "é".repeat(key * 100));
        let variables = (0..200).map(|key| (format!("v{key:03}"), long(key).into()));
        json!({"variables": Value::Object(variables.collect())})
    };
    let all = always();
    let groups =
        (1..60).map(|number| group(number, 0, Some(&all), &values(usize::from(number)))).collect();
    let groups = [vec![group(0, 0, None, &json!({}))], groups].concat();
    let AnswerRecord::Conflict(it) = record(&estate(groups, &[])) else { panic!("a conflict") };
    let variables = it.details["variables"].as_object().unwrap();
    assert_eq!(variables.len(), 100);
    assert_eq!(variables["v001"].as_array().unwrap().len(), 20);
    assert!(variables["v001"][0].get("value").is_some());
    assert!(variables["v099"][0].get("value").is_none());
    assert!(it.summary.len() < 4200, "{}", it.summary.len());
}

#[test]
fn what_answers_the_same_has_the_same_digest() {
    let of = |variable: &str| {
        let text = format!("{{\"variables\": {{\"v\": {variable}}}}}");
        record(&one(&serde_json::from_str(&text).unwrap()))
    };
    let rows = [
        ("1", "1", true),
        ("1", "1.0", false),
        ("1", "\"1\"", false),
        ("1.0", "1.00", true),
        ("1.5e1", "15.0", true),
        ("0", "-0", true),
        ("1e999", "1e998", false),
        ("0.0", "-0.0", false),
        (r#"{"a": 1, "b": [2]}"#, r#"{"b": [2], "a": 1}"#, true),
        ("[1, 2]", "[2, 1]", false),
    ];
    each_row(rows, |(left, right, is_same)| {
        let (left, right) = (of(left), of(right));
        assert_eq!(left.digest() == right.digest(), is_same);
        assert_eq!(changes(Some(&left), &right).is_empty(), is_same);
    });
}

#[test]
fn another_name_counts_for_a_group_that_matches() {
    // A group without a rule matches no node, but its children inherit from it.
    let named = |parent: &str, child: &str| {
        let mut groups = vec![
            group(0, 0, None, &json!({})),
            group(1, 0, None, &json!({"variables": {"v": 1}})),
            group(2, 1, Some(&always()), &json!({})),
        ];
        groups[1].name = parent.parse().unwrap();
        groups[2].name = child.parse().unwrap();
        record(&estate(groups, &[]))
    };
    let before = named("roles", "web");
    assert_eq!(lines(None, &before).last().unwrap(), "variables.v - 1 roles");
    assert_eq!(before.digest(), named("Roles", "web").digest());
    assert!(changes(Some(&before), &named("Roles", "web")).is_empty());
    let renamed = named("roles", "www");
    assert_ne!(before.digest(), renamed.digest());
    assert_eq!(lines(Some(&before), &renamed), ["groups.www \"web\" \"www\" www"]);
}

#[test]
fn other_texts_are_rejected() {
    let nameless = json!({"classified": {"groups": [id(1)], "names": {}}}).to_string();
    let large = format!("[{}]", vec!["0"; 1_000_001].join(","));
    for text in ["", "{}", "[]", "{\"classified\":{}}", "null", nameless.as_str(), large.as_str()] {
        assert!(AnswerRecord::from_bytes(text.as_bytes()).is_err(), "{text:.40}");
    }
}

#[test]
fn words_name_states_and_causes() {
    for state in NodeState::ALL {
        assert_eq!(state.as_str().parse(), Ok(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    for cause in ChangeCause::ALL {
        assert_eq!(cause.as_str().parse(), Ok(cause));
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
    }
    assert!("Both".parse::<ChangeCause>().is_err() && "".parse::<NodeState>().is_err());
}

#[test]
fn a_cause_is_what_makes_the_change_alone() {
    use ChangeCause::{Both, Commit, Facts, First};
    let answer = |number: u8| AnswerDigest::from_bytes([number; 32]);
    let commit = |number: u8| crate::model::CommitId::from_bytes([number; 20]);
    let given = |digest: u8, at: u8| GivenAnswer { digest: answer(digest), commit: commit(at) };
    let (old, new, other) = (Some(1), Some(2), Some(3));
    // Whether there was an answer, at which commit; the facts; the two questions.
    let (same, changed) = (MentionedFacts::Same, MentionedFacts::Changed);
    let rows = [
        (None, changed, None, None, First),
        (Some(2), changed, None, None, Facts),
        (Some(1), same, None, None, Commit),
        (Some(1), changed, new, old, Commit),
        (Some(1), changed, new, other, Commit),
        (Some(1), changed, new, None, Commit),
        (Some(1), changed, new, new, Both),
        (Some(1), changed, old, new, Facts),
        (Some(1), changed, other, new, Facts),
        (Some(1), changed, None, new, Facts),
        (Some(1), changed, old, old, Both),
        (Some(1), changed, old, other, Both),
        (Some(1), changed, other, old, Both),
        (Some(1), changed, other, other, Both),
        // The commit is known to change nothing, or the facts are.
        (Some(1), changed, old, None, Facts),
        (Some(1), changed, None, old, Commit),
        (Some(1), changed, other, None, Both),
        (Some(1), changed, None, other, Both),
        (Some(1), changed, None, None, Both),
    ];
    each_row(rows, |(before, facts, of_commit, of_facts, expected)| {
        let before = before.map(|at| given(1, at));
        let found =
            cause(before, given(2, 2), facts, || of_commit.map(answer), || of_facts.map(answer));
        assert_eq!(found, expected);
    });
}

#[test]
fn only_two_changed_inputs_are_classified_again() {
    let given = |digest: u8, at: u8| GivenAnswer {
        digest: AnswerDigest::from_bytes([digest; 32]),
        commit: crate::model::CommitId::from_bytes([at; 20]),
    };
    let never = || panic!("it is not needed");
    cause(None, given(2, 2), MentionedFacts::Changed, never, never);
    cause(Some(given(1, 2)), given(2, 2), MentionedFacts::Changed, never, never);
    cause(Some(given(1, 1)), given(2, 2), MentionedFacts::Same, never, never);
}

/// A group as a random estate has it: its parent, which fact its rule reads, and values.
type Drawn = (u8, Option<u8>, Vec<(u8, u8)>);

fn drawn_estate(drawn: &[Drawn], own: Option<u8>) -> Estate {
    let root = group(0, 0, None, &json!({"variables": {"root": true}}));
    let others = drawn.iter().zip(1u8..).map(|((parent, fact, values), number)| {
        let rule = fact.map(|it| json!(["=", ["fact", format!("f{}", it % 3)], "yes"]));
        let variables = values.iter().map(|(key, it)| (format!("v{}", key % 4), (it % 2).into()));
        let classes =
            values.iter().map(|(key, it)| (format!("c{}", key % 3), json!({"p": it % 2})));
        let environment = values.first().map_or("production", |(_, it)| match it % 4 {
            0 => "test",
            _ => "production",
        });
        let values = json!({
            "environment": environment,
            "variables": Value::Object(variables.collect()),
            "classes": Value::Object(classes.collect()),
        });
        group(number, parent % number, rule.as_ref(), &values)
    });
    let groups = std::iter::once(root).chain(others).collect();
    estate(groups, own.map(|it| ("n", json!({"v0": it, "own": 1}))).as_slice())
}

fn drawn_node(facts: [bool; 3]) -> Node {
    let mut node = Node::named("n");
    for (number, is_set) in facts.into_iter().enumerate() {
        node.fact.insert(format!("f{number}"), if is_set { "yes" } else { "no" }.into());
    }
    node
}

fn draw() -> impl Strategy<Value = (Vec<Drawn>, Option<u8>, [bool; 3])> {
    let values = prop::collection::vec((any::<u8>(), any::<u8>()), 0..4);
    let group = (any::<u8>(), prop::option::of(any::<u8>()), values);
    let own = prop::option::weighted(0.3, 0..2u8);
    (prop::collection::vec(group, 0..8), own, any::<[bool; 3]>())
}

type ChangeGroups = fn(&mut Vec<Group>);

#[test]
fn groups_are_alike_that_give_the_same_below_the_same_ancestors() {
    let (root, above) = (json!({}), json!({"variables": {"v": 1}}));
    let own = json!({"classes": {"c": {"p": {"a": 1, "b": 2}}}});
    let numbered = [(0, 0, &root), (1, 0, &above), (2, 1, &own), (3, 0, &root)];
    let always = always();
    let groups: Vec<Group> = numbered
        .map(|(number, parent, values)| group(number, parent, Some(&always), values))
        .into();
    let before = estate(groups.clone(), &[]);
    let rows: [(&str, ChangeGroups, bool); 16] = [
        ("nothing", |_| {}, true),
        ("a description", |it| it[2].description = Some("d".into()), true),
        (
            "what its rule says",
            |it| it[2].rule = Some(Arc::new(rule::read(&json!(["=", "name", "n"])).unwrap())),
            true,
        ),
        ("that it has a rule", |it| it[2].rule = None, false),
        ("one group more before it", |it| it.push(group(4, 1, None, &json!({}))), true),
        ("one group less behind it", |it| drop(it.pop()), true),
        (
            "the order of keys in a value",
            |it| {
                let other = json!({"c": {"p": {"b": 2, "a": 1}}});
                it[2].classes = Arc::new(serde_json::from_value(other).unwrap());
            },
            true,
        ),
        ("a sibling of its parent", |it| it[3].name = "other".parse().unwrap(), true),
        ("its name", |it| it[2].name = "other".parse().unwrap(), false),
        ("its environment", |it| it[2].environment = "test".parse().unwrap(), false),
        ("which environment wins", |it| it[2].environment_trumps = true, false),
        ("its classes", |it| it[2].classes = Arc::default(), false),
        ("its parent", |it| it[2].parent = id(3), false),
        ("a variable of its parent", |it| it[1].variables = Arc::default(), false),
        ("the name of its parent", |it| it[1].name = "other".parse().unwrap(), false),
        ("the root group", |it| it[0].environment = "test".parse().unwrap(), false),
    ];
    each_row(rows, |(what, change, are_alike)| {
        let mut changed = groups.clone();
        change(&mut changed);
        let after = estate(changed, &[]);
        let places = |it: &Estate| [0, 1, 2].map(|number| it.hierarchy.find(id(number)).unwrap());
        let alike_in_before = |places: &[_]| after.hierarchy.alike_in(&before.hierarchy, places);
        let found = alike_in_before(&places(&after));
        assert_eq!(found.as_deref(), are_alike.then_some(&places(&before)[..]), "{what}");
        let written = |it: &Estate| {
            AnswerRecord::of_groups(it, &Node::named("n"), Ok(&places(it))).to_bytes()
        };
        assert!(!are_alike || written(&before) == written(&after), "{what}");
        // Without any group the root group decides.
        assert_eq!(alike_in_before(&[]).is_some(), what != "the root group", "{what}");
    });
    let without = Hierarchy::build(groups[..2].to_vec()).unwrap();
    let added = before.hierarchy.find(id(2)).unwrap();
    assert!(before.hierarchy.alike_in(&without, &[added]).is_none(), "it is new");
}

proptest! {
    #[test]
    fn what_alike_groups_give_is_the_same(
        (groups, _, facts) in draw(),
        others in prop::collection::vec(prop::option::weighted(0.2, draw()), 0..8),
        renamed in prop::option::weighted(0.2, 0..8usize),
    ) {
        let mut changed = groups.clone();
        for (drawn, other) in changed.iter_mut().zip(others) {
            if let Some(other) = other.and_then(|(groups, ..)| groups.into_iter().next()) {
                *drawn = other;
            }
        }
        let (before, mut after) = (drawn_estate(&groups, None), drawn_estate(&changed, None));
        if let Some(number) = renamed {
            let mut groups: Vec<Group> = after.hierarchy.groups().cloned().collect();
            if let Some(group) = groups.get_mut(number) {
                group.name = "renamed".parse().unwrap();
            }
            after = estate(groups, &[]);
        }
        let node = drawn_node(facts);
        let matching = crate::classification::matches(&after.hierarchy, &node).unwrap();
        if let Some(places) = after.hierarchy.alike_in(&before.hierarchy, &matching) {
            let [one, other] = [(&before, &*places), (&after, &*matching)]
                .map(|(estate, groups)| AnswerRecord::of_groups(estate, &node, Ok(groups)));
            prop_assert_eq!(one.to_bytes(), other.to_bytes());
            prop_assert_eq!(one.digest(), other.digest());
        }
    }

    #[test]
    fn an_answer_is_the_same_by_rules_and_by_index((groups, own, facts) in draw()) {
        let (estate, node) = (drawn_estate(&groups, own), drawn_node(facts));
        let index = Index::new(&estate.hierarchy);
        let matching = index.matches(&estate.hierarchy, &index.resolve(&node));
        let by_index = AnswerRecord::of_groups(&estate, &node, matching.as_deref());
        let by_rules = AnswerRecord::of(&estate, &node);
        prop_assert_eq!(&by_index, &by_rules);
        let read = AnswerRecord::from_bytes(&by_rules.to_bytes()).unwrap();
        prop_assert_eq!(read.digest(), by_rules.digest());
        prop_assert_eq!(read, by_rules);
    }

    #[test]
    fn answers_with_one_digest_do_not_differ(one in draw(), other in draw()) {
        let record = |(groups, own, facts): (Vec<Drawn>, Option<u8>, [bool; 3])| {
            AnswerRecord::of(&drawn_estate(&groups, own), &drawn_node(facts))
        };
        let (one, other) = (record(one), record(other));
        let found = changes(Some(&one), &other);
        prop_assert_eq!(found.is_empty(), one.digest() == other.digest(), "{:?}", found);
        prop_assert!(changes(Some(&one), &one.clone()).is_empty());
        // What one way is lost is got the other way.
        let back: Vec<_> = changes(Some(&other), &one).into_iter().map(|it| (it.key, it.after)).collect();
        let lost: Vec<_> = found.into_iter().map(|it| (it.key, it.before)).collect();
        prop_assert_eq!(back, lost);
    }
}
