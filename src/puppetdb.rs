//! `PuppetDB` as a source of nodes, by its inventory.

use std::time::Duration;

use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{
    Client, ClientError, Identity, NodeEntry, PAGE_NODES, Timeouts, read_page, read_pages,
};
use crate::facts::{Listed, ListedNode, NodeSource, NodeSourceError, RowRoom};
use crate::model::Node;

/// How long one node may take: an agent run waits.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a page of nodes may take.
const PAGE_TIMEOUT: Duration = Duration::from_mins(1);

const INVENTORY: &str = "/pdb/query/v4/inventory";

/// A `PuppetDB`.
#[derive(Debug)]
pub struct PuppetDb {
    node: Client,
    pages: Client,
}

impl PuppetDb {
    /// Returns the `PuppetDB` at a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid, or the credentials cannot be used with it.
    pub fn new(url: &str, identity: &Identity) -> Result<Self, ClientError> {
        let client = |timeout| Client::new(url, identity, Timeouts::within(timeout));
        Ok(Self { node: client(NODE_TIMEOUT)?, pages: client(PAGE_TIMEOUT)? })
    }
}

/// A node in the inventory.
#[derive(Debug, Deserialize)]
struct InventoryEntry {
    certname: String,
    facts: Option<Map<String, Value>>,
    trusted: Option<Map<String, Value>>,
    /// When its facts came.
    timestamp: Option<String>,
}

impl NodeEntry for InventoryEntry {
    fn into_node(self) -> Result<Node, String> {
        let (facts, trusted) = (self.facts.unwrap_or_default(), self.trusted.unwrap_or_default());
        Ok(ListedNode::node(self.certname, facts, trusted))
    }

    fn seen(&self) -> Option<Timestamp> {
        self.timestamp.as_deref()?.parse().ok()
    }
}

impl NodeSource for PuppetDb {
    fn node(&self, certname: &str, room: &dyn RowRoom) -> Result<Option<Node>, NodeSourceError> {
        let query = json!(["=", "certname", certname]).to_string();
        let path = format!("{INVENTORY}?query={}", utf8_percent_encode(&query, NON_ALPHANUMERIC));
        let admit = |text: &[u8]| room.admits_bytes(text.len()) && room.admits_row(text);
        let mut found = None;
        let mut take = |listed| found = Some(listed);
        read_page::<InventoryEntry>(&self.node, &path, None, &admit, &mut take)?;
        let found: Option<Listed> = found;
        let found = found.transpose().map_err(NodeSourceError::Unreachable)?;
        Ok(found.map(|listed| listed.node))
    }

    fn list(
        &self,
        query: Option<&Value>,
        each: &mut dyn FnMut(Listed),
    ) -> Result<usize, NodeSourceError> {
        let page = |offset: usize, take: &mut dyn FnMut(Listed)| {
            // Pages of an ordered list do not overlap.
            let order = json!([{"field": "certname", "order": "asc"}]);
            let mut page = json!({"order_by": order, "limit": PAGE_NODES, "offset": offset});
            if let (Some(query), Value::Object(fields)) = (query, &mut page) {
                fields.insert("query".to_owned(), query.clone());
            }
            // A query can be longer than a URL may be.
            let body = page.to_string();
            read_page::<InventoryEntry>(&self.pages, INVENTORY, Some(&body), &|_| true, take)
        };
        Ok(read_pages(&page, each)?)
    }
}

impl From<ClientError> for NodeSourceError {
    fn from(error: ClientError) -> Self {
        Self::Unreachable(error.to_string())
    }
}
