//! Requests that say a part of a node: what they do not say stays as it is known when they are written.

use serde_json::Value;

use super::*;
use crate::model::{LEFT_OUT, is_left_out};
use crate::store::{NotedFacts, SaidPart};

with_either_database! {
    what_a_request_does_not_say_of_a_node_stays
    a_part_is_known_beside_requests_without_facts
    a_bare_request_leaves_what_is_known
    what_was_forgotten_does_not_come_back_with_a_part
}

/// A store, and the time of the next check-in.
struct PartStore {
    store: CheckIns,
    seconds: i64,
}

/// The node with a fact and an entry of trusted data; what such a request was answered by may be older than what is
/// known when it comes.
fn node(fact: Option<i64>, trusted: i64) -> Node {
    let mut node = Node::named("n");
    node.fact.extend(fact.map(|it| ("n".to_owned(), Value::from(it))));
    node.trusted.insert("t".to_owned(), trusted.into());
    node
}

impl PartStore {
    fn new(database: TestedDatabase) -> Self {
        Self { store: opened_at(&database.fresh(), LIMITS), seconds: 0 }
    }

    fn note_by(&mut self, facts: NotedFacts, said: SaidPart, node: &Node) {
        self.seconds += 1;
        let time = Timestamp::from_second(self.seconds).unwrap();
        let check_in = CheckIn { time, transaction_uuid: None, commit: None, node: node.clone() };
        self.store.note(Noted { facts, said, ..Noted::from(&check_in) });
    }

    fn note(&mut self, said: SaidPart, node: &Node) {
        self.note_by(NotedFacts::OfNode, said, node);
    }

    fn write(&self) {
        self.store.0.writer.take_turn().unwrap();
    }

    /// Returns the fact and the trusted data that are known.
    fn known(&self) -> (Option<i64>, Option<i64>) {
        let known = self.store.get("n").unwrap().check_in.unwrap().node;
        let number = |it: Option<&Value>| it.and_then(Value::as_i64);
        (number(known.fact.get("n")), number(known.trusted.get("t")))
    }
}

fn what_a_request_does_not_say_of_a_node_stays(database: TestedDatabase) {
    let mut parts = PartStore::new(database);
    for is_written in [false, true] {
        for (said, sent, expected) in [
            (SaidPart::Both, node(Some(1), 1), (1, 1)),
            (SaidPart::Trusted, node(Some(0), 2), (1, 2)),
            (SaidPart::Trusted, node(Some(0), 3), (1, 3)),
            (SaidPart::Facts, node(Some(2), 0), (2, 3)),
            (SaidPart::Facts, node(Some(3), 0), (3, 3)),
            (SaidPart::Trusted, node(None, 4), (3, 4)),
            (SaidPart::Both, node(Some(4), 5), (4, 5)),
        ] {
            parts.note(said, &sent);
            if is_written {
                parts.write();
            }
            let expected = (Some(expected.0), Some(expected.1));
            assert_eq!(parts.known(), expected, "{is_written}: {said:?}");
        }
        parts.write();
        assert_eq!(parts.known(), (Some(4), Some(5)), "{is_written}");
        // While others are written, and could not be written.
        parts.note(SaidPart::Facts, &node(Some(5), 0));
        let batch = parts.store.0.pending.queue().take(1, usize::MAX);
        parts.note(SaidPart::Trusted, &node(Some(0), 6));
        assert_eq!(parts.known(), (Some(5), Some(6)), "{is_written}");
        parts.store.0.pending.queue().put_back(batch);
        assert_eq!(parts.known(), (Some(5), Some(6)), "{is_written}");
        parts.write();
        assert_eq!(parts.known(), (Some(5), Some(6)), "{is_written}");
    }
}

