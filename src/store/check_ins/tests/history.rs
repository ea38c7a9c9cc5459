//! What nodes got, and every change of that.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::answer::{AnswerRecord, ChangeCause, NodeState, changes};
use crate::hierarchy::{Estate, Hierarchy, root_group};
use crate::mentioned::MentionedPaths;
use crate::model::CommitId;
use crate::snapshot::Snapshot;
use crate::store::sql::Statement;
use crate::store::{Answered, Certname, NodeFilter, NodeRange, StoredChange};

with_either_database! {
    a_change_is_kept_with_its_cause_and_a_check_in_without_one_is_not
    nodes_are_listed_by_what_they_got
    old_changes_and_their_answers_are_forgotten
    a_scan_has_what_rules_mention
    groups_that_lost_their_nodes_are_known_for_a_time
    a_list_by_state_has_pages_across_states
}

/// A snapshot with a group for each rule: group `gN` has the class `cN`.
pub(super) fn snapshot(digit: u8, rules: &[Value]) -> Arc<Snapshot> {
    let root = root_group().unwrap();
    let mut groups = vec![root.clone()];
    for (number, rule) in rules.iter().enumerate() {
        let mut group = root.clone();
        group.id = format!("00000000-0000-4000-8000-0000000000{:02x}", number + 1).parse().unwrap();
        group.name = format!("g{number}").parse().unwrap();
        group.rule = Some(Arc::new(crate::rule::read(rule).unwrap()));
        let classes = json!({format!("c{number}"): {}});
        group.classes = Arc::new(serde_json::from_value(classes).unwrap());
        groups.push(group);
    }
    let estate = Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        individuals: Arc::default(),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation: crate::model::Interpolation::Off,
    };
    let commit = CommitId::from_bytes([digit; 20]);
    Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()))
}

pub(super) fn node(name: &str, facts: &Value) -> Node {
    Node { fact: facts.as_object().unwrap().clone(), ..Node::named(name) }
}

/// Notes that a node asked at a second, and returns what it got.
pub(super) fn ask(
    store: &CheckIns,
    second: i64,
    snapshot: &Arc<Snapshot>,
    node: &Node,
) -> AnswerRecord {
    let groups = snapshot.index().matching(&snapshot.estate.hierarchy, node);
    let record = AnswerRecord::of_groups(&snapshot.estate, node, groups.as_deref());
    let answered = Answered {
        snapshot: Arc::clone(snapshot),
        groups: groups.map(Vec::into_boxed_slice),
        certname: Certname::AsSent,
    };
    store.note(Noted {
        time: Timestamp::from_second(second).unwrap(),
        transaction_uuid: None,
        commit: Some(snapshot.commit),
        answered: Some(answered),
        node,
        facts: crate::store::NotedFacts::OfNode,
        said: SaidPart::Both,
    });
    record
}

pub(super) fn written(store: &CheckIns) {
    store.0.writer.take_turn().unwrap();
}

pub(super) fn rule(value: &str) -> Value {
    json!(["=", ["fact", "os", "family"], value])
}

pub(super) fn whole_history(store: &CheckIns, name: &str) -> Vec<StoredChange> {
    let mut changes = Vec::new();
    let mut before = None;
    loop {
        let page = store.history(name, 3, before).unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.time);
        changes.extend(page);
    }
    changes.reverse();
    changes
}

