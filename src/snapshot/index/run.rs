//! One look through the index.

use hashbrown::HashMap;

use super::super::paths::{PathId, Seen, Sight};
use super::texts::{Side, TextId};
use super::{Base, Finder, Index, NONE, Op, Patch, Place, Program, Test};
use crate::classification::ClassificationError;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, text};
use crate::rule::regex::{SHORT, SubjectKind};
use crate::rule::{EvaluationError, found, holds};

/// For so many groups there is room at once; a node is mostly asked of fewer.
const USUAL: usize = 48;

/// The group whose rule could not be evaluated, and why.
pub(super) type Failure = (Place, EvaluationError);

/// Names the group of a failure.
pub(super) fn error(hierarchy: &Hierarchy, failure: Failure) -> ClassificationError {
    let (place, cause) = failure;
    let index = hierarchy.at(place as usize).unwrap_or(hierarchy.root());
    ClassificationError::of(hierarchy.group(index), cause)
}

/// One look.
pub(super) struct Run<'r, 'n> {
    base: &'r Base,
    patch: Option<&'r Patch>,
    sight: &'r Sight<'n>,
    /// The number of the text at each path.
    texts: Vec<TextId>,
    /// The kind of the text that was searched last.
    kind: Option<(PathId, SubjectKind)>,
    /// The outcomes of comparisons that several rules ask for.
    outcomes: HashMap<u32, Result<bool, EvaluationError>>,
}

/// A group that has matched.
struct Matched {
    place: Place,
    end: Place,
}

impl<'r, 'n> Run<'r, 'n> {
    pub(super) fn new(index: &'r Index, sight: &'r Sight<'n>) -> Self {
        let texts = vec![NONE; index.paths.len()];
        let (base, patch) = (&index.base, index.patch.as_deref());
        Self { base, patch, sight, texts, kind: None, outcomes: HashMap::new() }
    }

    /// Returns the groups that match, parents first.
    pub(super) fn matches(mut self, hierarchy: &Hierarchy) -> Result<Vec<GroupIndex>, Failure> {
        let mut queue = Queue { asked: &self.asked(), dependents: Vec::with_capacity(8) };
        let mut found = Vec::with_capacity(16);
        // The last list is of the groups that are asked always.
        let base = self.base;
        queue.add(base.dependents.get(u32::try_from(base.members.len()).unwrap_or(NONE)));
        // Matched groups, each below the one before; the first stands for all groups.
        let mut open = Vec::with_capacity(8);
        open.push(Matched { place: NONE, end: NONE });
        while let Some(place) = queue.next() {
            while open.len() > 1 && open.last().is_some_and(|it| it.end <= place) {
                open.pop();
            }
            let Some(member) = base.members.get(place as usize).copied() else { continue };
            // Where the nearest ancestor with a rule has not matched, this has not either.
            if open.last().is_none_or(|it| it.place != member.above) {
                continue;
            }
            let (program, start) = self.code(place, member.start);
            if self.holds(program, &mut (start as usize)).map_err(|cause| (place, cause))? {
                found.extend(hierarchy.at(place as usize));
                open.push(Matched { place, end: member.end });
                queue.add(base.dependents.get(place));
            }
        }
        Ok(found)
    }

    /// Returns the code of a group.
    fn code(&self, place: Place, start: u32) -> (&'r Program, u32) {
        let patched = self.patch.and_then(|patch| {
            let at = patch.starts.binary_search_by_key(&place, |(it, _)| *it).ok()?;
            Some((&patch.program, patch.starts.get(at)?.1))
        });
        patched.unwrap_or((&self.base.program, start))
    }

