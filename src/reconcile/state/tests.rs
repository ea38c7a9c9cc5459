//! Every transition of the state, without IO; and random walks that keep the promises.

mod announced;
mod histories;
mod rewrites;
mod walks;
mod world;

use std::time::Duration;

use self::world::{Commits, World, name};
use crate::reconcile::clock::Now;
use crate::reconcile::journal::{Event, Stage};
use crate::reconcile::policy::{OnRewrite, Policy};
use crate::reconcile::state::{Cause, Following, Withheld};
use crate::reconcile::status::{ConditionKind, ObservedCommit};
use crate::reconcile::status::{FailedCommit, Reason};
use crate::reconcile::trigger::Trigger;

impl World {
    fn take(&mut self, step: &str) {
        let (what, argument) = step.split_once(' ').unwrap_or((step, ""));
        let commit = argument.chars().next();
        match (what, commit) {
            ("fetch", Some(head)) => self.fetch(head),
            ("fail", None) => self.fail_fetch(),
            ("build", None) => self.build(),
            ("misread", None) => self.misread(),
            ("pin", Some(commit)) => self.pin(commit),
            ("resume", None) => self.resume(),
            ("push", Some(commit)) => {
                self.push(commit).ok();
            }
            ("restart", None) => self.restart(),
            ("pass", Some(_)) => self.pass(Duration::from_secs(argument.parse().unwrap())),
            _ => panic!("{step}"),
        }
    }
}

/// `a b c d` is the branch with `B` beside `b` and `x y Y` beside all but `a`.
fn commits() -> Commits {
    Commits::parse(&["a b c d", "a B c", "b C D e", "a x y Y"])
}

