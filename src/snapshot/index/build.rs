//! Building the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use rayon::prelude::*;

use super::super::lists::{NumberLists, PrefixedLists};
use super::super::paths::PathId;
use super::compile::RuleCompiler;
use super::compiled::{CompiledRules, GroupEntry, Index, LiteralSearch, Op, PathInfo, Searched};
use super::guard::{ALWAYS, Chooser, Guard};
use super::literals::LiteralFinder;
use super::numbers::{GroupNumber, NONE};
use super::text_table::TextTable;
use super::texts::{TextId, TextSide};
use crate::hierarchy::Hierarchy;
use crate::java_regex::KnownSubjects;
use crate::model::{Comparison, Condition};

/// Who is to be asked when.
#[derive(Default)]
struct Postings {
    /// A text, and a group that asks for it.
    texts: Vec<(TextId, GroupNumber)>,
    /// A group or the number of all groups, and a group to ask when it has matched.
    dependents: Vec<(GroupNumber, GroupNumber)>,
    /// A path where a group asks for literals.
    paths: Vec<(PathId, KnownSubjects, GroupNumber)>,
}

impl Index {
    /// Compiles the rules of all groups.
    pub fn new(hierarchy: &Hierarchy) -> Self {
        let mut compiler = RuleCompiler::default();
        let rules = hierarchy.groups().filter_map(|group| group.rule.as_deref());
        compiler.texts.reserve(rules.map(equalities).sum());
        let mut members: Vec<GroupEntry> = Vec::with_capacity(hierarchy.len());
        let number = |it: usize| u32::try_from(it).unwrap_or(NONE);
        for (index, group) in hierarchy.indexes().zip(hierarchy.groups()) {
            let above = hierarchy.parent(index).map_or(NONE, |parent| {
                let has_rule = hierarchy.group(parent).rule.is_some();
                let above =
                    || members.get(parent.number()).map_or(NONE, |it: &GroupEntry| it.above);
                if has_rule { number(parent.number()) } else { above() }
            });
            let end = number(hierarchy.end(index).number());
            // Which groups depend on it is known when all are compiled.
            compiler.code.push(Op::Group { above, end, dependents: NONE });
            members.push(GroupEntry { above, start: compiler.here() });
            if let Some(rule) = &group.rule {
                compiler.condition(rule);
            }
        }
        let postings = post(hierarchy, &members, &compiler);
        let asked_by = NumberLists::of(compiler.texts.len(), &postings.texts);
        let path_info = path_info(&compiler);
        let (searches, ((texts, places), lists)) = rayon::join(
            || searches(&compiler, &asked_by, &postings),
            || {
                let lists = NumberLists::of(members.len() + 1, &postings.dependents);
                (TextTable::new(&compiler.texts, &asked_by), lists)
            },
        );
        compiler.place_texts(&places);
        let (dependents, always) = lay_out(&lists, &members, &mut compiler.code);
        let (paths, program) = compiler.finish();
        let base = CompiledRules {
            path_info,
            searches,
            texts,
            starts: members.iter().map(|it| it.start - 1).collect(),
            dependents,
            always,
            program,
            added: 0,
        };
        Self { paths: Arc::new(paths), base: Arc::new(base), patch: None }
    }
}

/// Counts the comparisons of a rule that ask for equality: nearly all texts are theirs.
fn equalities(rule: &Condition) -> usize {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().map(equalities).sum(),
        Condition::Not(inner) => equalities(inner),
        Condition::Test(test) => usize::from(matches!(test.comparison, Comparison::Equals(_))),
    }
}

/// Decides for each group when it is asked.
fn post(hierarchy: &Hierarchy, members: &[GroupEntry], compiler: &RuleCompiler) -> Postings {
    let chooser = Chooser::new(compiler);
    let mut postings = Postings::default();
    let all = u32::try_from(members.len()).unwrap_or(NONE);
    // How rare it is that a group and all its ancestors are asked and match.
    let mut costs: Vec<u64> = Vec::with_capacity(members.len());
    let guards: Vec<Option<Guard>> = members
        .par_iter()
        .with_min_len(512)
        .map(|member| chooser.guard(&mut (member.start as usize)))
        .collect();
    for (((place, member), group), guard) in (0..).zip(members).zip(hierarchy.groups()).zip(guards)
    {
        let before = costs.get(member.above as usize).copied().unwrap_or(ALWAYS);
        if group.rule.is_none() {
            costs.push(before);
            continue;
        }
        let Some(Guard { cost, texts, paths }) = guard.filter(|it| it.cost < before) else {
            let above = if member.above == NONE { all } else { member.above };
            postings.dependents.push((above, place));
            costs.push(before);
            continue;
        };
        costs.push(cost);
        postings.texts.extend(texts.into_iter().map(|text| (text, place)));
        postings.paths.extend(paths.into_iter().map(|(path, known)| (path, known, place)));
    }
    postings
}

