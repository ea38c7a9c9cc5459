//! What groups set, ready to be written.
//!
//! An entry is one class with its parameters, one variable, or the config data of one class, as
//! its text in the answer. A group has the entries of what it sets itself, with what it inherits in them; the answer
//! for a node is the union of what its leaves and their ancestors set, where of one name the nearest group's entry
//! counts. Where two leaves have two entries of one name that are not the same, it is for the plain path to say
//! whether they differ.
//!
//! The entries of a group are written when they are first asked for, and shared by the snapshots of commits that were
//! made of each other and do not change them. What comes out for several nodes that the same groups match is
//! written once, as long as the snapshot is live ([`ResponseCache`]).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use super::rendered_group::{NoRoom, RenderedEntry, RenderedGroup, RenderedKind};
use super::rendered_room::RenderedRoom;
use super::rendered_tail::RenderedTail;
use super::response_cache::ResponseCache;
use crate::classification::{FactSource, Version};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy, Renumbering};
use crate::model::{Group, Interpolation, SharedList};

/// Room for the entries of most answers.
const MOST_ENTRIES: usize = 32;

/// How many bytes of inherited values the entries of all groups have at the most. Where there is no room for those of a
/// group, its nodes are answered by the plain path.
const INHERITED: usize = 32 << 20;

/// The entries of all groups.
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    of_groups: SharedList<OnceLock<Arc<RenderedGroup>>>,
    interpolation: Interpolation,
    room: RenderedRoom,
    /// How many bytes the inherited values of groups take for which there was no room: they are not written again for
    /// each request until there is.
    without_room: Arc<Mutex<BTreeMap<GroupIndex, usize>>>,
}

impl Fragments {
    pub(super) fn new(hierarchy: &Hierarchy, interpolation: Interpolation) -> Self {
        let of_groups = hierarchy.indexes().map(|_| OnceLock::new()).collect();
        let room = RenderedRoom::new(INHERITED);
        Self { of_groups, interpolation, room, without_room: Arc::default() }
    }

    /// Returns the entries of another hierarchy. A group keeps its own if it sets the same as before, and so
    /// do the groups that it inherits from.
    pub(super) fn amended(
        &self,
        before: &Hierarchy,
        after: &Hierarchy,
        renumbering: &Renumbering,
    ) -> Self {
        if let Some(changed) = before.changed_in(after) {
            let sets_another =
                |it: &&GroupIndex| !sets_the_same(before.group(**it), after.group(**it));
            return self.without(after, changed.iter().filter(sets_another));
        }
        let mut of_groups: Vec<OnceLock<Arc<RenderedGroup>>> = Vec::with_capacity(after.len());
        let mut stay: Vec<bool> = Vec::with_capacity(after.len());
        for index in after.indexes() {
            let stood = renumbering.before(index).filter(|stood| {
                let above = after.parent(index);
                let is_below_the_same = before.parent(*stood)
                    == above.and_then(|it| renumbering.before(it))
                    && above.is_none_or(|it| stay.get(it.number()).copied().unwrap_or_default());
                is_below_the_same && sets_the_same(before.group(*stood), after.group(index))
            });
            let entries = stood.and_then(|it| self.of_groups.get(it.number()));
            stay.push(entries.is_some());
            of_groups.push(entries.cloned().unwrap_or_default());
        }
        Self {
            of_groups: of_groups.into_iter().collect(),
            interpolation: self.interpolation,
            room: self.room.clone(),
            without_room: Arc::default(),
        }
    }

