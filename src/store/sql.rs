//! SQL for both databases: connections, statements, and what a failure of theirs means.

mod dialect;
mod fault;
mod statement;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::runtime::Runtime;

use self::fault::fault_of;
use super::error::{StoreError, StoreFault};
use super::location::PostgresUrl;
use crate::priority;

pub(super) use dialect::Dialect;
pub(super) use statement::{
    SqlValue, Statement, bytes, integer, maybe_bytes, maybe_integer, maybe_text, text,
};

/// How long one operation of the database may take.
const OPERATION: Duration = Duration::from_secs(30);

/// The same for PostgreSQL, which ends the statement then.
const LONGEST_STATEMENT: &str = "SET statement_timeout = '30s'";

/// What PostgreSQL ends of a connection that reads. Who waits for what is read waits for a lock no longer than for a
/// connection. A daemon that stands still, or whose network is gone, in a transaction keeps no other from writing.
const READER_TIMEOUTS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '5s'; \
     SET idle_in_transaction_session_timeout = '30s'";

/// The same of the connection that writes.
const WRITER_TIMEOUTS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '20s'; \
     SET idle_in_transaction_session_timeout = '30s'";

/// How long bringing the tables up to date may take: it may read all that is kept.
const MIGRATION: Duration = Duration::from_hours(1);

/// How long an examination of the file may go on when the file is closed.
const EXAMINATION: Duration = Duration::from_secs(1);

/// How long an operation waits for a connection.
const ACQUISITION: Duration = Duration::from_secs(10);

/// How long an operation waits for a connection to a server: a request waits as long when the server is gone.
const CONNECTION: Duration = Duration::from_secs(5);

/// How long a statement of SQLite waits for another process that writes, in milliseconds.
const BUSY: u32 = 5_000;

/// How many bytes of an empty log SQLite keeps.
pub(super) const LONGEST_LOG: u64 = 16 << 20;

/// How many connections read at the same time for agents and clients of the API.
const READERS: u32 = 3;

/// How many connections read at the same time for pages, whose threads yield: one that holds a connection may wait
/// long for its turn on a busy machine, and no agent waits for it.
const READERS_OF_PAGES: u32 = 2;

/// What must be escaped in the path of a URL.
const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'#').add(b'?').add(b'%');

/// Drives the connections; the threads that ask wait for it.
///
/// Its thread has the priority of the one that uses it first.
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    sqlx::any::install_default_drivers();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("store")
        .enable_all()
        .build()
});

/// An open database: one connection writes, others read.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) dialect: Dialect,
    writer: AnyPool,
    readers: AnyPool,
    /// Reads what pages show.
    of_pages: AnyPool,
    /// Reads what requests do not wait for, and yields to them; is closed when it has.
    examiner: AnyPool,
    /// Whether the database ends with its connection.
    is_in_memory: bool,
}

/// Where a database of SQLite is.
#[derive(Clone, Debug)]
pub(super) enum SqlitePlace {
    Memory,
    File(PathBuf),
}

/// Starts what drives the connections, with the priority of the calling thread.
pub(super) fn start() {
    // Each use says what is wrong.
    runtime().ok();
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
            Err(StoreError::new(StoreFault::TimedOut, action, reason))
        })
    })
}

