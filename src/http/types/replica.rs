//! The daemon itself: its replicas, its store, the deliveries of webhooks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::CommitId;
use crate::overview::{ListedReplica, StoreUse};
use crate::store::StoredReplica;

/// A daemon that shares the store, or the one that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Replica {
    /// The name of `--instance`, else that of its machine.
    pub name: String,
    /// The commit that answers there; null if none does.
    #[schema(required)]
    pub commit: Option<CommitId>,
    /// Its version.
    pub version: String,
    /// When it started, by its own clock.
    pub started_at: Timestamp,
    /// When it was seen last, by its own clock: each says every 15 seconds, and when another commit answers, that it
    /// is there, and is removed when it stops, or an hour after it was seen last.
    pub seen_at: Timestamp,
    /// Whether it was not seen for a minute when the store was read last.
    #[schema(required)]
    #[serde(default)]
    pub missing: bool,
}

/// The store of check-ins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreInfo {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: String,
    /// How many nodes it holds; null before it was read.
    #[schema(required)]
    pub nodes: Option<u64>,
    /// How many bytes of check-ins it holds, compressed; null before it was read.
    #[schema(required)]
    pub bytes: Option<u64>,
}

/// The deliveries of a forge's webhooks that ended alike, since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDeliveries {
    /// The forge, as the path of the route names it.
    pub provider: String,
    /// `accepted`, `duplicate`, `ignored`, `unauthenticated`, `malformed` or `too_large`.
    pub result: String,
    /// How many.
    pub count: u64,
    /// When the last one came.
    pub last: Timestamp,
}

impl From<ListedReplica> for Replica {
    fn from(ListedReplica { said, is_missing: missing }: ListedReplica) -> Self {
        let StoredReplica { name, version, commit, started_at, seen_at, .. } = said;
        Self { name: name.as_str().to_owned(), commit, version, started_at, seen_at, missing }
    }
}

impl From<StoreUse> for StoreInfo {
    fn from(StoreUse { kind, size }: StoreUse) -> Self {
        Self {
            kind: kind.to_owned(),
            nodes: size.map(|it| it.nodes),
            bytes: size.map(|it| it.bytes),
        }
    }
}
