//! Explanations as trees for people.

use std::collections::{BTreeMap, BTreeSet};

use super::places::WrittenPlaces;
use super::shown::mask_seen;
use crate::answer::AnswerKey;
use crate::classification::{
    ClassSources, ConflictShare, Conflicts, Explanation, Final, Outcome, SourcedValue, ValueSource,
    keys_of_classes,
};
use crate::cli::page::{BOLD, Cell, GREEN, Page, RED};
use crate::diagnostic::{Colour, visible};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::masking::Masks;
use crate::model::{ClassName, Condition, Key, same};
use crate::rule::{Explained, ExplainedForm, explain};
use crate::wording::counted;

/// The longest value that is shown whole, in characters.
const VALUE_LIMIT: usize = 100;

/// Faint, for what explains something else.
const DIM: &str = "2";

/// Writes lines, with colours or without. What stands in them comes from a repository or a node, so it is made visible.
pub(super) struct Pen {
    text: String,
    colour: Colour,
}

impl Pen {
    pub(super) fn new(colour: Colour) -> Self {
        Self { text: String::new(), colour }
    }

    /// Writes a line of some parts.
    pub(super) fn line<const N: usize>(&mut self, depth: usize, parts: [Cell; N]) {
        let page = Page { width: None, colour: self.colour };
        self.text.extend(std::iter::repeat_n("  ", depth));
        // Nothing needs no colour.
        for part in parts.into_iter().filter(|it| !it.text.is_empty()) {
            self.text.push_str(&page.paint(&part, &visible(&part.text)));
        }
        self.text.push('\n');
    }

