//! Values held to the schemas that the repository has for them.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Map, Value};

use super::class_pattern::ClassPattern;
use super::individual::NodeFile;
use super::schema_settings::SchemaSettings;
use super::source::SourceContent;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::Span;
use crate::hierarchy::group_to_value;
use crate::json_schema::{Schema, SchemaRequest, SchemaSet, SchemaSource, Violation};
use crate::model::{Classes, Group, Individual, Table, VariableName};

/// Returns what a commit has at a path; none if there is nothing.
pub type ReadContent<'r> = dyn Fn(&str) -> Option<SourceContent> + 'r;

/// The schemas that a repository has for its values, compiled.
#[derive(Debug, Default)]
pub struct OwnSchemas {
    settings: SchemaSettings,
    group: Option<Arc<Schema>>,
    variables: Option<Arc<Schema>>,
    classes: Vec<(ClassPattern, Arc<Schema>)>,
    config_data: Vec<(ClassPattern, Arc<Schema>)>,
    pub(super) set: SchemaSet,
}

/// How often schemas may look at parts of all values of a commit: about half a minute of one core.
const WORK: u64 = 1_000_000_000;

/// Counts what values held to schemas cost, so that a commit costs no more than so much.
#[derive(Debug, Default)]
pub(super) struct SchemaWork(AtomicU64);

impl SchemaWork {
    /// Goes on where so much is done.
    pub(super) fn after(done: u64) -> Self {
        Self(AtomicU64::new(done))
    }

    /// Returns what is done.
    pub(super) fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether a schema allows a value, and there was work left to find out.
    fn allows(&self, schema: &Schema, value: &Value) -> bool {
        let more = schema.cost_of(value);
        let done = self.0.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        done <= WORK && schema.is_valid(value)
    }

    /// Says that it was too much, if it was.
    pub(super) fn finding(&self) -> Option<Diagnostic> {
        let done = self.0.load(Ordering::Relaxed);
        let place = Place { file: Arc::from("."), span: Span::START };
        let message = "the commit is too large for its schemas: checking all values takes too long";
        let help = "refer to the same schema less often, or to fewer schemas for each class";
        (done > WORK).then(|| Diagnostic::new(Kind::CommitTooLarge, place, message).with_help(help))
    }
}

/// The schemas that a group is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupSchemas {
    All,
    /// Those of its values: the rest of it has errors.
    OfValues,
}

/// A violation, and the way from a document to the value that was checked.
pub(super) struct OwnViolation {
    pub(super) way: Vec<String>,
    pub(super) violation: Violation,
}

impl OwnSchemas {
    /// Reads and compiles the schemas that settings name.
    pub fn load(settings: &SchemaSettings, read: &ReadContent<'_>) -> Self {
        let set = SchemaSet::load(&settings.all(), &source_of(read));
        let one = |it: &Option<_>| {
            let request: &SchemaRequest = it.as_ref()?;
            set.get(&request.path).cloned()
        };
        let by_class = |requests: &[(ClassPattern, SchemaRequest)]| {
            let schema = |(pattern, request): &(ClassPattern, SchemaRequest)| {
                Some((pattern.clone(), Arc::clone(set.get(&request.path)?)))
            };
            requests.iter().filter_map(schema).collect()
        };
        Self {
            group: one(&settings.group),
            variables: one(&settings.variables),
            classes: by_class(&settings.classes),
            config_data: by_class(&settings.config_data),
            settings: settings.clone(),
            set,
        }
    }

    /// Returns the files that the schemas of settings are in, as they are found.
    pub fn sources(
        settings: &SchemaSettings,
        read: &ReadContent<'_>,
    ) -> Vec<(Arc<str>, SourceContent)> {
        let sources = SchemaSet::sources(&settings.all(), &source_of(read));
        let content = |(path, source)| {
            Some((
                path,
                match source {
                    SchemaSource::Bytes(bytes) => SourceContent::Bytes(bytes),
                    SchemaSource::TooLarge(size) => SourceContent::TooLarge(size),
                    SchemaSource::NotAFile => SourceContent::Link,
                    SchemaSource::Missing => return None,
                },
            ))
        };
        sources.into_iter().filter_map(content).collect()
    }

    /// Returns the settings that name the schemas.
    pub fn settings(&self) -> &SchemaSettings {
        &self.settings
    }

    /// Returns whether a file is one of those with schemas, or would be one if it were there.
    pub fn reads(&self, path: &str) -> bool {
        self.set.paths().contains(path)
    }

    /// Returns the paths of the files that were read, or would have been if they were there.
    pub fn paths(&self) -> impl Iterator<Item = &Arc<str>> {
        self.set.paths().iter()
    }

    /// Returns whether the schema of a file allows an object without keys.
    pub(super) fn allows_nothing(&self, path: &str) -> bool {
        self.set.get(path).is_none_or(|it| it.is_valid(&Value::Object(Map::new())))
    }

