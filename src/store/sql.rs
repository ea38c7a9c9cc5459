//! SQL for both databases: connections, statements, and what a failure of theirs means.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, AnyRow};
use sqlx::query::Query;
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _,
};
use tokio::runtime::Runtime;

use super::error::{StoreError, StoreFault};
use super::location::PostgresUrl;

/// How long one operation of the database may take.
const OPERATION: Duration = Duration::from_secs(30);

/// How long an operation waits for a connection.
const ACQUISITION: Duration = Duration::from_secs(10);

/// How long an operation waits for a connection to a server: a request waits as long when the server is gone.
const CONNECTION: Duration = Duration::from_secs(5);

/// How long a statement of SQLite waits for another process that writes, in milliseconds.
const BUSY: u32 = 5_000;

/// How many connections read at the same time.
const READERS: u32 = 3;

/// What must be escaped in the path of a URL.
const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'?').add(b'%');

/// Drives the connections; the threads that ask wait for it.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    sqlx::any::install_default_drivers();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("store")
        .enable_all()
        .build()
});

/// Which database it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// An open database: one connection writes, others read.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) dialect: Dialect,
    writer: AnyPool,
    readers: AnyPool,
}

/// Where a database of SQLite is.
#[derive(Clone, Debug)]
pub(super) enum SqlitePlace {
    Memory,
    File(PathBuf),
}

fn runtime() -> Result<&'static Runtime, StoreError> {
    RUNTIME.as_ref().map_err(|error| {
        StoreError::new(StoreFault::Io, "opened", format!("no thread for it: {error}"))
    })
}

/// Waits for an operation, for at most so long. Blocking.
fn wait_for<T>(
    longest: Duration,
    action: &'static str,
    operation: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    runtime()?.block_on(async {
        tokio::time::timeout(longest, operation).await.unwrap_or_else(|_| {
            let reason = format!("the database did not answer for {} s", longest.as_secs());
            Err(StoreError::new(StoreFault::Io, action, reason))
        })
    })
}

impl Connections {
    /// Opens a database of SQLite. Blocking.
    pub(super) fn open_sqlite(place: &SqlitePlace, cache: usize) -> Result<Self, StoreError> {
        let url = match place {
            SqlitePlace::Memory => "sqlite::memory:".to_owned(),
            SqlitePlace::File(path) => sqlite_url(path)?,
        };
        let options = connect_options(&url)?;
        // Half for the connection that writes; SQLite counts KiB if negative.
        let kib = (cache / 1024).max(256);
        let share = |parts: usize| format!("PRAGMA cache_size = -{}", kib / parts);
        let pool = |connections: u32, cache_size: String| {
            AnyPoolOptions::new()
                .min_connections(0)
                .max_connections(connections)
                .idle_timeout(None)
                .max_lifetime(None)
                .test_before_acquire(false)
                .acquire_timeout(ACQUISITION)
                .after_connect(move |connection, _| {
                    let cache_size = cache_size.clone();
                    Box::pin(async move { prepare_sqlite(connection, &cache_size).await })
                })
        };
        wait_for(OPERATION, "opened", async {
            // A pool tries again until its time is over, and does not say what was wrong.
            try_sqlite(&options).await.map_err(failed(&Dialect::Sqlite, "opened"))?;
            let writer = pool(1, share(2)).connect_lazy_with(options.clone());
            let readers = match place {
                // Every connection to memory would have a memory of its own.
                SqlitePlace::Memory => writer.clone(),
                SqlitePlace::File(_) => {
                    // None is opened later: the name of the file may stand for another one then.
                    let readers = pool(READERS, share(2 * READERS as usize));
                    let readers = readers.connect_lazy_with(options);
                    let mut open = Vec::new();
                    for _ in 0..READERS {
                        let reader = readers.acquire().await;
                        open.push(reader.map_err(failed(&Dialect::Sqlite, "opened"))?);
                    }
                    readers
                }
            };
            drop(writer.acquire().await.map_err(failed(&Dialect::Sqlite, "opened"))?);
            Ok(Self { dialect: Dialect::Sqlite, writer, readers })
        })
    }

