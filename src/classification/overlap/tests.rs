use std::sync::Arc;

use super::*;
use crate::hierarchy::root_group;
use crate::model::{Group, GroupId};
use crate::rule::read_console;

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
        }
    }

    /// Returns the pairs with what they set differently, and checks each witness.
    fn found(self) -> Vec<String> {
        let estate = self.estate();
        let name = |index| estate.hierarchy.group(index).name.to_string();
        let found = overlaps(&estate);
        let mut pairs = Vec::new();
        for it in &found.pairs {
            let explanation = classify(&estate, &it.witness).unwrap();
            assert!(matches!(explanation.outcome, Outcome::Conflict(_)), "{:?}", it.witness);
            let settings: Vec<String> = it
                .settings
                .iter()
                .map(|it| match it {
                    Setting::Variable(name) => name.to_string(),
                    other => format!("{other:?}"),
                })
                .collect();
            let mut names = [name(it.other), name(it.group)];
            names.sort();
            pairs.push(format!("{}: {}", names.join(" "), settings.join(" ")));
        }
        pairs.sort();
        pairs
    }
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
    assert_eq!(found, ["Debian Defaults: ntp"]);
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
    assert_eq!(found, ["Canary Frozen: Environment", "Db Staging: Environment"]);
}

#[test]
fn a_search_that_ends_early_says_where() {
    let three = || {
        ["a", "b", "c"].into_iter().fold(Sketch(vec![root_group().unwrap()]), |sketch, name| {
            sketch.group(name, "All Nodes", "x = 1", &[("v", name)])
        })
    };
    let estate = three().estate();
    assert_eq!(overlaps(&estate).ended_at, None);
    let ended_at = within(&estate, Budget { asked: 2, ..BUDGET }).ended_at;
    let name = ended_at.map(|it| estate.hierarchy.group(it).name.to_string());
    assert_eq!(name.as_deref(), Some("c"));
}
