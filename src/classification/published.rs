//! Classifications in the form that the classifier API publishes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::conflict::ClassDifferences;
use super::interpolation::facts_in;
use super::{
    ClassSources, ConflictShare, ConflictingLeaves, Conflicts, Explanation, Final, Match, Outcome,
    SourcedValue, ValueSource,
};
use crate::hierarchy::{
    GroupIndex, Hierarchy, classes_to_value, group_to_value, inherited_classes_to_value,
};
use crate::model::{ClassName, Key, Node, memory_of, same};

/// A version of the classified document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `groups` are ids.
    V1,
    /// `groups` are objects of id and name, by name.
    V2,
}

/// Writes the classified document: `name`, `groups`, `environment`, `classes`, `parameters`, and
/// `config_data` when there is any.
pub fn classified(explanation: &Explanation<'_>, result: &Final<'_>, version: Version) -> Value {
    let hierarchy = &explanation.estate.hierarchy;
    let matching = || explanation.matches.iter().map(|it| hierarchy.group(it.group));
    let groups: Value = match version {
        Version::V1 => matching().map(|group| group.id.to_string()).collect(),
        Version::V2 => {
            let mut groups: Vec<_> = matching().collect();
            groups.sort_by_key(|group| (&group.name, group.id));
            groups
                .into_iter()
                .map(|group| json!({"id": group.id.to_string(), "name": group.name.as_str()}))
                .collect()
        }
    };
    let mut fields = Map::new();
    fields.insert("name".to_owned(), explanation.node.name.as_str().into());
    fields.insert("groups".to_owned(), groups);
    fields.insert("environment".to_owned(), result.environment.as_str().into());
    fields.insert("classes".to_owned(), classes(&result.classes));
    fields.insert("parameters".to_owned(), values(&result.variables));
    if !result.config_data.is_empty() {
        fields.insert("config_data".to_owned(), classes(&result.config_data));
    }
    Value::Object(fields)
}

/// Writes config data as Hiera reads it: `{"class::key": value}`.
pub fn hiera(result: &Final<'_>) -> Value {
    let flat = result.config_data.iter().flat_map(|(class, it)| {
        it.parameters
            .iter()
            .map(move |(key, it)| (format!("{class}::{key}"), it.value.as_ref().clone()))
    });
    Value::Object(flat.collect())
}

fn classes(classes: &BTreeMap<&ClassName, ClassSources<'_>>) -> Value {
    let parameters =
        classes.iter().map(|(name, class)| (name.to_string(), values(&class.parameters)));
    Value::Object(parameters.collect())
}

fn values<K: ToString>(values: &BTreeMap<&K, SourcedValue<'_>>) -> Value {
    Value::Object(
        values.iter().map(|(key, it)| (key.to_string(), it.value.as_ref().clone())).collect(),
    )
}

/// Writes the explanation document.
pub fn explanation(explanation: &Explanation<'_>) -> Value {
    explanation_with(explanation.node.clone(), explanation_fields(explanation))
}

/// Writes the explanation document around the facts of its node, which may be large: they are not copied.
pub fn explanation_with(node: Node, fields: Map<String, Value>) -> Value {
    let mut received = Map::new();
    received.insert("name".to_owned(), node.name.into());
    received.insert("fact".to_owned(), node.fact.into());
    received.insert("trusted".to_owned(), node.trusted.into());
    let mut document = Map::new();
    document.insert("node_as_received".to_owned(), received.into());
    document.extend(fields);
    Value::Object(document)
}

/// Writes why each group matches.
pub fn match_explanations(explanation: &Explanation<'_>) -> Value {
    let hierarchy = &explanation.estate.hierarchy;
    let explain = |it: &Match<'_>| {
        (hierarchy.group(it.group).id.to_string(), it.explain(explanation.node).to_value())
    };
    Value::Object(explanation.matches.iter().map(explain).collect())
}

/// Writes what the node gets, unless groups are in conflict.
pub fn final_classification(explanation: &Explanation<'_>) -> Option<Value> {
    let Outcome::Classified(result) = &explanation.outcome else { return None };
    let mut fields = Map::new();
    fields.insert("environment".to_owned(), result.environment.as_str().into());
    fields.insert("classes".to_owned(), classes(&result.classes));
    fields.insert("variables".to_owned(), values(&result.variables));
    if !result.config_data.is_empty() {
        fields.insert("config_data".to_owned(), classes(&result.config_data));
    }
    Some(fields.into())
}

