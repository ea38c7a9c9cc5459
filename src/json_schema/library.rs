//! The files with schemas that a repository uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{Draft, ReferencingError, Registry, Retrieve, Uri};
use serde_json::Value;

use super::file::{SchemaFile, invalid};
use super::keywords::REFERENCES;
use super::location::{beside, leads_out, path_of, uri_of};
use super::source::{ReadSource, SchemaRequest, SchemaSource};
use crate::diagnostic::{Diagnostic, Place};
use crate::document::{Content, Limits, Node, Span};

/// How many files may have schemas.
const FILES: usize = 64;

/// How many bytes all of them may have.
const BYTES: usize = 4 << 20;

/// How many values all of them may have: each takes some hundred bytes as a part of a validator.
const VALUES: usize = 50_000;

/// How many resources schemas may refer to, those included that are not there.
const NAMES: usize = 500;

/// Stands for a file that cannot be used, so that the rest is checked all the same.
static ANYTHING: Value = Value::Bool(true);

/// The files with schemas that settings name, and those that they refer to.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub(super) files: Vec<SchemaFile>,
    /// Every path that was asked for, with the number of its file.
    pub(super) paths: BTreeMap<Arc<str>, Option<usize>>,
    /// Where files were looked for beside others.
    pub(super) probed: BTreeSet<Arc<str>>,
    /// The URI of every resource, with the number of its file; none stands for anything.
    names: BTreeMap<String, Option<usize>>,
    /// The files as they were found.
    pub(super) sources: Vec<(Arc<str>, SchemaSource)>,
    bytes: usize,
    values: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Library {
    /// Reads the files that settings name, and those that they refer to.
    pub(super) fn load(requests: &[&SchemaRequest], read: &ReadSource<'_>) -> Self {
        let mut library = Self::default();
        for request in requests {
            if let Some(file) = library.open(&request.path, &request.place, read) {
                library.names.insert(uri_of(&request.path), Some(file));
            }
        }
        // Every round knows at least one name more, and names of files are limited.
        while let Ok(missing) = library.missing() {
            if missing.is_empty() {
                break;
            }
            if library.names.len() + missing.len() > NAMES {
                let place = library.files.first().map(|it| it.place(Span::START));
                let message = format!("the schemas refer to more than {NAMES} others");
                library.diagnostics.extend(place.map(|it| invalid(&it.file, it.span, message)));
                break;
            }
            for uri in missing {
                let file = library.refer(&uri, read);
                library.names.insert(uri, file);
            }
            // A file that is named by its id is found beside others, too: a validator that came by a
            // path goes on from there.
            for (number, file) in library.files.iter().enumerate() {
                library.names.entry(uri_of(&file.path)).or_insert(Some(number));
            }
        }
        library
    }

    /// Returns the number of the file at a path.
    pub(super) fn number(&self, path: &str) -> Option<usize> {
        self.paths.get(path).copied().flatten()
    }

    /// Returns the schemas by name.
    ///
    /// # Errors
    ///
    /// Returns an error if a name is not a URI, or a `$schema` not one of a draft.
    pub(super) fn registry(&self) -> Result<Registry<'_>, ReferencingError> {
        self.registry_with(MissingResources::default())
    }

    /// Returns the URIs that files refer to and nothing is known of.
    fn missing(&self) -> Result<BTreeSet<String>, ReferencingError> {
        let recorder = MissingResources::default();
        self.registry_with(recorder.clone())?;
        let mut missing = recorder.missing.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *missing))
    }

    fn registry_with(&self, recorder: MissingResources) -> Result<Registry<'_>, ReferencingError> {
        let resources = self.names.iter().map(|(uri, file)| {
            let value = file.and_then(|it| self.files.get(it)).map_or(&ANYTHING, |it| &it.value);
            (uri.as_str(), Draft::default().detect(value).create_resource_ref(value))
        });
        Registry::new().retriever(recorder).extend(resources)?.prepare()
    }

    /// Opens what a URI names, or says at the reference why that cannot be.
    fn refer(&mut self, uri: &str, read: &ReadSource<'_>) -> Option<usize> {
        let (place, text) = self.reference_to(uri)?;
        if let Some(path) = path_of(uri) {
            // That it leads out is said when references are followed.
            if text.is_some_and(|it| leads_out(&it, &place.file)) {
                return None;
            }
            return self.open(&path.into(), &place, read);
        }
        let candidates = self.files.iter().filter_map(|file| {
            let id = file.node.get("$id").or_else(|| file.node.get("id"))?.as_str()?;
            beside(uri, id, &file.path)
        });
        let candidates: Vec<String> = candidates.collect();
        let near = candidates.iter().find(|path| matches!(read(path), SchemaSource::Bytes(_)));
        let near = near.cloned();
        // With one of them the answer is another.
        self.probed.extend(candidates.into_iter().map(Arc::from));
        if let Some(path) = near {
            return self.open(&path.into(), &place, read);
        }
        let message = format!("`{uri}` is not a schema of this repository");
        let found = invalid(&place.file, place.span, message);
        self.diagnostics.push(found.with_help(
            "nothing is fetched: put the schema into the repository, and write its path from here",
        ));
        None
    }

    /// Opens a file once, or says at the place that names it why that cannot be.
    fn open(&mut self, path: &Arc<str>, place: &Place, read: &ReadSource<'_>) -> Option<usize> {
        if let Some(known) = self.paths.get(path) {
            return *known;
        }
        let file = match self.read(path, read) {
            Ok(file) => {
                self.files.push(file);
                Some(self.files.len() - 1)
            }
            Err(UnusableSchema::Named(message)) => {
                self.diagnostics.push(invalid(&place.file, place.span, message));
                None
            }
            Err(UnusableSchema::Faulty(found)) => {
                self.diagnostics.extend(found);
                None
            }
        };
        self.paths.insert(Arc::clone(path), file);
        file
    }

    fn read(
        &mut self,
        path: &Arc<str>,
        read: &ReadSource<'_>,
    ) -> Result<SchemaFile, UnusableSchema> {
        let named = |message: String| Err(UnusableSchema::Named(message));
        if !has_known_ending(path) {
            return named(format!("`{path}`: the name of a schema ends in .json, .yaml or .yml"));
        }
        if self.paths.len() >= FILES {
            return named(format!("`{path}` is not read: more than {FILES} files have schemas"));
        }
        let source = read(path);
        self.sources.push((Arc::clone(path), source.clone()));
        let bytes = match source {
            SchemaSource::Missing => return named(format!("there is no file `{path}`")),
            SchemaSource::NotAFile => {
                return named(format!(
                    "`{path}` is a symbolic link or a submodule, which is not followed"
                ));
            }
            SchemaSource::TooLarge(size) => {
                let limit = Limits::DEFAULT.file_bytes;
                return named(format!("`{path}` has {size} bytes, {limit} are allowed"));
            }
            SchemaSource::Bytes(bytes) => bytes,
        };
        self.bytes += bytes.len();
        if self.bytes > BYTES {
            return named(format!(
                "`{path}` is not read: all schemas have more than {BYTES} bytes"
            ));
        }
        let file = SchemaFile::read(path, &bytes).map_err(UnusableSchema::Faulty)?;
        if let Some(found) = unknown_draft(&file) {
            return Err(UnusableSchema::Faulty(vec![found]));
        }
        self.values += file.node.count();
        if self.values > VALUES {
            return named(format!(
                "`{path}` is not used: all schemas have more than {VALUES} values"
            ));
        }
        Ok(file)
    }

    /// Returns where a file refers to a URI, and in which words.
    fn reference_to(&self, uri: &str) -> Option<(Place, Option<String>)> {
        let of_file = |file: &SchemaFile| {
            let base = jsonschema::uri::from_str(&uri_of(&file.path)).ok()?;
            let found = reference_in(&file.node, &base, uri)?;
            Some((file.place(found.span), found.as_str().map(str::to_owned)))
        };
        let first = || self.files.first().map(|it| (it.place(Span::START), None));
        self.files.iter().find_map(of_file).or_else(first)
    }
}

