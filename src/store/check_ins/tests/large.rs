//! Answers and facts that are large, and answers that cannot be read.

use serde_json::Value;

use super::history::{ask, node, rule, snapshot, whole_history, written};
use super::*;
use crate::answer::{AnswerDigest, NodeState};
use crate::snapshot::Snapshot;
use crate::store::compression::pack;
use crate::store::prepared::{AnswerContent, PreparedNode};
use crate::store::sql::Statement;
use crate::store::{NodeFilter, NodeRange};

with_either_database! {
    an_answer_that_cannot_be_read_is_left_out
    a_list_is_read_without_the_values_of_its_answers
    a_scan_holds_few_bytes_at_a_time
    large_answers_are_written_before_the_nodes_that_got_them
}

/// Asks as a node whose answer changes each time, with facts of 3 MB.
fn ask_with_large_facts(store: &CheckIns, rules: &Arc<Snapshot>) {
    for (second, family) in [(10, "Debian"), (20, "Suse"), (30, "Debian"), (40, "Suse")] {
        let facts = json!({"os": {"family": family}, "large": "x".repeat(3_000_000)});
        ask(store, second, rules, &node("n", &facts));
    }
}

#[test]
fn check_ins_of_one_node_are_written_some_at_a_time() {
    let store = opened(None);
    let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
    ask_with_large_facts(&store, &rules);
    let latest = || store.0.pending.queue().get("n").last().unwrap().row.origin().time.as_second();
    let sizes = |bytes| {
        let mut batches = Vec::new();
        let mut taken = Vec::new();
        loop {
            let batch = store.0.pending.queue().take(256, bytes);
            let Some(node) = batch.nodes.get("n") else { break };
            assert_eq!(latest(), 40, "it is found while those before it are written");
            taken.push(node.check_ins.len());
            batches.push(batch);
        }
        // The first one is put in front of the others again.
        for batch in batches.into_iter().rev() {
            store.0.pending.queue().put_back(batch);
        }
        taken
    };
    assert_eq!(sizes(1), [1, 1, 1, 1]);
    assert_eq!(sizes(4 << 20), [2, 2]);
    assert_eq!(sizes(8 << 20), [3, 1]);
    assert_eq!(sizes(32 << 20), [4]);
    written(&store);
    let times: Vec<i64> = whole_history(&store, "n").iter().map(|it| it.time.as_second()).collect();
    assert_eq!(times, [10, 20, 30, 40]);
    assert!(store.0.pending.queue().is_empty());
}

#[test]
fn a_node_that_goes_on_asking_keeps_no_other_waiting() {
    let store = opened(None);
    let rules = snapshot(1, &[rule("Debian"), rule("Suse")]);
    let ask = |name: &str, second: i64| {
        let family = if second % 2 == 0 { "Debian" } else { "Suse" };
        ask(&store, second, &rules, &node(name, &json!({"os": {"family": family}})));
    };
    let take = || {
        let batch = store.0.pending.queue().take(256, 1);
        let (name, node) = batch.nodes.iter().next().unwrap();
        assert_eq!(node.check_ins.len(), 1, "{name}");
        (name.clone(), node.check_ins[0].fresh.row.origin().time.as_second())
    };
    for second in [1, 2, 3] {
        ask("busy", second);
    }
    assert_eq!(take(), ("busy".to_owned(), 1));
    ask("busy", 4);
    ask("other", 5);
    let end = store.0.pending.queue().end();
    let mut order = Vec::new();
    let mut second = 6;
    while !store.0.pending.queue().is_written_up_to(end) {
        second += 1;
        ask("busy", second);
        order.push(take());
    }
    let order: Vec<(&str, i64)> = order.iter().map(|(name, at)| (name.as_str(), *at)).collect();
    assert_eq!(order, [("busy", 2), ("busy", 3), ("busy", 4), ("other", 5)]);
}

const ALL: NodeRange = NodeRange { offset: 0, limit: 1000 };

/// Replaces the answer that the node got at a second.
fn replace_answer(store: &CheckIns, second: i64, body: Vec<u8>) {
    let database = store.0.file.database().unwrap();
    let replaced = database.connections.write(async |connection| {
        let replace = Statement::new("UPDATE answers SET body = ").value(body);
        let replace = replace.text(" WHERE id = (SELECT answer_after FROM changes WHERE time = ");
        let replace = replace.value(second * 1_000_000).text(")");
        replace.execute(connection).await.map_err(database.connections.failed("written"))
    });
    assert_eq!(replaced.unwrap(), 1);
}

