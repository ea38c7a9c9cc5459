//! The daemon's own parts, called one after the other instead of by threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::disk::SimulatedDisk;
use super::remote::SimulatedRemote;
use crate::changeset::{Operation, Scope, WriteGrant};
use crate::git::{NewCommit, Person, Repository, Verification};
use crate::model::{Budget, CommitId, GroupId};
use crate::reconcile::clock::Now;
use crate::reconcile::journal::Journal;
use crate::reconcile::policy::Policy;
use crate::reconcile::settings::Settings;
use crate::reconcile::source::Target;
use crate::reconcile::stages::Stages;
use crate::reconcile::write::{
    RightsCheck, WriteError, WriteMode, WriteRequest, WriteSettings, Writer, Written,
};

/// A daemon between its start and its end.
pub(super) struct Daemon {
    pub(super) stages: Arc<Stages>,
    pub(super) writer: Writer,
}

impl Daemon {
    /// Starts it as after a kill: with the journal on the disk and what the mirror has.
    pub(super) fn start(
        disk: &SimulatedDisk,
        remote: &SimulatedRemote,
        policy: Policy,
    ) -> std::io::Result<Self> {
        let disk = Box::new(disk.clone());
        let journal = Journal::open_on(disk, Path::new("/data/journal"), Now::read())?;
        let settings = Settings {
            target: Target::Remote(Box::new(remote.clone())),
            address: "simulated".to_owned(),
            branch: Some("main".to_owned()),
            path: ".".to_owned(),
            interval: Duration::from_mins(1),
            data: None,
            policy,
            transport: Box::default(),
            budget: Budget::DEFAULT,
            snapshot_cache: 64 << 20,
            verification: Verification::default(),
            reporting: None,
        };
        let stages = Stages::compose(settings, journal, Arc::default(), Now::read());
        stages.recorder.check_storage();
        stages.recovery().run();
        let settings = WriteSettings {
            mode: WriteMode::Commit,
            committer: person("clade"),
            trailers: Vec::new(),
            retries: 2,
            forge: None,
        };
        let writer = Writer::new(settings, stages.writer_parts());
        Ok(Self { stages: Arc::new(stages), writer })
    }

    /// Makes a group with this name through the API.
    pub(super) fn write(&self, name: &str, id: u128) -> Result<Written, WriteError> {
        let request = WriteRequest {
            operation: Operation::Create {
                id: GroupId::from_random(id),
                body: serde_json::json!({
                    "name": name, "parent": GroupId::ROOT, "classes": {},
                }),
            },
            grants: vec![WriteGrant { actor: Some("ada".to_owned()), scope: Scope::default() }],
            rights: RightsCheck::default(),
            line: "POST /v1/groups".to_owned(),
            fingerprint: name.to_owned(),
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        self.writer.submit(request, move |done| sender.send(done).unwrap());
        self.writer.run_waiting();
        receiver.try_recv().expect("the writer answers each write that it takes")
    }
}

fn person(name: &str) -> Person {
    Person { name: name.to_owned(), email: format!("{name}@example.com") }
}

/// Points the mirror's branch at a commit.
pub(super) fn set_branch(path: &Path, head: CommitId) {
    let repository = git2::Repository::open(path).unwrap();
    let head = git2::Oid::from_bytes(head.as_bytes()).unwrap();
    repository.reference("refs/heads/main", head, true, "simulation").unwrap();
}

/// Makes the repository with its first commit.
pub(super) fn create_repository(path: &Path) -> CommitId {
    let mut options = git2::RepositoryInitOptions::new();
    let repository =
        git2::Repository::init_opts(path, options.bare(true).initial_head("main")).unwrap();
    let tree = repository.treebuilder(None).unwrap().write().unwrap();
    let author = git2::Signature::now("ada", "ada@example.com").unwrap();
    let tree = repository.find_tree(tree).unwrap();
    let first = repository.commit(None, &author, &author, "First", &tree, &[]).unwrap();
    CommitId::from_bytes(first.as_bytes().try_into().unwrap())
}

/// Commits as a colleague with a clone does.
pub(super) fn commit(
    repository: &Repository,
    parent: CommitId,
    number: u32,
    is_valid: bool,
) -> CommitId {
    let parent_name = if is_valid { "All Nodes" } else { "Nowhere" };
    let text = format!("name: Other\nparent: {parent_name}\nclasses: {{c{number}: {{}}}}\n");
    let files = BTreeMap::from([("groups/other.yaml".to_owned(), Some(text))]);
    let author = person("grace");
    let draft = NewCommit {
        parent,
        files: &files,
        author: &author,
        committer: &author,
        message: "Change the group Other",
    };
    repository.write_commit(&draft).unwrap()
}
