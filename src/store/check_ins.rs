//! The store of check-ins.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use redb::backends::InMemoryBackend;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _,
    TableDefinition,
};
use serde::{Deserialize, Serialize};

use crate::model::{CommitId, Node};

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("check-ins");

/// How long requests are collected before they are written together.
const COLLECT: Duration = Duration::from_millis(200);

/// How many bytes may wait to be written; what comes beyond is not noted.
const WAITING: usize = 64 << 20;

/// The latest classification request of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckIn {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_uuid: Option<String>,
    /// Which commit answered; none where facts were handed in without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The node as it was received.
    pub node: Node,
}

/// A check-in with facts and trusted data as the JSON text that they came as.
#[derive(Clone, Copy, Debug)]
pub struct Received<'r> {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for.
    pub transaction_uuid: Option<&'r str>,
    /// Which commit answered.
    pub commit: Option<CommitId>,
    /// The certname.
    pub name: &'r str,
    /// The facts: the text of an object.
    pub fact: &'r str,
    /// The trusted data: the text of an object.
    pub trusted: &'r str,
}

impl Received<'_> {
    /// Writes what [`CheckIn`] is read from.
    fn to_bytes(self) -> Option<Vec<u8>> {
        let Self { time, transaction_uuid, commit, name, fact, trusted } = self;
        let mut bytes = Vec::with_capacity(fact.len() + trusted.len() + name.len() + 256);
        write!(bytes, "{{\"time\":\"{time}\"").ok()?;
        if let Some(id) = transaction_uuid {
            bytes.extend_from_slice(b",\"transaction_uuid\":");
            serde_json::to_writer(&mut bytes, id).ok()?;
        }
        if let Some(commit) = commit {
            write!(bytes, ",\"commit\":\"{commit}\"").ok()?;
        }
        bytes.extend_from_slice(b",\"node\":{\"name\":");
        serde_json::to_writer(&mut bytes, name).ok()?;
        for part in [",\"fact\":", fact, ",\"trusted\":", trusted, "}}"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        Some(bytes)
    }
}

/// The check-ins cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("the check-ins cannot be {what}: {reason}")]
pub struct StoreError {
    what: &'static str,
    reason: String,
}

/// The latest classification request of each node.
#[derive(Clone, Debug)]
pub struct CheckIns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    database: Database,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    /// What came since the last write.
    fresh: BTreeMap<String, Arc<Vec<u8>>>,
    /// What is being written.
    writing: BTreeMap<String, Arc<Vec<u8>>>,
    bytes: usize,
    stopping: bool,
}

fn error<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> StoreError {
    move |reason| StoreError { what, reason: reason.to_string() }
}

impl CheckIns {
    /// Opens the store in a file, or keeps check-ins in memory without one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be used.
    pub fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let database = match path {
            Some(path) => Database::create(path).map_err(error("opened"))?,
            None => Database::builder()
                .create_with_backend(InMemoryBackend::new())
                .map_err(error("opened"))?,
        };
        let write = database.begin_write().map_err(error("opened"))?;
        write.open_table(TABLE).map_err(error("opened"))?;
        write.commit().map_err(error("opened"))?;
        let inner = Inner { database, waiting: Mutex::default(), changed: Condvar::new() };
        Ok(Self(Arc::new(inner)))
    }

    /// Notes a check-in; it is written soon, and read at once.
    pub fn note(&self, check_in: &CheckIn) {
        let Ok(bytes) = serde_json::to_vec(check_in) else { return };
        self.put(&check_in.node.name, bytes);
    }

    /// Notes a check-in whose facts were not read; it is written soon, and read at once.
    pub fn note_received(&self, received: &Received<'_>) {
        if let Some(bytes) = received.to_bytes() {
            self.put(received.name, bytes);
        }
    }

    fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut waiting = self.0.waiting();
        if waiting.bytes + bytes.len() > WAITING {
            tracing::debug!("a check-in is not noted: too many wait to be written");
            return;
        }
        // Whoever writes sleeps until there is something, and then waits for more: waking him each
        // time would cost more than all the rest.
        let is_first = waiting.fresh.is_empty();
        waiting.bytes += bytes.len();
        let before = match waiting.fresh.get_mut(name) {
            Some(known) => Some(std::mem::replace(known, Arc::new(bytes))),
            None => waiting.fresh.insert(name.to_owned(), Arc::new(bytes)),
        };
        waiting.bytes -= before.as_ref().map_or(0, |it| it.len());
        drop(waiting);
        // Giving back so much memory takes time in which others can go on.
        drop(before);
        if is_first {
            self.0.changed.notify_one();
        }
    }

    /// Returns the check-in of a node. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<CheckIn>, StoreError> {
        {
            let waiting = self.0.waiting();
            let found = waiting.fresh.get(name).or_else(|| waiting.writing.get(name));
            if let Some(bytes) = found {
                return read(bytes).map(Some);
            }
        }
        let reading = self.0.database.begin_read().map_err(error("read"))?;
        let table = reading.open_table(TABLE).map_err(error("read"))?;
        let found = table.get(name).map_err(error("read"))?;
        found.map(|it| read(it.value())).transpose()
    }

    /// Returns check-ins by name, beginning after a number of them. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn page(&self, offset: usize, limit: usize) -> Result<Vec<CheckIn>, StoreError> {
        self.flush()?;
        let reading = self.0.database.begin_read().map_err(error("read"))?;
        let table = reading.open_table(TABLE).map_err(error("read"))?;
        let all = table.iter().map_err(error("read"))?;
        all.skip(offset)
            .take(limit)
            .map(|entry| {
                let (_, value) = entry.map_err(error("read"))?;
                read(value.value())
            })
            .collect()
    }

    /// Calls `each` with every check-in, by name. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn for_each(&self, mut each: impl FnMut(CheckIn)) -> Result<(), StoreError> {
        self.flush()?;
        let reading = self.0.database.begin_read().map_err(error("read"))?;
        let table = reading.open_table(TABLE).map_err(error("read"))?;
        let all = table.iter().map_err(error("read"))?;
        for entry in all {
            let (_, value) = entry.map_err(error("read"))?;
            each(read(value.value())?);
        }
        Ok(())
    }

    /// Returns how many nodes have checked in. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.flush()?;
        let reading = self.0.database.begin_read().map_err(error("read"))?;
        let table = reading.open_table(TABLE).map_err(error("read"))?;
        table.len().map_err(error("read"))
    }

    /// Writes what comes in until stopped. Blocking.
    pub fn keep_writing(&self) {
        loop {
            {
                let waiting = self.0.waiting();
                let idle = |it: &mut Waiting| it.fresh.is_empty() && !it.stopping;
                let waiting = self
                    .0
                    .changed
                    .wait_while(waiting, idle)
                    .unwrap_or_else(PoisonError::into_inner);
                let more = |it: &mut Waiting| !it.stopping;
                let (waiting, _) = self
                    .0
                    .changed
                    .wait_timeout_while(waiting, COLLECT, more)
                    .unwrap_or_else(PoisonError::into_inner);
                if waiting.stopping && waiting.fresh.is_empty() {
                    return;
                }
            }
            if let Err(error) = self.flush() {
                tracing::warn!(%error, "check-ins are lost");
            }
        }
    }

    /// Ends the writing when what waits is written.
    pub fn stop(&self) {
        self.0.waiting().stopping = true;
        self.0.changed.notify_all();
    }

    /// Writes what waits.
    fn flush(&self) -> Result<(), StoreError> {
        let batch = {
            let mut waiting = self.0.waiting();
            if waiting.fresh.is_empty() {
                return Ok(());
            }
            waiting.bytes = 0;
            let fresh = std::mem::take(&mut waiting.fresh);
            waiting.writing.extend(fresh.clone());
            fresh
        };
        let written = self.0.write(&batch);
        let mut waiting = self.0.waiting();
        waiting.writing.retain(|name, bytes| batch.get(name) != Some(bytes));
        written
    }
}

