//! Why a node's answer changed.

use serde_json::{Map, Value, json};

use super::check_in::FactsBody;
use super::compression::{pack, unpack};
use super::prepared::{Preparation, PreparedAnswer, PreparedCheckIn};
use crate::answer::{AnswerDigest, AnswerRecord, ChangeCause, GivenAnswer, MentionedFacts, cause};
use crate::mentioned::{FactDifference, MentionedPaths, differences};
use crate::model::{CommitId, Node, STORED_PATHS, is_masked};
use crate::snapshot::Snapshot;

/// How many bytes of facts are kept of a change; those that do not fit are left out.
const FACTS: usize = 4096;

/// What a node was answered before.
#[derive(Debug)]
pub(super) struct AnswerBefore {
    pub(super) given: GivenAnswer,
    /// The facts and trusted data that were known then, in JSON; as far as they are still known.
    pub(super) facts: Option<Vec<u8>>,
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
    let paths = match old_snapshot {
        Some(old) => answer.paths.paths.union(old.mentioned()),
        None => (*answer.paths.paths).clone(),
    };
    let old = before.facts.as_deref().and_then(|it| Facts::read(name, it, &paths));
    let new = Facts::read(name, &check_in.row.body, &paths);
    let (changed, found) = match (&old, &new) {
        (Some(old), Some(new)) => {
            let found = differences(&old.node, &new.node, &paths);
            let is_known = !old.is_partial && !new.is_partial;
            let is_same = found.is_empty() && is_known;
            (if is_same { MentionedFacts::Same } else { MentionedFacts::Changed }, found)
        }
        _ => (MentionedFacts::Changed, Vec::new()),
    };
    let classified = |facts: Option<&Facts>, snapshot: Option<&Snapshot>| {
        // A value that was withheld decides something else, or nothing.
        let facts = facts.filter(|it| !it.is_partial)?;
        Some(digest(snapshot?, &facts.node))
    };
    let cause = cause(
        Some(before.given),
        after,
        changed,
        || classified(old.as_ref(), Some(&answer.snapshot)),
        || classified(new.as_ref(), old_snapshot.map(|it| &**it)),
    );
    let commit_alone = cause == ChangeCause::Commit;
    (cause, write_facts(&found).filter(|_| !commit_alone || !found.is_empty()))
}

/// Facts and trusted data of a node.
#[derive(Debug)]
struct Facts {
    node: Node,
    /// Whether something was withheld when they were stored.
    is_partial: bool,
}

impl Facts {
    fn read(name: &str, text: &[u8], paths: &MentionedPaths) -> Option<Self> {
        let FactsBody { fact, trusted } = serde_json::from_slice(text).ok()?;
        let node = paths.keep(&Node { name: name.to_owned(), fact, trusted });
        let is_partial = [&node.fact, &node.trusted].into_iter().any(is_partial);
        Some(Self { node, is_partial })
    }
}

/// Returns whether something was withheld from facts that rules mention.
fn is_partial(facts: &Map<String, Value>) -> bool {
    fn is_withheld(value: &Value) -> bool {
        match value {
            Value::Array(elements) => elements.iter().any(is_withheld),
            Value::Object(fields) => is_partial(fields),
            value => is_masked(value),
        }
    }
    facts.iter().any(|(key, value)| key == STORED_PATHS || is_withheld(value))
}

/// Returns what a node gets from a snapshot.
fn digest(snapshot: &Snapshot, node: &Node) -> AnswerDigest {
    let index = snapshot.index();
    let groups = index.matching(&snapshot.estate.hierarchy, node);
    AnswerRecord::of_groups(&snapshot.estate, &node.name, groups.as_deref()).digest()
}

fn write_facts(found: &[FactDifference]) -> Option<Vec<u8>> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for FactDifference { path, before, after } in found {
        let one = json!([path, before, after]);
        bytes += one.to_string().len();
        if bytes > FACTS {
            break;
        }
        kept.push(one);
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
