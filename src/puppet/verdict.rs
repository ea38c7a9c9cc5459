//! Whether a value has a type.
//!
//! The answer is three-valued: what cannot be known from the type as written (a pattern, an alias
//! from elsewhere, a type of things that JSON does not have) is neither true nor false.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Argument, DataType};

/// What type aliases stand for.
pub type Aliases = BTreeMap<String, DataType>;

/// The aliases that are followed one after the other, and the levels of a type.
const DEPTH: usize = 48;

/// Where a value does not have its type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeFault {
    /// The path to the part of the value that is wrong, such as `[2].port`; empty for all of it.
    pub path: String,
    /// The type that is wanted there.
    pub wanted: DataType,
    /// The part of the value.
    pub found: Value,
}

/// Returns why a value certainly does not have a type; nothing if it has, or if that is unknown.
pub fn fault_of(data_type: &DataType, value: &Value, aliases: &Aliases) -> Option<TypeFault> {
    if has_type(data_type, value, aliases) != Some(false) {
        return None;
    }
    let checker = Checker::new(aliases, value);
    Some(checker.locate(data_type, value, String::new(), 0))
}

/// Returns whether a value has a type; nothing if that is unknown.
pub fn has_type(data_type: &DataType, value: &Value, aliases: &Aliases) -> Option<bool> {
    Checker::new(aliases, value).holds(data_type, value, 0)
}

/// How many types are tried for a value at most, and for each value in it. A few aliases of a few others each stand for
/// millions.
const TRIED: [usize; 2] = [5_000, 100];

struct Checker<'a> {
    aliases: &'a Aliases,
    /// How many more types are tried; then the answer is unknown.
    left: Cell<usize>,
}

impl<'a> Checker<'a> {
    fn new(aliases: &'a Aliases, value: &Value) -> Self {
        let [once, each] = TRIED;
        Self { aliases, left: Cell::new(once.saturating_add(count(value).saturating_mul(each))) }
    }
}

/// Counts a value with all that are in it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

impl Checker<'_> {
    /// Returns whether a value has a type, if that can be known.
    fn holds(&self, data_type: &DataType, value: &Value, depth: usize) -> Option<bool> {
        if depth > DEPTH {
            return None;
        }
        self.left.set(self.left.get().checked_sub(1)?);
        let arguments = data_type.arguments.as_slice();
        match data_type.name.as_str() {
            "Any" | "Data" | "RichData" => Some(true),
            "Undef" => Some(value.is_null()),
            "Scalar" | "ScalarData" => {
                Some(!matches!(value, Value::Null | Value::Array(_) | Value::Object(_)))
            }
            "Numeric" => Some(value.is_number()),
            "Integer" if is_integer(value) => within(value, arguments),
            "Float" if value.is_number() && !is_integer(value) => within(value, arguments),
            "Integer" | "Float" => Some(false),
            "Boolean" => Some(match arguments {
                [Argument::Value(wanted)] => wanted == value,
                _ => value.is_boolean(),
            }),
            "String" => match value.as_str() {
                None => Some(false),
                Some(text) => within(&text.chars().count().into(), arguments),
            },
            "Enum" => Some(is_one_of(arguments, value)),
            "Pattern" if !value.is_string() => Some(false),
            "Optional" => match (arguments, value) {
                (_, Value::Null) => Some(true),
                ([inner], _) => self.argument(inner, value, depth),
                _ => None,
            },
            "NotUndef" => match (arguments, value) {
                (_, Value::Null) => Some(false),
                ([inner], _) => self.argument(inner, value, depth),
                _ => Some(true),
            },
            "Variant" => any(arguments.iter().map(|it| self.argument(it, value, depth))),
            "Collection" => match value {
                Value::Array(elements) => within(&elements.len().into(), arguments),
                Value::Object(fields) => within(&fields.len().into(), arguments),
                _ => Some(false),
            },
            "Array" => self.array(arguments, value, depth),
            "Tuple" => self.tuple(arguments, value, depth),
            "Hash" => self.hash(arguments, value, depth),
            "Struct" => self.structure(arguments, value, depth),
            name => self.holds(self.aliases.get(name)?, value, depth + 1),
        }
    }

    fn argument(&self, argument: &Argument, value: &Value, depth: usize) -> Option<bool> {
        match argument {
            Argument::Type(inner) => self.holds(inner, value, depth + 1),
            // `Optional['yes']` stands for the string.
            Argument::Value(wanted @ Value::String(_)) => Some(wanted == value),
            _ => None,
        }
    }

    fn array(&self, arguments: &[Argument], value: &Value, depth: usize) -> Option<bool> {
        let Value::Array(elements) = value else { return Some(false) };
        let (inner, bounds) = split_bounds(arguments);
        let sized = within(&elements.len().into(), bounds);
        let Some(inner) = inner.first() else { return sized };
        let each = elements.iter().map(|it| self.argument(inner, it, depth));
        all(std::iter::once(sized).chain(each))
    }

    fn tuple(&self, arguments: &[Argument], value: &Value, depth: usize) -> Option<bool> {
        let Value::Array(elements) = value else { return Some(false) };
        let (inner, bounds) = split_bounds(arguments);
        let count = elements.len();
        let sized = if bounds.is_empty() {
            // Without types it is any array.
            Some(inner.is_empty() || count == inner.len())
        } else {
            within(&count.into(), bounds)
        };
        // The last type stands for all that follow.
        let types = inner.iter().chain(std::iter::repeat_with(|| inner.last()).map_while(|it| it));
        let each = elements.iter().zip(types).map(|(it, inner)| self.argument(inner, it, depth));
        all(std::iter::once(sized).chain(each))
    }

    fn hash(&self, arguments: &[Argument], value: &Value, depth: usize) -> Option<bool> {
        let Value::Object(fields) = value else { return Some(false) };
        let (inner, bounds) = split_bounds(arguments);
        let sized = within(&fields.len().into(), bounds);
        let [key, of_value] = inner else { return sized };
        let each = fields.iter().flat_map(|(name, it)| {
            let name = Value::from(name.as_str());
            [self.argument(key, &name, depth), self.argument(of_value, it, depth)]
        });
        all(std::iter::once(sized).chain(each))
    }

    fn structure(&self, arguments: &[Argument], value: &Value, depth: usize) -> Option<bool> {
        let Value::Object(found) = value else { return Some(false) };
        let [Argument::Fields(fields)] = arguments else { return None };
        let mut verdicts = Vec::new();
        let mut known = Vec::new();
        for (key, inner) in fields {
            let (name, optional) = field_name(key)?;
            known.push(name);
            verdicts.push(match found.get(name) {
                Some(it) => self.holds(inner, it, depth + 1),
                None if optional => Some(true),
                // A type that takes undef makes the key optional.
                None => self.holds(inner, &Value::Null, depth + 1),
            });
        }
        verdicts.push(Some(found.keys().all(|key| known.contains(&key.as_str()))));
        all(verdicts.into_iter())
    }

    /// Finds the smallest part of a value that does not have its type.
    fn locate(&self, data_type: &DataType, value: &Value, path: String, depth: usize) -> TypeFault {
        if depth <= DEPTH
            && let Some((step, inner, part)) = self.step(data_type, value, depth)
        {
            return self.locate(inner, part, path + &step, depth + 1);
        }
        TypeFault { path, wanted: data_type.clone(), found: value.clone() }
    }

    /// Returns the first part of a value because of which it does not have its type.
    fn step<'v>(
        &'v self,
        data_type: &'v DataType,
        value: &'v Value,
        depth: usize,
    ) -> Option<(String, &'v DataType, &'v Value)> {
        let fails = |inner: &DataType, it: &Value| self.holds(inner, it, depth + 1) == Some(false);
        match (data_type.name.as_str(), data_type.arguments.as_slice(), value) {
            ("Optional" | "NotUndef", [Argument::Type(inner)], _) => {
                fails(inner, value).then(|| (String::new(), inner, value))
            }
            ("Array", [Argument::Type(inner), ..], Value::Array(elements)) => {
                let at = elements.iter().position(|it| fails(inner, it))?;
                Some((format!("[{at}]"), inner, elements.get(at)?))
            }
            ("Hash", [Argument::Type(_), Argument::Type(inner), ..], Value::Object(fields)) => {
                let (key, part) = fields.iter().find(|(_, it)| fails(inner, it))?;
                Some((format!(".{key}"), inner, part))
            }
            ("Struct", [Argument::Fields(known)], Value::Object(fields)) => {
                known.iter().find_map(|(key, inner)| {
                    let (name, _) = field_name(key)?;
                    let part = fields.get(name).filter(|it| fails(inner, it))?;
                    Some((format!(".{name}"), inner, part))
                })
            }
            _ => None,
        }
    }
}