    /// Returns the entries without those of some groups, which are in order, and what stands below them.
    fn without<'g>(
        &self,
        hierarchy: &Hierarchy,
        groups: impl Iterator<Item = &'g GroupIndex>,
    ) -> Self {
        let mut end = hierarchy.root();
        let is_outermost = |it: &&GroupIndex| {
            let stands_behind = **it >= end;
            end = end.max(hierarchy.end(**it));
            stands_behind
        };
        let below = groups.filter(is_outermost).flat_map(|it| hierarchy.subtree(*it));
        let of_groups = self.of_groups.with(below.map(|it| (it.number(), OnceLock::new())));
        Self {
            of_groups,
            interpolation: self.interpolation,
            room: self.room.clone(),
            without_room: Arc::default(),
        }
    }

    /// Writes the classified document of a node without an individual classification; `None` if
    /// its leaves differ, or may do so, and if facts cannot be put into its values.
    pub(super) fn classified(
        &self,
        cache: Option<&ResponseCache>,
        estate: &Estate,
        name: &str,
        facts: &dyn FactSource,
        groups: &[GroupIndex],
        version: Version,
    ) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(2048);
        text.extend_from_slice(b"{\"name\":");
        write(&mut text, name)?;
        if let Some(tail) = cache.and_then(|it| it.get(groups, version)) {
            tail.write(&mut text, facts)?;
            return Some(text);
        }
        let tail = Arc::new(self.tail(&estate.hierarchy, groups, version)?);
        tail.write(&mut text, facts)?;
        if let Some(cache) = cache {
            cache.insert(groups, version, &tail);
        }
        Some(text)
    }

    /// Returns what stands behind the name.
    fn tail(
        &self,
        hierarchy: &Hierarchy,
        groups: &[GroupIndex],
        version: Version,
    ) -> Option<RenderedTail> {
        let leaves = hierarchy.leaves(groups);
        let environment = environment(hierarchy, &leaves)?;
        let entries = self.union(hierarchy, &leaves)?;
        let mut tail = RenderedTail { text: Vec::with_capacity(2048), holes: Vec::new() };
        let text = &mut tail.text;
        text.extend_from_slice(b",\"groups\":[");
        write_groups(text, hierarchy, groups, version)?;
        text.extend_from_slice(b"],\"environment\":");
        write(text, environment)?;
        let of_kind =
            |kind: RenderedKind| entries.iter().copied().filter(move |it| it.kind == kind);
        text.extend_from_slice(b",\"classes\":{");
        write_all(&mut tail, of_kind(RenderedKind::Class));
        tail.text.extend_from_slice(b"},\"parameters\":{");
        write_all(&mut tail, of_kind(RenderedKind::Variable));
        tail.text.push(b'}');
        let mut config_data = of_kind(RenderedKind::ConfigData).peekable();
        if config_data.peek().is_some() {
            tail.text.extend_from_slice(b",\"config_data\":{");
            write_all(&mut tail, config_data);
            tail.text.push(b'}');
        }
        tail.text.push(b'}');
        Some(tail)
    }

    /// Returns the entries of what a group sets itself; `None` if it is none of ours, or if there is no room for what it
    /// inherits.
    fn of_group(&self, hierarchy: &Hierarchy, group: GroupIndex) -> Option<&RenderedGroup> {
        let cell = self.of_groups.get(group.number())?;
        if let Some(ready) = cell.get() {
            return Some(ready);
        }
        let takes = self.without_room().get(&group).copied();
        if takes.is_some_and(|bytes| !self.room.has(bytes)) {
            return None;
        }
        match RenderedGroup::of(hierarchy, group, self.interpolation, &self.room) {
            Ok(written) => Some(cell.get_or_init(|| Arc::new(written))),
            Err(NoRoom { bytes }) => {
                self.without_room().insert(group, bytes);
                None
            }
        }
    }

    fn without_room(&self) -> MutexGuard<'_, BTreeMap<GroupIndex, usize>> {
        self.without_room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entries of all leaves in order; `None` if one name has two that differ.
    fn union<'f>(
        &'f self,
        hierarchy: &'f Hierarchy,
        leaves: &[GroupIndex],
    ) -> Option<Vec<RenderedEntry<'f>>> {
        let mut all: Vec<RenderedEntry<'_>> = Vec::with_capacity(MOST_ENTRIES);
        for group in hierarchy.lineages(leaves) {
            self.of_group(hierarchy, group)?.add_to(hierarchy, group, &mut all)?;
        }
        all.sort_unstable_by_key(|it| (it.key(), it.group));
        let mut union = Vec::with_capacity(all.len());
        for of_name in all.chunk_by(|a, b| a.key() == b.key()) {
            union.extend(visible(hierarchy, leaves, of_name).ok()?);
        }
        Some(union)
    }
}

