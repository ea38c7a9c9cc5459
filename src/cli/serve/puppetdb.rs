//! The `PuppetDB` that a daemon asks for nodes.

use std::time::Duration;

use anyhow::Result;

use super::Serve;

use crate::cli::client::Identity;
use crate::cli::nodes::{found_in_puppetdb, of_puppetdb};
use crate::http::NodeSource;

/// How long it may take for one node: an ENC waits.
const ONE: Duration = Duration::from_secs(2);

/// How long it may take for a page of nodes.
const PAGE: Duration = Duration::from_mins(1);

/// Prepares to ask it, where one is set.
pub(super) fn elsewhere(settings: &Serve) -> Result<Option<NodeSource>> {
    let Some(url) = &settings.puppetdb else { return Ok(None) };
    let pair = settings.tls_cert.clone().zip(settings.tls_key.clone());
    let identity = Identity::of_files(settings.tls_client_ca.clone(), pair);
    let (one, pages) = (identity.at(url, ONE)?, identity.at(url, PAGE)?);
    Ok(Some(NodeSource::new(
        move |certname, room| {
            let admit = |text: &[u8]| room.admits_bytes(text.len()) && room.admits_row(text);
            of_puppetdb(&one, certname, &admit).map_err(|error| format!("{error:#}"))
        },
        move |query, each| {
            found_in_puppetdb(&pages, query, each).map_err(|error| format!("{error:#}"))
        },
    )))
}
