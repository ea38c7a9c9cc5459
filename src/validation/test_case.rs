//! Classification tests as written.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::certname;
use super::file_reader::FileReader;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{Entry, Node};
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
///
/// The values are taken out of the documents: a copy of them would take as much memory again.
pub(super) fn read(documents: &mut [Node], reader: &mut FileReader) -> Vec<TestCase> {
    let mut tests = Vec::new();
    for document in documents.iter_mut().filter(|document| !document.is_null()) {
        // It says what is wrong with anything else; that has no elements.
        reader.list(document, "a file of tests");
        tests.extend(document.elements_mut().iter_mut().filter_map(|it| read_test(it, reader)));
    }
    tests
}

fn read_test(test: &mut Node, reader: &mut FileReader) -> Option<TestCase> {
    reader.mapping(test, "a test", KEYS)?;
    let required = |key: &str, reader: &mut FileReader| match test.get(key) {
        Some(node) => Some(reader.text(node, format_args!("`{key}`"))?.to_owned()),
        None => {
            if !reader.merges(test, key) {
                reader.add(Kind::SchemaViolation, test.span, format!("a test needs `{key}`"));
            }
            None
        }
    };
    let (name, node) = (required("name", reader), required("node", reader));
    if let (Some(name), Some(written)) = (&node, test.get("node")) {
        certname::check(name, certname::CertnameRole::Node, written.span, reader);
    }
    let facts = test.take("facts").map(|node| object(node, "`facts`", reader));
    let facts_file = test.get("facts_file").and_then(|node| facts_file(node, reader));
    if let (Some(_), Some(file)) = (&facts, test.entry("facts_file")) {
        reader.add(
            Kind::SchemaViolation,
            file.key_span,
            "a test has `facts` or `facts_file`, not both",
        );
    }
    let trusted = test.take("trusted").map(|node| object(node, "`trusted`", reader));
    let (expect, expect_place) = match test.take("expect") {
        Some(node) => {
            let place = reader.place(node.span);
            let is_lost = reader.is_lost(&node) || reader.faults.touch(node.span);
            let expect = read_expectation(node, reader)?;
            // What has a fault of its YAML is not what the test says nothing about.
            (Some(expect).filter(|it| !(is_lost && it.is_empty()))?, place)
        }
        None => {
            if !reader.merges(test, "expect") {
                reader.add(Kind::SchemaViolation, test.span, "a test needs `expect`");
            }
            return None;
        }
    };
    let place = reader.place(test.get("name").map_or(test.span, |node| node.span));
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
fn facts_file(node: &Node, reader: &mut FileReader) -> Option<Arc<str>> {
    let path = reader.text(node, "`facts_file`")?;
    let resolved = resolve(&reader.place(node.span).file, path);
    if resolved.is_none() {
        let message = "`facts_file` must be a path in the repository, relative to this file";
        reader.add(Kind::SchemaViolation, node.span, message);
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

fn object(node: Node, what: &str, reader: &mut FileReader) -> Map<String, Value> {
    reader.entries(node, what).into_iter().map(|it| (it.key, it.value.into_value())).collect()
}

/// Returns what is meant by a key of the API's answers.
fn familiar(entry: &Entry) -> Option<String> {
    let is_answer = matches!(entry.key.as_str(), "parameters" | "params" | "vars");
    is_answer.then(|| {
        "did you mean `variables`? parameters of a class stand in `classes`, below it".to_owned()
    })
}

fn read_expectation(mut node: Node, reader: &mut FileReader) -> Option<Expectation> {
    let errors_before = reader.errors;
    reader.mapping_or(&node, "`expect`", EXPECT, &familiar)?;
    let groups = node.get("groups").and_then(|it| reader.texts(it, "`groups`"));
    let classes = node.take("classes").map(|it| reader.classes(it, "`classes`"));
    let variables = node.take("variables").map(|it| reader.variables(it));
    let config_data = node.take("config_data").map(|it| reader.classes(it, "`config_data`"));
    let expectation = Expectation {
        groups: groups.map(|groups| groups.iter().map(ToString::to_string).collect()),
        environment: node.get("environment").and_then(|it| reader.parsed(it, "`environment`")),
        classes: classes.unwrap_or_default(),
        variables: variables.unwrap_or_default(),
        config_data: config_data.unwrap_or_default(),
        conflict: node.get("conflict").and_then(|it| reader.boolean(it, "`conflict`")),
    };
    // What could not be read is not what the test says nothing about.
    (reader.errors == errors_before).then_some(expectation)
}
