//! From settings to a daemon that answers.

use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;

use super::allocator;
use super::arguments::{EncFacts, Serve};
use super::descriptors;
use super::ending;
use super::files;
use super::layers::Layering;
use super::reload::{self, Again, Reloader};
use super::sources;
use crate::cli::{CHECK_HEAD, Exit};
use crate::client::is_private;
use crate::facts::{FactsDirectory, NodeSource};
use crate::forge::Forge;
use crate::git::{
    Credentials, HttpOptions, Interrupt, Mirror, MirrorOptions, ObjectLimits, Person, Proxy,
    Remote, Repository, Scheme, SshOptions, Verification, VerifyMode,
};
use crate::http::{
    Access, AllowedHosts, ClassUpdater, CrlPolicy, EncCache, Endpoint, FactsPolicy, Host, Listener,
    RouteSet, ServeOptions, Services, Tls, TlsFiles, Webhooks, router, serve,
};
use crate::model::Budget;
use crate::reconcile::{
    CheckInsTrouble, Controller, HeadChecker, OnRewrite, Policy, Reason, Reporting, Settings,
    Target, WriteMode, WriteSettings,
};
use crate::store::{CheckIns, Fault, Health, Limits, StoreSettings};
use crate::telemetry::{Log, Metrics};

/// How long the first answer is waited for before clients are let in to be told that there is none.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// How long the threads have at least to end when requests in flight have used up the grace period.
const LEAST_WORK: Duration = Duration::from_millis(200);

/// How long background work may delay the end.
const LAST_WORK: Duration = Duration::from_secs(1);

/// What is ready before anything is opened.
pub(super) struct Prepared {
    remote: Remote,
    listen: Vec<SocketAddr>,
    admin: Option<Vec<SocketAddr>>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) access: Arc<Access>,
    pub(super) webhooks: Arc<Webhooks>,
    reporting: Option<Reporting>,
    puppet_server: Option<ClassUpdater>,
    puppetdb: Option<Arc<dyn NodeSource>>,
}

/// Checks everything that can be checked without touching the repository.
pub(super) fn prepare(serve: &Serve) -> Result<Prepared> {
    let Some(repo) = &serve.repo else {
        bail!("`--repo URL|PATH` is missing: the group repository to serve");
    };
    let remote = Remote::parse(repo)?;
    if let Some(scheme) = remote.scheme().filter(|it| !schemes(serve).contains(it)) {
        bail!(
            "repositories over `{}://` are not allowed, because they are not authenticated: \
             use `https` or `ssh`, or pass --allow-insecure-remotes",
            scheme.as_str()
        );
    }
    if remote.scheme() == Some(Scheme::Ssh) {
        if serve.ssh_known_hosts_file.is_none() {
            bail!(
                "`--ssh-known-hosts-file FILE` is missing: without it the remote cannot be authenticated"
            );
        }
        if serve.ssh_key_file.is_none() {
            bail!("`--ssh-key-file FILE` is missing: the private key for `ssh`");
        }
    }
    if remote.as_path().is_none() && serve.data_dir.is_none() {
        bail!("`--data-dir DIR` is missing: where the mirror of `{remote}` is kept");
    }
    if serve.verify != VerifyMode::Off
        && serve.allowed_signers_file.is_none()
        && serve.openpgp_keys_file.is_none()
    {
        bail!("`--verify` needs `--allowed-signers-file` or `--openpgp-keys-file`: who may sign");
    }
    if serve.writes == WriteMode::Commit && serve.verify != VerifyMode::Off {
        bail!(
            "`--writes commit` makes unsigned commits, which `--verify` refuses: use `--writes propose`"
        );
    }
    if serve.writes != WriteMode::Off && remote.scheme() == Some(Scheme::Git) {
        bail!("nothing can be pushed over `git://`: use `https` or `ssh`, or `--writes off`");
    }
    if serve.writes == WriteMode::Off && serve.puppet_server.is_some() {
        bail!(
            "`--puppet-server` needs `--writes commit` or `--writes propose`: what it says of classes is committed"
        );
    }
    files::check(serve)?;
    let puppet_server = sources::puppet_server(serve)?;
    let puppetdb = sources::puppetdb(serve)?;
    let tls = open_tls(serve)?;
    let access = Access::new(
        serve.tokens_file.clone(),
        serve.tls_client_ca.is_some(),
        serve.tls_allow.clone(),
        serve.allow_anonymous,
    )?;
    let listen = addresses(&serve.listen)?;
    let admin = serve.admin_listen.as_deref().map(addresses).transpose()?;
    if access.is_open() && !serve.allow_anonymous {
        for (flag, text, addresses) in [
            ("--listen", Some(&serve.listen), Some(&listen)),
            ("--admin-listen", serve.admin_listen.as_ref(), admin.as_ref()),
        ] {
            let reachable =
                addresses.is_some_and(|all| all.iter().any(|it| !it.ip().is_loopback()));
            if let Some(text) = text.filter(|_| reachable) {
                bail!(
                    "`{flag} {text}` is reachable from other machines and no authentication is configured: \
                     listen on 127.0.0.1, configure `--tokens-file` or `--tls-client-ca`, or pass --allow-anonymous"
                );
            }
        }
    }
    let access = guarded(access, serve, &listen, admin.as_deref());
    let reporting = reporting(serve, &remote)?;
    let fetches_pull_requests = !serve.fetch_refspec.is_empty();
    let webhooks = Webhooks::new(serve.webhook_secret_file.clone(), fetches_pull_requests)
        .with_context(|| {
            let path = serve.webhook_secret_file.as_deref().unwrap_or(Path::new(""));
            format!("the webhook secrets in `{}` cannot be used", path.display())
        })?;
    Ok(Prepared {
        remote,
        listen,
        admin,
        tls,
        access: Arc::new(access),
        webhooks: Arc::new(webhooks),
        reporting,
        puppet_server,
        puppetdb,
    })
}