impl Inner {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, batch: &BTreeMap<String, Arc<Vec<u8>>>) -> Result<(), StoreError> {
        let write = self.database.begin_write().map_err(error("written"))?;
        {
            let mut table = write.open_table(TABLE).map_err(error("written"))?;
            for (name, bytes) in batch {
                table.insert(name.as_str(), bytes.as_slice()).map_err(error("written"))?;
            }
        }
        write.commit().map_err(error("written"))
    }
}

fn read(bytes: &[u8]) -> Result<CheckIn, StoreError> {
    serde_json::from_slice(bytes).map_err(error("read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check_in(name: &str, fact: i64) -> CheckIn {
        let facts = json!({"n": fact, "f": 1.50});
        let mut node = Node::named(name);
        node.fact = facts.as_object().unwrap().clone();
        CheckIn { time: Timestamp::UNIX_EPOCH, transaction_uuid: None, commit: None, node }
    }

    #[test]
    fn the_latest_check_in_of_a_node_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("check-ins");
        let store = CheckIns::open(Some(&path)).unwrap();
        store.note(&check_in("b", 1));
        store.note(&check_in("a", 1));
        store.note(&check_in("b", 2));
        // At once, before anything is written.
        assert_eq!(store.get("b").unwrap(), Some(check_in("b", 2)));
        assert_eq!(store.get("c").unwrap(), None);
        assert_eq!(store.page(0, 10).unwrap(), [check_in("a", 1), check_in("b", 2)]);
        assert_eq!(store.page(1, 1).unwrap(), [check_in("b", 2)]);
        store.note(&check_in("b", 3));
        assert_eq!(store.get("b").unwrap(), Some(check_in("b", 3)));
        assert_eq!(store.count().unwrap(), 2);
        drop(store);
        let store = CheckIns::open(Some(&path)).unwrap();
        let mut names = Vec::new();
        store.for_each(|it| names.push((it.node.name.clone(), it.node.fact["n"].clone()))).unwrap();
        assert_eq!(json!(names), json!([["a", 1], ["b", 3]]));
    }

    #[test]
    fn a_check_in_is_the_same_with_and_without_its_facts_read() {
        let store = CheckIns::open(None).unwrap();
        for (transaction, commit) in
            [(Some("t\"1"), "0123456789012345678901234567890123456789".parse().ok()), (None, None)]
        {
            let expected = CheckIn {
                transaction_uuid: transaction.map(str::to_owned),
                commit,
                ..check_in("n\"é", 5)
            };
            store.note_received(&Received {
                time: expected.time,
                transaction_uuid: transaction,
                commit,
                name: "n\"é",
                fact: "{\"n\": 4, \"n\" : 5,\n\"f\":1.5}",
                trusted: "{}",
            });
            assert_eq!(store.get("n\"é").unwrap(), Some(expected));
        }
    }

    #[test]
    fn what_waits_is_written_before_the_end() {
        let store = CheckIns::open(None).unwrap();
        let writer = std::thread::spawn({
            let store = store.clone();
            move || store.keep_writing()
        });
        store.note(&check_in("a", 1));
        store.stop();
        writer.join().unwrap();
        assert!(store.0.waiting().fresh.is_empty());
        assert_eq!(store.get("a").unwrap(), Some(check_in("a", 1)));
    }
}
