//! Records check-ins: each one evicts the cached ENC document of its node, unless that stays as it is.

use std::sync::Arc;

use jiff::Timestamp;

use super::enc_cache::EncCache;
use super::error::ApiError;
use super::node_request::ProvedNode;
use super::privacy::PrivacyPolicy;
use super::snapshot_context::{MatchedGroups, SnapshotContext};
use crate::masking::CommitForm;
use crate::snapshot::{Request, Snapshot};
use crate::store::{
    Answered, Certname, CheckIns, Noted, NotedFacts, Received, SaidPart, StoreError, has_keys,
};

/// Records check-ins, as far as the privacy policy allows.
#[derive(Clone, Debug)]
pub(super) struct CheckInRecorder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    check_ins: CheckIns,
    enc_cache: EncCache,
    privacy: PrivacyPolicy,
}

/// Evicts the document of a node at the end.
struct Eviction<'e> {
    cache: &'e EncCache,
    name: &'e str,
}

impl Drop for Eviction<'_> {
    fn drop(&mut self) {
        self.cache.evict(self.name);
    }
}

/// Returns what a request says of a node: without facts it says nothing of those that are known, and its trusted data
/// are newer.
fn said_part(has_facts: bool, has_trusted: bool) -> SaidPart {
    if !has_facts && has_trusted { SaidPart::Trusted } else { SaidPart::Both }
}

impl CheckInRecorder {
    pub(super) fn new(check_ins: CheckIns, enc_cache: EncCache, privacy: PrivacyPolicy) -> Self {
        Self(Arc::new(Inner { check_ins, enc_cache, privacy }))
    }

    /// Records that a node, as it was sent, asked, and what it was answered.
    pub(super) fn record(
        &self,
        node: &ProvedNode,
        context: &SnapshotContext,
        answered: Option<Answered>,
        transaction_uuid: Option<String>,
    ) {
        let node = node.without_marks();
        let said = said_part(!node.fact.is_empty(), !node.trusted.is_empty());
        self.note(&node, context, answered, transaction_uuid, (NotedFacts::OfNode, said));
    }

    /// Records the same of a request that brought trusted data alone: the facts of the node are those that are known
    /// of it.
    pub(super) fn record_trusted(
        &self,
        node: &ProvedNode,
        context: &SnapshotContext,
        answered: Option<Answered>,
    ) {
        let node = node.without_trusted_marks();
        self.note(&node, context, answered, None, (NotedFacts::OfNode, SaidPart::Trusted));
    }

    /// Records the same without the facts that decided the answer: something else keeps them.
    pub(super) fn record_without_facts(
        &self,
        node: &ProvedNode,
        context: &SnapshotContext,
        answered: Option<Answered>,
    ) {
        let noted = (NotedFacts::Elsewhere, SaidPart::Trusted);
        self.note(&node.without_facts().without_trusted_marks(), context, answered, None, noted);
    }

    fn note(
        &self,
        node: &ProvedNode,
        context: &SnapshotContext,
        answered: Option<Answered>,
        transaction_uuid: Option<String>,
        (facts, said): (NotedFacts, SaidPart),
    ) {
        let (time, commit) = (Timestamp::now(), Some(context.snapshot.commit));
        let node = self.0.privacy.stored_node(node, Some(&context.snapshot));
        self.0.check_ins.note(Noted {
            time,
            transaction_uuid,
            commit,
            answered,
            node: &node,
            facts,
            said,
        });
        self.0.enc_cache.evict(&node.name);
    }

    /// Records that a node asked, with facts as they stand in the body.
    pub(super) fn record_received(
        &self,
        name: &str,
        request: &Request<'_>,
        context: &SnapshotContext,
        groups: &MatchedGroups,
    ) {
        let snapshot = &context.snapshot;
        let received = Received {
            time: Timestamp::now(),
            transaction_uuid: request.transaction.as_deref(),
            commit: Some(snapshot.commit),
            answered: context.answered(groups, Certname::AsSent),
            name,
            fact: request.fact,
            trusted: request.trusted,
            said: said_part(has_keys(request.fact), has_keys(request.trusted)),
            form: self.0.privacy.stored_form(Some(snapshot)),
        };
        // The document is made of what is stored, and with the certname. Without facts the check-in says nothing of
        // those that are known, which another daemon may have stored.
        let is_stored_whole = received.form.as_ref().is_none_or(CommitForm::keeps_mentioned);
        let is_as_stored = is_stored_whole
            && received.has_facts()
            && snapshot.index().knows_certname(&request.resolved);
        self.0.check_ins.note_received(received);
        match groups {
            Ok(groups) if is_as_stored => {
                self.0.enc_cache.evict_unless(name, snapshot.commit, groups);
            }
            _ => self.0.enc_cache.evict(name),
        }
    }

    /// Records a check-in durably: it is on disk when this returns. No commit has answered it; rules that
    /// mention facts are those of the live one.
    pub(super) async fn record_durably(
        &self,
        received: Received<'_>,
        live: Option<&Snapshot>,
    ) -> Result<(), ApiError> {
        // Whatever becomes of it, it may be read meanwhile; and the client may not wait for the end.
        let _evicts = Eviction { cache: &self.0.enc_cache, name: received.name };
        let stored = Received { form: self.0.privacy.stored_form(live), ..received };
        Ok(self.0.check_ins.keep(stored).await?)
    }

    /// Forgets a node, and returns whether it was known. Blocking.
    pub(super) fn forget(&self, name: &str) -> Result<bool, StoreError> {
        let forgotten = self.0.check_ins.forget_node(name);
        self.0.enc_cache.evict(name);
        forgotten
    }

    /// Returns an error if a file beside the store may still hold data of a node that is forgotten.
    pub(super) fn remains(&self, name: &str) -> Option<StoreError> {
        self.0.check_ins.remains(name)
    }

    /// Returns whether check-ins survive the daemon.
    pub(super) fn is_durable(&self) -> bool {
        self.0.check_ins.is_durable()
    }

    /// Returns an error as it is shown: it may repeat a part of the request.
    pub(super) fn shown_error(&self, error: ApiError) -> ApiError {
        self.0.privacy.shown_error(error)
    }
}
