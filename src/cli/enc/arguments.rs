//! The settings of `clade enc`, each in one place: flag, variable, key of the file, default, help.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::client::IdentityArgs;
use crate::cli::output::DataFormat;
use crate::cli::repository::BudgetArgs;
use crate::cli::serve::EncFacts;
use crate::config::{parse_duration, parse_duration_or_zero};

/// Print the ENC document of a node, for Puppet's `external_nodes`
///
/// Sends the node's facts from Puppet Server's cache and the trusted data of its certificate to a daemon.
/// If no daemon answers, prints the last good answer. Every flag except --repo, --rev, --commit-budget and
/// --format is also a key of the settings file; a flag overrides a variable, and a variable the file. Exit status: 0 with
/// the document on stdout; 1 with the reason on stdout, where Puppet reads it, and on stderr.
#[derive(Debug, Args)]
pub(in crate::cli) struct EncSettings {
    /// The node's certname: up to 240 letters, digits, `.`, `_` and `-`, without a `.` at the start or two in a row
    #[arg(value_name = "NODE")]
    pub(super) node: String,
    /// A YAML file with these settings [default: /etc/clade/enc.yaml, if it exists]
    #[arg(long, value_name = "FILE", env = "CLADE_ENC_CONFIG")]
    pub(super) config: Option<PathBuf>,
    /// The output format: JSON on one line, which is also YAML, or YAML over several lines
    #[arg(long, value_enum, default_value = "json")]
    pub(super) format: DataFormat,

    /// A daemon: a URL, or the path of its unix socket; repeatable, in order of preference [default: `http://127.0.0.1:4433`]
    #[arg(
        long,
        value_name = "URL",
        env = "CLADE_SERVER",
        value_delimiter = ',',
        help_heading = "Daemon"
    )]
    pub(super) server: Vec<String>,
    #[command(flatten, next_help_heading = "Daemon")]
    pub(super) identity: IdentityArgs,
    /// The timeout for connecting to a daemon
    #[arg(long, value_name = "DURATION", env = "CLADE_CONNECT_TIMEOUT", default_value = "1s", value_parser = parse_duration, help_heading = "Daemon")]
    pub(super) connect_timeout: Duration,
    /// The timeout for the whole request, including the second daemon
    #[arg(long, value_name = "DURATION", env = "CLADE_TIMEOUT", default_value = "5s", value_parser = parse_duration, help_heading = "Daemon")]
    pub(super) timeout: Duration,

    /// The directory of facts files, `<certname>.json` or `.yaml` [default: that of Puppet Server]
    #[arg(long, value_name = "DIR", env = "CLADE_FACTS_DIR", help_heading = "Node")]
    pub(super) facts_dir: Option<PathBuf>,
    /// Whether a node without a facts file is classified by its name and trusted data; a file that cannot be read is an error
    #[arg(
        id = "enc_facts",
        long = "enc-facts",
        value_name = "ENC_FACTS",
        value_enum,
        env = "CLADE_ENC_FACTS",
        default_value = "optional",
        help_heading = "Node"
    )]
    pub(super) facts: EncFacts,
    /// The directory of signed certificates, `<certname>.pem` [default: that of Puppet's authority]
    #[arg(long, value_name = "DIR", env = "CLADE_SIGNED_DIR", help_heading = "Node")]
    pub(super) signed_dir: Option<PathBuf>,
    /// The file with the names of custom certificate extensions [default: Puppet's `trusted_oid_mapping_file`]
    #[arg(long, value_name = "FILE", env = "CLADE_OID_MAPPING_FILE", help_heading = "Node")]
    pub(super) oid_mapping_file: Option<PathBuf>,
    /// Puppet's settings file, which the other defaults come from [default: /etc/puppetlabs/puppet/puppet.conf or /etc/puppet/puppet.conf]
    #[arg(long, value_name = "FILE", env = "CLADE_PUPPET_CONF", help_heading = "Node")]
    pub(super) puppet_conf: Option<PathBuf>,

    /// The directory of last good answers [default: `clade` in Puppet Server's data directory]
    #[arg(long, value_name = "DIR", env = "CLADE_CACHE_DIR", help_heading = "Last good answer")]
    pub(super) cache_dir: Option<PathBuf>,
    /// The maximum age of a last good answer; 0 disables it
    #[arg(long, value_name = "DURATION", env = "CLADE_MAX_STALE", default_value = "24h", value_parser = parse_duration_or_zero, help_heading = "Last good answer")]
    pub(super) max_stale: Duration,
    /// Print the last good answer for a conflict, too
    #[arg(long, env = "CLADE_STALE_ON_CONFLICT", help_heading = "Last good answer")]
    pub(super) stale_on_conflict: bool,

    /// Classify from the group repository in this directory, without a daemon
    #[arg(
        long,
        value_name = "DIR",
        env = "CLADE_REPO",
        conflicts_with = "server",
        help_heading = "Without a daemon"
    )]
    pub(super) repo: Option<PathBuf>,
    /// Read this git revision instead of the working tree
    #[arg(long, value_name = "REV", requires = "repo", help_heading = "Without a daemon")]
    pub(super) rev: Option<String>,
    #[command(flatten, next_help_heading = "Without a daemon")]
    pub(super) budget: BudgetArgs,
}
