//! Finds the facts of a node that a request names without them: in check-ins, files and `PuppetDB`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::blocking::{FACTS_FILES, Panicked, run_blocking};
use super::client_presence::ClientWatch;
use super::error::ApiError;
use super::node_request::{NodeRequest, ProvedNode};
use super::original_uri::OriginalUri;
use super::server::MemoryReservation;
use crate::facts::{FactsDirectory, NamedNode, NodeSource, NodeSourceError, RowRoom, Unlimited};
use crate::model::{CERTNAME, Node, is_left_out};
use crate::snapshot::Snapshot;
use crate::store::{CheckIns, StoreError, Stored};

/// Where the facts of a node come from that sends none: its last check-in, or a file.
#[derive(Clone, Debug, Default)]
pub struct FactsPolicy {
    /// Facts files by certname, as Puppet Server keeps them.
    pub directory: Option<Arc<FactsDirectory>>,
    /// `PuppetDB`, or another source that knows facts.
    pub puppetdb: Option<Arc<dyn NodeSource>>,
    /// Whether the name alone is not enough.
    pub required: bool,
}

/// How many nodes are completed together.
const TOGETHER: usize = 512;

/// Returns what a source knows of a node, if there is room for it. Blocking.
fn ask(source: &dyn NodeSource, name: &str, room: &dyn RowRoom) -> Result<Option<Node>, ApiError> {
    // Without an answer it is not known what the node is: that is not the same as no facts.
    source.node(name, room).map_err(|error| match error {
        NodeSourceError::Unreadable(reason) => {
            ApiError::internal(format!("The facts of {name} cannot be read: {reason}."))
        }
        NodeSourceError::Unreachable(reason) | NodeSourceError::Unusable(reason) => {
            let message = format!("PuppetDB cannot be asked for the facts of {name}: {reason}.");
            ApiError::puppetdb_unreachable(message)
        }
        NodeSourceError::NoRoom => ApiError::busy(),
    })
}

/// Passes on the nodes that a query of the inventory selects, or all, until the client leaves. Blocking.
pub(super) fn for_each(
    source: &dyn NodeSource,
    query: Option<&Value>,
    watch: &ClientWatch,
    each: &mut dyn FnMut(Node),
) -> Result<(), ApiError> {
    let mut unreadable = None;
    let listed = source.list(query, &mut |listed| {
        match listed {
            Ok(listed) => each(listed.node),
            Err(reason) => unreadable = Some(reason),
        }
        while_watched(watch)
    });
    listed.map_err(|error| cannot_be_asked(&error.to_string()))?;
    watch.check()?;
    unreadable.map_or(Ok(()), |reason| Err(cannot_be_asked(&reason)))
}

/// Passes on what a source knows of some nodes, until `each` stops it or the client leaves. Blocking.
pub(super) fn list_named(
    source: &dyn NodeSource,
    names: &[String],
    room: &dyn RowRoom,
    watch: &ClientWatch,
    each: &mut dyn FnMut(NamedNode) -> ControlFlow<()>,
) -> Result<(), ApiError> {
    let each = &mut |named| {
        each(named)?;
        while_watched(watch)
    };
    let listed = source.list_named(names, room, each);
    listed.map_err(|error| cannot_be_asked(&error.to_string()))?;
    watch.check()
}

/// Says that `PuppetDB` does not say what nodes are.
pub(super) fn cannot_be_asked(reason: &str) -> ApiError {
    ApiError::puppetdb_unreachable(format!("PuppetDB cannot be asked for nodes: {reason}."))
}

