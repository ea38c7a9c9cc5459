#![expect(clippy::disallowed_methods, reason = "files of keys are written")]

use std::path::Path;

use jiff::Timestamp;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{HashAlg, PrivateKey};

use super::*;
use crate::git::object_id::{id_of, oid};

fn key(seed: u8) -> PrivateKey {
    Ed25519Keypair::from_seed(&[seed; 32]).into()
}

/// Writes a file of allowed signers. The options have the check ask when commits were here.
fn allow(path: &Path, keys: &[&PrivateKey]) {
    let line = |key: &&PrivateKey| {
        let key = key.public_key().to_openssh().unwrap();
        format!("* valid-after=\"20200101Z\" {key}\n")
    };
    std::fs::write(path, keys.iter().map(line).collect::<String>()).unwrap();
}

/// Makes a commit that a key signs.
fn commit(repository: &Repository, parents: &[CommitId], key: &PrivateKey) -> CommitId {
    let git = repository.inner();
    let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
    let who = git2::Signature::now("Ada", "ada@example.com").unwrap();
    let parents: Vec<_> = parents.iter().map(|it| git.find_commit(oid(*it)).unwrap()).collect();
    let parents: Vec<_> = parents.iter().collect();
    let content = git.commit_create_buffer(&who, &who, "a commit", &tree, &parents).unwrap();
    let content = std::str::from_utf8(&content).unwrap();
    let signature = key.sign("git", HashAlg::Sha512, content.as_bytes()).unwrap();
    let signature = signature.to_pem(LineEnding::LF).unwrap();
    id_of(git.commit_signed(content, &signature, None).unwrap())
}

#[test]
fn one_content_of_the_keys_decides_about_a_whole_history() {
    let directory = tempfile::tempdir().unwrap();
    let allowed = directory.path().join("allowed");
    git2::Repository::init_bare(directory.path().join("git")).unwrap();
    let repository = Repository::at(&directory.path().join("git")).unwrap();
    let (ada, eve) = (key(1), key(2));
    let first = commit(&repository, &[], &ada);
    let hidden = commit(&repository, &[first], &eve);
    let head = commit(&repository, &[hidden], &ada);
    let verification = Verification {
        mode: VerifyMode::Range,
        allowed_signers: Some(allowed.clone()),
        openpgp_keys: None,
    };
    allow(&allowed, &[&ada]);
    // Eve's key is allowed while the history is checked, and neither before nor after.
    let seen = |it: CommitId| {
        let both = [&ada, &eve];
        allow(&allowed, if it == head { &both } else { &both[..1] });
        Sightings::new(std::iter::empty(), Timestamp::now())
    };
    let keys = verification.watch_keys().read();
    let checked = verification.check(&keys, &repository, head, Base::Verified(&[first]), &seen);
    let fault = checked.unwrap_err().to_string();
    assert!(fault.starts_with(&format!("the commit {hidden} is signed by the key")), "{fault}");
}
