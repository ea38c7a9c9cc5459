//! Why answers changed.

use serde_json::Value;

use super::history::{ask, node, rule, snapshot, whole_history, written};
use super::*;
use crate::answer::ChangeCause;
use crate::masking::{CommitForm, StoredExtent, StoredForm};
use crate::snapshot::Snapshot;
use crate::store::{Answered, Certname, FactChange, Noted, NotedFacts, StoredChange};

with_either_database! {
    what_was_submitted_is_not_what_the_last_answer_was_for
    facts_that_are_not_stored_are_not_known
    facts_that_rules_mention_are_all_that_a_cause_depends_on
    what_only_a_rule_of_before_mentions_is_compared
    a_large_fact_does_not_hide_a_small_one
}

fn facts_of(family: &str) -> Value {
    json!({"os": {"family": family}})
}

fn said(store: &CheckIns) -> Vec<(i64, ChangeCause, Vec<String>)> {
    let paths = |it: &StoredChange| it.facts.iter().map(|it| it.path.clone()).collect();
    let changes = whole_history(store, "n");
    changes.iter().map(|it| (it.time.as_second(), it.cause, paths(it))).collect()
}

/// Notes a request whose answer is not known.
fn submit(store: &CheckIns, second: i64, commit: Option<&Snapshot>, facts: &Value) {
    store.note(&CheckIn {
        time: Timestamp::from_second(second).unwrap(),
        transaction_uuid: None,
        commit: commit.map(|it| it.commit),
        node: node("n", facts),
    });
}

/// Notes that a node was answered by facts of which only some are stored, or none that was noted.
fn answer(
    store: &CheckIns,
    second: i64,
    snapshot: &Arc<Snapshot>,
    facts: &Value,
    stored: Option<StoredExtent>,
) {
    let groups = snapshot.index().matching(&snapshot.estate.hierarchy, &node("n", facts));
    let answered = Answered {
        snapshot: Arc::clone(snapshot),
        groups: groups.map(Vec::into_boxed_slice),
        certname: Certname::AsSent,
    };
    let (time, commit) = (Timestamp::from_second(second).unwrap(), Some(snapshot.commit));
    let Some(stored) = stored else {
        store.note(Noted {
            time,
            transaction_uuid: None,
            commit,
            answered: Some(answered),
            node: &Node::named("n"),
            facts: NotedFacts::Elsewhere,
            said: SaidPart::Both,
        });
        return;
    };
    let form = StoredForm { facts: stored, ..StoredForm::default() };
    store.note_received(Received {
        time,
        transaction_uuid: None,
        commit,
        answered: Some(answered),
        name: "n",
        fact: &facts.to_string(),
        trusted: "{}",
        said: SaidPart::Both,
        form: CommitForm::new(&form, || Arc::clone(snapshot.mentioned())),
    });
}

fn what_was_submitted_is_not_what_the_last_answer_was_for(database: TestedDatabase) {
    let (debian, suse) = (rule("Debian"), rule("Suse"));
    let one = snapshot(1, &[debian.clone(), suse.clone()]);
    let two = snapshot(2, &[debian, suse, rule("RedHat")]);
    for (preview, next) in [(None, &two), (None, &one), (Some(&*one), &two), (Some(&*one), &one)] {
        for waits in [false, true] {
            let store = opened_at(&database.fresh(), LIMITS);
            ask(&store, 10, &one, &node("n", &facts_of("Debian")));
            if !waits {
                written(&store);
            }
            submit(&store, 20, preview, &facts_of("Suse"));
            if !waits {
                written(&store);
                let mut found = Vec::new();
                store.scan(one.mentioned(), ScanExtent::All, |nodes| found.extend(nodes)).unwrap();
                let scanned = found[0].node(one.mentioned()).unwrap().unwrap();
                assert_eq!(Value::from(scanned.fact), facts_of("Suse"), "the newest facts");
            }
            ask(&store, 30, next, &node("n", &facts_of("Suse")));
            let expected = (30, ChangeCause::Facts, vec!["os.family".to_owned()]);
            assert_eq!(said(&store)[1], expected, "waits: {waits}");
        }
    }
}

