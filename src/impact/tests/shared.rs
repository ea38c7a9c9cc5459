//! What the same values and changes of many nodes take.

use super::*;

const BYTES: usize = 100_000;

/// Twenty groups with one variable each, whose text a commit changes; `n` has the number of each group in it that has
/// the node.
fn estates(bytes: usize) -> [Estate; 2] {
    let estate = |text: &str| {
        let groups = (0..20).map(|number| {
            let value = json!(format!("{text}{number}{}", "x".repeat(bytes)));
            let variables = [(format!("v{number}").parse().unwrap(), value)];
            Group {
                id: format!("00000000-0000-4000-9000-{number:012}").parse().unwrap(),
                name: format!("G{number}").parse().unwrap(),
                parent: GroupId::ROOT,
                environment: "production".parse().unwrap(),
                environment_trumps: false,
                description: None,
                rule: Some(
                    rule::read(&json!(["~", ["fact", "n"], format!(",{number},")])).unwrap().into(),
                ),
                classes: Arc::default(),
                variables: Arc::new(variables.into_iter().collect()),
                config_data: Arc::default(),
            }
        });
        Estate { hierarchy: Hierarchy::build(groups.collect()).unwrap(), ..build(&[]) }
    };
    ["old", "new"].map(estate)
}

/// The node that those groups have whose bits are set.
fn node(number: u32) -> Node {
    let groups = (0..20).filter(|it| number & (1 << it) != 0);
    let text = groups.fold(String::new(), |text, it| format!("{text},{it},"));
    let mut node = Node::named(format!("node{number}"));
    node.fact.insert("n".to_owned(), json!(text));
    node
}

#[test]
fn each_value_is_kept_once_whatever_nodes_get_it() {
    let [base, head] = estates(10_000);
    let comparison = compare(&base, &head);
    let mut survey = Survey::default();
    for number in 1..=500 {
        let node = node(number * 2_001);
        survey.extend([(node.name.clone(), comparison.node(&node))]);
    }
    // Twenty values before and after, not five thousand.
    assert!(survey.size() < 60 * 10_000, "{}", survey.size());
    let impact = Impact::gather(comparison.groups().to_vec(), Vec::new(), survey).unwrap();
    assert_eq!((impact.changed(), impact.entries.len()), (500, 500));
    let (differences, own) = impact.entries.iter().flat_map(|it| &it.changes).fold(
        (0, BTreeSet::new()),
        |(count, mut own), change| {
            own.insert(Arc::as_ptr(change));
            (count + 1, own)
        },
    );
    assert!(differences > 2_000 && own.len() == 20, "{differences} {}", own.len());
}

#[test]
fn a_survey_keeps_no_more_than_it_may() {
    let [base, head] = estates(BYTES);
    let comparison = compare(&base, &head);
    let mut survey = Survey::within(1 << 20);
    let mut compared = 0;
    while !survey.is_full() {
        compared += 1;
        let node = node(1 << (compared - 1));
        survey.extend([(node.name.clone(), comparison.node(&node))]);
    }
    assert!((5..8).contains(&compared), "{compared}");
    let size = survey.size();
    survey.extend([("more".to_owned(), comparison.node(&node(1 << 19)))]);
    assert_eq!(survey.size(), size);
    let error = Impact::gather(Vec::new(), Vec::new(), survey).unwrap_err();
    assert_eq!(error.to_string(), "what the nodes get differently takes more than 1 MiB of memory");
}

#[test]
fn what_one_node_gets_differently_is_bounded_as_well() {
    let [base, head] = estates(BYTES);
    let comparison = compare(&base, &head);
    let mut survey = Survey::within(4 << 20);
    // Five values before and after take a fourth of it, six more.
    for (number, is_full) in [(0b1_1111, false), (0b11_1111, true)] {
        let node = node(number);
        survey.extend([(node.name.clone(), comparison.node(&node))]);
        assert_eq!(survey.is_full(), is_full, "{number:b}");
    }
    let error = Impact::gather(Vec::new(), Vec::new(), survey).unwrap_err();
    assert_eq!(error.to_string(), "what the nodes get differently takes more than 1 MiB of memory");
}

