//! Nodes of one sort share causes: what is found out for one of them must be what is found out for each.

use super::reverting::Pair;
use super::*;

/// What a group sets instead of a number: facts that are equal for some nodes, and texts that some facts are equal to.
const TEXTS: [&str; 6] = ["$x", "1", "${y}b", "$y", "1b", "${trusted['certname']}"];

/// Replaces the numbers that groups set.
fn with_texts(estate: Estate, offset: usize, interpolation: Interpolation) -> Estate {
    let with_text = |group: &Group| {
        let number: usize =
            group.id.to_string().rsplit('-').next().unwrap().parse().unwrap_or_default();
        let classes = group.classes.iter().map(|(class, parameters)| {
            let parameters = parameters.iter().map(|(name, value)| {
                let text = TEXTS[(offset + number + name.as_str().len()) % TEXTS.len()];
                (name.clone(), if value.is_null() { Value::Null } else { json!(text) })
            });
            (class.clone(), parameters.collect())
        });
        let text = |at: usize| json!(TEXTS[(offset + number + at) % TEXTS.len()]);
        // Some set a variable, and data for Hiera, into which no facts are put.
        let variables =
            [("v".parse().unwrap(), text(4))].into_iter().filter(|_| !number.is_multiple_of(3));
        let data = [("p".parse().unwrap(), text(5))].into_iter().collect();
        let data = [("c".parse().unwrap(), data)].into_iter().filter(|_| number.is_multiple_of(4));
        Group {
            classes: Arc::new(classes.collect()),
            variables: Arc::new(variables.collect()),
            config_data: Arc::new(data.collect()),
            ..group.clone()
        }
    };
    let groups = estate.hierarchy.groups().filter(|it| it.id != GroupId::ROOT).map(with_text);
    let hierarchy = Hierarchy::build(groups.collect()).unwrap();
    Estate { hierarchy, interpolation, ..estate }
}

/// Values of a node alone, for each third node; of the last one they may differ between the states.
fn individuals(chance: &mut fastrand::Rng) -> [BTreeMap<String, Individual>; 2] {
    let mut own = BTreeMap::new();
    let individual = |chance: &mut fastrand::Rng| {
        let class = ["c", "d"][chance.usize(..2)].parse().unwrap();
        let text = TEXTS.get(chance.usize(..=TEXTS.len()));
        let value = text.map_or(Value::Null, |it| json!(it));
        let parameters = [(["p", "q"][chance.usize(..2)].parse().unwrap(), value)];
        let classes = [(class, parameters.into_iter().collect())].into_iter().collect();
        Individual { classes, ..Individual::default() }
    };
    for number in [0, 3, 6, 9] {
        own.insert(format!("n{number}"), individual(chance));
    }
    let base = own.clone();
    own.insert("n9".to_owned(), individual(chance));
    [base, own]
}

#[test]
fn nodes_of_one_sort_have_the_same_causes() {
    let mut chance = fastrand::Rng::with_seed(17);
    let (mut changed, mut sorts) = (0, 0);
    for round in 0..400 {
        let pair = Pair::random(&mut chance);
        let states = [pair.estate(&Pair::join(&pair.changed())), pair.estate(&Pair::join(&[]))];
        let both = [Interpolation::On, Interpolation::Off];
        let interpolation = match chance.u8(..4) {
            0 => both,
            1 => [both[1], both[chance.usize(..2)]],
            _ => [Interpolation::On; 2],
        };
        let [mut base, mut head] = states;
        base = with_texts(base, round, interpolation[0]);
        head = with_texts(head, round, interpolation[1]);
        [base.individuals, head.individuals] = individuals(&mut chance).map(Arc::new);
        let comparison = compare(&base, &head);
        for number in 0..10 {
            let mut node = Node::named(format!("n{number}"));
            for (fact, values) in [("a", ["1", "2"]), ("b", ["0", "1"]), ("x", ["1", "3"])] {
                node.fact.insert(fact.to_owned(), json!(values[chance.usize(..2)]));
            }
            node.fact.insert("y".to_owned(), json!(["1", "2", "n4"][chance.usize(..3)]));
            let node = node.with_certname();
            let found = comparison.node(&node);
            assert_eq!(found, compare(&base, &head).node(&node), "round {round}: {node:?}");
            changed += usize::from(found.change.is_some());
        }
        sorts += comparison.known_sorts();
    }
    assert!(sorts > 400 && changed > 3 * sorts / 2, "{changed} nodes are of {sorts} sorts");
}
