//! From settings to a daemon that answers, and to its end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;

use super::arguments::{DEFAULT_INSTANCE, EncFacts, ServeSettings};
use super::early_signals::CaughtSignals;
use super::layers::Layering;
use super::prepare::{Prepared, prepare};
use super::reload::{Reloader, SettingsReloader};
use super::supervisor::Shutdown;
use super::{allocator, controller, ending, listeners, store_lock, supervisor};
use crate::cli::Exit;
use crate::cli::size_limit::outlive_size_limits;
use crate::config::FileLock;
use crate::decision_log::{DecisionLog, DecisionLogSettings, DecisionTarget, DecisionWriter};
use crate::facts::FactsDirectory;
use crate::http::{
    Dispatcher, EncCache, Endpoint, FactsPolicy, LiveStatus, PrivacyPolicy, ServeOptions, Services,
    serve,
};
use crate::masking::{Masks, StoredForm};
use crate::overview::{Overview, OwnReplica};
use crate::priority::STACK;
use crate::reconcile::{Controller, Settings, Threads};
use crate::store::{CheckIns, ReplicaName};
use crate::telemetry::{Log, Metrics};

/// How long the start waits for the first answer before clients may connect and get 503.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// How long the threads have at least to end when requests in flight have used up the grace period.
const LEAST_WORK: Duration = Duration::from_millis(200);

/// Runs the daemon until a signal stops it.
pub(super) fn run(
    serve: ServeSettings,
    layering: Layering,
    signals: CaughtSignals,
) -> Result<Exit> {
    let log = Log::start(serve.log_format, &serve.log).context("cannot start the log")?;
    let CaughtSignals { runtime, shutdown, hangups } = signals;
    // A signal that came before ends the process.
    if !shutdown.begin() {
        return Ok(Exit::Fine);
    }
    let settings_reloader = SettingsReloader { log, layering };
    runtime.block_on(async {
        outlive_size_limits()?;
        Box::pin(start_and_serve(serve, &shutdown, hangups, settings_reloader)).await
    })
}

async fn start_and_serve(
    settings: ServeSettings,
    shutdown: &Shutdown,
    hangups: Signal,
    settings_reloader: SettingsReloader,
) -> Result<Exit> {
    let grace = settings.grace;
    let stop = shutdown.token().clone();
    let starting = tokio::task::spawn_blocking(move || Started::new(settings, stop));
    let started = tokio::select! {
        started = starting => started.context("the start failed")??,
        // Nothing was answered yet, and what a start leaves behind half done is what a crash leaves behind.
        () = shutdown.requested() => {
            tracing::info!("stopped");
            return Ok(Exit::Fine);
        }
    };
    started.wait_until_decided(shutdown).await;
    let Started { services, endpoints, workers, prepared, settings, store_lock: _store_lock } =
        started;
    let serves = !shutdown.is_requested();
    if serves {
        controller::check_path(&services.controller)?;
        let reloader = Reloader::new(&prepared, Arc::clone(&services.metrics), settings_reloader);
        let options = ServeOptions {
            grace,
            client_timeout: settings.client_timeout,
            metrics: Arc::clone(&services.metrics),
        };
        serve_until(endpoints, options, shutdown, reloader, hangups).await;
    }
    // Without a commit there is no write to finish, and a first fetch may hang as long as its timeout.
    let left = match serves && services.controller.has_live_commit() {
        true => grace.saturating_sub(shutdown.since()).max(LEAST_WORK),
        false => Duration::ZERO,
    };
    ending::within(left, ending::LAST_WORK, &services.controller, {
        let services = Arc::clone(&services);
        move || workers.end(&services)
    })
    .await?;
    if let Some(decisions) = &services.decisions {
        decisions.log_lost();
    }
    tracing::info!("stopped");
    Ok(Exit::Fine)
}

/// Answers requests until a shutdown is requested and those in flight are finished.
async fn serve_until(
    endpoints: Vec<Endpoint<Dispatcher>>,
    options: ServeOptions,
    shutdown: &Shutdown,
    reloader: Reloader,
    hangups: Signal,
) {
    for endpoint in &endpoints {
        endpoint.announce();
    }
    tokio::select! {
        () = serve(endpoints, shutdown.token().clone(), options) => {}
        () = async {
            tokio::join!(reloader.keep_fresh(hangups), supervisor::supervise());
        } => {}
    }
}

/// A daemon that listens, and whose threads run.
struct Started {
    settings: ServeSettings,
    prepared: Prepared,
    services: Arc<Services>,
    endpoints: Vec<Endpoint<Dispatcher>>,
    workers: Workers,
    store_lock: Option<FileLock>,
}

impl Started {
    /// Blocking: names are resolved, files are read, and the commit that was live last is built again.
    fn new(settings: ServeSettings, stop: CancellationToken) -> Result<Self> {
        // Threads that are made when they are first needed are never made if there is no room for them then.
        rayon::ThreadPoolBuilder::new()
            .stack_size(STACK)
            .build_global()
            .context("cannot start threads")?;
        let prepared = prepare(&settings)?;
        allocator::keep_trimming().context("cannot start a thread")?;
        let controller_settings = controller::settings(&settings, &prepared)?;
        let store_lock = store_lock::lock_store(&settings)?;
        let (services, decision_writer) =
            start_services(&settings, &prepared, controller_settings, stop)?;
        let endpoints = listeners::open(&settings, &prepared, &services)?;
        let workers = Workers::spawn(&services, decision_writer)?;
        Ok(Self { settings, prepared, services, endpoints, workers, store_lock })
    }

