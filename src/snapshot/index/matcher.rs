//! One look through the index.

use std::hint::black_box;

use hashbrown::{HashMap, HashSet};
use smallvec::{SmallVec, smallvec};

use super::super::paths::{PathId, PathValue, ResolvedPaths};
use super::compiled::{
    CompiledRules, CompiledTest, Index, LiteralSearch, Op, Patch, RuleProgram, Searched,
};
use super::numbers::{GroupNumber, NONE};
use super::text_table::{Probe, TextPlace};
use super::texts::TextSide;
use crate::classification::ClassificationError;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::java_regex::{OnePass, SHORT, SubjectKind};
use crate::model::{Comparison, Decimal, text};
use crate::rule::{EvaluationError, found, holds, stands};

/// Numbers that mostly need no room of their own.
type Few<T, const N: usize> = SmallVec<[T; N]>;

/// A longer text is read as a number once, not for each rule.
const LONG_NUMBER: usize = 64;

/// The group whose rule could not be evaluated, and why.
pub(super) type EvaluationFailure = (GroupNumber, EvaluationError);

/// Names the group of a failure.
pub(super) fn error(hierarchy: &Hierarchy, failure: EvaluationFailure) -> ClassificationError {
    let (place, cause) = failure;
    let index = hierarchy.at(place as usize).unwrap_or(hierarchy.root());
    ClassificationError::of(hierarchy.group(index), cause)
}

/// One look.
pub(super) struct Matcher<'r, 'n> {
    base: &'r CompiledRules,
    patch: Option<&'r Patch>,
    resolved: &'r ResolvedPaths<'n>,
    /// What is known of the text at each path.
    texts: Few<KnownText, 24>,
    /// The elements of lists that rules ask for.
    elements: HashSet<TextPlace>,
    /// The numbers that long texts are.
    long_numbers: HashMap<PathId, Option<Decimal>>,
    /// The outcomes of comparisons that several rules ask for.
    outcomes: HashMap<u32, Result<bool, EvaluationError>>,
}

/// What is known of the text at a path.
#[derive(Clone, Copy)]
struct KnownText {
    /// Its place among those that rules compare it with.
    place: TextPlace,
    /// Its kind, if it was searched.
    kind: Option<SubjectKind>,
}

/// A group that has matched.
struct Matched {
    place: GroupNumber,
    end: GroupNumber,
}

impl<'r, 'n> Matcher<'r, 'n> {
    pub(super) fn new(index: &'r Index, resolved: &'r ResolvedPaths<'n>) -> Self {
        let texts = smallvec![KnownText { place: NONE, kind: None }; index.paths.len()];
        let (base, patch) = (&index.base, index.patch.as_deref());
        Self {
            base,
            patch,
            resolved,
            texts,
            elements: HashSet::new(),
            long_numbers: HashMap::new(),
            outcomes: HashMap::new(),
        }
    }

    /// Returns the groups that match, parents first.
    pub(super) fn matches(
        mut self,
        hierarchy: &Hierarchy,
    ) -> Result<Vec<GroupIndex>, EvaluationFailure> {
        let asked = self.asked();
        self.read_ahead(&asked);
        let mut queue = PendingGroups { asked: &asked, dependents: SmallVec::new() };
        let mut found = Vec::with_capacity(16);
        let base = self.base;
        queue.add(base.dependents.get(base.always));
        // Matched groups, each below the one before; the first stands for all groups.
        let mut open: Few<Matched, 8> = SmallVec::new();
        open.push(Matched { place: NONE, end: NONE });
        while let Some(place) = queue.next() {
            while open.len() > 1 && open.last().is_some_and(|it| it.end <= place) {
                open.pop();
            }
            let Some(start) = base.starts.get(place as usize).copied() else { continue };
            let head = base.program.code.get(start as usize).copied();
            let Some(Op::Group { above, end, dependents }) = head else { continue };
            // Where the nearest ancestor with a rule has not matched, this has not either.
            if open.last().is_none_or(|it| it.place != above) {
                continue;
            }
            let (program, start) = self.code(place, start + 1);
            if self.holds(program, &mut (start as usize)).map_err(|cause| (place, cause))? {
                found.extend(hierarchy.at(place as usize));
                open.push(Matched { place, end });
                let dependents = base.dependents.get(dependents);
                self.read_ahead(dependents);
                queue.add(dependents);
            }
        }
        Ok(found)
    }

