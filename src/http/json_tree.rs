//! A tree of groups in JSON that is written while it is sent: group by group, so that a tree may be as deep as it has
//! groups.

use super::json_list::CHUNK;
use super::streamed::Chunk;
use super::types::GroupTree;
use crate::hierarchy::{GroupIndex, Hierarchy};

/// How the JSON of a group without children ends.
const NO_CHILDREN: &[u8] = b"]}";

/// A group and those below it, each of which is made when it is sent.
#[derive(Debug)]
pub(super) struct JsonTree {
    /// The group that is written next.
    next: GroupIndex,
    /// The first place behind the tree.
    end: GroupIndex,
    /// How many levels below the first group are written.
    depth: usize,
    /// The groups whose children are being written: for each, the first place behind its descendants.
    open: Vec<GroupIndex>,
    /// Whether the next group is the first of its siblings.
    is_first: bool,
}

impl JsonTree {
    pub(super) fn new(hierarchy: &Hierarchy, top: GroupIndex, depth: usize) -> Self {
        Self { next: top, end: hierarchy.end(top), depth, open: Vec::new(), is_first: true }
    }

    /// Writes the next chunk. `show` returns a group without its children.
    pub(super) fn next_chunk(
        &mut self,
        hierarchy: &Hierarchy,
        show: impl Fn(GroupIndex) -> GroupTree,
    ) -> Chunk {
        let mut text = Vec::new();
        // Parents stand before their children, so each group goes into the innermost that is open.
        while text.len() < CHUNK {
            let behind = self.next;
            while self.open.pop_if(|end| *end <= behind).is_some() {
                text.extend_from_slice(NO_CHILDREN);
                self.is_first = false;
            }
            if behind >= self.end {
                text.push(b']');
                return Chunk::Last(text);
            }
            self.write(&show(behind), &mut text);
            let end = hierarchy.end(behind);
            self.open.push(end);
            let child = hierarchy.children(behind).next();
            self.next = child.filter(|_| self.open.len() <= self.depth).unwrap_or(end);
            self.is_first = true;
        }
        Chunk::More(text)
    }

    /// Writes a group up to its children.
    fn write(&self, group: &GroupTree, text: &mut Vec<u8>) {
        if self.open.is_empty() {
            text.push(b'[');
        }
        if !self.is_first {
            text.push(b',');
        }
        // Wire types are always written, and a vector takes all.
        serde_json::to_writer(&mut *text, group).ok();
        text.truncate(text.len().saturating_sub(NO_CHILDREN.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::root_group;
    use crate::http::types::Group as ShownGroup;
    use crate::model::{Group, GroupId};

    /// Makes a tree in which a function says the parent of each group, by number.
    fn hierarchy(count: u128, parent: impl Fn(u128) -> u128) -> Hierarchy {
        let root = root_group().unwrap();
        let id = |number| if number == 0 { GroupId::ROOT } else { GroupId::from_random(number) };
        let group = |number| Group {
            id: id(number),
            name: format!("group {number}").parse().unwrap(),
            parent: id(parent(number)),
            rule: None,
            ..root.clone()
        };
        Hierarchy::build((1..count).map(group).collect()).unwrap()
    }

    fn show(hierarchy: &Hierarchy, index: GroupIndex) -> GroupTree {
        let immediate_child_count = hierarchy.children(index).count();
        let group = ShownGroup::from(hierarchy.group(index));
        GroupTree { group, immediate_child_count, children: Vec::new() }
    }

    fn text(hierarchy: &Hierarchy, top: GroupIndex, depth: usize) -> String {
        let mut tree = JsonTree::new(hierarchy, top, depth);
        let mut text = Vec::new();
        loop {
            match tree.next_chunk(hierarchy, |it| show(hierarchy, it)) {
                Chunk::More(more) => text.extend(more),
                Chunk::Last(more) => {
                    text.extend(more);
                    return String::from_utf8(text).unwrap();
                }
            }
        }
    }

    /// Makes the tree as a value, level by level.
    fn nested(hierarchy: &Hierarchy, index: GroupIndex, depth: usize) -> GroupTree {
        let below = hierarchy.children(index).filter(|_| depth > 0);
        let children = below.map(|it| nested(hierarchy, it, depth - 1)).collect();
        GroupTree { children, ..show(hierarchy, index) }
    }

    #[test]
    fn the_chunks_are_one_tree() {
        let mut rng = fastrand::Rng::with_seed(7);
        for count in [1, 2, 3, 10, 1000] {
            let parents: Vec<u128> = (0..count).map(|it| rng.u128(..it.max(1))).collect();
            let hierarchy = hierarchy(count, |it| parents[usize::try_from(it).unwrap()]);
            for top in [0, hierarchy.len() / 2, hierarchy.len() - 1] {
                let top = hierarchy.at(top).unwrap();
                for depth in [0, 1, 2, 100] {
                    let expected = [nested(&hierarchy, top, depth)];
                    let expected = serde_json::to_string(&expected).unwrap();
                    assert_eq!(text(&hierarchy, top, depth), expected, "{count} {depth}");
                }
            }
        }
    }

    /// As a nested value, this tree took more stack than a thread has.
    #[test]
    fn a_tree_may_be_as_deep_as_it_has_groups() {
        let hierarchy = hierarchy(20_000, |it| it - 1);
        let text = text(&hierarchy, hierarchy.root(), usize::MAX);
        assert_eq!(text.matches("\"children\":[").count(), 20_000);
        assert!(text.ends_with(&format!("{}]", "]}".repeat(20_000))));
    }
}
