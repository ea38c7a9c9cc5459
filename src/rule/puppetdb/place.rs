//! Where in `PuppetDB` the value of a path is.

use serde_json::{Value, json};

use crate::java_regex::postgres_literal;
use crate::model::{Path, Segment};

/// The place of a value among the facts or the trusted data of a node.
pub(super) struct FactPlace<'p> {
    /// `facts` or `trusted`, a field of the inventory.
    entity: &'static str,
    /// The way from there; not empty, and the first segment is a key.
    way: &'p [Segment],
}

/// The largest index that `PostgreSQL` takes for one.
const LAST_INDEX: u64 = 0x7fff_ffff;

impl<'p> FactPlace<'p> {
    /// Returns the place that a path leads to; none for the name.
    pub(super) fn of(path: &'p Path) -> Result<Option<Self>, &'static str> {
        const NOTHING: &str = "nothing is ever found at its path";
        let Path::Segments(segments) = path else {
            return if *path == Path::Name { Ok(None) } else { Err(NOTHING) };
        };
        let Some((Segment::Key(root), way)) = segments.split_first() else { return Err(NOTHING) };
        let entity = match root.as_ref() {
            "name" if way.is_empty() => return Ok(None),
            "fact" | "facts" => "facts",
            "trusted" => "trusted",
            _ => return Err(NOTHING),
        };
        match way.first() {
            None => Err("its path leads to no single value"),
            Some(Segment::Index(_)) => Err(NOTHING),
            // PuppetDB keeps the trusted data as a fact.
            Some(Segment::Key(fact)) if entity == "facts" && fact.as_ref() == "trusted" => {
                Err("a fact named `trusted` is never read")
            }
            Some(Segment::Key(_)) => Ok(Some(Self { entity, way })),
        }
    }

    /// Writes the path in the inventory.
    pub(super) fn to_path(&self) -> Result<Value, &'static str> {
        Ok(self.dotted(self.way)?.into())
    }

    /// Returns the name of the fact, if it is a whole one; of another name `PuppetDB` may think that
    /// it is a path.
    pub(super) fn fact(&self) -> Option<&str> {
        match (self.entity, self.way) {
            ("facts", [Segment::Key(fact)]) if is_plain(fact) => Some(fact),
            _ => None,
        }
    }

    /// Writes patterns of the path to an element of the array that is here.
    pub(super) fn to_elements(&self) -> Value {
        let root = (self.entity == "trusted").then(|| "^trusted$".to_owned());
        let way = self.way.iter().map(|segment| match segment {
            Segment::Key(key) => format!("^{}$", postgres_literal(key)),
            Segment::Index(index) => format!("^{index}$"),
        });
        root.into_iter().chain(way).chain(["^[0-9]+$".to_owned()]).map(Value::from).collect()
    }

    /// Asks for what must be on the way: an index and a key of digits are the same to `PostgreSQL`.
    pub(super) fn guards(&self) -> Result<Vec<Value>, &'static str> {
        let mut guards = Vec::new();
        for (at, segment) in self.way.iter().enumerate().skip(1) {
            let kind = match segment {
                Segment::Index(_) => Container::Array,
                Segment::Key(key) if is_integer(key) => Container::Object,
                Segment::Key(_) => continue,
            };
            let above = self.dotted(self.way.get(..at).unwrap_or_default())?;
            guards.push(is(&above.into(), kind));
        }
        Ok(guards)
    }

    fn dotted(&self, way: &[Segment]) -> Result<String, &'static str> {
        let nested = |pair: &[Segment]| matches!(pair, [Segment::Index(_), Segment::Index(_)]);
        let after_quotes = |pair: &[Segment]| match pair {
            [Segment::Key(key), Segment::Index(_)] => !is_plain(key),
            _ => false,
        };
        if way.windows(2).any(after_quotes) {
            return Err("PuppetDB finds nothing at an index right after a key in quotes");
        }
        if way.windows(2).any(nested) {
            return Err("PuppetDB cannot be asked for arrays in arrays");
        }
        let mut path = self.entity.to_owned();
        for segment in way {
            match segment {
                Segment::Index(index) if *index > LAST_INDEX => {
                    return Err("its index is too large");
                }
                Segment::Index(index) => path.extend(["[", &index.to_string(), "]"]),
                Segment::Key(key) if key.is_empty() || key.contains(is_unquotable) => {
                    return Err("PuppetDB cannot be asked for such a key");
                }
                Segment::Key(key) if is_plain(key) => {
                    path.extend([".", key]);
                }
                Segment::Key(key) => path.extend([".\"", key, "\""]),
            }
        }
        Ok(path)
    }
}

/// What a value must be for a segment to lead into it.
#[derive(Clone, Copy)]
enum Container {
    Array,
    Object,
}

/// Asks whether there is an array.
pub(super) fn is_array(path: &Value) -> Value {
    is(path, Container::Array)
}

/// Returns whether no key in quotes may have a character: Java's patterns, by which `PuppetDB` reads paths, take U+2028
/// and U+2029 for ends of lines.
fn is_unquotable(character: char) -> bool {
    character.is_control() || "\"\\[]\u{2028}\u{2029}".contains(character)
}

/// Returns whether a path has a key without quotes.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

/// Asks for the kind of a value: arrays and objects come after the booleans.
fn is(path: &Value, kind: Container) -> Value {
    let begins = match kind {
        Container::Array => r"^\[",
        Container::Object => r"^\{",
    };
    json!(["and", [">", path, true], ["~", path, begins]])
}

/// Returns whether `PostgreSQL` takes a key for an index as well.
fn is_integer(key: &str) -> bool {
    let digits = key.trim().trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit())
}