fn an_answer_that_cannot_be_read_is_left_out(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = snapshot(1, &[rule("Debian"), rule("Suse"), rule("RedHat")]);
    for (second, family) in [(10, "Debian"), (20, "Suse"), (30, "RedHat")] {
        ask(&store, second, &rules, &node("n", &json!({"os": {"family": family}})));
    }
    let sound = whole_history(&store, "n");
    replace_answer(&store, 20, b"garbage".to_vec());
    let mut last = sound[2].clone();
    last.before = None;
    assert_eq!(whole_history(&store, "n"), [sound[0].clone(), last.clone()]);
    let earlier = store.history("n", 1, Some(last.time)).unwrap();
    assert_eq!(earlier, [sound[0].clone()], "one that is left out is not the end");
    replace_answer(&store, 30, pack(br#"{"classified":{"groups":["x"],"names":{}}}"#).unwrap());
    let page = store.nodes(&NodeFilter::default(), ALL).unwrap();
    assert_eq!((page.total, page.nodes[0].answer.clone()), (1, None));
    assert_eq!(store.node("n", &Unlimited).unwrap().unwrap().answer, None);
    assert_eq!(store.0.file.state().health.failing, None);
}

fn a_list_is_read_without_the_values_of_its_answers(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = snapshot(1, &[rule("Debian")]);
    let record = ask(&store, 10, &rules, &node("n", &json!({"os": {"family": "Debian"}})));
    written(&store);
    let mut answer: Value = serde_json::from_slice(&record.to_bytes()).unwrap();
    // More than a whole answer may have.
    let many = format!("[0{}]", ",0".repeat(1_000_000));
    let variables = json!({"v": {"value": "many"}});
    answer["classified"]["variables"] = variables;
    let text = answer.to_string().replace("\"many\"", &many);
    replace_answer(&store, 10, pack(text.as_bytes()).unwrap());
    let page = store.nodes(&NodeFilter::default(), ALL).unwrap();
    let listed = page.nodes[0].answer.clone().unwrap();
    assert_eq!((listed.state, listed.environment), (record.state(), record.environment()));
    assert_eq!(listed.groups.iter().collect::<Vec<_>>(), record.groups());
    assert_eq!(listed.groups.len(), 2);
}

fn a_scan_holds_few_bytes_at_a_time(database: TestedDatabase) {
    const TOGETHER: usize = 8 << 20;
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = snapshot(1, &[json!(["=", ["fact", "list"], "x"])]);
    let long = json!({"list": ["x".repeat(LARGE_ROW - 1000)]});
    for number in 0..40 {
        ask(&store, 10, &rules, &node(&format!("n{number:02}"), &long));
        written(&store);
    }
    let mut found = Vec::new();
    let read = |nodes: Vec<ScannedNode>| {
        let mut bytes = 0;
        for scanned in nodes {
            let node = scanned.node(rules.mentioned()).unwrap().unwrap();
            bytes += node.fact["list"][0].as_str().unwrap().len();
            found.push(scanned.name);
        }
        assert!(bytes <= TOGETHER, "{bytes}");
    };
    store.scan(rules.mentioned(), ScanExtent::All, read).unwrap();
    let expected: Vec<String> = (0..40).map(|it| format!("n{it:02}")).collect();
    assert_eq!(found, expected);
}

fn large_answers_are_written_before_the_nodes_that_got_them(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let rules = snapshot(1, &[rule("Debian")]);
    ask(&store, 10, &rules, &node("n", &json!({"os": {"family": "Debian"}})));
    let batch = store.0.pending.queue().take(1, usize::MAX);
    let mut preparation = store.0.writer.preparation();
    let database = store.0.file.database().unwrap();
    let count = || {
        let counted = database.connections.read(async |connection| {
            let row = Statement::new("SELECT COUNT(*) FROM answers").first(connection).await?;
            crate::store::sql::integer(&row.unwrap(), 0)
        });
        counted.unwrap()
    };
    for (classes, expected) in [(100, 0), (7_000, 5)] {
        let of_answer = |number: u8| {
            let mut node = preparation.node("n", &batch.nodes["n"]).unwrap();
            let answer = node.check_ins[0].answer.as_mut().unwrap();
            answer.content = Arc::new(AnswerContent {
                digest: AnswerDigest::from_bytes([number; 32]),
                state: NodeState::Classified,
                environment: None,
                groups: Vec::new(),
                classes: (0..classes).map(|it| format!("class::{it}")).collect(),
                body: Vec::new(),
            });
            node.name = format!("n{number}");
            node
        };
        let nodes: Vec<PreparedNode> = (0..5).map(of_answer).collect();
        for _ in 0..2 {
            database.save_large_answers(&nodes).unwrap();
            assert_eq!(count(), expected);
        }
        if expected > 0 {
            database.write(&nodes, &preparation, &LIMITS).unwrap();
            assert_eq!(count(), expected, "they are found");
        }
    }
}
