use std::sync::Arc;

use super::limits::SearchLimits;
use super::subject::Subject;
use super::*;
use crate::hierarchy::{GroupIndex, Hierarchy, root_group};
use crate::model::{Group, GroupId, Node};
use crate::rule::{Solver, read_console};

struct Sketch(Vec<Group>);

impl Sketch {
    /// Adds a group: its name, parent, rule (none if empty) and variables.
    fn group(mut self, name: &str, parent: &str, rule: &str, variables: &[(&str, &str)]) -> Self {
        let parent = self.0.iter().find(|it| it.name.as_str() == parent).unwrap().id;
        let mut group = Group { parent, ..root_group().unwrap() };
        group.name = name.parse().unwrap();
        group.id = GroupId::of_name(&group.environment, &group.name);
        group.rule = (!rule.is_empty()).then(|| read_console(rule).unwrap().into());
        let variables =
            variables.iter().map(|(name, value)| (name.parse().unwrap(), (*value).into()));
        group.variables = Arc::new(variables.collect());
        self.0.push(group);
        self
    }

    /// Removes a variable that the last group would inherit.
    fn without(mut self, variable: &str) -> Self {
        let group = self.0.last_mut().unwrap();
        let null = serde_json::Value::Null;
        group.variables = Arc::new([(variable.parse().unwrap(), null)].into_iter().collect());
        self
    }

    fn environment(mut self, environment: &str, trumps: bool) -> Self {
        let group = self.0.last_mut().unwrap();
        group.environment = environment.parse().unwrap();
        group.environment_trumps = trumps;
        self
    }

    fn estate(self) -> Estate {
        Estate {
            hierarchy: Hierarchy::build(self.0).unwrap(),
            individuals: Arc::default(),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: crate::model::Interpolation::Off,
        }
    }

    fn found(self) -> Vec<String> {
        let mut pairs: Vec<String> = self.alarms().into_iter().flatten().collect();
        pairs.sort();
        pairs
    }

    /// Returns the pairs with what they differ in and who sets it if not they do, by alarm.
    fn alarms(self) -> Vec<Vec<String>> {
        let estate = self.estate();
        shown(&estate, &overlaps(&estate, &Evidence::default(), &|_, _| false, Solver::default()))
    }
}

