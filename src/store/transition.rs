//! Why a node's answer changed.

use serde_json::{Value, json};

use super::check_in::FactsBody;
use super::compression::{pack, unpack};
use super::prepared::{Preparation, PreparedAnswer, PreparedCheckIn};
use crate::answer::{AnswerDigest, AnswerRecord, ChangeCause, GivenAnswer, MentionedFacts, cause};
use crate::mentioned::{FactDifference, differences};
use crate::model::{CommitId, Node};
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
    let old = before.facts.as_deref().and_then(|it| Facts::read(name, it));
    let new = check_in.knows_facts(&paths).then(|| Facts::read(name, &check_in.row.body)).flatten();
    let (changed, found) = match (&old, &new) {
        (Some(old), Some(new)) => {
            let found = differences(&old.0, &new.0, &paths);
            let is_same =
                found.is_empty() && paths.are_known_of(&old.0) && paths.are_known_of(&new.0);
            (if is_same { MentionedFacts::Same } else { MentionedFacts::Changed }, found)
        }
        _ => (MentionedFacts::Changed, Vec::new()),
    };
    let classified = |facts: Option<&Facts>, snapshot: Option<&Snapshot>| {
        let snapshot = snapshot?;
        // A value that was withheld decides something else, or nothing.
        let facts = facts.filter(|it| snapshot.mentioned().are_known_of(&it.0))?;
        Some(digest(snapshot, &facts.0))
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

/// A node as it was stored.
#[derive(Debug)]
struct Facts(Node);

impl Facts {
    fn read(name: &str, text: &[u8]) -> Option<Self> {
        let FactsBody { fact, trusted } = serde_json::from_slice(text).ok()?;
        Some(Self(Node { name: name.to_owned(), fact, trusted }))
    }
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
