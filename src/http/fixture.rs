//! A daemon without a listener, for tests.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::access::{Access, Role};
use super::dispatch::Dispatcher;
use super::enc_cache::EncCache;
use super::live_status::LiveStatus;
use super::node_lookup::FactsPolicy;
use super::privacy::PrivacyPolicy;
use super::router::{RouteSet, dispatcher};
use super::server::RequestHandler as _;
use super::state::{AppState, Services};
use crate::git::Verification;
use crate::model::{Budget, CommitId, hex};
use crate::overview::{Overview, OwnReplica};
use crate::reconcile::{Controller, Policy, Settings, Target};
use crate::store::{CheckIns, ReplicaName, StoreLimits, StoreLocation, StoreSettings};
use crate::telemetry::Metrics;

/// A daemon that follows a repository of two commits and knows a token of each role.
pub(super) struct Fixture {
    pub(super) dispatcher: Dispatcher,
    pub(super) state: AppState,
    /// The commits, oldest first: the last one is live.
    pub(super) commits: [CommitId; 2],
    _directory: tempfile::TempDir,
}

impl Fixture {
    pub(super) fn new(set: RouteSet) -> Self {
        Self::of(set, ["name: A\n", "name: A\nvariables: {x: 1}\n"], PrivacyPolicy::default())
    }

    /// Makes a daemon that follows commits of one group.
    pub(super) fn of(set: RouteSet, groups: [&str; 2], privacy: PrivacyPolicy) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let commits = groups.map(|group| commit(directory.path(), group));
        let access = Arc::new(access(directory.path()));
        let metrics: Arc<Metrics> = Arc::default();
        let controller = Controller::start(settings(directory.path()), Arc::clone(&metrics));
        let limits = StoreLimits {
            nodes: 10,
            bytes: 1 << 20,
            forget_after: std::time::Duration::MAX,
            history: std::time::Duration::MAX,
        };
        let store = StoreSettings {
            location: StoreLocation::Memory,
            is_own_place: true,
            former: None,
            cache: 1 << 20,
            limits,
        };
        let own = OwnReplica {
            id: "1".to_owned(),
            name: ReplicaName::of("here"),
            started_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let services = Arc::new(Services {
            controller: controller.unwrap(),
            check_ins: CheckIns::new(store, Arc::clone(&metrics)),
            metrics,
            access,
            webhooks: Arc::default(),
            writer: None,
            puppet_server: None,
            facts: FactsPolicy::default(),
            enc_cache: EncCache::default(),
            privacy,
            decisions: None,
            overview: Arc::new(Overview::new(own)),
            live: LiveStatus::until(CancellationToken::new()),
        });
        let state = AppState::new(Arc::clone(&services));
        Self { dispatcher: dispatcher(services, set), state, commits, _directory: directory }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Body>) -> Response {
        self.dispatcher.handle(request).await
    }
}

/// Commits the file of one group, and all else that is committed stays.
fn commit(directory: &Path, group: &str) -> CommitId {
    let repository = git2::Repository::init(directory).unwrap();
    let mut index = repository.index().unwrap();
    let entry = git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: git2::Oid::ZERO_SHA1,
        flags: 0,
        flags_extended: 0,
        path: b"groups/a.yaml".to_vec(),
    };
    index.add_frombuffer(&entry, group.as_bytes()).unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::new("a", "a@example.com", &git2::Time::new(0, 0)).unwrap();
    let head = repository.head().ok().and_then(|it| it.peel_to_commit().ok());
    let parents: Vec<&git2::Commit<'_>> = head.iter().collect();
    let id = repository.commit(Some("HEAD"), &author, &author, "a change", &tree, &parents);
    id.unwrap().to_string().parse().unwrap()
}

/// Writes tokens, one of each role and with its name, and reads them.
#[expect(clippy::disallowed_methods, reason = "a file to read")]
fn access(directory: &Path) -> Access {
    let entry = |role: Role| {
        let hash = hex(&Sha256::digest(role.as_str()));
        format!("- name: t\n  sha256: {hash}\n  roles: [{}]\n", role.as_str())
    };
    let path = directory.join("tokens.yaml");
    std::fs::write(&path, Role::ALL.map(entry).concat()).unwrap();
    Access::new(Some(path), true, None, false).unwrap()
}

fn settings(repository: &Path) -> Settings {
    Settings {
        target: Target::Local(repository.to_owned()),
        transport: Box::default(),
        address: String::new(),
        branch: None,
        path: ".".to_owned(),
        interval: std::time::Duration::from_hours(1),
        data: None,
        policy: Policy::default(),
        budget: Budget::DEFAULT,
        snapshot_cache: 1 << 20,
        verification: Verification::default(),
        reporting: None,
    }
}