fn shown(estate: &Estate, found: &Overlaps<'_>) -> Vec<Vec<String>> {
    let name = |index| estate.hierarchy.group(index).name.to_string();
    let show = |alarm: &Alarm<'_>, pair: &Pair| {
        let overlap = alarm.overlap(estate, pair).unwrap();
        let settings: Vec<String> = overlap
            .settings
            .iter()
            .map(|it| match it.setting {
                Setting::Variable(name) => name.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        let first = overlap.settings[0];
        let side = |group, by| {
            if group == by { name(group) } else { format!("{}({})", name(group), name(by)) }
        };
        let mut names = [side(pair.other, first.other_by), side(pair.group, first.by)];
        names.sort();
        format!("{}: {}", names.join(" "), settings.join(" "))
    };
    let of_alarm = |alarm: &Alarm<'_>| alarm.pairs.iter().map(|it| show(alarm, it)).collect();
    found.alarms.iter().map(of_alarm).collect()
}

fn sketch() -> Sketch {
    Sketch(vec![root_group().unwrap()])
}

const ROOT: &str = "All Nodes";

#[test]
fn groups_that_can_meet_are_found_with_a_node() {
    let found = sketch()
        .group("Debian", ROOT, "os.family = Debian", &[("ntp", "a"), ("same", "s")])
        .group("Web", ROOT, "name ~ \"^web\"", &[("ntp", "b"), ("same", "s")])
        .group("Canary", "Web", "name ~ canary", &[("ntp", "c")])
        .group("RedHat", ROOT, "os.family = RedHat", &[("ntp", "d")])
        .group("Db", ROOT, "name ~ \"^db\"", &[("other", "x")])
        .found();
    assert_eq!(
        found,
        ["Canary Debian: ntp", "Canary RedHat: ntp", "Debian Web: ntp", "RedHat Web: ntp"]
    );
}

#[test]
fn what_cannot_meet_is_silent() {
    let found = sketch()
        .group("One", ROOT, "name ~ \"^web\"", &[("ntp", "a")])
        .group("Two", ROOT, "name ~ \"^db\"", &[("ntp", "b")])
        .group("Small", ROOT, "memory < 10", &[("swap", "a")])
        .group("Large", ROOT, "memory >= 10", &[("swap", "b")])
        .group("Apart", ROOT, "role = a and not (memory < 10)", &[("swap", "c")])
        .group("Never", ROOT, "role = b and memory < 10 and memory > 10", &[("swap", "d")])
        .found();
    assert_eq!(found, ["Apart Large: swap"]);
}

#[test]
fn a_group_below_that_hides_the_conflict_is_seen_through() {
    // Every node of the one is in its child, which agrees with the other.
    let silent = sketch()
        .group("One", ROOT, "role = x", &[("ntp", "a")])
        .group("Child", "One", "role = x", &[("ntp", "b")])
        .group("Two", ROOT, "name ~ \"^db\"", &[("ntp", "b")])
        .found();
    assert_eq!(silent, Vec::<String>::new());
    let some = sketch()
        .group("One", ROOT, "role = x", &[("ntp", "a")])
        .group("Child", "One", "name ~ 1", &[("ntp", "b")])
        .group("Two", ROOT, "name ~ \"^db\"", &[("ntp", "b")])
        .found();
    assert_eq!(some, ["One Two: ntp"]);
}

#[test]
fn a_group_without_a_rule_conflicts_through_those_below() {
    let found = sketch()
        .group("Defaults", ROOT, "", &[("ntp", "a")])
        .group("Web", "Defaults", "name ~ \"^web\"", &[])
        .group("Debian", ROOT, "os.family = Debian", &[("ntp", "b")])
        .found();
    assert_eq!(found, ["Debian Web(Defaults): ntp"]);
}

#[test]
fn environments_conflict_unless_one_trumps() {
    let found = sketch()
        .group("Web", ROOT, "name ~ \"^web\"", &[])
        .group("Db", ROOT, "name ~ \"^db\"", &[])
        .group("Staging", ROOT, "site = stg", &[])
        .environment("staging", false)
        .group("Canary", ROOT, "name ~ canary", &[])
        .environment("canary", true)
        .group("Frozen", ROOT, "frozen = true", &[])
        .environment("frozen", true)
        .found();
    assert_eq!(
        found,
        ["Canary Frozen: Environment", "Db Staging: Environment", "Staging Web: Environment"]
    );
}

#[test]
fn a_value_that_is_inherited_conflicts_with_one_that_overrides_it() {
    let found = sketch()
        .group("Base", ROOT, "os.family = Debian", &[("ntp", "a"), ("dns", "x")])
        .group("Canary", "Base", "name ~ canary", &[("ntp", "b")])
        .group("Sibling", "Base", "role = web", &[])
        .group("Removed", "Base", "role = db", &[])
        .without("ntp")
        .group("Never", "Base", "name ~ \"^[0-9]+$\"", &[])
        .found();
    assert_eq!(found, ["Canary Sibling(Base): ntp"]);
    // So do values of the root group.
    let mut of_root = sketch();
    of_root.0[0].variables = Arc::new([("ntp".parse().unwrap(), "a".into())].into_iter().collect());
    let found = of_root
        .group("Canary", ROOT, "name ~ canary", &[("ntp", "b")])
        .group("Web", ROOT, "role = web", &[])
        .group("Same", ROOT, "role = db and name ~ canary", &[("ntp", "b")])
        .group("Db", ROOT, "role = db and not (name ~ canary)", &[])
        .found();
    assert_eq!(found, ["Canary Web(All Nodes): ntp"]);
}

#[test]
fn one_cause_is_one_alarm() {
    let mut of_root = sketch();
    of_root.0[0].variables = Arc::new([("ntp".parse().unwrap(), "a".into())].into_iter().collect());
    let alarms = of_root
        .group("A", ROOT, "a = 1", &[("ntp", "b")])
        .group("B", ROOT, "b = 1", &[])
        .group("C", ROOT, "c = 1", &[])
        .group("D", ROOT, "d = 1", &[("x", "1"), ("y", "1")])
        .group("E", ROOT, "e = 1", &[("x", "2"), ("y", "2")])
        .alarms();
    let of_a = [
        "A B(All Nodes): ntp",
        "A C(All Nodes): ntp",
        "A D(All Nodes): ntp",
        "A E(All Nodes): ntp",
    ];
    assert_eq!(alarms, [of_a.to_vec(), vec!["D E: x y"]]);
}

#[test]
fn environments_of_two_groups_do_not_matter_where_others_always_trump() {
    let both = |rule: &str| {
        sketch()
            .group("Web", ROOT, "name ~ \"^web\"", &[])
            .group("Staging", ROOT, "site = stg", &[])
            .environment("staging", false)
            .group("Pinned", ROOT, rule, &[])
            .environment("pinned", true)
    };
    assert_eq!(both("name ~ \"^web\"").found(), Vec::<String>::new());
    assert_eq!(both("site = stg").found(), Vec::<String>::new());
    assert_eq!(both("name ~ \"^web1\"").found(), ["Staging Web: Environment"]);
    // One that a group below takes the place of does not trump.
    let below = both("site = stg").group("Below", "Pinned", "name ~ \"^web1\"", &[]);
    assert_eq!(below.found(), ["Below Staging: Environment", "Staging Web: Environment"]);
}

#[test]
fn what_known_nodes_show_comes_first() {
    let estate = sketch()
        .group("A", ROOT, "a = 1", &[("x", "1")])
        .group("B", ROOT, "b = 1", &[("x", "2")])
        .group("C", ROOT, "c = 1", &[("y", "1")])
        .group("D", ROOT, "d = 1", &[("y", "2")])
        .group("E", ROOT, "e = 1", &[("z", "1")])
        .group("F", ROOT, "f = 1", &[("z", "2")])
        .estate();
    let mut evidence = Evidence::default();
    let facts = |pairs: &[&str]| {
        let mut node = Node::named(pairs.concat());
        node.fact = pairs.iter().map(|key| ((*key).to_owned(), "1".into())).collect();
        node
    };
    for pairs in [&["c"][..], &["d"], &["e", "f"]] {
        evidence.add(&estate, &facts(pairs));
    }
    let found = overlaps(&estate, &evidence, &|_, _| false, Solver::default());
    assert_eq!(shown(&estate, &found), [["E F: z"], ["C D: y"], ["A B: x"]]);
    let ranks: Vec<Rank> = found.alarms.iter().map(|it| it.pairs[0].rank).collect();
    assert_eq!(ranks, [Rank::Real, Rank::Likely, Rank::Possible]);
    let real = &found.alarms[0];
    let overlap = real.overlap(&estate, &real.pairs[0]).unwrap();
    assert_eq!(overlap.witness.name, "ef");
    // One that is acknowledged where it is found is silent.
    let of_b_and_f = |group: GroupIndex, setting: Setting<'_>| {
        let name = estate.hierarchy.group(group).name.to_string();
        assert!(matches!(setting, Setting::Variable(_) | Setting::Environment));
        ["B", "F"].contains(&name.as_str())
    };
    let found = overlaps(&estate, &evidence, &of_b_and_f, Solver::default());
    assert_eq!(shown(&estate, &found), [["C D: y"]]);
}