/// Reads the files of TLS, where it is on.
fn open_tls(serve: &Serve) -> Result<Option<Arc<Tls>>> {
    let (Some(certificate), Some(key)) = (&serve.tls_cert, &serve.tls_key) else {
        return Ok(None);
    };
    let tls = Tls::open(TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        client_ca: serve.tls_client_ca.clone(),
        client_crl: serve.tls_client_crl.clone(),
        policy: CrlPolicy {
            missing: serve.tls_client_crl_missing,
            expired: serve.tls_client_crl_expired,
        },
    })?;
    Ok(Some(Arc::new(tls)))
}

/// Finds the forge of the repository.
fn reporting(serve: &Serve, remote: &Remote) -> Result<Option<Reporting>> {
    let (Some(provider), Some(token_file)) = (serve.forge, &serve.forge_token_file) else {
        return Ok(None);
    };
    let api = match (&serve.forge_url, remote.host()) {
        (Some(url), _) => url.trim_end_matches('/').to_owned(),
        (None, Some(host)) => provider.api_at(host),
        (None, None) => {
            bail!("`--forge-url URL` is missing: `{remote}` does not say where the forge's API is")
        }
    };
    if !is_private(&api) && !serve.allow_insecure_remotes {
        bail!(
            "`{api}` would get the token of the forge in clear text: use `https://`, or pass --allow-insecure-remotes"
        );
    }
    let repository = match (&serve.forge_repository, remote.url_path()) {
        (Some(repository), _) => repository.clone(),
        (None, Some(path)) => provider.repository_at(path),
        (None, None) => bail!(
            "`--forge-repository NAME` is missing: `{remote}` does not say the repository's name at the forge"
        ),
    };
    if provider.needs_link() && serve.public_url.is_none() {
        bail!("`--public-url URL` is missing: Bitbucket takes no commit status without a link");
    }
    let forge = Forge {
        provider,
        api,
        repository,
        token_file: token_file.clone(),
        ca_file: serve.forge_ca_file.clone(),
    };
    let (instance, public_url) = (serve.instance.clone(), serve.public_url.clone());
    let head_checker = HeadChecker {
        program: own_program(),
        arguments: vec![CHECK_HEAD.into()],
        memory: serve.head_memory,
        timeout: serve.head_timeout,
    };
    Ok(Some(Reporting { forge, instance, public_url, head_checker }))
}

