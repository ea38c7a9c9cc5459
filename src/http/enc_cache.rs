//! Caches the ENC documents of requests without facts.
//!
//! A document is served again while the same commit is live and the node has not checked in, or was matched by the
//! same groups when it did: its facts need not be read, nor its groups matched.
//!
//! The cache is our own and not a crate's, because a document may be inserted only if the node did not
//! check in while the document was made: the comparison with the reservation, the insertion and the
//! accounting of bytes happen under one lock.

use std::sync::Arc;

use axum::body::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::hierarchy::GroupIndex;
use crate::model::CommitId;

/// How many bytes the cache may hold.
const BYTES: usize = 32 << 20;

/// The cached documents.
#[derive(Clone, Debug, Default)]
pub struct EncCache(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    by_name: HashMap<String, Entry>,
    bytes: usize,
    reservations: u64,
}

/// What a document is made of, beside what the node checked in with last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DocumentOrigin {
    pub(super) commit: CommitId,
    /// That of [`CheckIns::removals`](crate::store::CheckIns::removals) before it was read.
    pub(super) removals: u64,
}

#[derive(Debug)]
struct Entry {
    origin: DocumentOrigin,
    /// The reservation that may insert the document.
    reservation: u64,
    document: Option<CachedDocument>,
}

/// A document, and what it was made of.
#[derive(Clone, Debug)]
pub(super) struct CachedDocument {
    pub(super) text: Bytes,
    /// The groups that matched, if the document follows from them and the name alone.
    pub(super) groups: Option<Box<[GroupIndex]>>,
}

/// The right to insert a document; it ends when the node checks in.
#[derive(Debug)]
pub(super) struct Reservation(u64);

impl EncCache {
    /// Returns the document of a node, or the right to insert the one that is made now.
    pub(super) fn find(&self, name: &str, origin: DocumentOrigin) -> Result<Bytes, Reservation> {
        let mut entries = self.0.lock();
        let entry = entries.by_name.get(name).filter(|entry| entry.origin == origin);
        if let Some(document) = entry.and_then(|entry| entry.document.as_ref()) {
            return Ok(document.text.clone());
        }
        entries.reservations += 1;
        let reservation = entries.reservations;
        entries.put(name, Entry { origin, reservation, document: None });
        Err(Reservation(reservation))
    }

    /// Inserts a document, unless the node has checked in since the reservation.
    pub(super) fn insert(&self, name: &str, reservation: &Reservation, document: CachedDocument) {
        let mut entries = self.0.lock();
        let entry = entries.by_name.get(name).filter(|it| it.reservation == reservation.0);
        if let Some(origin) = entry.map(|entry| entry.origin) {
            let document = Some(document);
            entries.put(name, Entry { origin, reservation: reservation.0, document });
        }
    }

    /// Evicts the document of a node.
    pub(super) fn evict(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Evicts the document of a node that checks in, unless the document is the same for what it says now: it follows
    /// from groups of the same commit, which match the node as before.
    pub(super) fn evict_unless(&self, name: &str, commit: CommitId, groups: &[GroupIndex]) {
        let mut entries = self.0.lock();
        let stays = |entry: &Entry| entry.origin.commit == commit && entry.is_of(groups);
        if !entries.by_name.get(name).is_some_and(stays) {
            entries.remove(name);
        }
    }
}

impl Entries {
    fn put(&mut self, name: &str, entry: Entry) {
        self.remove(name);
        self.bytes += size(name, &entry);
        if self.bytes > BYTES {
            // The next requests make the documents again.
            self.by_name.clear();
            self.bytes = size(name, &entry);
        }
        self.by_name.insert(name.to_owned(), entry);
    }

