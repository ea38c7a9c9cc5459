//! Records check-ins: each one evicts the cached ENC document of its node.

use axum::extract::FromRef;
use jiff::Timestamp;

use super::enc_cache::EncCache;
use super::error::ApiError;
use super::node_request::ProvedNode;
use crate::model::CommitId;
use crate::snapshot::Request;
use crate::store::{CheckIns, Noted, Received};

/// Records check-ins.
#[derive(Clone, Debug)]
pub(super) struct CheckInRecorder {
    check_ins: CheckIns,
    enc_cache: EncCache,
}

impl<S> FromRef<S> for CheckInRecorder
where
    CheckIns: FromRef<S>,
    EncCache: FromRef<S>,
{
    fn from_ref(state: &S) -> Self {
        Self { check_ins: CheckIns::from_ref(state), enc_cache: EncCache::from_ref(state) }
    }
}

impl CheckInRecorder {
    /// Records that a node asked.
    pub(super) fn record(
        &self,
        node: &ProvedNode,
        commit: Option<CommitId>,
        transaction_uuid: Option<String>,
    ) {
        self.check_ins.note(Noted { time: Timestamp::now(), transaction_uuid, commit, node });
        self.enc_cache.evict(&node.name);
    }

    /// Records that a node asked, with facts as they stand in the body.
    pub(super) fn record_received(
        &self,
        name: &str,
        request: &Request<'_>,
        commit: Option<CommitId>,
    ) {
        let received = Received {
            time: Timestamp::now(),
            transaction_uuid: request.transaction.as_deref(),
            commit,
            name,
            fact: request.fact,
            trusted: request.trusted,
        };
        self.check_ins.note_received(&received);
        self.enc_cache.evict(name);
    }

    /// Records a check-in durably: it is on disk when this returns.
    pub(super) async fn record_durably(&self, received: &Received<'_>) -> Result<(), ApiError> {
        let kept = self.check_ins.keep(received).await;
        // A check-in that was not kept may have been read meanwhile.
        self.enc_cache.evict(received.name);
        Ok(kept?)
    }

    /// Returns whether check-ins survive the daemon.
    pub(super) fn is_durable(&self) -> bool {
        self.check_ins.is_durable()
    }
}