/// Two leaves have entries of one name that are not the same.
struct LeavesDiffer;

/// Returns the entry of one name that leaves set or inherit, if something is left of it in any. The entries are in the
/// order of their groups, and so are the leaves.
fn visible<'f>(
    hierarchy: &Hierarchy,
    leaves: &[GroupIndex],
    of_name: &[RenderedEntry<'f>],
) -> Result<Option<RenderedEntry<'f>>, LeavesDiffer> {
    if let [only] = of_name {
        return Ok(Some(*only).filter(|it| !it.text.is_empty()));
    }
    let mut found: Option<RenderedEntry<'f>> = None;
    let mut see = |entry: RenderedEntry<'f>| {
        if !entry.text.is_empty() {
            let first = *found.get_or_insert(entry);
            return first.text == entry.text;
        }
        true
    };
    let leaves_before = |place: GroupIndex| leaves.partition_point(|leaf| *leaf < place);
    // Groups that set the name, each below the one before, and how many of the leaves there inherit it of them.
    let mut open: Vec<(RenderedEntry<'f>, usize)> = Vec::new();
    for entry in of_name {
        let ended = |it: &RenderedEntry<'_>| hierarchy.end(it.group) <= entry.group;
        while let Some((above, left)) = open.pop_if(|(above, _)| ended(above)) {
            if left > 0 && !see(above) {
                return Err(LeavesDiffer);
            }
        }
        let below = leaves_before(hierarchy.end(entry.group)) - leaves_before(entry.group);
        if let Some((_, left)) = open.last_mut() {
            *left -= below;
        }
        open.push((*entry, below));
    }
    let are_alike = open.into_iter().all(|(entry, left)| left == 0 || see(entry));
    if are_alike { Ok(found) } else { Err(LeavesDiffer) }
}

/// Returns whether two groups set the same values, written in the same order.
fn sets_the_same(one: &Group, other: &Group) -> bool {
    let values =
        |it: &Group| serde_json::to_vec(&(&*it.classes, &*it.variables, &*it.config_data)).ok();
    std::ptr::eq(one, other) || values(one).is_some_and(|it| Some(it) == values(other))
}

fn write_all<'e>(tail: &mut RenderedTail, entries: impl Iterator<Item = RenderedEntry<'e>>) {
    for (at, entry) in entries.enumerate() {
        if at > 0 {
            tail.text.push(b',');
        }
        tail.push(entry.text, entry.holes);
    }
}

fn write<T: Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) -> Option<()> {
    serde_json::to_writer(text, value).ok()
}

/// Returns the environment that the leaves agree on, of those that trump if any does.
fn environment<'h>(hierarchy: &'h Hierarchy, leaves: &[GroupIndex]) -> Option<&'h str> {
    let groups = || leaves.iter().map(|leaf| hierarchy.group(*leaf));
    let trumped = groups().any(|group| group.environment_trumps);
    let mut decisive = groups().filter(|group| group.environment_trumps == trumped);
    let first = decisive.next()?;
    decisive.all(|it| it.environment == first.environment).then(|| first.environment.as_str())
}