fn a_change_is_kept_with_its_cause_and_a_check_in_without_one_is_not(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let (debian, suse) = (json!({"os": {"family": "Debian"}}), json!({"os": {"family": "Suse"}}));
    let one = snapshot(1, &[rule("Debian")]);
    let two = snapshot(2, &[rule("Debian"), rule("Suse")]);
    let three = snapshot(3, &[rule("Suse"), rule("Debian")]);
    let four = snapshot(4, &[json!(["=", ["fact", "site"], "x"])]);
    let steps: [(_, &Arc<Snapshot>, Value, Option<ChangeCause>); 9] = [
        (10, &one, debian.clone(), Some(ChangeCause::First)),
        (20, &one, json!({"os": {"family": "Debian"}, "uptime": 7}), None),
        (30, &two, debian.clone(), None),
        (40, &two, suse.clone(), Some(ChangeCause::Facts)),
        (50, &three, suse.clone(), Some(ChangeCause::Commit)),
        // Debian at three is the answer of Suse at two, and the other way round.
        (60, &three, debian.clone(), Some(ChangeCause::Facts)),
        (70, &two, suse.clone(), None),
        // The fact that the new rule reads was known before.
        (80, &two, json!({"os": {"family": "Suse"}, "site": "x"}), None),
        (90, &four, json!({"os": {"family": "Suse"}, "site": "x"}), Some(ChangeCause::Commit)),
    ];
    for waits in [false, true] {
        let name = if waits { "waits" } else { "written" };
        let mut expected = Vec::new();
        for (second, snapshot, facts, cause) in &steps {
            let before = whole_history(&store, name).last().map(|it| it.after.clone());
            let got = ask(&store, *second, snapshot, &node(name, facts));
            if !waits {
                written(&store);
            }
            // Where the answer is the same as before by chance, there is no change.
            if before.as_ref() != Some(&got) {
                expected.push((*second, got, *cause));
            }
        }
        let found = whole_history(&store, name);
        let times: Vec<i64> = found.iter().map(|it| it.time.as_second()).collect();
        let causes: Vec<ChangeCause> = found.iter().map(|it| it.cause).collect();
        println!("{name}: {times:?} {causes:?}");
        assert_eq!(times, expected.iter().map(|it| it.0).collect::<Vec<_>>());
        for (change, (second, got, cause)) in found.iter().zip(&expected) {
            assert_eq!((&change.after, change.time.as_second()), (got, *second));
            if let Some(cause) = cause {
                assert_eq!(change.cause, *cause, "{second}");
            }
        }
        let facts: Vec<String> = found[1].facts.iter().map(|it| format!("{it:?}")).collect();
        assert_eq!(facts.len(), 1, "{facts:?}");
        assert!(facts[0].contains("Debian") && facts[0].contains("Suse"), "{facts:?}");
    }
}

/// Sorts a list of 30 nodes, which were seen in the order of their names.
fn check_orders(store: &CheckIns) {
    for (sort, first) in [
        ("certname", "n00 n01 n02"),
        ("-certname", "n29 n28 n27"),
        ("last-seen", "n00 n01 n02"),
        ("-last-seen", "n29 n28 n27"),
        ("-since", "n29 n28 n27"),
        ("state", "n00 n01 n02"),
        ("-state", "n00 n01 n02"),
        ("environment", "n00 n01 n02"),
        ("-environment", "n00 n01 n02"),
    ] {
        let filter = NodeFilter { order: sort.parse().unwrap(), ..NodeFilter::default() };
        let page = store.nodes(&filter, NodeRange { offset: 0, limit: 3 }).unwrap();
        let names: Vec<&str> = page.nodes.iter().map(|it| it.name.get(..3).unwrap()).collect();
        assert_eq!((page.total, &*names.join(" ")), (30, first), "{sort}");
    }
    assert!("colour".parse::<crate::store::NodeOrder>().is_err());
}