impl Connections {
    /// Opens a database of SQLite. Blocking.
    pub(super) fn open_sqlite(place: &SqlitePlace, cache: usize) -> Result<Self, StoreError> {
        let url = match place {
            SqlitePlace::Memory => "sqlite::memory:".to_owned(),
            SqlitePlace::File(path) => sqlite_url(path, "rw")?,
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
            let (readers, of_pages, examiner) = match place {
                // Every connection to memory would have a memory of its own.
                SqlitePlace::Memory => (writer.clone(), writer.clone(), writer.clone()),
                SqlitePlace::File(_) => {
                    // None is opened later: the name of the file may stand for another one then.
                    let share = share(2 * (READERS + READERS_OF_PAGES) as usize);
                    let readers = pool(READERS, share.clone()).connect_lazy_with(options.clone());
                    let opened = runtime()?.spawn(open_all(readers.clone())).await;
                    let opened = opened.unwrap_or_else(|it| Err(sqlx::Error::Io(it.into())));
                    opened.map_err(failed(&Dialect::Sqlite, "opened"))?;
                    let of_pages = pool(READERS_OF_PAGES, share);
                    let of_pages = of_pages.connect_lazy_with(options.clone());
                    let examiner = pool(1, "PRAGMA cache_size = -256".to_owned());
                    (readers, of_pages, examiner.connect_lazy_with(options))
                }
            };
            open_yielding([&writer, &of_pages, &examiner])?;
            let is_in_memory = matches!(place, SqlitePlace::Memory);
            Ok(Self { dialect: Dialect::Sqlite, writer, readers, of_pages, examiner, is_in_memory })
        })
    }

    /// Connects to a database of PostgreSQL. Blocking.
    pub(super) fn open_postgres(url: &PostgresUrl) -> Result<Self, StoreError> {
        let options = connect_options(url.reveal())?;
        let pool = |connections: u32, timeouts: &'static str| {
            AnyPoolOptions::new()
                .min_connections(0)
                .max_connections(connections)
                .acquire_timeout(CONNECTION)
                .after_connect(move |connection, _| Box::pin(execute(connection, timeouts)))
        };
        wait_for(OPERATION, "opened", async {
            let tried = tokio::time::timeout(CONNECTION, encoding(&options)).await;
            let encoding = tried
                .unwrap_or(Err(sqlx::Error::PoolTimedOut))
                .map_err(failed(&Dialect::Postgres, "opened"))?;
            check_encoding(&encoding)?;
            let writer = pool(1, WRITER_TIMEOUTS).min_connections(1);
            let writer = writer.connect_lazy_with(options.clone());
            // Those that read may take all that the server allows, for as long as they are used.
            drop(writer.acquire().await);
            let readers = pool(READERS, READER_TIMEOUTS).connect_lazy_with(options.clone());
            let of_pages = pool(READERS_OF_PAGES, READER_TIMEOUTS).connect_lazy_with(options);
            let examiner = readers.clone();
            let dialect = Dialect::Postgres;
            Ok(Self { dialect, writer, readers, of_pages, examiner, is_in_memory: false })
        })
    }

    /// Returns the connections that read for the calling thread.
    fn readers(&self) -> &AnyPool {
        if priority::serves_people() { &self.of_pages } else { &self.readers }
    }

    /// Runs an operation on a connection that reads. Blocking.
    pub(super) fn read<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let readers = self.readers();
        wait_for(OPERATION, "read", async {
            let done = async {
                let mut connection = readers.acquire().await?;
                operation(&mut connection).await
            };
            done.await.map_err(|error| self.failed_to_read(readers, error))
        })
    }

    /// Runs an operation of several statements that all see the same, though others write. Blocking.
    pub(super) fn read_together<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let readers = self.readers();
        wait_for(OPERATION, "read", async {
            let done = async {
                let begin = match self.dialect {
                    Dialect::Sqlite => "BEGIN",
                    Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                };
                let mut transaction = readers.begin_with(begin).await?;
                let done = operation(&mut transaction).await?;
                transaction.commit().await?;
                Ok(done)
            };
            done.await.map_err(|error| self.failed_to_read(readers, error))
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
            let mut connection = self.writer.acquire().await.map_err(self.failed("written"))?;
            let written = async {
                let begun = connection.begin_with(begin).await;
                let mut transaction = begun.map_err(self.failed("written"))?;
                let done = operation(&mut transaction).await?;
                transaction.commit().await.map_err(self.failed("written"))?;
                Ok(done)
            };
            let written = written.await;
            // Where a transaction could not be written, the library cannot tell whether the connection is still in it.
            if !self.is_in_memory && written.as_ref().is_err_and(StoreError::is_of_writing) {
                connection.close().await.ok();
            }
            written
        })
    }

    /// Runs a statement outside of a transaction, for as long as it takes. Blocking.
    pub(super) fn maintain(&self, statement: Statement) -> Result<(), StoreError> {
        runtime()?.block_on(async {
            let mut connection = self.writer.acquire().await.map_err(self.failed("written"))?;
            statement.execute(&mut connection).await.map(drop).map_err(self.failed("written"))
        })
    }

    /// Moves the log into the file, and returns whether nothing is left of it: what is deleted stands there as
    /// long as a reader looks at it. Blocking.
    pub(super) fn truncate_log(&self) -> Result<bool, StoreError> {
        runtime()?.block_on(async {
            let mut connection = self.writer.acquire().await.map_err(self.failed("written"))?;
            let moved = Statement::new("PRAGMA wal_checkpoint(TRUNCATE)");
            let moved = moved.first(&mut connection).await.map_err(self.failed("written"))?;
            let busy = moved.as_ref().map_or(Ok(0), |it| integer(it, 0));
            Ok(busy.map_err(self.failed("written"))? == 0)
        })
    }

    /// Runs an operation that examines a file, for as long as it takes, on a connection that requests do not
    /// wait for. Blocking.
    pub(super) fn examine<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        runtime()?.block_on(async {
            let mut connection = self.examiner.acquire().await.map_err(self.failed("read"))?;
            let done = operation(&mut connection).await.map_err(self.failed("read"));
            drop(connection);
            self.examiner.close().await;
            done
        })
    }

    /// Runs an operation on the connection that writes, outside of a transaction. Blocking.
    pub(super) fn migrate(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        wait_for(MIGRATION, "opened", async {
            let mut connection = self.writer.acquire().await.map_err(self.failed("opened"))?;
            if self.dialect == Dialect::Postgres {
                let longer = execute(&mut connection, "SET statement_timeout = '1h'").await;
                longer.map_err(self.failed("opened"))?;
            }
            operation(&mut connection).await?;
            if self.dialect == Dialect::Postgres {
                let usual = execute(&mut connection, LONGEST_STATEMENT).await;
                usual.map_err(self.failed("opened"))?;
            }
            Ok(())
        })
    }

    /// Reads the failure of an operation that reads: that all connections are in use says nothing against
    /// the database, while one that cannot be reached has none left. A page that gets none leaves those of agents alone.
    fn failed_to_read(&self, readers: &AnyPool, error: sqlx::Error) -> StoreError {
        // A server may allow fewer connections than the pool has room for.
        let are_in_use = readers.size() > 0 && readers.num_idle() == 0;
        let is_timeout = matches!(error, sqlx::Error::PoolTimedOut);
        if is_timeout && (are_in_use || priority::serves_people()) {
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
    /// Closes all connections, once they are not used any more, and waits for it. Blocking.
    pub(super) fn close_now(&self) -> Result<(), StoreError> {
        wait_for(OPERATION, "written", async {
            self.closing().await;
            Ok(())
        })
    }

    fn closing(&self) -> impl Future<Output = ()> + Send + use<> {
        let Self { writer, readers, of_pages, examiner, .. } = self;
        let [writer, readers, of_pages, examiner] =
            [writer, readers, of_pages, examiner].map(Clone::clone);
        async move {
            readers.close().await;
            of_pages.close().await;
            writer.close().await;
            // An examination of a large file goes on until the process ends.
            tokio::time::timeout(EXAMINATION, examiner.close()).await.ok();
        }
    }

    /// Closes all connections, once they are not used any more.
    pub(super) fn close(&self) {
        let close = self.closing();
        let Ok(runtime) = runtime() else { return };
        if tokio::runtime::Handle::try_current().is_ok() {
            runtime.spawn(close);
        } else {
            // SQLite moves what it has written from the log into the file when it is closed.
            runtime.block_on(async { tokio::time::timeout(OPERATION, close).await.ok() });
        }
    }
}

/// Opens all connections of a pool. Each has a thread with the priority of the one that opens it.
async fn open_all(pool: AnyPool) -> Result<(), sqlx::Error> {
    let mut open = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        open.push(pool.acquire().await?);
    }
    Ok(())
}

