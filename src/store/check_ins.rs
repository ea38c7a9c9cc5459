//! The store of check-ins, as the rest of the crate sees it.

mod sampled;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::check_in::{
    CheckIn, CheckInOrigin, KnownRow, ListedCheckIn, Noted, QueuedRow, Received, Row, Stored,
};
use super::counts::{FleetVersion, StoredNodeCounts};
use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::file::{StoreFile, StoreHealth};
use super::listing::KnownState;
use super::location::StoreLocation;
use super::node_name::check_node_name;
use super::pending::Pending;
use super::queue::{Fresh, Receipt};
use super::reading::StoredRow;
use super::scan::{SCANNED_TOGETHER, ScanExtent, ScannedNode};
use super::settings::StoreSettings;
use super::transition::read_commit;
use super::view::{NodeFilter, NodePage, NodeRange, StoredChange, StoredNode};
use super::writer::StoreWriter;
use crate::facts::RowRoom;
use crate::mentioned::MentionedPaths;
use crate::model::{GroupId, NODE_VALUES, has_more_values};
use crate::telemetry::{DropReason, Metrics};

/// The timeout for room in the queue, and then for the disk.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The bytes from which on a row is large: a read waits for memory before it reads such a row.
pub(crate) const LARGE_ROW: usize = 256 << 10;

/// How many bytes of rows are read at a time: a list that is being sent holds on to them.
const READ: usize = 256 << 10;

/// How many JSON values a row may have: those of a request, and what stands around them.
const ROW_VALUES: usize = NODE_VALUES + 100;

/// How long check-ins are collected before they are written together.
const COLLECT: Duration = Duration::from_secs(1);
const COLLECT_FOR_OTHERS: Duration = Duration::from_millis(200);

/// How many bytes of check-ins are kept in memory, where there is no file.
const IN_MEMORY: u64 = 64 << 20;

/// The latest classification request of each node.
#[derive(Clone, Debug)]
pub struct CheckIns(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    file: Arc<StoreFile>,
    pending: Arc<Pending>,
    writer: StoreWriter,
    metrics: Arc<Metrics>,
}

impl CheckIns {
    /// Makes a store, which [`Self::keep_writing`] opens.
    pub fn new(mut settings: StoreSettings, metrics: Arc<Metrics>) -> Self {
        if settings.location == StoreLocation::Memory {
            settings.limits.bytes = settings.limits.bytes.min(IN_MEMORY);
        }
        super::sql::start();
        let collect = match settings.location {
            // Each transaction is a wait for the disk.
            StoreLocation::Memory | StoreLocation::Sqlite(_) => COLLECT,
            // Other daemons are asked about nodes that check in here.
            StoreLocation::Postgres(_) => COLLECT_FOR_OTHERS,
        };
        let pending = Arc::new(Pending::new(collect));
        let file = StoreFile::new(settings, Arc::clone(&pending), Arc::clone(&metrics));
        let file = Arc::new(file);
        let writer =
            StoreWriter::new(Arc::clone(&file), Arc::clone(&pending), Arc::clone(&metrics));
        Self(Arc::new(Inner { file, pending, writer, metrics }))
    }

    /// Returns whether what is kept outlives the process.
    pub fn is_durable(&self) -> bool {
        self.0.file.settings.location != StoreLocation::Memory
    }

    /// Returns a number that is another one when more was removed than clients of this daemon deleted: what is known of a
    /// node stays until it checks in, as long as the number stays. None where other daemons write to the store too.
    pub fn removals(&self) -> Option<u64> {
        match self.0.file.settings.location {
            StoreLocation::Memory | StoreLocation::Sqlite(_) => Some(self.0.file.removals()),
            StoreLocation::Postgres(_) => None,
        }
    }

