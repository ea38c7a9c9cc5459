//! The paths that rules mention, and what a node has there.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};

use crate::model::{Node, Path, STORED_PATHS, Segment, is_masked};
use crate::rule::Actual;

/// The number of a path among those that rules mention.
pub(super) type PathId = u32;

/// The number of a path among those that values mention.
pub(super) type ValuePathId = u32;

/// The path of a fact or of trusted data that values mention, with its root.
pub(super) type ValuePath = Arc<[Segment]>;

/// What a node has at a path.
#[derive(Clone, Debug, Default)]
pub(super) enum PathValue<'n> {
    /// Nothing, or null.
    #[default]
    Missing,
    /// A string.
    Text(Cow<'n, str>),
    /// A number or boolean, as its JSON text.
    Scalar(Cow<'n, str>),
    /// A list.
    List(Cow<'n, [Value]>),
    /// An object.
    Object,
}

impl<'n> From<Actual<'n>> for PathValue<'n> {
    fn from(actual: Actual<'n>) -> Self {
        match actual {
            Actual::Missing => Self::Missing,
            Actual::Text(text) => Self::Text(text.into()),
            Actual::Scalar(text) => Self::Scalar(text.into()),
            Actual::List(elements) => Self::List(elements.into()),
            Actual::Object => Self::Object,
        }
    }
}

impl From<Value> for PathValue<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.into()),
            Value::Array(elements) => Self::List(elements.into()),
            other => match Actual::of(&other) {
                Actual::Scalar(text) => Self::Scalar(text.to_owned().into()),
                Actual::Object => Self::Object,
                _ => Self::Missing,
            },
        }
    }
}

impl PathValue<'_> {
    pub(super) fn actual(&self) -> Actual<'_> {
        match self {
            Self::Missing => Actual::Missing,
            Self::Text(text) => Actual::Text(text),
            Self::Scalar(text) => Actual::Scalar(text),
            Self::List(elements) => Actual::List(elements),
            Self::Object => Actual::Object,
        }
    }
}

/// What a node has at every path that rules mention.
#[derive(Clone, Debug)]
pub struct ResolvedPaths<'n> {
    pub(super) values: Vec<PathValue<'n>>,
    /// Whether the node may have more than that, which was not stored.
    pub(super) is_withheld: bool,
}

impl<'n> ResolvedPaths<'n> {
    pub(super) fn get(&self, path: PathId) -> &PathValue<'n> {
        self.values.get(path as usize).unwrap_or(&PathValue::Missing)
    }
}

/// A place in the paths that are mentioned.
#[derive(Clone, Debug, Default)]
pub(super) struct Trie {
    /// The path of rules that ends here.
    pub(super) here: Option<PathId>,
    /// The path of values that ends here: all that stands here is put into them.
    pub(super) value: Option<ValuePathId>,
    keys: HashMap<Arc<str>, Self>,
    /// What kinds of keys there are, a bit each.
    kinds: u64,
    pub(super) elements: Vec<(u64, Self)>,
    /// Every path of rules that ends here or further down.
    pub(super) below: Vec<PathId>,
    /// Every path of values that does.
    pub(super) values_below: Vec<ValuePathId>,
}

/// The paths that rules mention, and those that values mention: a request is read once for both.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    /// Each path as rules write it; `None` are paths where nothing ever is.
    known: HashMap<Path, Option<PathId>>,
    /// The path of the certname.
    pub(super) name: Option<PathId>,
    pub(super) fact: Trie,
    pub(super) trusted: Trie,
    count: u32,
    /// By number.
    values: Arc<[ValuePath]>,
}

impl Paths {
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the paths that values mention, by number.
    pub(super) fn values(&self) -> &Arc<[ValuePath]> {
        &self.values
    }

    /// Returns these paths of rules with other paths of values. Each begins with `fact` or `trusted`, and none has
    /// an index.
    pub(super) fn with_values(&self, values: Arc<[ValuePath]>) -> Self {
        let mut paths = self.clone();
        for trie in [&mut paths.fact, &mut paths.trusted] {
            trie.forget_values();
        }
        for (id, path) in (0..).zip(values.iter()) {
            match path.split_first() {
                Some((Segment::Key(root), rest)) if root.as_ref() == "fact" => {
                    paths.fact.add_value(rest, id);
                }
                Some((_, rest)) => paths.trusted.add_value(rest, id),
                None => {}
            }
        }
        Self { values, ..paths }
    }

    /// Returns the path of the name in the certificate, if rules mention it.
    pub(super) fn certname(&self) -> Option<PathId> {
        self.trusted.get("certname").and_then(|it| it.here)
    }

    /// Returns the number of a path; `None` if nothing is ever there.
    pub(super) fn intern(&mut self, path: &Path) -> Option<PathId> {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let id = self.add(path);
        self.known.insert(path.clone(), id);
        id
    }

    fn add(&mut self, path: &Path) -> Option<PathId> {
        let segments = match path {
            Path::Name => return Some(*self.name.get_or_insert_with(|| next(&mut self.count))),
            Path::Bare(_) => return None,
            Path::Segments(segments) => segments,
        };
        let Some((Segment::Key(root), rest)) = segments.split_first() else { return None };
        let trie = match root.as_ref() {
            "fact" | "facts" => &mut self.fact,
            "trusted" => &mut self.trusted,
            "name" if rest.is_empty() => return self.add(&Path::Name),
            _ => return None,
        };
        // The facts as a whole are an object, which nothing matches; and they are no list.
        if !matches!(rest.first(), Some(Segment::Key(_))) {
            return None;
        }
        Some(trie.add(rest, &mut self.count))
    }

