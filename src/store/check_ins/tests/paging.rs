//! Pages of a list, each behind the last node of the one before.

use super::history::{ask, node, rule, snapshot, written};
use super::*;
use crate::answer::NodeState;
use crate::snapshot::Snapshot;
use crate::store::sql::Statement;

use crate::store::{NodeCursor, NodeFilter, NodePage, NodeRange};

with_either_database! {
    pages_behind_each_other_are_the_whole_list_in_each_order
    a_node_that_moves_makes_no_other_one_be_missed
}

const ORDERS: [&str; 10] = [
    "certname",
    "-certname",
    "last-seen",
    "-last-seen",
    "since",
    "-since",
    "state",
    "-state",
    "environment",
    "-environment",
];

/// How many nodes there are.
const NODES: i64 = 24;

fn filter(sort: &str, after: Option<NodeCursor>) -> NodeFilter {
    NodeFilter { order: sort.parse().unwrap(), after, ..NodeFilter::default() }
}

fn page(store: &CheckIns, filter: &NodeFilter, limit: usize) -> NodePage {
    store.nodes(filter, NodeRange { offset: 0, limit }).unwrap()
}

fn names_of(page: &NodePage) -> Vec<String> {
    page.nodes.iter().map(|it| it.name.clone()).collect()
}

/// Returns a store of nodes of each state, in two environments, of which several are equal in all but the name.
fn store(database: TestedDatabase) -> (CheckIns, Arc<Snapshot>) {
    let store = opened_at(&database.fresh(), LIMITS);
    let snapshot = snapshot(1, &[rule("Debian"), rule("Suse"), rule("RedHat")]);
    let families = ["Suse", "RedHat", "Debian", "none", "Gentoo"];
    for (number, family) in (0..NODES).zip(families.iter().cycle()) {
        let name = format!("n{number:02}");
        match *family {
            "none" => store.note(&check_in(&name, number / 4)),
            _ => {
                let facts = json!({"os": {"family": family}});
                ask(&store, number / 4, &snapshot, &node(&name, &facts));
            }
        }
    }
    written(&store);
    let database = store.0.file.database().unwrap();
    let of_group = " WHERE id IN (SELECT answer FROM answer_groups WHERE group_id = ";
    for (set, group) in [
        ("UPDATE answers SET state = 1, environment = NULL", 1),
        ("UPDATE answers SET state = 2, environment = NULL", 2),
        ("UPDATE answers SET environment = 'dev'", 3),
    ] {
        let group = format!("00000000-0000-4000-8000-0000000000{group:02x}");
        let statement = Statement::new(set).text(of_group).value(group.as_str()).text(")");
        database.connections.maintain(statement).unwrap();
    }
    (store, snapshot)
}

fn pages_behind_each_other_are_the_whole_list_in_each_order(database: TestedDatabase) {
    let (store, _) = store(database);
    for sort in ORDERS {
        let whole = page(&store, &filter(sort, None), 100);
        assert_eq!((whole.nodes.len(), &whole.next), (24, &None), "{sort}");
        for limit in [1, 5, 12, 23, 24, 25] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let filter = filter(sort, after);
                let some = page(&store, &filter, limit);
                assert_eq!(some.total, 24, "all are counted: {sort}");
                found.extend(names_of(&some));
                let Some(next) = some.next else { break };
                assert_eq!(some.nodes.len(), limit, "{sort}");
                let written = next.to_string();
                after = Some(NodeCursor::parse(&written, filter.order.key).unwrap());
                assert_eq!(after.as_ref(), Some(&next), "{written}");
            }
            assert_eq!(found, names_of(&whole), "{sort} {limit}");
        }
        assert_eq!(
            page(&store, &filter(sort, None), 0).next,
            None,
            "there is no place behind none"
        );
    }
    let first = page(&store, &filter("state", None), 1);
    let classified =
        NodeFilter { state: Some(NodeState::Classified), ..filter("state", first.next) };
    assert!(page(&store, &classified, 100).total < 24, "other conditions hold as well");
}

fn a_node_that_moves_makes_no_other_one_be_missed(database: TestedDatabase) {
    let (store, snapshot) = store(database);
    for sort in ["last-seen", "since", "state", "environment"] {
        let whole = names_of(&page(&store, &filter(sort, None), 100));
        let first = page(&store, &filter(sort, None), 5);
        // The first node of the page moves behind it, and the last one is forgotten.
        let facts = json!({"os": {"family": "Debian", "turn": sort}});
        ask(&store, 100, &snapshot, &node(&whole[0], &facts));
        assert!(store.forget_node(&whole[4]).unwrap());
        written(&store);
        let rest = names_of(&page(&store, &filter(sort, first.next), 100));
        let missed: Vec<&String> = whole[5..].iter().filter(|it| !rest.contains(it)).collect();
        assert_eq!(missed, Vec::<&String>::new(), "{sort}");
        ask(&store, 0, &snapshot, &node(&whole[4], &facts));
        written(&store);
    }
}