#[test]
fn the_last_two_of_many_names_are_found() {
    let groups = (0..400).fold(sketch(), |sketch, number| {
        let rule = format!("name ~ \"^web{number:03}-\"");
        sketch.group(&format!("G{number:03}"), ROOT, &rule, &[("v", &number.to_string())])
    });
    let groups = groups.group("Last", ROOT, "name ~ \"^web399\"", &[("v", "x")]);
    assert_eq!(groups.found(), ["G399 Last: v"]);
}

#[test]
fn a_group_of_which_every_node_is_in_one_below_is_searched_once() {
    const OTHERS: u64 = 200;
    let steps = |child_rule: &str| {
        let hidden = sketch()
            .group("Hidden", ROOT, "role = x or role = y", &[("v", "x")])
            .group("Child", "Hidden", child_rule, &[])
            .without("v");
        let estate = (0..OTHERS)
            .fold(hidden, |sketch, number| {
                let rule = format!("site = s{number}");
                sketch.group(&format!("G{number}"), ROOT, &rule, &[("v", "y")])
            })
            .estate();
        let found = overlaps(&estate, &Evidence::default(), &|_, _| false, Solver::default());
        (found.alarms.len(), found.steps)
    };
    let (alarms, hidden) = steps("role = x or role = y");
    assert_eq!(alarms, 0);
    let (alarms, seen) = steps("role = x");
    assert_eq!(alarms, 1);
    assert!(hidden < 6 * OTHERS, "{hidden}");
    assert!(seen > hidden + 7 * OTHERS, "{seen} {hidden}");
}