fn a_part_is_known_beside_requests_without_facts(database: TestedDatabase) {
    let mut parts = PartStore::new(database);
    parts.note(SaidPart::Both, &node(None, 1));
    parts.note(SaidPart::Facts, &node(Some(2), 0));
    assert_eq!(parts.known(), (Some(2), Some(1)));
    parts.note(SaidPart::Both, &node(None, 3));
    assert_eq!(parts.known(), (Some(2), Some(1)), "it says nothing of what is known");
    parts.note_by(NotedFacts::Elsewhere, SaidPart::Trusted, &node(None, 4));
    assert_eq!(parts.known(), (Some(2), Some(4)));
    parts.write();
    assert_eq!(parts.known(), (Some(2), Some(4)));
    parts.note_by(NotedFacts::Elsewhere, SaidPart::Trusted, &node(None, 5));
    parts.write();
    assert_eq!(parts.known(), (Some(2), Some(5)));
}

fn a_bare_request_leaves_what_is_known(database: TestedDatabase) {
    let mut parts = PartStore::new(database);
    // Those that wait together, and those that are written one after the other.
    for (said, sent) in [
        (SaidPart::Both, node(None, 1)),
        (SaidPart::Both, Node::named("n")),
        (SaidPart::Facts, node(Some(1), 0)),
        (SaidPart::Facts, Node::named("n")),
    ] {
        parts.note(said, &sent);
    }
    assert_eq!(parts.known(), (Some(1), Some(1)));
    parts.write();
    assert_eq!(parts.known(), (Some(1), Some(1)));
    assert!(parts.store.forget_node("n").unwrap());
    for (said, sent, expected) in [
        (SaidPart::Both, node(None, 1), (None, Some(1))),
        (SaidPart::Both, Node::named("n"), (None, Some(1))),
        (SaidPart::Both, node(None, 2), (None, Some(2))),
        (SaidPart::Facts, Node::named("n"), (None, Some(2))),
        (SaidPart::Facts, node(Some(1), 0), (Some(1), Some(2))),
        (SaidPart::Facts, Node::named("n"), (Some(1), Some(2))),
        (SaidPart::Both, Node::named("n"), (Some(1), Some(2))),
        (SaidPart::Both, node(None, 3), (Some(1), Some(2))),
    ] {
        parts.note(said, &sent);
        assert_eq!(parts.known(), expected, "{said:?} {sent:?} waits");
        parts.write();
        assert_eq!(parts.known(), expected, "{said:?} {sent:?} is written");
    }
}

fn what_was_forgotten_does_not_come_back_with_a_part(database: TestedDatabase) {
    let mut parts = PartStore::new(database);
    parts.note(SaidPart::Both, &node(Some(1), 1));
    parts.write();
    assert!(parts.store.forget_node("n").unwrap());
    parts.note(SaidPart::Trusted, &node(Some(1), 2));
    assert_eq!(parts.known(), (None, Some(2)));
    parts.write();
    assert_eq!(parts.known(), (None, Some(2)));
    parts.note(SaidPart::Facts, &node(Some(3), 0));
    assert_eq!(parts.known(), (Some(3), Some(2)));
    parts.write();
    assert_eq!(parts.known(), (Some(3), Some(2)));
}

/// Else it would look as if the node had none of it.
#[test]
fn a_part_that_cannot_be_read_is_left_out() {
    assert!(is_left_out(&serde_json::from_str(LEFT_OUT).unwrap()));
    let sent = CheckIn { node: node(Some(1), 2), ..check_in("n", 0) };
    let text = |said, known| {
        let row = Row::of(&Noted { said, ..Noted::from(&sent) }).unwrap().completed(said, known);
        let (fact, trusted) = row.texts();
        (fact.to_owned(), trusted.to_owned())
    };
    let [fact, trusted] = ["{\"n\":1}", "{\"t\":2}"].map(str::to_owned);
    let (empty, left_out) = ("{}".to_owned(), LEFT_OUT.to_owned());
    for (known, expected) in [
        (None, &empty),
        (Some(&b"{}"[..]), &empty),
        (Some(b""), &left_out),
        (Some(b"{\"f"), &left_out),
    ] {
        assert_eq!(text(SaidPart::Facts, known), (fact.clone(), expected.clone()), "{known:?}");
        assert_eq!(
            text(SaidPart::Trusted, known),
            (expected.clone(), trusted.clone()),
            "{known:?}"
        );
    }
}