/// Returns the program of this process.
fn own_program() -> PathBuf {
    // On Linux it is the running program even where an upgrade has replaced its file.
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { running } else { std::env::current_exe().unwrap_or(running) }
}

/// Has requests for foreign hosts refused where the address alone says who may, and where hosts are
/// configured.
fn guarded(
    access: Access,
    serve: &Serve,
    listen: &[SocketAddr],
    admin: Option<&[SocketAddr]>,
) -> Access {
    if serve.allowed_hosts.is_empty() && (!access.is_open() || serve.allow_anonymous) {
        return access;
    }
    let addresses = listen.iter().chain(admin.into_iter().flatten());
    let addresses = addresses.map(|it| Host::Address(it.ip().to_canonical()));
    let texts = [Some(&serve.listen), serve.admin_listen.as_ref()].into_iter().flatten();
    let names = texts.filter_map(|it| it.rsplit_once(':')?.0.parse().ok());
    let public = serve
        .public_url
        .as_deref()
        .and_then(|it| it.parse::<axum::http::Uri>().ok()?.host()?.parse().ok());
    let configured = serve.allowed_hosts.iter().cloned();
    access.for_hosts(AllowedHosts::new(addresses.chain(names).chain(public).chain(configured)))
}

fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let found = text
        .to_socket_addrs()
        .with_context(|| format!("`{text}` is not an address such as 127.0.0.1:4433"))?;
    Ok(found.collect())
}

fn schemes(serve: &Serve) -> std::collections::BTreeSet<Scheme> {
    let insecure = [Scheme::Http, Scheme::Git, Scheme::File];
    // What is given on the command line as a file is as good as a path.
    let file = [Scheme::File];
    let more: &[Scheme] = if serve.allow_insecure_remotes { &insecure } else { &file };
    [Scheme::Https, Scheme::Ssh].into_iter().chain(more.iter().copied()).collect()
}

fn mirror_options(serve: &Serve) -> MirrorOptions {
    let credentials = match (&serve.git_username, &serve.git_password_file, &serve.git_token_file) {
        (Some(username), Some(password_file), _) => {
            Credentials::Basic { username: username.clone(), password_file: password_file.clone() }
        }
        (_, _, Some(token_file)) => Credentials::Bearer { token_file: token_file.clone() },
        _ => Credentials::FromUrl,
    };
    let proxy = match serve.git_proxy.as_deref() {
        None => Proxy::Environment,
        Some("none") => Proxy::Direct,
        Some(url) => Proxy::Url(url.to_owned()),
    };
    MirrorOptions {
        schemes: schemes(serve),
        refspecs: serve.fetch_refspec.clone(),
        timeout: serve.fetch_timeout,
        max_bytes: serve.fetch_limit,
        objects: ObjectLimits { bytes: serve.fetch_object_limit, count: serve.fetch_objects },
        interrupt: Interrupt::default(),
        http: HttpOptions { credentials, ca_file: serve.git_ca_file.clone(), proxy },
        ssh: SshOptions {
            key_file: serve.ssh_key_file.clone(),
            known_hosts_file: serve.ssh_known_hosts_file.clone(),
        },
    }
}

/// Finds where the branch is: a path without a data directory is read in place.
fn target(serve: &Serve, remote: &Remote, options: &MirrorOptions) -> Result<Target> {
    match (&serve.data_dir, remote.as_path()) {
        (None, Some(path)) => {
            // What is wrong with it is said before anything else is done.
            open_local(path)?;
            Ok(Target::Local(path.to_owned()))
        }
        (Some(data), path) => {
            let mirror = Mirror::open(data, remote.clone(), options.clone())?;
            // Where the daemon has been before, a path that is gone is a remote that is down.
            let was_here = mirror.live().is_some() || data.join("journal").exists();
            if let Some(path) = path.filter(|_| !was_here) {
                open_local(path)?;
            }
            Ok(Target::Remote(Box::new(mirror)))
        }
        (None, None) => Err(anyhow!("`--data-dir DIR` is missing")),
    }
}

