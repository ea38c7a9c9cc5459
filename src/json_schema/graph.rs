//! Which schemas lead to which.

use std::collections::{BTreeMap, HashMap};

use jsonschema::{Draft, ReferencingError, Registry, Uri};
use serde_json::{Map, Value};

use super::file::{SchemaFile, invalid};
use super::keywords::{AppliesTo, REFERENCES, inner, ref_stands_alone};
use super::library::Library;
use super::location::{join, leads_out, tokens, uri_of};
use super::misspelt::misspelt;
use super::place::{key_span, part};
use crate::diagnostic::{Diagnostic, Kind, Place};

/// A part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SchemaPart {
    pub(super) file: usize,
    pub(super) pointer: String,
}

impl SchemaPart {
    /// Returns the location of a key or index of this one.
    pub(super) fn at(&self, token: &str) -> Self {
        Self { file: self.file, pointer: join(&self.pointer, token) }
    }

    /// Returns the place of it, that of its key where it has one.
    pub(super) fn place(&self, files: &[SchemaFile]) -> Option<Place> {
        let file = files.get(self.file)?;
        Some(file.place(key_span(&file.node, &tokens(&self.pointer))))
    }

    /// Returns the place of its value.
    fn value_place(&self, files: &[SchemaFile]) -> Option<Place> {
        let file = files.get(self.file)?;
        Some(file.place(part(&file.node, &tokens(&self.pointer))?.span))
    }

    /// Says what is wrong with its value.
    pub(super) fn invalid(
        &self,
        files: &[SchemaFile],
        message: impl Into<String>,
    ) -> Option<Diagnostic> {
        let place = self.value_place(files).or_else(|| self.place(files))?;
        Some(invalid(&place.file, place.span, message))
    }
}

/// A schema, and where it leads.
pub(super) struct SchemaNode<'v> {
    pub(super) at: SchemaPart,
    pub(super) edges: Vec<(usize, AppliesTo<'v>)>,
    /// The references among them, with their keywords.
    pub(super) references: Vec<(&'static str, usize)>,
    /// Whether what it asks of a part depends on what the schemas inside of it asked, so that those
    /// are asked again.
    pub(super) asks_again: bool,
}

/// All schemas of some files, and those that they lead to.
pub(super) struct Graph<'v> {
    pub(super) members: Vec<SchemaNode<'v>>,
    /// The members by the addresses of their values.
    numbers: HashMap<usize, usize>,
    /// The URI of every resource, and where it begins.
    pub(super) resources: BTreeMap<String, SchemaPart>,
    /// Every pattern, and where it stands.
    pub(super) patterns: Vec<(&'v str, SchemaPart)>,
    /// What is wrong with references.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What was most likely meant as a keyword.
    pub(super) warnings: Vec<Diagnostic>,
}

impl<'v> Graph<'v> {
    /// Follows the schemas of all files.
    pub(super) fn new(library: &'v Library, registry: &'v Registry<'v>) -> Self {
        let mut follower = Follower::new(library, registry);
        for (number, file) in library.files.iter().enumerate() {
            let uri = uri_of(&file.path);
            let at = SchemaPart { file: number, pointer: String::new() };
            follower.graph.resources.insert(uri.clone(), at);
            let draft = Draft::default().detect(&file.value);
            if let Ok(uri) = jsonschema::uri::from_str(&uri) {
                follower.number(&file.value, uri, draft);
            }
        }
        while let Some((number, value, base, draft)) = follower.waiting.pop() {
            follower.follow(number, value, base, draft);
        }
        follower.graph
    }

    /// Returns the member that a value is.
    pub(super) fn find(&self, value: &Value) -> Option<usize> {
        self.numbers.get(&address(value)).copied()
    }
}

/// A schema that is still to be followed: its number, what it says, and how that is read.
type Unfollowed<'v> = (usize, &'v Map<String, Value>, Uri<String>, Draft);

/// How many references are reported that lead nowhere, and how many keywords that are misspelt.
const FINDINGS: usize = 200;

/// Follows schemas from one to the next.
struct Follower<'v> {
    library: &'v Library,
    registry: &'v Registry<'v>,
    /// Where each value stands, by its address.
    places: HashMap<usize, SchemaPart>,
    waiting: Vec<Unfollowed<'v>>,
    graph: Graph<'v>,
}

impl<'v> Follower<'v> {
    fn new(library: &'v Library, registry: &'v Registry<'v>) -> Self {
        let mut places = HashMap::new();
        for (file, schema) in library.files.iter().enumerate() {
            locate(&schema.value, SchemaPart { file, pointer: String::new() }, &mut places);
        }
        let graph = Graph {
            members: Vec::new(),
            numbers: HashMap::new(),
            resources: BTreeMap::new(),
            patterns: Vec::new(),
            diagnostics: Vec::new(),
            warnings: Vec::new(),
        };
        Self { library, registry, places, waiting: Vec::new(), graph }
    }

