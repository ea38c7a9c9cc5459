//! Values that do not have the type that their class declares.

use std::collections::BTreeSet;

use super::super::layout::Strictness;
use super::class_use::ClassUse;
use super::{Check, CheckContext, FindingScope, Findings, Run};
use crate::classification::Template;
use crate::diagnostic::{Diagnostic, Kind, closest};
use crate::hierarchy::GroupIndex;
use crate::model::{EnvironmentName, Interpolation, Value};
use crate::puppet::{
    Aliases, Argument, DataType, TextOf, TypeFault, as_written, fault_of, has_type,
};

pub(super) const CHECK: Check = Check {
    kinds: &[Kind::ParameterType],
    scope: FindingScope::Descendants,
    run: Run::EachGroup(check),
};

/// Checks the values that a group sets against the types of all environments where they count: its
/// own, and those of descendants that do not override them.
fn check(context: &CheckContext<'_>, source: GroupIndex, findings: &mut Findings<'_>) {
    let (hierarchy, types) = (context.hierarchy, &context.catalogues.types);
    let classes = hierarchy.group(source).classes.as_ref();
    let is_off = context.policy.missing_referents == Strictness::Off;
    if types.is_empty() || classes.is_empty() || is_off {
        return;
    }
    let text_of = text_of(context);
    let environments: BTreeSet<&EnvironmentName> =
        hierarchy.subtree(source).map(|it| &hierarchy.group(it).environment).collect();
    for environment in environments {
        let Some(known) = types.get(environment) else { continue };
        for (class, parameters) in classes {
            let Some(of_class) = known.parameters.get(class) else { continue };
            if context.catalogues.lacks_parameters(environment, class) {
                continue;
            }
            for (parameter, value) in parameters.iter().filter(|(_, value)| !value.is_null()) {
                let Some(data_type) = of_class.get(parameter) else { continue };
                let Some(fault) = fault_of(data_type, value, &known.aliases, text_of) else {
                    continue;
                };
                let it = ClassUse { source, class, parameter: Some(parameter), environment };
                if let Some(user) = it.user(context) {
                    // A place takes a walk over all values of the group, and most of many findings are not kept.
                    findings.add_with(source, Kind::ParameterType.severity(), || {
                        let found = report(&it, &fault, &known.aliases, context)?;
                        Some(it.show_user(user, found, context))
                    });
                }
            }
        }
    }
}

/// Returns what strings come to: into some of them each node puts its own facts, and all that is known is that they are strings.
fn text_of(context: &CheckContext<'_>) -> TextOf {
    match context.interpolation {
        Interpolation::On => Template::literal,
        Interpolation::Off => as_written,
    }
}

fn report(
    it: &ClassUse<'_>,
    fault: &TypeFault,
    aliases: &Aliases,
    context: &CheckContext<'_>,
) -> Option<Diagnostic> {
    let ClassUse { source, class, parameter, environment } = it;
    let parameter = (*parameter)?;
    let group = context.hierarchy.group(*source);
    let written = context.places.of(group.id)?;
    let place = written.parameter_value_place(class, parameter)?;
    let TypeFault { path, wanted, found } = fault;
    let message = format!(
        "`{parameter}{path}` of the class `{class}` is {}; the environment `{environment}` wants `{wanted}`",
        describe(found)
    );
    let diagnostic =
        Diagnostic::new(Kind::ParameterType, place, message).in_group(group.name.as_str());
    Some(match help(wanted, found, aliases, text_of(context)) {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    })
}

/// Says what the value may have been meant to be.
fn help(wanted: &DataType, found: &Value, aliases: &Aliases, text_of: TextOf) -> Option<String> {
    let fits = |value: &Value| has_type(wanted, value, aliases, text_of) == Some(true);
    if let Value::String(text) = found {
        if let Some(plain) = unquoted(text).filter(|it| fits(it)) {
            return Some(format!("write it without quotes: {plain}"));
        }
        let mut words = Vec::new();
        enumerated(wanted, &mut words);
        words.truncate(COMPARED_WORDS);
        if let Some(similar) = closest(text, words.iter().copied()) {
            return Some(format!("did you mean `{similar}`?"));
        }
    }
    let quoted = Value::String(found.to_string());
    if (found.is_number() || found.is_boolean()) && fits(&quoted) {
        return Some(format!("put it in quotes: {quoted}"));
    }
    if !found.is_array() && fits(&Value::Array(vec![found.clone()])) {
        return Some(format!("put it in a list: [{found}]"));
    }
    let meaning = aliases.get(&wanted.name)?;
    Some(format!("`{wanted}` is {meaning}"))
}

/// How many words are compared with one that is none of them.
const COMPARED_WORDS: usize = 500;

/// Returns what a text is in JSON, unless it is a string. A number with an exponent is written in full, since not all readers of
/// YAML take the exponent for one.
fn unquoted(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    match &value {
        Value::String(_) => None,
        Value::Number(number) if number.as_str().contains(['e', 'E']) => {
            let plain = format!("{:?}", number.as_f64()?);
            if plain.contains('e') { None } else { serde_json::from_str(&plain).ok() }
        }
        _ => Some(value),
    }
}

/// Collects the words that a type allows.
fn enumerated<'d>(data_type: &'d DataType, words: &mut Vec<&'d str>) {
    for argument in &data_type.arguments {
        match argument {
            Argument::Value(Value::String(word)) if data_type.name == "Enum" => words.push(word),
            Argument::Type(inner) if matches!(data_type.name.as_str(), "Optional" | "Variant") => {
                enumerated(inner, words);
            }
            _ => {}
        }
    }
}

/// Names a value so that it can be told from others.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Number(value) => format!("the number {value}"),
        Value::String(text) if text.chars().count() <= 40 => {
            format!("the string {}", Value::from(text.as_str()))
        }
        Value::String(_) => "a string".to_owned(),
        Value::Array(elements) if elements.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(fields) if fields.is_empty() => "an empty mapping".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}
