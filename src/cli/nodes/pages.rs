//! Nodes that a service lists page by page.
//!
//! They are used while they arrive, so what a service sends costs no more memory than a batch.

use anyhow::{Context as _, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{BATCH, Use};
use crate::cli::client::Daemon;
use crate::facts::with_certname;
use crate::model::{Map, NODE_VALUES, Node, count_values, has_more_values};

/// More nodes than one fleet has.
const MOST: usize = 10_000_000;

/// How many bytes of text a node may have, as in a request that brings its facts along.
const NODE_BYTES: u64 = 16 << 20;

/// How many bytes of memory nodes take that are used together, by an estimate.
const BATCH_MEMORY: usize = 128 << 20;

/// How many bytes of memory a value takes, whatever its text.
const VALUE_MEMORY: usize = 300;

/// A node of a list with the bytes of memory that it takes, or why it cannot be read.
pub(super) type Listed = Result<(Node, usize), String>;

/// Takes a node.
pub(super) type Take<'t> = &'t mut dyn FnMut(Listed);

/// Reads a page of nodes that begins after some, and returns how many it has.
pub(super) type Page = fn(&Daemon, usize, Take<'_>) -> Result<usize>;

/// Nodes that are used together.
pub(super) struct Batch<'u> {
    nodes: Vec<Node>,
    memory: usize,
    each: Use<'u>,
}

impl<'u> Batch<'u> {
    pub(super) fn new(each: Use<'u>) -> Self {
        Self { nodes: Vec::new(), memory: 0, each }
    }

    pub(super) fn push(&mut self, node: Node, memory: usize) {
        self.nodes.push(node);
        self.memory += memory;
        if self.nodes.len() >= BATCH || self.memory >= BATCH_MEMORY {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        if !self.nodes.is_empty() {
            (self.each)(&self.nodes);
        }
        self.nodes.clear();
        self.memory = 0;
    }
}

/// Reads page after page until one is not full, and returns how many nodes there are.
pub(super) fn read(
    page: &dyn Fn(usize, Take<'_>) -> Result<usize>,
    take: Take<'_>,
) -> Result<usize> {
    let (mut offset, mut before) = (0, None);
    loop {
        let mut first = None;
        let size = page(offset, &mut |listed| {
            first.get_or_insert_with(|| match &listed {
                Ok((node, _)) => node.name.clone(),
                Err(error) => error.clone(),
            });
            take(listed);
        })?;
        offset += size;
        if size < BATCH {
            return Ok(offset);
        }
        if first == before || offset > MOST {
            bail!(
                "the pages of nodes do not end: each begins with the same node, or there are more than {MOST} nodes"
            );
        }
        before = first;
    }
}

/// Reads a page of the check-ins of a daemon.
pub(super) fn check_ins(service: &Daemon, offset: usize, take: Take<'_>) -> Result<usize> {
    let path = format!("/v1/nodes?facts=true&limit={BATCH}&offset={offset}");
    nodes(service, &path, None, CHECK_IN, &|_| true, take)
}

/// Reads a page of the inventory of a PuppetDB.
pub(super) fn inventory(service: &Daemon, offset: usize, take: Take<'_>) -> Result<usize> {
    // `[{"field": "certname", "order": "asc"}]`, so that pages do not overlap.
    let order = "%5B%7B%22field%22%3A%22certname%22%2C%22order%22%3A%22asc%22%7D%5D";
    let path = format!("/pdb/query/v4/inventory?order_by={order}&limit={BATCH}&offset={offset}");
    nodes(service, &path, None, INVENTORY, &|_| true, take)
}

/// Asks a `PuppetDB` for one node, if `admit` has room for what its text takes when it is read.
pub(in crate::cli) fn of_puppetdb(
    service: &Daemon,
    certname: &str,
    admit: &dyn Fn(&[u8]) -> bool,
) -> Result<Option<Node>> {
    let query = json!(["=", "certname", certname]).to_string();
    let query = utf8_percent_encode(&query, NON_ALPHANUMERIC);
    let mut found = None;
    let path = format!("/pdb/query/v4/inventory?query={query}");
    nodes(service, &path, None, INVENTORY, admit, &mut |listed| found = Some(listed))?;
    let found = found.transpose().map_err(anyhow::Error::msg)?;
    Ok(found.map(|(node, _)| node))
}

/// Asks a `PuppetDB` for the nodes that a query of its inventory finds, or for all.
pub(in crate::cli) fn found_in_puppetdb(
    service: &Daemon,
    query: Option<&Value>,
    each: &mut dyn FnMut(Node),
) -> Result<()> {
    let page = |offset: usize, take: Take<'_>| {
        let mut page = json!({
            "order_by": [{"field": "certname", "order": "asc"}], "limit": BATCH, "offset": offset,
        });
        if let (Some(query), Value::Object(fields)) = (query, &mut page) {
            fields.insert("query".to_owned(), query.clone());
        }
        // A query can be longer than a URL may be.
        let body = page.to_string();
        nodes(service, "/pdb/query/v4/inventory", Some(&body), INVENTORY, &|_| true, take)
    };
    let mut unreadable = None;
    read(&page, &mut |listed| match listed {
        Ok((node, _)) => each(node),
        Err(error) => unreadable = Some(error),
    })?;
    unreadable.map_or(Ok(()), |error| Err(anyhow::Error::msg(error)))
}

/// Where an entry has the certname and the facts.
#[derive(Clone, Copy)]
struct Keys {
    name: &'static str,
    facts: &'static str,
}

const CHECK_IN: Keys = Keys { name: "name", facts: "fact" };
const INVENTORY: Keys = Keys { name: "certname", facts: "facts" };

/// Asks for a list of nodes, and returns how many it has.
fn nodes(
    service: &Daemon,
    path: &str,
    body: Option<&str>,
    keys: Keys,
    admit: &dyn Fn(&[u8]) -> bool,
    take: Take<'_>,
) -> Result<usize> {
    service.list(path, body, NODE_BYTES, &mut |text| {
        if has_more_values(text.as_bytes(), NODE_VALUES) {
            bail!("a node has more than {NODE_VALUES} values");
        }
        if !admit(text.as_bytes()) {
            bail!("too many large nodes are read; try again soon");
        }
        let entry: Value = serde_json::from_str(text)?;
        take(match error_of(&entry) {
            Some(error) => Err(error),
            None => Ok((node(entry, keys)?, memory(text))),
        });
        Ok(())
    })
}

/// Returns about how many bytes of memory a node takes.
fn memory(text: &str) -> usize {
    text.len() + VALUE_MEMORY * count_values(text.as_bytes())
}

/// Returns why the daemon cannot read a node of its list.
fn error_of(entry: &Value) -> Option<String> {
    let message = entry.get("error")?.get("msg")?.as_str()?;
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    Some(format!("the daemon cannot read the node `{name}`: {message}"))
}

fn node(mut entry: Value, keys: Keys) -> Result<Node> {
    let certname = entry.get(keys.name).and_then(Value::as_str).map(str::to_owned);
    let name = certname.with_context(|| format!("a node has no `{}`", keys.name))?;
    let mut object = |key: &str| match entry.get_mut(key).map(Value::take) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let mut fact = object(keys.facts);
    // An agent can send a fact of this name; what is trusted stands beside the facts.
    fact.remove("trusted");
    let trusted = with_certname(Some(object("trusted")), &name);
    Ok(Node { name, fact, trusted })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_until_one_is_not_full_and_never_for_ever() {
        let fleet = |total: usize, moves: bool| {
            move |offset: usize, take: Take<'_>| {
                let start = if moves { offset } else { 0 };
                let names = (start..total).take(BATCH);
                let node = |it| Node::named(format!("n{it}"));
                Ok(names.map(|it| take(Ok((node(it), 1)))).count())
            }
        };
        for total in [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * BATCH] {
            let mut found = 0;
            let count = read(&fleet(total, true), &mut |_| found += 1).unwrap();
            assert_eq!((count, found), (total, total));
        }
        let said = read(&fleet(BATCH, false), &mut |_| {}).unwrap_err().to_string();
        assert!(said.starts_with("the pages of nodes do not end"), "{said}");
    }

    #[test]
    fn a_batch_is_bounded_by_nodes_and_by_memory() {
        let mut sizes = Vec::new();
        let mut each = |nodes: &[Node]| sizes.push(nodes.len());
        let mut batch = Batch::new(&mut each);
        for memory in [1, BATCH_MEMORY, 1] {
            batch.push(Node::named("n".to_owned()), memory);
        }
        (0..BATCH).for_each(|_| batch.push(Node::named("n".to_owned()), 1));
        batch.flush();
        assert_eq!(sizes, [2, BATCH, 1]);
    }

    #[test]
    fn values_count_as_what_they_take_and_not_as_their_text() {
        // Two of the largest nodes are never used together, and usual ones a few hundred at a time.
        let wide = format!("[{}]", vec!["0"; NODE_VALUES - 2].join(","));
        assert!(2 * memory(&wide) >= BATCH_MEMORY);
        let usual = vec![r#""name": {"a": "text of a fact", "b": [1, 2]}"#; 500].join(",");
        assert!((100..BATCH).contains(&(BATCH_MEMORY / memory(&usual))));
    }
}