    /// Writes an empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Writes a line that others belong to.
    pub(super) fn heading(&mut self, depth: usize, text: &str) {
        self.line(depth, [Cell::painted(text, BOLD)]);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Which groups an explanation shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownGroups {
    /// Those that match.
    Matching,
    /// Those that do not match as well.
    All,
}

/// Draws the explanation of a node: what it gets, then why.
pub(super) fn draw(
    explanation: &Explanation<'_>,
    places: &WrittenPlaces,
    (shown, masks): (ShownGroups, &Masks),
    colour: Colour,
) -> String {
    let mut pen = Pen::new(colour);
    let hierarchy = &explanation.estate.hierarchy;
    pen.heading(0, &explanation.node.name);
    match &explanation.outcome {
        Outcome::Classified(result) => Values { hierarchy, places }.draw(&mut pen, result),
        Outcome::Conflict(conflicts) => differences(&mut pen, hierarchy, conflicts),
    }
    pen.gap();
    pen.heading(0, "groups that match");
    for found in &explanation.matches {
        let depth = hierarchy.lineage(found.group).count();
        let group = hierarchy.group(found.group);
        let leaf = if explanation.leaves.contains(&found.group) { "  (leaf)" } else { "" };
        pen.line(depth, [group.name.as_str().into(), Cell::painted(leaf, DIM)]);
        let mut explained = found.explain(explanation.node);
        mask_seen(&mut explained, masks);
        condition(&mut pen, depth + 1, &explained);
    }
    misses(&mut pen, explanation, shown, masks);
    pen.finish()
}

/// Draws a condition with all its terms and the values they saw.
pub(super) fn condition(pen: &mut Pen, depth: usize, explained: &Explained<'_>) {
    let mark = match explained.outcome {
        Ok(true) => Cell::painted("yes", GREEN),
        Ok(false) => Cell::painted("no ", RED),
        Err(_) => Cell::painted("?? ", RED),
    };
    let terms = |pen: &mut Pen, word: &str, terms: &[Explained<'_>]| {
        if let [only] = terms {
            return condition(pen, depth, only);
        }
        pen.line(depth, [mark.clone(), format!(" {word}").into()]);
        for term in terms {
            condition(pen, depth + 1, term);
        }
    };
    match &explained.form {
        ExplainedForm::And(inner) => terms(pen, "all of", inner),
        ExplainedForm::Or(inner) => terms(pen, "any of", inner),
        ExplainedForm::Not(inner) => {
            pen.line(depth, [mark, " not".into()]);
            condition(pen, depth + 1, inner);
        }
        ExplainedForm::Test(test, value) => {
            let comparison = Condition::Test((*test).clone());
            let seen = match &explained.outcome {
                Err(error) => error.to_string(),
                Ok(_) if value.is_null() => "not there".to_owned(),
                Ok(_) => format!("is {}", shorten(&value.to_string())),
            };
            pen.line(depth, [mark, format!(" {comparison}  ").into(), Cell::painted(seen, DIM)]);
        }
    }
}

/// Draws the groups whose parent matches but that do not match themselves.
fn misses(pen: &mut Pen, explanation: &Explanation<'_>, shown: ShownGroups, masks: &Masks) {
    let hierarchy = &explanation.estate.hierarchy;
    let matching: BTreeSet<GroupIndex> = explanation.matches.iter().map(|it| it.group).collect();
    // A group without a rule lets its descendants match through it.
    let open = |index: GroupIndex| {
        hierarchy
            .lineage(index)
            .skip(1)
            .all(|it| matching.contains(&it) || hierarchy.group(it).rule.is_none())
    };
    let missed: Vec<GroupIndex> = hierarchy
        .indexes()
        .filter(|index| {
            hierarchy.group(*index).rule.is_some() && !matching.contains(index) && open(*index)
        })
        .collect();
    if missed.is_empty() {
        return;
    }
    pen.gap();
    if shown == ShownGroups::Matching {
        let groups = if missed.len() == 1 { "group does" } else { "groups do" };
        let line = format!(
            "{} {groups} not match, below those that do: --all shows them, --group NAME one",
            missed.len()
        );
        return pen.line(0, [Cell::painted(line, DIM)]);
    }
    pen.heading(0, "groups that do not match, below those that do");
    for index in &missed {
        let group = hierarchy.group(*index);
        pen.line(1, [group.name.as_str().into()]);
        if let Some(rule) = &group.rule {
            let mut explained = explain(rule, explanation.node);
            mask_seen(&mut explained, masks);
            condition(pen, 2, &explained);
        }
    }
}

/// Returns the key of a class, where it says something by itself.
type ClassKey<'k> = &'k dyn Fn(&ClassName) -> Option<AnswerKey>;

/// Returns the key of a value of a class.
type ValueKey<'k> = &'k dyn Fn(ClassName, Key) -> AnswerKey;

/// What a node gets, with what defines each value and where that is written.
struct Values<'v> {
    hierarchy: &'v Hierarchy,
    places: &'v WrittenPlaces,
}

impl Values<'_> {
    fn draw(&self, pen: &mut Pen, result: &Final<'_>) {
        let from = &result.environment_sources;
        let from =
            if from.is_empty() { "".into() } else { self.from(from, &AnswerKey::Environment) };
        pen.line(1, [format!("environment {}", result.environment).into(), from]);
        let class = |it: &ClassName| Some(AnswerKey::Class(it.clone()));
        self.classes(pen, "classes", &result.classes, (&class, &AnswerKey::Parameter));
        if !result.variables.is_empty() {
            pen.gap();
            pen.heading(0, "variables");
            for (name, it) in &result.variables {
                let key = AnswerKey::Variable((*name).clone());
                self.value(pen, 1, (name.as_str(), &key), it);
            }
        }
        // The config data of a class are nothing without their keys.
        self.classes(pen, "config data", &result.config_data, (&|_| None, &AnswerKey::ConfigData));
    }

    fn classes(
        &self,
        pen: &mut Pen,
        title: &str,
        classes: &BTreeMap<&ClassName, ClassSources<'_>>,
        (class_key, key_of): (ClassKey<'_>, ValueKey<'_>),
    ) {
        if classes.is_empty() {
            return;
        }
        pen.gap();
        pen.heading(0, title);
        for (name, class) in classes {
            let from = class_key(name).map(|key| self.from(&class.sources, &key));
            pen.line(1, [name.as_str().into(), from.unwrap_or_else(|| "".into())]);
            for (key, it) in &class.parameters {
                let of_answer = key_of((*name).clone(), (*key).clone());
                self.value(pen, 2, (key.as_str(), &of_answer), it);
            }
        }
    }