#[test]
fn a_search_that_ends_early_says_where() {
    let three = || {
        ["a", "b", "c"]
            .into_iter()
            .fold(sketch(), |sketch, name| sketch.group(name, ROOT, "x = 1", &[("v", name)]))
    };
    let estate = three().estate();
    let within = |limits: SearchLimits| {
        search::search(&estate, &Evidence::default(), &|_, _| false, Solver::default(), limits)
    };
    assert_eq!(within(LIMITS).ended_at, None);
    let found = within(SearchLimits { pairs: 2, ..LIMITS });
    let name = found.ended_at.map(|it| estate.hierarchy.group(it).name.to_string());
    assert_eq!(name.as_deref(), Some("c"));
    assert!(within(SearchLimits { steps: 20, ..LIMITS }).ended_at.is_some());
    let cut = within(SearchLimits { pairs_of_cause: 2, ..LIMITS });
    assert_eq!((cut.ended_at, cut.alarms.len()), (None, 1));
    assert_eq!((cut.alarms[0].pairs.len(), cut.alarms[0].is_cut), (2, true));
}

#[test]
fn groups_that_set_the_same_take_few_steps() {
    const GROUPS: u64 = 2_000;
    let alike = |sketch: Sketch| {
        (0..GROUPS).fold(sketch, |sketch, number| {
            let rule = format!("name = n{number}");
            sketch.group(&format!("G{number}"), ROOT, &rule, &[("v", "same")])
        })
    };
    let other = |sketch: Sketch, name: &str| {
        sketch.group(name, ROOT, "name ~ n", &[("v", name)]).environment(name, false)
    };
    for (estate, pairs) in [
        (alike(sketch()), 0),
        // Each of both differs from all others in the variable and in the environment.
        (other(alike(sketch()), "last"), 1),
        (other(alike(other(sketch(), "first")), "last"), 2),
    ] {
        let estate = estate.estate();
        let found = overlaps(&estate, &Evidence::default(), &|_, _| false, Solver::default());
        assert_eq!(found.ended_at, None);
        assert_eq!(found.alarms.is_empty(), pairs == 0);
        // Each two groups would be half of the square, twice.
        assert!(found.steps <= GROUPS * (1 + pairs * 100), "{pairs}: {}", found.steps);
    }
}

#[test]
fn a_conflict_of_the_last_of_many_groups_can_be_acknowledged() {
    let many = (0..16_400).fold(sketch(), |sketch, number| {
        sketch.group(&format!("G{number:05}"), ROOT, &format!("name = n{number}"), &[])
    });
    let estate = many
        .group("Y", ROOT, "role = x", &[("v", "y")])
        .group("Z", ROOT, "role = x", &[("v", "z")])
        .estate();
    for is_acknowledged in [false, true] {
        let acknowledged = |_, _: Setting<'_>| is_acknowledged;
        let found = overlaps(&estate, &Evidence::default(), &acknowledged, Solver::default());
        assert_eq!((found.ended_at, found.alarms.is_empty()), (None, is_acknowledged));
    }
}

#[test]
fn a_chain_of_groups_that_override_each_other_takes_few_steps() {
    const GROUPS: u64 = 1_000;
    let steps = |rule: fn(u64) -> String, is_acknowledged: bool| {
        let mut parent = ROOT.to_owned();
        let chain = (0..GROUPS).fold(sketch(), |sketch, number| {
            let name = format!("G{number}");
            let value = number.to_string();
            let sketch = sketch.group(&name, &parent, &rule(number), &[("v", &value)]);
            parent = name;
            sketch
        });
        let estate = chain.estate();
        let acknowledged = |_, _: Setting<'_>| is_acknowledged;
        let found = overlaps(&estate, &Evidence::default(), &acknowledged, Solver::default());
        assert_eq!(found.ended_at, None);
        found.steps
    };
    // Each two groups would be half of the square.
    for is_acknowledged in [false, true] {
        let all = steps(|_| String::new(), is_acknowledged);
        let some = steps(|number| format!("f{number} = 1"), is_acknowledged);
        assert!(all.max(some) < GROUPS * GROUPS / 5, "{is_acknowledged}: {all} {some}");
    }
}

