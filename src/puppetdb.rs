//! `PuppetDB` as a source of nodes, by its inventory.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::client::{
    Client, ClientError, Identity, NodeEntry, PAGE_NODES, Timeouts, read_entry, read_page,
};
use crate::facts::{
    Listed, ListedNode, NamedNode, NodeSource, NodeSourceError, RowRoom, Unlimited,
};
use crate::model::{Node, remove_marks};

/// How long one node may take: an agent run waits.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a page of nodes may take.
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);

/// How many nodes are few, and how long they may take: people wait, and lists for each other.
const FEW: usize = 64;
const FEW_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of text that an element of a list of names has.
const NAME_BYTES: u64 = 64 << 10;

/// The most bytes of memory that the names of a list take.
const NAMES_MEMORY: usize = 128 << 20;

/// The memory that a name takes beside its text.
const NAME_OVERHEAD: usize = 48;

/// How many queries that were refused are remembered.
const REFUSED_QUERIES: usize = 10_000;

/// How many characters of one are logged.
const SHOWN_QUERY: usize = 500;

/// How often nodes are asked for in two parts, to find those that cannot be read, before all of them count as unreadable.
const TRIES: usize = 40;

const INVENTORY: &str = "/pdb/query/v4/inventory";

/// A `PuppetDB`.
#[derive(Debug)]
pub struct PuppetDb {
    node: Client,
    few: Client,
    pages: Client,
    refused: RefusedQueries,
}

/// The queries that `PuppetDB` has refused, by their hashes: each is reported once.
#[derive(Debug, Default)]
struct RefusedQueries {
    hasher: RandomState,
    known: Mutex<HashSet<u64>>,
}

impl RefusedQueries {
    /// Logs that a query was refused, unless it was before.
    fn report(&self, query: &Value, error: &ClientError) {
        let mut known = self.known.lock();
        if known.len() >= REFUSED_QUERIES {
            known.clear();
        }
        let text = query.to_string();
        let is_new = known.insert(self.hasher.hash_one(&text));
        drop(known);
        if is_new {
            let query: String = text.chars().take(SHOWN_QUERY).collect();
            tracing::warn!(
                %error,
                query,
                "PuppetDB refuses a query; all nodes are read in its place"
            );
        }
    }
}

impl PuppetDb {
    /// Returns the `PuppetDB` at a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid, or the credentials cannot be used with it.
    pub fn new(url: &str, identity: &Identity) -> Result<Self, ClientError> {
        let client = |timeout| Client::new(url, identity, Timeouts::within(timeout));
        Ok(Self {
            node: client(NODE_TIMEOUT)?,
            few: client(FEW_TIMEOUT)?,
            pages: client(PAGE_TIMEOUT)?,
            refused: RefusedQueries::default(),
        })
    }
}

/// A node in the inventory.
#[derive(Debug, Deserialize)]
struct InventoryEntry {
    certname: String,
    #[serde(default, deserialize_with = "object")]
    facts: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "object")]
    trusted: Option<Map<String, Value>>,
    /// When its facts came.
    timestamp: Option<String>,
}

/// Reads an object, or nothing. What `serde` says of another value repeats it, and it may be one that a mask covers.
fn object<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Map<String, Value>>, D::Error> {
    match Value::deserialize(from)? {
        Value::Object(map) => Ok(Some(map)),
        Value::Null => Ok(None),
        _ => Err(D::Error::custom("facts and trusted data are objects, and this is none")),
    }
}

/// A node in a list of names.
#[derive(Debug, Deserialize)]
struct InventoryName {
    certname: String,
}

impl NodeEntry for InventoryEntry {
    fn name(&self) -> &str {
        &self.certname
    }

    fn into_node(self) -> Result<Node, String> {
        let (facts, trusted) = (self.facts.unwrap_or_default(), self.trusted.unwrap_or_default());
        let mut node = ListedNode::node(self.certname, facts, trusted);
        remove_marks(&mut node);
        Ok(node)
    }

