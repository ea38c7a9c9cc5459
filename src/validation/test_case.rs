//! Classification tests as written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::certname;
use super::shape::Shape;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::Node;
use crate::model::{Classes, EnvironmentName, Map, Table, Value, VariableName};

/// A classification test.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// What it shows.
    pub name: String,
    /// Where it is written.
    pub place: Place,
    /// The certname.
    pub node: String,
    /// The facts.
    pub facts: Map<String, Value>,
    /// A file with facts, relative to the directory of the groups.
    pub facts_file: Option<Arc<str>>,
    /// The trusted data.
    pub trusted: Option<Map<String, Value>>,
    /// What must come out.
    pub expect: Expectation,
    /// Where that is written.
    pub expect_place: Place,
}

/// What must come out of a classification; what is absent is not compared, and the default is an
/// expectation of nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expectation {
    /// The names of exactly the groups that match, the root group not counted.
    pub groups: Option<BTreeSet<String>>,
    /// The environment.
    pub environment: Option<EnvironmentName>,
    /// Classes and parameters that must be there.
    pub classes: Classes,
    /// Variables that must be there.
    pub variables: Table<VariableName, Value>,
    /// Config data that must be there.
    pub config_data: Classes,
    /// Whether leaves must differ; none stands for no, too, but is not written.
    pub conflict: Option<bool>,
}

impl Expectation {
    /// Returns whether a test with this expectation passes whatever comes out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

const KEYS: &[&str] = &["name", "node", "facts", "facts_file", "trusted", "expect"];
const EXPECT: &[&str] =
    &["groups", "environment", "classes", "variables", "config_data", "conflict"];

/// Reads the tests of a file: a list a document.
pub(super) fn read(documents: &[Node], shape: &mut Shape) -> Vec<TestCase> {
    let mut tests = Vec::new();
    for document in documents.iter().filter(|document| !document.is_null()) {
        for test in shape.list(document, "a file of tests").unwrap_or_default() {
            tests.extend(read_test(test, shape));
        }
    }
    tests
}

fn read_test(test: &Node, shape: &mut Shape) -> Option<TestCase> {
    shape.mapping(test, "a test", KEYS)?;
    let required = |key: &str, shape: &mut Shape| match test.get(key) {
        Some(node) => Some(shape.text(node, format_args!("`{key}`"))?.to_owned()),
        None => {
            shape.add(Kind::SchemaViolation, test.span, format!("a test needs `{key}`"));
            None
        }
    };
    let (name, node) = (required("name", shape), required("node", shape));
    if let (Some(name), Some(written)) = (&node, test.get("node")) {
        certname::check(name, certname::Role::Node, written.span, shape);
    }
    let facts = test.get("facts").map(|node| object(node, "`facts`", shape));
    let facts_file = test.get("facts_file").and_then(|node| facts_file(node, shape));
    if let (Some(_), Some(file)) = (&facts, test.entry("facts_file")) {
        shape.add(
            Kind::SchemaViolation,
            file.key_span,
            "a test has `facts` or `facts_file`, not both",
        );
    }
    let trusted = test.get("trusted").map(|node| object(node, "`trusted`", shape));
    let (expect, expect_place) = match test.get("expect") {
        Some(node) => (read_expectation(node, shape)?, shape.place(node.span)),
        None => {
            shape.add(Kind::SchemaViolation, test.span, "a test needs `expect`");
            return None;
        }
    };
    let place = shape.place(test.get("name").map_or(test.span, |node| node.span));
    Some(TestCase {
        name: name?,
        place,
        node: node?,
        facts: facts.unwrap_or_default(),
        facts_file,
        trusted,
        expect,
        expect_place,
    })
}

/// Reports a test that passes whatever comes out.
pub(super) fn empty_expectation(test: &TestCase) -> Option<Diagnostic> {
    let message = format!("`expect` of the test `{}` says nothing that could fail", test.name);
    let help =
        "name `groups`, `environment` or a value; `clade test --update` writes what comes out now";
    test.expect.is_empty().then(|| {
        let place = test.expect_place.clone();
        Diagnostic::new(Kind::SchemaViolation, place, message).with_help(help)
    })
}

/// Reads the path of a file of facts, relative to the groups. `clade test` runs on the changes of
/// strangers: an absolute path is an error, and so is one to the credentials in `.git`. Where the
/// repository ends, only `clade test` knows.
fn facts_file(node: &Node, shape: &mut Shape) -> Option<Arc<str>> {
    let path = shape.text(node, "`facts_file`")?;
    let resolved = resolve(&shape.place(node.span).file, path);
    if resolved.is_none() {
        let message = "`facts_file` must be a path in the repository, relative to this file";
        shape.add(Kind::SchemaViolation, node.span, message);
    }
    resolved.map(Into::into)
}

/// Resolves a path that a file names.
fn resolve(file: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        return None;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_none_or(|it| *it == "..") => parts.push(".."),
            ".." => {
                parts.pop();
            }
            part if part.eq_ignore_ascii_case(".git") => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn object(node: &Node, what: &str, shape: &mut Shape) -> Map<String, Value> {
    shape.free_mapping(node, what).iter().map(|it| (it.key.clone(), it.value.to_value())).collect()
}

fn read_expectation(node: &Node, shape: &mut Shape) -> Option<Expectation> {
    let errors_before = shape.errors;
    shape.mapping(node, "`expect`", EXPECT)?;
    let groups = node.get("groups").and_then(|it| shape.texts(it, "`groups`"));
    let classes = |key: &str, shape: &mut Shape| {
        node.get(key)
            .map_or_else(Classes::default, |it| shape.classes(it.clone(), format_args!("`{key}`")))
    };
    let expectation = Expectation {
        groups: groups.map(|groups| groups.iter().map(ToString::to_string).collect()),
        environment: node.get("environment").and_then(|it| shape.parsed(it, "`environment`")),
        classes: classes("classes", shape),
        variables: node.get("variables").map(|it| shape.variables(it.clone())).unwrap_or_default(),
        config_data: classes("config_data", shape),
        conflict: node.get("conflict").and_then(|it| shape.boolean(it, "`conflict`")),
    };
    // What could not be read is not what the test says nothing about.
    (shape.errors == errors_before).then_some(expectation)
}
