//! The Puppet Server that the daemon asks for classes.

use std::time::Duration;

use anyhow::Result;

use super::Serve;
use crate::changeset::NewCatalogue;
use crate::cli::classes::{Answer, Odd, ask, path_of};
use crate::cli::client::{Identity, Timeouts};
use crate::http::{PullError, Pulled, PuppetServer};
use crate::model::EnvironmentName;
use crate::puppet::Published;

/// How long a connection to a Puppet Server may take.
const CONNECTING: Duration = Duration::from_secs(10);

/// Prepares to ask a Puppet Server for classes.
pub(super) fn prepare(settings: &Serve) -> Result<Option<PuppetServer>> {
    let Some(url) = settings.puppet_server.clone() else { return Ok(None) };
    let pair = |certificate: &Option<_>, key: &Option<_>| certificate.clone().zip(key.clone());
    let own = pair(&settings.puppet_server_cert, &settings.puppet_server_key);
    let pair = own.or_else(|| pair(&settings.tls_cert, &settings.tls_key));
    let ca = settings.puppet_server_ca.clone().or_else(|| settings.tls_client_ca.clone());
    let identity = Identity::of_files(ca, pair);
    // What is wrong with the settings is said before anything is done.
    identity.at(&url, settings.puppet_server_timeout)?;
    Ok(Some(PuppetServer::new(settings.puppet_server_timeout, move |environment, known, left| {
        // Certificates are read anew each time, since they expire.
        pull(&identity, &url, environment, known, left)
    })))
}

fn pull(
    identity: &Identity,
    url: &str,
    environment: &EnvironmentName,
    known: Option<&str>,
    left: Duration,
) -> Result<Pulled, PullError> {
    let unreachable = |error: anyhow::Error| PullError::Unreachable(format!("{error:#}"));
    let patience = Timeouts { connect: CONNECTING.min(left), total: left };
    let server = identity.within(url, patience).map_err(unreachable)?;
    let unexpected = |message: String, status: u16, body: String| PullError::Unexpected {
        message,
        url: format!("{}{}", server.name(), path_of(environment)),
        status,
        body,
    };
    let (Published { classes, broken }, etag) =
        match ask(&server, environment, known).map_err(unreachable)? {
            Answer::Same => return Ok(Pulled::Unchanged),
            Answer::Classes(published, etag) => (published, etag),
            Answer::Odd(Odd { status, body, error }) => {
                return Err(unexpected(format!("{error:#}"), status, body));
            }
        };
    if let Some((path, reason)) = broken.first() {
        let message = format!(
            "the server could not read {} of its files, so classes could be missing: {path}: {reason}",
            broken.len()
        );
        return Err(unexpected(message, 200, String::new()));
    }
    let (catalogue, left_out) = NewCatalogue::of(classes, etag);
    for reason in left_out {
        tracing::warn!(%environment, reason, "a class of the Puppet Server is no class");
    }
    Ok(Pulled::Classes(catalogue))
}
