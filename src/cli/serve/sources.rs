//! The services that a daemon asks: a `PuppetDB` for nodes, a Puppet Server for classes.

use std::sync::Arc;

use anyhow::Result;

use super::ServeSettings;
use crate::client::Identity;
use crate::facts::NodeSource;
use crate::http::ClassUpdater;
use crate::puppet_server::PuppetServer;
use crate::puppetdb::PuppetDb;

/// Returns the `PuppetDB`, where one is set.
pub(super) fn puppetdb(settings: &ServeSettings) -> Result<Option<Arc<dyn NodeSource>>> {
    let Some(url) = &settings.puppetdb else { return Ok(None) };
    let pair = settings.tls_cert.clone().zip(settings.tls_key.clone());
    let identity = Identity::of_files(settings.tls_client_ca.clone(), pair);
    Ok(Some(Arc::new(PuppetDb::new(url, &identity)?)))
}

/// Returns the Puppet Server, where one is set.
pub(super) fn puppet_server(settings: &ServeSettings) -> Result<Option<ClassUpdater>> {
    let Some(url) = settings.puppet_server.clone() else { return Ok(None) };
    let pair = |certificate: &Option<_>, key: &Option<_>| certificate.clone().zip(key.clone());
    let own = pair(&settings.puppet_server_cert, &settings.puppet_server_key);
    let pair = own.or_else(|| pair(&settings.tls_cert, &settings.tls_key));
    let ca = settings.puppet_server_ca.clone().or_else(|| settings.tls_client_ca.clone());
    let server = PuppetServer::new(url, Identity::of_files(ca, pair))?;
    Ok(Some(ClassUpdater::new(server, settings.puppet_server_timeout)))
}
