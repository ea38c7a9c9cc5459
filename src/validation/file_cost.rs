//! What one file costs of the budget of its commit, as it is kept.

use crate::model::{BudgetItem, Counts};

/// What a file can cost; nothing else is counted of one.
const ITEMS: [BudgetItem; 5] = [
    BudgetItem::DocumentBytes,
    BudgetItem::YamlNodes,
    BudgetItem::Groups,
    BudgetItem::RuleTerms,
    BudgetItem::Findings,
];

/// What a file costs, in less room than [`Counts`]: the size of a file bounds all of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileCost([u32; ITEMS.len()]);

impl FileCost {
    pub(super) fn of(counts: &Counts) -> Self {
        Self(ITEMS.map(|it| u32::try_from(counts.get(it)).unwrap_or(u32::MAX)))
    }

    pub(super) fn counts(self) -> Counts {
        let items = ITEMS.into_iter().zip(self.0);
        items.fold(Counts::default(), |counts, (item, it)| counts.with(item, u64::from(it)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::{FileKind, SourceContent, SourceFile, read_file};

    #[test]
    fn every_cost_of_a_file_is_kept() {
        let text = "name: A\nrule: [or, [\"~\", name, \"a+b\"], [\"=\", [fact, osfamily], x]]\n\
                    pinned: [a, b]\nclasses: {c: {d: [1, 2]}}\n---\nname: B\n";
        let content = SourceContent::Bytes(text.as_bytes().into());
        let file = SourceFile { path: "groups/a.yaml".into(), content };
        let cost = read_file(&file, FileKind::Groups).cost();
        let costs = BudgetItem::ALL.map(|it| cost.get(it) > 0);
        assert_eq!(costs, BudgetItem::ALL.map(|it| ITEMS.contains(&it)), "{cost:?}");
        assert_eq!(cost.get(BudgetItem::DocumentBytes), text.len() as u64);
    }
}
