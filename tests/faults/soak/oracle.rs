//! What a node must get: computed by the plain path of the library from the commit that the answer names.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use clade::internals::classification::{self, Outcome, Version, classify};
use clade::internals::git::Repository;
use clade::internals::hierarchy::Estate;
use clade::internals::model::Node;
use clade::internals::reconcile::load;

use super::fleet::Fleet;
use super::tally::Tally;

/// How many commits are kept; answers name one of the last few.
const KEPT: usize = 8;

/// An answer of the daemon's that is to be checked.
pub(super) struct Given {
    pub(super) number: u32,
    pub(super) round: u32,
    pub(super) commit: String,
    pub(super) status: u16,
    pub(super) body: String,
    /// The newest generation that was known when the request was sent.
    pub(super) before: u64,
}

struct Commit {
    name: String,
    estate: Estate,
    /// How many commits there are up to it.
    generation: u64,
}

pub(super) struct Oracle<'a> {
    fleet: &'a Fleet,
    repository: Mutex<Repository>,
    newest: AtomicU64,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(fleet: &'a Fleet, path: &Path) -> Self {
        let repository = Mutex::new(Repository::discover(path).unwrap());
        Self { fleet, repository, newest: AtomicU64::new(0) }
    }

    /// Returns the newest generation that an answer has named.
    pub(super) fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    /// Checks answers until their senders are gone.
    pub(super) fn check_all(&self, given: &Receiver<Given>, tally: &Tally) {
        let mut commits = VecDeque::new();
        for given in given {
            match self.check(&mut commits, &given) {
                Ok(()) => tally.count("checked answers"),
                Err(why) => tally.broken(format!(
                    "{why}: {} at {}: {} {}",
                    self.fleet.name(given.number),
                    given.commit,
                    given.status,
                    given.body
                )),
            }
        }
    }

    fn check(
        &self,
        commits: &mut VecDeque<Arc<Commit>>,
        given: &Given,
    ) -> Result<(), &'static str> {
        let commit = self.commit(commits, &given.commit).ok_or("an answer of no commit")?;
        let node = self.fleet.node(given.number, given.round);
        let (status, body) = expected(&commit.estate, &node);
        self.newest.fetch_max(commit.generation, Ordering::SeqCst);
        let is_right = status == given.status && body.is_none_or(|it| it == given.body);
        match is_right {
            false => Err("a wrong answer"),
            true if commit.generation < given.before => {
                Err("an answer that is older than one before")
            }
            true => Ok(()),
        }
    }

    fn commit(&self, commits: &mut VecDeque<Arc<Commit>>, name: &str) -> Option<Arc<Commit>> {
        if let Some(known) = commits.iter().find(|it| it.name == name) {
            return Some(Arc::clone(known));
        }
        let repository = self.repository.lock().unwrap();
        let id = name.parse().ok()?;
        let estate = load(&repository, id, ".").ok()?.estate?;
        let generation = repository.log(id, usize::MAX).ok()?.len() as u64;
        let commit = Arc::new(Commit { name: name.to_owned(), estate, generation });
        commits.push_back(Arc::clone(&commit));
        if commits.len() > KEPT {
            commits.pop_front();
        }
        Some(commit)
    }
}

/// Returns the status, and the body of what is not an error.
fn expected(estate: &Estate, node: &Node) -> (u16, Option<String>) {
    let explanation = classify(estate, node).unwrap();
    match &explanation.outcome {
        Outcome::Classified(result) => {
            let document = classification::classified(&explanation, result, Version::V1);
            (200, Some(document.to_string()))
        }
        Outcome::Conflict(_) => (500, None),
    }
}