/// Why a file with a schema cannot be used.
enum UnusableSchema {
    /// It is said at the place that names it.
    Named(String),
    /// It is said at its places.
    Faulty(Vec<Diagnostic>),
}

fn has_known_ending(path: &str) -> bool {
    matches!(path.rsplit_once('.'), Some((_, "json" | "yaml" | "yml")))
}

/// Says that a file is of a draft that is not known.
fn unknown_draft(file: &SchemaFile) -> Option<Diagnostic> {
    if Draft::default().detect(&file.value) != Draft::Unknown {
        return None;
    }
    let written = file.node.get("$schema")?;
    let message = format!("unknown `$schema` `{}`", written.as_str().unwrap_or_default());
    Some(
        invalid(&file.path, written.span, message).with_help(
            "the drafts are 4, 6, 7, 2019-09 and 2020-12; without `$schema` it is 2020-12",
        ),
    )
}

/// Returns where a part of a schema refers to a URI.
fn reference_in<'n>(node: &'n Node, base: &Uri<String>, uri: &str) -> Option<&'n Node> {
    let resolve = |base: &Uri<String>, text: &str| {
        jsonschema::uri::resolve_against(&base.borrow(), text).ok()
    };
    match &node.content {
        Content::Scalar(_) => None,
        Content::Sequence(elements) => elements.iter().find_map(|it| reference_in(it, base, uri)),
        Content::Mapping(entries) => {
            let id = node.get("$id").or_else(|| node.get("id")).and_then(Node::as_str);
            let own = id.and_then(|it| resolve(base, it));
            let base = own.as_ref().unwrap_or(base);
            let is_it = |text: &str| {
                resolve(base, text).is_some_and(|it| it.as_str().split('#').next() == Some(uri))
            };
            let names = |name: &&&str| node.get(name).and_then(Node::as_str).is_some_and(is_it);
            let named = REFERENCES.iter().find(names).and_then(|name| node.get(name));
            named.or_else(|| entries.iter().find_map(|it| reference_in(&it.value, base, uri)))
        }
    }
}

/// Notes what would have to be fetched.
#[derive(Clone, Debug, Default)]
struct MissingResources {
    missing: Arc<Mutex<BTreeSet<String>>>,
}

impl Retrieve for MissingResources {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        missing.insert(uri.as_str().to_owned());
        Ok(Value::Bool(true))
    }
}
