//! Branches that are rewritten, deleted or renamed: what answers is always a commit that was pushed.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::follow::{conditions, has, live, wait_for};
use crate::program::Daemon;
use crate::repository::{Origin, Put};
use crate::{Fault, Seen, Speed};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "history::force-pushes",
        promise: "each answer is from a commit that was pushed, and the last head answers",
        injection: "40 force pushes of unrelated histories in a row",
        speed: Speed::Fast,
        run: force_pushes,
    },
    Fault {
        name: "history::hold",
        promise: "with `--on-rewrite hold` a rewritten branch is a condition, not an answer",
        injection: "a force push of an unrelated history",
        speed: Speed::Fast,
        run: hold,
    },
    Fault {
        name: "history::hold-and-back",
        promise: "a held branch that comes back is followed without an operator",
        injection: "with `--on-rewrite hold`, a force push of an unrelated history; then the branch is set back to the commit that answers, and goes on from there, with and without a poll between",
        speed: Speed::Fast,
        run: hold_and_back,
    },
    Fault {
        name: "history::hold-before-the-first",
        promise: "where no commit answers yet, a rewritten branch is followed",
        injection: "with `--on-rewrite hold`, a first commit that is not valid, and a force push of one that is",
        speed: Speed::Fast,
        run: hold_before_the_first,
    },
    Fault {
        name: "history::deleted-branch",
        promise: "the last commit answers while the branch is gone, and the new branch is followed",
        injection: "the branch is deleted and pushed again",
        speed: Speed::Fast,
        run: deleted_branch,
    },
    Fault {
        name: "history::back-and-forth",
        promise: "a head that goes back is followed, and forward again as well",
        injection: "the branch is set back by three commits and forward again, three times",
        speed: Speed::Fast,
        run: back_and_forth,
    },
    Fault {
        name: "history::bad-then-good",
        promise: "no invalid commit answers, and the head answers once it is valid",
        injection: "30 commits, of which every second one is not valid",
        speed: Speed::Fast,
        run: bad_then_good,
    },
];

/// Starts a daemon that follows an origin by a mirror.
fn follow(origin: &Origin, data: &tempfile::TempDir, more: &[&str]) -> Daemon {
    let url = format!("file://{}", origin.path().display());
    let data = data.path().to_str().unwrap();
    let arguments = ["--repo", &url, "--data-dir", data, "--branch", "main"];
    Daemon::start(&[&arguments[..], &["--allow-insecure-remotes"], more].concat())
}

fn force_pushes() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &[]);
    wait_for(&daemon, &first);
    let mut pushed = BTreeSet::from([first]);
    let mut last = String::new();
    let mut answered = BTreeSet::new();
    for number in 0..40 {
        let group = format!("name: G{number}\n");
        last = origin.rewrite("main", &[("groups/a.yaml", Put::File(&group))]);
        pushed.insert(last.clone());
        let now = live(&daemon).unwrap();
        assert!(pushed.contains(&now), "{now} was never pushed");
        answered.insert(now);
    }
    wait_for(&daemon, &last);
    Seen::Held(format!(
        "{} of 41 commits were seen to answer, the last one at the end",
        answered.len() + 1
    ))
}

fn hold() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &["--on-rewrite", "hold"]);
    wait_for(&daemon, &first);
    origin.rewrite("main", &[("groups/a.yaml", Put::File("name: Other\n"))]);
    let seen = RefCell::new(Vec::new());
    daemon.wait_until("the rewrite is a condition", |it| {
        assert_eq!(live(it), Some(first.clone()));
        *seen.borrow_mut() = conditions(it);
        !seen.borrow().is_empty()
    });
    let seen = seen.borrow();
    Seen::Held(format!("condition `{}`, the last commit answers", seen[0].0))
}

