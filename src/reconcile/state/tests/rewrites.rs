//! What the status says of a rewritten branch.

use super::commits;
use super::world::{World, name};
use crate::git::ReadError;
use crate::reconcile::policy::{OnRewrite, Policy};
use crate::reconcile::state::{NotAccepted, Withheld};
use crate::reconcile::status::ConditionKind;

/// Returns what the status says of the branch after some steps.
fn said(on_rewrite: OnRewrite, steps: &str) -> String {
    let mut world = World::new(commits(), Policy { on_rewrite, ..Policy::default() });
    for step in steps.split(", ") {
        world.take(step);
    }
    let now = world.now();
    let conditions = world.state.conditions(now);
    let rewritten = conditions.iter().find(|it| it.kind == ConditionKind::HistoryRewritten);
    let message = rewritten.map_or("", |it| &it.message);
    message.split_once("which lacks it: ").map_or(message, |(_, done)| done).to_owned()
}

#[test]
fn what_becomes_of_a_rewrite_is_said() {
    let b = "62".repeat(20);
    let [of_nothing, of_b] = ["no commit answers".to_owned(), format!("still serving {b}")];
    for (on_rewrite, steps, expected) in [
        (OnRewrite::Follow, "fetch b, build, fetch x", "being built".to_owned()),
        (OnRewrite::Follow, "fetch b, build, fetch x, build", "followed".to_owned()),
        (OnRewrite::Follow, "fetch b, build, fetch x, build, push y", "followed".to_owned()),
        (OnRewrite::Hold, "fetch b, build, fetch x, build", "held".to_owned()),
        (OnRewrite::Hold, "fetch b, build, fetch x", "held".to_owned()),
        (OnRewrite::Hold, "fetch b, build, fetch x, build, resume, build", "followed".to_owned()),
        (OnRewrite::Follow, "fetch b, build, pin a, fetch x, build", "held".to_owned()),
        (OnRewrite::Follow, "fetch b, build, fetch Y, build", format!("rejected; {of_b}")),
        (OnRewrite::Hold, "fetch b, build, fetch Y, build", format!("rejected; {of_b}")),
        (OnRewrite::Follow, "fetch C, build, fetch Y, build", format!("rejected; {of_nothing}")),
    ] {
        assert_eq!(said(on_rewrite, steps), expected, "{steps}");
    }
}

/// Such as where file descriptors run out: whether the branch goes on or was rewritten is not known.
#[test]
fn a_history_that_cannot_be_read_decides_nothing() {
    for on_rewrite in [OnRewrite::Follow, OnRewrite::Hold] {
        let mut world = World::new(commits(), Policy { on_rewrite, ..Policy::default() });
        world.take("fetch b");
        world.take("build");
        world.announce('c');
        let error = ReadError::new("the history", "too many open files");
        world.commits.fault = Some(error.clone());
        assert_eq!(world.try_fetch('d'), Err(NotAccepted::Unread(error)));
        assert_eq!(world.push('c'), Err(Withheld::Unread));
        assert_eq!((world.state.head().map(name), world.state.candidate()), (Some('b'), None));
        assert_eq!((world.state.expected.len(), world.conditions()), (1, vec![]));
        world.commits.fault = None;
        world.take("fetch d");
        world.take("build");
        assert_eq!((world.answers, world.conditions()), (Some('d'), vec![]));
    }
}