/// Of 150 groups each is in conflict with each other: every node of a fleet was kept 10,000 times.
#[test]
fn of_conflicts_without_end_some_are_noted_and_each_node_once() {
    let estate = (0..150)
        .fold(sketch(), |it, group| {
            it.group(
                &format!("G{group}"),
                ROOT,
                "name ~ n",
                &[("v", &group.to_string()), ("w", "same")],
            )
        })
        .estate();
    let mut evidence = Evidence::default();
    evidence.add(&estate, &Node::named("n1"));
    assert_eq!(ranks(&estate, &evidence), [10_000, 150 * 149 / 2 - 10_000]);
    let [one, other] = [1, 2].map(|at| estate.hierarchy.indexes().nth(at).unwrap());
    let node = evidence.node(other, one, Subject::Values).map(Arc::clone).unwrap();
    assert_eq!(Arc::strong_count(&node), 10_001);
    evidence.add(&estate, &Node::named("n2"));
    assert_eq!(Arc::strong_count(&node), 10_001, "there is no room for what another shows");
}

/// Of a million pairs that agree none was found that differs.
#[test]
fn the_one_group_of_many_that_differs_is_noted_with_each_other() {
    let groups = |number: usize| {
        let value = if number == 1_499 { "b" } else { "a" };
        (format!("G{number}"), value)
    };
    let of_values = (0..1_500).map(groups).fold(sketch(), |it, (name, value)| {
        it.group(&name, ROOT, "name ~ n", &[("v", value), (&format!("own_{name}"), value)])
    });
    let of_environments = (0..1_500).map(groups).fold(sketch(), |it, (name, value)| {
        it.group(&name, ROOT, "name ~ n", &[]).environment(value, false)
    });
    for (sketch, subject) in [(of_values, Subject::Values), (of_environments, Subject::Environment)]
    {
        let estate = sketch.estate();
        let mut evidence = Evidence::default();
        evidence.add(&estate, &Node::named("n"));
        let groups = estate.hierarchy.indexes().skip(1);
        let (other, alike): (Vec<GroupIndex>, Vec<GroupIndex>) =
            groups.partition(|it| estate.hierarchy.group(*it).name.as_str() == "G1499");
        let is_noted = |one: GroupIndex, other| evidence.node(one, other, subject).is_some();
        assert!(alike.iter().all(|it| is_noted(*it, other[0])), "{subject:?}");
        assert!(!is_noted(alike[0], alike[1]));
    }
}

/// The pairs that differ in each of many values were found again for each, until there were no steps left.
#[test]
fn conflicts_in_many_values_leave_room_for_one_in_another() {
    let estate = (0..100).fold(sketch(), |it, group| {
        let values: Vec<(String, String)> =
            (0..25).map(|value| (format!("v{value:02}"), group.to_string())).collect();
        let values: Vec<(&str, &str)> = values.iter().map(|(name, it)| (&**name, &**it)).collect();
        it.group(&format!("G{group}"), ROOT, "name ~ n", &values)
    });
    let estate = ["a", "b"]
        .into_iter()
        .fold(estate, |it, value| it.group(value, ROOT, "name ~ n", &[("z", value)]))
        .estate();
    let mut evidence = Evidence::default();
    evidence.add(&estate, &Node::named("n1"));
    assert_eq!(ranks(&estate, &evidence)[0], 100 * 99 / 2 + 1);
    // Another node in the same groups shows no more.
    let node = Node::named("n2");
    let more = evidence.shown_by(&crate::classification::classify(&estate, &node).unwrap());
    assert_eq!(ranks(&estate, &more)[0], 0);
}

/// Counts the pairs of groups that a known node has, and of those that known nodes are in.
fn ranks(estate: &Estate, evidence: &Evidence) -> [usize; 2] {
    let groups: Vec<GroupIndex> = estate.hierarchy.indexes().skip(1).collect();
    let pairs = groups.iter().enumerate().flat_map(|(at, one)| {
        let behind = groups.iter().skip(at + 1);
        behind.map(move |other| evidence.rank(*one, *other, Subject::Values))
    });
    let ranks: Vec<Rank> = pairs.collect();
    [Rank::Real, Rank::Likely].map(|rank| ranks.iter().filter(|it| **it == rank).count())
}
