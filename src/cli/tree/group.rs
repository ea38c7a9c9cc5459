//! Why a node is in a group, or why not.

use serde_json::{Value, json};

use super::draw::{Pen, condition};
use crate::diagnostic::Colour;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::Node;
use crate::rule::{Explained, Form, explain};

/// The rules of a group and its ancestors, explained for a node; the root group's first.
pub(super) struct Why<'h> {
    hierarchy: &'h Hierarchy,
    group: GroupIndex,
    node: &'h Node,
    rules: Vec<(GroupIndex, Option<Explained<'h>>)>,
}

impl<'h> Why<'h> {
    pub(super) fn of(hierarchy: &'h Hierarchy, group: GroupIndex, node: &'h Node) -> Self {
        let mut lineage: Vec<GroupIndex> = hierarchy.lineage(group).collect();
        lineage.reverse();
        let explained = |index: GroupIndex| {
            let rule = hierarchy.group(index).rule.as_deref();
            (index, rule.map(|rule| explain(rule, node)))
        };
        Self { hierarchy, group, node, rules: lineage.into_iter().map(explained).collect() }
    }

    /// Returns the first group whose rule does not hold.
    fn failing(&self) -> Option<(GroupIndex, &Explained<'h>)> {
        self.rules.iter().find_map(|(index, explained)| {
            let explained = explained.as_ref()?;
            (explained.outcome != Ok(true)).then_some((*index, explained))
        })
    }

    fn has_rule(&self) -> bool {
        self.hierarchy.group(self.group).rule.is_some()
    }

    fn matches(&self) -> bool {
        self.has_rule() && self.failing().is_none()
    }

    pub(super) fn draw(&self, colour: Colour) -> String {
        let mut pen = Pen::new(colour);
        let name = &self.hierarchy.group(self.group).name;
        let verdict = if self.matches() { "is in" } else { "is not in" };
        pen.line(
            0,
            &format!("{} {verdict} the group {}", self.node.name, pen.strong(name.as_str())),
        );
        if let Some((index, explained)) = self.failing() {
            let whose = if index == self.group {
                "its rule".to_owned()
            } else {
                format!("the rule of its ancestor {}", self.hierarchy.group(index).name)
            };
            let cause = first_cause(explained).map_or_else(String::new, |it| format!(": {it}"));
            pen.line(0, &format!("because {whose} does not hold{cause}"));
        } else if !self.has_rule() {
            pen.line(
                0,
                "because it has no rule and no pinned nodes; only its descendants can match",
            );
        }
        for (depth, (index, explained)) in self.rules.iter().enumerate() {
            let group = self.hierarchy.group(*index);
            pen.line(0, "");
            pen.line(depth, &pen.strong(group.name.as_str()));
            match explained {
                Some(explained) => condition(&mut pen, depth + 1, explained),
                None => pen.line(depth + 1, "no rule"),
            }
        }
        pen.finish()
    }

    pub(super) fn to_value(&self) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|(index, explained)| {
                let group = self.hierarchy.group(*index);
                json!({
                    "group": {"id": group.id, "name": group.name},
                    "rule": explained.as_ref().map(Explained::to_value),
                })
            })
            .collect();
        let group = self.hierarchy.group(self.group);
        json!({
            "name": self.node.name,
            "group": {"id": group.id, "name": group.name},
            "matches": self.matches(),
            "because": self.failing().and_then(|(_, explained)| first_cause(explained)),
            "rules": rules,
        })
    }
}

/// Returns the first comparison that keeps a condition from holding, with the value it saw.
fn first_cause(explained: &Explained<'_>) -> Option<String> {
    if let Err(error) = &explained.outcome {
        return Some(error.to_string());
    }
    cause(explained, true)
}

/// Returns the first comparison because of which a condition is not as wanted.
fn cause(explained: &Explained<'_>, wanted: bool) -> Option<String> {
    if explained.outcome == Ok(wanted) {
        return None;
    }
    match &explained.form {
        Form::And(terms) | Form::Or(terms) => terms.iter().find_map(|term| cause(term, wanted)),
        Form::Not(inner) => cause(inner, !wanted),
        Form::Test(test, value) => {
            let shown = if value.is_null() { "not there".to_owned() } else { value.to_string() };
            let comparison = crate::model::Condition::Test((*test).clone());
            let not = if wanted { "" } else { "not " };
            Some(format!("{} is {shown}, the rule wants {not}{comparison}", test.path))
        }
    }
}
