//! From settings to a daemon that answers, and to its end.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::arguments::{DEFAULT_INSTANCE, EncFacts, ServeSettings};
use super::layers::Layering;
use super::prepare::{Prepared, prepare};
use super::reload::{self, Reloader, SettingsReloader};
use super::{allocator, controller, ending, listeners, store_lock, supervisor};
use crate::cli::Exit;
use crate::decision_log::{DecisionLog, DecisionLogSettings, DecisionTarget, DecisionWriter};
use crate::facts::FactsDirectory;
use crate::http::{
    EncCache, FactsPolicy, LiveStatus, PrivacyPolicy, ServeOptions, Services, serve,
};
use crate::masking::{Masks, StoredForm};
use crate::overview::{Overview, OwnReplica};
use crate::reconcile::{Controller, Settings, Threads};
use crate::store::{CheckIns, ReplicaName};
use crate::telemetry::{Log, Metrics};

/// How long the start waits for the first answer before clients may connect and get 503.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// How long the threads have at least to end when requests in flight have used up the grace period.
const LEAST_WORK: Duration = Duration::from_millis(200);

/// How long background work may delay the end.
const LAST_WORK: Duration = Duration::from_secs(1);

/// Runs the daemon until a signal stops it.
pub(super) fn run(serve: &ServeSettings, layering: Layering) -> Result<Exit> {
    let log = Log::start(serve.log_format, &serve.log).context("cannot start the log")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    supervisor::outlive_size_limits(&runtime)?;
    // Threads that are made when they are first needed are never made if there is no room for them then.
    rayon::ThreadPoolBuilder::new().build_global().context("cannot start threads")?;
    let prepared = prepare(serve)?;
    allocator::keep_trimming().context("cannot start a thread")?;
    let done = runtime.block_on(run_within(serve, &prepared, SettingsReloader { log, layering }));
    // A request to a Puppet Server may still run; its answer is not needed any more.
    runtime.shutdown_timeout(LAST_WORK);
    done
}

async fn run_within(
    settings: &ServeSettings,
    prepared: &Prepared,
    settings_reloader: SettingsReloader,
) -> Result<Exit> {
    let controller_settings = controller::settings(settings, prepared)?;
    let stop = CancellationToken::new();
    let signalled_at: Arc<OnceLock<Instant>> = Arc::default();
    let mut signals = supervisor::signals(stop.clone(), Arc::clone(&signalled_at))?;
    let hangups = reload::hangups()?;
    let _store_lock = store_lock::lock_store(settings)?;
    let (services, decision_writer) =
        start_services(settings, prepared, controller_settings, stop.clone()).await?;
    let endpoints = listeners::open(settings, prepared, &services)?;
    let workers = Workers::spawn(&services, decision_writer)?;
    let deciding = Arc::clone(&services.controller);
    tokio::select! {
        _ = tokio::task::spawn_blocking(move || deciding.wait_until_decided(FIRST_ANSWER)) => {}
        () = &mut signals => {}
    }
    controller::check_path(&services.controller)?;
    for endpoint in &endpoints {
        endpoint.announce();
    }
    let options = ServeOptions {
        grace: settings.grace,
        client_timeout: settings.client_timeout,
        metrics: Arc::clone(&services.metrics),
    };
    let reloader = Reloader::new(prepared, Arc::clone(&services.metrics), settings_reloader);
    tokio::select! {
        () = serve(endpoints, stop.clone(), options) => {}
        () = async {
            tokio::join!(reloader.keep_fresh(hangups), supervisor::supervise());
        } => {}
        () = async {
            // The signal may have come before the first answer.
            if !stop.is_cancelled() {
                signals.await;
            }
            supervisor::notify(sd_notify::NotifyState::Stopping);
            std::future::pending::<()>().await;
        } => {}
    }
    let since = signalled_at.get().map_or(Duration::ZERO, Instant::elapsed);
    let left = settings.grace.saturating_sub(since).max(LEAST_WORK);
    ending::within(left, LAST_WORK, &services.controller, {
        let services = Arc::clone(&services);
        move || workers.end(&services)
    })
    .await?;
    tracing::info!("stopped");
    Ok(Exit::Fine)
}

/// Starts what the routes of every address share.
async fn start_services(
    settings: &ServeSettings,
    prepared: &Prepared,
    controller_settings: Settings,
    stop: CancellationToken,
) -> Result<(Arc<Services>, Option<DecisionWriter>)> {
    let metrics: Arc<Metrics> = Arc::default();
    let masks = Masks::of_settings(&settings.mask);
    let (decisions, decision_writer) =
        open_decision_log(settings, masks.clone(), Arc::clone(&metrics))?.unzip();
    let check_ins = CheckIns::new(controller::store_settings(settings), Arc::clone(&metrics));
    let starting = tokio::task::spawn_blocking({
        let metrics = Arc::clone(&metrics);
        move || Controller::start(controller_settings, metrics)
    });
    let controller = starting.await.context("the controller failed")??;
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
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
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
        self.controller.join();
        // Last: a standard output that is not read must not keep the others from their end.
        if let Some(decisions) = self.decisions {
            ending::join(decisions, "the writer of decisions");
        }
    }
}
