//! What a daemon needs before it opens the repository, checked and read from its settings.

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};

use super::arguments::ServeSettings;
use super::{directories, files, password_file, sources};
use crate::cli::check_head;
use crate::client::is_private;
use crate::config::{parse_proxy, proxy_of_environment, without_secrets};
use crate::console;
use crate::facts::NodeSource;
use crate::forge::Forge;
use crate::git::{Remote, Scheme, VerifyMode};
use crate::http::{
    Access, AllowedHosts, ClassUpdater, CrlPolicy, Host, Tls, TlsFiles, Webhooks, check_base_path,
};
use crate::reconcile::{HeadChecker, Reporting, WriteMode};

/// What is ready before anything is opened.
pub(super) struct Prepared {
    pub(super) remote: Remote,
    pub(super) listen: Vec<SocketAddr>,
    pub(super) admin: Option<Vec<SocketAddr>>,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) access: Arc<Access>,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) reporting: Option<Reporting>,
    pub(super) puppet_server: Option<ClassUpdater>,
    pub(super) puppetdb: Option<Arc<dyn NodeSource>>,
}

/// Checks everything that can be checked without the repository.
pub(super) fn prepare(serve: &ServeSettings) -> Result<Prepared> {
    let Some(repo) = &serve.repo else {
        bail!("`--repo URL|PATH` is missing: the group repository to serve");
    };
    serve.public_url.as_deref().map_or(Ok(()), check_public_url)?;
    let remote = Remote::parse(repo)?;
    check_remote(serve, &remote)?;
    check_proxy(serve, repo, &remote)?;
    directories::check(serve, &remote)?;
    check_signatures_and_writes(serve, &remote)?;
    files::check(serve)?;
    password_file::check(serve.store.as_ref())?;
    check_base_path(serve.base_path.as_str(), console::paths())?;
    let puppet_server = sources::puppet_server(serve)?;
    let puppetdb = sources::puppetdb(serve)?;
    let tls = open_tls(serve)?;
    let access = Access::new(
        serve.tokens_file.clone(),
        serve.tls_client_ca.is_some(),
        serve.tls_allow.clone(),
        serve.allow_anonymous,
    )?;
    let access = behind_proxy(access, serve)?;
    let listen = addresses(&serve.listen)?;
    let admin = serve.admin_listen.as_deref().map(addresses).transpose()?;
    if access.is_open() && !serve.allow_anonymous {
        check_loopback("--listen", &serve.listen, &listen)?;
        if let (Some(text), Some(admin)) = (&serve.admin_listen, &admin) {
            check_loopback("--admin-listen", text, admin)?;
        }
    }
    access.warn();
    let access = guarded(access, serve, &listen, admin.as_deref());
    let reporting = reporting(serve, &remote)?;
    Ok(Prepared {
        remote,
        listen,
        admin,
        tls,
        access: Arc::new(access),
        webhooks: Arc::new(webhooks(serve)?),
        reporting,
        puppet_server,
        puppetdb,
    })
}

/// Checks that the daemon may use the repository, and has what its transport needs.
fn check_remote(serve: &ServeSettings, remote: &Remote) -> Result<()> {
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
                "`--ssh-known-hosts-file FILE` is missing: without it the remote cannot be authenticated; \
                 make it by `ssh-keyscan HOST > FILE`, and compare the keys with those that the forge publishes"
            );
        }
        if serve.ssh_key_file.is_none() {
            bail!("`--ssh-key-file FILE` is missing: the private key for `ssh`");
        }
    }
    if remote.as_path().is_none() && serve.data_dir.is_none() {
        bail!("`--data-dir DIR` is missing: where the mirror of `{remote}` is kept");
    }
    Ok(())
}

/// Checks that the proxy on the way to the repository can be used, if there is one.
fn check_proxy(serve: &ServeSettings, repo: &str, remote: &Remote) -> Result<()> {
    match (remote.scheme(), serve.git_proxy.as_deref()) {
        (_, Some("none")) => {}
        (_, Some(proxy)) => {
            parse_proxy(proxy).map_err(|fault| anyhow!("the proxy of `--git-proxy` {fault}"))?;
        }
        (Some(Scheme::Https | Scheme::Http), None) => drop(proxy_of_environment(repo)?),
        _ => {}
    }
    Ok(())
}

