//! `clade classes pull`

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::super::Exit;
use super::super::client::IdentityArgs;
use super::super::output::Output;
use super::catalogue::{CatalogueTarget, report_broken};
use crate::changeset::{NewCatalogue, WrittenBy};
use crate::config::parse_duration;
use crate::puppet::Published;
use crate::puppet_server::{ClassList, PuppetServer};
use crate::wording::counted;

/// Fetch the classes of an environment from a Puppet Server
///
/// The server's `auth.conf` must allow the certificate to get `/puppet/v3/environment_classes`. A server
/// with `environment-class-cache-enabled` sends the classes only if they changed.
#[derive(Debug, Args)]
pub(super) struct PullCommand {
    #[command(flatten)]
    target: CatalogueTarget,
    /// The Puppet Server
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_PUPPET_SERVER",
        default_value = "https://puppet:8140"
    )]
    server: String,
    #[command(flatten)]
    identity: IdentityArgs,
    /// The timeout; a server may parse all of its code first
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    timeout: Duration,
    /// Fetch the classes even if the catalogue has the version of the server
    #[arg(long)]
    force: bool,
}

impl PullCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let file = self.target.file()?;
        let server = PuppetServer::new(self.server, self.identity.identity())?;
        let known = file.etag().filter(|_| !self.force);
        let list = server.classes(&self.target.environment, known, self.timeout)?;
        let ClassList::Published(Published { classes, broken }, etag) = list else {
            output.note("the classes have not changed");
            return Ok(Exit::Fine);
        };
        // A list that lacks classes is not the version that the server names.
        let (catalogue, left_out) = NewCatalogue::of(classes, etag.filter(|_| broken.is_empty()));
        for reason in left_out {
            output.note(&reason);
        }
        report_broken(&broken, self.target.skip_broken, output)?;
        let count = counted(catalogue.count(), "class");
        self.target.write(&file, &catalogue, WrittenBy::Pull, &count, output)
    }
}
