//! The file of a class catalogue.
#![expect(clippy::disallowed_methods, reason = "the catalogue is a file")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::super::Exit;
use super::super::output::Output;
use super::super::repository::layout_of_directory;
use super::super::rewrite::rewrite;
use crate::changeset::{NewCatalogue, WrittenBy, environment_of, etag_of, paths_of, says_the_same};
use crate::config::read_bounded_text;
use crate::model::EnvironmentName;

/// Where the catalogue goes.
#[derive(Clone, Debug, Args)]
pub(super) struct CatalogueTarget {
    /// The directory of the group repository
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// The environment whose catalogue is written
    #[arg(long, value_name = "ENVIRONMENT", default_value = "production")]
    pub(super) environment: EnvironmentName,
    /// Write nothing; exit with 1 if the catalogue would change
    #[arg(long)]
    check: bool,
    /// Write the catalogue without the files that cannot be read
    #[arg(long)]
    pub(super) skip_broken: bool,
}

/// The file that a catalogue is written to.
pub(super) struct CatalogueFile {
    path: PathBuf,
    /// The path from the root of the group repository.
    relative: String,
    old: Option<String>,
}

impl CatalogueTarget {
    /// Finds the file of the environment's catalogue.
    pub(super) fn file(&self) -> Result<CatalogueFile> {
        if !self.directory.is_dir() {
            bail!("`{}` is not a directory", self.directory.display());
        }
        let relative = self.path(&layout_of_directory(&self.directory)?.environments)?;
        self.refuse_links(&relative)?;
        let path = self.directory.join(&relative);
        let old = match read_bounded_text(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).context(format!("cannot read `{}`", path.display()));
            }
        };
        Ok(CatalogueFile { path, relative, old })
    }

    /// Returns the path of the environment's file from the root of the group repository: of the one that names it, or that has
    /// its name; else a new one.
    fn path(&self, directory: &str) -> Result<String> {
        let mut taken = BTreeSet::new();
        for path in read_directory(&self.directory.join(directory))?.unwrap_or_default() {
            let Some(name) = path.file_name().and_then(|it| it.to_str()) else { continue };
            let is_catalogue = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
            if !is_catalogue || name.starts_with('.') {
                continue;
            }
            let relative = format!("{directory}/{name}");
            // A link is refused later, if it is the file.
            let text = if path.is_file() { read_bounded_text(&path).ok() } else { None };
            let about = text.and_then(|it| environment_of(&relative, &it));
            let is_named_so = path.file_stem().is_some_and(|it| it == self.environment.as_str());
            if about.as_ref().map_or(is_named_so, |it| *it == self.environment) {
                return Ok(relative);
            }
            taken.insert(relative);
        }
        let mut paths = paths_of(directory, &self.environment);
        paths.find(|it| !taken.contains(it)).context("every name of a file is taken")
    }

    /// Refuses a file behind a link: it may lie anywhere, and Clade would not read it.
    fn refuse_links(&self, relative: &str) -> Result<()> {
        let paths = Path::new(relative).ancestors().map(|it| self.directory.join(it));
        // Without the directory itself, which the command line names.
        match paths.take(relative.split('/').count()).find(|it| it.is_symlink()) {
            Some(link) => {
                bail!("`{}` is a link, which Clade does not follow: replace it", link.display())
            }
            None => Ok(()),
        }
    }

    /// Writes the catalogue, or says whether it would change.
    pub(super) fn write(
        &self,
        file: &CatalogueFile,
        catalogue: &NewCatalogue,
        by: WrittenBy,
        count: &str,
        output: &mut Output,
    ) -> Result<Exit> {
        let text = catalogue.text(&file.relative, &self.environment, by)?;
        let path = file.path.display();
        if file.old.as_deref().is_some_and(|old| says_the_same(old, &text)) {
            output.note(&format!("{path} is up to date: {count}"));
            return Ok(Exit::Fine);
        }
        if self.check {
            output.note(&format!("{path} is not up to date"));
            return Ok(Exit::Findings);
        }
        if let Some(parent) = file.path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the directory `{}`", parent.display()))?;
        }
        rewrite(&file.path, &text)?;
        output.note(&format!("{path} written: {count}"));
        Ok(Exit::Fine)
    }
}

impl CatalogueFile {
    /// Returns the version of the classes that the old file was made from.
    pub(super) fn etag(&self) -> Option<&str> {
        etag_of(self.old.as_deref()?)
    }
}

/// Names the files that could not be read; whether that is to be the end is for the caller.
pub(super) fn report_broken(
    broken: &[(String, String)],
    skip: bool,
    output: &mut Output,
) -> Result<()> {
    for (path, reason) in broken {
        output.note(&format!("{path}: {reason}"));
    }
    if broken.is_empty() || skip {
        return Ok(());
    }
    bail!(
        "{} {} could not be read, so classes could be missing; `--skip-broken` writes the rest",
        broken.len(),
        if broken.len() == 1 { "file" } else { "files" }
    )
}

/// Returns what is in a directory, in order; nothing if it is not there.
pub(super) fn read_directory(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(format!("cannot read `{}`", path.display())),
    };
    let what = || format!("cannot read `{}`", path.display());
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry.with_context(what)?.path())).collect::<Result<_>>()?;
    paths.sort();
    Ok(Some(paths))
}

/// Returns the directory part of a message about a path.
pub(super) fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