/// Checks that a path leads to a repository.
fn open_local(path: &Path) -> Result<()> {
    let opened = Repository::discover(path);
    opened
        .context("`--repo` must be a git repository: correct the path, or run `git init` there")?;
    Ok(())
}

/// Ends the start where the branch lacks the directory of the groups and nothing else answers.
fn check_path(controller: &Controller) -> Result<()> {
    if let Some(head) = controller.lacks_path() {
        bail!(
            "`--path {}`: the commit {head} of the branch has no such directory: correct `--path`, or push a commit that has it",
            controller.path()
        );
    }
    Ok(())
}

/// Returns the address for people; a path is written whole, since they may be elsewhere.
fn address(remote: &Remote) -> String {
    let whole = remote.as_path().and_then(|path| path.canonicalize().ok());
    whole.map_or_else(|| remote.to_string(), |path| path.display().to_string())
}

/// Runs the daemon until it is told to stop.
pub(super) fn run(serve: Serve, layering: Layering) -> Result<Exit> {
    let log = Log::start(serve.log_format, &serve.log).context("cannot start the log")?;
    let prepared = prepare(&serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    allocator::keep_trimming().context("cannot start a thread")?;
    let done = runtime.block_on(run_within(serve, prepared, Again { log, layering }));
    // A request to a Puppet Server may still run; its answer is not needed any more.
    runtime.shutdown_timeout(LAST_WORK);
    done
}

/// Returns what is followed, and how.
fn settings(serve: &Serve, prepared: &Prepared) -> Result<Settings> {
    let transport = mirror_options(serve);
    Ok(Settings {
        target: target(serve, &prepared.remote, &transport)?,
        transport: Box::new(transport),
        address: address(&prepared.remote),
        branch: serve.branch.clone(),
        path: serve.path.clone(),
        interval: serve.interval,
        data: serve.data_dir.clone(),
        policy: policy(serve),
        budget: Budget::DEFAULT.with(&serve.commit_budget),
        snapshot_cache: serve.snapshot_cache,
        verification: Verification {
            mode: serve.verify,
            allowed_signers: serve.allowed_signers_file.clone(),
            openpgp_keys: serve.openpgp_keys_file.clone(),
        },
        reporting: prepared.reporting.clone(),
    })
}

async fn run_within(serve_settings: Serve, prepared: Prepared, again: Again) -> Result<Exit> {
    let serve_settings = Arc::new(serve_settings);
    let settings = settings(&serve_settings, &prepared)?;
    let metrics: Arc<Metrics> = Arc::default();
    let check_ins = CheckIns::new(store_settings(&serve_settings), Arc::clone(&metrics));
    let stop = CancellationToken::new();
    let told_to_stop = Arc::default();
    let mut signals = signals(stop.clone(), Arc::clone(&told_to_stop))?;
    let hangups = reload::hangups()?;
    let starting = tokio::task::spawn_blocking({
        let metrics = Arc::clone(&metrics);
        move || Controller::start(settings, metrics)
    });
    let controller = starting.await.context("the controller failed")??;
    let writes =
        writer_settings(&serve_settings, &prepared).map(|it| Arc::new(controller.writer(it)));
    let services = Arc::new(Services {
        controller: Arc::clone(&controller),
        writer: writes.clone(),
        metrics,
        access: Arc::clone(&prepared.access),
        webhooks: Arc::clone(&prepared.webhooks),
        check_ins: check_ins.clone(),
        puppet_server: prepared.puppet_server.clone(),
        facts: FactsPolicy {
            directory: serve_settings.facts_dir.clone().map(|it| Arc::new(FactsDirectory::new(it))),
            puppetdb: prepared.puppetdb.clone(),
            required: serve_settings.enc_facts == EncFacts::Required,
        },
        enc_cache: EncCache::default(),
    });
    let endpoints = open(&serve_settings, &prepared, &services)?;
    let threads = controller.spawn()?;
    let writing = writes
        .clone()
        .map(|it| std::thread::Builder::new().name("writer".to_owned()).spawn(move || it.run()))
        .transpose()
        .context("cannot start a thread")?;
    let writer = std::thread::Builder::new()
        .name("check-ins".to_owned())
        .spawn({
            let (check_ins, controller) = (check_ins.clone(), Arc::clone(&controller));
            move || check_ins.keep_writing(&|health| controller.note_check_ins(trouble(health)))
        })
        .context("cannot start a thread")?;
    let deciding = Arc::clone(&controller);
    tokio::select! {
        _ = tokio::task::spawn_blocking(move || deciding.wait_until_decided(FIRST_ANSWER)) => {}
        () = &mut signals => {}
    }
    check_path(&controller)?;
    for endpoint in &endpoints {
        endpoint.announce();
    }
    let options = serve_options(&serve_settings, &services);
    let reloader = Reloader::new(&prepared, Arc::clone(&services.metrics), again);
    tokio::select! {
        () = serve(endpoints, stop.clone(), options) => {}
        () = async {
            tokio::join!(reloader.keep_fresh(hangups), supervise());
        } => {}
        () = async {
            // The signal may have come before the first answer.
            if !stop.is_cancelled() {
                signals.await;
            }
            supervisor(sd_notify::NotifyState::Stopping);
            std::future::pending::<()>().await;
        } => {}
    }
    let since = told_to_stop.get().map_or(Duration::ZERO, Instant::elapsed);
    let left = serve_settings.grace.saturating_sub(since).max(LEAST_WORK);
    let ending = Arc::clone(&controller);
    ending::within(left, LAST_WORK, &controller, move || {
        check_ins.stop();
        ending::join(writer, "the writer of check-ins");
        if let Some(writes) = writes {
            writes.stop();
        }
        if let Some(writing) = writing {
            ending::join(writing, "the writer of groups");
        }
        ending.stop();
        threads.join();
    })
    .await?;
    tracing::info!("stopped");
    Ok(Exit::Fine)
}

/// Returns what is done where there is a choice.
fn policy(serve: &Serve) -> Policy {
    // Where pushes are not trusted, neither is a push that leaves history out.
    let on_rewrite = match serve.verify {
        VerifyMode::Off => OnRewrite::Follow,
        VerifyMode::Head | VerifyMode::Range => OnRewrite::Hold,
    };
    Policy {
        on_rewrite: serve.on_rewrite.unwrap_or(on_rewrite),
        rewind_grace: serve.rewind_grace,
        max_staleness: serve.max_staleness,
        on_stale: serve.on_stale,
    }
}

/// Returns where check-ins are kept, and how many.
fn store_settings(serve: &Serve) -> StoreSettings {
    StoreSettings {
        path: serve.data_dir.as_deref().map(|it| it.join("check-ins.redb")),
        cache: usize::try_from(serve.store_cache).unwrap_or(usize::MAX),
        limits: Limits {
            nodes: serve.store_max_nodes,
            bytes: serve.store_max_bytes,
            forget_after: serve.forget_after,
        },
    }
}

/// Says what is wrong with the store of check-ins in the words of conditions.
fn trouble(health: &Health) -> CheckInsTrouble {
    let failing = health.failing.as_ref().map(|error| {
        let reason = match error.fault {
            Fault::DiskFull => Reason::DiskFull,
            Fault::Locked => Reason::LockHeld,
            _ => Reason::WriteFailed,
        };
        (reason, format!("{error}; what needs them is answered 503"))
    });
    let put_aside = health.put_aside.as_ref().map(|path| {
        format!(
            "`{}` could not be read and was put aside; nodes that have not checked in with facts and trusted data since then get 503 where stored data are needed; to end this, remove that file, or stop the daemon and put a backup of `check-ins.redb` in its place",
            path.display()
        )
    });
    CheckInsTrouble { failing, put_aside }
}

/// Returns how writes are made; none where they are refused.
fn writer_settings(serve: &Serve, prepared: &Prepared) -> Option<WriteSettings> {
    let committer = serve.write_committer.strip_suffix('>')?.split_once(" <");
    let (name, email) = committer?;
    Some(WriteSettings {
        mode: serve.writes,
        committer: Person { name: name.trim().to_owned(), email: email.to_owned() },
        trailers: serve.write_trailer.clone(),
        retries: serve.write_retries,
        forge: prepared.reporting.as_ref().map(|it| it.forge.clone()),
    })
    .filter(|it| it.mode != WriteMode::Off)
}

fn serve_options(serve: &Serve, services: &Services) -> ServeOptions {
    ServeOptions {
        grace: serve.grace,
        client_timeout: serve.client_timeout,
        metrics: Arc::clone(&services.metrics),
    }
}

/// Opens every address.
fn open(settings: &Serve, prepared: &Prepared, services: &Arc<Services>) -> Result<Vec<Endpoint>> {
    let listen = |addresses: &[SocketAddr]| -> Result<TcpListener> {
        let listener = StdListener::bind(addresses).with_context(|| {
            let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("cannot listen on {}", all.join(", "))
        })?;
        listener.set_nonblocking(true).context("cannot prepare the socket")?;
        TcpListener::from_std(listener).context("cannot prepare the socket")
    };
    let secured = |listener| match &prepared.tls {
        Some(tls) => Listener::Tls(listener, Arc::clone(tls)),
        None => Listener::Plain(listener),
    };
    let set = if prepared.admin.is_some() { RouteSet::Public } else { RouteSet::Whole };
    let mut endpoints = vec![Endpoint {
        listener: secured(listen(&prepared.listen)?),
        routes: router(Arc::clone(services), set),
        name: "listen",
        connection_limit: descriptors::connections(settings.max_connections),
    }];
    if let Some(admin) = &prepared.admin {
        let routes = router(Arc::clone(services), RouteSet::Admin);
        let listener = secured(listen(admin)?);
        let connection_limit = descriptors::APART;
        let name = "admin-listen";
        endpoints.push(Endpoint { listener, routes, name, connection_limit });
    }
    if let Some(path) = &settings.socket {
        let routes = router(Arc::clone(services), RouteSet::Whole);
        let listener = Listener::Unix(socket(path)?);
        let connection_limit = descriptors::APART;
        endpoints.push(Endpoint { listener, routes, name: "socket", connection_limit });
    }
    Ok(endpoints)
}

/// Opens a unix socket in the place of one that a daemon before us left behind.
fn socket(path: &Path) -> Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;

    let shown = path.display();
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                bail!("another process listens on `{shown}`");
            }
            std::fs::remove_file(path).with_context(|| format!("cannot replace `{shown}`"))?;
        }
        Ok(_) => bail!("`{shown}` exists and is not a socket"),
        Err(_) => {}
    }
    let listener =
        UnixListener::bind(path).with_context(|| format!("cannot listen on `{shown}`"))?;
    let mode = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(path, mode).with_context(|| format!("cannot protect `{shown}`"))?;
    Ok(listener)
}

/// Tells the supervisor something, if there is one.
fn supervisor(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the supervisor cannot be told");
    }
}

/// Tells the supervisor that we are there, and goes on doing so as often as it wants.
async fn supervise() {
    supervisor(sd_notify::NotifyState::Ready);
    let Some(every) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(every / 2).await;
        supervisor(sd_notify::NotifyState::Watchdog);
    }
}

/// Returns what waits for SIGTERM or SIGINT and then stops everything.
fn signals(
    stop: CancellationToken,
    since: Arc<OnceLock<Instant>>,
) -> Result<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        since.set(Instant::now()).ok();
        stop.cancel();
    }))
}