/// Opens connections whose threads yield to requests.
fn open_yielding(pools: [&AnyPool; 3]) -> Result<(), StoreError> {
    let open = || {
        priority::yield_to_requests();
        runtime()?.block_on(async {
            for pool in pools {
                open_all(pool.clone()).await.map_err(failed(&Dialect::Sqlite, "opened"))?;
            }
            Ok(())
        })
    };
    let opened = std::thread::scope(|scope| scope.spawn(open).join());
    opened.unwrap_or_else(|_| {
        Err(StoreError::new(StoreFault::Io, "opened", "the thread that opens it panicked"))
    })
}

/// Reads the generation of a database that is not open, and leaves its log as it is: a connection that may write
/// removes the log when it ends. Blocking.
pub(super) fn read_generation(path: &Path) -> Result<i64, StoreError> {
    let options = connect_options(&sqlite_url(path, "ro")?)?;
    wait_for(OPERATION, "opened", async {
        let read = async {
            let mut connection = options.connect().await?;
            let row = Statement::new("PRAGMA user_version").first(&mut connection).await?;
            connection.close().await?;
            row.as_ref().map_or(Ok(0), |it| integer(it, 0))
        };
        read.await.map_err(failed(&Dialect::Sqlite, "opened"))
    })
}

fn sqlite_url(path: &Path, mode: &str) -> Result<String, StoreError> {
    let text = path.to_str().ok_or_else(|| {
        let reason = format!("`{}` is not UTF-8", path.display());
        StoreError::new(StoreFault::Io, "opened", reason)
    })?;
    // The file is there: a connection that made an empty one would lose what is open.
    Ok(format!("sqlite:{}?mode={mode}", utf8_percent_encode(text, PATH)))
}

