//! Where the history of a shallow repository of this machine ended when it was fetched from: once it is deepened, what
//! comes before is fetched as well.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use git2::Oid;

use super::local::Source;
use crate::config::{Durability, replace_file};
use crate::git::commit_links::{CommitLinks, SHALLOW, commits_in};
use crate::git::options::MirrorOptions;
use crate::git::remote::Remote;
use crate::git::transport::Attempt;

/// The file of the mirror that names the commits where the source ended.
const FILE: &str = "clade-source-ends";

/// Where the source of a mirror ends, and where it ended at the last fetch.
pub(super) struct SourceEnds {
    file: PathBuf,
    before: BTreeSet<Oid>,
    now: BTreeSet<Oid>,
}

impl SourceEnds {
    /// Reads them, before anything is copied: what is deepened meanwhile is found out at the next fetch. Where those of
    /// the source cannot be read, that one finds out all of it.
    pub(super) fn read(source: &Source, mirror: &git2::Repository) -> Option<Self> {
        let file = mirror.path().join(FILE);
        let now = commits_in(&source.directory().join(SHALLOW)).ok()?;
        let before = commits_in(&file).unwrap_or_else(|error| {
            let file = file.display();
            tracing::warn!(%error, %file, "where the history of the repository ended cannot be read");
            BTreeSet::new()
        });
        Some(Self { file, before, now })
    }

    /// Returns the commits that the source has by now, which come before those that the mirror has.
    fn regained(&self, source: &Source, mirror: &git2::Repository) -> Vec<Oid> {
        let Ok(here) = mirror.odb() else { return Vec::new() };
        let ended = self.before.difference(&self.now);
        let parents = ended.filter_map(|it| Some(CommitLinks::read(&here, *it).ok()?.parents));
        parents.flatten().filter(|it| !here.exists(*it) && source.has(*it)).collect()
    }

    fn note(&self) -> io::Result<()> {
        if self.now.is_empty() {
            return match std::fs::remove_file(&self.file) {
                // Refs beside the branch are fetched by another thread.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            };
        }
        let lines: Vec<String> = self.now.iter().map(|it| format!("{it}\n")).collect();
        replace_file(&self.file, lines.concat().as_bytes(), Durability::Synced)
    }

    /// Copies what comes before the commits where the source ended at the last fetch and ends no more.
    pub(super) fn follow(
        &self,
        source: &Source,
        mirror: &git2::Repository,
        remote: &Remote,
        options: &MirrorOptions,
    ) {
        if self.before == self.now {
            return;
        }
        let regained = self.regained(source, mirror);
        if !regained.is_empty() {
            let attempt = Attempt::fetch(remote, options);
            if let Err(error) = source.copy(&attempt, options.objects, mirror, &regained) {
                if options.interrupt.is_interrupted() {
                    return;
                }
                // Each try may take as long as a fetch may, before a new commit is followed: so there is one.
                tracing::warn!(%error, "older commits of a repository that was deepened are not fetched");
            }
        }
        if let Err(error) = self.note() {
            let file = self.file.display();
            tracing::warn!(%error, %file, "where the history of the repository ends is not noted");
        }
    }
}