/// Each row: name, `--on-rewrite`, steps, and then the commit that answers, the one that is held, and
/// the conditions beside `Ready`.
const TRANSITIONS: &str = "\
a start | follow |  | - -
fetched, not built | follow | fetch a | - - Reconciling
built | follow | fetch a, build | a -
the branch goes on | follow | fetch a, build, fetch c, build | c -
rejected | follow | fetch b, build, fetch C, build | b - CandidateRejected
rejected first | follow | fetch C, build | - - CandidateRejected
valid again | follow | fetch b, build, fetch C, build, fetch e, build | e -
the same again | follow | fetch b, build, fetch C, build, fetch C, build | b - CandidateRejected
not to be read | follow | fetch b, build, fetch c, misread | b - CandidateRejected
not to be read again | follow | fetch b, build, fetch c, misread, fetch c, misread | b - CandidateRejected
to be read again | follow | fetch b, build, fetch c, misread, fetch c, build | c -
to be read again, and not built yet | follow | fetch b, build, fetch c, misread, fetch c | b - CandidateRejected
to be read again without the remote | follow | fetch b, build, fetch c, misread, fail, build | c - FetchFailed
to be read again behind a pin | follow | fetch b, build, pin a, fetch c, misread, fetch c, build | a c PromotionHeld
to be read again after a resume | follow | fetch b, build, pin a, fetch c, resume, misread, fetch c, build | c -
to be read again and not valid | follow | fetch b, build, fetch C, misread, fetch C, build, fetch C, build | b - CandidateRejected
back to what answers | follow | fetch b, build, fetch C, build, fetch b, build | b -
the remote is gone | follow | fetch a, build, fail | a - FetchFailed
the remote is back | follow | fetch a, build, fail, fetch a | a -
a rewrite is followed | follow | fetch c, build, fetch x, build | x - HistoryRewritten
a rewrite is held | hold | fetch c, build, fetch x, build | c x HistoryRewritten PromotionHeld
a held rewrite goes on | hold | fetch c, build, fetch x, build, fetch y, build | c y HistoryRewritten PromotionHeld
a held rewrite is accepted | hold | fetch c, build, fetch x, build, resume, build | x - HistoryRewritten
an accepted rewrite goes on before it is built | hold | fetch c, build, fetch x, build, resume, fetch y, build | y - HistoryRewritten
a held rewrite after a restart | hold | fetch c, build, fetch x, build, restart, build | c x HistoryRewritten PromotionHeld
an accepted rewrite after a restart | hold | fetch c, build, fetch x, build, resume, restart, build | x - HistoryRewritten
an acceptance is for one rewrite | hold | fetch c, build, fetch x, build, resume, build, fetch y, build, restart, fetch x, build, pass 31, fetch x, build | y x HistoryRewritten PromotionHeld
a held rewrite is taken back | hold | fetch c, build, fetch x, build, fetch c, build | c -
a held rewrite is taken back before it is built | hold | fetch c, build, fetch x, fetch c, build | c -
a rejected rewrite is taken back | follow | fetch c, build, fetch Y, build, fetch c, build | c -
a held rewrite is taken back and comes again | hold | fetch c, build, fetch x, build, fetch c, build, fetch x, build | c x HistoryRewritten PromotionHeld
a rewrite to the pinned commit | follow | fetch c, build, pin x, fetch x, build | x - HistoryRewritten
a followed rewrite is acknowledged | follow | fetch c, build, fetch x, build, resume, fetch x, build | x -
a held rewrite is accepted and acknowledged | hold | fetch c, build, fetch x, build, resume, build, fetch x, resume, fetch x, build | x -
a rejected rewrite stays | follow | fetch c, build, fetch Y, build, resume, fetch Y, build | y - CandidateRejected HistoryRewritten
a replica lags | follow | fetch c, build, fetch b, build | c b RemoteBehind PromotionHeld
a rewind is meant | follow | fetch c, build, fetch b, build, pass 31, fetch b, build | b - HistoryRewritten
a rewind is held | hold | fetch c, build, fetch b, build, pass 31, fetch b, build | c b HistoryRewritten PromotionHeld
a held rewind stays held | hold | fetch c, build, fetch b, build, pass 31, fetch b, build, pass 1, fetch b, build | c b HistoryRewritten PromotionHeld
a held rewind stays held after its grace | hold | fetch c, build, fetch b, build, pass 31, fetch b, build, pass 31, fetch b, pass 1, fetch b, build | c b HistoryRewritten PromotionHeld
a held rewind is accepted | hold | fetch c, build, fetch b, build, pass 31, fetch b, build, fetch b, resume, fetch b, build | b - HistoryRewritten
an accepted rewind after a restart | hold | fetch c, build, fetch b, build, pass 31, fetch b, build, resume, restart, build | b - HistoryRewritten
a held rewind goes further back | hold | fetch c, build, fetch b, build, pass 31, fetch b, build, fetch a, build | c a RemoteBehind PromotionHeld
a rewind to a rejected commit | follow | fetch e, build, fetch C, build, pass 31, fetch C, build | e - CandidateRejected HistoryRewritten
a replica catches up | follow | fetch c, build, fetch b, build, fetch d, build | d -
pinned | follow | fetch b, build, pin a | a b PromotionHeld
rejected behind a pin | follow | fetch a, build, pin a, fetch b, build, fetch C, build | a - CandidateRejected PromotionHeld
rejected behind a pin, and valid again | follow | fetch a, build, pin a, fetch b, build, fetch C, build, fetch e, build | a e PromotionHeld
rejected twice behind a pin | follow | fetch a, build, pin a, fetch b, build, fetch C, build, fetch D, build | a - CandidateRejected PromotionHeld
pinned while the head is rejected | follow | fetch b, build, fetch C, build, pin a | a - CandidateRejected PromotionHeld
pinned at what answers while the head is rejected | follow | fetch b, build, fetch C, build, pin b | b - CandidateRejected
resumed with a rejected head | follow | fetch a, build, pin a, fetch b, build, fetch C, build, resume, build | b - CandidateRejected
rejected behind a held rewrite | hold | fetch c, build, fetch x, build, fetch Y, build | c - CandidateRejected HistoryRewritten PromotionHeld
pinned without the remote | follow | fetch b, build, fail, pin a | a b FetchFailed PromotionHeld
pinned at the head | follow | fetch b, build, pin a, pin b | b -
pinned at another again | follow | fetch c, build, pin a, pin c, pin b, fetch c, build | b c PromotionHeld
the branch goes on behind a pin | follow | fetch b, build, pin a, fetch c, build | a c PromotionHeld
a pin while a commit is built | follow | fetch b, build, fetch c, pin a, build | a c PromotionHeld
resumed | follow | fetch b, build, pin a, fetch c, build, resume, build | c -
resumed at a rejected head | follow | fetch b, build, pin a, fetch D, build, resume, build | b - CandidateRejected
resumed while a rejected head is built | follow | fetch b, build, pin a, fetch D, resume, build | b - CandidateRejected
resumed at a rejected head before a restart | follow | fetch b, build, pin a, fetch D, build, resume, restart, build | b - CandidateRejected
resumed at a rejected head that goes on before it is built | follow | fetch b, build, pin a, fetch C, resume, fetch D, build | b - CandidateRejected
resumed at a rejected head that goes on after a restart | follow | fetch b, build, pin a, fetch C, resume, restart, fetch D, build | b - CandidateRejected
a rejected head after a resume that is done | follow | fetch a, build, resume, fetch D, build | a - CandidateRejected
a rewrite after a resume at a rejected head | hold | fetch b, build, fetch C, build, resume, build, fetch Y, build | b - CandidateRejected HistoryRewritten
a pin after a restart | follow | fetch b, build, pin a, fetch c, restart, build | a c PromotionHeld
resumed after a restart without the remote | follow | fetch b, build, pin a, fetch c, restart, fail, resume, build | c - FetchFailed
a rewrite behind a pin | hold | fetch c, build, pin a, fetch x, build | a x HistoryRewritten PromotionHeld
a rewrite behind a pin after a restart | hold | fetch c, build, pin a, fetch x, build, restart, fail, build | a x FetchFailed HistoryRewritten PromotionHeld
a resume from a commit beside the branch, through a restart | hold | fetch b, build, pin x, resume, restart, fetch c, build | c -
a pin after such a resume | hold | fetch b, build, pin x, resume, pin a, fetch c, build | a c PromotionHeld
a write | follow | fetch b, build, push c | c -
a pin while a write is pushed | follow | fetch b, build, pin a, push c | a c PromotionHeld
the branch went on from a write | follow | fetch b, build, fetch d, push c, build | d -
the branch left a write | follow | fetch b, build, fetch x, push c, build | x - HistoryRewritten
";

