//! Reading history for decisions: without locks, and once.

use std::cell::Cell;

use parking_lot::Mutex;

use super::commits;
use super::world::{World, id, name};
use crate::git::ReadError;
use crate::reconcile::ancestry::decide_by_history;
use crate::reconcile::clock::Now;
use crate::reconcile::policy::{OnRewrite, Policy};
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::state::{
    AncestryAnswer, CommitPair, FetchedHead, Following, KnownAncestry, NotAccepted, Withheld,
};
use crate::reconcile::trigger::Trigger;

/// Returns a daemon whose live commit is `c`, and whose remote is at another line with `x`.
fn rewritten(on_rewrite: OnRewrite) -> World {
    let mut world = World::new(commits(), Policy { on_rewrite, ..Policy::default() });
    world.fetch('c');
    world.build();
    world
}

fn following<'c>(state: &SharedState, ancestry: &'c KnownAncestry, head: char) -> Following<'c> {
    Following {
        began: state.lock().published(),
        head: id(head),
        trigger: Trigger::Poll,
        ancestry,
        live_last: None,
        followed_last: None,
        accepted: None,
        resumed_at: None,
        pinned_late: None,
        has_new_verdict: false,
    }
}

/// Takes in a head as the fetcher does, where `read` reads the history.
fn accept(
    shared: &SharedState,
    head: char,
    read: impl Fn(CommitPair) -> AncestryAnswer,
    is_wanted: impl Fn() -> bool,
) -> Result<bool, NotAccepted> {
    let (began, now) = (shared.lock().published(), Now::read());
    decide_by_history(&mut KnownAncestry::default(), read, is_wanted, |ancestry| {
        let fetched = FetchedHead { began, head: id(head), ancestry, signed: None };
        let following = Following { began, ..following(shared, ancestry, head) };
        shared.lock().accept(fetched, &following, now)
    })
}

/// Handlers of requests wait for the lock, and a walk of a long history takes many seconds.
#[test]
fn history_is_read_without_the_lock_of_the_state() {
    for on_rewrite in [OnRewrite::Follow, OnRewrite::Hold] {
        let World { state, commits, .. } = rewritten(on_rewrite);
        let (shared, reads) = (SharedState::new(state), Cell::new(0));
        let read = |pair| {
            assert!(!shared.is_locked(), "{pair:?}");
            reads.set(reads.get() + 1);
            commits.read(pair)
        };
        assert_eq!(accept(&shared, 'x', read, || true), Ok(true));
        assert!(reads.get() > 1, "each is read apart from the others");
        assert_eq!(shared.lock().candidate().map(name), Some('x'));
    }
}

/// A write decides with the right to make commits live, for which pins and other commits wait.
#[test]
fn what_a_decision_holds_is_released_while_history_is_read() {
    let (commits, right) = (commits(), Mutex::new(()));
    let read = |pair| {
        assert!(!right.is_locked());
        commits.read(pair)
    };
    let known = &mut KnownAncestry::default();
    let (held, is_ancestor) = decide_by_history(
        known,
        read,
        || true,
        |ancestry| (right.lock(), ancestry.is_ancestor(id('a'), id('c'))),
    );
    assert!(is_ancestor && right.is_locked());
    drop(held);
}

#[test]
fn what_happens_while_history_is_read_is_decided_by() {
    let World { state, commits, .. } = rewritten(OnRewrite::Follow);
    let shared = SharedState::new(state);
    let written = Cell::new(false);
    let read = |pair| {
        if !written.replace(true) {
            shared.lock().note_written(id('d'), Now::read());
        }
        commits.read(pair)
    };
    assert_eq!(accept(&shared, 'x', read, || true), Err(NotAccepted::Outdated));
    assert_eq!(shared.lock().head().map(name), Some('d'), "the write stays");
}

#[test]
fn nothing_is_decided_where_the_daemon_stops_before_history_is_read() {
    let World { state, commits, .. } = rewritten(OnRewrite::Follow);
    let shared = SharedState::new(state);
    let read = |pair| {
        shared.stop();
        commits.read(pair)
    };
    let accepted = accept(&shared, 'x', read, || !shared.is_stopping());
    assert_eq!(accepted, Err(NotAccepted::Unknown));
    let mut state = shared.lock();
    assert_eq!((state.head().map(name), state.candidate()), (Some('c'), None));
    let pushed = state.pushed(id('d'), &KnownAncestry::default(), Now::read());
    assert_eq!((pushed, state.head().map(name)), (Err(Withheld::Unread), Some('c')));
}

#[test]
fn the_history_of_a_head_that_is_held_is_read_once() {
    for steps in ["", "pin a", "fetch x, build, pin b"] {
        let mut world = rewritten(OnRewrite::Hold);
        for step in steps.split(", ").filter(|it| !it.is_empty()) {
            world.take(step);
        }
        world.fetch('x');
        world.build();
        // The branch does not move from now on.
        world.fetch('x');
        let reads = world.reads;
        for _ in 0..3 {
            world.fetch('x');
            world.build();
        }
        assert_eq!((world.reads, world.state.held().map(name)), (reads, Some('x')), "{steps}");
        world.fetch('y');
        assert!(world.reads > reads, "another head is another question");
    }
}

#[test]
fn what_could_not_be_read_is_read_again() {
    let mut world = rewritten(OnRewrite::Hold);
    world.commits.fault = Some(ReadError::new("the history", "too many open files"));
    world.try_fetch('x').unwrap_err();
    let reads = world.reads;
    world.try_fetch('x').unwrap_err();
    assert!(world.reads > reads);
    world.commits.fault = None;
    world.fetch('x');
    world.build();
    assert_eq!(world.state.held().map(name), Some('x'));
}
