//! The file of a class catalogue.
#![expect(clippy::disallowed_methods, reason = "the catalogue is a file")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::super::Exit;
use super::super::output::Output;
use crate::document::{Layout, Limits, write};
use crate::model::{ClassName, EnvironmentName, Key};
use crate::puppet::{Aliases, DataType, Default, PuppetClass};
use crate::validation::{FileKind, SourceContent, SourceFile, read_file, read_layout};

/// Where the catalogue goes.
#[derive(Clone, Debug, Args)]
pub(super) struct Target {
    /// The directory of the group repository
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// The environment whose catalogue is written
    #[arg(long, value_name = "ENVIRONMENT", default_value = "production")]
    pub(super) environment: EnvironmentName,
    /// Write nothing; end with 1 if the catalogue would change
    #[arg(long)]
    check: bool,
    /// Write the catalogue though files could not be read; their classes are not in it
    #[arg(long)]
    pub(super) skip_broken: bool,
}

/// The classes of an environment.
#[derive(Debug, std::default::Default)]
pub(super) struct Catalogue {
    classes: BTreeMap<ClassName, PuppetClass>,
    pub(super) aliases: Aliases,
}

impl Catalogue {
    /// Adds a class; the first one of a name stays. Says why, if Puppet could not find it.
    pub(super) fn add(&mut self, class: PuppetClass) -> Result<(), String> {
        let name: ClassName = class.name.parse().map_err(|error| format!("{error}"))?;
        self.classes.entry(name).or_insert(class);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns the catalogue as a document.
    fn to_value(&self) -> Value {
        let mut used = BTreeSet::new();
        let classes: Map<String, Value> = self
            .classes
            .iter()
            .map(|(name, class)| (name.to_string(), self.class(class, &mut used)))
            .collect();
        let mut document = Map::new();
        document.insert("classes".to_owned(), Value::Object(classes));
        let aliases: Map<String, Value> = used
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), self.aliases.get(name)?.to_string().into())))
            .collect();
        if !aliases.is_empty() {
            document.insert("type_aliases".to_owned(), Value::Object(aliases));
        }
        Value::Object(document)
    }

    fn class<'c>(&'c self, class: &'c PuppetClass, used: &mut BTreeSet<&'c str>) -> Value {
        let (mut parameters, mut types) = (Map::new(), Map::new());
        for parameter in class.parameters.iter().filter(|it| it.name.parse::<Key>().is_ok()) {
            let default = match &parameter.default {
                Default::Required => Value::Null,
                Default::Value(value) => value.clone(),
                Default::Code(code) => code.split_whitespace().collect::<Vec<_>>().join(" ").into(),
            };
            parameters.insert(parameter.name.clone(), default);
            if let Some(data_type) = &parameter.data_type {
                types.insert(parameter.name.clone(), data_type.to_string().into());
                self.use_aliases(data_type, used);
            }
        }
        match (parameters.is_empty(), types.is_empty()) {
            (true, _) => Value::Null,
            (false, true) => json!({"parameters": parameters}),
            (false, false) => json!({"parameters": parameters, "types": types}),
        }
    }

    /// Notes the aliases in a type, and those that they stand for.
    fn use_aliases<'c>(&'c self, data_type: &'c DataType, used: &mut BTreeSet<&'c str>) {
        let mut fresh = Vec::new();
        data_type.names(&mut |name| fresh.push(name));
        while let Some(name) = fresh.pop() {
            if let Some(alias) = self.aliases.get(name)
                && used.insert(name)
            {
                alias.names(&mut |name| fresh.push(name));
            }
        }
    }
}

/// The file that a catalogue is written to.
pub(super) struct File {
    path: PathBuf,
    /// The path from the root of the group repository.
    relative: String,
    old: Option<String>,
}

impl Target {
    /// Finds the file of the environment's catalogue.
    pub(super) fn file(&self) -> Result<File> {
        if !self.directory.is_dir() {
            bail!("`{}` is not a directory", self.directory.display());
        }
        let settings: Vec<SourceFile> = ["clade.yaml", "clade.yml"]
            .into_iter()
            .filter_map(|name| {
                let bytes = std::fs::read(self.directory.join(name)).ok()?;
                let content = SourceContent::Bytes(bytes.into());
                Some(SourceFile { path: name.into(), content })
            })
            .collect();
        let (layout, _) = read_layout(&settings);
        let relative =
            |extension: &str| format!("{}/{}.{extension}", layout.environments, self.environment);
        let exists = |relative: &String| self.directory.join(relative).exists();
        let there = ["yaml", "yml"].map(relative).into_iter().find(exists);
        let relative = there.unwrap_or_else(|| relative("yaml"));
        let path = self.directory.join(&relative);
        let old = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).context(format!("cannot read `{}`", path.display()));
            }
        };
        Ok(File { path, relative, old })
    }

    /// Writes the catalogue, or says whether it would change.
    pub(super) fn write(
        &self,
        file: &File,
        catalogue: &Catalogue,
        header: &str,
        count: &str,
        output: &mut Output,
    ) -> Result<Exit> {
        let text = file.text(catalogue, header)?;
        let path = file.path.display();
        if file.old.as_deref().map(body) == Some(body(&text)) {
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
        std::fs::write(&file.path, text).with_context(|| format!("cannot write `{path}`"))?;
        output.note(&format!("{path} written: {count}"));
        Ok(Exit::Fine)
    }
}

impl File {
    /// Returns what a line of the old file's header says after a key.
    pub(super) fn header(&self, key: &str) -> Option<&str> {
        let comments = self.old.as_deref()?.lines().take_while(|it| it.starts_with('#'));
        comments.filter_map(|it| it.strip_prefix("# ")?.strip_prefix(key)).map(str::trim).next()
    }

    fn text(&self, catalogue: &Catalogue, header: &str) -> Result<String> {
        let layout = |way: &[&str]| match way {
            ["classes" | "type_aliases"]
            | ["classes", _]
            | ["classes", _, "parameters" | "types"] => Layout::Block,
            _ => Layout::Flow,
        };
        let schema = "# yaml-language-server: $schema=https://clade-classifier.github.io/schemas/environment.json\n";
        let text = format!("{schema}{header}{}", write(&catalogue.to_value(), &layout));
        let bytes: std::sync::Arc<[u8]> = text.as_bytes().into();
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > Limits::DEFAULT.file_bytes {
            bail!(
                "the catalogue would have {size} bytes, {} are allowed: leave modules out of the environment",
                Limits::DEFAULT.file_bytes
            );
        }
        // What is written is what validation reads.
        let file = SourceFile {
            path: self.relative.as_str().into(),
            content: SourceContent::Bytes(bytes),
        };
        let reading = read_file(&file, FileKind::Environment);
        if let Some(found) = reading.diagnostics.first() {
            let line = found.place.span.start.line;
            bail!("the catalogue cannot be written: line {line}: {}", found.message);
        }
        Ok(text)
    }
}

/// Returns a catalogue without the comments before it.
fn body(text: &str) -> &str {
    text.find("\nclasses:").and_then(|at| text.get(at..)).unwrap_or(text)
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

/// Returns the directory part of a message about a path.
pub(super) fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