/// Notes with each group where its dependents are; returns the lists, and where those are that are always asked.
fn lay_out(lists: &NumberLists, members: &[GroupEntry], code: &mut [Op]) -> (PrefixedLists, u32) {
    let mut laid_out = PrefixedLists::default();
    for (place, member) in (0..).zip(members) {
        let head = (member.start as usize).checked_sub(1).and_then(|it| code.get_mut(it));
        if let Some(Op::Group { dependents, .. }) = head {
            *dependents = laid_out.push(lists.get(place));
        }
    }
    let always = laid_out.push(lists.get(u32::try_from(members.len()).unwrap_or(NONE)));
    (laid_out, always)
}

/// Returns what is asked of each path.
fn path_info(compiler: &RuleCompiler) -> Box<[PathInfo]> {
    let mut all = vec![PathInfo::default(); compiler.paths.len()];
    for (path, side, _) in compiler.texts.iter() {
        if let Some(path_info) = all.get_mut(*path as usize) {
            path_info.is_compared |= *side == TextSide::Value;
            path_info.is_list |= *side == TextSide::Element;
        }
    }
    all.into()
}

/// Makes what finds literals.
fn searches(
    compiler: &RuleCompiler,
    asked_by: &NumberLists,
    postings: &Postings,
) -> Box<[LiteralSearch]> {
    // A node's name is mostly that of its certificate.
    let certname = compiler.paths.certname();
    let searched_with = |path: PathId| match compiler.paths.name {
        Some(name) if Some(path) == certname => name,
        _ => path,
    };
    let mut searches: BTreeMap<PathId, Literals<'_>> = BTreeMap::new();
    for (id, (path, side, text)) in (0..).zip(compiler.texts.iter()) {
        let groups = asked_by.get(id);
        if *side == TextSide::Part && !groups.is_empty() {
            searches.entry(searched_with(*path)).or_default().add(*path, text, groups);
        }
    }
    for (path, known, group) in &postings.paths {
        let asking = searches.entry(searched_with(*path)).or_default().of(*path);
        match known {
            KnownSubjects::Lines => asking.odd.push(*group),
            KnownSubjects::AsciiLines => asking.not_ascii.push(*group),
            KnownSubjects::Short => asking.long.push(*group),
        }
    }
    let searches: Vec<LiteralSearch> =
        searches.into_par_iter().map(|(_, it)| it.search()).collect();
    searches.into()
}

/// The literals of paths that are searched together.
#[derive(Default)]
struct Literals<'c> {
    numbers: HashMap<&'c str, u32>,
    texts: Vec<&'c str>,
    paths: BTreeMap<PathId, Asking>,
}

/// Who asks for literals of a path.
#[derive(Default)]
struct Asking {
    asked_by: Vec<(u32, GroupNumber)>,
    odd: Vec<GroupNumber>,
    not_ascii: Vec<GroupNumber>,
    long: Vec<GroupNumber>,
}

impl<'c> Literals<'c> {
    fn of(&mut self, path: PathId) -> &mut Asking {
        self.paths.entry(path).or_default()
    }

    fn add(&mut self, path: PathId, text: &'c str, groups: &[GroupNumber]) {
        let number = *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            u32::try_from(self.texts.len() - 1).unwrap_or(NONE)
        });
        self.of(path).asked_by.extend(groups.iter().map(|group| (number, *group)));
    }

    fn search(self) -> LiteralSearch {
        let searched = |(path, asking): (PathId, Asking)| Searched {
            path,
            asked_by: NumberLists::of(self.texts.len(), &asking.asked_by),
            odd: asking.odd.into(),
            not_ascii: asking.not_ascii.into(),
            long: asking.long.into(),
        };
        LiteralSearch {
            literals: LiteralFinder::new(&self.texts).map(Arc::new),
            paths: self.paths.into_iter().map(searched).collect(),
        }
    }
}
