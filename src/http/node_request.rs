//! The node that a request is about, with what its certificate proves.
//!
//! A request names a node and may bring trusted data along. Where the node itself asks, with its own
//! certificate, the trusted data of the certificate replaces the request's. Everything that classifies a
//! node for a request takes a [`ProvedNode`], and only a [`NodeRequest`] makes one, so no handler can
//! forget the replacement.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::{Map, Value};

use super::access::{Caller, Submitted};
use super::error::ApiError;
use super::path_parameter::PathParameter;
use super::request_context::RequestContext;
use super::types::NodeBody;
use crate::facts::trusted_data;
use crate::model::{CERTNAME, Node, has_mark, node_as_sent, remove_marks};
use crate::store::Certname;

/// A request about a node: the node's name, and whether the caller may speak for it.
#[derive(Debug)]
pub(super) struct NodeRequest {
    name: String,
    submitted: Submitted,
}

impl<S: Send + Sync> FromRequestParts<S> for NodeRequest {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let PathParameter(name) = PathParameter::from_request_parts(parts, state).await?;
        // Without a caller nothing is kept.
        let caller = RequestContext::caller(&parts.extensions);
        let submitted = caller.map_or(Submitted::AnswerOnly, |it| it.classifies(&name));
        Ok(Self { name, submitted })
    }
}

impl NodeRequest {
    /// Returns the request of an upload of facts, which names the node in its body.
    pub(super) fn of_upload(caller: &Caller, name: String) -> Self {
        Self { submitted: caller.uploads(&name), name }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the facts and trusted data of the request are kept for later requests.
    pub(super) fn is_kept(&self) -> bool {
        self.submitted.is_kept()
    }

    /// Returns whether the node itself asks: trusted data is then that of its certificate.
    pub(super) fn is_own(&self) -> bool {
        self.submitted.proved().is_some()
    }

    /// Returns the trusted data of the certificate, where the node itself asks.
    pub(super) fn proved_trusted(&self) -> Option<Map<String, Value>> {
        let certificate = self.submitted.proved()?;
        Some(trusted_data(&self.name, Some(certificate.clone())))
    }

    /// Returns the node that a body of the request submits.
    pub(super) fn submitted(&self, body: NodeBody) -> ProvedNode {
        self.node(body.fact, body.trusted)
    }

    /// Returns the node of the request with these facts, and with this trusted data unless a certificate
    /// proves other.
    pub(super) fn node(&self, fact: Map<String, Value>, trusted: Map<String, Value>) -> ProvedNode {
        let trusted = self.proved_trusted().unwrap_or(trusted);
        let node = Node { name: self.name.clone(), fact, trusted };
        ProvedNode { node, certname: Certname::AsSent }
    }
}

/// A node whose trusted data is that of its certificate, where the node itself asks.
#[derive(Clone, Debug)]
pub(super) struct ProvedNode {
    node: Node,
    certname: Certname,
}

impl ProvedNode {
    /// Returns the node with its certname among its trusted data: callers who may classify vouch for the
    /// name in the URL.
    pub(super) fn with_certname(mut self) -> Self {
        if !self.node.trusted.contains_key(CERTNAME) {
            self.certname = Certname::Completed;
            self.node = self.node.with_certname();
        }
        self
    }

    /// Returns which certname the trusted data has.
    pub(super) fn certname(&self) -> Certname {
        self.certname
    }

    /// Returns the node as it was received.
    pub(super) fn into_sent(mut self) -> Self {
        if self.certname == Certname::Completed {
            self.node.trusted.shift_remove(CERTNAME);
            self.certname = Certname::AsSent;
        }
        self
    }

    /// Returns the node without the marks of the store, which only the store may set.
    pub(super) fn without_marks(&self) -> Cow<'_, Self> {
        match node_as_sent(&self.node) {
            Cow::Borrowed(_) => Cow::Borrowed(self),
            Cow::Owned(node) => Cow::Owned(Self { node, certname: self.certname }),
        }
    }

    /// Returns the node without the marks of the store in its trusted data; its facts come from the store.
    pub(super) fn without_trusted_marks(&self) -> Cow<'_, Self> {
        if !has_mark(&self.node.trusted) {
            return Cow::Borrowed(self);
        }
        let mut sent = self.clone();
        let fact = std::mem::take(&mut sent.node.fact);
        remove_marks(&mut sent.node);
        sent.node.fact = fact;
        Cow::Owned(sent)
    }

    /// Returns the node without its facts.
    pub(super) fn without_facts(&self) -> Self {
        let Node { name, trusted, .. } = &self.node;
        let node = Node { trusted: trusted.clone(), ..Node::named(name.clone()) };
        Self { node, certname: self.certname }
    }

    pub(super) fn into_node(self) -> Node {
        self.node
    }
}

impl std::ops::Deref for ProvedNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::facts::CertificateFacts;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("expected an object, found {other}"),
        }
    }

    #[test]
    fn only_the_node_itself_is_proved_by_its_certificate() {
        let facts = CertificateFacts { certname: "web1".to_owned(), ..CertificateFacts::default() };
        let request = |submitted| NodeRequest { name: "web1".to_owned(), submitted };
        let forged = || object(json!({"extensions": {"pp_role": "admin"}}));
        let own = request(Submitted::KeptAsProved(Arc::new(facts))).node(Map::new(), forged());
        assert_eq!(own.trusted["certname"], "web1");
        assert_eq!(own.trusted["authenticated"], "remote");
        assert_ne!(own.trusted.get("extensions"), forged().get("extensions"));
        for submitted in [Submitted::Kept, Submitted::AnswerOnly] {
            assert_eq!(request(submitted).node(Map::new(), forged()).trusted, forged());
        }
    }
}
