//! `clade fmt`

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;

use super::Exit;
use super::output::Output;
use super::repository::{BudgetArgs, help_without_files, read_directory};
use super::rewrite::rewrite;
use crate::changeset::house_layout;
use crate::diagnostic::visible;
use crate::document::{self, Fault, edit_documents, format};
use crate::validation::{FileKind, GroupFile, SourceContent, SourceFile, read_file, read_layout};
use crate::wording::counted;

/// Format files: order of keys, indentation, blank lines; comments and values stay
///
/// A file that cannot be read is listed with the reason, and stays as it is.
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
    #[command(flatten)]
    budget: BudgetArgs,
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
        let files = read_directory(&self.directory, self.budget.budget())?;
        let sources: Vec<SourceFile> = files.iter().map(|it| it.source.clone()).collect();
        let (layout, _) = read_layout(&sources);
        let (mut known, mut changed, mut faulty, mut with_crlf) = (0, 0, 0, 0);
        for (file, source) in files.iter().zip(&sources) {
            let is_settings = matches!(source.path.as_ref(), "clade.yaml" | "clade.yml");
            let kind = layout.kind_of(source).or(is_settings.then_some(FileKind::Settings));
            let Some(kind) = kind else { continue };
            known += 1;
            let formatted = match self.formatted(source, kind) {
                Ok(None) => continue,
                Ok(Some(formatted)) => formatted,
                Err(reason) => {
                    output.note(&format!("{reason}: not formatted"));
                    faulty += 1;
                    continue;
                }
            };
            changed += 1;
            let ends_in_crlf = has_crlf(source);
            with_crlf += u32::from(ends_in_crlf);
            if self.check {
                output.data(&format!("{}\n", visible(&source.path)))?;
                if ends_in_crlf {
                    output.note(&format!("{}: line endings are CRLF", source.path));
                }
            } else {
                rewrite(&self.directory.join(&file.path), &formatted)?;
                output.note(&source.path);
            }
        }
        if known == 0 {
            self.explain_no_files(output)?;
        }
        if with_crlf > 0 {
            output.note(CRLF_HELP);
        }
        let done = if self.check { "would change" } else { "changed" };
        let left = if faulty > 0 { format!(", {faulty} not formatted") } else { String::new() };
        output.note(&format!("{} {done}{left}", counted(changed, "file")));
        Ok(if faulty > 0 || (self.check && changed > 0) { Exit::Findings } else { Exit::Fine })
    }

    /// Says that there is no file. A new repository may have none; a directory beside the one that was meant is an error.
    fn explain_no_files(&self, output: &mut Output) -> Result<()> {
        let shown = self.directory.display();
        let budget = self.budget.budget();
        if let Some(help) = help_without_files(&self.directory, budget, "clade fmt") {
            bail!("there is no file of a group repository in `{shown}`: {help}");
        }
        output.note(&format!("note: there is no file of a group repository in `{shown}`"));
        Ok(())
    }

    /// Returns the canonical form of a file, unless it has that; the error is why it cannot be read, with the place.
    fn formatted(&self, source: &SourceFile, kind: FileKind) -> Result<Option<String>, String> {
        let why = || why_unread(source, kind);
        let bytes = match &source.content {
            SourceContent::Bytes(bytes) => bytes,
            // There is nothing of the repository behind it; validation says so.
            SourceContent::Link | SourceContent::Submodule => return Ok(None),
            SourceContent::TooLarge(_) => return Err(why()),
        };
        let text = std::str::from_utf8(bytes).map_err(|_| why())?;
        if faults(bytes, kind).next().is_some() {
            return Err(why());
        }
        let with_ids = match self.ids && kind == FileKind::Groups {
            true => with_ids(source, text.to_owned()).ok_or_else(why)?,
            false => text.to_owned(),
        };
        let formatted = format(&with_ids, order(kind)).map_err(|_| why())?;
        Ok(Some(formatted).filter(|it| it != text))
    }
}

/// What to do where files come with other line endings than are written.
const CRLF_HELP: &str = "help: git writes CRLF where `core.autocrlf` is true: put the lines `*.yaml text eol=lf` and `*.yml text eol=lf` into \
    `.gitattributes`, and run `clade fmt`, which writes LF";

/// Returns whether lines of a file end in CRLF.
fn has_crlf(source: &SourceFile) -> bool {
    let SourceContent::Bytes(bytes) = &source.content else { return false };
    bytes.windows(2).any(|it| it == b"\r\n")
}

/// Returns what keeps a file from being read.
fn faults(bytes: &[u8], kind: FileKind) -> impl Iterator<Item = Fault> {
    let faults = document::read(bytes, &document::Limits::DEFAULT).faults.into_iter();
    faults.filter(move |it| kind.counts(it))
}

/// Says why a file cannot be read, and where.
fn why_unread(source: &SourceFile, kind: FileKind) -> String {
    let at = |line, column, message: &str| format!("{}:{line}:{column}: {message}", source.path);
    if let SourceContent::Bytes(bytes) = &source.content {
        if let Some(fault) = faults(bytes, kind).next() {
            let start = fault.span.start;
            return at(start.line, start.column, &fault.message);
        }
    } else if let Some(found) = read_file(source, kind).diagnostics.first() {
        let start = found.place.span.start;
        return at(start.line, start.column, &found.message);
    }
    format!("{}: the new text would say something else", source.path)
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