/// Writes all of the explanation document but the node.
pub fn explanation_fields(explanation: &Explanation<'_>) -> Map<String, Value> {
    let hierarchy = &explanation.estate.hierarchy;
    let id = |index: GroupIndex| hierarchy.group(index).id.to_string();
    let leaves: Map<String, Value> = explanation
        .leaves
        .iter()
        .map(|leaf| (id(*leaf), group_to_value(hierarchy.group(*leaf))))
        .collect();
    let inherited: Map<String, Value> = explanation
        .inherited()
        .map(|(leaf, it)| {
            let variables: Map<String, Value> = it
                .variables
                .iter()
                .map(|(name, it)| (name.to_string(), it.value.clone()))
                .collect();
            let mut fields = Map::new();
            fields.insert("environment".to_owned(), it.environment.as_str().into());
            fields.insert("classes".to_owned(), inherited_classes_to_value(&it.classes));
            fields.insert("variables".to_owned(), variables.into());
            if !it.config_data.is_empty() {
                let data = inherited_classes_to_value(&it.config_data);
                fields.insert("config_data".to_owned(), data);
            }
            (id(leaf), Value::Object(fields))
        })
        .collect();
    let mut document = Map::new();
    let mut insert = |key: &str, value: Value| document.insert(key.to_owned(), value);
    insert("match_explanations", match_explanations(explanation));
    insert("leaf_groups", leaves.into());
    insert("inherited_classifications", inherited.into());
    insert("individual_classification", individual(explanation));
    if let Outcome::Conflict(conflicts) = &explanation.outcome {
        insert("conflicts", conflict_details(hierarchy, conflicts));
    }
    document.extend(explained_values(explanation));
    document
}

/// Writes what the node gets, and what defines it, as the explanation document has both.
pub fn explained_values(explanation: &Explanation<'_>) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Outcome::Classified(result) = &explanation.outcome {
        let classification = final_classification(explanation);
        fields.insert("final_classification".to_owned(), classification.unwrap_or_default());
        fields.insert("classification_sources".to_owned(), sources(explanation, result));
    }
    fields
}

fn individual(explanation: &Explanation<'_>) -> Value {
    let Some(own) = explanation.individual else {
        return json!({"classes": {}, "variables": {}});
    };
    let variables: Map<String, Value> =
        own.variables.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    let mut fields = Map::new();
    fields.insert("classes".to_owned(), classes_to_value(&own.classes));
    fields.insert("variables".to_owned(), variables.into());
    if !own.config_data.is_empty() {
        fields.insert("config_data".to_owned(), classes_to_value(&own.config_data));
    }
    Value::Object(fields)
}

/// The key of a class's own sources among those of its parameters.
const CLASS_SOURCES: &str = "puppetlabs.classifier/sources";

fn sources(explanation: &Explanation<'_>, result: &Final<'_>) -> Value {
    let hierarchy = &explanation.estate.hierarchy;
    let list = |sources: &BTreeSet<ValueSource>| -> Value {
        let name = |source: &ValueSource| match source {
            ValueSource::Group(index) => hierarchy.group(*index).id.to_string(),
            ValueSource::Node => "node".to_owned(),
        };
        sources.iter().map(name).collect()
    };
    let sourced = |it: &SourcedValue<'_>| {
        let mut fields = Map::new();
        fields.insert("value".to_owned(), it.value.as_ref().clone());
        fields.insert("sources".to_owned(), list(&it.sources));
        if it.is_expanded() {
            fields.insert("written".to_owned(), it.written.clone());
            fields.insert("facts".to_owned(), facts_in(it.written, explanation.node).into());
        }
        Value::Object(fields)
    };
    let parameters = |parameters: &BTreeMap<&Key, SourcedValue<'_>>| -> Map<String, Value> {
        parameters.iter().map(|(key, it)| (key.to_string(), sourced(it))).collect()
    };
    let classes: Map<String, Value> = result
        .classes
        .iter()
        .map(|(name, class)| {
            let own = (CLASS_SOURCES.to_owned(), list(&class.sources));
            let all: Map<String, Value> =
                std::iter::once(own).chain(parameters(&class.parameters)).collect();
            (name.to_string(), all.into())
        })
        .collect();
    let variables: Map<String, Value> =
        result.variables.iter().map(|(name, it)| (name.to_string(), sourced(it))).collect();
    let config_data: Map<String, Value> = result
        .config_data
        .iter()
        .map(|(name, class)| (name.to_string(), parameters(&class.parameters).into()))
        .collect();
    let mut fields = Map::new();
    fields.insert(
        "environment".to_owned(),
        json!({"value": result.environment.as_str(), "sources": list(&result.environment_sources)}),
    );
    fields.insert("classes".to_owned(), classes.into());
    fields.insert("variables".to_owned(), variables.into());
    if !config_data.is_empty() {
        fields.insert("config_data".to_owned(), config_data.into());
    }
    Value::Object(fields)
}

/// How many bytes of JSON the details of a conflict have, about: each share has two whole groups, so those of large
/// groups that differ in many values would be as long as both together squared. Two sides of the first value are written
/// however long they are.
const DETAILS: usize = 4 << 20;

/// How many bytes of memory a value of the details takes for each byte of JSON before it counts as longer than its text:
/// small values take many times their text.
const MEMORY_OF_A_BYTE: usize = 8;

/// Returns how much of the details a value takes.
fn detail_size(value: &Value) -> usize {
    value.to_string().len().max(memory_of(value) / MEMORY_OF_A_BYTE)
}

