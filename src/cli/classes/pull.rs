//! `clade classes pull`

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use serde_json::Value;

use super::super::Exit;
use super::super::client::{Identity, Reply};
use super::super::output::Output;
use super::catalogue::{Catalogue, Target, report_broken};
use crate::puppet::{DataType, Default, Parameter, PuppetClass};

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

/// The key of the line in the catalogue's header that says which version of the classes it has.
const ETAG: &str = "etag:";

impl Pull {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let file = self.target.file()?;
        let service = self.identity.at(&self.server, self.timeout)?;
        let known = file.header(ETAG).filter(|_| !self.force).map(str::to_owned);
        let mut headers = vec![("Accept", "application/json")];
        headers.extend(known.as_deref().map(|etag| ("If-None-Match", etag)));
        let environment = &self.target.environment;
        let path = format!("/puppet/v3/environment_classes?environment={environment}");
        let page = service.fetch(&path, &headers)?;
        if page.status == 304 {
            output.note("the classes have not changed");
            return Ok(Exit::Fine);
        }
        if page.status != 200 {
            return Err(refusal(&page, environment.as_str()));
        }
        let answer: Value = serde_json::from_str(&page.text)
            .map_err(|_| anyhow!("`{}` answers with what is no JSON", self.server))?;
        let (catalogue, broken) = read(&answer, output)
            .ok_or_else(|| anyhow!("`{}` answers with no list of classes", self.server))?;
        report_broken(&broken, self.target.skip_broken, output)?;
        let mut header =
            "# Written by `clade classes pull`: run it again instead of changing this.\n"
                .to_owned();
        if let Some(etag) = page.etag.filter(|it| broken.is_empty() && !it.contains('\n')) {
            let _infallible = writeln!(header, "# {ETAG} {etag}");
        }
        let count = format!("{} classes", catalogue.len());
        self.target.write(&file, &catalogue, &header, &count, output)
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

/// Reads the answer: the classes of each file, or what is wrong with it.
fn read(answer: &Value, output: &mut Output) -> Option<(Catalogue, Vec<(String, String)>)> {
    let mut catalogue = Catalogue::default();
    let mut broken = Vec::new();
    for file in answer.get("files")?.as_array()? {
        let path = file.get("path")?.as_str()?;
        if let Some(reason) = file.get("error").and_then(Value::as_str) {
            broken.push((path.to_owned(), reason.to_owned()));
        }
        for class in file.get("classes").and_then(Value::as_array).into_iter().flatten() {
            let parameters = class.get("params")?.as_array()?.iter().map(parameter);
            let class = PuppetClass {
                name: class.get("name")?.as_str()?.to_owned(),
                line: 1,
                parameters: parameters.collect::<Option<_>>()?,
            };
            if let Err(reason) = catalogue.add(class) {
                output.note(&format!("{path}: {reason}: left out"));
            }
        }
    }
    Some((catalogue, broken))
}

fn parameter(parameter: &Value) -> Option<Parameter> {
    let text = |key: &str| parameter.get(key).and_then(Value::as_str);
    let default = match (parameter.get("default_literal"), text("default_source")) {
        (Some(value), _) => Default::Value(value.clone()),
        (None, Some("undef")) => Default::Value(Value::Null),
        (None, Some(code)) => Default::Code(code.to_owned()),
        (None, None) => Default::Required,
    };
    let data_type = text("type").and_then(|it| it.parse::<DataType>().ok());
    Some(Parameter { name: text("name")?.to_owned(), data_type, default })
}
