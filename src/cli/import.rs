//! `clade import`

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use serde_json::Value;

use super::Exit;
use super::client::Identity;
use super::output::Output;
use crate::amend::{layout_of, new_document};
use crate::hierarchy::Hierarchy;
use crate::model::{Group, GroupId, Map};
use crate::validation::{FileKind, ParentName, SourceContent, SourceFile, read_file};

/// Turn an export of Puppet Enterprise's `GET /v1/groups` into a group repository
#[derive(Debug, Args)]
pub(super) struct Import {
    /// The file with the export, `-` for stdin, or the address of a classifier, such as `https://puppet.example.com:4433/classifier-api`
    #[arg(value_name = "FILE|URL")]
    file: PathBuf,
    /// The directory of the repository; it is made, and must not have groups yet
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    identity: Identity,
}

/// How long a classifier may take for all of its groups.
const PATIENCE: Duration = Duration::from_mins(2);

/// What Puppet Enterprise adds to a group and git knows better.
const DROPPED: &[&str] = &["last_edited", "serial_number", "deleted"];

impl Import {
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
        let groups = read(&text)?;
        let target = self.directory.join("groups");
        if target.exists() {
            bail!("`{}` exists already", target.display());
        }
        let hierarchy = Hierarchy::build(groups.clone())
            .map_err(|faults| anyhow!("the groups do not form a tree: {faults:?}"))?;
        let files = layout_of(&hierarchy);
        for (path, index) in &files {
            let group = hierarchy.group(*index);
            let path = target.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make the directory `{}`", parent.display()))?;
            }
            let text = new_document(group, &hierarchy);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        output.note(&format!("{} groups written below {}", files.len(), target.display()));
        Ok(Exit::Fine)
    }

    /// Asks a classifier for its groups.
    fn fetch(&self, url: &str) -> Result<String> {
        let (base, path) = groups_of(url);
        let page = self.identity.at(base, PATIENCE)?.fetch(path, &[])?;
        if page.status != 200 {
            let said: String = page.text.chars().take(200).collect();
            bail!("`{base}{path}` answers {}: {said}", page.status);
        }
        Ok(page.text)
    }
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

/// Reads the groups of an export.
fn read(text: &str) -> Result<Vec<Group>> {
    let export: Value = serde_json::from_str(text).context("the export is not valid JSON")?;
    let Value::Array(entries) = export else { bail!("the export is not a list of groups") };
    let mut groups = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let name = entry["name"].as_str().unwrap_or_default();
        let what = || format!("group {} (`{name}`) of the export", number + 1);
        let Value::Object(fields) = entry else { bail!("{} is not an object", what()) };
        let mut fields: Map<String, Value> = fields.clone();
        fields.retain(|key, _| !DROPPED.contains(&key.as_str()));
        let bytes = Value::Object(fields).to_string().into_bytes();
        let file =
            SourceFile { path: "export".into(), content: SourceContent::Bytes(bytes.into()) };
        let reading = read_file(&file, FileKind::Groups);
        let file = reading.groups().first();
        let parent = file.and_then(|file| file.parent.as_ref()).map(|(parent, _)| parent.clone());
        match (file.and_then(|file| file.group.clone()), parent) {
            (Some(group), Some(ParentName::Id(parent))) => groups.push(Group { parent, ..group }),
            (Some(group), None) if group.id == GroupId::ROOT => groups.push(group),
            (Some(_), _) => bail!("{} has no parent id", what()),
            (None, _) => {
                let messages: Vec<&str> =
                    reading.diagnostics.iter().map(|it| it.message.as_str()).collect();
                bail!("{} cannot be read: {}", what(), messages.join("; "));
            }
        }
    }
    Ok(groups)
}
