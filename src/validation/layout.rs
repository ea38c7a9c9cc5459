//! Layout and policy of a repository: `clade.yaml`.

use std::sync::Arc;

use super::individual::single;
use super::shape::Shape;
use super::{FileKind, FileReading, Parts, SourceContent, SourceFile, read_file};
use crate::diagnostic::Kind;
use crate::document::{self, Limits, Node};
use crate::model::{Budget, Meter};

/// Which directory holds what, and how strict validation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The directory of node groups.
    pub groups: String,
    /// The directory of individual classifications.
    pub nodes: String,
    /// The directory of class catalogues.
    pub environments: String,
    /// The directory of classification tests.
    pub tests: String,
    /// How strict validation is.
    pub policy: Policy,
    /// Whether a repository without node groups is valid.
    pub allow_empty: bool,
}

/// How strict validation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Classes and parameters that the catalogue does not have.
    pub missing_referents: Strictness,
    /// Groups that could conflict.
    pub potential_conflicts: Strictness,
    /// Whether every group must have an `id`.
    pub require_ids: bool,
    /// Whether every group must have a `description`.
    pub require_description: bool,
}

/// What becomes of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// It is an error.
    Error,
    /// It is a warning.
    Warn,
    /// It is not looked for.
    Off,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            groups: "groups".to_owned(),
            nodes: "nodes".to_owned(),
            environments: "environments".to_owned(),
            tests: "tests".to_owned(),
            policy: Policy {
                missing_referents: Strictness::Error,
                potential_conflicts: Strictness::Warn,
                require_ids: false,
                require_description: false,
            },
            allow_empty: false,
        }
    }
}

impl Layout {
    /// Returns what a file is for; `None` for one that has no part in the repository.
    pub fn kind_of(&self, file: &SourceFile) -> Option<FileKind> {
        // A link or submodule may stand for a whole directory, and then has no extension.
        let followed = matches!(file.content, SourceContent::Link | SourceContent::Submodule);
        let path = file.path.as_ref();
        let below = |directory: &str| {
            let rest = path.strip_prefix(directory)?;
            rest.strip_prefix('/').or(Some("").filter(|_| rest.is_empty() && followed))
        };
        if !followed && !is_yaml(path) {
            return None;
        }
        if let Some(file) = below(&self.environments) {
            return (followed || !file.contains('/')).then_some(FileKind::Environment);
        }
        let directories = [
            (&self.nodes, FileKind::Node),
            (&self.tests, FileKind::Tests),
            (&self.groups, FileKind::Groups),
        ];
        let found = directories.into_iter().find(|(directory, _)| below(directory).is_some());
        found.map(|(_, kind)| kind)
    }
}

pub(super) fn is_yaml(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml"))
}

const KEYS: &[&str] = &["groups", "nodes", "environments", "tests", "policy", "allow_empty"];
const POLICY: &[&str] =
    &["missing_referents", "potential_conflicts", "require_ids", "require_description"];

/// Reads `clade.yaml`, if there is one.
pub(super) fn read(files: &[SourceFile]) -> (Layout, Option<FileReading>) {
    let mut layout = Layout::default();
    let named = |name: &str| files.iter().find(|it| it.path.as_ref() == name);
    let Some(file) = named("clade.yaml").or_else(|| named("clade.yml")) else {
        return (layout, None);
    };
    let mut reading = read_file(file, FileKind::Settings);
    if let SourceContent::Bytes(bytes) = &file.content {
        let contents = document::read(bytes, &Limits::DEFAULT);
        let meter = Arc::new(Meter::new(Budget::DEFAULT));
        let mut shape = Shape::new(Arc::clone(&file.path), &meter);
        if let Some(document) = single(&contents.documents, &mut shape) {
            read_document(document, &mut layout, &mut shape);
        }
        reading.diagnostics.append(&mut shape.diagnostics);
        reading.parts = Parts::Nothing;
    }
    (layout, Some(reading))
}

fn read_document(document: &Node, layout: &mut Layout, shape: &mut Shape) {
    if shape.mapping(document, "`clade.yaml`", KEYS).is_none() {
        return;
    }
    for (key, directory) in [
        ("groups", &mut layout.groups),
        ("nodes", &mut layout.nodes),
        ("environments", &mut layout.environments),
        ("tests", &mut layout.tests),
    ] {
        let Some(node) = document.get(key) else { continue };
        let Some(path) = shape.text(node, format_args!("`{key}`")) else { continue };
        let path = path.trim_end_matches('/');
        if path.is_empty()
            || path.starts_with('/')
            || path.split('/').any(|it| matches!(it, "" | "." | ".."))
        {
            let message = format!("`{path}` is no directory below the root of the repository");
            shape.add(Kind::SchemaViolation, node.span, message);
        } else {
            path.clone_into(directory);
        }
    }
    if let Some(node) = document.get("allow_empty") {
        let flag = shape.boolean(node, format_args!("`allow_empty`"));
        layout.allow_empty = flag.unwrap_or(layout.allow_empty);
    }
    if let Some(policy) = document.get("policy") {
        read_policy(policy, &mut layout.policy, shape);
    }
}

fn read_policy(node: &Node, policy: &mut Policy, shape: &mut Shape) {
    if shape.mapping(node, "`policy`", POLICY).is_none() {
        return;
    }
    for (key, strictness) in [
        ("missing_referents", &mut policy.missing_referents),
        ("potential_conflicts", &mut policy.potential_conflicts),
    ] {
        let Some(node) = node.get(key) else { continue };
        match node.as_str() {
            Some("error") => *strictness = Strictness::Error,
            Some("warn") => *strictness = Strictness::Warn,
            Some("off") => *strictness = Strictness::Off,
            _ => {
                let message = format!("`{key}` must be `error`, `warn` or `\"off\"`");
                shape.add(Kind::SchemaViolation, node.span, message);
            }
        }
    }
    for (key, flag) in [
        ("require_ids", &mut policy.require_ids),
        ("require_description", &mut policy.require_description),
    ] {
        if let Some(node) = node.get(key) {
            *flag = shape.boolean(node, format_args!("`{key}`")).unwrap_or(*flag);
        }
    }
}