    /// Waits for the first answer, for as long as a start may take.
    async fn wait_until_decided(&self, shutdown: &Shutdown) {
        let deciding = Arc::clone(&self.services.controller);
        tokio::select! {
            _ = tokio::task::spawn_blocking(move || deciding.wait_until_decided(FIRST_ANSWER)) => {}
            () = shutdown.requested() => {}
        }
    }
}

/// Starts what the routes of every address share.
fn start_services(
    settings: &ServeSettings,
    prepared: &Prepared,
    controller_settings: Settings,
    stop: CancellationToken,
) -> Result<(Arc<Services>, Option<DecisionWriter>)> {
    let metrics: Arc<Metrics> = Arc::default();
    prepared.webhooks.begin(&metrics);
    let masks = Masks::of_settings(&settings.mask);
    let (decisions, decision_writer) =
        open_decision_log(settings, masks.clone(), Arc::clone(&metrics))?.unzip();
    let check_ins = CheckIns::new(controller::store_settings(settings), Arc::clone(&metrics));
    let controller = Controller::start(controller_settings, Arc::clone(&metrics))?;
    let writer = controller::writer_settings(settings, prepared);
    let services = Arc::new(Services {
        writer: writer.map(|it| Arc::new(controller.writer(it))),
        controller,
        metrics,
        access: Arc::clone(&prepared.access),
        webhooks: Arc::clone(&prepared.webhooks),
        check_ins,
        puppet_server: prepared.puppet_server.clone(),
        facts: FactsPolicy {
            directory: settings.facts_dir.clone().map(|it| Arc::new(FactsDirectory::new(it))),
            puppetdb: prepared.puppetdb.clone(),
            required: settings.enc_facts == EncFacts::Required,
        },
        enc_cache: EncCache::default(),
        privacy: PrivacyPolicy::new(StoredForm { masks, facts: settings.store_facts }),
        decisions,
        overview: Arc::new(Overview::new(own_replica(settings))),
        live: LiveStatus::until(stop),
    });
    Ok((services, decision_writer))
}

/// Returns what this daemon says of itself to those that share its store.
fn own_replica(settings: &ServeSettings) -> OwnReplica {
    let machine = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = match settings.instance.as_str() {
        DEFAULT_INSTANCE => machine(),
        name => name.to_owned(),
    };
    OwnReplica {
        id: format!("{:032x}", fastrand::u128(..)),
        name: ReplicaName::of(&name),
        started_at: Timestamp::now(),
    }
}

/// Opens the decision log, if there is to be one.
fn open_decision_log(
    settings: &ServeSettings,
    masks: Masks,
    metrics: Arc<Metrics>,
) -> Result<Option<(DecisionLog, DecisionWriter)>> {
    let Some(path) = &settings.decision_log else { return Ok(None) };
    let target = match path.to_str() {
        Some("-") => DecisionTarget::Stdout,
        _ => DecisionTarget::File(path.clone()),
    };
    let log = DecisionLogSettings {
        target,
        max_bytes: settings.decision_log_max_bytes,
        keep: settings.decision_log_keep,
        masks,
    };
    let opened = DecisionLog::open(log, metrics);
    opened.map(Some).with_context(|| format!("cannot open the decision log `{}`", path.display()))
}

/// The threads beside those that answer requests.
struct Workers {
    controller: Threads,
    writer: Option<JoinHandle<()>>,
    check_ins: JoinHandle<()>,
    decisions: Option<JoinHandle<()>>,
    overview: JoinHandle<()>,
}

impl Workers {
    fn spawn(services: &Services, decisions: Option<DecisionWriter>) -> Result<Self> {
        let controller = services.controller.spawn()?;
        let named =
            |name: &str| std::thread::Builder::new().name(name.to_owned()).stack_size(STACK);
        let writer = services.writer.clone();
        let writer = writer.map(|it| named("writer").spawn(move || it.run())).transpose();
        let writer = writer.context("cannot start a thread")?;
        let (store, conditions) = (services.check_ins.clone(), Arc::clone(&services.controller));
        let check_ins = named("check-ins").spawn(move || {
            store.keep_writing(&|health| conditions.note_check_ins(controller::trouble(health)));
        });
        let check_ins = check_ins.context("cannot start a thread")?;
        let decisions = decisions.map(|it| named("decision-log").spawn(move || it.run()));
        let decisions = decisions.transpose().context("cannot start a thread")?;
        let overview = named("overview").spawn({
            let (overview, store) = (Arc::clone(&services.overview), services.check_ins.clone());
            let (controller, metrics) =
                (Arc::clone(&services.controller), Arc::clone(&services.metrics));
            move || overview.keep_sampling(&store, &controller, &metrics)
        });
        let overview = overview.context("cannot start a thread")?;
        Ok(Self { controller, writer, check_ins, decisions, overview })
    }

    /// Ends them all, the controller last: what is written may still need it.
    fn end(self, services: &Services) {
        if let Some(decisions) = &services.decisions {
            decisions.stop();
        }
        // Before the store: it says there that it stops.
        services.overview.stop();
        ending::join(self.overview, "the thread that takes samples");
        services.check_ins.stop();
        ending::join(self.check_ins, "the writer of check-ins");
        if let Some(writer) = &services.writer {
            writer.stop();
        }
        if let Some(writer) = self.writer {
            ending::join(writer, "the writer of groups");
        }
        services.controller.stop();
        // Writes are over: what is still under way with the remote is a fetch, which the next start makes again.
        services.controller.interrupt();
        if !self.controller.join(ending::LAST_WORK) {
            tracing::warn!("a fetch or a call of the forge that hangs is abandoned");
        }
        // Last: a standard output that is not read must not keep the others from their end.
        if let Some(decisions) = self.decisions {
            ending::join(decisions, "the writer of decisions");
        }
    }
}