    /// Notes a check-in; it is written soon, and read at once. What cannot be kept is counted.
    pub fn note<'n>(&self, check_in: impl Into<Noted<'n>>) {
        let check_in = check_in.into();
        if let Some(row) = Row::of(&check_in) {
            self.0.note(&check_in.node.name, row.body.len(), || row.into());
        }
    }

    /// Notes a check-in whose facts were not read; it is written soon, and read at once.
    pub fn note_received(&self, received: Received<'_>) {
        // Under load most are dropped, and nothing is copied for those.
        self.0.note(received.name, received.bytes(), || received.into());
    }

    /// Keeps a check-in: it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not known to be on disk.
    pub async fn keep(&self, received: Received<'_>) -> Result<(), StoreError> {
        let name = received.name;
        check_name(name)?;
        if let Some(error) = self.0.file.state().health.failing.clone() {
            return Err(error);
        }
        let room = self.0.pending.room(received.bytes());
        let room = tokio::time::timeout(TIMEOUT, room).await.ok().flatten();
        let room = room.ok_or_else(|| {
            StoreError::new(
                StoreFault::Busy,
                "written",
                "too many wait to be written; try again soon",
            )
        })?;
        let (receipt, written) = oneshot::channel();
        self.0.put(name, received.into(), room, Some(receipt));
        match tokio::time::timeout(TIMEOUT, written).await {
            Ok(Ok(written)) => written,
            Ok(Err(_)) => Err(StoreError::new(StoreFault::Io, "written", "the daemon stops")),
            Err(_) => Err(StoreError::new(
                StoreFault::Io,
                "written",
                format!("{} did not answer for {} s", self.0.medium(), TIMEOUT.as_secs()),
            )),
        }
    }

    /// Returns what is known of a node. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    #[cfg(test)]
    pub fn get(&self, name: &str) -> Result<Stored, StoreError> {
        self.get_within(name, &crate::facts::Unlimited)
    }

    /// Returns what is known of a node, if there is room for what its row takes. A check-in that waits to be written is read
    /// where it waits, so that an answer never waits for the disk; where other daemons write too, beside what is stored.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn get_within(&self, name: &str, room: &dyn RowRoom) -> Result<Stored, StoreError> {
        let imports = self.0.file.imports();
        let mut check_in = self.0.latest(name, room)?;
        if imports && !self.0.file.imports() {
            // It may have been imported since it was looked for.
            check_in = self.0.latest(name, room)?;
        }
        let lost = self.0.file.lost(name, check_in.as_ref());
        Ok(Stored { check_in, lost })
    }

    /// Returns why a check-in may be less than what was known of its node, if it may.
    pub fn lost(&self, check_in: &CheckIn) -> Option<StoreError> {
        self.0.file.lost(&check_in.node.name, Some(check_in))
    }

    /// Returns the name at an offset, in the order of names. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn name_at(&self, offset: usize) -> Result<Option<String>, StoreError> {
        self.0.query(|it| it.name_at(offset))
    }

    /// Returns some check-ins by name, from a name on; none after the last. Small rows come as many
    /// as fit into [`READ`], a large one comes alone, once there is room for it. A row that cannot be
    /// read is an error of its own. Check-ins that wait to be written are left out: [`Self::name_at`] and
    /// [`Self::for_each`] have them written once, before the first of many calls. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn some_from(
        &self,
        name: &str,
        room: &dyn RowRoom,
    ) -> Result<impl Iterator<Item = ListedCheckIn> + Send + use<>, StoreError> {
        let database = self.0.file.database()?;
        let failed = |error| self.0.file.fail(&database, error);
        let (mut large, mut from) = (None, name.to_owned());
        while let Some((name, bytes)) = database.first_from(&from).map_err(failed)?
            && bytes >= LARGE_ROW
        {
            large = self.0.read_large(&database, &name, bytes, room)?;
            if large.is_some() {
                break;
            }
            // The node was forgotten after its name was read; the next large row must not wait for memory
            // that this thread holds.
            room.release();
            from = after(&name);
        }
        let rows = match large {
            Some(_) => Vec::new(),
            None => database.rows(&from, READ).map_err(failed)?,
        };
        let small = rows.into_iter();
        let small = small.map(|row| ListedCheckIn { check_in: read(&row), name: row.name });
        Ok(large.into_iter().chain(small))
    }

    /// Calls `each` with every check-in, by name; `each` keeps no large one. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or there is no room.
    pub fn for_each(
        &self,
        room: &dyn RowRoom,
        mut each: impl FnMut(ListedCheckIn),
    ) -> Result<(), StoreError> {
        self.0.writer.flush()?;
        let mut from = Some(String::new());
        while let Some(name) = from.take() {
            for listed in self.some_from(&name, room)? {
                from = Some(after(&listed.name));
                each(listed);
            }
            room.release();
        }
        Ok(())
    }

    /// Returns nodes of a list by name, and how many nodes the whole list has. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn nodes(&self, filter: &NodeFilter, range: NodeRange) -> Result<NodePage, StoreError> {
        self.0.query(|it| it.nodes(filter, range))
    }

    /// Counts nodes by what they got last: those not seen since a time, and changes since another. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn counts(
        &self,
        silent: Timestamp,
        moved: Timestamp,
    ) -> Result<StoredNodeCounts, StoreError> {
        self.0.query(|it| it.counts(silent, moved))
    }

    /// Counts the nodes whose last answer has a group, for each group; none for those that only answers since a
    /// time had. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn members(
        &self,
        matched_since: Option<Timestamp>,
    ) -> Result<BTreeMap<GroupId, u64>, StoreError> {
        self.0.query(|it| it.members(matched_since))
    }

    /// Returns which nodes there are, as one value. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn fleet_version(&self) -> Result<FleetVersion, StoreError> {
        self.0.query(Database::fleet_version)
    }

    /// Returns those of some names that no node has, and which nodes there were. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn unknown(
        &self,
        names: &[Arc<str>],
    ) -> Result<(BTreeSet<String>, FleetVersion), StoreError> {
        let (possible, impossible): (Vec<&str>, Vec<&str>) =
            names.iter().map(AsRef::as_ref).partition(|it| check_name(it).is_ok());
        let (mut unknown, version) = self.0.query(|it| it.unknown(&possible))?;
        unknown.extend(impossible.into_iter().map(str::to_owned));
        Ok((unknown, version))
    }

    /// Returns all that is known of a node but its history, if there is room for it. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, there is no room, or a damaged file may have more.
    pub fn node(&self, name: &str, room: &dyn RowRoom) -> Result<Option<StoredNode>, StoreError> {
        self.0.writer.flush()?;
        let Some(check_in) = self.get_within(name, room)?.whole()? else { return Ok(None) };
        let state = self.0.query_written(|it| it.state(name))?;
        let Some(KnownState { last_seen, commit, answer }) = state else { return Ok(None) };
        let CheckIn { transaction_uuid, node, .. } = check_in;
        let commit = commit.as_deref().and_then(read_commit);
        Ok(Some(StoredNode { node, last_seen, transaction_uuid, commit, answer }))
    }

    /// Returns changes of a node's answers, the newest first, from before a time. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn history(
        &self,
        name: &str,
        limit: usize,
        before: Option<Timestamp>,
    ) -> Result<Vec<StoredChange>, StoreError> {
        if check_name(name).is_err() {
            return Ok(Vec::new());
        }
        self.0.query(|it| it.history(name, limit, before))
    }

    /// Deletes all that the store has of a node; returns whether it was known. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not known to be deleted.
    pub fn forget_node(&self, name: &str) -> Result<bool, StoreError> {
        if check_name(name).is_err() {
            return Ok(false);
        }
        self.0.writer.forget_node(name)
    }

    /// Returns an error if a file beside the store may hold data of a node that was deleted from it: a damaged one that is put
    /// aside, or that of a former version.
    pub fn remains(&self, name: &str) -> Option<StoreError> {
        check_name(name).ok().and_then(|()| self.0.file.remains(name))
    }

    /// Calls `each` with all nodes, some at a time, by name: with the facts that rules mention, where those
    /// are kept apart, and else with all facts. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn scan(
        &self,
        paths: &MentionedPaths,
        extent: ScanExtent,
        mut each: impl FnMut(Vec<ScannedNode>),
    ) -> Result<(), StoreError> {
        self.0.query(|database| {
            let covering = database.covering(paths)?;
            let mut last: Option<String> = None;
            let mut left = extent.nodes();
            while left > 0 {
                let (after, most) = (last.as_deref(), left.min(SCANNED_TOGETHER));
                let nodes = database.scan(after, most, &covering, LARGE_ROW)?;
                let Some(end) = nodes.last() else { return Ok(()) };
                last = Some(end.name.clone());
                left -= nodes.len();
                each(nodes);
            }
            Ok(())
        })
    }

    /// Returns whether nodes may be incomplete, since a damaged file is put aside.
    pub fn may_be_incomplete(&self) -> bool {
        self.0.file.put_aside().is_some()
    }

    /// Opens the store and writes what comes in until stopped; calls `tell` when something is wrong
    /// and when it is well again. Blocking.
    pub fn keep_writing(&self, tell: &dyn Fn(&StoreHealth)) {
        self.0.writer.keep_writing(tell);
    }

    /// Ends the writing when what waits is written.
    pub fn stop(&self) {
        self.0.pending.stop();
    }
}

