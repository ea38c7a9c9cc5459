//! Puppet's types as written.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::lex::{Lexeme, Sort, lex};
use super::literal::number;

/// A type, such as `Optional[Integer[1, 65535]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    /// The name, such as `Integer` or `Stdlib::Port`.
    pub name: String,
    /// What stands between the brackets.
    pub arguments: Vec<Argument>,
}

/// An argument of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A type.
    Type(DataType),
    /// A string, number or boolean.
    Value(Value),
    /// `default`, which leaves a bound open.
    Default,
    /// A regular expression.
    Pattern(String),
    /// The keys of a `Struct` with their types.
    Fields(Vec<(Self, DataType)>),
    /// A list, such as the parameters of a `Callable` that says what it returns.
    List(Vec<Self>),
    /// A hash whose values are not all types, such as the parts of a `URI`.
    Hash(Vec<(Self, Self)>),
}

/// A text is not a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Puppet type such as Optional[Integer[1, 65535]]")]
pub struct TypeError(String);

/// The levels of types in types.
const DEPTH: usize = 32;

impl DataType {
    /// Reads a type from all of the tokens.
    pub(super) fn of_tokens(tokens: &[Lexeme<'_>]) -> Option<Self> {
        let (data_type, taken) = Self::first_of(tokens)?;
        (taken == tokens.len()).then_some(data_type)
    }

    /// Reads the type that tokens start with, and says how many it took.
    pub(super) fn first_of(tokens: &[Lexeme<'_>]) -> Option<(Self, usize)> {
        let mut reader = TypeReader { tokens, at: 0 };
        let data_type = reader.data_type(0)?;
        Some((data_type, reader.at))
    }

    /// Calls a function with this type's name and those of all types in it.
    pub fn names<'d>(&'d self, found: &mut dyn FnMut(&'d str)) {
        fn inside<'d>(argument: &'d Argument, found: &mut dyn FnMut(&'d str)) {
            match argument {
                Argument::Type(inner) => inner.names(found),
                Argument::Fields(fields) => {
                    for (key, inner) in fields {
                        inside(key, found);
                        inner.names(found);
                    }
                }
                Argument::List(elements) => elements.iter().for_each(|it| inside(it, found)),
                Argument::Hash(fields) => {
                    for (key, value) in fields {
                        inside(key, found);
                        inside(value, found);
                    }
                }
                Argument::Value(_) | Argument::Default | Argument::Pattern(_) => {}
            }
        }
        found(&self.name);
        self.arguments.iter().for_each(|it| inside(it, found));
    }
}

impl FromStr for DataType {
    type Err = TypeError;

    fn from_str(text: &str) -> Result<Self, TypeError> {
        let tokens = lex(text).unwrap_or_default();
        Self::of_tokens(&tokens).ok_or_else(|| TypeError(text.to_owned()))
    }
}

struct TypeReader<'r, 't> {
    tokens: &'r [Lexeme<'t>],
    at: usize,
}

impl<'r, 't> TypeReader<'r, 't> {
    fn peek(&self) -> Option<&'r Sort<'t>> {
        self.tokens.get(self.at).map(|it| &it.sort)
    }

    fn take(&mut self, mark: char) -> bool {
        let taken = self.peek() == Some(&Sort::Mark(mark));
        self.at += usize::from(taken);
        taken
    }

    fn data_type(&mut self, depth: usize) -> Option<DataType> {
        let Some(Sort::Type(name)) = self.peek() else { return None };
        if depth > DEPTH {
            return None;
        }
        self.at += 1;
        let name = name.trim_start_matches("::").to_owned();
        let arguments = if self.take('[') { self.list(depth + 1)? } else { Vec::new() };
        Some(resolved(DataType { name, arguments }))
    }

    /// Reads arguments up to the bracket that closes.
    fn list(&mut self, depth: usize) -> Option<Vec<Argument>> {
        let mut arguments = Vec::new();
        while !self.take(']') {
            arguments.push(self.argument(depth)?);
            if !self.take(',') {
                return self.take(']').then_some(arguments);
            }
        }
        Some(arguments)
    }

    fn argument(&mut self, depth: usize) -> Option<Argument> {
        if depth > DEPTH {
            return None;
        }
        let sort = self.peek()?;
        if matches!(sort, Sort::Type(_)) {
            return self.data_type(depth).map(Argument::Type);
        }
        self.at += 1;
        Some(match sort {
            Sort::Mark('-') => {
                let Some(Sort::Number(digits)) = self.peek() else { return None };
                self.at += 1;
                Argument::Value(number(digits, "-")?)
            }
            Sort::Number(digits) => Argument::Value(number(digits, "")?),
            Sort::Text(text) => Argument::Value(Value::String(text.clone()?)),
            Sort::Word("true") => Argument::Value(Value::Bool(true)),
            Sort::Word("false") => Argument::Value(Value::Bool(false)),
            Sort::Word("default") => Argument::Default,
            Sort::Word(word) => Argument::Value(Value::from(*word)),
            Sort::Pattern(pattern) => Argument::Pattern((*pattern).to_owned()),
            Sort::Mark('{') => self.hash(depth + 1)?,
            Sort::Mark('[') => Argument::List(self.list(depth + 1)?),
            _ => return None,
        })
    }

    fn hash(&mut self, depth: usize) -> Option<Argument> {
        let mut fields = Vec::new();
        while !self.take('}') {
            let key = self.argument(depth)?;
            if !(self.take('=') && self.take('>')) {
                return None;
            }
            fields.push((key, self.argument(depth)?));
            if !self.take(',') {
                if !self.take('}') {
                    return None;
                }
                break;
            }
        }
        let are_types = fields.iter().all(|(_, it)| matches!(it, Argument::Type(_)));
        if !are_types {
            return Some(Argument::Hash(fields));
        }
        let types = fields.into_iter().filter_map(|(key, it)| match it {
            Argument::Type(it) => Some((key, it)),
            _ => None,
        });
        Some(Argument::Fields(types.collect()))
    }
}

/// Returns the alias itself for `TypeReference['Alias']`, as Puppet Server writes one.
fn resolved(data_type: DataType) -> DataType {
    if data_type.name == "TypeReference"
        && let [Argument::Value(Value::String(text))] = data_type.arguments.as_slice()
        && let Ok(alias) = text.parse()
    {
        return alias;
    }
    data_type
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        f.write_str("[")?;
        for (number, argument) in self.arguments.iter().enumerate() {
            write!(f, "{}{argument}", if number == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(data_type) => data_type.fmt(f),
            Self::Value(Value::String(text)) => {
                write!(f, "'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
            Self::Value(value) => value.fmt(f),
            Self::Default => f.write_str("default"),
            Self::Pattern(pattern) => write!(f, "/{pattern}/"),
            Self::Fields(fields) => hash(f, fields.iter().map(|(key, it)| (key, it as &_))),
            Self::Hash(fields) => hash(f, fields.iter().map(|(key, it)| (key, it as &_))),
            Self::List(elements) => {
                f.write_str("[")?;
                for (number, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if number == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

fn hash<'f>(
    f: &mut fmt::Formatter<'_>,
    fields: impl Iterator<Item = (&'f Argument, &'f dyn fmt::Display)>,
) -> fmt::Result {
    f.write_str("{")?;
    for (number, (key, value)) in fields.enumerate() {
        write!(f, "{}{key} => {value}", if number == 0 { "" } else { ", " })?;
    }
    f.write_str("}")
}
