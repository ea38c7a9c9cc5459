//! Where the values of an explanation are written.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::answer::AnswerKey;
use crate::blame::lines_of;
use crate::classification::{ClassSources, Explanation, Final, Outcome, ValueSource};
use crate::cli::repository::LoadedRepository;
use crate::diagnostic::{Place, visible};
use crate::hierarchy::Hierarchy;
use crate::http::types::LocatedValue;
use crate::model::{ClassName, GroupId, Key};

/// Who defines a value: a group, or the node itself.
type ValueDefiner = Option<GroupId>;

/// Where values are written, as `file:line`.
#[derive(Debug, Default)]
pub(super) struct WrittenPlaces(HashMap<(ValueDefiner, String), String>);

impl WrittenPlaces {
    /// Finds the values of an explanation in the files of a repository.
    pub(super) fn in_files(loaded: &LoadedRepository, explanation: &Explanation<'_>) -> Self {
        let Outcome::Classified(result) = &explanation.outcome else { return Self::default() };
        let hierarchy = &explanation.estate.hierarchy;
        let node = loaded.checked.node_origins().remove(&explanation.node.name);
        let mut by_file: BTreeMap<&str, Vec<(ValueDefiner, AnswerKey, &Place)>> = BTreeMap::new();
        for (source, key) in values(result) {
            let definer = definer(hierarchy, source);
            let place = match definer {
                Some(id) => loaded.checked.origins.get(&id),
                None => node.as_ref(),
            };
            if let Some(place) = place {
                by_file.entry(&place.file).or_default().push((definer, key, place));
            }
        }
        let mut places = HashMap::new();
        for (file, found) in by_file {
            let keys: Vec<_> = found.iter().map(|(_, key, place)| (key, *place)).collect();
            let lines = lines_of(&keys, loaded.text(file).unwrap_or_default());
            for ((definer, key, _), line) in found.iter().zip(lines) {
                let place = format!("{}:{line}", visible(file));
                places.insert((*definer, key.path().join(".")), place);
            }
        }
        Self(places)
    }

    /// Takes the places that a daemon names.
    pub(super) fn of_daemon(values: &[LocatedValue]) -> Self {
        let place = |it: &LocatedValue| {
            let place = format!("{}:{}", visible(it.file.as_ref()?), it.line?);
            Some(((it.group_id, it.key.clone()), place))
        };
        Self(values.iter().filter_map(place).collect())
    }

    /// Returns where a source defines a value, if that is known.
    pub(super) fn get(
        &self,
        hierarchy: &Hierarchy,
        source: ValueSource,
        key: &AnswerKey,
    ) -> Option<&str> {
        let definer = definer(hierarchy, source);
        self.0.get(&(definer, key.path().join("."))).map(String::as_str)
    }
}

fn definer(hierarchy: &Hierarchy, source: ValueSource) -> ValueDefiner {
    match source {
        ValueSource::Group(index) => Some(hierarchy.group(index).id),
        ValueSource::Node => None,
    }
}

/// Returns each value of an answer with each of its sources.
fn values(result: &Final<'_>) -> Vec<(ValueSource, AnswerKey)> {
    let mut found = Vec::new();
    let mut add = |sources: &BTreeSet<ValueSource>, key: &AnswerKey| {
        found.extend(sources.iter().map(|it| (*it, key.clone())));
    };
    add(&result.environment_sources, &AnswerKey::Environment);
    for (class, it) in &result.classes {
        add(&it.sources, &AnswerKey::Class((*class).clone()));
        each_key(class, it, &AnswerKey::Parameter, &mut add);
    }
    for (name, it) in &result.variables {
        add(&it.sources, &AnswerKey::Variable((*name).clone()));
    }
    for (class, it) in &result.config_data {
        each_key(class, it, &AnswerKey::ConfigData, &mut add);
    }
    found
}

fn each_key(
    class: &ClassName,
    keys: &ClassSources<'_>,
    key_of: &dyn Fn(ClassName, Key) -> AnswerKey,
    add: &mut dyn FnMut(&BTreeSet<ValueSource>, &AnswerKey),
) {
    for (key, it) in &keys.parameters {
        add(&it.sources, &key_of(class.clone(), (*key).clone()));
    }
}