fn a_list_by_state_has_pages_across_states(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let snapshot = snapshot(1, &[rule("Debian"), rule("Suse")]);
    // The answers of Debian are made conflicts, those of Suse errors; the last nodes only submit facts.
    let families = ["Suse", "RedHat", "Debian", "RedHat", "Debian", "none"];
    for (number, family) in (0..18).zip(families.iter().cycle()) {
        let name = format!("n{number:02}");
        match *family {
            "none" => store.note(&check_in(&name, 1)),
            _ => {
                let facts = json!({"os": {"family": family}});
                ask(&store, number, &snapshot, &node(&name, &facts));
            }
        }
    }
    written(&store);
    for (group, state) in [
        (
            1,
            "UPDATE answers SET state = 1 WHERE id IN (SELECT answer FROM answer_groups WHERE group_id = ",
        ),
        (
            2,
            "UPDATE answers SET state = 2 WHERE id IN (SELECT answer FROM answer_groups WHERE group_id = ",
        ),
    ] {
        let group = format!("00000000-0000-4000-8000-0000000000{group:02x}");
        let statement = Statement::new(state).value(group.as_str()).text(")");
        store.0.file.database().unwrap().connections.maintain(statement).unwrap();
    }
    for (sort, order) in [
        ("state", ["RedHat", "Debian", "Suse", "none"]),
        ("-state", ["Suse", "Debian", "RedHat", "none"]),
    ] {
        let filter = NodeFilter { order: sort.parse().unwrap(), ..NodeFilter::default() };
        let mut expected: Vec<(usize, usize)> = (0..18)
            .map(|it| (order.iter().position(|family| *family == families[it % 6]).unwrap(), it))
            .collect();
        expected.sort_unstable();
        let expected: Vec<String> = expected.iter().map(|(_, it)| format!("n{it:02}")).collect();
        for (offset, limit) in (0..20).flat_map(|offset| [0, 1, 4, 7, 30].map(|it| (offset, it))) {
            let page = store.nodes(&filter, NodeRange { offset, limit }).unwrap();
            let names: Vec<&String> = page.nodes.iter().map(|it| &it.name).collect();
            let end = (offset + limit).min(18).max(offset.min(18));
            let some: Vec<&String> = expected[offset.min(18)..end].iter().collect();
            assert_eq!((page.total, names), (18, some), "{sort} {offset} {limit}");
        }
    }
}

fn nodes_are_listed_by_what_they_got(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let snapshot = snapshot(1, &[rule("Debian"), rule("Suse"), json!(["=", ["fact", "n"], "1"])]);
    for number in 0..30 {
        let family = if number % 2 == 0 { "Debian" } else { "Suse" };
        let facts = json!({"os": {"family": family}, "n": (number % 3).to_string()});
        ask(&store, 100 + number, &snapshot, &node(&format!("n{number:02}.example.com"), &facts));
    }
    let all = NodeRange { offset: 0, limit: 1000 };
    let listed = |filter: NodeFilter, range: NodeRange| {
        let page = store.nodes(&filter, range).unwrap();
        let names: Vec<String> =
            page.nodes.iter().map(|it| it.name.get(..3).unwrap().to_owned()).collect();
        (page.total, names.join(" "))
    };
    let class = |name: &str| Some(name.parse().unwrap());
    let id = |name: &str| {
        let hierarchy = &snapshot.estate.hierarchy;
        hierarchy.groups().find(|it| it.name.as_str() == name).unwrap().id
    };
    assert_eq!(listed(NodeFilter::default(), NodeRange { offset: 28, limit: 5 }).1, "n28 n29");
    check_orders(&store);
    let suse = NodeFilter { class: class("c1"), ..NodeFilter::default() };
    assert_eq!(listed(suse, NodeRange { offset: 0, limit: 2 }), (15, "n01 n03".to_owned()));
    let both =
        NodeFilter { class: class("c1"), groups: Some([id("g2")].into()), ..NodeFilter::default() };
    assert_eq!(listed(both, all), (5, "n01 n07 n13 n19 n25".to_owned()));
    let none = NodeFilter { groups: Some([].into()), ..NodeFilter::default() };
    assert_eq!(listed(none, all), (0, String::new()));
    let part = NodeFilter { name_part: Some("2.EXAMPLE".to_owned()), ..NodeFilter::default() };
    assert_eq!(listed(part, all), (3, "n02 n12 n22".to_owned()));
    for part in ["%", "_", "'", "!", "\0%", "'; DROP TABLE nodes; --"] {
        let part = NodeFilter { name_part: Some(part.to_owned()), ..NodeFilter::default() };
        assert_eq!(listed(part, all).0, 0);
    }
    let silent = NodeFilter {
        silent_since: Some(Timestamp::from_second(103).unwrap()),
        state: Some(NodeState::Classified),
        environment: Some("production".parse().unwrap()),
        commit: Some(snapshot.commit),
        ..NodeFilter::default()
    };
    assert_eq!(listed(silent, all), (3, "n00 n01 n02".to_owned()));
    let other = NodeFilter { state: Some(NodeState::Conflict), ..NodeFilter::default() };
    assert_eq!(listed(other, all).0, 0);
    let shown = store.node("n01.example.com", &Unlimited).unwrap().unwrap();
    assert_eq!(shown.node.fact["os"]["family"], "Suse");
    assert_eq!(shown.answer.unwrap().1.as_second(), 101);
    assert_eq!(store.node("unknown", &Unlimited).unwrap(), None);
}