/// Returns the name of a `Struct`'s key, and whether it may be absent.
fn field_name(key: &Argument) -> Option<(&str, bool)> {
    match key {
        Argument::Value(Value::String(name)) => Some((name, false)),
        Argument::Type(DataType { name, arguments }) => match (name.as_str(), arguments.as_slice())
        {
            ("Optional", [Argument::Value(Value::String(inner))]) => Some((inner, true)),
            ("NotUndef", [Argument::Value(Value::String(inner))]) => Some((inner, false)),
            _ => None,
        },
        _ => None,
    }
}

/// Parts the types from the bounds of the size behind them.
fn split_bounds(arguments: &[Argument]) -> (&[Argument], &[Argument]) {
    let types = arguments.iter().take_while(|it| matches!(it, Argument::Type(_))).count();
    arguments.split_at_checked(types).unwrap_or_default()
}

/// Returns whether a number lies within bounds, if they are bounds.
fn within(value: &Value, bounds: &[Argument]) -> Option<bool> {
    let number = |it: &Value| it.as_f64();
    let found = number(value)?;
    let bound = |at: usize| match bounds.get(at) {
        None | Some(Argument::Default) => Some(None),
        Some(Argument::Value(it)) => number(it).map(Some),
        Some(_) => None,
    };
    let (least, most) = (bound(0)?, bound(1)?);
    Some(least.is_none_or(|it| found >= it) && most.is_none_or(|it| found <= it))
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if !number.as_str().contains(['.', 'e', 'E']))
}

fn is_one_of(arguments: &[Argument], value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let any_case = matches!(arguments.last(), Some(Argument::Value(Value::Bool(true))));
    arguments.iter().any(|argument| match argument {
        Argument::Value(Value::String(it)) if any_case => it.to_lowercase() == text.to_lowercase(),
        Argument::Value(Value::String(it)) => it == text,
        _ => false,
    })
}

fn all(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = true;
    for verdict in verdicts {
        match verdict {
            Some(false) => return Some(false),
            None => known = false,
            Some(true) => {}
        }
    }
    known.then_some(true)
}

fn any(verdicts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    all(verdicts.map(|it| it.map(|it| !it))).map(|it| !it)
}