    /// Returns the code of a group.
    fn code(&self, place: GroupNumber, start: u32) -> (&'r RuleProgram, u32) {
        let patched = self.patch.and_then(|patch| {
            let at = patch.starts.binary_search_by_key(&place, |(it, _)| *it).ok()?;
            Some((&patch.program, patch.starts.get(at)?.1))
        });
        patched.unwrap_or((&self.base.program, start))
    }

    /// Returns the groups of whose guards a text is there, in order.
    fn asked(&mut self) -> Few<GroupNumber, 64> {
        let mut asked: Few<GroupNumber, 64> = SmallVec::new();
        let index = self.base;
        asked.extend(self.patch.iter().flat_map(|it| it.starts.iter().map(|(place, _)| *place)));
        let mut probes: Few<(PathId, Probe<'_>), 16> = SmallVec::new();
        for ((path, path_info), seen) in (0..).zip(&index.path_info).zip(&self.resolved.values) {
            if path_info.is_compared
                && let PathValue::Text(text) | PathValue::Scalar(text) = seen
            {
                probes.push((path, index.texts.probe(path, TextSide::Value, text)));
            }
            if path_info.is_list
                && let PathValue::List(elements) = seen
            {
                for text in elements.iter().filter_map(text) {
                    let probe = index.texts.probe(path, TextSide::Element, text);
                    // A node may have a million times the same.
                    let found = index.texts.get(&probe).filter(|it| self.elements.insert(it.place));
                    add(&mut asked, found.map(|it| it.asked_by).unwrap_or_default());
                }
            }
        }
        for (path, probe) in &probes {
            let Some(found) = index.texts.get(probe) else { continue };
            if let Some(known) = self.texts.get_mut(*path as usize) {
                known.place = found.place;
            }
            add(&mut asked, found.asked_by);
        }
        for literals in &index.searches {
            self.search(literals, &mut asked);
        }
        asked.sort_unstable();
        asked.dedup();
        asked
    }

    /// Adds the groups to ask about values that are searched; what several paths have is searched
    /// once.
    fn search(&mut self, literals: &LiteralSearch, asked: &mut Few<GroupNumber, 64>) {
        let mut waiting: Few<&Searched, 2> = literals.paths.iter().collect();
        while let Some(first) = waiting.pop() {
            let PathValue::Text(text) = self.resolved.get(first.path) else { continue };
            let kind = SubjectKind::of(text);
            let mut together: Few<&Searched, 2> = smallvec![first];
            waiting.retain(|it| {
                let is_same =
                    matches!(self.resolved.get(it.path), PathValue::Text(it) if it == text);
                if is_same {
                    together.push(it);
                }
                !is_same
            });
            for searched in &together {
                if let Some(known) = self.texts.get_mut(searched.path as usize) {
                    known.kind = Some(kind);
                }
                searched.add_unknown(text, kind, literals.literals.is_none(), asked);
            }
            if let Some(finder) = &literals.literals {
                let mut found = Distinct::default();
                finder.each(text, |it| found.push(it));
                for (number, searched) in found
                    .finish()
                    .iter()
                    .flat_map(|it| together.iter().map(move |searched| (it, searched)))
                {
                    add(asked, searched.asked_by.get(*number));
                }
            }
        }
    }

    /// Reads where the code of groups begins, for all at once: one after the other would have to wait for memory
    /// each time.
    fn read_ahead(&self, groups: &[GroupNumber]) {
        if groups.len() < 2 {
            // There is nothing to read at the same time.
            return;
        }
        let start = |it: &GroupNumber| self.base.starts.get(*it as usize).copied();
        let head = |it: u32| match self.base.program.code.get(it as usize) {
            Some(Op::Group { above, .. }) => *above,
            _ => NONE,
        };
        black_box(groups.iter().take(32).filter_map(start).map(head).fold(0, |all, it| all ^ it));
    }

    fn holds(&mut self, program: &'r RuleProgram, at: &mut usize) -> Result<bool, EvaluationError> {
        let op = program.code.get(*at).copied().unwrap_or(Op::Never);
        *at += 1;
        match op {
            Op::And { end } => self.join(program, at, end as usize, false),
            Op::Or { end } => self.join(program, at, end as usize, true),
            Op::Not => self.holds(program, at).map(|holds| !holds),
            Op::Never | Op::Group { .. } => Ok(false),
            Op::Is { path, text } => Ok(self.text(path) == text),
            Op::OneOf { path, first, end } => {
                let text = self.text(path);
                let set = program.sets.get(first as usize..end as usize).unwrap_or_default();
                Ok(text != NONE && set.binary_search(&text).is_ok())
            }
            Op::Has { element } => Ok(self.elements.contains(&element)),
            Op::Test(test) => self.test(program, test),
            Op::Finds { path, test, pattern } => match self.finds(program, path, pattern) {
                Some(is_found) => Ok(is_found),
                None => self.test(program, test),
            },
        }
    }

    /// Returns whether a pattern is found in a text of one line in ASCII; `None` if its code cannot say so.
    fn finds(&mut self, program: &RuleProgram, path: PathId, pattern: u32) -> Option<bool> {
        let PathValue::Text(text) = self.resolved.get(path) else { return None };
        if self.kind(path, text) != SubjectKind::AsciiLine {
            return None;
        }
        let (length, rest) = program.patterns.get(pattern as usize..)?.split_first_chunk()?;
        OnePass::is_found_by(rest.get(..usize::from(u16::from_le_bytes(*length)))?, text)
    }

    /// Returns the kind of the text at a path, which is found out once.
    fn kind(&mut self, path: PathId, text: &str) -> SubjectKind {
        match self.texts.get_mut(path as usize).map(|it| &mut it.kind) {
            Some(known) => *known.get_or_insert_with(|| SubjectKind::of(text)),
            None => SubjectKind::of(text),
        }
    }

    /// Joins the parts up to the end, of which one that is `decisive` decides.
    fn join(
        &mut self,
        program: &'r RuleProgram,
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

    fn text(&self, path: PathId) -> TextPlace {
        self.texts.get(path as usize).map_or(NONE, |it| it.place)
    }

    fn test(&mut self, program: &'r RuleProgram, number: u32) -> Result<bool, EvaluationError> {
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

    fn compare(&mut self, test: &CompiledTest) -> Result<bool, EvaluationError> {
        let seen = self.resolved.get(test.path);
        match (&test.comparison, seen) {
            (Comparison::Finds(pattern), PathValue::Text(text)) => {
                let kind = self.kind(test.path, text);
                found(pattern, pattern.is_found_in_kind(text, kind))
            }
            (comparison, PathValue::Text(text) | PathValue::Scalar(text))
                if text.len() > LONG_NUMBER
                    && let Some((order, wanted)) = comparison.number() =>
            {
                let number = self.long_numbers.entry(test.path);
                let number = number.or_insert_with(|| Decimal::parse(text));
                Ok(number.as_ref().is_some_and(|it| stands(it, order, wanted)))
            }
            (comparison, seen) => holds(comparison, seen.actual()),
        }
    }
}

/// Up to so many groups are copied one by one.
const FEW_GROUPS: usize = 4;

/// Adds groups. Mostly there are one or two, and to call what copies many would take longer than to copy them.
fn add(asked: &mut Few<GroupNumber, 64>, groups: &[GroupNumber]) {
    if groups.len() > FEW_GROUPS {
        asked.extend_from_slice(groups);
    } else {
        for group in groups {
            asked.push(*group);
        }
    }
}

/// Numbers that come in any order, some of them often: they take no more room than twice those that differ.
struct Distinct {
    numbers: Few<u32, 16>,
    limit: usize,
}

impl Default for Distinct {
    fn default() -> Self {
        Self { numbers: SmallVec::new(), limit: 64 }
    }
}

impl Distinct {
    fn push(&mut self, number: u32) {
        if self.numbers.len() >= self.limit {
            self.numbers.sort_unstable();
            self.numbers.dedup();
            self.limit = self.numbers.len().saturating_mul(2).max(64);
        }
        self.numbers.push(number);
    }

    fn finish(mut self) -> Few<u32, 16> {
        self.numbers.sort_unstable();
        self.numbers.dedup();
        self.numbers
    }
}

/// The groups that are still to be asked.
struct PendingGroups<'q> {
    /// Those of whose guards a text is there.
    asked: &'q [GroupNumber],
    /// Those to ask because a group has matched; no list is empty.
    dependents: Few<&'q [GroupNumber], 8>,
}

impl<'q> PendingGroups<'q> {
    fn add(&mut self, dependents: &'q [GroupNumber]) {
        if !dependents.is_empty() {
            self.dependents.push(dependents);
        }
    }

    /// Takes the group that stands first.
    fn next(&mut self) -> Option<GroupNumber> {
        let first = |it: &[GroupNumber]| it.first().copied().unwrap_or(NONE);
        let waiting = self.dependents.iter().map(|it| first(it)).min().unwrap_or(NONE);
        let place = waiting.min(first(self.asked));
        let without = |list: &'q [GroupNumber]| match list.split_first() {
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

impl Searched {
    /// Adds the groups of which the literals in a value say nothing.
    fn add_unknown(
        &self,
        value: &str,
        kind: SubjectKind,
        unknown: bool,
        asked: &mut Few<GroupNumber, 64>,
    ) {
        if unknown || kind == SubjectKind::Odd {
            asked.extend_from_slice(&self.odd);
        }
        if unknown || kind != SubjectKind::AsciiLine {
            asked.extend_from_slice(&self.not_ascii);
        }
        if unknown || value.len() > SHORT {
            asked.extend_from_slice(&self.long);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests take the time")]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::{Group, Node};
    use crate::rule::{self, evaluate};

    /// Returns groups below the root with these rules.
    fn hierarchy(rules: impl Iterator<Item = Value>) -> Hierarchy {
        let root = root_group().unwrap();
        let group = |(number, rule): (usize, Value)| Group {
            id: format!("00000000-0000-4000-8000-{number:012}").parse().unwrap(),
            parent: root.id,
            name: format!("g{number}").parse().unwrap(),
            rule: Some(rule::read(&rule).unwrap().into()),
            ..root.clone()
        };
        let groups: Vec<Group> = (1..).zip(rules).map(group).collect();
        Hierarchy::build([root.clone()].into_iter().chain(groups).collect()).unwrap()
    }

    /// Returns the shortest of a few times that matching takes, once what is found is compared with what rules say.
    fn time(rules: impl Iterator<Item = Value>, node: &Node) -> Duration {
        let hierarchy = hierarchy(rules);
        let index = Index::new(&hierarchy);
        let resolved = index.resolve(node);
        let matches = || index.matches(&hierarchy, &resolved).unwrap();
        let expected = hierarchy.indexes().zip(hierarchy.groups()).filter(|(_, group)| {
            group.rule.as_deref().is_some_and(|rule| evaluate(rule, node).unwrap())
        });
        let found: Vec<GroupIndex> =
            matches().into_iter().filter(|it| hierarchy.group(*it).rule.is_some()).collect();
        assert_eq!(found, expected.map(|(index, _)| index).collect::<Vec<_>>());
        let rounds = (0..5).map(|_| {
            let began = Instant::now();
            black_box(matches());
            began.elapsed()
        });
        rounds.min().unwrap()
    }

    #[test]
    fn long_lists_and_numbers_are_read_once_for_all_rules() {
        let tags: Vec<Value> = (0..5_000).map(|it| format!("tag{it}").into()).collect();
        let digits = "7".repeat(50_000);
        let fact = json!({"tags": tags, "digits": digits}).as_object().unwrap().clone();
        let node = Node { fact, ..Node::named("n") };
        let contains = |it: u32| json!(["<:", ["fact", "tags"], format!("tag{}", it * 10)]);
        let rules: [(&str, &dyn Fn(u32) -> Value); 3] = [
            ("contains", &contains),
            ("not", &|it| json!(["not", contains(it)])),
            ("number", &|it| json!([">", ["fact", "digits"], it.to_string()])),
        ];
        for (name, rule) in rules {
            let one = time((0..1).map(rule), &node);
            let many = time((0..500).map(rule), &node);
            assert!(many < one * 50, "{name}: {one:?} for a rule, {many:?} for 500");
        }
    }

    #[test]
    fn what_comes_often_takes_no_room() {
        let mut distinct = Distinct::default();
        (0..1_000_000).for_each(|it| distinct.push(it % 100));
        assert!(distinct.numbers.capacity() < 1_000, "{}", distinct.numbers.capacity());
        assert_eq!(distinct.finish().as_slice(), (0..100).collect::<Vec<u32>>());
    }
}
