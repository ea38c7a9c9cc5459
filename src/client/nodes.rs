//! Nodes that a service lists page by page.
//!
//! They are passed on while they arrive, so that an answer takes no more memory than its largest node.

use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::{Client, ClientError};
use crate::facts::{Listed, ListedNode};
use crate::model::{NODE_VALUES, Node, has_more_values, value_memory};

/// How many nodes a page has.
pub const PAGE_NODES: usize = 512;

/// More nodes than one fleet has.
const MOST: usize = 10_000_000;

/// The most bytes of text of a node, as in a request that brings its facts along.
const NODE_BYTES: u64 = 16 << 20;

/// Uses an element of a list, with the name of its node.
type TakeNamed<'t, T = Listed> = &'t mut dyn FnMut(&str, T);

/// Reads the page after so many elements.
type ReadPage<'p, T, E> = &'p mut dyn FnMut(usize, TakeNamed<'_, T>) -> Result<usize, E>;

/// An element of a list of nodes.
pub trait NodeEntry: DeserializeOwned {
    /// Returns the name of the node.
    fn name(&self) -> &str;

    /// Returns the node, or why the service cannot read it.
    fn into_node(self) -> Result<Node, String>;

    /// Returns when the service saw the node last.
    fn seen(&self) -> Option<Timestamp>;
}

/// Reads all pages of so many elements, of a list that is ordered by the names of nodes, and returns how many it
/// has. `page` reads the page after so many elements, and returns how many it has.
///
/// Nodes that leave the list meanwhile move the others forward. So each page begins with the last node of the one
/// before; where it does not, an earlier one is read.
///
/// # Errors
///
/// Returns an error if a page cannot be read, the list is not ordered, or there is no last page.
pub fn read_pages<T, E: From<ClientError>>(
    page_size: usize,
    page: ReadPage<'_, T, E>,
    take: &mut dyn FnMut(T),
) -> Result<usize, E> {
    let (mut pages, mut offset, mut back) = (OrderedPages::of(page_size), 0_usize, 1);
    loop {
        pages.begin(offset);
        let size = page(offset, &mut |name, element| {
            if pages.is_new(name) {
                take(element);
            }
        })?;
        match pages.end(size)? {
            PageEnd::Last => return Ok(pages.count),
            PageEnd::Gap => {
                offset = offset.saturating_sub(back);
                back = back.saturating_mul(2);
            }
            PageEnd::More => {
                offset += size.saturating_sub(1);
                back = 1;
            }
        }
    }
}

/// What follows from a page.
enum PageEnd {
    /// It was the last.
    Last,
    /// It begins after the last node that was used: there may be others between.
    Gap,
    More,
}

/// The pages of a list that is ordered by name, as they were read so far.
#[derive(Default)]
struct OrderedPages {
    /// How many nodes a page has, but for the last.
    page_size: usize,
    /// How many nodes were used.
    count: usize,
    /// The last of them.
    last: Option<String>,
    /// How many nodes are before this page.
    offset: usize,
    /// The first node of this page, and of the one before.
    first: Option<String>,
    before: Option<String>,
    /// The last node of this page.
    current: Option<String>,
    is_ordered: bool,
    has_gap: bool,
}

impl OrderedPages {
    fn of(page_size: usize) -> Self {
        Self { page_size, ..Self::default() }
    }

    fn begin(&mut self, offset: usize) {
        self.before = self.first.take();
        self.offset = offset;
        (self.current, self.is_ordered, self.has_gap) = (None, true, false);
    }

    /// Returns whether the next node of the page is to be used: it comes after those that were.
    fn is_new(&mut self, name: &str) -> bool {
        let is_after = |last: &Option<String>| last.as_deref().is_none_or(|last| last < name);
        let is_after_last = is_after(&self.last);
        self.is_ordered &= is_after(&self.current);
        self.current = Some(name.to_owned());
        if self.first.is_none() {
            self.first = Some(name.to_owned());
            self.has_gap = self.offset > 0 && is_after_last;
        }
        let is_new = is_after_last && self.is_ordered && !self.has_gap;
        if is_new {
            self.last = Some(name.to_owned());
            self.count += 1;
        }
        is_new
    }

    fn end(&self, size: usize) -> Result<PageEnd, ClientError> {
        if !self.is_ordered {
            return Err(ClientError::Answer("the nodes are not ordered by name".to_owned()));
        }
        // A list that became shorter than the offset has a gap as well.
        if self.has_gap || (self.offset > 0 && size == 0) {
            return Ok(PageEnd::Gap);
        }
        if size < self.page_size {
            return Ok(PageEnd::Last);
        }
        if self.first == self.before || self.offset > MOST {
            return Err(ClientError::Answer(format!(
                "the pages of nodes do not end: each begins with the same node, or there are more than {MOST} nodes"
            )));
        }
        Ok(PageEnd::More)
    }
}

/// Requests a list of nodes, and returns how many it has. `admit` says whether there is memory for what
/// the text of a node takes when it is read.
///
/// # Errors
///
/// Returns an error if no list arrives, or a node in it cannot be used.
pub fn read_page<E: NodeEntry>(
    client: &Client,
    path: &str,
    body: Option<&str>,
    admit: &dyn Fn(&[u8]) -> bool,
    take: TakeNamed<'_>,
) -> Result<usize, ClientError> {
    client.list(path, body, NODE_BYTES, &mut |text| {
        if has_more_values(text.as_bytes(), NODE_VALUES) {
            return Err(format!("a node has more than {NODE_VALUES} values"));
        }
        if !admit(text.as_bytes()) {
            return Err("too many large nodes are read; try again soon".to_owned());
        }
        let entry = read_entry::<E>(text)?;
        let (name, seen) = (entry.name().to_owned(), entry.seen());
        let listed = entry.into_node().map(|node| {
            let memory = value_memory(text.as_bytes());
            ListedNode { node, memory, seen }
        });
        take(&name, listed);
        Ok(())
    })
}

/// Reads an element of a list of nodes.
///
/// # Errors
///
/// Returns an error if it is not an object with the fields of a node.
pub fn read_entry<E: DeserializeOwned>(text: &str) -> Result<E, String> {
    // A list of the fields' values would do for the derived reader.
    if !text.starts_with('{') {
        return Err("expected an object for each node".to_owned());
    }
    serde_json::from_str(text).map_err(|error| format!("a node cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn name(number: usize) -> String {
        format!("n{number:05}")
    }

    /// Passes on a page of a list.
    fn pass_on(names: &[String], offset: usize, take: TakeNamed<'_>) -> usize {
        let page = names.iter().skip(offset).take(PAGE_NODES);
        page.map(|name| {
            let node = Node::named(name.clone());
            take(name, Ok(ListedNode { node, memory: 1, seen: None }));
        })
        .count()
    }

    fn read(
        page: ReadPage<'_, Listed, ClientError>,
        take: &mut dyn FnMut(Listed),
    ) -> Result<usize, ClientError> {
        read_pages(PAGE_NODES, page, take)
    }

    #[test]
    fn pages_are_read_until_one_is_not_full_and_never_forever() {
        each_row([0, 1, PAGE_NODES - 1, PAGE_NODES, PAGE_NODES + 1, 3 * PAGE_NODES], |total| {
            let names: Vec<String> = (0..total).map(name).collect();
            let mut found = Vec::new();
            let take = &mut |listed: Listed| found.push(listed.unwrap().node.name);
            let page = &mut |offset, take: TakeNamed<'_>| Ok(pass_on(&names, offset, take));
            assert_eq!(read(page, take).unwrap(), total);
            assert_eq!(found, names);
        });
        let names: Vec<String> = (0..PAGE_NODES).map(name).collect();
        let same = &mut |_, take: TakeNamed<'_>| Ok(pass_on(&names, 0, take));
        let said = read(same, &mut |_| {}).unwrap_err().to_string();
        assert!(said.starts_with("the pages of nodes do not end"), "{said}");
        let twice = ["b", "a"].map(str::to_owned);
        let unordered = &mut |offset, take: TakeNamed<'_>| Ok(pass_on(&twice, offset, take));
        let said = read(unordered, &mut |_| {}).unwrap_err().to_string();
        assert_eq!(said, "the nodes are not ordered by name");
    }

    #[test]
    fn no_node_is_left_out_or_used_twice_when_others_come_and_go() {
        // Before a page, the list becomes that of another range.
        let rows = [
            ("some leave", vec![0..1500, 1..1500, 40..1500]),
            ("a page of them leaves", vec![0..1500, 600..1500]),
            ("nearly all leave", vec![0..1500, 1499..1500]),
            ("all that were used leave, and others", vec![0..1500, 700..1500, 0..0]),
            ("some come", vec![300..1500, 200..1500, 0..1500]),
        ];
        each_row(rows, |(_, ranges)| {
            let mut requests = 0;
            let page = &mut |offset: usize, take: TakeNamed<'_>| {
                let range = ranges[requests.min(ranges.len() - 1)].clone();
                requests += 1;
                Ok(pass_on(&range.map(name).collect::<Vec<_>>(), offset, take))
            };
            let mut found = Vec::new();
            let take = &mut |listed: Listed| found.push(listed.unwrap().node.name);
            let count = read(page, take).unwrap();
            assert_eq!(count, found.len());
            assert!(found.is_sorted_by(|a, b| a < b), "a node was used twice");
            let mut staying = (0..1500).filter(|it| ranges.iter().all(|range| range.contains(it)));
            assert!(staying.all(|it| found.contains(&name(it))));
        });
    }

    #[test]
    fn values_count_as_what_they_take_and_not_as_their_text() {
        let wide = format!("[{}]", vec!["0"; NODE_VALUES - 2].join(","));
        assert!(value_memory(wide.as_bytes()) >= 64 << 20);
        let usual = vec![r#""name": {"a": "text of a fact", "b": [1, 2]}"#; 500].join(",");
        assert!((100..PAGE_NODES).contains(&((128 << 20) / value_memory(usual.as_bytes()))));
    }
}