fn while_watched(watch: &ClientWatch) -> ControlFlow<()> {
    if watch.is_gone() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// A node of a check-in without facts, after files and `PuppetDB` were asked.
pub(super) enum CompletedNode {
    /// It is classified so.
    Classified(Node),
    /// Facts are required, and there are none.
    FactsMissing(String),
    /// `PuppetDB` has the node, and what it has cannot be read.
    Unreadable(UnreadableNode),
}

/// A node of `PuppetDB` that cannot be read.
pub(super) struct UnreadableNode {
    pub(super) name: String,
    /// Why, with the name of the node.
    pub(super) reason: String,
}

impl FactsPolicy {
    /// Returns what files or `PuppetDB` know of a node. Blocking.
    fn find(&self, name: &str, room: &dyn RowRoom) -> Result<Option<Node>, ApiError> {
        match self.of_file(name, room)? {
            Some(node) => Ok(Some(node)),
            None => self.puppetdb.as_ref().map_or(Ok(None), |it| ask(&**it, name, room)),
        }
    }

    /// Returns whether what is stored of a node without facts may not be what it is classified by.
    pub(super) fn completes(&self) -> bool {
        self.directory.is_some() || self.puppetdb.is_some() || self.required
    }

    /// Returns what the facts file of a node says. Blocking.
    fn of_file(&self, name: &str, room: &dyn RowRoom) -> Result<Option<Node>, ApiError> {
        self.directory.as_ref().map_or(Ok(None), |it| ask(&**it, name, room))
    }

    /// Completes the node of a check-in without facts by its file, if it has one. Blocking.
    pub(super) fn complete_by_file(&self, bare: &Node) -> Result<Option<CompletedNode>, ApiError> {
        let found = self.of_file(&bare.name, &Unlimited)?;
        Ok(found.map(|it| self.completed(Some(it), bare.clone())))
    }

    /// Passes on nodes of check-ins without facts as they are classified: with the facts that files or `PuppetDB`
    /// know, else without, unless facts are required. `PuppetDB` is asked for many at once, until the client
    /// leaves. Blocking.
    pub(super) fn complete_all(
        &self,
        bare: Vec<Node>,
        watch: &ClientWatch,
        each: &mut dyn FnMut(CompletedNode),
    ) -> Result<(), ApiError> {
        let each = &mut |completed| {
            each(completed);
            ControlFlow::Continue(())
        };
        let mut bare = bare.into_iter().peekable();
        while bare.peek().is_some() {
            watch.check()?;
            self.complete_some(bare.by_ref().take(TOGETHER), watch, each)?;
        }
        Ok(())
    }

    /// Passes on nodes as [`Self::complete_all`] does, until `each` stops it; `PuppetDB` is asked for all of them at once.
    /// Blocking.
    fn complete_some(
        &self,
        bare: impl Iterator<Item = Node>,
        watch: &ClientWatch,
        each: &mut dyn FnMut(CompletedNode) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let mut unknown = Vec::new();
        for node in bare {
            let found = self.of_file(&node.name, &Unlimited)?;
            if found.is_none() && self.puppetdb.is_some() {
                unknown.push(node);
            } else if each(self.completed(found, node)).is_break() {
                return Ok(());
            }
        }
        self.complete_by_puppetdb(unknown, watch, each)
    }

    /// Passes on nodes that have no files as [`Self::complete_some`] does, until `each` stops it. Blocking.
    pub(super) fn complete_by_puppetdb(
        &self,
        unknown: Vec<Node>,
        watch: &ClientWatch,
        each: &mut dyn FnMut(CompletedNode) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let names: Vec<String> = unknown.iter().map(|it| it.name.clone()).collect();
        let mut unknown: HashMap<String, Node> =
            unknown.into_iter().map(|it| (it.name.clone(), it)).collect();
        let mut flow = ControlFlow::Continue(());
        if let Some(puppetdb) = self.puppetdb.as_deref().filter(|_| !unknown.is_empty()) {
            list_named(puppetdb, &names, &Unlimited, watch, &mut |NamedNode { name, node }| {
                if let Some(bare) = unknown.remove(&name) {
                    flow = each(match node {
                        Ok(found) => self.completed(Some(found), bare),
                        Err(reason) => CompletedNode::Unreadable(UnreadableNode { name, reason }),
                    });
                }
                flow
            })?;
        }
        let mut others = names.iter().filter_map(|it| unknown.remove(it));
        while flow.is_continue()
            && let Some(bare) = others.next()
        {
            flow = each(self.completed(None, bare));
        }
        Ok(())
    }

    fn completed(&self, found: Option<Node>, bare: Node) -> CompletedNode {
        // Facts that were not stored are not facts that the node does not have.
        let is_enough = !self.required || is_left_out(&bare.fact);
        match with_facts(found, &bare.trusted) {
            Some(node) => CompletedNode::Classified(node),
            None if is_enough => CompletedNode::Classified(bare),
            None => CompletedNode::FactsMissing(bare.name),
        }
    }

    /// Completes one node: what [`FactsPolicy::complete_all`] does for many. Blocking.
    pub(super) fn complete(
        &self,
        bare: Node,
        room: &dyn RowRoom,
    ) -> Result<CompletedNode, ApiError> {
        Ok(self.completed(self.find(&bare.name, room)?, bare))
    }
}

/// Where the trusted data of a node comes from that is asked about without facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustedSource {
    /// The request: its certificate or its body.
    Request,
    /// The check-ins.
    Store,
}

impl TrustedSource {
    /// Returns the source for a request without a body.
    pub(super) fn without_body(request: &NodeRequest) -> Self {
        if request.is_own() { Self::Request } else { Self::Store }
    }
}

/// What is known of a node.
pub(super) enum KnownNode {
    /// Its facts, and where they were found.
    Facts(ProvedNode, FactsSource),
    /// It has checked in without facts, and neither files nor `PuppetDB` have any.
    NoFacts(ProvedNode),
    /// Its name alone.
    Name(ProvedNode),
}

/// Where the facts of a node were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsSource {
    /// Its check-ins.
    CheckIn,
    /// A file of `--facts-dir`, or `PuppetDB`: they may change there at any time.
    External,
}