    /// Returns the number of a schema, which is followed once; `None` for one of no file, such as a
    /// schema of schemas.
    fn number(&mut self, value: &'v Value, base: Uri<String>, draft: Draft) -> Option<usize> {
        if let Some(known) = self.graph.numbers.get(&address(value)) {
            return Some(*known);
        }
        let at = self.places.get(&address(value))?.clone();
        let number = self.graph.members.len();
        self.graph.numbers.insert(address(value), number);
        self.graph.members.push(SchemaNode {
            at,
            edges: Vec::new(),
            references: Vec::new(),
            asks_again: false,
        });
        if let Value::Object(fields) = value {
            self.waiting.push((number, fields, base, draft));
        }
        Some(number)
    }

    fn follow(
        &mut self,
        number: usize,
        fields: &'v Map<String, Value>,
        base: Uri<String>,
        draft: Draft,
    ) {
        let Some(at) = self.graph.members.get(number).map(|it| it.at.clone()) else { return };
        let base = self.base_of(fields, base, draft, &at);
        let mut edges = Vec::new();
        let mut references = Vec::new();
        for keyword in REFERENCES {
            let Some(Value::String(text)) = fields.get(*keyword) else { continue };
            if let Some(target) = self.target(text, &base, &at.at(keyword)) {
                edges.push((target, AppliesTo::Same));
                references.push((*keyword, target));
            }
        }
        let is_alone = ref_stands_alone(draft) && fields.contains_key("$ref");
        for inner in inner(fields) {
            let step = if is_alone { AppliesTo::None } else { inner.step };
            if let Some(target) = self.number(inner.value, base.clone(), draft) {
                edges.push((target, step));
            }
        }
        self.warn_of_misspelt(fields, &at);
        if let Some(Value::String(pattern)) = fields.get("pattern") {
            self.graph.patterns.push((pattern, at.at("pattern")));
        }
        if let Some(Value::Object(patterns)) = fields.get("patternProperties") {
            let at = at.at("patternProperties");
            self.graph.patterns.extend(patterns.keys().map(|it| (it.as_str(), at.at(it))));
        }
        if let Some(member) = self.graph.members.get_mut(number) {
            member.edges = edges;
            member.references = references;
            member.asks_again = fields.contains_key("unevaluatedProperties")
                || fields.contains_key("unevaluatedItems");
        }
    }

    /// Warns of keys that were most likely meant as keywords.
    fn warn_of_misspelt(&mut self, fields: &Map<String, Value>, at: &SchemaPart) {
        for it in misspelt(fields) {
            if self.graph.warnings.len() >= FINDINGS {
                return;
            }
            let Some(place) = at.at(it.key).place(&self.library.files) else { continue };
            let found = Diagnostic::new(Kind::SuspiciousValue, place, it.message());
            self.graph.warnings.push(found.with_help(it.help()));
        }
    }

    /// Returns what references of a schema are relative to: its own id, if it has one.
    fn base_of(
        &mut self,
        fields: &Map<String, Value>,
        base: Uri<String>,
        draft: Draft,
        at: &SchemaPart,
    ) -> Uri<String> {
        let keyword = if draft == Draft::Draft4 { "id" } else { "$id" };
        let is_alone = ref_stands_alone(draft) && fields.contains_key("$ref");
        let id = fields.get(keyword).and_then(Value::as_str);
        let Some(id) = id.filter(|it| !it.starts_with('#') && !is_alone) else { return base };
        match jsonschema::uri::resolve_against(&base.borrow(), id.trim_end_matches('#')) {
            Ok(own) => {
                self.graph.resources.insert(own.as_str().to_owned(), at.clone());
                own
            }
            Err(_) => {
                let message = format!("`{id}` is not a URI");
                let found = at.at(keyword).invalid(&self.library.files, message);
                self.graph.diagnostics.extend(found);
                base
            }
        }
    }

    /// Returns what a reference leads to, or says what is wrong with it.
    fn target(&mut self, text: &str, base: &Uri<String>, at: &SchemaPart) -> Option<usize> {
        let file = self.library.files.get(at.file)?;
        if base.as_str() == uri_of(&file.path) && leads_out(text, &file.path) {
            let message = format!("`{text}` leads out of the repository");
            self.graph.diagnostics.extend(at.invalid(&self.library.files, message));
            return None;
        }
        match self.registry.resolver(base.clone()).lookup(text) {
            Ok(resolved) => {
                let base = (*resolved.resolver().base_uri()).clone();
                let (value, _, draft) = resolved.into_inner();
                self.number(value, base, draft)
            }
            Err(error) => {
                if self.graph.diagnostics.len() < FINDINGS {
                    let message = wording(text, &error);
                    self.graph.diagnostics.extend(at.invalid(&self.library.files, message));
                }
                None
            }
        }
    }
}

/// Says why a reference leads nowhere.
fn wording(text: &str, error: &ReferencingError) -> String {
    match error {
        ReferencingError::InvalidUri(_) => format!("`{text}` is not a URI reference"),
        ReferencingError::Unretrievable { .. } => {
            format!("`{text}` leads to no schema of this repository")
        }
        _ => format!("`{text}` leads nowhere: the schema has no such part"),
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

/// Notes where every mapping and boolean stands.
fn locate(value: &Value, at: SchemaPart, places: &mut HashMap<usize, SchemaPart>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                locate(value, at.at(key), places);
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                locate(value, at.at(&index.to_string()), places);
            }
        }
        _ => {}
    }
    if value.is_object() || value.is_boolean() {
        places.insert(address(value), at);
    }
}