fn hold_and_back() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &["--on-rewrite", "hold"]);
    wait_for(&daemon, &first);
    let mut answers = first;
    for between in [true, false, true] {
        origin.rewrite("main", &[("groups/a.yaml", Put::File("name: Other\n"))]);
        daemon.wait_until("the rewrite is held", |it| has(it, "PromotionHeld"));
        // A build is counted after its outcome can be seen.
        let before = polls(&daemon);
        daemon.wait_until("a poll passed", |it| polls(it) > before);
        let built = builds(&daemon);
        // Several polls, and no build for any of them.
        let before = polls(&daemon);
        daemon.wait_until("several polls passed", |it| polls(it) >= before + 4);
        assert_eq!(builds(&daemon), built);
        assert_eq!(live(&daemon), Some(answers.clone()));
        if between {
            origin.set("main", &answers);
            daemon.wait_until("the branch is back", |it| !has(it, "PromotionHeld"));
        } else {
            origin.set("elsewhere", &answers);
            let next = origin.commit("elsewhere", &[("groups/b.yaml", Put::File("name: C\n"))]);
            origin.set("main", &next);
            wait_for(&daemon, &next);
            answers = next;
            continue;
        }
        let text = format!("name: B\ndescription: from {answers}\n");
        answers = origin.commit("main", &[("groups/b.yaml", Put::File(&text))]);
        wait_for(&daemon, &answers);
        daemon.wait_until("nothing is wrong any more", |it| conditions(it).is_empty());
    }
    Seen::Held("followed three times without an operator".to_owned())
}

/// Returns how many commits were decided about.
/// Returns how often the branch was fetched.
fn polls(daemon: &Daemon) -> u64 {
    let metrics = daemon.get("/metrics").body;
    let counts = metrics.lines().filter(|it| it.starts_with("clade_source_fetches_total{"));
    counts.map(|it| it.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn builds(daemon: &Daemon) -> String {
    let metrics = daemon.get("/metrics").body;
    metrics.lines().filter(|it| it.starts_with("clade_snapshot_builds_total")).collect()
}

fn hold_before_the_first() -> Seen {
    let (origin, _) = Origin::with_a_commit();
    origin.commit("main", &[("groups/a.yaml", Put::File("name: A\nparent: Nowhere\n"))]);
    let first = origin.rewrite("main", &[("groups/a.yaml", Put::File("nonsense: true\n"))]);
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &["--on-rewrite", "hold"]);
    daemon.wait_until("it is rejected", |it| has(it, "CandidateRejected"));
    assert_eq!(live(&daemon), None);
    let second = origin.rewrite("main", &[("groups/a.yaml", Put::File("name: A\n"))]);
    assert_ne!(first, second);
    wait_for(&daemon, &second);
    Seen::Held("the first valid commit answers".to_owned())
}

fn deleted_branch() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &[]);
    wait_for(&daemon, &first);
    origin.git().find_reference("refs/heads/main").unwrap().delete().unwrap();
    daemon.wait_until("it is a condition", |it| {
        assert_eq!(live(it), Some(first.clone()));
        has(it, "RefMissing")
    });
    origin.set("main", &first);
    let next = origin.commit("main", &[("groups/b.yaml", Put::File("name: B\n"))]);
    wait_for(&daemon, &next);
    Seen::Held("condition `RefMissing`, then followed".to_owned())
}

fn back_and_forth() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let mut last = String::new();
    for number in 0..3 {
        let path = format!("groups/{number}.yaml");
        let text = format!("name: N{number}\n");
        last = origin.commit("main", &[(&path, Put::File(&text))]);
    }
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &["--rewind-grace", "100ms"]);
    wait_for(&daemon, &last);
    for _ in 0..3 {
        origin.set("main", &first);
        wait_for(&daemon, &first);
        origin.set("main", &last);
        wait_for(&daemon, &last);
    }
    Seen::Held("followed six times".to_owned())
}

fn bad_then_good() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let daemon = follow(&origin, &data, &[]);
    wait_for(&daemon, &first);
    let mut bad = BTreeSet::new();
    let mut last = String::new();
    for number in 0..30 {
        let text = if number % 2 == 0 {
            format!("name: B\nparent: Nowhere {number}\n")
        } else {
            format!("name: B\ndescription: '{number}'\n")
        };
        last = origin.commit("main", &[("groups/b.yaml", Put::File(&text))]);
        if number % 2 == 0 {
            bad.insert(last.clone());
        }
        let now = live(&daemon).unwrap();
        assert!(!bad.contains(&now), "{now} is not valid");
    }
    wait_for(&daemon, &last);
    Seen::Held("15 invalid commits, none answered".to_owned())
}
