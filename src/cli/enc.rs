//! `clade enc`: what Puppet Server runs for each node.
//!
//! It starts for every run of every agent and holds up Puppet Server while it works, so it does
//! nothing that it need not, and everything has a time-out.
#![expect(clippy::disallowed_methods, reason = "time is limited, and settings are a file")]

mod ask;
mod cache;
mod health;
mod input;
mod known;
mod last_good;
mod offline;
mod puppet;
mod walk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Args, FromArgMatches as _};
use serde_json::Value;

use super::Exit;
use super::client::{DEFAULT_SERVER, IdentityArgs};
use super::output::{DataFormat, Output};
use super::serve::EncFacts;
use super::settings::{FileOf, SettingsFile};
use ask::{Answer, Question};
use health::Health;
use known::Known;
use last_good::LastGood;
use puppet::Puppet;

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use self::ask::fuzz_answer;

/// The settings file.
pub(super) const FILE: FileOf =
    FileOf { command: "enc", without: &["config", "repo", "rev", "format"] };

/// The settings file that is read if it is there.
const USUAL_FILE: &str = "/etc/clade/enc.yaml";

/// Print the ENC document of a node, for Puppet's `external_nodes`
///
/// Asks a daemon with the node's facts from Puppet Server's cache and the trusted data of its
/// certificate; if no daemon answers, the last good answer stands in. Every flag but --repo, --rev and --format is also a key
/// of the settings file; a flag wins over a variable, and a variable over the file. Exit status: 0 with
/// the document on stdout; 1 with the reason on stdout, where Puppet looks, and on stderr.
#[derive(Debug, Args)]
pub(super) struct Enc {
    /// The node's certname
    #[arg(value_name = "NODE")]
    node: String,
    /// A YAML file with these settings [default: /etc/clade/enc.yaml, if it is there]
    #[arg(long, value_name = "FILE", env = "CLADE_ENC_CONFIG")]
    config: Option<PathBuf>,
    /// How the document is written: JSON on one line, which is YAML too, or YAML over several lines
    #[arg(long, value_enum, default_value = "json")]
    format: DataFormat,

    /// A daemon to ask: a URL, or the path of its unix socket; repeatable, the first one that is well is asked [default: `http://127.0.0.1:4433`]
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_SERVER",
        value_delimiter = ',',
        help_heading = "Daemon"
    )]
    server: Vec<String>,
    #[command(flatten, next_help_heading = "Daemon")]
    identity: IdentityArgs,
    /// How long a daemon may take to be connected to
    #[arg(long, value_name = "DURATION", env = "CLADE_CONNECT_TIMEOUT", default_value = "1s", value_parser = super::duration, help_heading = "Daemon")]
    connect_timeout: Duration,
    /// How long all of it may take, the second daemon included
    #[arg(long, value_name = "DURATION", env = "CLADE_TIMEOUT", default_value = "5s", value_parser = super::duration, help_heading = "Daemon")]
    timeout: Duration,

    /// The directory with the facts of each node, `<certname>.json` or `.yaml` [default: where Puppet Server keeps them]
    #[arg(long, value_name = "DIR", env = "CLADE_FACTS_DIR", help_heading = "Node")]
    facts_dir: Option<PathBuf>,
    /// Whether a node is classified by its name and trusted data when its facts are missing or cannot be read
    #[arg(
        id = "enc_facts",
        long = "enc-facts",
        value_name = "ENC_FACTS",
        value_enum,
        env = "CLADE_ENC_FACTS",
        default_value = "optional",
        help_heading = "Node"
    )]
    facts: EncFacts,
    /// The directory with the signed certificate of each node, `<certname>.pem` [default: that of Puppet's authority]
    #[arg(long, value_name = "DIR", env = "CLADE_SIGNED_DIR", help_heading = "Node")]
    signed_dir: Option<PathBuf>,
    /// The names of certificate extensions of one's own [default: the `trusted_oid_mapping_file` of Puppet]
    #[arg(long, value_name = "FILE", env = "CLADE_OID_MAPPING_FILE", help_heading = "Node")]
    oid_mapping_file: Option<PathBuf>,
    /// Puppet's settings, which the other defaults come from [default: /etc/puppetlabs/puppet/puppet.conf or /etc/puppet/puppet.conf]
    #[arg(long, value_name = "FILE", env = "CLADE_PUPPET_CONF", help_heading = "Node")]
    puppet_conf: Option<PathBuf>,

    /// The directory of last good answers [default: `clade` in Puppet Server's data directory]
    #[arg(long, value_name = "DIR", env = "CLADE_CACHE_DIR", help_heading = "Last good answer")]
    cache_dir: Option<PathBuf>,
    /// How old a last good answer may be; 0 is never
    #[arg(long, value_name = "DURATION", env = "CLADE_MAX_STALE", default_value = "24h", value_parser = stale_duration, help_heading = "Last good answer")]
    max_stale: Duration,
    /// Let the last good answer stand in for a conflict, too
    #[arg(long, env = "CLADE_STALE_ON_CONFLICT", help_heading = "Last good answer")]
    stale_on_conflict: bool,

    /// Ask no daemon, but the group repository in this directory
    #[arg(
        long,
        value_name = "DIR",
        env = "CLADE_REPO",
        conflicts_with = "server",
        help_heading = "Without a daemon"
    )]
    repo: Option<PathBuf>,
    /// A revision of the git repository instead of the files as they are
    #[arg(long, value_name = "REV", requires = "repo", help_heading = "Without a daemon")]
    rev: Option<String>,
}

