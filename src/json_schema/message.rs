//! What a value does that a schema does not allow, in words.

use jsonschema::error::{TypeKind, ValidationErrorKind as Rule};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::diagnostic::closest;
use crate::wording::{counted, listed};

/// How many of several things are named.
const NAMED: usize = 8;

/// How many alternatives are put into words, to find those that are not the same as another.
const DESCRIBED: usize = 100;

/// How many characters of a text are shown.
const SHOWN: usize = 40;

/// Says what is wrong.
pub(super) fn problem(error: &ValidationError<'_>) -> String {
    let found = error.instance();
    if let Some(text) = beyond(error.kind(), found) {
        return text;
    }
    match error.kind() {
        Rule::Enum { options } => {
            format!("{} is not one of {}", shown(found), alternatives(options))
        }
        Rule::Constant { expected_value } => {
            format!("{} is not {}", shown(found), shown(expected_value))
        }
        Rule::Type { kind } => format!("expected {}, found {}", types(kind), described(found)),
        Rule::Required { property } => format!("the key {} is missing", shown(property)),
        Rule::AdditionalProperties { unexpected } | Rule::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(NAMED).map(|it| format!("`{it}`")).collect();
            format!("unknown key {}", names.join(", "))
        }
        Rule::Pattern { pattern } => format!("{} does not match `{pattern}`", shown(found)),
        Rule::Format { format } => format!("{} is not of the format `{format}`", shown(found)),
        Rule::UniqueItems => "an element stands in the list twice".to_owned(),
        Rule::Contains => "the list does not contain what it must".to_owned(),
        Rule::UnevaluatedItems { .. } => "the list has elements that are not allowed".to_owned(),
        Rule::FalseSchema => "nothing is allowed here".to_owned(),
        Rule::Not { .. } => format!("{} is what must not be here", shown(found)),
        Rule::PropertyNames { error } => problem(error),
        Rule::AnyOf { context } | Rule::OneOfNotValid { context } => {
            format!("none of the alternatives fits: {}", of_each(context))
        }
        Rule::OneOfMultipleValid { .. } => {
            "several of the alternatives fit, exactly one must".to_owned()
        }
        Rule::ContentEncoding { content_encoding } => {
            format!("{} is not encoded as `{content_encoding}`", shown(found))
        }
        Rule::ContentMediaType { content_media_type } => {
            format!("{} is not of the type `{content_media_type}`", shown(found))
        }
        Rule::FromUtf8 { .. } => "the encoded text is not UTF-8".to_owned(),
        Rule::BacktrackLimitExceeded { .. } | Rule::RegexEngineFailure { .. } => {
            "the pattern cannot be decided".to_owned()
        }
        Rule::Custom { message, .. } => message.clone(),
        Rule::Referencing(error) => error.to_string(),
        // What is beyond a limit was said.
        _ => format!("{} is not allowed", shown(found)),
    }
}

