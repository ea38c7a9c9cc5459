//! Commits that webhooks announce.

use std::time::Duration;

use super::commits;
use super::world::{World, id, name};
use crate::reconcile::policy::Policy;
use crate::reconcile::status::ConditionKind::{Reconciling, RemoteBehind};

const INTERVAL: Duration = Duration::from_secs(30);

/// Returns a daemon whose live commit is `b`.
fn world() -> World {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    world.build();
    world
}

impl World {
    /// A minute goes by: what was announced before is given up.
    fn give_up(&mut self) -> Option<char> {
        self.pass(Duration::from_secs(61));
        let now = self.now();
        let (wait, gone) = self.state.next_fetch(INTERVAL, 0.5, now);
        assert_eq!(wait, INTERVAL);
        gone.map(name)
    }
}

#[test]
fn announced_commits_are_fetched_often_and_then_given_up() {
    let mut world = world();
    world.announce('c');
    world.announce('b');
    assert_eq!(world.state.expected.len(), 1, "the head is not expected");
    let now = world.now();
    assert_eq!(world.state.next_fetch(INTERVAL, 0.5, now), (Duration::from_millis(200), None));
    assert_eq!(world.give_up(), Some('c'));
    assert_eq!(world.conditions(), [RemoteBehind]);
    world.fetch('b');
    assert_eq!(world.conditions(), [RemoteBehind]);
    world.fetch('d');
    assert_eq!(world.conditions(), [Reconciling]);
}

/// A delivery comes late, or again, and a force-push took its commit off the branch meanwhile.
#[test]
fn a_former_head_that_is_announced_again_is_not_missed() {
    let mut world = world();
    world.fetch('x');
    world.build();
    world.fetch('x');
    world.announce('b');
    let now = world.now();
    let (wait, _) = world.state.next_fetch(INTERVAL, 0.5, now);
    assert_eq!(wait, Duration::from_millis(200), "the branch may be back at it");
    assert_eq!(world.give_up(), None);
    assert!(!world.conditions().contains(&RemoteBehind));
}

#[test]
fn a_commit_that_was_replaced_before_a_fetch_is_not_missed() {
    let mut world = world();
    world.announce('c');
    world.announce('x');
    world.fetch('x');
    world.build();
    assert_eq!(world.state.expected.len(), 1, "the remote may still show it");
    assert_eq!(world.give_up(), None);
    assert!(!world.conditions().contains(&RemoteBehind));
}

/// The fetch for the first of two deliveries found the commit of the second.
#[test]
fn a_commit_whose_replacement_is_announced_late_is_not_missed() {
    let mut world = world();
    world.announce('c');
    world.fetch('x');
    world.build();
    world.announce('x');
    assert_eq!(world.give_up(), None);
    assert!(!world.conditions().contains(&RemoteBehind));
}

#[test]
fn a_commit_is_not_missed_any_more_when_the_branch_moves() {
    for shown in ['x', 'd'] {
        let mut world = world();
        world.announce('B');
        assert_eq!(world.give_up(), Some('B'));
        assert_eq!(world.conditions(), [RemoteBehind]);
        world.fetch(shown);
        world.build();
        assert!(!world.conditions().contains(&RemoteBehind), "{shown}");
    }
    let mut world = world();
    world.announce('B');
    world.give_up();
    world.push('c').unwrap();
    assert_eq!(world.conditions(), [], "a write moves it");
}

/// A commit that is announced after a visible one is missed all the same.
#[test]
fn a_newer_commit_is_missed() {
    let mut world = world();
    world.announce('c');
    world.announce('d');
    world.fetch('c');
    world.build();
    assert_eq!(world.give_up(), Some('d'));
    assert_eq!(world.state.next_fetch(INTERVAL, 0.5, world.now()).1, None);
    assert_eq!(id('c'), world.state.head().unwrap());
    assert_eq!(world.conditions(), [RemoteBehind]);
}