    /// Returns what a node has at every path.
    pub(super) fn resolve<'n>(&self, node: &'n Node) -> ResolvedPaths<'n> {
        let values = vec![PathValue::Missing; self.len()];
        let mut seen = ResolvedPaths { values, is_withheld: false };
        put(&mut seen.values, self.name, || PathValue::Text(node.name.as_str().into()));
        for (trie, map) in [(&self.fact, &node.fact), (&self.trusted, &node.trusted)] {
            trie.see_map(map, &mut seen);
            seen.is_withheld |= map.get(STORED_PATHS).is_some_and(|it| !trie.is_covered_by(it));
        }
        seen
    }
}

/// Notes what is at a path.
pub(super) fn put<'n>(
    seen: &mut [PathValue<'n>],
    path: Option<PathId>,
    what: impl FnOnce() -> PathValue<'n>,
) {
    if let Some(place) = path.and_then(|path| seen.get_mut(path as usize)) {
        *place = what();
    }
}

fn next(count: &mut u32) -> PathId {
    let id = *count;
    *count += 1;
    id
}

/// Returns a bit by the length and the first byte of a key: most keys of a node are of a kind that
/// no rule mentions.
#[inline]
fn kind(key: &str) -> u64 {
    let first = key.bytes().next().map_or(0, usize::from);
    1 << ((key.len() ^ first.wrapping_mul(5)) % 64)
}

impl Trie {
    /// Returns what is below a key, if rules mention it.
    #[inline]
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        if self.kinds & kind(key) == 0 { None } else { self.get_by_hash(key) }
    }

    /// Does the same for a key that may be mentioned.
    #[inline(never)]
    fn get_by_hash(&self, key: &str) -> Option<&Self> {
        self.keys.get(key)
    }

    fn add(&mut self, rest: &[Segment], count: &mut u32) -> PathId {
        let id = match rest.split_first() {
            None => *self.here.get_or_insert_with(|| next(count)),
            Some((Segment::Key(key), rest)) => {
                self.kinds |= kind(key);
                self.keys.entry(Arc::clone(key)).or_default().add(rest, count)
            }
            Some((Segment::Index(index), rest)) => {
                let at = self.elements.iter().position(|(it, _)| it == index);
                let at = at.unwrap_or_else(|| {
                    self.elements.push((*index, Self::default()));
                    self.elements.len() - 1
                });
                match self.elements.get_mut(at) {
                    Some((_, trie)) => trie.add(rest, count),
                    // It was put there just now.
                    None => next(count),
                }
            }
        };
        // Numbers grow, so what is not greater is there.
        if self.below.last().is_none_or(|last| *last < id) {
            self.below.push(id);
        }
        id
    }

    fn add_value(&mut self, rest: &[Segment], id: ValuePathId) {
        self.values_below.push(id);
        match rest.split_first() {
            Some((Segment::Key(key), rest)) => {
                self.kinds |= kind(key);
                self.keys.entry(Arc::clone(key)).or_default().add_value(rest, id);
            }
            Some((Segment::Index(_), _)) | None => self.value = Some(id),
        }
    }

    fn forget_values(&mut self) {
        self.value = None;
        self.values_below.clear();
        self.keys.retain(|_, trie| !trie.below.is_empty());
        self.keys.values_mut().for_each(Self::forget_values);
    }

    /// Returns whether all that is mentioned here is the value as a whole.
    pub(super) fn is_only_value(&self) -> bool {
        self.below.is_empty() && self.keys.is_empty()
    }

    /// Returns whether every path is among those that were stored.
    fn is_covered_by(&self, stored: &Value) -> bool {
        let stored = stored.as_array().map(Vec::as_slice).unwrap_or_default();
        let covered: HashSet<PathId> = stored.iter().filter_map(|it| self.find(it)).collect();
        self.below.iter().all(|it| covered.contains(it))
    }

    /// Returns the path that a list of keys and indexes leads to.
    fn find(&self, steps: &Value) -> Option<PathId> {
        steps.as_array()?.iter().try_fold(self, Self::step)?.here
    }

    fn step(&self, step: &Value) -> Option<&Self> {
        if let Value::String(key) = step {
            return self.get(key);
        }
        let index = step.as_u64()?;
        self.elements.iter().find(|(it, _)| *it == index).map(|(_, trie)| trie)
    }

    fn see_map<'n>(&self, map: &'n Map<String, Value>, seen: &mut ResolvedPaths<'n>) {
        for (key, trie) in &self.keys {
            if let Some(value) = map.get(key.as_ref()) {
                trie.resolve(value, seen);
            }
        }
    }

    fn resolve<'n>(&self, value: &'n Value, seen: &mut ResolvedPaths<'n>) {
        put(&mut seen.values, self.here, || Actual::of(value).into());
        seen.is_withheld |= is_masked(value);
        match value {
            Value::Object(map) => self.see_map(map, seen),
            Value::Array(elements) => {
                for (index, trie) in &self.elements {
                    let element = usize::try_from(*index).ok().and_then(|it| elements.get(it));
                    if let Some(element) = element {
                        trie.resolve(element, seen);
                    }
                }
            }
            _ => {}
        }
    }
}
