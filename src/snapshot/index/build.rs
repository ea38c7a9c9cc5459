//! Building the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use rayon::prelude::*;

use super::super::lists::Lists;
use super::super::paths::PathId;
use super::compile::Compiler;
use super::guard::{ALWAYS, Chooser, Guard};
use super::texts::{Side, TextId};
use super::{About, Base, Finder, Index, Member, NONE, Place, Program};
use crate::hierarchy::Hierarchy;
use crate::rule::regex::KnownSubjects;

/// Who is to be asked when.
#[derive(Default)]
struct Postings {
    /// A text, and a group that asks for it.
    texts: Vec<(TextId, Place)>,
    /// A group or the number of all groups, and a group to ask when it has matched.
    dependents: Vec<(Place, Place)>,
    /// A path where a group asks for literals.
    paths: Vec<(PathId, KnownSubjects, Place)>,
}

impl Index {
    /// Compiles the rules of all groups.
    pub fn new(hierarchy: &Hierarchy) -> Self {
        let mut compiler = Compiler::default();
        let mut members: Vec<Member> = Vec::with_capacity(hierarchy.len());
        let number = |it: usize| u32::try_from(it).unwrap_or(NONE);
        for (index, group) in hierarchy.indexes().zip(hierarchy.groups()) {
            let above = hierarchy.parent(index).map_or(NONE, |parent| {
                let has_rule = hierarchy.group(parent).rule.is_some();
                let above = || members.get(parent.number()).map_or(NONE, |it: &Member| it.above);
                if has_rule { number(parent.number()) } else { above() }
            });
            let end = number(hierarchy.end(index).number());
            members.push(Member { above, end, start: compiler.here() });
            if let Some(rule) = &group.rule {
                compiler.condition(rule);
            }
        }
        let postings = post(hierarchy, &members, &compiler);
        let (about, asked_by) = look_ups(&compiler, &postings);
        let Compiler { paths, mut texts, code, sets, tests, .. } = compiler;
        texts.shrink();
        let base = Base {
            about,
            texts,
            asked_by,
            dependents: Lists::of(members.len() + 1, &postings.dependents),
            members: members.into(),
            program: Program { code: code.into(), sets: sets.into(), tests: tests.into() },
        };
        Self { paths: Arc::new(paths), base: Arc::new(base), patch: None }
    }
}

/// Decides for each group when it is asked.
fn post(hierarchy: &Hierarchy, members: &[Member], compiler: &Compiler) -> Postings {
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

/// Makes what finds the groups that ask for a text.
fn look_ups(compiler: &Compiler, postings: &Postings) -> (Box<[About]>, Lists) {
    let mut about = vec![About::default(); compiler.paths.len()];
    for (path, side, _) in compiler.texts.iter() {
        if let Some(about) = about.get_mut(*path as usize) {
            about.is_compared |= *side == Side::Value;
            about.is_list |= *side == Side::Element;
        }
    }
    // Literals are found by the number that they have at their path.
    let asked_by = Lists::of(compiler.texts.len(), &postings.texts);
    let mut literals: BTreeMap<PathId, Literals<'_>> = BTreeMap::new();
    for (id, (path, side, text)) in (0..).zip(compiler.texts.iter()) {
        let groups = asked_by.get(id);
        if *side == Side::Part && !groups.is_empty() {
            let literals = literals.entry(*path).or_default();
            let number = u32::try_from(literals.texts.len()).unwrap_or(NONE);
            literals.texts.push(text);
            literals.asked_by.extend(groups.iter().map(|group| (number, *group)));
        }
    }
    for (path, known, group) in &postings.paths {
        let literals = literals.entry(*path).or_default();
        match known {
            KnownSubjects::Lines => literals.odd.push(*group),
            KnownSubjects::AsciiLines => literals.not_ascii.push(*group),
            KnownSubjects::Short => literals.long.push(*group),
        }
    }
    let finders: Vec<(PathId, Finder)> =
        literals.into_par_iter().map(|(path, literals)| (path, literals.finder())).collect();
    for (path, finder) in finders {
        if let Some(about) = about.get_mut(path as usize) {
            about.finder = Some(Box::new(finder));
        }
    }
    (about.into(), asked_by)
}

/// The literals of one path.
#[derive(Default)]
struct Literals<'c> {
    texts: Vec<&'c str>,
    asked_by: Vec<(u32, Place)>,
    odd: Vec<Place>,
    not_ascii: Vec<Place>,
    long: Vec<Place>,
}

/// Up to so many bytes of literals a table is made that tells the next state at once; it has some
/// hundred bytes for each.
const TABLE: usize = 32 << 10;

impl Literals<'_> {
    fn finder(self) -> Finder {
        let length: usize = self.texts.iter().map(|it| it.len()).sum();
        let kind = (length <= TABLE).then_some(AhoCorasickKind::DFA);
        Finder {
            literals: AhoCorasick::builder().kind(kind).build(&self.texts).ok(),
            asked_by: Lists::of(self.texts.len(), &self.asked_by),
            odd: self.odd.into(),
            not_ascii: self.not_ascii.into(),
            long: self.long.into(),
        }
    }
}