/// Writes the details of a conflict, with whole groups: the first values where all would be too long, each with all its
/// shares, of the first at least two that differ.
pub fn conflict_details(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> Value {
    let mut writer = DetailsWriter { hierarchy, sizes: BTreeMap::new(), values: 0, left: DETAILS };
    let mut details = Map::new();
    if let Some(environment) = writer.list(&conflicts.environment) {
        details.insert("environment".to_owned(), environment);
    }
    for (key, value) in [
        ("variables", writer.lists(&conflicts.variables)),
        ("classes", writer.by_class(&conflicts.classes)),
        ("config_data", writer.by_class(&conflicts.config_data)),
    ] {
        if let Some(value) = value {
            details.insert(key.to_owned(), value);
        }
    }
    Value::Object(details)
}

/// Returns two shares that differ, however large they are, and in their order the others for which there is room.
fn first_sides<'s, 'h>(
    shares: &'s [ConflictShare<'h>],
    sizes: &[usize],
    room: usize,
) -> Vec<&'s ConflictShare<'h>> {
    let differs = |it: &ConflictShare<'_>| {
        let differ = |one: &Value, it: &Value| !std::ptr::eq(one, it) && !same(one, it);
        shares.first().is_some_and(|one| differ(&one.value, &it.value))
    };
    let other = shares.iter().position(differs);
    let is_side = |at: usize| at == 0 || Some(at) == other;
    let sides: usize =
        sizes.iter().enumerate().filter(|(at, _)| is_side(*at)).map(|(_, size)| size).sum();
    let mut left = room.saturating_sub(sides);
    let mut shown = Vec::new();
    for (at, (share, size)) in shares.iter().zip(sizes).enumerate() {
        if is_side(at) {
            shown.push(share);
        } else if *size <= left {
            left -= size;
            shown.push(share);
        } else {
            // Behind the first that does not fit there is none.
            left = 0;
        }
    }
    shown
}

/// Writes the values of a conflict as long as there is room.
struct DetailsWriter<'h> {
    hierarchy: &'h Hierarchy,
    /// How long each group is.
    sizes: BTreeMap<GroupIndex, usize>,
    /// How many values are written.
    values: usize,
    /// How many bytes there is room for; none behind a value that did not fit.
    left: usize,
}

impl DetailsWriter<'_> {
    /// Writes all shares of one value; none if there is no room for all: one side of a conflict explains nothing.
    fn list(&mut self, shares: &[ConflictShare<'_>]) -> Option<Value> {
        if shares.is_empty() {
            return None;
        }
        // One large value may be that of all leaves.
        let mut known: HashMap<*const Value, usize> = HashMap::new();
        let sizes: Vec<usize> = shares
            .iter()
            .map(|it| {
                let value = match &it.value {
                    Cow::Borrowed(value) => *known
                        .entry(std::ptr::from_ref(*value))
                        .or_insert_with(|| detail_size(value)),
                    Cow::Owned(value) => detail_size(value),
                };
                self.size(it.from) + self.size(it.defined_by) + value
            })
            .collect();
        let size: usize = sizes.iter().sum();
        let shown: Vec<&ConflictShare<'_>> = if size <= self.left {
            self.left -= size;
            shares.iter().collect()
        } else if self.values == 0 {
            let room = std::mem::take(&mut self.left);
            first_sides(shares, &sizes, room)
        } else {
            self.left = 0;
            return None;
        };
        self.values += 1;
        let group = |index| group_to_value(self.hierarchy.group(index));
        let share = |it: &ConflictShare<'_>| json!({"value": it.value, "from": group(it.from), "defined_by": group(it.defined_by)});
        Some(shown.into_iter().map(share).collect())
    }

    fn size(&mut self, index: GroupIndex) -> usize {
        let hierarchy = self.hierarchy;
        let size = || detail_size(&group_to_value(hierarchy.group(index)));
        *self.sizes.entry(index).or_insert_with(size)
    }

    fn lists<K: ToString>(
        &mut self,
        values: &BTreeMap<&K, ConflictingLeaves<'_>>,
    ) -> Option<Value> {
        let mut lists = Map::new();
        for (key, leaves) in values {
            // What has more leaves than bytes are left is not even listed, but for the first value.
            if self.values > 0 && leaves.count() > self.left {
                self.left = 0;
                break;
            }
            let shares: Vec<ConflictShare<'_>> = leaves.shares().collect();
            if let Some(list) = self.list(&shares) {
                lists.insert(key.to_string(), list);
            }
        }
        (!lists.is_empty()).then_some(lists.into())
    }

    fn by_class(&mut self, classes: &ClassDifferences<'_>) -> Option<Value> {
        let lists = classes.iter().filter_map(|(key, it)| Some((key.to_string(), self.lists(it)?)));
        let lists: Map<String, Value> = lists.collect();
        (!lists.is_empty()).then_some(lists.into())
    }
}