#[test]
fn what_is_forgotten_is_not_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let store = opened(Some(&path));
    let snapshots = [1, 2].map(|it| snapshot(it, &[rule("Debian"), rule(&it.to_string())]));
    // Not compressible, so that it would be found.
    let secret = "kJ2x9QzPw7Lr4Tn8Vb1";
    for (second, snapshot) in snapshots.iter().enumerate() {
        for number in 0..50 {
            let family = if number == 7 { secret } else { "Debian" };
            let facts =
                json!({"os": {"family": format!("{family}{second}")}, "pad": "x".repeat(3000)});
            ask(
                &store,
                10 + i64::try_from(second).unwrap(),
                snapshot,
                &node(&format!("n{number}"), &facts),
            );
        }
        written(&store);
    }
    let has_secret = || {
        let files = std::fs::read_dir(directory.path()).unwrap();
        files
            .map(|it| std::fs::read(it.unwrap().path()).unwrap())
            .any(|bytes| bytes.windows(secret.len()).any(|it| it == secret.as_bytes()))
    };
    assert!(has_secret(), "it is stored at first");
    assert!(store.forget_node("n7").unwrap());
    assert!(!store.forget_node("n7").unwrap(), "it is gone");
    assert_eq!(store.node("n7", &Unlimited).unwrap(), None);
    assert_eq!(store.history("n7", 10, None).unwrap(), []);
    assert!(!has_secret());
    assert_eq!(names(&store).len(), 49);
}

fn old_changes_and_their_answers_are_forgotten(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    for second in 1..=20 {
        let snapshot = snapshot(second, &[rule("Debian"), rule(&second.to_string())]);
        let facts = json!({"os": {"family": (second - second % 2).to_string()}});
        ask(&store, i64::from(second), &snapshot, &node("n", &facts));
        written(&store);
    }
    let database = store.0.file.database().unwrap();
    let count = |table: &'static str| {
        let counted = database.connections.read(async |connection| {
            let count = Statement::new("SELECT COUNT(*) FROM ").text(table);
            let row = count.first(connection).await?;
            crate::store::sql::integer(&row.unwrap(), 0)
        });
        counted.unwrap()
    };
    let changes = count("changes");
    assert!(changes > 15, "{changes}");
    let before = whole_history(&store, "n");
    database.forget_changes(15_000_000).unwrap();
    let after = whole_history(&store, "n");
    assert_eq!(
        after,
        before.into_iter().filter(|it| it.time.as_second() >= 15).collect::<Vec<_>>()
    );
    assert!(count("answers") <= count("changes") + 1);
    database.forget(i64::MAX).unwrap();
    assert_eq!((count("answers"), count("answer_classes"), count("facts")), (0, 0, 0));
}

fn a_scan_has_what_rules_mention(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let asked = snapshot(1, &[rule("Debian")]);
    let other = MentionedPaths::of(&snapshot(2, &[json!(["=", ["fact", "n"], "1"])]).estate);
    for number in 0..5 {
        let facts = json!({"os": {"family": "Debian", "name": "x"}, "n": number.to_string()});
        ask(&store, 10, &asked, &node(&format!("n{number}"), &facts));
    }
    // One that has only submitted facts.
    store.note(&check_in("n9", 1));
    for (paths, expected) in
        [(&**asked.mentioned(), json!({"os": {"family": "Debian"}})), (&other, json!({"n": "3"}))]
    {
        let mut found = Vec::new();
        store.scan(paths, ScanExtent::All, |nodes| found.extend(nodes)).unwrap();
        assert_eq!(found.len(), 6);
        let third = found[3].node(paths).unwrap().unwrap();
        assert_eq!(Value::from(third.fact), expected);
        assert!(found.iter().all(|it| it.has_facts));
    }
}