    /// Connects to a database of PostgreSQL. Blocking.
    pub(super) fn open_postgres(url: &PostgresUrl) -> Result<Self, StoreError> {
        let options = connect_options(url.reveal())?;
        let pool = |connections: u32| {
            AnyPoolOptions::new()
                .min_connections(0)
                .max_connections(connections)
                .acquire_timeout(CONNECTION)
                .after_connect(|connection, _| {
                    Box::pin(async move {
                        execute(connection, "SET statement_timeout = '30s'").await?;
                        execute(connection, "SET lock_timeout = '20s'").await
                    })
                })
        };
        wait_for(OPERATION, "opened", async {
            let tried = async { options.connect().await?.close().await };
            let tried = tokio::time::timeout(CONNECTION, tried).await;
            tried
                .unwrap_or(Err(sqlx::Error::PoolTimedOut))
                .map_err(failed(&Dialect::Postgres, "opened"))?;
            let writer = pool(1).connect_lazy_with(options.clone());
            let readers = pool(READERS).connect_lazy_with(options);
            Ok(Self { dialect: Dialect::Postgres, writer, readers })
        })
    }

    /// Runs an operation on a connection that reads. Blocking.
    pub(super) fn read<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        wait_for(OPERATION, "read", async {
            let done = async {
                let mut connection = self.readers.acquire().await?;
                operation(&mut connection).await
            };
            done.await.map_err(|error| self.failed_to_read(error))
        })
    }

    /// Runs an operation of several statements that all see the same, though others write. Blocking.
    pub(super) fn read_together<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        wait_for(OPERATION, "read", async {
            let done = async {
                let begin = match self.dialect {
                    Dialect::Sqlite => "BEGIN",
                    Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                };
                let mut transaction = self.readers.begin_with(begin).await?;
                let done = operation(&mut transaction).await?;
                transaction.commit().await?;
                Ok(done)
            };
            done.await.map_err(|error| self.failed_to_read(error))
        })
    }

    /// Runs an operation in a transaction that writes; it is on disk when this returns. Blocking.
    pub(super) fn write<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        wait_for(OPERATION, "written", async {
            let begin = match self.dialect {
                // What is read first must not be out of date when the first row is written.
                Dialect::Sqlite => "BEGIN IMMEDIATE",
                Dialect::Postgres => "BEGIN",
            };
            let begun = self.writer.begin_with(begin).await;
            let mut transaction = begun.map_err(self.failed("written"))?;
            let done = operation(&mut transaction).await?;
            transaction.commit().await.map_err(self.failed("written"))?;
            Ok(done)
        })
    }

    /// Runs a statement outside of a transaction, for as long as it takes. Blocking.
    pub(super) fn maintain(&self, statement: Statement) -> Result<(), StoreError> {
        runtime()?.block_on(async {
            let mut connection = self.writer.acquire().await.map_err(self.failed("written"))?;
            statement.execute(&mut connection).await.map(drop).map_err(self.failed("written"))
        })
    }

    /// Runs an operation on a connection that reads, for as long as it takes. Blocking.
    pub(super) fn read_at_leisure<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        runtime()?.block_on(async {
            let mut connection = self.readers.acquire().await.map_err(self.failed("read"))?;
            operation(&mut connection).await.map_err(self.failed("read"))
        })
    }

    /// Runs an operation on the connection that writes, outside of a transaction. Blocking.
    pub(super) fn migrate(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        wait_for(OPERATION, "opened", async {
            let connection = self.writer.acquire().await;
            operation(&mut *connection.map_err(self.failed("opened"))?).await
        })
    }

    /// Reads the failure of an operation that reads: that all connections are in use says nothing against
    /// the database, while one that cannot be reached has none left.
    fn failed_to_read(&self, error: sqlx::Error) -> StoreError {
        if matches!(error, sqlx::Error::PoolTimedOut) && self.readers.size() >= READERS {
            let reason = "too many read at the same time; try again soon";
            return StoreError::new(StoreFault::Busy, "read", reason);
        }
        self.failed("read")(error)
    }

    /// Reads the failure of a statement.
    pub(super) fn failed(&self, action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
        failed(&self.dialect, action)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.close();
    }
}