    /// Returns the groups of whose guards a text is there, in order.
    fn asked(&mut self) -> Vec<Place> {
        let mut asked: Vec<Place> = Vec::with_capacity(USUAL);
        let index = self.base;
        asked.extend(self.patch.iter().flat_map(|it| it.starts.iter().map(|(place, _)| *place)));
        for ((path, about), seen) in (0..).zip(&index.about).zip(&self.sight.0) {
            if about.is_compared
                && let Seen::Text(text) | Seen::Scalar(text) = seen
                && let Some(id) = index.texts.get(path, Side::Value, text)
            {
                if let Some(place) = self.texts.get_mut(path as usize) {
                    *place = id;
                }
                asked.extend(index.asked_by.get(id));
            }
            if about.is_list
                && let Seen::List(elements) = seen
            {
                for text in elements.iter().filter_map(text) {
                    let id = index.texts.get(path, Side::Element, text);
                    asked.extend(id.map(|id| index.asked_by.get(id)).unwrap_or_default());
                }
            }
            if let Some(finder) = &about.finder
                && let Seen::Text(text) = seen
            {
                finder.find(text, &mut asked);
            }
        }
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    fn holds(&mut self, program: &'r Program, at: &mut usize) -> Result<bool, EvaluationError> {
        let op = program.code.get(*at).copied().unwrap_or(Op::Never);
        *at += 1;
        match op {
            Op::And { end } => self.join(program, at, end as usize, false),
            Op::Or { end } => self.join(program, at, end as usize, true),
            Op::Not => self.holds(program, at).map(|holds| !holds),
            Op::Never => Ok(false),
            Op::Is { path, text } => Ok(self.text(path) == text),
            Op::OneOf { path, first, end } => {
                let text = self.text(path);
                let set = program.sets.get(first as usize..end as usize).unwrap_or_default();
                Ok(text != NONE && set.binary_search(&text).is_ok())
            }
            Op::Test(test) => self.test(program, test),
        }
    }

    /// Joins the parts up to the end, of which one that is `decisive` decides.
    fn join(
        &mut self,
        program: &'r Program,
        at: &mut usize,
        end: usize,
        decisive: bool,
    ) -> Result<bool, EvaluationError> {
        let mut joined = Ok(!decisive);
        while *at < end {
            match self.holds(program, at) {
                Ok(holds) if holds == decisive => {
                    *at = end;
                    return Ok(decisive);
                }
                Ok(_) => {}
                Err(error) if joined.is_ok() => joined = Err(error),
                Err(_) => {}
            }
        }
        joined
    }

    fn text(&self, path: PathId) -> TextId {
        self.texts.get(path as usize).copied().unwrap_or(NONE)
    }

    fn test(&mut self, program: &'r Program, number: u32) -> Result<bool, EvaluationError> {
        let Some(test) = program.tests.get(number as usize) else { return Ok(false) };
        if !test.is_shared {
            return self.compare(test);
        }
        if let Some(known) = self.outcomes.get(&number) {
            return known.clone();
        }
        let outcome = self.compare(test);
        self.outcomes.insert(number, outcome.clone());
        outcome
    }

    fn compare(&mut self, test: &Test) -> Result<bool, EvaluationError> {
        let seen = self.sight.get(test.path);
        if let (Comparison::Finds(pattern), Seen::Text(text)) = (&test.comparison, seen) {
            let kind = match self.kind {
                Some((path, kind)) if path == test.path => kind,
                _ => SubjectKind::of(text),
            };
            self.kind = Some((test.path, kind));
            return found(pattern, pattern.is_found_in_kind(text, kind));
        }
        holds(&test.comparison, seen.actual())
    }
}

/// The groups that are still to be asked.
struct Queue<'q> {
    /// Those of whose guards a text is there.
    asked: &'q [Place],
    /// Those to ask because a group has matched; no list is empty.
    dependents: Vec<&'q [Place]>,
}

impl<'q> Queue<'q> {
    fn add(&mut self, dependents: &'q [Place]) {
        if !dependents.is_empty() {
            self.dependents.push(dependents);
        }
    }

    /// Takes the group that stands first.
    fn next(&mut self) -> Option<Place> {
        let first = |it: &[Place]| it.first().copied().unwrap_or(NONE);
        let waiting = self.dependents.iter().map(|it| first(it)).min().unwrap_or(NONE);
        let place = waiting.min(first(self.asked));
        let without = |list: &'q [Place]| match list.split_first() {
            Some((first, rest)) if *first == place => rest,
            _ => list,
        };
        self.asked = without(self.asked);
        if waiting == place {
            self.dependents.retain_mut(|list| {
                *list = without(list);
                !list.is_empty()
            });
        }
        (place != NONE).then_some(place)
    }
}

impl Finder {
    /// Adds the groups to ask about a value.
    fn find(&self, value: &str, asked: &mut Vec<Place>) {
        let kind = SubjectKind::of(value);
        let unknown = self.literals.is_none();
        if unknown || kind == SubjectKind::Odd {
            asked.extend(&self.odd);
        }
        if unknown || kind != SubjectKind::AsciiLine {
            asked.extend(&self.not_ascii);
        }
        if unknown || value.len() > SHORT {
            asked.extend(&self.long);
        }
        for found in self.literals.iter().flat_map(|it| it.find_overlapping_iter(value)) {
            asked.extend(self.asked_by.get(found.pattern().as_u32()));
        }
    }
}
