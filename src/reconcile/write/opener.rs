//! Opens pull requests for proposals, in a thread of its own: a forge that hangs keeps no write waiting.
#![expect(
    clippy::disallowed_methods,
    reason = "the time that clients wait is measured by the clock"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::queue::Reply;
use super::request::Written;
use crate::forge::{Forge, PullRequest};
use crate::model::CommitId;
use crate::reconcile::supervise::supervised;

/// How long a client waits for the pull request of its proposal, beside the call that is under way: as long as one
/// call may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many pull requests wait at most.
const WAITING: usize = 1_000;

/// Opens pull requests, one at a time.
pub(super) struct PullRequestOpener {
    forge: Forge,
    queue: Mutex<OpenerQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct OpenerQueue {
    waiting: VecDeque<WaitingPullRequest>,
    stopping: bool,
}

/// A pull request that is not open yet.
struct WaitingPullRequest {
    request: PullRequest,
    /// None if its client does not wait any more.
    client: Option<WaitingClient>,
}

/// A client that waits for the pull request of its proposal.
pub(super) struct WaitingClient {
    branch: String,
    commit: CommitId,
    /// None once it is answered.
    reply: Option<Reply>,
    since: Instant,
}

/// Whether the forge can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForgeHealth {
    Answers,
    Fails,
}

impl WaitingClient {
    pub(super) fn new(branch: String, commit: CommitId, reply: Reply) -> Self {
        Self { branch, commit, reply: Some(reply), since: Instant::now() }
    }

    /// Answers the client, with where its pull request is, if it is known.
    pub(super) fn answer(mut self, url: Option<String>) {
        self.reply(url);
    }

    fn reply(&mut self, url: Option<String>) {
        if let Some(reply) = self.reply.take() {
            let branch = std::mem::take(&mut self.branch);
            reply(Ok(Written::Proposed { branch, commit: self.commit, url }));
        }
    }
}

impl Drop for WaitingClient {
    /// Its branch is pushed, whatever becomes of the pull request.
    fn drop(&mut self) {
        self.reply(None);
    }
}

impl PullRequestOpener {
    pub(super) fn new(forge: Forge) -> Self {
        Self { forge, queue: Mutex::default(), changed: Condvar::new() }
    }

    /// Queues a pull request; its client is answered when it is open, or is not for too long.
    pub(super) fn open(&self, request: PullRequest, client: WaitingClient) {
        let mut queue = self.queue.lock();
        if queue.stopping || queue.waiting.len() >= WAITING {
            drop(queue);
            tracing::warn!(
                branch = client.branch,
                "no pull request is opened: too many wait, or the daemon stops"
            );
            return client.answer(None);
        }
        queue.waiting.push_back(WaitingPullRequest { request, client: Some(client) });
        drop(queue);
        self.changed.notify_all();
    }

    /// Starts the thread. A call that is under way when it is stopped may outlive the writer.
    pub(super) fn spawn(self: &Arc<Self>) {
        let opener = Arc::clone(self);
        let run = move || while supervised("pull-request-opener", || opener.run()).is_none() {};
        let thread = std::thread::Builder::new().name("pull-request-opener".to_owned());
        if let Err(error) = thread.spawn(run) {
            tracing::error!(%error, "no pull requests are opened: cannot start a thread");
            self.stop();
        }
    }

    /// Opens pull requests until it is stopped. Blocking.
    fn run(&self) {
        while let Some(WaitingPullRequest { request, client }) = self.next() {
            let opened = self.forge.open_pull_request(&request);
            let health = match &opened {
                Err(error) if error.retry().is_some() => ForgeHealth::Fails,
                _ => ForgeHealth::Answers,
            };
            let url = opened.unwrap_or_else(|error| {
                tracing::warn!(branch = request.head, %error, "opening the pull request failed");
                None
            });
            if let Some(client) = client {
                client.answer(url);
            }
            let impatient = self.queue.lock().impatient(health, Instant::now());
            for client in impatient {
                client.answer(None);
            }
        }
    }

    /// Ends the thread: clients are answered, and what waits is not opened.
    pub(super) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopping = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        self.changed.notify_all();
        for WaitingPullRequest { request, client } in waiting {
            tracing::warn!(branch = request.head, "no pull request is opened: the daemon stops");
            if let Some(client) = client {
                client.answer(None);
            }
        }
    }

    fn next(&self) -> Option<WaitingPullRequest> {
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, |it| it.waiting.is_empty() && !it.stopping);
        queue.waiting.pop_front()
    }
}

impl OpenerQueue {
    /// Returns the clients that wait no longer after a call: all where the forge fails, else those that waited as
    /// long as a call may take. Their pull requests are opened all the same.
    fn impatient(&mut self, health: ForgeHealth, now: Instant) -> Vec<WaitingClient> {
        let is_impatient = |it: &WaitingClient| match health {
            ForgeHealth::Fails => true,
            ForgeHealth::Answers => now.saturating_duration_since(it.since) >= TIMEOUT,
        };
        let waiting = self.waiting.iter_mut();
        waiting.filter_map(|it| it.client.take_if(|client| is_impatient(client))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_waits_for_the_pull_requests_of_all_before_it() {
        let began = Instant::now();
        let waiting = |seconds: u64| {
            let client = WaitingClient {
                branch: format!("clade/{seconds}"),
                commit: CommitId::from_bytes([1; 20]),
                reply: None,
                since: began + Duration::from_secs(seconds),
            };
            let request = PullRequest {
                title: String::new(),
                body: String::new(),
                head: client.branch.clone(),
                base: "main".to_owned(),
            };
            WaitingPullRequest { request, client: Some(client) }
        };
        let mut queue = OpenerQueue { waiting: [0, 5, 12].map(waiting).into(), stopping: false };
        let mut answered = |health, seconds| -> Vec<String> {
            let now = began + Duration::from_secs(seconds);
            queue.impatient(health, now).into_iter().map(|it| it.branch.clone()).collect()
        };
        assert_eq!(answered(ForgeHealth::Answers, 9), Vec::<String>::new());
        assert_eq!(answered(ForgeHealth::Answers, 11), ["clade/0"]);
        assert_eq!(answered(ForgeHealth::Fails, 12), ["clade/5", "clade/12"]);
        assert_eq!(answered(ForgeHealth::Fails, 60), Vec::<String>::new());
        assert_eq!(queue.waiting.len(), 3, "all are opened later");
    }
}