/// Returns the first name that can stand behind another.
pub(crate) fn after(name: &str) -> String {
    format!("{name}\0")
}

fn admit(is_admitted: bool) -> Result<(), StoreError> {
    let reason = "too many large nodes are read; try again soon";
    is_admitted.then_some(()).ok_or_else(|| StoreError::new(StoreFault::Busy, "read", reason))
}

/// Reads a row.
fn read(row: &StoredRow) -> Result<CheckIn, StoreError> {
    parse(&row.name, &row.origin, &row.text()?)
}

/// Reads the text of a row. An older version kept rows that take more memory than a node may.
fn parse(name: &str, origin: &CheckInOrigin, bytes: &[u8]) -> Result<CheckIn, StoreError> {
    if has_more_values(bytes, ROW_VALUES) {
        let reason = format!(
            "the row of `{name}` has over {NODE_VALUES} JSON values, the most that one node may have; the node is known again when it checks in with fewer"
        );
        return Err(StoreError::new(StoreFault::Row, "read", reason));
    }
    let body = serde_json::from_slice(bytes).map_err(|error| {
        StoreError::new(
            StoreFault::Row,
            "read",
            format!("the row of `{name}` makes no sense: {error}"),
        )
    })?;
    Ok(CheckIn::of_row(name, origin, body))
}

