//! `clade import`

pub(super) mod export;
mod interpolation;
mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;

use self::export::{Export, ExportFault};
use self::target::ImportTarget;
use super::Exit;
use super::client::IdentityArgs;
use super::output::Output;
use crate::client::{Client, Timeouts};
use crate::hierarchy::Hierarchy;
use crate::wording::counted;

/// Turn an export of Puppet Enterprise's `GET /v1/groups` into a group repository
#[derive(Debug, Args)]
pub(super) struct ImportCommand {
    /// The file with the export, `-` for stdin, or the address of a classifier, such as `https://puppet.example.com:4433/classifier-api`
    #[arg(value_name = "FILE|URL")]
    file: PathBuf,
    /// The directory of the repository, created if absent; it must not have groups yet. Where they go, its `clade.yaml` says
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Skip the groups that cannot be imported, and those below them, instead of writing nothing; all are below the root group
    #[arg(long)]
    skip_invalid: bool,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// How long a classifier may take for all of its groups.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How many groups are named that cannot be imported for the same reason.
const SHOWN: usize = 20;

impl ImportCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let place = self.file.to_string_lossy();
        let text = if self.file == Path::new("-") {
            std::io::read_to_string(std::io::stdin()).context("cannot read stdin")?
        } else if place.contains("://") {
            self.fetch(&place)?
        } else {
            std::fs::read_to_string(&self.file)
                .with_context(|| format!("cannot read `{}`", self.file.display()))?
        };
        let export = export::read(&text)?;
        let target = ImportTarget::of(&self.directory)?;
        let refusal = self.refusal(&export);
        let word = if refusal.is_some() { "error" } else { "warning: left out" };
        for line in lines(&export.faults) {
            output.note(&format!("{word}: {line}"));
        }
        if let Some(why) = refusal {
            output.note(&format!("nothing is written: {why}"));
            return Ok(Exit::Findings);
        }
        let left_out = match export.faults.len() {
            0 => String::new(),
            count => format!("; {} left out", counted(count, "group")),
        };
        let hierarchy = Hierarchy::build(export.groups)
            .map_err(|_| anyhow!("the groups that are left do not form a tree"))?;
        let count =
            target.write(&hierarchy, || interpolation::set(&self.directory, &hierarchy, output))?;
        output.note(&format!(
            "{} written below {}{left_out}",
            counted(count, "group"),
            target.path.display()
        ));
        Ok(Exit::Fine)
    }

    /// Returns why none of the groups is written, and what to do.
    fn refusal(&self, export: &Export) -> Option<String> {
        if export.is_root_left_out {
            return Some(
                "the root group is among these, and all others are below it: correct it in the export"
                    .to_owned(),
            );
        }
        let count = export.faults.len();
        (count > 0 && !self.skip_invalid).then(|| {
            let (groups, them) = (counted(count, "group"), if count == 1 { "it" } else { "them" });
            format!("correct {groups} in the export, or leave {them} out with --skip-invalid")
        })
    }

    /// Asks a classifier for its groups.
    fn fetch(&self, url: &str) -> Result<String> {
        let (base, path) = groups_of(url);
        let timeouts = Timeouts::within(TIMEOUT);
        let classifier = Client::new(base, &self.identity.identity(), timeouts)?;
        let page = classifier.get(path, &[])?;
        if page.status != 200 {
            let said: String = page.text.chars().take(200).collect();
            bail!("`{}{path}` answers {}: {said}", classifier.name(), page.status);
        }
        Ok(page.text)
    }
}

/// Returns a line for each group that cannot be imported; of those for the same reason the first ones, and how many more
/// there are.
fn lines(faults: &[ExportFault]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for ExportFault { group, reason } in faults {
        let count = counts.entry(reason).or_default();
        *count += 1;
        if *count <= SHOWN {
            lines.push(format!("{group}: {reason}"));
        }
    }
    for (reason, count) in counts {
        if let Some(more @ 1..) = count.checked_sub(SHOWN) {
            lines.push(format!("{} more: {reason}", counted(more, "group")));
        }
    }
    lines
}

/// Returns where the groups of a classifier are: below the address that is given, or where Puppet
/// Enterprise has them.
fn groups_of(url: &str) -> (&str, &'static str) {
    let base = url.trim_end_matches('/');
    let base = base.strip_suffix("/groups").unwrap_or(base);
    let base = base.strip_suffix("/v1").unwrap_or(base);
    let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path || base.len() < url.trim_end_matches('/').len() {
        (base, "/v1/groups")
    } else {
        (base, "/classifier-api/v1/groups")
    }
}
