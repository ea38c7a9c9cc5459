//! `clade classes pull`

use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::Value;

use super::super::Exit;
use super::super::client::{Daemon, Identity, Reply};
use super::super::output::Output;
use super::catalogue::{Target, report_broken};
use crate::changeset::{NewCatalogue, WrittenBy};
use crate::model::EnvironmentName;
use crate::puppet::{Published, read_published};

/// Ask a Puppet Server for the classes of an environment
///
/// The server's `auth.conf` must allow the certificate to ask for
/// `/puppet/v3/environment_classes`. A server with `environment-class-cache-enabled` is asked only
/// for what has changed.
#[derive(Debug, Args)]
pub(super) struct Pull {
    #[command(flatten)]
    target: Target,
    /// The Puppet Server
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_PUPPET_SERVER",
        default_value = "https://puppet:8140"
    )]
    server: String,
    #[command(flatten)]
    identity: Identity,
    /// How long to wait for the answer; a server may read all of its code first
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = super::super::duration)]
    timeout: Duration,
    /// Ask for everything, whatever the catalogue says it was made from
    #[arg(long)]
    force: bool,
}

/// What a Puppet Server says of the classes of an environment.
pub(in crate::cli) enum Answer {
    /// They are those of the version that is known.
    Same,
    /// All of them, with the name of this version.
    Classes(Published, Option<String>),
    /// What is of no use.
    Odd(Odd),
}

/// An answer that is of no use.
pub(in crate::cli) struct Odd {
    pub(in crate::cli) status: u16,
    pub(in crate::cli) body: String,
    /// What is wrong with it, and what helps.
    pub(in crate::cli) error: anyhow::Error,
}

/// Returns where the classes of an environment are.
pub(in crate::cli) fn path_of(environment: &EnvironmentName) -> String {
    format!("/puppet/v3/environment_classes?environment={environment}")
}

/// Asks a Puppet Server for the classes of an environment; `known` is the version that is known.
pub(in crate::cli) fn ask(
    server: &Daemon,
    environment: &EnvironmentName,
    known: Option<&str>,
) -> Result<Answer> {
    let mut headers = vec![("Accept", "application/json")];
    headers.extend(known.map(|etag| ("If-None-Match", etag)));
    let page = server.fetch(&path_of(environment), &headers)?;
    let odd = |error: anyhow::Error, body: String| {
        Ok(Answer::Odd(Odd { status: page.status.as_u16(), body, error }))
    };
    if page.status == 304 && known.is_some() {
        return Ok(Answer::Same);
    }
    if page.status != 200 {
        return odd(refusal(&page, environment.as_str()), page.text);
    }
    let Ok(answer) = serde_json::from_str::<Value>(&page.text) else {
        return odd(anyhow!("`{}` answers with what is no JSON", server.name()), page.text);
    };
    match read_published(&answer) {
        Some(published) => Ok(Answer::Classes(published, page.etag)),
        None => odd(anyhow!("`{}` answers with no list of classes", server.name()), page.text),
    }
}

impl Pull {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let file = self.target.file()?;
        let server = self.identity.at(&self.server, self.timeout)?;
        let known = file.etag().filter(|_| !self.force);
        let (published, etag) = match ask(&server, &self.target.environment, known)? {
            Answer::Same => {
                output.note("the classes have not changed");
                return Ok(Exit::Fine);
            }
            Answer::Classes(published, etag) => (published, etag),
            Answer::Odd(odd) => return Err(odd.error),
        };
        let Published { classes, broken } = published;
        // What lacks classes is no version that anybody has.
        let (catalogue, left_out) = NewCatalogue::of(classes, etag.filter(|_| broken.is_empty()));
        for reason in left_out {
            output.note(&reason);
        }
        report_broken(&broken, self.target.skip_broken, output)?;
        let count = format!("{} classes", catalogue.count());
        self.target.write(&file, &catalogue, WrittenBy::Pull, &count, output)
    }
}

/// Says why there is no answer, and what helps.
fn refusal(page: &Reply, environment: &str) -> anyhow::Error {
    let body: Value = serde_json::from_str(&page.text).unwrap_or_default();
    let said = ["message", "msg"].iter().find_map(|key| body.get(key)?.as_str());
    let said = said.unwrap_or_else(|| page.text.lines().next().unwrap_or_default());
    let said = said.trim_end_matches('.');
    let status = page.status;
    match status.as_u16() {
        403 => anyhow!(
            "the server answers {status}: {said}; allow this certificate in its auth.conf: {{match-request: {{path: \"/puppet/v3/environment_classes\", type: path, method: get}}, allow: \"<certname>\", sort-order: 400, name: \"clade classes\"}}"
        ),
        404 => anyhow!("the server has no environment `{environment}`: {said}"),
        _ => anyhow!("the server answers {status}: {said}"),
    }
}