    fn value(
        &self,
        pen: &mut Pen,
        depth: usize,
        (name, key): (&str, &AnswerKey),
        it: &SourcedValue<'_>,
    ) {
        let from = self.from(&it.sources, key);
        pen.line(depth, [format!("{name} = {}", shorten(&it.value.to_string())).into(), from]);
        if it.is_expanded() {
            let written = format!("written {}", shorten(&it.written.to_string()));
            pen.line(depth + 1, [Cell::painted(written, DIM)]);
        }
    }

    /// Says what defines a value, and where.
    fn from(&self, sources: &BTreeSet<ValueSource>, key: &AnswerKey) -> Cell {
        let of = |source: &ValueSource| {
            let name = match source {
                ValueSource::Group(index) => self.hierarchy.group(*index).name.as_str(),
                ValueSource::Node => "the node itself",
            };
            match self.places.get(self.hierarchy, *source, key) {
                Some(place) => format!("{place} ({name})"),
                None => format!("from {name}"),
            }
        };
        let all: Vec<String> = sources.iter().map(of).collect();
        Cell::painted(format!("  {}", all.join(", ")), DIM)
    }
}

/// Names what defines a value.
pub(in crate::cli) fn sources(hierarchy: &Hierarchy, sources: &BTreeSet<ValueSource>) -> String {
    let names: Vec<&str> = sources
        .iter()
        .map(|source| match source {
            ValueSource::Group(index) => hierarchy.group(*index).name.as_str(),
            ValueSource::Node => "the node itself",
        })
        .collect();
    names.join(", ")
}

/// Draws conflicts with the values side by side.
fn differences(pen: &mut Pen, hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) {
    pen.gap();
    pen.heading(0, "conflicts");
    all_differences(pen, hierarchy, conflicts, OF_ONE_NODE);
}

/// Returns the lines that show conflicts with their values: as many as one reads of one node of many.
pub(in crate::cli) fn conflict_lines(
    hierarchy: &Hierarchy,
    conflicts: &Conflicts<'_>,
) -> Vec<String> {
    let mut pen = Pen::new(Colour::Plain);
    all_differences(&mut pen, hierarchy, conflicts, OF_EACH_NODE);
    pen.finish().lines().map(|it| it.strip_prefix("  ").unwrap_or(it).to_owned()).collect()
}

/// How many leaves are shown with their values: each conflict of many groups has all of them, so those in many values
/// would be as many lines as both together.
#[derive(Clone, Copy, Debug)]
struct ShownLeaves {
    /// Of one value.
    of_value: usize,
    /// Of all: no value is shown behind the one with which there are as many.
    of_all: usize,
}

/// For who asks about one node.
const OF_ONE_NODE: ShownLeaves = ShownLeaves { of_value: usize::MAX, of_all: 100_000 };

/// For who asks about many nodes, of which each may be in the same conflict.
const OF_EACH_NODE: ShownLeaves = ShownLeaves { of_value: 20, of_all: 100 };

fn all_differences(
    pen: &mut Pen,
    hierarchy: &Hierarchy,
    conflicts: &Conflicts<'_>,
    most: ShownLeaves,
) {
    let mut shown = 0;
    if !conflicts.environment.is_empty() {
        let shares = conflicts.environment.iter().cloned();
        shown += one_difference(pen, hierarchy, "environment", shares, most.of_value);
    }
    let parameters = keys_of_classes(&conflicts.classes)
        .map(|(class, key, it)| (format!("class {class}, parameter {key}"), it));
    let variables = conflicts.variables.iter().map(|(name, it)| (format!("variable {name}"), it));
    let data = keys_of_classes(&conflicts.config_data)
        .map(|(class, key, it)| (format!("config data {class}::{key}"), it));
    let mut all = parameters.chain(variables).chain(data);
    for (what, leaves) in all.by_ref() {
        shown += one_difference(pen, hierarchy, &what, leaves.shares(), most.of_value);
        if shown >= most.of_all {
            break;
        }
    }
    let more = all.count();
    if more > 0 {
        pen.line(1, [format!("and {} more", counted(more, "value")).into()]);
    }
}

