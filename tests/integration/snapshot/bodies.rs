//! Bodies of classification requests, read selectively and in full; `fuzz/` uses it too.

use clade::internals::model::Node;
use clade::internals::snapshot::Index;
use serde_json::Value;

/// What a body says, read in full: the node, and the id of the run.
pub(crate) fn in_full(body: &[u8]) -> Option<(Node, Option<String>, &'static str)> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let object = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Some(None),
        Some(Value::Object(map)) => Some(Some(map.clone())),
        Some(_) => None,
    };
    let fact = match object("fact")? {
        Some(fact) => Some(fact),
        None => object("facts")?,
    };
    let node = Node {
        name: "n".to_owned(),
        fact: fact.unwrap_or_default(),
        trusted: object("trusted")?.unwrap_or_default(),
    };
    let transaction = value.get("transaction_uuid").and_then(Value::as_str).map(str::to_owned);
    let is_object = |key: &&str| value.get(key).is_some_and(Value::is_object);
    let given = if value.get("trusted").is_some() { "trusted" } else { "other" };
    let shape = ["fact", "facts"].into_iter().find(is_object).unwrap_or(given);
    Some((node, transaction, shape))
}

/// Reads a body selectively and compares; returns whether it was not declined.
pub(crate) fn reads_the_same(index: &Index, body: &[u8]) -> bool {
    let Some(request) = index.read("n", body) else { return false };
    let shown = String::from_utf8_lossy(body);
    let (node, transaction, shape) =
        in_full(body).unwrap_or_else(|| panic!("not an error: {shown}"));
    assert_eq!((request.transaction, request.shape), (transaction, shape), "{shown}");
    let (quick, full) = (request.resolved, index.resolve(&node));
    assert_eq!(format!("{quick:?}"), format!("{full:?}"), "{shown}");
    let spliced: Value = serde_json::from_str(request.fact).unwrap();
    assert_eq!(spliced, Value::from(node.fact), "{shown}");
    let spliced: Value = serde_json::from_str(request.trusted).unwrap();
    assert_eq!(spliced, Value::from(node.trusted), "{shown}");
    true
}
