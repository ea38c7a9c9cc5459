//! How two answers differ.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::key::AnswerKey;
use super::record::AnswerRecord;
use super::values::{Defined, DefiningGroup};
use crate::model::{Value, same};

/// A value that a node got or lost, or of which the value or the defining group changed.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerChange {
    /// The key, such as `classes.apache.port`; `state`, `conflict` or `error` for what is said beside the
    /// values, or in place of them.
    pub key: String,
    /// The value before; none if there was none.
    pub before: Option<Value>,
    /// The value afterwards; none if there is none.
    pub after: Option<Value>,
    /// The group that defines the value afterwards, or did before if the value is gone; none for the node's
    /// own file, and for what no single group defines.
    pub because: Option<DefiningGroup>,
}

/// Lists how an answer differs from the one before it, if there is one.
///
/// It lists something for two answers with different digests, and nothing for two with the same.
pub fn changes(before: Option<&AnswerRecord>, after: &AnswerRecord) -> Vec<AnswerChange> {
    let (old, new) = (before.map(parts).unwrap_or_default(), parts(after));
    let all: BTreeSet<&Part> = old.keys().chain(new.keys()).collect();
    let change = |part: &Part| {
        let (old, new) = (old.get(part), new.get(part));
        if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            return None;
        }
        let shown = new.or(old)?;
        Some(AnswerChange {
            key: part.text(shown),
            before: old.map(|it| it.value.clone()),
            after: new.map(|it| it.value.clone()),
            because: shown.group.clone(),
        })
    };
    all.into_iter().filter_map(change).collect()
}

/// Returns whether a value and the group that defines it are the same; another name of the group is not
/// another group.
fn is_same(before: &Defined, after: &Defined) -> bool {
    let group = |it: &Defined| it.group.as_ref().map(|group| group.id);
    same(&before.value, &after.value) && group(before) == group(after)
}

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    State,
    Conflict,
    Error,
    Value(AnswerKey),
}

impl Part {
    fn text(&self, value: &Defined) -> String {
        match self {
            Self::State => "state".to_owned(),
            Self::Conflict => "conflict".to_owned(),
            Self::Error => "error".to_owned(),
            Self::Value(key) => value.key_text(key),
        }
    }
}

/// Returns the parts of an answer.
fn parts(answer: &AnswerRecord) -> BTreeMap<Part, Cow<'_, Defined>> {
    let said = |part, value: Value, group: Option<&DefiningGroup>| {
        (part, Cow::Owned(Defined { value, group: group.cloned() }))
    };
    let mut parts = BTreeMap::from([said(Part::State, answer.state().as_str().into(), None)]);
    match answer {
        AnswerRecord::Classified(answer) => {
            let value = |(key, it)| (Part::Value(AnswerKey::clone(key)), Cow::Borrowed(it));
            parts.extend(answer.values().iter().map(value));
        }
        AnswerRecord::Conflict(it) => {
            let value = json!({"summary": it.summary, "details": it.details});
            parts.extend([said(Part::Conflict, value, None)]);
            let group = |it: &DefiningGroup| {
                said(Part::Value(AnswerKey::Group(it.id)), it.name.as_str().into(), Some(it))
            };
            parts.extend(it.groups.iter().map(group));
        }
        AnswerRecord::Error(it) => {
            parts.extend([said(Part::Error, it.message.as_str().into(), Some(&it.group))]);
        }
    }
    parts
}
