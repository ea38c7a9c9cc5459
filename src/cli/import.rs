//! `clade import`

mod layout;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use serde_json::Value;

use super::Exit;
use super::client::Identity;
use super::output::Output;
use crate::document::{Layout, write};
use crate::hierarchy::Hierarchy;
use crate::model::{Group, GroupId, Map};
use crate::rule::{split_pins, to_value};
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
        let files = layout::files(&hierarchy);
        for (path, index) in &files {
            let group = hierarchy.group(*index);
            let path = target.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make the directory `{}`", parent.display()))?;
            }
            let text = document(group, &hierarchy);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        output.note(&format!("{} groups written below {}", files.len(), target.display()));
        Ok(Exit::Fine)
    }

    /// Asks a classifier for its groups.
    fn fetch(&self, url: &str) -> Result<String> {
        let (base, path) = groups_of(url);
        let page = self.identity.at(base, PATIENCE)?.page(path, &[])?;
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

/// Writes a group as a file of the repository.
fn document(group: &Group, hierarchy: &Hierarchy) -> String {
    let mut fields = Map::new();
    let mut insert = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    insert("name", group.name.as_str().into());
    insert("id", group.id.to_string().into());
    if let Some(description) = &group.description {
        insert("description", description.as_ref().into());
    }
    if group.id != GroupId::ROOT {
        insert("parent", parent_name(group, hierarchy).into());
    }
    insert("environment", group.environment.as_str().into());
    if group.environment_trumps {
        insert("environment_trumps", true.into());
    }
    let (rule, pinned) = group.rule.as_deref().cloned().map_or((None, Vec::new()), split_pins);
    if let Some(rule) = rule {
        insert("rule", to_value(&rule));
    }
    if !pinned.is_empty() {
        insert("pinned", pinned.iter().map(|name| Value::from(name.as_ref())).collect());
    }
    for (key, classes) in [("classes", &group.classes), ("config_data", &group.config_data)] {
        if !classes.is_empty() {
            insert(key, crate::hierarchy::classes_to_value(classes));
        }
    }
    if !group.variables.is_empty() {
        let all = group.variables.iter().map(|(name, value)| (name.to_string(), value.clone()));
        insert("variables", Value::Object(all.collect()));
    }
    let mut text = write(&Value::Object(fields), &|way| match way {
        ["pinned" | "classes" | "variables" | "config_data"] => Layout::Block,
        ["classes" | "config_data", _] => Layout::Block,
        _ => Layout::Flow,
    });
    // Null and `{}` are one to a class, but a reader is not left in doubt.
    if group.id == GroupId::ROOT {
        text.insert_str(0, "# The root group: every node is in it.\n");
    }
    text
}

/// Returns how a group names its parent: by name, or by id if the name is not unique.
fn parent_name(group: &Group, hierarchy: &Hierarchy) -> String {
    let parent = hierarchy.find(group.parent).map(|index| hierarchy.group(index));
    let Some(parent) = parent else { return group.parent.to_string() };
    let unique = hierarchy.groups().filter(|it| it.name == parent.name).count() == 1;
    // A name that reads like an id would be taken for one.
    let is_id = parent.name.as_str().parse::<GroupId>().is_ok();
    if unique && !is_id { parent.name.to_string() } else { parent.id.to_string() }
}
