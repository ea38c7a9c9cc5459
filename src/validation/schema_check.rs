//! Finds what breaks the schemas of the repository, and says where it is written.
//!
//! Values have no places once they are read: those of a file that breaks a schema are read again.

use std::sync::Arc;

use super::file_list::FileList;
use super::group::GroupFile;
use super::own_schemas::{GroupSchemas, OwnSchemas, OwnViolation, ReadContent, SchemaWork};
use super::reading::FileParts;
use super::source::SourceContent;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{self, Content, Limits, Node, Span};
use crate::hierarchy::{Estate, Hierarchy};
use crate::json_schema::FaultyPart;
use crate::model::{BudgetItem, Group, Meter};

/// Checks all groups and nodes against the schemas of the repository.
pub(super) fn check(
    schemas: &OwnSchemas,
    estate: Option<&Estate>,
    readings: &FileList,
    read: &ReadContent<'_>,
    (meter, work): (&Meter, &SchemaWork),
) -> Vec<Diagnostic> {
    let mut found = schemas.set.diagnostics.clone();
    if schemas.is_empty() {
        return found;
    }
    let hierarchy = estate.map(|it| &it.hierarchy);
    let groups: Vec<(&GroupFile, Group, GroupSchemas)> =
        readings.iter().flat_map(|it| it.groups()).filter_map(|it| held(it, hierarchy)).collect();
    let breaks = |(_, group, part): &(&GroupFile, Group, GroupSchemas)| {
        !schemas.allow_group(group, *part, work)
    };
    // The findings of a file come one after another, so that it is read again once.
    let mut places = PlaceFinder { read, documents: None };
    let limit = usize::try_from(meter.budget().limit(BudgetItem::Findings)).unwrap_or(usize::MAX);
    let breaking = each::filter(&groups, breaks);
    if let Some(too_much) = work.finding() {
        found.push(too_much);
        return found;
    }
    for (file, group, part) in breaking {
        if found.len() > limit {
            // More are only counted.
            let message = "the group breaks a schema of the repository";
            found.push(Diagnostic::new(Kind::SchemaViolation, file.place(), message));
            continue;
        }
        let violations = schemas.violations_of_group(group, *part);
        found.extend(
            violations
                .into_iter()
                .map(|it| diagnostic(it, &file.place(), &mut places).in_group(group.name.as_str())),
        );
    }
    for reading in readings.iter() {
        let FileParts::Node(node) = &reading.parts else { continue };
        if schemas.allow_node(node, work) {
            continue;
        }
        if let Some(too_much) = work.finding() {
            found.push(too_much);
            break;
        }
        let violations = schemas.violations_of_node(node).into_iter();
        found.extend(violations.map(|it| diagnostic(it, node.origin().1, &mut places)));
    }
    found
}

/// Returns a group as it is held to schemas; of one with errors, the values that could be read whole.
fn held<'r>(
    file: &'r GroupFile,
    hierarchy: Option<&Hierarchy>,
) -> Option<(&'r GroupFile, Group, GroupSchemas)> {
    if let Some(group) = file.group() {
        return Some((file, shown(group, hierarchy), GroupSchemas::All));
    }
    let partial = file.partial()?;
    let mut group = partial.group.clone();
    if partial.has_faults_in("classes") {
        group.classes = Arc::default();
    }
    if partial.has_faults_in("variables") {
        group.variables = Arc::default();
    }
    if partial.has_faults_in("config_data") {
        group.config_data = Arc::default();
    }
    Some((file, group, GroupSchemas::OfValues))
}

/// Returns a group as the API shows it, with the parent that it has in the tree.
fn shown(group: &Group, hierarchy: Option<&Hierarchy>) -> Group {
    let in_tree = hierarchy.and_then(|it| Some(it.group(it.find(group.id)?)));
    let parent = in_tree.map_or(group.parent, |it| it.parent);
    Group { parent, ..group.clone() }
}

