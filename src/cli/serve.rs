//! `clade serve`

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::config::ServeFile;
use crate::git::{Mirror, MirrorOptions, Remote, Repository, Scheme};
use crate::http::{App, router, serve};
use crate::reconcile::{Controller, Settings, Target};
use crate::telemetry;

/// Run the controller daemon: follow a branch, validate every commit, answer over HTTP
#[derive(Debug, Args)]
pub(super) struct Serve {
    /// The group repository: a path, `https://`, `git://` or `file://`
    #[arg(long, value_name = "URL|PATH", env = "CLADE_REPO")]
    repo: Option<String>,
    /// The branch to follow [default: what the repository's HEAD names]
    #[arg(long, value_name = "NAME", env = "CLADE_BRANCH")]
    branch: Option<String>,
    /// The directory of the groups in the repository [default: .]
    #[arg(long, value_name = "DIR", env = "CLADE_PATH")]
    path: Option<String>,
    /// The address to listen on [default: 127.0.0.1:4433]
    #[arg(long, value_name = "ADDRESS", env = "CLADE_LISTEN")]
    listen: Option<String>,
    /// The directory of the mirror; a path is read in place without one
    #[arg(long, value_name = "DIR", env = "CLADE_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// How often the branch is looked at [default: 30s]
    #[arg(long, value_name = "DURATION", env = "CLADE_INTERVAL")]
    interval: Option<String>,
    /// A YAML file with the same settings; flags and environment win over it
    #[arg(long, value_name = "FILE", env = "CLADE_CONFIG")]
    config: Option<PathBuf>,
    /// Listen beyond the loopback interface without any authentication
    #[arg(long, env = "CLADE_ALLOW_ANONYMOUS")]
    allow_anonymous: bool,
}

/// The settings, from flags, environment and file.
struct Effective {
    remote: Remote,
    branch: Option<String>,
    path: String,
    listen: Vec<SocketAddr>,
    data_dir: Option<PathBuf>,
    interval: Duration,
}

impl Serve {
    pub(super) fn run(self) -> Result<Exit> {
        telemetry::init();
        let settings = self.effective()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        runtime.block_on(run(settings))
    }

    fn effective(self) -> Result<Effective> {
        let file = match &self.config {
            Some(path) => {
                let what = || format!("cannot read the settings in `{}`", path.display());
                let bytes = std::fs::read(path).with_context(what)?;
                ServeFile::read(&bytes).with_context(what)?
            }
            None => ServeFile::default(),
        };
        let Some(repo) = self.repo.or(file.repo) else {
            bail!("`--repo URL|PATH` is missing: the group repository to serve");
        };
        let listen = self.listen.or(file.listen).unwrap_or_else(|| "127.0.0.1:4433".to_owned());
        let addresses: Vec<SocketAddr> = listen
            .to_socket_addrs()
            .with_context(|| format!("`{listen}` is not an address such as 127.0.0.1:4433"))?
            .collect();
        let anonymous = self.allow_anonymous || file.allow_anonymous.unwrap_or(false);
        if !anonymous && addresses.iter().any(|it| !it.ip().is_loopback()) {
            bail!(
                "`{listen}` is reachable from other machines and no authentication is configured: \
                 listen on 127.0.0.1, or pass --allow-anonymous"
            );
        }
        let interval = self.interval.or(file.interval).unwrap_or_else(|| "30s".to_owned());
        Ok(Effective {
            remote: Remote::parse(&repo)?,
            branch: self.branch.or(file.branch),
            path: self.path.or(file.path).unwrap_or_else(|| ".".to_owned()),
            listen: addresses,
            data_dir: self.data_dir.or(file.data_dir.map(PathBuf::from)),
            interval: parse_interval(&interval)?,
        })
    }
}

fn parse_interval(text: &str) -> Result<Duration> {
    let wrong = || anyhow!("`{text}` is not a duration such as 30s, 5m or 500ms");
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    let interval = Duration::try_from(parsed).map_err(|_| wrong())?;
    if interval < Duration::from_millis(10) {
        return Err(anyhow!("the interval `{text}` is too short: 10ms is the least"));
    }
    Ok(interval)
}

/// Finds where the branch is: a path without a data directory is read in place.
fn target(settings: &Effective) -> Result<Target> {
    let data = match (&settings.data_dir, settings.remote.as_path()) {
        (None, Some(path)) => {
            // What is wrong with it is said before anything else is done.
            Repository::discover(path)?;
            return Ok(Target::Local(path.to_owned()));
        }
        (Some(data), _) => data.clone(),
        (None, None) => {
            bail!("`--data-dir DIR` is missing: where the mirror of `{}` is kept", settings.remote)
        }
    };
    let schemes = [Scheme::Https, Scheme::Git, Scheme::File].into();
    let options = MirrorOptions { schemes, ..MirrorOptions::default() };
    Ok(Target::Remote(Mirror::open(&data, settings.remote.clone(), options)?))
}

/// Returns the address for people; a path is written whole, since they may be elsewhere.
fn address(remote: &Remote) -> String {
    let whole = remote.as_path().and_then(|path| path.canonicalize().ok());
    whole.map_or_else(|| remote.to_string(), |path| path.display().to_string())
}

async fn run(settings: Effective) -> Result<Exit> {
    let addresses: Vec<String> = settings.listen.iter().map(ToString::to_string).collect();
    let controller_settings = Settings {
        target: target(&settings)?,
        address: address(&settings.remote),
        branch: settings.branch.clone(),
        path: settings.path.clone(),
        interval: settings.interval,
    };
    // The first fetch may take its time; signals are heeded meanwhile.
    let starting = tokio::task::spawn_blocking(move || Controller::start(controller_settings));
    let stop = CancellationToken::new();
    let mut signals = signals(stop.clone())?;
    let controller = tokio::select! {
        started = starting => started.context("the controller failed")??,
        () = stop.cancelled() => return Ok(Exit::Fine),
        () = &mut signals => return Ok(Exit::Fine),
    };
    let listener = TcpListener::bind(settings.listen.as_slice())
        .await
        .with_context(|| format!("cannot listen on {}", addresses.join(", ")))?;
    let address = listener.local_addr().context("cannot tell the address")?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "listening on http://{address}");
    let following = std::thread::Builder::new()
        .name("reconcile".to_owned())
        .spawn({
            let controller = Arc::clone(&controller);
            move || controller.run()
        })
        .context("cannot start a thread")?;
    let routes = router(App { controller: Arc::clone(&controller), metrics: Arc::default() });
    tokio::select! {
        () = serve(listener, routes.clone(), stop.clone()) => {}
        () = async { signals.await; std::future::pending::<()>().await } => {}
    }
    controller.stop();
    if following.join().is_err() {
        tracing::error!("the control loop failed");
    }
    tracing::info!("stopped");
    Ok(Exit::Fine)
}

/// Returns what waits for SIGTERM or SIGINT and then stops everything.
fn signals(stop: CancellationToken) -> Result<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        stop.cancel();
    }))
}
