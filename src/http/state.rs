//! What handlers use: each handler takes, by the extractor `State`, the services that it names.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;

use super::access::Access;
use super::check_in_recorder::CheckInRecorder;
use super::enc_cache::EncCache;
use super::live_status::LiveStatus;
use super::node_lookup::{FactsPolicy, NodeLookup};
use super::privacy::PrivacyPolicy;
use super::update_classes::ClassUpdater;
use super::webhook::Webhooks;
use crate::decision_log::DecisionLog;
use crate::overview::Overview;
use crate::reconcile::{Controller, Writer};
use crate::store::CheckIns;
use crate::telemetry::Metrics;

/// The services of the daemon, for the composition root. Handlers do not see them together.
#[derive(Debug)]
pub struct Services {
    /// Follows the branch and serves snapshots.
    pub controller: Arc<Controller>,
    /// Counts requests and answers.
    pub metrics: Arc<Metrics>,
    /// Authenticates callers.
    pub access: Arc<Access>,
    /// The secrets and recent deliveries of webhooks.
    pub webhooks: Arc<Webhooks>,
    /// The last check-in of each node.
    pub check_ins: CheckIns,
    /// Commits writes; none where groups change by commits alone.
    pub writer: Option<Arc<Writer>>,
    /// Knows the classes of environments; none where catalogues change by commits alone.
    pub puppet_server: Option<ClassUpdater>,
    /// Where the facts of nodes come from that send none.
    pub facts: FactsPolicy,
    /// The ENC documents of requests without facts.
    pub enc_cache: EncCache,
    /// What is stored, shown and logged of facts.
    pub privacy: PrivacyPolicy,
    /// Logs answers to nodes, if that is configured.
    pub decisions: Option<DecisionLog>,
    /// The replicas, and how counts went over time.
    pub overview: Arc<Overview>,
    /// Tells pages that stay open when the status changes.
    pub live: LiveStatus,
}

/// The services behind one pointer, which requests clone. The count of the clones is one of a connection: one that all
/// threads shared would have them wait for its line of memory.
#[derive(Clone, Debug)]
pub(super) struct AppState(Arc<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    services: Arc<Services>,
    recorder: CheckInRecorder,
    lookup: NodeLookup,
}

impl AppState {
    pub(super) fn new(services: Arc<Services>) -> Self {
        let recorder = CheckInRecorder::new(
            services.check_ins.clone(),
            services.enc_cache.clone(),
            services.privacy.clone(),
        );
        let lookup =
            NodeLookup { check_ins: services.check_ins.clone(), policy: services.facts.clone() };
        Self(Arc::new(Inner { services, recorder, lookup }))
    }

    /// Returns the same with a count of its own.
    pub(super) fn for_connection(&self) -> Self {
        Self(Arc::new(Inner::clone(&self.0)))
    }

    /// Returns what authenticates callers.
    pub(super) fn access(&self) -> &Access {
        &self.0.services.access
    }
}

/// A service, borrowed from the state: to clone one would count its users, and all threads share that count.
#[derive(Debug)]
pub(super) struct Borrowed<T>(AppState, PhantomData<fn() -> T>);

impl<T> FromRef<AppState> for Borrowed<T> {
    fn from_ref(state: &AppState) -> Self {
        Self(state.clone(), PhantomData)
    }
}

impl<T> Deref for Borrowed<T>
where
    AppState: AsRef<T>,
{
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref()
    }
}

/// Lends requests a service by its type.
macro_rules! lent {
    ($($($field:ident).+: $type:ty),* $(,)?) => {
        $(impl AsRef<$type> for AppState {
            fn as_ref(&self) -> &$type {
                &self.0.$($field).+
            }
        })*
    };
}

lent! {
    recorder: CheckInRecorder,
    lookup: NodeLookup,
    services.enc_cache: EncCache,
    services.controller: Arc<Controller>,
    services.decisions: Option<DecisionLog>,
}

impl FromRef<AppState> for NodeLookup {
    fn from_ref(state: &AppState) -> Self {
        state.0.lookup.clone()
    }
}

impl FromRef<AppState> for CheckInRecorder {
    fn from_ref(state: &AppState) -> Self {
        state.0.recorder.clone()
    }
}

/// Gives handlers each service by its type.
macro_rules! services {
    ($($field:ident: $type:ty),* $(,)?) => {
        $(impl FromRef<AppState> for $type {
            fn from_ref(state: &AppState) -> Self {
                Clone::clone(&state.0.services.$field)
            }
        })*
    };
}

services! {
    controller: Arc<Controller>,
    metrics: Arc<Metrics>,
    access: Arc<Access>,
    webhooks: Arc<Webhooks>,
    check_ins: CheckIns,
    writer: Option<Arc<Writer>>,
    puppet_server: Option<ClassUpdater>,
    facts: FactsPolicy,
    enc_cache: EncCache,
    privacy: PrivacyPolicy,
    decisions: Option<DecisionLog>,
    overview: Arc<Overview>,
}
