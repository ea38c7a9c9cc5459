//! A remote that is reachable or not, and that others push to at the worst moment.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use super::kill::Fuse;
use crate::git::{FetchError, FetchFailure, OpenError, PushError, ReadError, Repository};
use crate::model::CommitId;
use crate::reconcile::source::Upstream;

/// A remote and the mirror of it; both have the same store of objects. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct SimulatedRemote {
    path: PathBuf,
    state: Arc<Mutex<State>>,
    fuse: Fuse,
}

#[derive(Debug, Default)]
struct State {
    /// Where the branch is at the remote.
    head: Option<CommitId>,
    is_unreachable: bool,
    /// Whether the connection breaks after the remote took a push, for good.
    loses_answers: bool,
    /// The live commit as the mirror names it.
    noted_live: Option<CommitId>,
}

thread_local! {
    /// What happens while the next push is under way.
    static DURING_PUSH: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    /// What happens before the mirror is opened next.
    static BEFORE_OPENING: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

impl SimulatedRemote {
    pub(super) fn new(path: PathBuf, fuse: Fuse) -> Self {
        Self { path, state: Arc::default(), fuse }
    }

    pub(super) fn head(&self) -> Option<CommitId> {
        self.state.lock().unwrap().head
    }

    /// Others move the branch.
    pub(super) fn set_head(&self, commit: CommitId) {
        self.state.lock().unwrap().head = Some(commit);
    }

    pub(super) fn set_reachable(&self, is_reachable: bool) {
        self.state.lock().unwrap().is_unreachable = !is_reachable;
    }

    pub(super) fn is_reachable(&self) -> bool {
        !self.state.lock().unwrap().is_unreachable
    }

    pub(super) fn set_losing_answers(&self, loses: bool) {
        self.state.lock().unwrap().loses_answers = loses;
    }

    /// Has something happen while the next push is under way.
    pub(super) fn during_push(happens: Option<Rc<dyn Fn()>>) {
        DURING_PUSH.set(happens);
    }

    /// Has something happen before the mirror is opened next.
    pub(super) fn before_opening(happens: Option<Rc<dyn Fn()>>) {
        BEFORE_OPENING.set(happens);
    }

    fn reach(&self) -> Result<(), FetchError> {
        self.fuse.burn();
        if self.is_reachable() { Ok(()) } else { Err(unreachable()) }
    }

    fn open(&self) -> Repository {
        Repository::discover(&self.path).unwrap()
    }
}

fn unreachable() -> FetchError {
    FetchError { failure: FetchFailure::ConnectFailed, message: "connection refused".to_owned() }
}

impl Upstream for SimulatedRemote {
    fn fetch_watched(&self, _: Option<&str>) -> Result<CommitId, FetchError> {
        self.reach()?;
        let head = self.head().ok_or_else(unreachable)?;
        super::daemon::set_branch(&self.path, head);
        self.fuse.burn();
        Ok(head)
    }

    fn sync(&self, _: &str, _: CommitId, _: Option<CommitId>) -> Result<(), PushError> {
        Ok(())
    }

    fn repository(&self) -> Result<Repository, OpenError> {
        if let Some(happens) = BEFORE_OPENING.take() {
            happens();
        }
        Ok(self.open())
    }

    fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        _: Option<&str>,
    ) -> Result<(), PushError> {
        assert_eq!(branch, "refs/heads/main");
        self.reach().map_err(PushError::Failed)?;
        let happens = DURING_PUSH.take();
        if let Some(happens) = happens {
            happens();
        }
        {
            let mut state = self.state.lock().unwrap();
            if state.head != expected {
                return Err(PushError::Moved);
            }
            state.head = Some(commit);
            if state.loses_answers {
                return Err(PushError::Unknown(unreachable()));
            }
        }
        self.fuse.burn();
        super::daemon::set_branch(&self.path, commit);
        self.fuse.burn();
        Ok(())
    }

    fn renew(&self, _: Option<&str>, _: &[CommitId]) -> Result<(), FetchError> {
        Err(unreachable())
    }

    fn live(&self) -> Option<CommitId> {
        self.state.lock().unwrap().noted_live
    }

    fn set_live(&self, commit: CommitId) -> Result<(), ReadError> {
        self.fuse.burn();
        self.state.lock().unwrap().noted_live = Some(commit);
        Ok(())
    }

    fn is_temporary(&self) -> bool {
        false
    }
}