    fn seen(&self) -> Option<Timestamp> {
        self.timestamp.as_deref()?.parse().ok()
    }
}

impl PuppetDb {
    /// Returns the names of the nodes that a query selects; of all without a query.
    fn names(&self, query: Option<&Value>) -> Result<Vec<String>, ClientError> {
        let extract = json!("extract");
        let fields = json!(["certname"]);
        let query = Value::Array([extract, fields].into_iter().chain(query.cloned()).collect());
        let body = ordered(&query);
        let (mut names, mut memory) = (Vec::new(), 0_usize);
        self.pages.list(INVENTORY, Some(&body), NAME_BYTES, &mut |text| {
            let InventoryName { certname } = read_entry(text)?;
            memory += certname.len() + NAME_OVERHEAD;
            if memory > NAMES_MEMORY {
                return Err(format!("the names of the nodes take more than {NAMES_MEMORY} bytes"));
            }
            names.push(certname);
            Ok(())
        })?;
        names.dedup();
        Ok(names)
    }

    /// Returns the names of at least the nodes that a query selects: of all where `PuppetDB` refuses the query.
    fn covering_names(&self, query: Option<&Value>) -> Result<Vec<String>, ClientError> {
        match (self.names(query), query) {
            (Err(error @ ClientError::Refused(_)), Some(query)) => {
                let names = self.names(None)?;
                // Where it refuses every request, it is not the query that is wrong.
                self.refused.report(query, &error);
                Ok(names)
            }
            (names, _) => names,
        }
    }

    /// Passes on the nodes of these names that `PuppetDB` still has, and returns how many.
    fn read_named(
        &self,
        names: &[String],
        room: &dyn RowRoom,
        each: &mut dyn FnMut(&str, Listed),
    ) -> Result<usize, NodeSourceError> {
        let body = ordered(&json!(["in", "certname", ["array", names]]));
        // Each name, and whether it was answered.
        let mut requested: HashMap<&str, bool> =
            names.iter().map(|it| (it.as_str(), false)).collect();
        let (mut count, mut other) = (0, None);
        let take = &mut |name: &str, listed: Listed| match requested.get_mut(name) {
            Some(answered) => {
                if !std::mem::replace(answered, true) {
                    count += 1;
                    each(name, listed);
                }
                room.release();
            }
            None => other = Some(name.to_owned()),
        };
        let is_full = Cell::new(false);
        let admit = |text: &[u8]| {
            let admits = room.admits_bytes(text.len()) && room.admits_row(text);
            is_full.set(!admits);
            admits
        };
        let client = if names.len() > FEW { &self.pages } else { &self.few };
        let read = read_page::<InventoryEntry>(client, INVENTORY, Some(&body), &admit, take);
        read.map_err(|error| match is_full.get() {
            // Each further request would wait for memory as long as this one.
            true => NodeSourceError::Unreachable(error.to_string()),
            false => error.into(),
        })?;
        other.map_or(Ok(count), |other| Err(not_requested(&other)))
    }

