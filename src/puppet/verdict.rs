//! Whether a value has a type.
//!
//! The answer is three-valued: what cannot be known from the type as written (a pattern, an alias
//! from elsewhere, a type of things that JSON does not have) is neither true nor false.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::{Argument, DataType};

/// What type aliases stand for.
pub type Aliases = BTreeMap<String, DataType>;

/// Returns the text that a string in a value stands for; nothing if that is known of each node alone.
pub type TextOf = for<'t> fn(&'t str) -> Option<Cow<'t, str>>;

/// Strings stand for themselves.
#[expect(clippy::unnecessary_wraps, reason = "others do not")]
pub fn as_written(text: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(text))
}

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
pub fn fault_of(
    data_type: &DataType,
    value: &Value,
    aliases: &Aliases,
    text_of: TextOf,
) -> Option<TypeFault> {
    if has_type(data_type, value, aliases, text_of) != Some(false) {
        return None;
    }
    let checker = Checker::new(aliases, value, text_of);
    Some(checker.locate(data_type, value, String::new(), 0))
}

/// Returns whether a value has a type; nothing if that is unknown.
pub fn has_type(
    data_type: &DataType,
    value: &Value,
    aliases: &Aliases,
    text_of: TextOf,
) -> Option<bool> {
    Checker::new(aliases, value, text_of).holds(data_type, value, 0)
}

/// How many types are tried for a value at most, and for each value in it. A few aliases of a few others each stand for
/// millions.
const TRIED: [usize; 2] = [5_000, 100];

/// How many words are compared in the time of one type.
const COMPARED: usize = 16;

struct Checker<'a> {
    aliases: &'a Aliases,
    text_of: TextOf,
    /// How many more types are tried; then the answer is unknown.
    left: Cell<usize>,
}

impl<'a> Checker<'a> {
    fn new(aliases: &'a Aliases, value: &Value, text_of: TextOf) -> Self {
        let [once, each] = TRIED;
        let left = once.saturating_add(count(value).saturating_mul(each));
        Self { aliases, text_of, left: Cell::new(left) }
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
        let arguments = data_type.arguments.as_slice();
        self.spend(1)?;
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
                Some(_) if arguments.is_empty() => Some(true),
                Some(text) => within(&(self.text_of)(text)?.chars().count().into(), arguments),
            },
            "Enum" => self.is_one_of(arguments, value),
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
            "Variant" => {
                self.spend(arguments.len() / COMPARED)?;
                any(arguments.iter().map(|it| self.argument(it, value, depth)))
            }
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
            Argument::Value(Value::String(wanted)) => {
                let Some(text) = value.as_str() else { return Some(false) };
                Some((self.text_of)(text)? == wanted.as_str())
            }
            _ => None,
        }
    }

    /// Notes work; nothing is left to do more when the answer is unknown.
    fn spend(&self, work: usize) -> Option<()> {
        self.left.set(self.left.get().checked_sub(work)?);
        Some(())
    }

    fn is_one_of(&self, arguments: &[Argument], value: &Value) -> Option<bool> {
        let Some(text) = value.as_str() else { return Some(false) };
        let text = (self.text_of)(text)?;
        let any_case = matches!(arguments.last(), Some(Argument::Value(Value::Bool(true))));
        self.spend(arguments.len() / COMPARED)?;
        // As `casecmp` of Ruby, which knows the letters of ASCII alone.
        Some(arguments.iter().any(|argument| match argument {
            Argument::Value(Value::String(it)) if any_case => it.eq_ignore_ascii_case(&text),
            Argument::Value(Value::String(it)) => *it == text,
            _ => false,
        }))
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
        self.spend(fields.len())?;
        let mut verdicts = Vec::new();
        let mut known = HashSet::new();
        for (key, inner) in fields {
            let (name, presence) = field_name(key)?;
            known.insert(name);
            verdicts.push(match (found.get(name), presence) {
                (Some(it), _) => self.holds(inner, it, depth + 1),
                (None, FieldPresence::Optional) => Some(true),
                (None, FieldPresence::Required) => Some(false),
                (None, FieldPresence::ByType) => self.holds(inner, &Value::Null, depth + 1),
            });
        }
        verdicts.push(Some(found.keys().all(|key| known.contains(key.as_str()))));
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

/// Whether a key of a `Struct` may be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldPresence {
    /// `Optional['key']`
    Optional,
    /// `NotUndef['key']`
    Required,
    /// A type that takes undef makes the key optional.
    ByType,
}

/// Returns the name of a `Struct`'s key, and whether it may be absent.
fn field_name(key: &Argument) -> Option<(&str, FieldPresence)> {
    match key {
        Argument::Value(Value::String(name)) => Some((name, FieldPresence::ByType)),
        Argument::Type(DataType { name, arguments }) => match (name.as_str(), arguments.as_slice())
        {
            ("Optional", [Argument::Value(Value::String(inner))]) => {
                Some((inner, FieldPresence::Optional))
            }

            ("NotUndef", [Argument::Value(Value::String(inner))]) => {
                Some((inner, FieldPresence::Required))
            }
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
    let bound = |at: usize| match bounds.get(at) {
        None | Some(Argument::Default) => Some(None),
        Some(Argument::Value(it)) => Some(Some(ordering(value, it)?)),
        Some(_) => None,
    };
    let (least, most) = (bound(0)?, bound(1)?);
    Some(least.is_none_or(Ordering::is_ge) && most.is_none_or(Ordering::is_le))
}

/// Compares two numbers; integers as such, which a double cannot tell apart beyond 2^53.
fn ordering(a: &Value, b: &Value) -> Option<Ordering> {
    let integer = |it: &Value| it.as_number().and_then(serde_json::Number::as_i128);
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if !number.as_str().contains(['.', 'e', 'E']))
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