    /// Returns whether nothing is held to a schema.
    pub(super) fn is_empty(&self) -> bool {
        self.group.is_none()
            && self.variables.is_none()
            && self.classes.is_empty()
            && self.config_data.is_empty()
    }

    /// Returns whether the schemas allow a group, as long as there is work left.
    pub(super) fn allow_group(&self, group: &Group, part: GroupSchemas, work: &SchemaWork) -> bool {
        let mut is_allowed = true;
        self.each_of_group(group, part, &mut |_, schema, value| {
            is_allowed = is_allowed && work.allows(schema, value);
        });
        is_allowed
    }

    /// Returns what a group costs.
    pub(super) fn cost_of_group(&self, group: &Group) -> u64 {
        let mut cost = 0_u64;
        self.each_of_group(group, GroupSchemas::All, &mut |_, schema, value| {
            cost = cost.saturating_add(schema.cost_of(value));
        });
        cost
    }

    /// Returns whether the schemas allow the values of a node, as long as there is work left.
    pub(super) fn allow_node(&self, node: &NodeFile, work: &SchemaWork) -> bool {
        let Individual { classes, variables, config_data } = node.individual();
        let mut is_allowed = true;
        self.each_of_values(classes, variables, config_data, &mut |_, schema, value| {
            is_allowed = is_allowed && work.allows(schema, value);
        });
        is_allowed
    }

    /// Returns what the schemas do not allow of a group.
    pub(super) fn violations_of_group(
        &self,
        group: &Group,
        part: GroupSchemas,
    ) -> Vec<OwnViolation> {
        let mut found = Vec::new();
        self.each_of_group(group, part, &mut |way, schema, value| {
            collect(way, schema, value, &mut found);
        });
        found
    }

    /// Returns what the schemas do not allow of the values of a node.
    pub(super) fn violations_of_node(&self, node: &NodeFile) -> Vec<OwnViolation> {
        let Individual { classes, variables, config_data } = node.individual();
        let mut found = Vec::new();
        self.each_of_values(classes, variables, config_data, &mut |way, schema, value| {
            collect(way, schema, value, &mut found);
        });
        found
    }

    fn each_of_group(&self, group: &Group, part: GroupSchemas, visit: &mut VisitValue<'_>) {
        if let Some(schema) = self.group.as_ref().filter(|_| part == GroupSchemas::All) {
            visit(&[], schema, &group_to_value(group));
        }
        self.each_of_values(&group.classes, &group.variables, &group.config_data, visit);
    }

    fn each_of_values(
        &self,
        classes: &Classes,
        variables: &Table<VariableName, Value>,
        config_data: &Classes,
        visit: &mut VisitValue<'_>,
    ) {
        if let Some(schema) = self.variables.as_ref().filter(|_| !variables.is_empty()) {
            visit(&["variables"], schema, &object(variables.iter()));
        }
        for (key, schemas, of_it) in
            [("classes", &self.classes, classes), ("config_data", &self.config_data, config_data)]
        {
            if schemas.is_empty() {
                continue;
            }
            for (class, values) in of_it {
                let name = class.as_str();
                let mut fitting = schemas.iter().filter(|(it, _)| it.matches(name)).peekable();
                if fitting.peek().is_none() {
                    continue;
                }
                let value = object(values.iter());
                for (_, schema) in fitting {
                    visit(&[key, name], schema, &value);
                }
            }
        }
    }
}

/// Called with the way to a value, a schema and the value that it sees.
type VisitValue<'v> = dyn FnMut(&[&str], &Schema, &Value) + 'v;

fn collect(way: &[&str], schema: &Schema, value: &Value, found: &mut Vec<OwnViolation>) {
    if schema.is_valid(value) {
        return;
    }
    let way: Vec<String> = way.iter().map(|it| (*it).to_owned()).collect();
    let violations = schema.violations(value).into_iter();
    found.extend(violations.map(|violation| OwnViolation { way: way.clone(), violation }));
}

fn object<'v, K: Display + 'v>(values: impl Iterator<Item = (&'v K, &'v Value)>) -> Value {
    Value::Object(values.map(|(key, it)| (key.to_string(), it.clone())).collect::<Map<_, _>>())
}

/// Returns how schemas are read from what a commit has.
pub(super) fn source_of<'r>(read: &'r ReadContent<'_>) -> impl Fn(&str) -> SchemaSource + 'r {
    |path| match read(path) {
        None => SchemaSource::Missing,
        Some(SourceContent::Bytes(bytes)) => SchemaSource::Bytes(bytes),
        Some(SourceContent::TooLarge(size)) => SchemaSource::TooLarge(size),
        Some(SourceContent::Link | SourceContent::Submodule) => SchemaSource::NotAFile,
    }
}