    /// Passes on nodes of these names as [`Self::read_named`] does, and why one of them cannot be read, which keeps the
    /// answer from being read to its end. Asks no more once `each` says so.
    fn read_apart(
        &self,
        names: &[String],
        room: &dyn RowRoom,
        tries: &mut usize,
        each: &mut dyn FnMut(&str, Listed) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, NodeSourceError> {
        let (mut answered, mut flow) = (HashSet::new(), ControlFlow::Continue(()));
        let read = self.read_named(names, room, &mut |name, listed| {
            answered.insert(name.to_owned());
            // The rest of what was asked for still arrives.
            if flow.is_continue() {
                flow = each(name, listed);
            }
        });
        let Err(NodeSourceError::Unusable(reason)) = read else {
            return read.map(|_| flow);
        };
        let left: Vec<String> =
            names.iter().filter(|it| !answered.contains(*it)).cloned().collect();
        if flow.is_break() || left.is_empty() {
            return Ok(flow);
        }
        if let [only] = left.as_slice() {
            return Ok(each(only, Err(format!("`{only}`: {reason}"))));
        }
        *tries = tries.checked_sub(1).ok_or(NodeSourceError::Unusable(reason))?;
        let (some, others) = left.split_at(left.len() / 2);
        if self.read_apart(some, room, tries, each)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.read_apart(others, room, tries, each)
    }
}

/// Returns the body of a query whose answer is ordered by name. A query can be longer than a URL may be.
fn ordered(query: &Value) -> String {
    json!({"query": query, "order_by": [{"field": "certname", "order": "asc"}]}).to_string()
}

/// Facts of one node are never used for another.
fn not_requested(name: &str) -> NodeSourceError {
    let name: String = name.chars().take(100).collect();
    NodeSourceError::Unreachable(format!(
        "PuppetDB answers with `{name}`, a node that was not requested"
    ))
}

impl NodeSource for PuppetDb {
    fn node(&self, certname: &str, room: &dyn RowRoom) -> Result<Option<Node>, NodeSourceError> {
        let query = json!(["=", "certname", certname]).to_string();
        let path = format!("{INVENTORY}?query={}", utf8_percent_encode(&query, NON_ALPHANUMERIC));
        let admit = |text: &[u8]| room.admits_bytes(text.len()) && room.admits_row(text);
        let (mut found, mut other): (Option<Listed>, Option<String>) = (None, None);
        let take = &mut |name: &str, listed: Listed| {
            if name == certname {
                found = Some(listed);
            } else {
                other = Some(name.to_owned());
            }
        };
        read_page::<InventoryEntry>(&self.node, &path, None, &admit, take)?;
        if let Some(other) = other {
            return Err(not_requested(&other));
        }
        let found = found.transpose().map_err(NodeSourceError::Unreachable)?;
        Ok(found.map(|listed| listed.node))
    }

    /// The names are those of one moment, so that no node is left out when another goes away between two pages.
    fn list(
        &self,
        query: Option<&Value>,
        each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
    ) -> Result<usize, NodeSourceError> {
        let names = self.covering_names(query)?;
        let (mut count, mut flow) = (0, ControlFlow::Continue(()));
        for some in names.chunks(PAGE_NODES) {
            count += self.read_named(some, &Unlimited, &mut |_, listed| {
                if flow.is_continue() {
                    flow = each(listed);
                }
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(count)
    }

    fn list_named(
        &self,
        names: &[String],
        room: &dyn RowRoom,
        each: &mut dyn FnMut(NamedNode) -> ControlFlow<()>,
    ) -> Result<(), NodeSourceError> {
        let mut tries = TRIES;
        let mut pass = |name: &str, listed: Listed| {
            each(NamedNode { name: name.to_owned(), node: listed.map(|it| it.node) })
        };
        for some in names.chunks(PAGE_NODES) {
            if self.read_apart(some, room, &mut tries, &mut pass)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl From<ClientError> for NodeSourceError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Element(reason) => Self::Unusable(reason),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_objects_and_their_marks_are_texts() {
        let text =
            r#"{"certname": "a", "facts": {"k": "[masked]"}, "trusted": {"[stored paths]": []}}"#;
        let node = read_entry::<InventoryEntry>(text).unwrap().into_node().unwrap();
        assert_eq!(Value::from(node.fact), json!({"k": "[[masked]]"}));
        assert_eq!(node.trusted["[[stored paths]]"], json!([]));
        for field in ["facts", "trusted"] {
            let text = format!(r#"{{"certname": "a", "{field}": "hunter2"}}"#);
            let said = read_entry::<InventoryEntry>(&text).unwrap_err();
            assert!(said.contains("are objects") && !said.contains("hunter2"), "{said}");
        }
    }
}
