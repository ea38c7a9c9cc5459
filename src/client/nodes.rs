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

/// Uses a node of a list.
type Take<'t> = &'t mut dyn FnMut(Listed);

/// An element of a list of nodes.
pub trait NodeEntry: DeserializeOwned {
    /// Returns the node, or why the service cannot read it.
    fn into_node(self) -> Result<Node, String>;

    /// Returns when the service saw the node last.
    fn seen(&self) -> Option<Timestamp>;
}

/// Reads page after page until one is not full, and returns how many nodes there are. `page` reads the
/// page after so many nodes, and returns how many it has.
///
/// # Errors
///
/// Returns an error if a page cannot be read, or there is no last one.
pub fn read_pages(
    page: &dyn Fn(usize, Take<'_>) -> Result<usize, ClientError>,
    take: Take<'_>,
) -> Result<usize, ClientError> {
    let (mut offset, mut before) = (0, None);
    loop {
        let mut first = None;
        let size = page(offset, &mut |listed| {
            first.get_or_insert_with(|| match &listed {
                Ok(ListedNode { node, .. }) => node.name.clone(),
                Err(error) => error.clone(),
            });
            take(listed);
        })?;
        offset += size;
        if size < PAGE_NODES {
            return Ok(offset);
        }
        if first == before || offset > MOST {
            return Err(ClientError::Answer(format!(
                "the pages of nodes do not end: each begins with the same node, or there are more than {MOST} nodes"
            )));
        }
        before = first;
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
    take: Take<'_>,
) -> Result<usize, ClientError> {
    client.list(path, body, NODE_BYTES, &mut |text| {
        if has_more_values(text.as_bytes(), NODE_VALUES) {
            return Err(format!("a node has more than {NODE_VALUES} values"));
        }
        if !admit(text.as_bytes()) {
            return Err("too many large nodes are read; try again soon".to_owned());
        }
        let entry = entry::<E>(text)?;
        let seen = entry.seen();
        take(entry.into_node().map(|node| {
            let memory = value_memory(text.as_bytes());
            ListedNode { node, memory, seen }
        }));
        Ok(())
    })
}

fn entry<E: NodeEntry>(text: &str) -> Result<E, String> {
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

    #[test]
    fn pages_are_read_until_one_is_not_full_and_never_forever() {
        let fleet = |total: usize, moves: bool| {
            move |offset: usize, take: Take<'_>| {
                let start = if moves { offset } else { 0 };
                let names = (start..total).take(PAGE_NODES);
                let listed = |it| {
                    let node = Node::named(format!("n{it}"));
                    ListedNode { node, memory: 1, seen: None }
                };
                Ok(names.map(|it| take(Ok(listed(it)))).count())
            }
        };
        each_row([0, 1, PAGE_NODES - 1, PAGE_NODES, PAGE_NODES + 1, 3 * PAGE_NODES], |total| {
            let mut found = 0;
            let count = read_pages(&fleet(total, true), &mut |_| found += 1).unwrap();
            assert_eq!((count, found), (total, total));
        });
        let said = read_pages(&fleet(PAGE_NODES, false), &mut |_| {}).unwrap_err().to_string();
        assert!(said.starts_with("the pages of nodes do not end"), "{said}");
    }

    #[test]
    fn values_count_as_what_they_take_and_not_as_their_text() {
        let wide = format!("[{}]", vec!["0"; NODE_VALUES - 2].join(","));
        assert!(value_memory(wide.as_bytes()) >= 64 << 20);
        let usual = vec![r#""name": {"a": "text of a fact", "b": [1, 2]}"#; 500].join(",");
        assert!((100..PAGE_NODES).contains(&((128 << 20) / value_memory(usual.as_bytes()))));
    }
}