fn connect_options(url: &str) -> Result<AnyConnectOptions, StoreError> {
    let options = url.parse::<AnyConnectOptions>().map_err(|_| {
        StoreError::new(StoreFault::Io, "opened", "the location of the store is not valid")
    })?;
    Ok(options.disable_statement_logging())
}

/// Connects to a server, and returns the encoding of its database.
async fn encoding(options: &AnyConnectOptions) -> Result<String, sqlx::Error> {
    let mut connection = options.connect().await?;
    let row = Statement::new("SELECT current_setting('server_encoding')");
    let row = row.first(&mut connection).await?;
    let encoding = row.as_ref().map(|it| text(it, 0)).transpose()?;
    connection.close().await?;
    Ok(encoding.unwrap_or_default())
}

/// Returns an error for a database that does not hold every text: a name or fact that it lacks is refused each time.
fn check_encoding(encoding: &str) -> Result<(), StoreError> {
    // The latter keeps bytes as they are.
    if matches!(encoding, "UTF8" | "SQL_ASCII") {
        return Ok(());
    }
    let reason = format!(
        "the database has the encoding {encoding}, which lacks characters: make one with `createdb --encoding UTF8 --template template0`"
    );
    Err(StoreError::new(StoreFault::Io, "opened", reason))
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
        format!("PRAGMA journal_size_limit = {LONGEST_LOG}"),
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
        // Pages that are free are given back. A file keeps that.
        execute(&mut connection, "PRAGMA auto_vacuum = INCREMENTAL").await?;
    }
    // Readers go on while one writes. A file keeps that, but a copy of it does not.
    execute(&mut connection, "PRAGMA journal_mode = WAL").await?;
    connection.close().await
}

/// Reads the failure of a statement.
fn failed(dialect: &Dialect, action: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    let dialect = dialect.clone();
    move |error| {
        let reason = match &error {
            sqlx::Error::PoolTimedOut => {
                let waited = if dialect == Dialect::Sqlite { ACQUISITION } else { CONNECTION };
                format!("the database did not answer for {} s", waited.as_secs())
            }
            error => error.to_string(),
        };
        StoreError::new(fault_of(&dialect, &error), action, reason)
    }
}