fn groups_that_lost_their_nodes_are_known_for_a_time(tested: TestedDatabase) {
    let store = opened_at(&tested.fresh(), LIMITS);
    let snapshot = snapshot(1, &[rule("Debian"), rule("Suse"), rule("RedHat")]);
    for (second, family) in [(10, "Debian"), (20, "Suse")] {
        ask(&store, second, &snapshot, &node("a", &json!({"os": {"family": family}})));
        written(&store);
    }
    let counts = |since: Option<i64>| {
        let since = since.map(|it| Timestamp::from_second(it).unwrap());
        let members = store.members(since).unwrap();
        let id = |it: u8| format!("00000000-0000-4000-8000-0000000000{it:02x}").parse().unwrap();
        [1, 2, 3].map(|it| members.get(&id(it)).copied())
    };
    assert_eq!(counts(None), [None, Some(1), None]);
    assert_eq!(counts(Some(20)), [Some(0), Some(1), None]);
    assert_eq!(counts(Some(21)), [None, Some(1), None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A log that the test keeps is what the history says.
    #[test]
    fn history_is_the_log(
        steps in proptest::collection::vec((0..3_usize, 0..4_usize, 0..5_usize, any::<bool>()), 1..60),
    ) {
        let directory = tempfile::tempdir().unwrap();
        check_log(&StoreLocation::Sqlite(directory.path().join("nodes.sqlite")), &steps)?;
        if let Some(server) = Postgres::shared() {
            check_log(&TestedDatabase::Postgres(server).fresh(), &steps)?;
        }
    }
}

/// A node's family, the snapshot, the node, and whether all is written then.
type Step = (usize, usize, usize, bool);

fn check_log(location: &StoreLocation, steps: &[Step]) -> Result<(), TestCaseError> {
    let families = ["Debian", "Suse", "RedHat"];
    let snapshots: Vec<_> = (1..5)
        .map(|digit| {
            let rules: Vec<Value> =
                (0..digit).map(|it| rule(families[usize::from(it) % 3])).collect();
            snapshot(digit, &rules)
        })
        .collect();
    let mut store = opened_at(location, LIMITS);
    let mut log: BTreeMap<String, Vec<(i64, CommitId, AnswerRecord)>> = BTreeMap::new();
    for (second, &(family, snapshot, name, writes)) in steps.iter().enumerate() {
        let name = format!("n{name}");
        let second = i64::try_from(second).unwrap();
        let facts = json!({"os": {"family": families[family]}});
        let got = ask(&store, second, &snapshots[snapshot], &node(&name, &facts));
        let of_node = log.entry(name).or_default();
        if of_node.last().is_none_or(|it| it.2 != got) {
            of_node.push((second, snapshots[snapshot].commit, got));
        }
        if writes {
            written(&store);
        }
        if second % 13 == 12 {
            store.forget_node(&format!("n{}", second % 5)).unwrap();
            log.remove(&format!("n{}", second % 5));
        }
        if second % 17 == 16 {
            written(&store);
            drop(store);
            store = opened_at(location, LIMITS);
        }
    }
    written(&store);
    assert_counted(&store);
    for (name, expected) in log {
        let found = whole_history(&store, &name);
        let said: Vec<_> =
            found.iter().map(|it| (it.time.as_second(), it.commit, it.after.clone())).collect();
        prop_assert_eq!(said, expected);
        for pair in found.windows(2) {
            prop_assert_eq!(Some(&pair[0].after), pair[1].before.as_ref());
            prop_assert!(!changes(pair[1].before.as_ref(), &pair[1].after).is_empty());
        }
    }
    Ok(())
}
