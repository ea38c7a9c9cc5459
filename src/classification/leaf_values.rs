//! What the leaves of a node set and inherit, each value once for all leaves that have it.
//!
//! Leaves stand in preorder, so those below one group stand in a row. A name has at most two rows for each group that
//! sets it, however many leaves inherit it: leaves times values would be without limit in a commit that is within its own.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, Key, Table, VariableName, memory_of};

/// A value that leaves in a row have of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafRow<'e> {
    /// The value; never null.
    pub value: &'e Value,
    /// The nearest group above each of the leaves that sets it.
    pub defined_by: GroupIndex,
    /// The places of the leaves among all leaves of the node.
    pub leaves: Range<usize>,
}

/// The rows of one name, in the order of their leaves. Leaves that do not have it are in none.
pub type LeafRows<'e> = Vec<LeafRow<'e>>;

/// A class of leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeafClass<'e> {
    /// The groups that name it.
    pub sources: Vec<GroupIndex>,
    /// Its parameters; one that no leaf has left has no rows.
    pub parameters: BTreeMap<&'e Key, LeafRows<'e>>,
}

/// What leaves set and inherit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeafValues<'e> {
    /// Classes and their parameters.
    pub classes: BTreeMap<&'e ClassName, LeafClass<'e>>,
    /// Variables; one that no leaf has left has no rows.
    pub variables: BTreeMap<&'e VariableName, LeafRows<'e>>,
    /// Config data, alike.
    pub config_data: BTreeMap<&'e ClassName, LeafClass<'e>>,
}

impl<'e> LeafValues<'e> {
    /// Reads what some leaves, in the order of their places, set and inherit.
    pub fn of(hierarchy: &'e Hierarchy, leaves: &[GroupIndex]) -> Self {
        let mut values = Self::default();
        // Those above others come first, so that the rows of one name lie in each other.
        let mut groups: Vec<GroupIndex> = hierarchy.lineages(leaves).collect();
        groups.sort_unstable();
        for index in groups {
            let group = hierarchy.group(index);
            let below = leaves_below(hierarchy, leaves, index);
            let row = |value| LeafRow { value, defined_by: index, leaves: below.clone() };
            for (found, own) in [
                (&mut values.classes, &group.classes),
                (&mut values.config_data, &group.config_data),
            ] {
                for (class, parameters) in own.as_ref() {
                    let entry = found.entry(class).or_default();
                    entry.sources.push(index);
                    add(&mut entry.parameters, parameters, row);
                }
            }
            add(&mut values.variables, &group.variables, row);
        }
        let classes = values.classes.values_mut().chain(values.config_data.values_mut());
        let parameters = classes.flat_map(|it| it.parameters.values_mut());
        for rows in parameters.chain(values.variables.values_mut()) {
            side_by_side(rows);
        }
        values
    }
}

/// About how many bytes of memory an entry of a map takes beside its name and value.
const ENTRY: usize = 120;

impl LeafValues<'_> {
    /// Returns about how many bytes of memory it takes to hold the values of each leaf at once.
    pub fn memory_of_all(&self, hierarchy: &Hierarchy, leaves: &[GroupIndex]) -> usize {
        let classes = || self.classes.iter().chain(&self.config_data);
        let of_names = classes().map(|(class, it)| {
            // Of groups that lie in each other the outermost comes first.
            let mut known = 0;
            let new = it.sources.iter().map(|group| {
                let below = leaves_below(hierarchy, leaves, *group);
                let new = below.end.saturating_sub(below.start.max(known));
                known = known.max(below.end);
                new
            });
            new.sum::<usize>().saturating_mul(ENTRY + class.as_str().len())
        });
        let parameters = classes().flat_map(|(_, it)| &it.parameters);
        let of_parameters = parameters.map(|(key, rows)| memory_of_rows(key.as_str(), rows));
        let variables = self.variables.iter();
        let of_variables = variables.map(|(key, rows)| memory_of_rows(key.as_str(), rows));
        of_names.chain(of_parameters).chain(of_variables).fold(0, usize::saturating_add)
    }
}