/// Says why each of several alternatives does not fit; of many, why the first do not.
fn of_each(alternatives: &[Vec<ValidationError<'static>>]) -> String {
    let mut problems: Vec<String> = Vec::new();
    for first in alternatives.iter().filter_map(|it| it.first()).take(DESCRIBED) {
        let text = problem(first);
        if !problems.contains(&text) {
            problems.push(text);
        }
        if problems.len() == NAMED {
            break;
        }
    }
    problems.join("; or ")
}

/// Says which limit a value is beyond, if it is one.
fn beyond(rule: &Rule, found: &Value) -> Option<String> {
    Some(match rule {
        Rule::Maximum { limit } => format!("{} is more than {limit}", shown(found)),
        Rule::Minimum { limit } => format!("{} is less than {limit}", shown(found)),
        Rule::ExclusiveMaximum { limit } => format!("{} is not less than {limit}", shown(found)),
        Rule::ExclusiveMinimum { limit } => format!("{} is not more than {limit}", shown(found)),
        Rule::MultipleOf { multiple_of } => {
            format!("{} is not a multiple of {multiple_of}", shown(found))
        }
        Rule::MaxLength { limit } => {
            format!("{} is longer than {}", shown(found), counted(*limit, "character"))
        }
        Rule::MinLength { limit } => {
            format!("{} is shorter than {}", shown(found), counted(*limit, "character"))
        }
        Rule::MaxItems { limit } => {
            format!("there are {}, at most {limit} are allowed", elements(found))
        }
        Rule::AdditionalItems { limit } => {
            format!("there are {}, at most {limit} are allowed", elements(found))
        }
        Rule::MinItems { limit } => {
            format!("there are {}, at least {limit} are expected", elements(found))
        }
        Rule::MaxProperties { limit } => format!("there are more than {}", counted(*limit, "key")),
        Rule::MinProperties { limit } => format!("there are fewer than {}", counted(*limit, "key")),
        _ => return None,
    })
}

/// Says what was meant, if that can be guessed.
pub(super) fn guess(error: &ValidationError<'_>) -> Option<String> {
    let found = error.instance();
    let similar = match error.kind() {
        Rule::Enum { options } => {
            closest(found.as_str()?, options.as_array()?.iter().filter_map(Value::as_str))
        }
        Rule::Constant { expected_value } => {
            closest(found.as_str()?, std::iter::once(expected_value.as_str()?))
        }
        Rule::Type { kind } => return quotes(kind, found),
        _ => None,
    };
    similar.map(|it| format!("did you mean `{it}`?"))
}

/// How many keys are compared with one that is none of them.
const COMPARED_KEYS: usize = 500;

/// Says which key was meant, or which there are.
pub(super) fn guess_key(key: &str, known: &[&str]) -> Option<String> {
    if let Some(similar) = closest(key, known.iter().copied().take(COMPARED_KEYS)) {
        return Some(format!("did you mean `{similar}`?"));
    }
    if known.is_empty() {
        return None;
    }
    let names: Vec<String> = known.iter().take(NAMED).map(|it| format!("`{it}`")).collect();
    let more = if known.len() > NAMED { ", …" } else { "" };
    Some(format!("the keys are {}{more}", names.join(", ")))
}

/// Says that a value lacks quotes, or has them without need.
fn quotes(kind: &TypeKind, found: &Value) -> Option<String> {
    let is_allowed = |value: &Value| {
        allowed(kind).into_iter().any(|it| match (it, value) {
            (JsonType::Integer, Value::Number(number)) => {
                !number.to_string().contains(['.', 'e', 'E'])
            }
            (JsonType::Number, Value::Number(_))
            | (JsonType::Boolean, Value::Bool(_))
            | (JsonType::String, Value::String(_)) => true,
            _ => false,
        })
    };
    match found {
        Value::String(text) if text.len() <= SHOWN => {
            let unquoted: Value = serde_json::from_str(text).ok()?;
            is_allowed(&unquoted).then(|| format!("write it without quotes: {text}"))
        }
        Value::Number(_) | Value::Bool(_) => {
            let quoted = Value::String(found.to_string());
            is_allowed(&quoted).then(|| format!("put it in quotes: {quoted}"))
        }
        _ => None,
    }
}

fn allowed(kind: &TypeKind) -> Vec<JsonType> {
    match kind {
        TypeKind::Single(one) => vec![*one],
        TypeKind::Multiple(several) => several.iter().collect(),
    }
}

fn types(kind: &TypeKind) -> String {
    let name = |it: JsonType| match it {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "a mapping",
    };
    let names: Vec<&str> = allowed(kind).into_iter().map(name).collect();
    names.join(" or ")
}

/// Names the sort of a value, and the value itself if it is short.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(number) if number.to_string().len() <= SHOWN => {
            format!("the number {number}")
        }
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) if text.chars().count() <= SHOWN => format!("the string `{text}`"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// Shows a value, or what sort it is where it is long.
fn shown(value: &Value) -> String {
    let (text, what) = match value {
        Value::String(text) => (text.clone(), "the text"),
        Value::Array(_) => return "the list".to_owned(),
        Value::Object(_) => return "the mapping".to_owned(),
        other => (other.to_string(), "the value"),
    };
    if text.chars().count() > SHOWN { what.to_owned() } else { format!("`{text}`") }
}

fn alternatives(options: &Value) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    listed(options.iter().map(shown), NAMED)
}

fn elements(value: &Value) -> String {
    counted(value.as_array().map_or(0, Vec::len), "element")
}