fn facts_that_are_not_stored_are_not_known(database: TestedDatabase) {
    let rules = [rule("Debian"), rule("Suse"), rule("RedHat")];
    let [one, two, three] = [1, 2, 3].map(|it| snapshot(it, &rules));
    for unknown in [None, Some(StoredExtent::None)] {
        let store = opened_at(&database.fresh(), LIMITS);
        for (second, snapshot, family, stored) in [
            (10, &one, "Debian", Some(StoredExtent::All)),
            (20, &one, "Suse", unknown),
            (30, &two, "RedHat", unknown),
            (40, &three, "Suse", Some(StoredExtent::All)),
        ] {
            answer(&store, second, snapshot, &facts_of(family), stored);
            written(&store);
        }
        let causes = said(&store).into_iter().map(|(_, cause, facts)| (cause, facts));
        let [first, facts, both] = [ChangeCause::First, ChangeCause::Facts, ChangeCause::Both];
        let expected = [first, facts, both, facts].map(|it| (it, Vec::new()));
        assert_eq!(causes.collect::<Vec<_>>(), expected, "{unknown:?}");
    }
}

fn facts_that_rules_mention_are_all_that_a_cause_depends_on(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let facts = json!({"os": {"family": "Debian", "name": "x"}, "site": "y"});
    let or_site = json!(["or", rule("Debian"), ["=", ["fact", "site"], "x"]]);
    let one = snapshot(1, &[rule("Debian"), rule("Suse")]);
    let two = snapshot(2, &[rule("Suse"), rule("Debian")]);
    let three = snapshot(3, &[rule("Suse"), rule("RedHat"), or_site]);
    for (second, snapshot, facts) in [
        (10, &one, &facts),
        (20, &two, &facts),
        (30, &three, &facts),
        (40, &two, &facts_of("Suse")),
        (50, &two, &facts_of("Debian")),
    ] {
        answer(&store, second, snapshot, facts, Some(StoredExtent::Mentioned));
        written(&store);
    }
    let causes: Vec<ChangeCause> = said(&store).iter().map(|it| it.1).collect();
    // At 40, `site` is not stored, so that what the commit before gave is not known.
    let [first, commit] = [ChangeCause::First, ChangeCause::Commit];
    assert_eq!(causes, [first, commit, commit, ChangeCause::Both, ChangeCause::Facts]);
}

fn what_only_a_rule_of_before_mentions_is_compared(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let at_x = json!(["=", ["fact", "site"], "x"]);
    let one = snapshot(1, &[rule("Debian"), at_x]);
    let two = snapshot(2, &[rule("Debian")]);
    let facts = |site: &str| json!({"os": {"family": "Debian"}, "site": site});
    ask(&store, 10, &one, &node("n", &facts("x")));
    written(&store);
    ask(&store, 20, &two, &node("n", &facts("y")));
    written(&store);
    let change = whole_history(&store, "n").pop().unwrap();
    let site =
        FactChange { path: "site".to_owned(), before: Some("x".into()), after: Some("y".into()) };
    assert_eq!((change.cause, &*change.facts), (ChangeCause::Both, [site].as_slice()));
}

fn a_large_fact_does_not_hide_a_small_one(database: TestedDatabase) {
    let store = opened_at(&database.fresh(), LIMITS);
    let is = |fact: &str| json!(["=", ["fact", fact], "x"]);
    let rules = snapshot(1, &[is("aaa"), is("role"), is("zone")]);
    for (second, value) in [(10, "y"), (20, "x")] {
        let facts = json!({"aaa": value.repeat(5000), "role": value, "zone": value});
        ask(&store, second, &rules, &node("n", &facts));
    }
    let expected = ["role", "zone"].map(str::to_owned);
    assert_eq!(said(&store)[1].2, expected);
}