fn write_groups(
    text: &mut Vec<u8>,
    hierarchy: &Hierarchy,
    groups: &[GroupIndex],
    version: Version,
) -> Option<()> {
    let mut groups: Vec<&Group> = groups.iter().map(|it| hierarchy.group(*it)).collect();
    if version == Version::V2 {
        groups.sort_unstable_by_key(|group| (&group.name, group.id));
    }
    for (at, group) in groups.into_iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        match version {
            Version::V1 => write(text, &group.id)?,
            Version::V2 => {
                text.extend_from_slice(b"{\"id\":");
                write(text, &group.id)?;
                text.extend_from_slice(b",\"name\":");
                write(text, group.name.as_str())?;
                text.push(b'}');
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::GroupId;
    use crate::table::each_row;

    fn hierarchy(groups: &[(u8, u8, Value)]) -> Hierarchy {
        let id = |number: u8| match number {
            0 => GroupId::ROOT,
            number => format!("00000000-0000-4000-8000-0000000000{number:02}").parse().unwrap(),
        };
        let group = |(number, parent, sets): &(u8, u8, Value)| Group {
            id: id(*number),
            parent: id(*parent),
            name: format!("g{number}").parse().unwrap(),
            classes: Arc::new(serde_json::from_value(sets["classes"].clone()).unwrap_or_default()),
            variables: Arc::new(serde_json::from_value(sets["vars"].clone()).unwrap_or_default()),
            config_data: Arc::new(serde_json::from_value(sets["data"].clone()).unwrap_or_default()),
            ..root_group().unwrap()
        };
        Hierarchy::build(groups.iter().map(group).collect()).unwrap()
    }

    /// Returns the entries of leaves as they are written, or `None`.
    fn union(hierarchy: &Hierarchy, leaves: &[u8]) -> Option<String> {
        let fragments = Fragments::new(hierarchy, Interpolation::Off);
        let names: Vec<String> = leaves.iter().map(|it| format!("g{it}")).collect();
        let is_leaf =
            |it: &GroupIndex| names.iter().any(|name| *name == *hierarchy.group(*it).name.as_str());
        let leaves: Vec<GroupIndex> = hierarchy.indexes().filter(is_leaf).collect();
        let union = fragments.union(hierarchy, &leaves)?;
        Some(union.iter().map(|it| it.text).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn of_one_name_the_nearest_group_counts_and_leaves_must_agree() {
        let hierarchy = hierarchy(&[
            (
                0,
                0,
                json!({"classes": {"a": {"p": 1, "q": 1}}, "vars": {"v": 1, "\"": 1}, "data": {"a": {"k": 1}}}),
            ),
            (1, 0, json!({"classes": {"a": {"p": 2}}, "vars": {"v": null}})),
            (2, 1, json!({"classes": {"a": {}, "b": {}}})),
            (3, 1, json!({"classes": {"a": {"p": 2}}, "data": {"a": {"k": null}}})),
            (4, 0, json!({"classes": {"c": {}}})),
            (5, 0, json!({"classes": {"a": {"p": 1}}})),
            (6, 1, json!({"vars": {"v": 3}})),
            (7, 0, json!({"data": {"z": {"k": null}}})),
        ]);
        let root = r#""\"":1 "v":1 "a":{"k":1}"#;
        let (one, two) = (r#""a":{"p":1,"q":1}"#, r#""a":{"p":2,"q":1}"#);
        let data = r#""a":{"k":1}"#;
        let (quote, b, c) = (r#""\"":1"#, r#""b":{}"#, r#""c":{}"#);
        each_row(
            [
                (&[0][..], Some(format!("{one} {root}"))),
                (&[1], Some(format!("{two} {quote} {data}"))),
                // What is inherited is a part of what the leaf sets itself.
                (&[2], Some(format!("{two} {b} {quote} {data}"))),
                (&[3], Some(format!("{two} {quote}"))),
                (&[4], Some(format!("{one} {c} {root}"))),
                (&[7], Some(format!("{one} {root}"))),
                // Both have the parent's, or the same by themselves.
                (&[2, 6], Some(format!("{two} {b} {quote} \"v\":3 {data}"))),
                (&[2, 3], Some(format!("{two} {b} {quote} {data}"))),
                (&[4, 5], Some(format!("{one} {c} {root}"))),
                (&[4, 7], Some(format!("{one} {c} {root}"))),
                // One inherits what another overrides with something else.
                (&[1, 4], None),
                (&[2, 5], None),
                (&[2, 3, 4], None),
                (&[], Some(String::new())),
            ],
            |(leaves, expected)| assert_eq!(union(&hierarchy, leaves), expected, "{leaves:?}"),
        );
    }

    #[test]
    fn the_order_of_keys_in_a_value_is_a_part_of_it() {
        let group = |sets: Value| hierarchy(&[(0, 0, sets)]);
        let [one, other] = [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})]
            .map(|value| group(json!({"vars": {"v": value}})));
        let (one, other) = (one.group(one.root()), other.group(other.root()));
        assert!(sets_the_same(one, &one.clone()));
        assert!(!sets_the_same(one, other));
    }

    /// Ten thousand groups that name a class of 40,000 parameters took 7 GB when a node was in all of them.
    #[test]
    fn inherited_values_have_room_that_is_given_back() {
        let parameters: serde_json::Map<String, Value> =
            (0..100).map(|it| (format!("p{it:03}"), 1.into())).collect();
        let mut groups = vec![(0, 0, json!({"classes": {"a": parameters}}))];
        groups.extend((1..100).map(|it| (it, 0, json!({"classes": {"a": {}}}))));
        let hierarchy = hierarchy(&groups);
        // 100 times `"p000":1` with a comma but for the first.
        let inherited = 100 * 9 - 1;
        let fragments = Fragments {
            room: RenderedRoom::new(inherited * 30),
            ..Fragments::new(&hierarchy, Interpolation::Off)
        };
        let written = |it: &Fragments| {
            hierarchy.indexes().filter(|group| it.of_group(&hierarchy, *group).is_some()).count()
        };
        assert_eq!(written(&fragments), 1 + 30, "the root group inherits nothing");
        let refused: Vec<usize> = fragments.without_room().values().copied().collect();
        assert_eq!(refused, [inherited; 69], "they are not written a second time");
        assert_eq!(written(&fragments.clone()), 31, "they are shared");
        let leaf = |number: usize| hierarchy.indexes().nth(number).unwrap();
        let few = fragments.without(&hierarchy, [leaf(1), leaf(2)].iter());
        assert_eq!(written(&few), 29, "the former ones are still there");
        drop(fragments);
        assert_eq!(written(&few), 31);
        let none = few.without(&hierarchy, [hierarchy.root()].iter());
        drop(few);
        assert_eq!(written(&none), 31);
        // What is known to take more than there is room for is not even written.
        let plenty = Fragments::new(&hierarchy, Interpolation::Off);
        plenty.without_room().insert(leaf(1), usize::MAX);
        assert_eq!(written(&plenty), 99);
    }

    /// Three hundred groups that inherit strings of a hundred references took 1 GB within 32 MiB of text.
    #[test]
    fn the_references_in_inherited_values_take_room_too() {
        let references = "$a".repeat(100);
        let hierarchy = hierarchy(&[
            (0, 0, json!({"classes": {"a": {"p": references}}})),
            (1, 0, json!({"classes": {"a": {}}})),
        ]);
        let is_written = |bytes: usize, interpolation: Interpolation| {
            let fragments = Fragments {
                room: RenderedRoom::new(bytes),
                ..Fragments::new(&hierarchy, interpolation)
            };
            let leaf = hierarchy.indexes().next_back().unwrap();
            fragments.of_group(&hierarchy, leaf).is_some()
        };
        assert!(is_written(300, Interpolation::Off));
        assert!(!is_written(10_000, Interpolation::On));
        assert!(is_written(100_000, Interpolation::On));
    }

    #[test]
    fn many_leaves_that_set_the_same_are_one_answer() {
        let sets = json!({"classes": {"a": {}, "b": {}}});
        let groups: Vec<(u8, u8, Value)> =
            (0..100).map(|number| (number, number / 50, sets.clone())).collect();
        let hierarchy = hierarchy(&groups);
        let leaves: Vec<u8> = (2..100).collect();
        assert_eq!(union(&hierarchy, &leaves).as_deref(), Some(r#""a":{} "b":{}"#));
    }
}
