//! A value that a schema does not allow.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Rule;
use serde_json::{Map, Value};

use super::documents::Documents;
use super::location::tokens;
use super::message::{guess, guess_key, problem};
use super::place::part;
use crate::diagnostic::Place;
use crate::document::Node;

/// A value that a schema does not allow.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The way from the value that was checked to the part that is at fault.
    pub instance: Vec<String>,
    /// What is at fault there.
    pub subject: FaultyPart,
    /// What is wrong.
    pub problem: String,
    /// What the author of the schema says about it.
    pub message: Option<String>,
    /// What was meant, and what the schema says of itself.
    pub hints: Vec<String>,
    /// The place of the keyword that is broken.
    pub schema: Place,
    /// The JSON pointer to that keyword.
    pub pointer: String,
    /// The part of the schema that is broken.
    pub part: Value,
}

/// What is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultyPart {
    /// The value.
    Value,
    /// What the value does not have.
    Missing,
    /// A key of it.
    Key(String),
}

/// How many violations of one value are told.
pub(super) const VIOLATIONS: usize = 100;

/// How long the part of a schema may be that is shown whole.
const PART: usize = 2_000;

/// Returns what an error means: once for each key that is at fault, else once.
pub(super) fn violations(
    error: &ValidationError<'_>,
    documents: &Documents,
    root: usize,
) -> Vec<Violation> {
    let at = documents.location(error, root);
    let place = documents.place(&at);
    let Some(schema) = place else { return Vec::new() };
    let way = tokens(&at.pointer);
    let node = documents.node(at.file);
    let object = part(node, way.split_last().map_or(&[], |(_, rest)| rest));
    let says =
        Annotation::of(node, &way).or_else(|| Annotation::of_reference(error, documents, root));
    let known: Vec<&str> = object
        .and_then(|it| it.get("properties"))
        .map(|it| it.entries().iter().map(|entry| entry.key.as_str()).collect())
        .unwrap_or_default();
    let instance: Vec<String> = tokens(error.instance_path().as_str());
    let says = says.unwrap_or_default();
    let about = says.about();
    // Each takes as long as the schema is large.
    let part = failing_part(object, node, &way);
    let violation = |(subject, problem, guess): (FaultyPart, String, Option<String>)| Violation {
        instance: instance.clone(),
        subject,
        problem,
        message: says.message.clone(),
        hints: guess.into_iter().chain(about.clone()).collect(),
        schema: schema.clone(),
        pointer: at.pointer.clone(),
        part: part.clone(),
    };
    findings(error, &known).into_iter().map(violation).collect()
}

/// Returns what is at fault, what is wrong with it, and what was meant.
fn findings(
    error: &ValidationError<'_>,
    known: &[&str],
) -> Vec<(FaultyPart, String, Option<String>)> {
    match error.kind() {
        Rule::AdditionalProperties { unexpected } | Rule::UnevaluatedProperties { unexpected } => {
            let one = |key: &String| {
                (
                    FaultyPart::Key(key.clone()),
                    format!("unknown key `{key}`"),
                    guess_key(key, known),
                )
            };
            unexpected.iter().take(VIOLATIONS).map(one).collect()
        }
        Rule::PropertyNames { error } => {
            let key = error.instance().as_str().unwrap_or_default().to_owned();
            let message = format!("the key `{key}`: {}", problem(error));
            vec![(FaultyPart::Key(key), message, guess(error))]
        }
        Rule::Required { .. } | Rule::MinProperties { .. } => {
            vec![(FaultyPart::Missing, problem(error), guess(error))]
        }
        _ => vec![(FaultyPart::Value, problem(error), guess(error))],
    }
}

/// Returns the schema that is broken, or only the keyword where that is long.
fn failing_part(object: Option<&Node>, node: &Node, way: &[String]) -> Value {
    let whole = object.map(Node::to_value).unwrap_or_default();
    if whole.is_object() && whole.to_string().len() <= PART {
        return whole;
    }
    let keyword = way.last().cloned().unwrap_or_default();
    let value = part(node, way).map(Node::to_value).unwrap_or_default();
    let value = if value.to_string().len() <= PART { value } else { Value::Null };
    Value::Object(Map::from_iter([(keyword, value)]))
}

/// What a schema says of itself to people.
#[derive(Default)]
struct Annotation {
    /// Stands for the message.
    message: Option<String>,
    title: Option<String>,
    description: Option<String>,
}

impl Annotation {
    /// Returns what the schema of a keyword says, or the one that it is an alternative or a part of.
    fn of(node: &Node, way: &[String]) -> Option<Self> {
        let mut way = way.split_last()?.1;
        loop {
            let found = Self::of_schema(part(node, way)?);
            if found.is_some() {
                return found;
            }
            way = match way {
                [rest @ .., list, _] if matches!(list.as_str(), "allOf" | "anyOf" | "oneOf") => {
                    rest
                }
                [rest @ .., one] if matches!(one.as_str(), "not" | "if" | "then" | "else") => rest,
                _ => return None,
            };
        }
    }

    /// Returns what is said beside the one reference through which a schema was reached.
    fn of_reference(
        error: &ValidationError<'_>,
        documents: &Documents,
        root: usize,
    ) -> Option<Self> {
        let way = tokens(error.evaluation_path().as_str());
        let mut references = way.iter().enumerate().filter(|(_, it)| *it == "$ref");
        let (at, _) = references.next()?;
        if references.next().is_some() {
            return None;
        }
        Self::of_schema(part(documents.node(root), way.get(..at)?)?)
    }

    /// Returns title and description.
    fn about(&self) -> Option<String> {
        match (&self.title, &self.description) {
            (Some(title), Some(description)) => Some(format!("{title}: {description}")),
            (one, other) => one.clone().or_else(|| other.clone()),
        }
    }

    fn of_schema(schema: &Node) -> Option<Self> {
        let text = |key: &str| schema.get(key).and_then(Node::as_str).map(str::to_owned);
        let found = Self {
            message: text("x-clade-message"),
            title: text("title"),
            description: text("description"),
        };
        let is_empty =
            found.message.is_none() && found.title.is_none() && found.description.is_none();
        (!is_empty).then_some(found)
    }
}
