//! One check-in, and how it is written.

use std::fmt;
use std::io::Write as _;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::StoreError;
use crate::model::{CommitId, Map, Node, Value};

/// The latest classification request of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckIn {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_uuid: Option<String>,
    /// The commit that answered; none if the node only submitted facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The node as it was received.
    pub node: Node,
}

/// A check-in to note, of a node that is still in use.
#[derive(Clone, Debug, Serialize)]
pub struct Noted<'n> {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_uuid: Option<String>,
    /// Which commit answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The node as it was received.
    pub node: &'n Node,
}

impl<'n> From<&'n CheckIn> for Noted<'n> {
    fn from(check_in: &'n CheckIn) -> Self {
        let CheckIn { time, transaction_uuid, commit, node } = check_in;
        Self { time: *time, transaction_uuid: transaction_uuid.clone(), commit: *commit, node }
    }
}

/// One of many check-ins.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedCheckIn {
    /// The certname.
    pub name: String,
    /// The check-in, or why this one cannot be read.
    pub check_in: Result<CheckIn, StoreError>,
}

/// What is read from a row.
pub(super) trait RowContent: DeserializeOwned {
    /// Returns whether the row has facts.
    fn has_facts(&self) -> bool;
}

impl RowContent for CheckIn {
    fn has_facts(&self) -> bool {
        !self.node.fact.is_empty()
    }
}

/// A row whose facts are skipped.
#[derive(Debug, Deserialize)]
pub(super) struct TrustedRow {
    pub(super) node: TrustedNode,
}

/// A node whose facts are skipped.
#[derive(Debug, Deserialize)]
pub(super) struct TrustedNode {
    #[serde(default)]
    fact: Skipped,
    #[serde(default)]
    pub(super) trusted: Map<String, Value>,
}

impl RowContent for TrustedRow {
    fn has_facts(&self) -> bool {
        self.node.fact == Skipped::Some
    }
}

/// An object that was skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Skipped {
    /// It has at least one key.
    Some,
    /// It has none.
    #[default]
    None,
}

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Skim;

        impl<'de> Visitor<'de> for Skim {
            type Value = Skipped;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Skipped, A::Error> {
                let mut skipped = Skipped::None;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    skipped = Skipped::Some;
                }
                Ok(skipped)
            }
        }

        deserializer.deserialize_map(Skim)
    }
}

/// What the store knows of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Its latest check-in.
    pub check_in: Option<CheckIn>,
    /// Why that may be less than what was known of the node: a damaged file is put aside, and the
    /// check-in is missing, or it has no facts or no trusted data.
    pub lost: Option<StoreError>,
}

impl Stored {
    /// Returns the check-in.
    ///
    /// # Errors
    ///
    /// Returns an error if more may have been known of the node.
    pub fn whole(self) -> Result<Option<CheckIn>, StoreError> {
        self.lost.map_or(Ok(self.check_in), Err)
    }
}

/// A check-in with facts and trusted data as the JSON text that they came as.
#[derive(Clone, Copy, Debug)]
pub struct Received<'r> {
    /// When.
    pub time: Timestamp,
    /// Which run of the agent it was for.
    pub transaction_uuid: Option<&'r str>,
    /// Which commit answered.
    pub commit: Option<CommitId>,
    /// The certname.
    pub name: &'r str,
    /// The facts: the text of an object.
    pub fact: &'r str,
    /// The trusted data: the text of an object.
    pub trusted: &'r str,
}

/// A check-in as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) bytes: Vec<u8>,
    /// Seconds since 1970.
    pub(super) time: i64,
    pub(super) facts: FactsPresence,
}

/// Whether a check-in has facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPresence {
    /// At least one.
    Some,
    /// None: it does not take the place of a check-in that has some.
    None,
}

impl Row {
    /// Writes what [`CheckIn`] is read from.
    pub(super) fn of(check_in: &Noted<'_>) -> Option<Self> {
        let facts =
            if check_in.node.fact.is_empty() { FactsPresence::None } else { FactsPresence::Some };
        let bytes = serde_json::to_vec(check_in).ok()?;
        Some(Self { bytes, time: check_in.time.as_second(), facts })
    }

    /// Writes what [`CheckIn`] is read from.
    pub(super) fn of_received(received: Received<'_>) -> Option<Self> {
        let Received { time, transaction_uuid, commit, name, fact, trusted } = received;
        // An object without a string has no key.
        let facts = if fact.contains('"') { FactsPresence::Some } else { FactsPresence::None };
        let mut bytes = Vec::with_capacity(fact.len() + trusted.len() + name.len() + 256);
        write!(bytes, "{{\"time\":\"{time}\"").ok()?;
        if let Some(id) = transaction_uuid {
            bytes.extend_from_slice(b",\"transaction_uuid\":");
            serde_json::to_writer(&mut bytes, id).ok()?;
        }
        if let Some(commit) = commit {
            write!(bytes, ",\"commit\":\"{commit}\"").ok()?;
        }
        bytes.extend_from_slice(b",\"node\":{\"name\":");
        serde_json::to_writer(&mut bytes, name).ok()?;
        for part in [",\"fact\":", fact, ",\"trusted\":", trusted, "}}"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        Some(Self { bytes, time: time.as_second(), facts })
    }
}
