//! Random histories: at each step the model knows the live commit and the conditions.

use super::{BAD, group, has, live, wait_for};
use crate::program::{Daemon, GitRepository};

/// The same histories each time, so that a failure can be looked into.
const SEED: u64 = 20_261_121;

/// A step of a history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Good,
    Bad,
    Rewrite,
    DeleteBranch,
    RestoreBranch,
    RemoteDown,
    RemoteUp,
    Restart,
    Kill,
    KillAtOnceAfterAGoodCommit,
}

const STEPS: [Step; 10] = [
    Step::Good,
    Step::Bad,
    Step::Rewrite,
    Step::DeleteBranch,
    Step::RestoreBranch,
    Step::RemoteDown,
    Step::RemoteUp,
    Step::Restart,
    Step::Kill,
    Step::KillAtOnceAfterAGoodCommit,
];

/// What must be so.
struct Model {
    repository: GitRepository,
    data: tempfile::TempDir,
    daemon: Option<Daemon>,
    /// The commits of the branch, oldest first, with whether each is valid.
    branch: Vec<(String, bool)>,
    /// What must answer, or may: a crash can leave either of two.
    live: Vec<String>,
    deleted: bool,
    down: bool,
    counter: usize,
}

impl Model {
    fn new() -> Self {
        let repository = GitRepository::new();
        let first = repository.commit("first", &[("groups/a.yaml", &group("A"))]);
        let mut model = Self {
            repository,
            data: tempfile::tempdir().unwrap(),
            daemon: None,
            branch: vec![(first.clone(), true)],
            live: vec![first],
            deleted: false,
            down: false,
            counter: 0,
        };
        model.start();
        model
    }

    fn start(&mut self) {
        let remote = format!("file://{}", self.repository.text_path());
        self.daemon = Some(Daemon::start(&[
            "--repo",
            &remote,
            "--data-dir",
            self.data.path().to_str().unwrap(),
            "--branch",
            "main",
            "--interval",
            "20ms",
            "--rewind-grace",
            "0s",
        ]));
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    fn away(&self) -> std::path::PathBuf {
        self.repository.path().with_extension("away")
    }

    /// Commits on top of the branch; not while the remote is down or the branch is gone.
    fn commit(&mut self, valid: bool) -> Option<String> {
        if self.down || self.deleted {
            return None;
        }
        self.counter += 1;
        let name = format!("G{}", self.counter);
        let mut files = vec![(format!("groups/{name}.yaml"), group(&name))];
        let was_bad = self.branch.last().is_some_and(|(_, valid)| !valid);
        if valid && was_bad {
            files.push(("groups/bad.yaml".to_owned(), String::new()));
        }
        if !valid && !was_bad {
            files.push(("groups/bad.yaml".to_owned(), BAD.to_owned()));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
        let commit = self.repository.commit(&name, &files);
        self.branch.push((commit.clone(), valid));
        Some(commit)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Good => {
                if let Some(commit) = self.commit(true) {
                    self.live = vec![commit];
                }
            }
            Step::Bad => {
                if let Some(commit) = self.commit(false) {
                    self.daemon().wait_until("the bad commit is rejected", |it| {
                        it.get("/controller/status").json()["last_failed"]["commit"]
                            == commit.as_str()
                    });
                }
            }
            Step::Rewrite => self.rewrite(),
            Step::DeleteBranch => {
                if !self.down && !self.deleted {
                    let git = self.repository.git();
                    git.find_reference("refs/heads/main")
                        .unwrap()
                        .rename("refs/heads/kept", true, "")
                        .unwrap();
                    self.deleted = true;
                }
            }
            Step::RestoreBranch => {
                if !self.down && self.deleted {
                    let git = self.repository.git();
                    git.find_reference("refs/heads/kept")
                        .unwrap()
                        .rename("refs/heads/main", true, "")
                        .unwrap();
                    git.set_head("refs/heads/main").unwrap();
                    self.deleted = false;
                }
            }
            Step::RemoteDown => {
                if !self.down {
                    std::fs::rename(self.repository.path(), self.away()).unwrap();
                    self.down = true;
                }
            }
            Step::RemoteUp => {
                if self.down {
                    std::fs::rename(self.away(), self.repository.path()).unwrap();
                    self.down = false;
                }
            }
            Step::Restart => {
                assert_eq!(self.daemon.take().unwrap().terminate(), 0);
                self.start();
            }
            Step::Kill => {
                self.daemon.take().unwrap().kill();
                self.start();
            }
            Step::KillAtOnceAfterAGoodCommit => {
                if let Some(commit) = self.commit(true) {
                    self.live = vec![commit];
                }
                // At some point between the poll and the activation.
                std::thread::sleep(std::time::Duration::from_millis(
                    (self.counter as u64 * 7) % 30,
                ));
                self.daemon.take().unwrap().kill();
                self.start();
            }
        }
    }

    /// Replaces the last commit by another one.
    fn rewrite(&mut self) {
        if self.down || self.deleted || self.branch.len() < 2 {
            return;
        }
        self.branch.pop();
        let (base, _) = self.branch.last().unwrap();
        {
            let base = self.repository.git().find_commit(base.parse().unwrap()).unwrap();
            self.repository.git().reset(base.as_object(), git2::ResetType::Hard, None).unwrap();
        }
        if let Some(commit) = self.commit(true) {
            self.live = vec![commit];
        }
    }

    /// Checks the live commit and the conditions.
    fn check(&self, history: &[Step]) {
        let daemon = self.daemon();
        let expected = &self.live;
        if expected.len() == 1 && !self.down && !self.deleted {
            wait_for(daemon, &expected[0]);
        }
        let answers = live(daemon).unwrap();
        let all: Vec<&String> =
            self.branch.iter().filter(|(_, valid)| *valid).map(|(it, _)| it).collect();
        if self.down || self.deleted {
            // What came before the remote went may not have been seen.
            assert!(all.contains(&&answers) || expected.contains(&answers), "{history:?}");
        } else {
            assert!(
                expected.contains(&answers),
                "{history:?}: {answers} answers, not {expected:?}"
            );
        }
        assert_eq!(daemon.get("/readyz").status, 200, "{history:?}");
        for (kind, holds) in [
            ("FetchFailed", self.down),
            ("RefMissing", self.deleted && !self.down),
            ("CandidateRejected", !self.down && !self.deleted && !self.branch.last().unwrap().1),
        ] {
            let unsure = kind == "CandidateRejected" && (self.down || self.deleted);
            if !unsure {
                daemon.wait_until(&format!("{kind} is {holds} after {history:?}"), |it| {
                    has(it, kind) == holds
                });
            }
        }
        // Every commit of the branch has a fate.
        let (tip, _) = self.branch.last().unwrap();
        let fate = daemon.get(&format!("/controller/commits/{tip}"));
        if !self.down && !self.deleted {
            assert_eq!(fate.status, 200, "{history:?}");
        }
    }
}

#[test]
fn whatever_happens_the_newest_good_commit_answers() {
    let mut chance = fastrand::Rng::with_seed(SEED);
    let mut model = Model::new();
    let mut history = Vec::new();
    for _ in 0..60 {
        let step = STEPS[chance.usize(..STEPS.len())];
        history.push(step);
        // The daemon must notice the fault before the next step.
        model.step(step);
        model.check(&history);
    }
    if model.down {
        model.step(Step::RemoteUp);
    }
}
