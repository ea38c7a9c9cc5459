//! The set of mentioned paths.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::Value;

use super::tree::{PathTree, Want};
use crate::classification::references_of_estate;
use crate::hierarchy::Estate;
use crate::model::{Condition, Interpolation, Map, Node, Path, Segment, whole_path};

/// Facts, or trusted data.
type JsonObject = Map<String, Value>;

/// A set of paths of facts and trusted data. The certname belongs to every such set.
///
/// Its text form is a list of paths in the array form of rules, and behind them those of whole values once more, each
/// with `true` at its end: equal for equal sets, and read back by [`str::parse`].
#[derive(Clone, Debug, Default)]
pub struct MentionedPaths {
    /// Each begins with `fact` or `trusted`, and a key behind it.
    pub(super) paths: BTreeSet<Arc<[Segment]>>,
    /// Those of the paths whose whole value matters, since it is put into values.
    pub(super) whole: BTreeSet<Arc<[Segment]>>,
    fact: PathTree,
    trusted: PathTree,
}

impl PartialEq for MentionedPaths {
    fn eq(&self, other: &Self) -> bool {
        self.paths == other.paths && self.whole == other.whole
    }
}

impl Eq for MentionedPaths {}

impl MentionedPaths {
    /// Returns the paths that the rules of groups mention, and those that are put into values.
    pub fn of(estate: &Estate) -> Self {
        let rules = estate.hierarchy.groups().filter_map(|group| group.rule.as_deref());
        Self::of_rules(rules).union(&Self::in_values(estate))
    }

    /// Returns the paths that are put into values.
    pub fn in_values(estate: &Estate) -> Self {
        let mut whole = BTreeSet::new();
        references_of_estate(estate, &mut |reference| {
            if let Path::Segments(segments) = reference.decisive() {
                whole.extend(normalized(&segments));
            }
        });
        Self::new(whole.clone(), whole)
    }

    /// Returns the paths that a rule mentions.
    pub fn of_rule(rule: &Condition) -> Self {
        Self::of_rules(std::iter::once(rule))
    }

    pub(super) fn of_rules<'r>(rules: impl Iterator<Item = &'r Condition>) -> Self {
        let (mut paths, mut known) = (BTreeSet::new(), HashSet::new());
        for rule in rules {
            collect(rule, &mut known, &mut paths);
        }
        Self::new(paths, BTreeSet::new())
    }

    /// Returns how many paths there are.
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    fn new(paths: BTreeSet<Arc<[Segment]>>, whole: BTreeSet<Arc<[Segment]>>) -> Self {
        let (mut fact, mut trusted) = (PathTree::default(), PathTree::default());
        // In order, as the tree demands.
        for path in &paths {
            let want = if whole.contains(path) { Want::Whole } else { Want::Value };
            match path.split_first() {
                Some((Segment::Key(root), rest)) if root.as_ref() == FACT => fact.add(rest, want),
                Some((_, rest)) => trusted.add(rest, want),
                None => {}
            }
        }
        Self { paths, whole, fact, trusted }
    }

    /// Returns the paths whose whole value matters, without those that lead into the value of another.
    pub fn outermost_values(&self) -> Vec<Arc<[Segment]>> {
        let mut outermost: Vec<Arc<[Segment]>> = Vec::new();
        // What leads into a value stands behind it.
        for path in &self.whole {
            if outermost.last().is_none_or(|last| !path.starts_with(last)) {
                outermost.push(Arc::clone(path));
            }
        }
        outermost
    }

    /// Returns whether nothing is mentioned.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the paths of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.covers(other) {
            return self.clone();
        }
        Self::new(&self.paths | &other.paths, &self.whole | &other.whole)
    }

    /// Adds what mixtures of two states put into values: where one of them puts facts there and the other does not,
    /// those of both.
    #[must_use]
    pub fn with_mixtures(self, states: [&Estate; 2]) -> Self {
        let [one, other] = states;
        if one.interpolation == other.interpolation {
            return self;
        }
        states.into_iter().fold(self, |paths, state| {
            let on = Estate { interpolation: Interpolation::On, ..state.clone() };
            paths.union(&Self::in_values(&on))
        })
    }

    /// Returns whether a node that is restricted to this set has all that the other set mentions.
    pub fn covers(&self, other: &Self) -> bool {
        self.paths.is_superset(&other.paths) && self.whole.is_superset(&other.whole)
    }

    /// Returns the paths, each with its root.
    pub fn paths(&self) -> impl Iterator<Item = Path> {
        self.paths.iter().map(|it| Path::Segments(Arc::clone(it)))
    }

    /// Returns the paths of facts, each as a list of keys and indexes; that of a whole value stands there a second
    /// time, as [`whole_path`].
    pub fn fact_paths(&self) -> Vec<Value> {
        self.paths_in(FACT)
    }

    /// Returns the paths of trusted data in the same form.
    pub fn trusted_paths(&self) -> Vec<Value> {
        self.paths_in(TRUSTED)
    }

    fn paths_in(&self, root: &str) -> Vec<Value> {
        let is_in = |it: &Segment| matches!(it, Segment::Key(key) if key.as_ref() == root);
        let below = |paths: &BTreeSet<Arc<[Segment]>>| -> Vec<Vec<Value>> {
            let split = paths.iter().filter_map(|path| path.split_first());
            let below = split.filter(|(first, _)| is_in(first)).map(|(_, rest)| rest);
            below.map(|path| path.iter().map(written).collect()).collect()
        };
        let whole = below(&self.whole);
        let whole = whole.iter().map(|path| whole_path(path));
        below(&self.paths).into_iter().map(Value::from).chain(whole).collect()
    }

    /// Returns a node without the facts and trusted data that are not mentioned. What was not stored of it is
    /// not missing afterwards either.
    ///
    /// What is put into values is kept whole. A list whose elements are mentioned keeps the places of those. Where rules look at a value, they tell
    /// neither null from nothing, nor one object from another: nothing is kept in place of null, and only
    /// what is mentioned in an object.
    #[must_use]
    pub fn keep(&self, node: &Node) -> Node {
        Node {
            name: node.name.clone(),
            fact: self.fact.keep_map(&node.fact),
            trusted: self.trusted.keep_map(&node.trusted),
        }
    }

    /// Returns what [`Self::keep`] keeps of facts and trusted data that are JSON text.
    ///
    /// # Errors
    ///
    /// Returns an error if a text is not an object.
    pub fn keep_text(
        &self,
        fact: &str,
        trusted: &str,
    ) -> Result<(JsonObject, JsonObject), serde_json::Error> {
        Ok((self.fact.keep_text(fact)?, self.trusted.keep_text(trusted)?))
    }
}