    fn remove(&mut self, name: &str) {
        if let Some((name, entry)) = self.by_name.remove_entry(name) {
            self.bytes -= size(&name, &entry);
        }
    }
}

impl Entry {
    fn is_of(&self, groups: &[GroupIndex]) -> bool {
        let document = self.document.as_ref();
        document.and_then(|it| it.groups.as_deref()) == Some(groups)
    }
}

impl CachedDocument {
    fn size(&self) -> usize {
        self.text.len() + self.groups.as_deref().map_or(0, size_of_val)
    }
}

fn size(name: &str, entry: &Entry) -> usize {
    120 + name.len() + entry.document.as_ref().map_or(0, CachedDocument::size)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use axum::body::{Body, to_bytes};
    use axum::extract::FromRef as _;
    use axum::http::{Request, StatusCode};
    use serde_json::{Value, json};

    use super::*;
    use crate::http::blocking::run_blocking;
    use crate::http::fixture::Fixture;
    use crate::http::privacy::PrivacyPolicy;
    use crate::http::request_context::RequestContext;
    use crate::http::router::RouteSet;
    use crate::masking::{Masks, StoredExtent, StoredForm};
    use crate::model::Node;
    use crate::reconcile::Controller;
    use crate::store::{CheckIn, CheckIns};

    #[test]
    fn a_document_is_cached_until_another_commit_is_live_or_the_node_checks_in() {
        let cache = EncCache::default();
        let commit = |text: &str| text.repeat(40).parse::<CommitId>().unwrap();
        let (old, new) = (commit("1"), commit("2"));
        let text = |text: &'static str| of_facts(Bytes::from_static(text.as_bytes()));
        let reservation = cache.find("a", at(old)).unwrap_err();
        cache.insert("a", &reservation, text("first"));
        assert_eq!(cache.find("a", at(old)).unwrap(), "first");
        let reservation = cache.find("a", at(new)).unwrap_err();
        // It checks in while the document is made of what was known before.
        cache.evict("a");
        cache.insert("a", &reservation, text("too late"));
        let reservation = cache.find("a", at(new)).unwrap_err();
        cache.insert("a", &reservation, text("second"));
        assert_eq!(cache.find("a", at(new)).unwrap(), "second");
        // What the document is made of may have been removed from the store.
        let reservation = cache.find("a", DocumentOrigin { removals: 1, ..at(new) }).unwrap_err();
        cache.insert("a", &reservation, text("third"));
        assert!(cache.find("a", at(new)).is_err());
        cache.evict("a");
        assert_eq!(cache.0.lock().bytes, 0);
    }

    /// Has a daemon answer a request of a caller who may do all.
    async fn answer(fixture: &Fixture, mut request: Request<Body>) -> (StatusCode, Bytes) {
        RequestContext::of_mut(request.extensions_mut()).peer.is_local = true;
        let answer = fixture.answer(request).await;
        (answer.status(), to_bytes(answer.into_body(), 1 << 20).await.unwrap())
    }

    fn at(commit: CommitId) -> DocumentOrigin {
        DocumentOrigin { commit, removals: 0 }
    }

    async fn document(fixture: &Fixture) -> (StatusCode, Bytes) {
        answer(fixture, Request::get("/enc/n").body(Body::empty()).unwrap()).await
    }

    #[tokio::test]
    async fn what_is_cached_is_what_would_be_made_of_the_last_check_in() {
        // The rule holds for the certname that the document is made with, and that check-ins may not bring.
        let masked = Masks::of_settings(&["x".parse().unwrap()]);
        // What is stored, and how many answers there are.
        let forms = [
            (Masks::default(), StoredExtent::All, 2),
            (Masks::default(), StoredExtent::Mentioned, 2),
            (Masks::default(), StoredExtent::None, 1),
            // Without the fact, with it, and an error where it is masked.
            (masked, StoredExtent::All, 2),
        ];
        for (masks, facts, answers) in forms {
            let privacy = PrivacyPolicy::new(StoredForm { masks, facts });
            let fixture = Fixture::of(RouteSet::Whole, ["name: A\n", WITH_FACT], privacy);
            let cache = EncCache::from_ref(&fixture.state);
            // Opens the store.
            let check_ins = CheckIns::from_ref(&fixture.state);
            run_blocking(move || check_ins.fleet_version()).await.unwrap().unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            let mut found = BTreeSet::new();
            for _ in 0..200 {
                let x = random.choice(["0", "1", "2"]).unwrap();
                let fact =
                    random.choice([json!({"x": x}), json!({"x": x}), json!({"y": 1}), json!({})]);
                let trusted = random.choice([json!({"certname": "n"}), json!({})]);
                let body = json!({"fact": fact, "trusted": trusted}).to_string();
                let request = Request::post("/v1/classified/nodes/n").body(body.clone().into());
                assert_eq!(answer(&fixture, request.unwrap()).await.0, 200);
                let cached = document(&fixture).await;
                cache.evict("n");
                assert_eq!(cached, document(&fixture).await, "{body} {facts:?}");
                found.insert(cached);
            }
            assert_eq!(found.len(), answers, "{facts:?}: {found:?}");
        }
    }

    /// A group of nodes with a fact, and their certname.
    const WITH_FACT: &str = "name: A\nrule: trusted.certname = n and x = 1\nvariables: {a: 1}\n";

    async fn opened() -> (Fixture, CheckIns) {
        let fixture =
            Fixture::of(RouteSet::Whole, ["name: A\n", WITH_FACT], PrivacyPolicy::default());
        let check_ins = CheckIns::from_ref(&fixture.state);
        let opening = check_ins.clone();
        run_blocking(move || opening.fleet_version()).await.unwrap().unwrap();
        (fixture, check_ins)
    }

    #[tokio::test]
    async fn a_check_in_without_facts_keeps_no_document() {
        let (fixture, check_ins) = opened().await;
        let unknown = document(&fixture).await;
        // Another daemon stores facts.
        let (fact, trusted) = (json!({"x": "1"}), json!({"certname": "n"}));
        let object = |it: &Value| it.as_object().unwrap().clone();
        let node = Node { name: "n".to_owned(), fact: object(&fact), trusted: object(&trusted) };
        let time = jiff::Timestamp::UNIX_EPOCH;
        check_ins.note(&CheckIn { time, transaction_uuid: None, commit: None, node });
        let body = json!({"fact": {}, "trusted": trusted}).to_string();
        let request = Request::post("/v1/classified/nodes/n").body(body.into());
        assert_eq!(answer(&fixture, request.unwrap()).await.0, 200);
        assert_ne!(document(&fixture).await, unknown);
    }

    #[tokio::test]
    async fn an_upload_evicts_the_document_though_its_client_leaves() {
        let (fixture, _) = opened().await;
        let unknown = document(&fixture).await;
        let facts = json!({"name": "n", "facts": {"x": "1"}}).to_string();
        let request = Request::post("/api/hosts/facts").body(facts.into()).unwrap();
        let mut upload = Box::pin(answer(&fixture, request));
        // No thread writes, so that it waits.
        let waiting = tokio::time::timeout(Duration::from_millis(200), upload.as_mut()).await;
        assert!(waiting.is_err());
        drop(upload);
        assert_ne!(document(&fixture).await, unknown);
    }

    fn of_facts(text: Bytes) -> CachedDocument {
        CachedDocument { text, groups: None }
    }

    #[test]
    fn a_document_of_groups_is_cached_while_the_node_has_them() {
        let commits = ["1", "2"].map(|it| it.repeat(40).parse::<CommitId>().unwrap());
        let fixture = Fixture::new(RouteSet::Whole);
        let snapshot = Arc::<Controller>::from_ref(&fixture.state).snapshot().unwrap();
        let many: Box<[_]> = snapshot.estate.hierarchy.indexes().collect();
        let few: Box<[_]> = many[..1].into();
        // What the document was made of, the commit and the groups of the check-in, and whether it stays.
        let rows = [
            (Some(few.clone()), commits[0], few.clone(), true),
            (Some(few.clone()), commits[0], many.clone(), false),
            (Some(many), commits[0], few.clone(), false),
            (Some(few.clone()), commits[1], few.clone(), false),
            (None, commits[0], few.clone(), false),
            (None, commits[0], Box::default(), false),
            (Some(Box::default()), commits[0], Box::default(), true),
        ];
        crate::table::each_row(rows, |(groups, commit, now, stays)| {
            let cache = EncCache::default();
            let reservation = cache.find("a", at(commits[0])).unwrap_err();
            cache.insert("a", &reservation, CachedDocument { text: "x".into(), groups });
            cache.evict_unless("a", commit, &now);
            assert_eq!(cache.find("a", at(commits[0])).is_ok(), stays);
        });
        // One that is being made may be of facts from before the check-in.
        let cache = EncCache::default();
        let reservation = cache.find("a", at(commits[0])).unwrap_err();
        cache.evict_unless("a", commits[0], &few);
        cache.insert("a", &reservation, CachedDocument { text: "x".into(), groups: Some(few) });
        assert!(cache.find("a", at(commits[0])).is_err());
    }

    #[test]
    fn the_cache_has_a_limit() {
        let cache = EncCache::default();
        let commit = "1".repeat(40).parse::<CommitId>().unwrap();
        let large = Bytes::from(vec![b'x'; BYTES / 3]);
        for name in ["a", "b", "c", "d"] {
            let reservation = cache.find(name, at(commit)).unwrap_err();
            cache.insert(name, &reservation, of_facts(large.clone()));
            assert!(cache.0.lock().bytes <= BYTES);
        }
        assert_eq!(cache.find("d", at(commit)).unwrap(), large);
        assert!(cache.find("a", at(commit)).is_err());
    }
}