/// Returns an error for a name that no database can hold.
fn check_name(name: &str) -> Result<(), StoreError> {
    check_node_name(name)
        .map_err(|error| StoreError::new(StoreFault::Name, "written", error.to_string()))
}

impl Inner {
    /// Reads from the database, once the check-ins that wait are written.
    fn query<T>(
        &self,
        read: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.writer.flush()?;
        self.query_written(read)
    }

    /// Reads from the database, without the check-ins that wait.
    fn query_written<T>(
        &self,
        read: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let database = self.file.database()?;
        read(&database).map_err(|error| self.file.fail(&database, error))
    }

    /// Returns what check-ins are written to.
    fn medium(&self) -> &'static str {
        match self.file.settings.location {
            StoreLocation::Postgres(_) => "the database",
            StoreLocation::Memory | StoreLocation::Sqlite(_) => "the disk",
        }
    }

    fn note(&self, name: &str, bytes: usize, row: impl FnOnce() -> QueuedRow) {
        if check_name(name).is_err() {
            self.metrics.count_dropped_check_ins(DropReason::Name, 1);
            return;
        }
        match self.pending.try_room(bytes) {
            Some(room) => self.put(name, row(), room, None),
            None => self.count_dropped(1),
        }
    }

    fn put(
        &self,
        name: &str,
        row: QueuedRow,
        room: OwnedSemaphorePermit,
        receipt: Option<Receipt>,
    ) {
        let outdated = self.pending.put(name, row, room, receipt);
        if outdated > 0 {
            self.count_dropped(outdated);
        }
    }

    /// Counts check-ins for which the queue has no room.
    fn count_dropped(&self, count: usize) {
        let failing = self.file.state().health.failing.is_some();
        let why = if failing { DropReason::StorageFailed } else { DropReason::QueueFull };
        self.metrics.count_dropped_check_ins(why, count);
    }

    /// Returns what the row of a node says, if there is room for it.
    fn latest(&self, name: &str, room: &dyn RowRoom) -> Result<Option<CheckIn>, StoreError> {
        if check_name(name).is_err() {
            // No node has such a name, and PostgreSQL fails at it.
            return Ok(None);
        }
        let waiting = self.pending.queue().get(name);
        let known = match self.file.settings.location {
            StoreLocation::Postgres(_) => self.known_to_some(name, &waiting, room)?,
            StoreLocation::Memory | StoreLocation::Sqlite(_) => {
                self.known_here(name, &waiting, room)?
            }
        };
        let Some(known) = known else { return Ok(None) };
        if let KnownRow::Fresh(row) = &known {
            admit(room.admits_bytes(row.body.len()))?;
        }
        admit(room.admits_row(known.body()))?;
        parse(name, known.origin(), known.body()).map(Some)
    }

    /// Returns what is known of a node by what waits and what is stored.
    fn known_here(
        &self,
        name: &str,
        waiting: &[Fresh],
        room: &dyn RowRoom,
    ) -> Result<Option<KnownRow>, StoreError> {
        let whole = waiting.iter().rposition(|it| it.row.is_whole());
        let stored = if whole.is_none() { self.stored_row(name, room)? } else { None };
        let counting = waiting.get(whole.unwrap_or_default()..).unwrap_or_default();
        Ok(counting.iter().fold(stored, |it, fresh| Some(fresh.row.stored().known_after(it))))
    }

    /// Returns the same where other daemons write too, and may have written what came later than what waits.
    fn known_to_some(
        &self,
        name: &str,
        waiting: &[Fresh],
        room: &dyn RowRoom,
    ) -> Result<Option<KnownRow>, StoreError> {
        let stored = match self.stored_row(name, room) {
            // What is known here is better than nothing.
            Err(_) if waiting.iter().any(|it| it.row.is_whole()) => {
                return self.known_here(name, waiting, room);
            }
            stored => stored?,
        };
        let writer = self.writer.number();
        let known = waiting.iter().fold(stored, |known, fresh| {
            Some(match known {
                Some(known) => known.after(fresh.row.stored(), fresh.waited(), writer),
                None => fresh.row.stored().known_after(None),
            })
        });
        Ok(known)
    }

    /// Returns the row of a node, if there is room for it.
    fn stored_row(&self, name: &str, room: &dyn RowRoom) -> Result<Option<KnownRow>, StoreError> {
        let database = self.file.database()?;
        let failed = |error| self.file.fail(&database, error);
        let Some(bytes) = database.row_bytes(name).map_err(failed)? else { return Ok(None) };
        admit(room.admits_bytes(bytes))?;
        let row = database.row(name).map_err(failed)?;
        let stored = row.map(|it| {
            Ok(KnownRow::Stored { body: it.text()?, origin: it.origin, parts: it.parts })
        });
        stored.transpose()
    }

    /// Returns the check-in of a large row once there is room for it; none if it is gone.
    fn read_large(
        &self,
        database: &Arc<Database>,
        name: &str,
        bytes: usize,
        room: &dyn RowRoom,
    ) -> Result<Option<ListedCheckIn>, StoreError> {
        admit(room.admits_bytes(bytes))?;
        let row = database.row(name).map_err(|error| self.file.fail(database, error))?;
        let Some(row) = row else { return Ok(None) };
        let check_in = match row.text() {
            Ok(text) => {
                // A row that was replaced by a small one needs no more than was admitted.
                if text.len() >= LARGE_ROW {
                    admit(room.admits_row(&text))?;
                }
                parse(name, &row.origin, &text)
            }
            Err(error) => Err(error),
        };
        Ok(Some(ListedCheckIn { name: row.name, check_in }))
    }
}

#[cfg(test)]
mod tests;
