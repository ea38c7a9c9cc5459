//! Answers as JSON, and what makes two of them the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::digest::AnswerDigest;
use super::key::AnswerKey;
use super::record::{AnswerRecord, ConflictRecord, RuleFailure};
use super::values::{Answer, Defined, DefiningGroup};
use crate::model::{ClassName, GroupId, Key, Map, Value, VariableName, has_more_values};

/// How many JSON values an answer may have to be read.
const VALUES: usize = 1_000_000;

/// A text is not an answer.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableAnswer {
    /// It has too many values.
    #[error("the answer has over {VALUES} JSON values, the most that one may have")]
    TooLarge,
    /// It has another form.
    #[error("the answer makes no sense: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A group defines a value, but its name is missing.
    #[error("the answer makes no sense: the group {0} has no name")]
    Nameless(GroupId),
}

/// An answer as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenAnswer {
    Classified(WrittenValues),
    Conflict(ConflictRecord),
    Error(RuleFailure),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct WrittenValues {
    /// The groups that match.
    groups: Vec<GroupId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    environment: Option<WrittenValue>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    classes: BTreeMap<ClassName, WrittenClass>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<VariableName, WrittenValue>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    config_data: BTreeMap<ClassName, BTreeMap<Key, WrittenValue>>,
    /// The names of all groups.
    names: BTreeMap<GroupId, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenValue {
    value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<GroupId>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct WrittenClass {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<GroupId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<Key, WrittenValue>,
}

/// What is written of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Everything.
    Whole,
    /// What makes it the same as another: without the spelling of numbers, and without the names of groups
    /// that do not match but are the parents of those that do. To rename such a parent changes no answer.
    Identity,
}

impl AnswerRecord {
    /// Writes the answer as JSON; equal answers are written alike.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.write(Form::Whole)
    }

    /// Returns what identifies the answer.
    pub fn digest(&self) -> AnswerDigest {
        AnswerDigest::of_text(&self.write(Form::Identity))
    }

    /// Reads what [`Self::to_bytes`] has written.
    ///
    /// # Errors
    ///
    /// Returns an error if it is something else, or too large.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableAnswer> {
        if has_more_values(bytes, VALUES) {
            return Err(UnreadableAnswer::TooLarge);
        }
        Ok(match serde_json::from_slice(bytes)? {
            WrittenAnswer::Classified(values) => Self::Classified(values.read()?),
            WrittenAnswer::Conflict(conflict) => Self::Conflict(conflict),
            WrittenAnswer::Error(failure) => Self::Error(failure),
        })
    }

    fn write(&self, form: Form) -> Vec<u8> {
        let written = match self {
            Self::Classified(answer) => WrittenAnswer::Classified(WrittenValues::of(answer, form)),
            Self::Conflict(it) => {
                let details = sorted(&it.details, form);
                WrittenAnswer::Conflict(ConflictRecord { details, ..it.clone() })
            }
            Self::Error(it) => WrittenAnswer::Error(it.clone()),
        };
        // Text keys and JSON values are all that there is, so nothing can fail.
        serde_json::to_vec(&written).unwrap_or_default()
    }
}

impl WrittenValues {
    fn of(answer: &Answer, form: Form) -> Self {
        let mut written = Self::default();
        for (key, defined) in answer.values() {
            written.add(key, defined, form);
        }
        if form == Form::Identity {
            let matching: BTreeSet<GroupId> = written.groups.iter().copied().collect();
            written.names.retain(|id, _| matching.contains(id));
        }
        written
    }

    fn add(&mut self, key: &AnswerKey, defined: &Defined, form: Form) {
        if let Some(group) = &defined.group {
            self.names.entry(group.id).or_insert_with(|| group.name.clone());
        }
        let from = defined.group.as_ref().map(|it| it.id);
        let value = || WrittenValue { value: sorted(&defined.value, form), from };
        match key {
            AnswerKey::Environment => self.environment = Some(value()),
            AnswerKey::Group(id) => self.groups.push(*id),
            AnswerKey::Class(class) => self.classes.entry(class.clone()).or_default().from = from,
            AnswerKey::Parameter(class, key) => {
                let class = self.classes.entry(class.clone()).or_default();
                class.parameters.insert(key.clone(), value());
            }
            AnswerKey::Variable(name) => {
                self.variables.insert(name.clone(), value());
            }
            AnswerKey::ConfigData(class, key) => {
                let class = self.config_data.entry(class.clone()).or_default();
                class.insert(key.clone(), value());
            }
        }
    }

    fn read(self) -> Result<Answer, UnreadableAnswer> {
        let names = self.names;
        let group = |from: Option<GroupId>| {
            let named = |id| match names.get(&id) {
                Some(name) => Ok(DefiningGroup { id, name: name.clone() }),
                None => Err(UnreadableAnswer::Nameless(id)),
            };
            from.map(named).transpose()
        };
        let mut values = BTreeMap::new();
        let mut insert = |key, value, from| {
            values.insert(key, Defined { value, group: group(from)? });
            Ok::<(), UnreadableAnswer>(())
        };
        for id in self.groups {
            let name = names.get(&id).map(String::as_str);
            insert(AnswerKey::Group(id), name.unwrap_or_default().into(), Some(id))?;
        }
        if let Some(it) = self.environment {
            insert(AnswerKey::Environment, it.value, it.from)?;
        }
        for (class, it) in self.classes {
            insert(AnswerKey::Class(class.clone()), Value::Object(Map::new()), it.from)?;
            for (key, it) in it.parameters {
                insert(AnswerKey::Parameter(class.clone(), key), it.value, it.from)?;
            }
        }
        for (name, it) in self.variables {
            insert(AnswerKey::Variable(name), it.value, it.from)?;
        }
        for (class, keys) in self.config_data {
            for (key, it) in keys {
                insert(AnswerKey::ConfigData(class.clone(), key), it.value, it.from)?;
            }
        }
        Ok(Answer::from_values(values))
    }
}

/// Returns a value with the keys of its objects in order.
fn sorted(value: &Value, form: Form) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|it| it.0);
            let fields = fields.into_iter().map(|(key, it)| (key.clone(), sorted(it, form)));
            Value::Object(fields.collect())
        }
        Value::Array(elements) => elements.iter().map(|it| sorted(it, form)).collect(),
        Value::Number(number) if form == Form::Identity => spelled_alike(number),
        other => other.clone(),
    }
}

/// Returns the one spelling of all numbers that [`crate::model::same`] takes for the same.
fn spelled_alike(number: &serde_json::Number) -> Value {
    let text = number.as_str();
    if text == "-0" {
        return 0.into();
    }
    let float = text.contains(['.', 'e', 'E']).then(|| text.parse::<f64>().ok()).flatten();
    let float = float.and_then(serde_json::Number::from_f64);
    Value::Number(float.unwrap_or_else(|| number.clone()))
}