/// Checks that writes are possible, and that the daemon would accept its own commits.
fn check_signatures_and_writes(serve: &ServeSettings, remote: &Remote) -> Result<()> {
    let verifies = serve.verify != VerifyMode::Off;
    if verifies && serve.allowed_signers_file.is_none() && serve.openpgp_keys_file.is_none() {
        bail!("`--verify` needs `--allowed-signers-file` or `--openpgp-keys-file`: who may sign");
    }
    if serve.writes == WriteMode::Commit && verifies {
        bail!(
            "`--writes commit` makes unsigned commits, which `--verify` refuses: use `--writes propose`, \
             and sign what merges the proposals (with `--verify range`, squash them)"
        );
    }
    if serve.writes == WriteMode::Propose && serve.verify == VerifyMode::Range {
        tracing::warn!(
            "the commits of `--writes propose` are unsigned, and `--verify range` rejects a branch that contains one: \
             squash each proposal into a signed commit"
        );
    }
    if serve.writes != WriteMode::Off && remote.scheme() == Some(Scheme::Git) {
        bail!("nothing can be pushed over `git://`: use `https` or `ssh`, or `--writes off`");
    }
    let is_branch = |it: &str| !it.starts_with("refs/") || it.starts_with("refs/heads/");
    if serve.writes != WriteMode::Off && !serve.branch.as_deref().is_none_or(is_branch) {
        bail!("`--writes` needs a branch to write to: `--branch` names another kind of ref");
    }
    if serve.writes == WriteMode::Off && serve.puppet_server.is_some() {
        bail!(
            "`--puppet-server` needs `--writes commit` or `--writes propose`: the daemon commits the class catalogues that it pulls"
        );
    }
    Ok(())
}

/// Refuses an address that other machines can reach, where no authentication is configured.
fn check_loopback(flag: &str, text: &str, addresses: &[SocketAddr]) -> Result<()> {
    if addresses.iter().all(|it| it.ip().is_loopback()) {
        return Ok(());
    }
    bail!(
        "`{flag} {text}` is reachable from other machines and no authentication is configured: \
         listen on 127.0.0.1, configure `--tokens-file`, `--tls-client-ca` or `--proxy-auth-header`, or pass --allow-anonymous"
    )
}

/// Trusts the proxy that authenticates users, if there is one.
fn behind_proxy(access: Access, serve: &ServeSettings) -> Result<Access> {
    let Some(header) = serve.proxy_auth_header.clone() else { return Ok(access) };
    let networks = serve.proxy_auth_from.clone();
    Ok(access.behind_proxy(header, networks, serve.proxy_auth_allow.clone())?)
}

/// Reads the secrets of webhooks.
fn webhooks(serve: &ServeSettings) -> Result<Webhooks> {
    let fetches_pull_requests = !serve.fetch_refspec.is_empty();
    Webhooks::new(serve.webhook_secret_file.clone(), fetches_pull_requests).with_context(|| {
        let path = serve.webhook_secret_file.as_deref().unwrap_or(Path::new(""));
        format!("the webhook secrets in `{}` cannot be used", path.display())
    })
}

/// Reads the files of TLS, if it is configured.
fn open_tls(serve: &ServeSettings) -> Result<Option<Arc<Tls>>> {
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

/// Checks the address of the daemon, which stands before paths in links. The command line does not: its errors repeat a
/// value with its password.
fn check_public_url(url: &str) -> Result<()> {
    let parsed = url.parse::<axum::http::Uri>().ok();
    let is_usable = parsed.is_some_and(|it| {
        matches!(it.scheme_str(), Some("http" | "https"))
            && it.host().is_some_and(|it| !it.is_empty())
    });
    if is_usable {
        return Ok(());
    }
    let ascii = if url.is_ascii() { "" } else { ", with letters beyond ASCII as `xn--…`" };
    bail!(
        "`--public-url {}` is not a URL such as `https://clade.example.com`{ascii}",
        without_secrets(url)
    )
}

/// Finds the forge of the repository.
fn reporting(serve: &ServeSettings, remote: &Remote) -> Result<Option<Reporting>> {
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
            "`{}` would get the token of the forge in clear text: use `https://`, or pass --allow-insecure-remotes",
            without_secrets(&api)
        );
    }
    proxy_of_environment(&api)?;
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
        arguments: vec![check_head::NAME.into()],
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

/// Refuses requests for other hosts where hosts are configured, and where clients need no credentials: there,
/// a web page that a browser on this machine shows could send them.
fn guarded(
    access: Access,
    serve: &ServeSettings,
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

/// Resolves the addresses to listen on.
fn addresses(text: &str) -> Result<Vec<SocketAddr>> {
    let found = text
        .to_socket_addrs()
        .with_context(|| format!("`{text}` is not an address such as 127.0.0.1:4433"))?;
    Ok(found.collect())
}

/// Returns the schemes that the repository may have.
pub(super) fn schemes(serve: &ServeSettings) -> BTreeSet<Scheme> {
    let insecure = [Scheme::Http, Scheme::Git, Scheme::File];
    // An operator who gives a `file` URL means a path.
    let file = [Scheme::File];
    let more: &[Scheme] = if serve.allow_insecure_remotes { &insecure } else { &file };
    [Scheme::Https, Scheme::Ssh].into_iter().chain(more.iter().copied()).collect()
}