fn memory_of_rows(name: &str, rows: &[LeafRow<'_>]) -> usize {
    // A large value may be in as many rows as there are leaves.
    let mut known: BTreeMap<GroupIndex, usize> = BTreeMap::new();
    let of_row = |row: &LeafRow<'_>| {
        let value = known.entry(row.defined_by).or_insert_with(|| memory_of(row.value));
        row.leaves.len().saturating_mul(ENTRY + name.len() + *value)
    };
    rows.iter().map(of_row).fold(0, usize::saturating_add)
}

/// Returns the places of the leaves that inherit from a group, or are it.
pub fn leaves_below(
    hierarchy: &Hierarchy,
    leaves: &[GroupIndex],
    group: GroupIndex,
) -> Range<usize> {
    let end = hierarchy.end(group);
    leaves.partition_point(|leaf| *leaf < group)..leaves.partition_point(|leaf| *leaf < end)
}

/// Returns whether each of some leaves has a value in rows.
pub fn all_have(rows: &[LeafRow<'_>], leaves: &Range<usize>) -> bool {
    let first = rows.partition_point(|row| row.leaves.end <= leaves.start);
    let mut next = leaves.start;
    for row in rows.iter().skip(first).take_while(|row| row.leaves.start < leaves.end) {
        if row.leaves.start > next {
            return false;
        }
        next = row.leaves.end;
    }
    next >= leaves.end
}

fn add<'e, K: Ord>(
    values: &mut BTreeMap<&'e K, LeafRows<'e>>,
    own: &'e Table<K, Value>,
    row: impl Fn(&'e Value) -> LeafRow<'e>,
) {
    for (key, value) in own {
        values.entry(key).or_default().push(row(value));
    }
}

/// Replaces rows that lie in each other, the outer before the inner, by those that are seen: of a leaf the innermost
/// counts, and where that is null the leaf has none.
fn side_by_side<'e>(rows: &mut LeafRows<'e>) {
    if rows.len() > 1 {
        let mut seen = Vec::with_capacity(rows.len());
        // The rows that go on, the innermost last, and the first leaf of which it is not known which of them counts.
        let mut open: LeafRows<'e> = Vec::new();
        let mut next = 0;
        let mut show = |row: &LeafRow<'e>, until: usize, next: &mut usize| {
            if *next < until {
                seen.push(LeafRow { leaves: *next..until, ..row.clone() });
            }
            *next = until.max(*next);
        };
        for row in rows.drain(..) {
            while let Some(ended) = open.pop_if(|it| it.leaves.end <= row.leaves.start) {
                show(&ended, ended.leaves.end, &mut next);
            }
            if let Some(outer) = open.last() {
                show(outer, row.leaves.start, &mut next);
            }
            next = row.leaves.start;
            open.push(row);
        }
        while let Some(row) = open.pop() {
            show(&row, row.leaves.end, &mut next);
        }
        *rows = seen;
    }
    rows.retain(|row| !row.value.is_null());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::{Group, GroupId};

    fn group(number: usize, parent: usize, sets: &Value) -> Group {
        let id = |number: usize| match number {
            0 => GroupId::ROOT,
            number => format!("00000000-0000-4000-8000-{number:012}").parse().unwrap(),
        };
        let classes = |key: &str| serde_json::from_value(sets[key].clone()).unwrap_or_default();
        Group {
            id: id(number),
            parent: id(parent),
            name: format!("g{number}").parse().unwrap(),
            classes: classes("classes"),
            config_data: classes("data"),
            variables: serde_json::from_value(sets["vars"].clone()).unwrap_or_default(),
            ..root_group().unwrap()
        }
    }

    /// Returns what the leaf at a place has, of the groups that define it.
    fn at<'e, K: Ord>(
        values: &BTreeMap<&'e K, LeafRows<'e>>,
        place: usize,
    ) -> BTreeMap<&'e K, (&'e Value, GroupIndex)> {
        let row = |rows: &LeafRows<'e>| -> Option<(&'e Value, GroupIndex)> {
            let all: Vec<_> = rows.iter().filter(|it| it.leaves.contains(&place)).collect();
            assert!(all.len() < 2, "rows lie side by side");
            Some((all.first()?.value, all.first()?.defined_by))
        };
        values.iter().filter_map(|(key, rows)| Some((*key, row(rows)?))).collect()
    }

    #[test]
    fn rows_say_of_each_leaf_what_it_inherits() {
        let mut chance = fastrand::Rng::with_seed(5);
        for _ in 0..1000 {
            let count = chance.usize(1..14);
            let groups = (0..count).map(|number| {
                let mut values = || -> Value {
                    let chosen =
                        [None, None, None, Some(json!(null)), Some(json!(1)), Some(json!(2))];
                    let all = ["p", "q"].map(|it| (it, chance.choice(&chosen).unwrap().clone()));
                    all.into_iter().filter_map(|(key, it)| Some((key.to_owned(), it?))).collect()
                };
                let (classes, data) = (json!({"c": values()}), json!({"c": values()}));
                let mut sets = json!({"vars": values(), "data": data});
                if chance.bool() {
                    sets["classes"] = classes;
                }
                group(number, chance.usize(..number.max(1)), &sets)
            });
            let hierarchy = Hierarchy::build(groups.collect()).unwrap();
            let mut matching: Vec<GroupIndex> = Vec::new();
            for index in hierarchy.indexes() {
                let is_below = hierarchy.parent(index).is_none_or(|it| matching.contains(&it));
                if is_below && (chance.u8(..4) > 0) {
                    matching.push(index);
                }
            }
            let leaves = hierarchy.leaves(&matching);
            let values = LeafValues::of(&hierarchy, &leaves);
            for (place, leaf) in leaves.iter().enumerate() {
                let inherited = hierarchy.inherited(*leaf);
                let variables = inherited.variables.iter();
                let variables = variables.map(|(key, it)| (*key, (it.value, it.source)));
                assert_eq!(at(&values.variables, place), variables.collect());
                for (found, expected) in [
                    (&values.classes, &inherited.classes),
                    (&values.config_data, &inherited.config_data),
                ] {
                    let found = found.values().next().map(|it| at(&it.parameters, place));
                    let found = found.unwrap_or_default();
                    let expected = expected.values().next().into_iter();
                    let expected = expected.flat_map(|it| &it.parameters);
                    assert_eq!(
                        found,
                        expected.map(|(key, it)| (*key, (it.value, it.source))).collect()
                    );
                }
                for (name, rows) in &values.variables {
                    let is_inherited = inherited.variables.contains_key(name);
                    assert_eq!(all_have(rows, &(place..place + 1)), is_inherited);
                }
            }
            let classes = leaves.iter().flat_map(|it| hierarchy.lineage(*it));
            let mut naming: Vec<GroupIndex> =
                classes.filter(|it| !hierarchy.group(*it).classes.is_empty()).collect();
            naming.sort_unstable();
            naming.dedup();
            let sources = values.classes.into_values().next().map(|it| it.sources);
            assert_eq!(sources.unwrap_or_default(), naming);
        }
    }

    /// Each leaf had all that it inherits: 4 million values, of 40 bytes each, for one node.
    #[test]
    fn values_that_many_leaves_inherit_are_there_once() {
        let variables: Value = (0..2000).map(|it| (format!("v{it}"), json!(1))).collect();
        let root = group(0, 0, &json!({"vars": variables}));
        let leaf = |number| group(number, 0, &json!({"vars": {"v7": 2}}));
        let hierarchy =
            Hierarchy::build(std::iter::once(root).chain((1..=2000).map(leaf)).collect()).unwrap();
        let leaves: Vec<GroupIndex> = hierarchy.indexes().skip(1).collect();
        let values = LeafValues::of(&hierarchy, &leaves);
        let rows: usize = values.variables.values().map(Vec::len).sum();
        assert_eq!(rows, 1999 + 2000);
        let each =
            2000 * ENTRY + (10 * 2 + 90 * 3 + 900 * 4 + 1000 * 5) + 2000 * memory_of(&json!(1));
        assert_eq!(values.memory_of_all(&hierarchy, &leaves), 2000 * each);
    }
}