#[test]
fn values_that_facts_are_put_into_are_kept_once() {
    let variables = |text: &str| {
        let values = (0..9).map(|it| (format!("v{it}").parse().unwrap(), json!(text)));
        Individual { variables: values.collect(), ..Individual::default() }
    };
    let estate = |text: &str| Estate {
        individuals: Arc::new([("n".to_owned(), variables(text))].into_iter().collect()),
        interpolation: Interpolation::On,
        ..build(&[])
    };
    let [base, head] = ["$note", "$note!"].map(estate);
    let comparison = compare(&base, &head);
    let mut node = Node::named("n");
    node.fact.insert("note".to_owned(), json!("y".repeat(BYTES)));
    assert_eq!(comparison.node(&node).change.unwrap().changes.len(), 9);
    assert!((2 * BYTES..3 * BYTES).contains(&comparison.size()), "{}", comparison.size());
}

/// A group whose only value is a variable.
fn with_variable(number: usize, parent: GroupId, value: &str) -> Group {
    let variables = [("v".parse().unwrap(), json!(value))];
    Group {
        id: format!("00000000-0000-4000-9000-{number:012}").parse().unwrap(),
        name: format!("G{number}").parse().unwrap(),
        parent,
        environment: "production".parse().unwrap(),
        environment_trumps: false,
        description: None,
        rule: Some(rule::read(&json!(["~", "name", "node"])).unwrap().into()),
        classes: Arc::default(),
        variables: Arc::new(variables.into_iter().collect()),
        config_data: Arc::default(),
    }
}

#[test]
fn nodes_with_the_same_facts_in_their_values_share_causes() {
    let estate = |groups| Estate {
        hierarchy: Hierarchy::build(groups).unwrap(),
        interpolation: Interpolation::On,
        ..build(&[])
    };
    let first = with_variable(1, GroupId::ROOT, "old");
    let base = estate(vec![first.clone()]);
    let head = estate(vec![
        with_variable(1, GroupId::ROOT, "$first"),
        with_variable(2, first.id, "$second"),
    ]);
    let comparison = compare(&base, &head);
    for number in 0..9 {
        let mut node = Node::named(format!("node{number}"));
        let fact = ["old", "else", "more"][number % 3];
        node.fact.insert("first".to_owned(), json!(fact));
        node.fact.insert("other".to_owned(), json!(number));
        let found = comparison.node(&node);
        assert_eq!(found, compare(&base, &head).node(&node), "{number}");
        let change = found.change.unwrap();
        let of_value = &change.changes.last().unwrap().causes;
        // The group below is the cause alone where the one above gives the old value.
        let expected = match fact {
            "old" => Causes::Each([ChangeRef::Group(1)].into()),
            _ => Causes::Together([ChangeRef::Group(0), ChangeRef::Group(1)].into()),
        };
        assert_eq!(*of_value, expected, "{number}");
    }
    // What the fact is does not matter where it is not the old value.
    assert_eq!(comparison.known_sorts(), 2);
}

#[test]
fn differences_with_the_same_causes_share_them() {
    let [base, head] = estates(BYTES);
    let mut changed = base.clone();
    let group = head.hierarchy.groups().find(|it| !it.variables.is_empty()).unwrap();
    let many = (0..50).map(|it| (format!("w{it}").parse().unwrap(), json!(it)));
    let many = Group { variables: Arc::new(many.collect()), ..group.clone() };
    changed.hierarchy = Hierarchy::build(vec![many]).unwrap();
    let comparison = compare(&base, &changed);
    let change = comparison.node(&node(u32::MAX)).change.unwrap();
    let all: BTreeSet<_> = change.changes.iter().map(|it| it.causes.changes().as_ptr()).collect();
    let distinct: BTreeSet<_> = change.changes.iter().map(|it| it.causes.changes()).collect();
    assert!(change.changes.len() > 50 && all.len() == distinct.len(), "{}", all.len());
}

#[test]
fn a_comparison_that_is_stopped_decides_no_causes() {
    use std::sync::atomic::{AtomicBool, Ordering};

    let [base, head] = estates(BYTES);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let comparison = compare(&base, &head).stopped_by(Arc::clone(&is_stopped));
    let causes = |number| comparison.node(&node(number)).change.unwrap().changes[0].causes.clone();
    assert!(matches!(causes(1), Causes::Each(_)));
    is_stopped.store(true, Ordering::Relaxed);
    assert_eq!(causes(2), Causes::Undecided);
}