/// Draws the leaves of one value, at most so many, and returns how many: the first, with one that differs.
fn one_difference<'c>(
    pen: &mut Pen,
    hierarchy: &Hierarchy,
    what: &str,
    shares: impl Iterator<Item = ConflictShare<'c>>,
    most: usize,
) -> usize {
    pen.line(1, [what.into()]);
    let mut all: Vec<ConflictShare<'_>> = shares.collect();
    let more = all.len().saturating_sub(most);
    if more > 0 {
        let differs =
            |one: &ConflictShare<'_>| all.iter().position(|it| !same(&it.value, &one.value));
        if let Some(other) = all.first().and_then(differs).filter(|at| *at >= most) {
            all.swap(most - 1, other);
        }
        all.truncate(most);
    }
    let name = |group: GroupIndex| hierarchy.group(group).name.as_str();
    let width = all.iter().map(|it| name(it.from).chars().count()).max().unwrap_or_default();
    let shown = all.len();
    for it in all {
        let by = if it.from == it.defined_by {
            String::new()
        } else {
            format!("  set by {}", name(it.defined_by))
        };
        let value = shorten(&it.value.to_string());
        let line = format!("{from:width$}  {value}", from = name(it.from));
        pen.line(2, [line.into(), Cell::painted(by, DIM)]);
    }
    if more > 0 {
        pen.line(2, [format!("and {} more", counted(more, "group")).into()]);
    }
    shown
}

/// Cuts a value that is too long for a line.
pub(in crate::cli) fn shorten(text: &str) -> String {
    if text.chars().nth(VALUE_LIMIT).is_none() {
        return text.to_owned();
    }
    text.chars().take(VALUE_LIMIT - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::classification::conflicts;
    use crate::hierarchy::{Estate, root_group};
    use crate::model::{Group, GroupId, Interpolation};

    #[test]
    fn conflicts_of_many_groups_in_many_values_end_with_how_many_are_left() {
        let variables = |value: u8| -> Value {
            (0..300).map(|it| (format!("v{it:03}"), json!(value))).collect()
        };
        let group = |number: usize, sets: &Value| Group {
            id: format!("00000000-0000-4000-8000-{number:012}").parse().unwrap(),
            parent: GroupId::ROOT,
            name: format!("g{number}").parse().unwrap(),
            variables: serde_json::from_value(sets.clone()).unwrap(),
            ..root_group().unwrap()
        };
        let mut root = root_group().unwrap();
        root.variables = serde_json::from_value(variables(1)).unwrap();
        let differing = group(340, &variables(2));
        let others = (1..340).map(|number| group(number, &json!({})));
        let groups = [root, differing].into_iter().chain(others);
        let estate = Estate {
            hierarchy: Hierarchy::build(groups.collect()).unwrap(),
            individuals: std::sync::Arc::default(),
            environments: std::sync::Arc::default(),
            catalogues: std::sync::Arc::default(),
            interpolation: Interpolation::Off,
        };
        let all: Vec<GroupIndex> = estate.hierarchy.indexes().collect();
        let conflicts = conflicts(&estate, &all);
        let mut pen = Pen::new(Colour::Plain);
        all_differences(&mut pen, &estate.hierarchy, &conflicts, OF_ONE_NODE);
        let text = pen.finish();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        // 295 values of 340 groups are the first that are not below 100,000.
        assert_eq!(lines.len(), 295 * 341 + 1);
        assert_eq!(lines.last(), Some(&"and 5 values more"));
        // Of one node of many: the first groups, and one that has another value.
        let lines = conflict_lines(&estate.hierarchy, &conflicts);
        assert_eq!(lines.len(), 5 * 22 + 1);
        assert_eq!(lines.last().map(String::as_str), Some("and 295 values more"));
        let [values, more] = [&lines[1..21], &lines[21..22]];
        assert!(more[0].ends_with("and 320 groups more"), "{more:?}");
        assert!(values[0].ends_with("1  set by All Nodes"), "{values:?}");
        assert!(values[19].ends_with("g340  2"), "{values:?}");
    }
}
