//! What is read of a store at intervals, whatever is asked.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::CheckIns;
use crate::model::CommitId;
use crate::store::error::StoreError;
use crate::store::location::StoreLocation;
use crate::store::replicas::{ChangedAnswers, StoreSize, StoredReplica};

impl CheckIns {
    /// Returns what the store is: `memory`, `sqlite` or `postgres`.
    pub fn kind(&self) -> &'static str {
        match self.0.file.settings.location {
            StoreLocation::Memory => "memory",
            StoreLocation::Sqlite(_) => "sqlite",
            StoreLocation::Postgres(_) => "postgres",
        }
    }

    /// Has a daemon say that it is there, and returns all that share the store; those that were not seen since a
    /// time are removed. Nothing else shares a file or memory. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    pub fn note_replica(
        &self,
        own: &StoredReplica,
        expired: Timestamp,
    ) -> Result<Vec<StoredReplica>, StoreError> {
        let database = self.0.file.database()?;
        if !database.is_server() {
            return Ok(vec![own.clone()]);
        }
        database.note_replica(own, expired).map_err(|error| self.0.file.fail(&database, error))
    }

    /// Removes a daemon that stops. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    pub fn forget_replica(&self, id: &str) -> Result<(), StoreError> {
        let database = self.0.file.database()?;
        if !database.is_server() {
            return Ok(());
        }
        database.forget_replica(id).map_err(|error| self.0.file.fail(&database, error))
    }

    /// Returns how much is kept. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn size(&self) -> Result<StoreSize, StoreError> {
        let database = self.0.file.database()?;
        let size = database.size().map_err(|error| self.0.file.fail(&database, error))?;
        Ok(StoreSize { nodes: size.nodes, bytes: size.bytes })
    }

    /// Counts nodes by the commit that answered them last. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn commit_counts(&self) -> Result<BTreeMap<CommitId, u64>, StoreError> {
        let database = self.0.file.database()?;
        database.commit_counts().map_err(|error| self.0.file.fail(&database, error))
    }

    /// Counts the changes of answers a day, from the day of a time until now. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn changes_by_day(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ChangedAnswers>, StoreError> {
        let database = self.0.file.database()?;
        database.changes_by_day(since, now).map_err(|error| self.0.file.fail(&database, error))
    }
}