/// The first segment of the path of a fact; `facts` means the same.
const FACT: &str = "fact";

/// The first segment of the path of trusted data.
const TRUSTED: &str = "trusted";

/// Adds the paths that a rule mentions. Many groups share a path, so it is known by where it is in memory.
fn collect(
    rule: &Condition,
    known: &mut HashSet<*const Segment>,
    paths: &mut BTreeSet<Arc<[Segment]>>,
) {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => {
            for term in terms {
                collect(term, known, paths);
            }
        }
        Condition::Not(inner) => collect(inner, known, paths),
        Condition::Test(test) => {
            if let Path::Segments(segments) = &test.path
                && known.insert(segments.as_ptr())
            {
                paths.extend(normalized(segments));
            }
        }
    }
}

/// Returns a path in the one form that it has in a set. There is none for the certname, and for a path where
/// every node has the same: the facts as a whole are an object, and they are not a list.
fn normalized(segments: &Arc<[Segment]>) -> Option<Arc<[Segment]>> {
    let [Segment::Key(root), rest @ ..] = segments.as_ref() else { return None };
    let [Segment::Key(_), ..] = rest else { return None };
    match root.as_ref() {
        FACT | TRUSTED => Some(Arc::clone(segments)),
        "facts" => {
            Some([Segment::Key(FACT.into())].into_iter().chain(rest.iter().cloned()).collect())
        }
        _ => None,
    }
}

/// Writes a segment as rules do.
fn written(segment: &Segment) -> Value {
    match segment {
        Segment::Key(key) => Value::from(key.as_ref()),
        Segment::Index(index) => Value::from(*index),
    }
}

impl fmt::Display for MentionedPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |path: &Arc<[Segment]>| -> Vec<Value> { path.iter().map(written).collect() };
        let paths = self.paths.iter().map(|path| Value::from(list(path)));
        let whole = self.whole.iter().map(|path| whole_path(&list(path)));
        Value::Array(paths.chain(whole).collect()).fmt(f)
    }
}

/// A text does not say which paths are mentioned.
#[derive(Debug, thiserror::Error)]
pub enum MentionedPathsError {
    /// It is not a list of lists.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// What it has is not a path of a fact or of trusted data.
    #[error("expected a path such as [\"fact\", \"os\", \"family\"], found {0}")]
    Path(Value),
}

impl FromStr for MentionedPaths {
    type Err = MentionedPathsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let paths: Vec<Vec<Value>> = serde_json::from_str(text)?;
        let segment = |value: &Value| match value {
            Value::String(key) => Some(Segment::Key(key.as_str().into())),
            other => other.as_u64().map(Segment::Index),
        };
        let read = |values: &[Value]| -> Option<Arc<[Segment]>> {
            let segments: Option<Arc<[Segment]>> = values.iter().map(segment).collect();
            segments.and_then(|it| normalized(&it))
        };
        let (mut all, mut whole) = (BTreeSet::new(), BTreeSet::new());
        for values in paths {
            let (of_set, path) = match values.split_last() {
                Some((Value::Bool(true), path)) => (&mut whole, read(path)),
                _ => (&mut all, read(&values)),
            };
            of_set.insert(path.ok_or_else(|| MentionedPathsError::Path(values.into()))?);
        }
        Ok(Self::new(&all | &whole, whole))
    }
}