#[test]
fn every_transition_leads_where_it_should() {
    let mut failed = Vec::new();
    for row in TRANSITIONS.lines() {
        let columns: Vec<&str> = row.split(" | ").map(str::trim).collect();
        let [name, on_rewrite, steps, expected] = columns[..] else { panic!("{row}") };
        let on_rewrite = match on_rewrite {
            "follow" => OnRewrite::Follow,
            _ => OnRewrite::Hold,
        };
        let mut world = World::new(commits(), Policy { on_rewrite, ..Policy::default() });
        for step in steps.split(", ").filter(|it| !it.is_empty()) {
            world.take(step);
        }
        let letter = |commit: Option<char>| commit.map_or("-".to_owned(), String::from);
        let conditions: Vec<String> =
            world.conditions().iter().map(|it| format!("{it:?}")).collect();
        let (answers, held) = (letter(world.answers), letter(world.state.held().map(world::name)));
        let seen = format!("{answers} {held} {}", conditions.join(" "));
        if seen.trim_end() != expected {
            failed.push(format!("{name}: {seen}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_write_during_a_fetch_makes_the_fetch_outdated() {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    world.build();
    let began = world.state.fetch_began(world.now());
    world.push('c').unwrap();
    assert!(world.state.check_current(began).is_err());
    assert_eq!((world.answers, world.state.head().map(name)), (Some('c'), Some('c')));
    // What is pushed twice answers once; what the branch left is superseded.
    assert_eq!(world.push('b'), Ok(()));
    assert_eq!(world.push('x'), Err(Withheld::Superseded(world::id('c'))));
}

/// A fetch between the rejection of the head and the activation of what a resume makes live.
#[test]
fn a_resume_from_a_commit_beside_the_branch_rewrites_nothing() {
    let mut world = World::new(commits(), Policy::default());
    for step in ["fetch b", "build", "pin x", "fetch C", "build", "resume"] {
        world.take(step);
    }
    let job = world.state.take_build().unwrap();
    let failed = FailedCommit::as_a_whole(job.commit, Stage::Check, &"it is not valid");
    world.state.build_failed(failed, Reason::ValidationFailed);
    world.fetch('C');
    assert_eq!(world.conditions(), [ConditionKind::CandidateRejected]);
    // The journal has it before the state does.
    let activated = Event::Activated { commit: world::id('b'), trigger: Trigger::Manual };
    world.journal.append(activated, world.now()).unwrap();
    world.fetch('C');
    assert_eq!(world.conditions(), [ConditionKind::CandidateRejected]);
    world.activate('b', Cause::Fallback(job.commit)).unwrap();
    world.fetch('C');
    assert_eq!(world.conditions(), [ConditionKind::CandidateRejected]);
    world.fetch('x');
    assert!(world.conditions().contains(&ConditionKind::HistoryRewritten), "a rewrite since");
}

#[test]
fn a_condition_is_as_old_as_it_is_whenever_it_is_asked_for() {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    world.build();
    world.fail_fetch();
    let failed_at = world.now();
    world.state.note_conditions(failed_at);
    world.pass(Duration::from_hours(1));
    let asked_at = world.now();
    let conditions = world.state.conditions(asked_at);
    let failed = conditions.iter().find(|it| it.kind == ConditionKind::FetchFailed).unwrap();
    assert_eq!(failed.last_transition, failed_at.wall);
}

#[test]
fn staleness_counts_the_time_for_which_the_machine_was_suspended() {
    let policy = Policy { max_staleness: Some(Duration::from_mins(1)), ..Policy::default() };
    let mut world = World::new(commits(), policy);
    world.fetch('b');
    world.build();
    let seen = world.now().wall;
    world.suspend(Duration::from_hours(8));
    let age = world.state.staleness(world.now());
    assert_eq!((age, world.conditions()), (Duration::from_hours(8), vec![ConditionKind::Stale]));
    assert_eq!(world.state.last_seen(world.now()), Some(seen), "as the file keeps it");
    // The clock alone is set ahead.
    let now = world.now();
    let ahead = Now { wall: now.wall + Duration::from_hours(1), ..now };
    assert_eq!(world.state.staleness(ahead), age);
    assert_eq!(world.state.last_seen(ahead), Some(seen + Duration::from_hours(1)));
}

#[test]
fn staleness_goes_on_after_a_restart() {
    let limit = Duration::from_mins(1);
    let policy = Policy { max_staleness: Some(limit), ..Policy::default() };
    let mut world = World::new(commits(), policy);
    let seconds = |world: &World| world.state.remote(world.now()).staleness_seconds;
    world.pass(Duration::from_secs(61));
    assert_eq!(
        (seconds(&world), world.conditions()),
        (61, vec![ConditionKind::Stale]),
        "never seen"
    );
    assert_eq!(world.state.remote(world.now()).last_contact, None);
    world.fetch('b');
    world.build();
    let seen = world.now().wall;
    world.pass(Duration::from_secs(50));
    world.restart();
    assert_eq!((seconds(&world), world.conditions()), (50, vec![]));
    world.pass(Duration::from_secs(20));
    assert_eq!((seconds(&world), world.conditions()), (70, vec![ConditionKind::Stale]));
    assert_eq!(world.state.last_seen(world.now()), Some(seen));
    world.restart();
    assert_eq!((seconds(&world), world.conditions()), (70, vec![ConditionKind::Stale]));
    assert_eq!(world.state.remote(world.now()).last_contact, Some(seen));
    // The clock was set back to before that.
    let now = world.now();
    world.state.recovered_contact(now.wall + limit, now);
    assert_eq!((seconds(&world), world.conditions()), (0, vec![]));
    world.pass(Duration::from_secs(61));
    assert_eq!(world.conditions(), [ConditionKind::Stale], "the age counts on");
    world.fetch('b');
    assert_eq!((seconds(&world), world.conditions()), (0, vec![]));
}

#[test]
fn a_newer_commit_supersedes_the_one_that_is_built() {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    let job = world.state.take_build().unwrap();
    world.fetch('c');
    assert!(!world.state.is_wanted(job.commit));
    world.finish_build(job);
    assert_eq!(world.answers, None);
    world.build();
    assert_eq!(world.answers, Some('c'));
}

#[test]
fn a_commit_that_can_be_read_again_is_built_if_the_builder_still_has_it() {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    world.build();
    world.fetch('c');
    let job = world.state.take_build().unwrap();
    world.fetch('b');
    world.pin('a');
    assert_eq!(world.state.held().map(name), Some('b'));
    world.state.retry_build(job.commit);
    assert_eq!(world.state.held().map(name), Some('b'), "another one is held meanwhile");
    world.fetch('c');
    let job = world.state.take_build().unwrap();
    world.state.retry_build(job.commit);
    assert_eq!(world.state.take_build().map(|it| name(it.commit)), Some('c'));
}

#[test]
fn a_resume_after_the_pin_was_read_follows_the_head() {
    let mut world = World::new(commits(), Policy::default());
    world.fetch('b');
    world.build();
    let (began, now) = (world.state.published(), world.now());
    let observed = ObservedCommit { commit: world::id('c'), fetched_at: now.wall };
    let is_new = world.decide(|world, ancestry| {
        let following = Following {
            began,
            head: world::id('c'),
            trigger: Trigger::Poll,
            ancestry,
            live_last: Some(world::id('b')),
            followed_last: Some(world::id('b')),
            accepted: None,
            resumed_at: None,
            pinned_late: Some(world::id('a')),
            has_new_verdict: false,
        };
        world.state.accept_recovered(observed, &following, now)
    });
    assert_eq!(is_new, Ok(true));
    assert_eq!(world.state.candidate().map(name), Some('c'));
}
