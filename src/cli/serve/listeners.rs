//! The addresses and the unix socket that the daemon listens on.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use socket2::SockRef;
use tokio::net::{TcpListener, UnixListener};

use super::arguments::ServeSettings;
use super::descriptors;
use super::prepare::Prepared;
use crate::console::{self, ConsoleSettings, Transport};
use crate::http::{Dispatcher, Endpoint, Listener, RouteSet, Services, router_with_pages};

/// How many connections may wait to be accepted, as far as the system allows: with the 128 of the standard library, those
/// of a burst wait a second and more until the client tries again.
const BACKLOG: i32 = 4096;

/// Opens every address.
pub(super) fn open(
    settings: &ServeSettings,
    prepared: &Prepared,
    services: &Arc<Services>,
) -> Result<Vec<Endpoint<Dispatcher>>> {
    let secured = |listener| match &prepared.tls {
        Some(tls) => Listener::Tls(listener, Arc::clone(tls)),
        None => Listener::Plain(listener),
    };
    let transport = if prepared.tls.is_some() { Transport::Tls } else { Transport::Plain };
    let console = ConsoleSettings::new(settings.base_path.clone(), transport)?;
    let with_pages = |set| {
        router_with_pages(Arc::clone(services), set, console.base_path(), |api| {
            console::pages(api, &console)
        })
    };
    let set = if prepared.admin.is_some() { RouteSet::Public } else { RouteSet::Whole };
    let routes = with_pages(set)?;
    let mut endpoints = vec![Endpoint {
        listener: secured(listen("listen", &prepared.listen)?),
        routes,
        name: "listen",
        connection_limit: descriptors::connections(settings.max_connections),
    }];
    if let Some(admin) = &prepared.admin {
        let routes = with_pages(RouteSet::Admin)?;
        let listener = secured(listen("admin-listen", admin)?);
        let connection_limit = descriptors::APART;
        let name = "admin-listen";
        endpoints.push(Endpoint { listener, routes, name, connection_limit });
    }
    if let Some(path) = &settings.socket {
        let routes = with_pages(RouteSet::Whole)?;
        let listener = Listener::Unix(socket(path)?);
        let connection_limit = descriptors::APART;
        endpoints.push(Endpoint { listener, routes, name: "socket", connection_limit });
    }
    Ok(endpoints)
}

/// Listens on the first of some addresses that is free.
fn listen(flag: &str, addresses: &[SocketAddr]) -> Result<TcpListener> {
    let listener = StdListener::bind(addresses).map_err(|error| {
        let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let help = match error.kind() {
            ErrorKind::AddrInUse => help_of_taken(flag, addresses),
            _ => String::new(),
        };
        anyhow!("cannot listen on {}: {error}{help}", all.join(", "))
    })?;
    listener.set_nonblocking(true).context("cannot prepare the socket")?;
    // Listening again sets how many may wait.
    SockRef::from(&listener).listen(BACKLOG).context("cannot prepare the socket")?;
    TcpListener::from_std(listener).context("cannot prepare the socket")
}

/// Says what to do about addresses of which another program has the port.
fn help_of_taken(flag: &str, addresses: &[SocketAddr]) -> String {
    let mut free = addresses.first().copied();
    if let Some(free) = &mut free {
        free.set_port(free.port().checked_add(1).unwrap_or(4433));
    }
    let free = free.map(|it| format!(", such as `--{flag} {it}`")).unwrap_or_default();
    format!(
        "; another program has the port, perhaps another `clade serve`: stop it, or choose another address{free}"
    )
}

/// Opens a unix socket; replaces one that an earlier daemon left behind.
fn socket(path: &Path) -> Result<UnixListener> {
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
