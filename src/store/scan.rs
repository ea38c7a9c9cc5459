//! Reading what rules mention of all nodes, without the rest of their facts.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::check_in::FactsBody;
use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::reading::StoredRow;
use super::sql::{Statement, integer, maybe_bytes, maybe_integer, text};
use crate::mentioned::MentionedPaths;
use crate::model::{Map, Node, Value};

/// How many nodes are read at a time.
pub(super) const SCANNED_TOGETHER: usize = 1000;

/// Which nodes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanExtent {
    /// All.
    All,
    /// So many, the first by name.
    First(usize),
}

impl ScanExtent {
    /// Returns how many nodes are read at most.
    pub(super) fn nodes(self) -> usize {
        match self {
            Self::All => usize::MAX,
            Self::First(nodes) => nodes,
        }
    }
}

/// A node whose facts are read later, by any thread.
#[derive(Debug)]
pub struct ScannedNode {
    /// The certname.
    pub name: String,
    /// Whether it has checked in with facts.
    pub has_facts: bool,
    facts: ScannedFacts,
}

#[derive(Debug)]
enum ScannedFacts {
    /// Those that rules mention, in JSON.
    Mentioned(Vec<u8>),
    /// All of them, compressed.
    Whole(StoredRow),
    /// They are large, and read one at a time.
    Large(usize),
    /// The node was forgotten meanwhile.
    Gone,
}

impl ScannedNode {
    /// Returns how many bytes its facts take if they are large: then they are read alone.
    pub fn large(&self) -> Option<usize> {
        match self.facts {
            ScannedFacts::Large(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the node with at least the facts that rules mention; none if it was forgotten.
    ///
    /// # Errors
    ///
    /// Returns an error if they are damaged.
    pub fn node(&self, paths: &MentionedPaths) -> Result<Option<Node>, StoreError> {
        let text = match &self.facts {
            ScannedFacts::Mentioned(text) => text,
            ScannedFacts::Whole(row) => &row.text()?,
            ScannedFacts::Large(_) | ScannedFacts::Gone => return Ok(None),
        };
        let restricts = matches!(self.facts, ScannedFacts::Whole(_));
        let read = if restricts { restricted(text, paths) } else { whole(text) };
        let (fact, trusted) = read.map_err(|error| {
            let reason = format!("the row of `{}` makes no sense: {error}", self.name);
            StoreError::new(StoreFault::Row, "read", reason)
        })?;
        Ok(Some(Node { name: self.name.clone(), fact, trusted }))
    }
}

/// Facts and trusted data.
type FactsParts = (Map<String, Value>, Map<String, Value>);

fn whole(text: &[u8]) -> serde_json::Result<FactsParts> {
    let FactsBody { fact, trusted } = serde_json::from_slice(text)?;
    Ok((fact, trusted))
}

/// Reads of facts and trusted data only what is mentioned.
fn restricted(text: &[u8], paths: &MentionedPaths) -> serde_json::Result<FactsParts> {
    #[derive(Deserialize)]
    struct Texts<'t> {
        #[serde(borrow, default)]
        fact: Option<&'t RawValue>,
        #[serde(borrow, default)]
        trusted: Option<&'t RawValue>,
    }

    let Texts { fact, trusted } = serde_json::from_slice(text)?;
    paths.keep_text(fact.map_or("{}", RawValue::get), trusted.map_or("{}", RawValue::get))
}

/// The path sets whose inputs have all that is asked for.
#[derive(Debug)]
pub(super) struct Covering(HashSet<i64>);

impl Database {
    /// Returns the path sets that cover some paths.
    pub(super) fn covering(&self, paths: &MentionedPaths) -> Result<Covering, StoreError> {
        self.connections.read(async |connection| {
            let all = Statement::new("SELECT id, paths FROM path_sets").fetch(connection).await?;
            let mut covering = HashSet::new();
            for row in all {
                let set = text(&row, 1)?.parse::<MentionedPaths>();
                if set.is_ok_and(|it| it.covers(paths)) {
                    covering.insert(integer(&row, 0)?);
                }
            }
            Ok(Covering(covering))
        })
    }

    /// Returns some nodes by name, behind a name; none after the last.
    pub(super) fn scan(
        &self,
        after: Option<&str>,
        most: usize,
        covering: &Covering,
        large: usize,
    ) -> Result<Vec<ScannedNode>, StoreError> {
        self.connections.read_together(async |connection| {
            // Inputs are of the last answer: facts that were submitted since then are read as a whole.
            let columns = "SELECT name, has_facts, raw_bytes, \
                 CASE WHEN inputs_hash = facts_hash THEN path_set END, \
                 CAST(LENGTH(inputs) AS BIGINT) FROM nodes";
            let page = Statement::new(columns);
            let page = match after {
                Some(name) => page.text(" WHERE name > ").value(name),
                None => page,
            };
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = page.text(" ORDER BY name LIMIT ").value(most).fetch(connection).await?;
            let mut nodes = Vec::with_capacity(rows.len());
            let (mut mentioned, mut whole, mut taken) = (Vec::new(), Vec::new(), 0);
            for row in &rows {
                let is_covered = maybe_integer(row, 3)?.is_some_and(|it| covering.0.contains(&it));
                let inputs = maybe_integer(row, 4)?.filter(|_| is_covered);
                let raw = usize::try_from(integer(row, 2)?).unwrap_or_default();
                let size = inputs.map_or(raw, |it| usize::try_from(it).unwrap_or_default());
                let name = text(row, 0)?;
                let mut facts = ScannedFacts::Gone;
                if size >= large {
                    facts = ScannedFacts::Large(raw.max(size));
                } else if taken > 0 && taken + size > TOGETHER {
                    break;
                } else {
                    taken += size;
                    let group = if inputs.is_some() { &mut mentioned } else { &mut whole };
                    group.push(name.clone());
                }
                nodes.push(ScannedNode { name, has_facts: integer(row, 1)? != 0, facts });
            }
            let mut inputs = load_inputs(connection, &mentioned).await?;
            let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
            let mut found = StoredRow::load(connection, &whole).await?;
            for node in &mut nodes {
                if let Some(inputs) = inputs.remove(&node.name) {
                    node.facts = ScannedFacts::Mentioned(inputs);
                } else if let Some(row) = found.remove(&node.name) {
                    node.facts = ScannedFacts::Whole(row);
                }
            }
            Ok(nodes)
        })
    }
}

/// Reads what rules mentioned of nodes, by their names.
async fn load_inputs(
    connection: &mut AnyConnection,
    names: &[String],
) -> Result<HashMap<String, Vec<u8>>, sqlx::Error> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = Statement::new("SELECT name, inputs FROM nodes WHERE name IN ");
    let rows = rows.list(names.iter().map(String::as_str)).fetch(connection).await?;
    let row = |row: &AnyRow| Ok((text(row, 0)?, maybe_bytes(row, 1)?.unwrap_or_default()));
    rows.iter().map(row).collect()
}

/// How many bytes of facts are read at a time, before they are compressed.
const TOGETHER: usize = 8 << 20;
