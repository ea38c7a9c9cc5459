//! `clade enc`: what Puppet Server runs for each node.
//!
//! It starts for every run of every agent and holds up Puppet Server while it works, so it does
//! nothing that it need not, and everything has a time-out.
#![expect(clippy::disallowed_methods, reason = "time is limited, and settings are a file")]

mod arguments;
mod cache;
mod file_error;
mod health;
mod input;
mod last_good;
mod node_input;
mod offline;
mod puppet;
mod request;
mod walk;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::FromArgMatches as _;
use serde_json::Value;

use super::Exit;
use super::client::DEFAULT_SERVER;
use super::command_line::CommandLine;
use super::output::{DataFormat, Output, one_line};
use super::serve::EncFacts;
use super::settings::{FileOf, SettingsFile};
use super::size_limit::outlive_size_limits_alone;
use crate::diagnostic::visible;
use health::DaemonHealth;
use last_good::LastGood;
use node_input::NodeInput;
use puppet::Puppet;
use request::{EncAnswer, EncRequest};

pub(super) use arguments::EncSettings;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use request::fuzz_answer;

/// The settings file.
pub(super) const FILE: FileOf =
    FileOf { command: "enc", without: &["config", "repo", "rev", "commit_budget", "format"] };

/// The settings file that is read if it is there.
const USUAL_FILE: &str = "/etc/clade/enc.yaml";

impl EncSettings {
    /// Prints the document, or a line with the reason: Puppet shows agents stdout only, and the
    /// server's log stderr.
    pub(super) fn run(self, line: &CommandLine, output: &mut Output) -> Exit {
        let began = Instant::now();
        // An answer that is too large to be kept is printed all the same.
        if let Err(error) = outlive_size_limits_alone() {
            output.note(&format!("clade enc: {}", one_line(&error)));
        }
        let format = self.format;
        let document = self.layered(line).and_then(|enc| enc.document(began, output));
        let document = document.and_then(|document| laid_out(document, format));
        match document.and_then(|document| output.data_in_full(&document)) {
            Ok(()) => Exit::Fine,
            Err(error) => refuse(&error, output),
        }
    }

    /// Puts the settings file, if there is one, under the flags and the environment.
    fn layered(self, line: &CommandLine) -> Result<Self> {
        let usual = Path::new(USUAL_FILE);
        let file = match &self.config {
            Some(path) => SettingsFile::read(FILE, path, line.definition())?,
            None if usual.exists() => SettingsFile::read(FILE, usual, line.definition())?,
            None => SettingsFile::none(FILE),
        };
        let matches = file.layer(line)?.matches;
        let enc = Self::from_arg_matches(&matches)?;
        if enc.budget.is_given() && enc.repo.is_none() {
            bail!("`--commit-budget` needs `--repo`: a daemon has a commit budget of its own");
        }
        Ok(enc)
    }

    fn document(&self, began: Instant, output: &mut Output) -> Result<String> {
        check_certname(&self.node)?;
        let puppet = Puppet::find(self.puppet_conf.as_deref())?;
        if let Some(directory) = &self.repo {
            return self.offline(directory, NodeInput::gather(self, &puppet)?);
        }
        let cache = self.cache_dir.clone().or_else(|| puppet.cache_directory());
        let kept = cache.as_deref().map(|it| LastGood::new(it, &self.node));
        let mut health = DaemonHealth::read(cache.as_deref());
        let input = NodeInput::gather(self, &puppet)?;
        let default = [DEFAULT_SERVER.to_owned()];
        let servers = if self.server.is_empty() { &default[..] } else { &self.server };
        let (identity, unusable) = puppet.identity(&self.identity.identity(), servers);
        if let Some(reason) = unusable {
            output.note(&format!("clade enc: {reason}"));
        }
        let bare = input.bare_body().filter(|_| self.facts == EncFacts::Optional);
        let request = EncRequest {
            servers,
            identity: &identity,
            node: &self.node,
            body: &input.body(),
            bare: bare.as_deref(),
            connect: self.connect_timeout,
            deadline: began + self.timeout,
        };
        let answer = request.send(&mut health);
        health.write();
        let reason = match answer {
            Ok(EncAnswer::Document { text, commit }) => {
                if let Some(Err(error)) = kept.map(|it| it.keep(&text, commit)) {
                    output.note(&format!("clade enc: {}", one_line(&error)));
                }
                return Ok(text);
            }
            Ok(EncAnswer::Refused { reason, .. }) if !self.stale_on_conflict => bail!(reason),
            Ok(EncAnswer::Refused { reason, .. }) => anyhow::Error::msg(reason),
            Err(error) => error,
        };
        let Some(kept) = kept else { return Err(reason) };
        match kept.take(self.max_stale) {
            Ok(last) => {
                output.note(&format!("clade enc: {}; {}", one_line(&reason), last.described()));
                Ok(last.document)
            }
            Err(why) => bail!("{}; {}", one_line(&reason), one_line(&why)),
        }
    }
}

/// Ends without an answer: prints the reason on stderr, and on stdout for Puppet.
pub(super) fn refuse(error: &anyhow::Error, output: &mut Output) -> Exit {
    let reason = format!("clade enc: {}", one_line(error));
    output.note(&reason);
    // If stdout is gone, stderr has it.
    let _gone = output.data(&format!("{}\n", visible(&reason)));
    Exit::Findings
}

/// Writes a document in the format that was asked for.
fn laid_out(document: String, format: DataFormat) -> Result<String> {
    match format {
        DataFormat::Json => Ok(document),
        DataFormat::Yaml => {
            let value: Value = serde_json::from_str(&document)
                .context("the document is not JSON, so it cannot be written as YAML")?;
            Ok(format.write(&value))
        }
    }
}

/// Refuses names that could lead elsewhere: a certname is part of a path.
fn check_certname(name: &str) -> Result<()> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    let is_short = name.len() <= 240;
    if name.is_empty() || !name.chars().all(fits) || name.contains("..") || name.starts_with('.') {
        bail!(
            "`{}` is not a certname: write letters, digits, `.`, `_` and `-`, without a `.` at the start or two in a row",
            name.escape_debug()
        );
    }
    if !is_short {
        bail!("a certname of {} characters is too long", name.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certnames_lead_nowhere_else() {
        for name in ["web1.example.com", "a_b-c", "localhost"] {
            assert!(check_certname(name).is_ok(), "{name}");
        }
        let long = "a".repeat(241);
        for name in ["", "..", "../x", "a/b", "a b", ".hidden", "a..b", "x\n", "é", &long] {
            assert!(check_certname(name).is_err(), "{name}");
        }
    }
}