impl Connections {
    /// Closes all connections, once they are not used any more.
    pub(super) fn close(&self) {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        let close = async move {
            readers.close().await;
            writer.close().await;
        };
        let Ok(runtime) = runtime() else { return };
        if tokio::runtime::Handle::try_current().is_ok() {
            runtime.spawn(close);
        } else {
            // SQLite moves what it has written from the log into the file when it is closed.
            runtime.block_on(async { tokio::time::timeout(OPERATION, close).await.ok() });
        }
    }
}

fn sqlite_url(path: &Path) -> Result<String, StoreError> {
    let text = path.to_str().ok_or_else(|| {
        let reason = format!("`{}` is not UTF-8", path.display());
        StoreError::new(StoreFault::Io, "opened", reason)
    })?;
    // The file is there: a connection that made an empty one would lose what is open.
    Ok(format!("sqlite:{}?mode=rw", utf8_percent_encode(text, PATH)))
}

fn connect_options(url: &str) -> Result<AnyConnectOptions, StoreError> {
    let options = url.parse::<AnyConnectOptions>().map_err(|_| {
        StoreError::new(StoreFault::Io, "opened", "the location of the store is not valid")
    })?;
    Ok(options.disable_statement_logging())
}

async fn execute(connection: &mut AnyConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop)
}

async fn prepare_sqlite(
    connection: &mut AnyConnection,
    cache_size: &str,
) -> Result<(), sqlx::Error> {
    let settings = [
        format!("PRAGMA busy_timeout = {BUSY}"),
        // A commit is on disk.
        "PRAGMA synchronous = FULL".to_owned(),
        // What is deleted is overwritten.
        "PRAGMA secure_delete = ON".to_owned(),
        "PRAGMA journal_size_limit = 16777216".to_owned(),
        cache_size.to_owned(),
    ];
    for setting in settings {
        sqlx::raw_sql(AssertSqlSafe(setting)).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Opens a database and closes it.
async fn try_sqlite(options: &AnyConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    prepare_sqlite(&mut connection, "PRAGMA cache_size = -256").await?;
    let tables = Statement::new("SELECT COUNT(*) FROM sqlite_schema");
    let tables = tables.first(&mut connection).await?;
    if tables.as_ref().map_or(Ok(0), |it| integer(it, 0))? == 0 {
        // Pages that are free are given back; and readers go on while one writes. A file keeps both.
        execute(&mut connection, "PRAGMA auto_vacuum = INCREMENTAL").await?;
        execute(&mut connection, "PRAGMA journal_mode = WAL").await?;
    }
    connection.close().await
}

/// A value in a statement.
#[derive(Clone, Debug)]
pub(super) enum SqlValue {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for SqlValue {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<Option<String>> for SqlValue {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}

impl From<Option<Vec<u8>>> for SqlValue {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

/// A statement, and the values of its parameters.
///
/// Its text is put together from constants and numbered parameters only: a value is never part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    text: String,
    values: Vec<SqlValue>,
}

impl Statement {
    /// Begins with a text.
    pub(super) fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), values: Vec::new() }
    }

    /// Sets something of SQLite.
    pub(super) fn pragma(name: &'static str, value: i64) -> Self {
        Self { text: format!("PRAGMA {name}({value})"), values: Vec::new() }
    }

    /// Goes on with a text.
    pub(super) fn text(mut self, text: &'static str) -> Self {
        self.text.push_str(text);
        self
    }

    /// Goes on with a value.
    pub(super) fn value(mut self, value: impl Into<SqlValue>) -> Self {
        self.push(value.into());
        self
    }

    /// Goes on with values in parentheses.
    pub(super) fn list<V: Into<SqlValue>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.push_list(values.into_iter().map(Into::into));
        self
    }

    /// Goes on with rows of values.
    pub(super) fn rows(mut self, rows: impl IntoIterator<Item = Vec<SqlValue>>) -> Self {
        for (number, row) in rows.into_iter().enumerate() {
            self.text.push_str(if number == 0 { " VALUES " } else { ", " });
            self.push_list(row.into_iter());
        }
        self
    }

    fn push_list(&mut self, values: impl Iterator<Item = SqlValue>) {
        self.text.push('(');
        for (number, value) in values.enumerate() {
            if number > 0 {
                self.text.push_str(", ");
            }
            self.push(value);
        }
        self.text.push(')');
    }

    fn push(&mut self, value: SqlValue) {
        self.values.push(value);
        self.text.push('$');
        self.text.push_str(&self.values.len().to_string());
    }

    fn query(self) -> Query<'static, Any, sqlx::any::AnyArguments> {
        // Statements of many rows differ in their length: keeping them prepared would only take memory.
        let is_small = self.values.len() < 40;
        let mut query = sqlx::query(AssertSqlSafe(self.text)).persistent(is_small);
        for value in self.values {
            query = match value {
                SqlValue::Integer(value) => query.bind(value),
                SqlValue::Text(value) => query.bind(value),
                SqlValue::Bytes(value) => query.bind(value),
            };
        }
        query
    }

    /// Runs the statement; returns how many rows it changed.
    pub(super) async fn execute(self, connection: &mut AnyConnection) -> Result<u64, sqlx::Error> {
        Ok(self.query().execute(connection).await?.rows_affected())
    }

    /// Returns the rows that the statement finds.
    pub(super) async fn fetch(
        self,
        connection: &mut AnyConnection,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        self.query().fetch_all(connection).await
    }

    /// Returns the first row that the statement finds.
    pub(super) async fn first(
        self,
        connection: &mut AnyConnection,
    ) -> Result<Option<AnyRow>, sqlx::Error> {
        self.query().fetch_optional(connection).await
    }
}

