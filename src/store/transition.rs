//! Why a node's answer changed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::check_in::{Certname, FactsBody};
use super::compression::{pack, unpack};
use super::prepared::{Preparation, PreparedAnswer, PreparedCheckIn};
use crate::answer::{AnswerDigest, AnswerRecord, ChangeCause, GivenAnswer, MentionedFacts, cause};
use crate::mentioned::{FactDifference, MentionedPaths, differences};
use crate::model::{CommitId, Node};
use crate::snapshot::Snapshot;

/// How many bytes of facts are kept of a change; those that do not fit are left out.
const FACTS: usize = 4096;

/// What a node was answered before.
#[derive(Debug)]
pub(super) struct AnswerBefore {
    pub(super) given: GivenAnswer,
    /// The facts and trusted data that were known then, in JSON; as far as they are still known.
    pub(super) facts: Option<Arc<Vec<u8>>>,
    /// Which certname they were answered by, in so far as they do not say it.
    pub(super) certname: Certname,
}

/// Returns what changed an answer, and the facts that rules mention and that changed, as they are kept.
pub(super) fn explain(
    name: &str,
    before: Option<&AnswerBefore>,
    check_in: &PreparedCheckIn,
    answer: &PreparedAnswer,
    preparation: &Preparation,
) -> (ChangeCause, Option<Vec<u8>>) {
    let Some(before) = before else { return (ChangeCause::First, None) };
    let after = GivenAnswer { digest: answer.content.digest, commit: answer.snapshot.commit };
    let old_snapshot = preparation.snapshot(before.given.commit);
    let paths = &answer.paths.paths;
    let of_both = old_snapshot.map(|it| it.mentioned());
    let of_both = of_both.filter(|it| !paths.covers(it)).map(|it| paths.union(it));
    let paths = of_both.as_ref().unwrap_or(paths);
    let old = before.facts.as_deref().and_then(|it| read_node(name, it));
    let old = old.map(|it| before.certname.answered_node(it));
    let new = check_in.knows_facts(paths).then(|| match &of_both {
        Some(paths) => check_in.row.mentioned(name, paths).ok(),
        // They are found already.
        None => read_node(name, &answer.inputs),
    });
    let new = new.flatten();
    let (changed, found) = match (&old, &new) {
        (Some(old), Some(new)) => compare(old, new, paths),
        _ => (MentionedFacts::Changed, Vec::new()),
    };
    let classified = |node: Option<&Node>, snapshot: Option<&Snapshot>| {
        let snapshot = snapshot?;
        // A value that was withheld decides something else, or nothing.
        let node = node.filter(|it| snapshot.mentioned().are_known_of(it))?;
        Some(digest(snapshot, node))
    };
    let cause = cause(
        Some(before.given),
        after,
        changed,
        || classified(old.as_ref(), Some(&answer.snapshot)),
        || classified(new.as_ref(), old_snapshot.map(|it| &**it)),
    );
    (cause, write_facts(&found))
}

/// Reads a node with the facts that decided an answer.
fn read_node(name: &str, text: &[u8]) -> Option<Node> {
    let FactsBody { fact, trusted } = serde_json::from_slice(text).ok()?;
    Some(Node { name: name.to_owned(), fact, trusted })
}

/// Returns whether the mentioned facts of a node are as they were, and those that are not.
fn compare(
    before: &Node,
    after: &Node,
    paths: &MentionedPaths,
) -> (MentionedFacts, Vec<FactDifference>) {
    // As after most commits; there may be thousands of paths.
    let is_equal = before == after;
    let found = if is_equal { Vec::new() } else { differences(before, after, paths) };
    let is_known = |node| paths.are_known_of(node);
    let is_same = found.is_empty() && is_known(before) && (is_equal || is_known(after));
    (if is_same { MentionedFacts::Same } else { MentionedFacts::Changed }, found)
}

/// Returns what a node gets from a snapshot.
fn digest(snapshot: &Snapshot, node: &Node) -> AnswerDigest {
    let index = snapshot.index();
    let groups = index.matching(&snapshot.estate.hierarchy, node);
    AnswerRecord::of_groups(&snapshot.estate, node, groups.as_deref()).digest()
}

fn write_facts(found: &[FactDifference]) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for FactDifference { path, before, after } in found {
        let one = json!([path, before, after]);
        let size = one.to_string().len();
        if bytes + size <= FACTS {
            bytes += size;
            kept.push(one);
        }
    }
    if kept.is_empty() {
        return None;
    }
    pack(Value::Array(kept).to_string().as_bytes()).ok()
}

/// Reads what is kept of the facts that changed.
pub(super) fn read_facts(packed: &[u8]) -> Option<Vec<FactDifference>> {
    let text = unpack(packed, 2 * FACTS).ok()?;
    let kept: Vec<(String, Option<Value>, Option<Value>)> = serde_json::from_slice(&text).ok()?;
    let fact = |(path, before, after)| FactDifference { path, before, after };
    Some(kept.into_iter().map(fact).collect())
}

/// Reads the id of a commit as it is kept.
pub(super) fn read_commit(bytes: &[u8]) -> Option<CommitId> {
    bytes.try_into().ok().map(CommitId::from_bytes)
}