fn diagnostic(found: OwnViolation, document: &Place, places: &mut PlaceFinder<'_>) -> Diagnostic {
    let OwnViolation { way, violation } = found;
    let whole: Vec<String> = way.into_iter().chain(violation.instance).collect();
    let span = places.span(document, &whole, &violation.subject);
    let place = Place { file: Arc::clone(&document.file), span };
    let problem = match named(&whole) {
        Some(name) => format!("`{name}`: {}", violation.problem),
        None => violation.problem,
    };
    let (message, detail) = match violation.message {
        Some(message) => (message, Some(problem)),
        None => (problem, None),
    };
    let help: Vec<String> = detail.into_iter().chain(violation.hints).collect();
    let mut found = Diagnostic::new(Kind::SchemaViolation, place, message)
        .with_related(violation.schema, format!("asked for by #{}", violation.pointer))
        .with_schema(violation.part);
    if !help.is_empty() {
        found = found.with_help(help.join("; ").replace("?; ", "? "));
    }
    found
}

/// Names a value by its key, with the indexes that follow.
fn named(way: &[String]) -> Option<String> {
    let is_index = |it: &String| it.bytes().all(|byte| byte.is_ascii_digit());
    let at = way.iter().rposition(|it| !is_index(it))?;
    let indexes = way.get(at + 1..).unwrap_or_default().iter().map(|it| format!("[{it}]"));
    Some(way.get(at)?.clone() + &indexes.collect::<String>())
}

/// Finds where values are written.
struct PlaceFinder<'r> {
    read: &'r ReadContent<'r>,
    /// The file that was read last.
    documents: Option<(Arc<str>, Vec<Node>)>,
}

impl PlaceFinder<'_> {
    /// Returns where a value is written in the document that is named at a place.
    fn span(&mut self, document: &Place, way: &[String], subject: &FaultyPart) -> Span {
        let documents = self.documents_of(&document.file);
        let found = documents.iter().find(|it| it.name_span() == document.span);
        found.map_or(document.span, |it| span_in(it, way, subject))
    }

    fn documents_of(&mut self, file: &Arc<str>) -> &[Node] {
        if self.documents.as_ref().is_none_or(|(path, _)| path != file) {
            let documents = match (self.read)(file) {
                Some(SourceContent::Bytes(bytes)) => {
                    document::read(&bytes, &Limits::DEFAULT).documents
                }
                _ => Vec::new(),
            };
            self.documents = Some((Arc::clone(file), documents));
        }
        self.documents.as_ref().map_or(&[], |(_, documents)| documents)
    }
}

/// Returns where a value stands in its document; what is not written stands where its group is named,
/// or its mapping.
fn span_in(document: &Node, way: &[String], subject: &FaultyPart) -> Span {
    let (mut node, mut named_at) = (document, document.name_span());
    for token in way {
        let below = match &node.content {
            // The name of a class may be written with a leading `::`.
            Content::Mapping(_) => node
                .entry(token)
                .or_else(|| node.entry(&format!("::{token}")))
                .map(|it| (&it.value, it.key_span)),
            Content::Sequence(elements) => {
                let index = token.parse::<usize>().ok();
                index.and_then(|it| elements.get(it)).map(|it| (it, it.span))
            }
            Content::Scalar(_) => None,
        };
        let Some(below) = below else {
            // A rule may be written otherwise than it is shown.
            return if std::ptr::eq(node, document) { named_at } else { node.span };
        };
        (node, named_at) = below;
    }
    match subject {
        FaultyPart::Key(key) => node.entry(key).map_or(named_at, |it| it.key_span),
        FaultyPart::Value if !std::ptr::eq(node, document) => node.span,
        FaultyPart::Value | FaultyPart::Missing => named_at,
    }
}

/// Validators of WebAssembly stay on their thread, and there is only one.
#[cfg(target_family = "wasm")]
mod each {
    pub(super) fn filter<T>(items: &[T], keeps: impl Fn(&T) -> bool) -> Vec<&T> {
        items.iter().filter(|it| keeps(it)).collect()
    }
}

#[cfg(not(target_family = "wasm"))]
mod each {
    use rayon::prelude::*;

    /// Returns the items that a predicate keeps, asked on several threads.
    pub(super) fn filter<T: Sync>(
        items: &[T],
        keeps: impl Fn(&T) -> bool + Sync + Send,
    ) -> Vec<&T> {
        items.par_iter().filter(|it| keeps(it)).collect()
    }
}