/// Returns a value of a row.
pub(super) fn integer(row: &AnyRow, column: usize) -> Result<i64, sqlx::Error> {
    row.try_get(column)
}

/// Returns a value of a row that may be null.
pub(super) fn maybe_integer(row: &AnyRow, column: usize) -> Result<Option<i64>, sqlx::Error> {
    row.try_get(column)
}

/// Returns a text of a row.
pub(super) fn text(row: &AnyRow, column: usize) -> Result<String, sqlx::Error> {
    row.try_get(column)
}

/// Returns a text of a row that may be null.
pub(super) fn maybe_text(row: &AnyRow, column: usize) -> Result<Option<String>, sqlx::Error> {
    row.try_get(column)
}

/// Returns bytes of a row.
pub(super) fn bytes(row: &AnyRow, column: usize) -> Result<Vec<u8>, sqlx::Error> {
    row.try_get(column)
}

/// Returns bytes of a row that may be null.
pub(super) fn maybe_bytes(row: &AnyRow, column: usize) -> Result<Option<Vec<u8>>, sqlx::Error> {
    row.try_get(column)
}

/// Reads the failure of a statement.
fn failed(dialect: &Dialect, action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    let dialect = dialect.clone();
    move |error| StoreError::new(fault_of(&dialect, &error), action, error.to_string())
}

fn fault_of(dialect: &Dialect, error: &sqlx::Error) -> StoreFault {
    match (dialect, error) {
        (Dialect::Sqlite, sqlx::Error::Database(error)) => {
            let code = error.code().and_then(|it| it.parse::<u32>().ok()).unwrap_or_default();
            // The lowest byte is the kind.
            match code & 0xff {
                11 | 26 => StoreFault::Damaged,
                13 => StoreFault::DiskFull,
                5 | 6 => StoreFault::Locked,
                _ => StoreFault::Io,
            }
        }
        (Dialect::Postgres, sqlx::Error::Database(error)) => match error.code().as_deref() {
            Some("53100") => StoreFault::DiskFull,
            Some("55P03") => StoreFault::Locked,
            _ => StoreFault::Io,
        },
        // A value that the schema does not allow: a damaged file, or not one of ours.
        (
            Dialect::Sqlite,
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. },
        ) => StoreFault::Damaged,
        _ => StoreFault::Io,
    }
}