/// Reads a duration, or 0 for none.
fn stale_duration(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { super::duration(text) }
}

impl Enc {
    /// Prints the document, or a line with the reason: Puppet shows agents stdout only, and the
    /// server's log stderr. `arguments` are those of the whole program.
    pub(super) fn run(self, arguments: &[OsString], output: &mut Output) -> Exit {
        let began = Instant::now();
        let format = self.format;
        let document = self.layered(arguments).and_then(|enc| enc.document(began, output));
        let document = document.and_then(|document| laid_out(document, format));
        match document.and_then(|document| output.data(&document)) {
            Ok(()) => Exit::Fine,
            Err(error) => {
                let reason = format!("clade enc: {}", one_line(&error));
                output.note(&reason);
                // If stdout is gone, stderr has it.
                let _gone = output.data(&format!("{reason}\n"));
                Exit::Findings
            }
        }
    }

    /// Puts the settings file, if there is one, under the flags and the environment.
    fn layered(self, arguments: &[OsString]) -> Result<Self> {
        let usual = Path::new(USUAL_FILE);
        let file = match &self.config {
            Some(path) => SettingsFile::read(FILE, path)?,
            None if usual.exists() => SettingsFile::read(FILE, usual)?,
            None => SettingsFile::none(FILE),
        };
        Ok(Self::from_arg_matches(&file.layer(arguments)?.matches)?)
    }

    fn document(&self, began: Instant, output: &mut Output) -> Result<String> {
        check_certname(&self.node)?;
        if let Some(directory) = &self.repo {
            return self.offline(directory);
        }
        let puppet = Puppet::find(self.puppet_conf.as_deref())?;
        let cache = self.cache_dir.clone().or_else(|| puppet.cache_directory());
        let kept = cache.as_deref().map(|it| LastGood::new(it, &self.node));
        let mut health = Health::read(cache.as_deref());
        let known = Known::gather(self, &puppet, output)?;
        let default = [DEFAULT_SERVER.to_owned()];
        let servers = if self.server.is_empty() { &default[..] } else { &self.server };
        let (identity, unusable) = puppet.identity(&self.identity.identity(), servers);
        if let Some(reason) = unusable {
            output.note(&format!("clade enc: {reason}"));
        }
        let question = Question {
            servers,
            identity: &identity,
            node: &self.node,
            body: &known.body(),
            connect: self.connect_timeout,
            deadline: began + self.timeout,
        };
        let answer = question.ask(&mut health);
        health.write();
        let reason = match answer {
            Ok(Answer::Document { text, commit }) => {
                if let Some(Err(error)) = kept.map(|it| it.keep(&text, commit)) {
                    output.note(&format!("clade enc: {}", one_line(&error)));
                }
                return Ok(text);
            }
            Ok(Answer::Refused(reason)) if !self.stale_on_conflict => bail!(reason),
            Ok(Answer::Refused(reason)) => anyhow::Error::msg(reason),
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

/// Writes an error with its causes on one line.
fn one_line(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.join(": ").replace(['\n', '\r'], " ")
}

/// Refuses names that could lead elsewhere: a certname is part of a path.
fn check_certname(name: &str) -> Result<()> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    let is_short = name.len() <= 240;
    if name.is_empty() || !name.chars().all(fits) || name.contains("..") || name.starts_with('.') {
        bail!("`{}` is not a certname", name.escape_debug());
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

    #[test]
    fn nothing_is_a_duration_for_staleness() {
        assert_eq!(stale_duration("0"), Ok(Duration::ZERO));
        assert_eq!(stale_duration("24h"), Ok(Duration::from_hours(24)));
        assert!(stale_duration("soon").is_err());
    }
}
