//! Which changes cause a difference: those that take it back when they are taken back.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::comparison::StateComparison;
use super::differences::Left;
use super::mixture::{Mask, NodeCase};
use super::nodes::{Causes, ChangeRef, Difference};
use super::trouble::Trouble;
use super::version::Result;

/// How many mixtures of the two states are classified for one node.
const BUDGET: usize = 1_024;

/// Tries what taking changes back does to the differences of one node.
struct Reversal<'t, 'c, 'a> {
    comparison: &'c StateComparison<'a>,
    case: &'t NodeCase<'c, 'a>,
    base: &'t Result<'t>,
    trouble: Trouble,
    differences: &'t [Difference],
    /// Which of the differences a set of changes takes back.
    tried: HashMap<Mask, Box<[bool]>>,
}

/// The budget of a node is used up.
struct Exhausted;

/// Returns the causes of each difference.
pub(super) fn causes<'c, 'a>(
    comparison: &'c StateComparison<'a>,
    case: &NodeCase<'c, 'a>,
    base: &Result<'_>,
    differences: &[Difference],
) -> Vec<Causes> {
    let trouble = Trouble::of(base);
    let tried = HashMap::new();
    let mut trial = Reversal { comparison, case, base, trouble, differences, tried };
    let at_all = case.units().len() <= Mask::BITS as usize;
    // Most differences of a node have the same causes.
    let mut shared = HashSet::new();
    (0..differences.len())
        .map(|at| match at_all {
            true => trial.of(at).unwrap_or(Causes::Undecided),
            false => Causes::Undecided,
        })
        .map(|causes| shared.get_or_insert(causes).clone())
        .collect()
}

impl Reversal<'_, '_, '_> {
    fn of(&mut self, difference: usize) -> std::result::Result<Causes, Exhausted> {
        let mut alone = Vec::new();
        for (at, unit) in self.case.units().iter().enumerate() {
            if self.takes_back(1 << at, difference)? {
                alone.push(*unit);
            }
        }
        // A change that others build upon takes them along when it is taken back. It is the cause
        // only where none is that can be taken back by itself.
        let (apart, entailing): (Vec<ChangeRef>, Vec<ChangeRef>) =
            alone.into_iter().partition(|it| self.comparison.stands_alone(*it));
        if !apart.is_empty() {
            return Ok(Causes::Each(apart.into()));
        }
        if !entailing.is_empty() {
            return Ok(Causes::Each(entailing.into()));
        }
        Ok(match self.together(difference)? {
            Some(mask) => Causes::Together(self.members(mask)),
            None => Causes::Undecided,
        })
    }

    /// Returns how many changes there are.
    fn count(&self) -> u32 {
        u32::try_from(self.case.units().len()).unwrap_or(u32::MAX)
    }

    /// Returns the set of all changes: the node gets what the base gives it once they are taken back.
    fn all(&self) -> Mask {
        Mask::MAX.checked_shr(Mask::BITS.saturating_sub(self.count())).unwrap_or(0)
    }

    fn members(&self, mask: Mask) -> Arc<[ChangeRef]> {
        let members = self.case.units().iter().enumerate();
        members.filter(|(at, _)| mask & (1 << at) != 0).map(|(_, unit)| *unit).collect()
    }

    /// Returns a set of changes that takes a difference back while no part of it does.
    fn together(&mut self, difference: usize) -> std::result::Result<Option<Mask>, Exhausted> {
        let count = self.count();
        let mut mask = self.all();
        if mask == 0 {
            return Ok(None);
        }
        if !self.takes_back(mask, difference)? {
            return Ok(None);
        }
        for at in 0..count {
            let without = mask & !(1 << at);
            if without != mask && self.takes_back(without, difference)? {
                mask = without;
            }
        }
        // Changes can cancel each other out: leaving out two may do where leaving out one does not.
        let members: Vec<Mask> =
            (0..count).map(|at| 1 << at).filter(|bit| mask & bit != 0).collect();
        if members.len() >= Mask::BITS as usize || 1 << members.len() > BUDGET as Mask {
            return Err(Exhausted);
        }
        let mut parts: Vec<Mask> = (1..1_u32 << members.len())
            .map(|choice| {
                let chosen = members.iter().enumerate().filter(|(at, _)| choice & (1 << at) != 0);
                chosen.fold(0, |mask, (_, bit)| mask | bit)
            })
            .collect();
        parts.sort_by_key(|it| (it.count_ones(), *it));
        for part in parts {
            if self.takes_back(part, difference)? {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    fn takes_back(
        &mut self,
        mask: Mask,
        difference: usize,
    ) -> std::result::Result<bool, Exhausted> {
        if let Some(known) = self.tried.get(&mask) {
            return Ok(known.get(difference).copied().unwrap_or(false));
        }
        if self.tried.len() >= BUDGET || self.comparison.is_stopped() {
            return Err(Exhausted);
        }
        let identity = |id| self.comparison.identity(id);
        let name = |id| self.case.name(id, mask);
        let find = |left: Left<'_>| -> Box<[bool]> {
            let is_back = |it| left.is_back(it, &self.trouble, identity, name);
            self.differences.iter().map(is_back).collect()
        };
        let all = if mask == self.all() {
            find(Left::nothing(self.base, &self.trouble, identity))
        } else {
            let mixture = self.case.mixture(mask);
            let result = mixture.classify(self.case.node());
            find(Left::of(self.base, &result))
        };
        let back = all.get(difference).copied().unwrap_or(false);
        self.tried.insert(mask, all);
        Ok(back)
    }
}