impl KnownNode {
    /// Returns the node to classify, with its certname: its name and trusted data alone where facts are optional.
    pub(super) fn for_classification(
        self,
        policy: &FactsPolicy,
        uri: &OriginalUri,
    ) -> Result<ProvedNode, ApiError> {
        let node = match self {
            Self::Facts(node, _) => node,
            Self::NoFacts(node) | Self::Name(node) if !policy.required => node,
            Self::NoFacts(node) | Self::Name(node) => {
                return Err(ApiError::facts_required(&node.name, uri));
            }
        };
        Ok(node.with_certname())
    }

    /// Returns the node, with its certname, if its classification is certain: its facts are known, or no rule reads
    /// facts.
    /// Otherwise a node whose facts are unknown would look like a node without facts.
    pub(super) fn for_lookup(
        self,
        snapshot: &Snapshot,
        uri: &OriginalUri,
    ) -> Result<ProvedNode, ApiError> {
        match self {
            Self::Facts(node, _) => Ok(node.with_certname()),
            Self::NoFacts(node) if !snapshot.reads_facts() => Ok(node.with_certname()),
            Self::NoFacts(node) => Err(ApiError::unknown_facts(&node.name, uri)),
            Self::Name(node) => Err(ApiError::unknown_node(&node.name, uri)),
        }
    }
}

/// Looks nodes up by name: in the check-ins, in files, in `PuppetDB`.
#[derive(Clone, Debug)]
pub(super) struct NodeLookup {
    pub(super) check_ins: CheckIns,
    pub(super) policy: FactsPolicy,
}

impl NodeLookup {
    /// Returns what is known of the node of a request.
    pub(super) async fn find(
        &self,
        request: &NodeRequest,
        source: TrustedSource,
    ) -> Result<KnownNode, ApiError> {
        let prove = |Node { fact, trusted, .. }| request.node(fact, trusted);
        let Stored { check_in, lost } = self.stored(request.name()).await?;
        let last = check_in.map(|it| it.node);
        // Facts without the trusted data that was lost are less than what was known of the node.
        let is_enough = |node: &Node| {
            lost.is_none() || source == TrustedSource::Request || !node.trusted.is_empty()
        };
        // A node can have asked without facts; then other sources may know some.
        let last = match last {
            Some(node) if has_stored_facts(&node) && is_enough(&node) => {
                return Ok(KnownNode::Facts(prove(node), FactsSource::CheckIn));
            }
            last => last,
        };
        let found = self.find_elsewhere(request.name()).await?;
        let proved = last.as_ref().map(|it| it.trusted.clone()).unwrap_or_default();
        if let Some(node) = with_facts(found, &proved) {
            return match lost.clone().filter(|_| !is_enough(&node)) {
                Some(error) => Err(error.into()),
                None => Ok(KnownNode::Facts(prove(node), FactsSource::External)),
            };
        }
        match (lost, last) {
            (Some(error), _) => Err(error.into()),
            // An answer that depends on what was not stored is an error.
            (None, Some(node)) if is_left_out(&node.fact) => {
                Ok(KnownNode::Facts(prove(node), FactsSource::CheckIn))
            }
            (None, Some(node)) => Ok(KnownNode::NoFacts(prove(node))),
            (None, None) => Ok(KnownNode::Name(request.node(Map::new(), Map::new()))),
        }
    }

    /// Returns what files or `PuppetDB` know of a node.
    async fn find_elsewhere(&self, name: &str) -> Result<Option<Node>, ApiError> {
        if self.policy.directory.is_some() {
            let (policy, name, room) =
                (self.policy.clone(), name.to_owned(), MemoryReservation::for_rows());
            let found = FACTS_FILES.run(move || policy.of_file(&name, &room)).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let Some(puppetdb) = self.policy.puppetdb.clone() else { return Ok(None) };
        let (name, room) = (name.to_owned(), MemoryReservation::for_rows());
        let found = run_blocking(move || ask(&*puppetdb, &name, &room)).await;
        found.map_err(|Panicked| ApiError::internal("The facts could not be read."))?
    }

    async fn stored(&self, name: &str) -> Result<Stored, StoreError> {
        let (store, name, room) =
            (self.check_ins.clone(), name.to_owned(), MemoryReservation::for_rows());
        let found = run_blocking(move || store.get_within(&name, &room)).await;
        found.unwrap_or_else(|Panicked| Err(StoreError::interrupted()))
    }
}

/// Returns whether facts of a node are stored: it may have checked in with some, none of which was.
pub(super) fn has_stored_facts(node: &Node) -> bool {
    !node.fact.is_empty() && !is_left_out(&node.fact)
}

/// Returns a node that was found with facts; without any, nothing is known. What the node proved when
/// it checked in stays proved.
fn with_facts(found: Option<Node>, proved: &Map<String, Value>) -> Option<Node> {
    let mut node = found.filter(|it| !it.fact.is_empty())?;
    if !has_trusted(&node) {
        node.trusted.clone_from(proved);
    }
    Some(node)
}

/// Returns whether more is known of what a node has proved than its name.
pub(super) fn has_trusted(node: &Node) -> bool {
    node.trusted.keys().any(|it| it != CERTNAME)
}
