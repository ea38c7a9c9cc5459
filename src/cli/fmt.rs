//! `clade fmt`

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Args;

use super::Exit;
use super::output::Output;
use super::repository::read_directory;
use crate::changeset::house_layout;
use crate::document::{self, edit_documents, format};
use crate::validation::{FileKind, GroupFile, SourceContent, SourceFile, read_file, read_layout};

/// Format files: order of keys, indentation, blank lines; comments and values stay
///
/// A file that is not valid YAML is listed and stays as it is.
#[derive(Debug, Args)]
pub(super) struct FmtCommand {
    /// The directory of the group repository
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Write nothing; list the files that would change, and exit with 1 if there are any
    #[arg(long)]
    check: bool,
    /// Write the id into every group without one, so that a new name keeps it
    #[arg(long)]
    ids: bool,
}

/// The order of keys in each kind of file.
fn order(kind: FileKind) -> &'static [&'static str] {
    match kind {
        FileKind::Groups => crate::changeset::ORDER,
        FileKind::Node => &["name", "classes", "config_data", "variables"],
        FileKind::Environment => &["name", "classes"],
        FileKind::Settings | FileKind::Tests => &[],
    }
}

impl FmtCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let files = read_directory(&self.directory)?;
        let sources: Vec<SourceFile> = files.iter().map(|it| it.source.clone()).collect();
        let (layout, _) = read_layout(&sources);
        let (mut changed, mut faulty) = (0, 0);
        for (file, source) in files.iter().zip(&sources) {
            let SourceContent::Bytes(bytes) = &source.content else { continue };
            let is_settings = matches!(source.path.as_ref(), "clade.yaml" | "clade.yml");
            let kind = layout.kind_of(source).or(is_settings.then_some(FileKind::Settings));
            let (Some(kind), Ok(text)) = (kind, std::str::from_utf8(bytes)) else { continue };
            let Some(formatted) = self.formatted(source, kind, text) else {
                output.note(&format!("{}: not valid YAML, not formatted", source.path));
                faulty += 1;
                continue;
            };
            if formatted == text {
                continue;
            }
            changed += 1;
            output.note(&source.path);
            if !self.check {
                let path = self.directory.join(&file.path);
                std::fs::write(&path, formatted)
                    .with_context(|| format!("cannot write `{}`", path.display()))?;
            }
        }
        let done = if self.check { "would change" } else { "changed" };
        output.note(&format!("{changed} {} {done}", if changed == 1 { "file" } else { "files" }));
        Ok(if faulty > 0 || (self.check && changed > 0) { Exit::Findings } else { Exit::Fine })
    }

    fn formatted(&self, source: &SourceFile, kind: FileKind, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        if self.ids && kind == FileKind::Groups {
            text = with_ids(source, text)?;
        }
        format(&text, order(kind)).ok()
    }
}

/// Writes the id into each group that has none.
fn with_ids(source: &SourceFile, text: String) -> Option<String> {
    let content = SourceContent::Bytes(text.as_bytes().into());
    let file = SourceFile { path: Arc::clone(&source.path), content };
    let reading = read_file(&file, FileKind::Groups);
    let groups: HashMap<u32, &GroupFile> =
        reading.groups().iter().map(|it| (it.place().span.start.offset, it)).collect();
    let contents = document::read(text.as_bytes(), &document::Limits::DEFAULT);
    let mut targets = BTreeMap::new();
    for (number, node) in contents.documents.iter().enumerate() {
        let group = node.get("name").and_then(|it| groups.get(&it.span.start.offset));
        let Some(id) = group.filter(|it| it.id_place().is_none()).and_then(|it| it.id()) else {
            continue;
        };
        let serde_json::Value::Object(mut fields) = node.to_value() else { continue };
        let behind = fields.keys().position(|key| key == "name").map_or(0, |at| at + 1);
        fields.shift_insert(behind, "id".to_owned(), id.to_string().into());
        targets.insert(number, fields.into());
    }
    if targets.is_empty() {
        return Some(text);
    }
    edit_documents(&text, &targets, &house_layout).ok()
}
