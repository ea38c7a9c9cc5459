//! Why a node is in a group, or why not.

use serde_json::{Value, json};

use super::draw::{Pen, condition, shorten};
use super::shown::mask_seen;
use crate::cli::page::{BOLD, Cell};
use crate::diagnostic::Colour;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::masking::Masks;
use crate::model::{Condition, Node, Test};
use crate::rule::{Explained, ExplainedForm, explain};

/// The rules of a group and its ancestors, explained for a node; the root group's first.
pub(in crate::cli) struct Membership<'h> {
    hierarchy: &'h Hierarchy,
    group: GroupIndex,
    node: &'h Node,
    rules: Vec<(GroupIndex, Option<Explained<'h>>)>,
}

impl<'h> Membership<'h> {
    pub(in crate::cli) fn of(hierarchy: &'h Hierarchy, group: GroupIndex, node: &'h Node) -> Self {
        let mut lineage: Vec<GroupIndex> = hierarchy.lineage(group).collect();
        lineage.reverse();
        let explained = |index: GroupIndex| {
            let rule = hierarchy.group(index).rule.as_deref();
            (index, rule.map(|rule| explain(rule, node)))
        };
        Self { hierarchy, group, node, rules: lineage.into_iter().map(explained).collect() }
    }

    /// Masks the values that the rules saw.
    pub(super) fn masked_by(mut self, masks: &Masks) -> Self {
        for (_, explained) in &mut self.rules {
            if let Some(explained) = explained {
                mask_seen(explained, masks);
            }
        }
        self
    }

    /// Returns the first group whose rule does not hold, or else the first whose rule could not be
    /// evaluated.
    fn failing(&self) -> Option<(GroupIndex, &Explained<'h>)> {
        let explained = || self.rules.iter().filter_map(|(at, it)| Some((*at, it.as_ref()?)));
        let fails = explained().find(|(_, it)| it.outcome == Ok(false));
        fails.or_else(|| explained().find(|(_, it)| it.outcome.is_err()))
    }

    fn has_rule(&self) -> bool {
        self.hierarchy.group(self.group).rule.is_some()
    }

    /// Returns whether the node is in the group; `None` if that could not be found out.
    fn matches(&self) -> Option<bool> {
        match self.failing() {
            None => Some(self.has_rule()),
            Some((_, explained)) => explained.outcome.as_ref().ok().map(|_| false),
        }
    }

    /// Says why the node is not in the group; nothing if it is.
    pub(in crate::cli) fn because(&self) -> Option<String> {
        let Some((index, explained)) = self.failing() else {
            let no_rule = "it has no rule and no pinned nodes; only its descendants can match";
            return (!self.has_rule()).then(|| no_rule.to_owned());
        };
        let whose = if index == self.group {
            "its rule".to_owned()
        } else {
            format!("the rule of its ancestor {}", self.hierarchy.group(index).name)
        };
        let what = match explained.outcome {
            Ok(_) => "does not hold",
            Err(_) => "could not be evaluated",
        };
        let cause = first_cause(explained).map_or_else(String::new, |it| format!(": {it}"));
        Some(format!("{whose} {what}{cause}"))
    }

    /// Says by which comparison the group's own rule holds; nothing if it does not.
    pub(in crate::cli) fn evidence(&self) -> Option<String> {
        let (_, explained) = self.rules.last()?;
        let (test, value, wanted) = cause(explained.as_ref()?, false)?;
        let comparison = Condition::Test(test.clone());
        // What keeps the rule from failing is what makes it hold.
        let not = if wanted { "not " } else { "" };
        Some(format!(
            "its rule holds: {} is {}, the rule wants {not}{comparison}",
            test.path,
            shown(value)
        ))
    }

    pub(super) fn draw(&self, colour: Colour) -> String {
        let mut pen = Pen::new(colour);
        let name = Cell::painted(self.hierarchy.group(self.group).name.as_str(), BOLD);
        let node = &self.node.name;
        let (before, behind) = match self.matches() {
            Some(true) => (format!("{node} is in the group "), ""),
            Some(false) => (format!("{node} is not in the group "), ""),
            None => (format!("whether {node} is in the group "), " is not known"),
        };
        pen.line(0, [before.into(), name, behind.into()]);
        if let Some(because) = self.because() {
            pen.line(0, [format!("because {because}").into()]);
        }
        for (depth, (index, explained)) in self.rules.iter().enumerate() {
            let group = self.hierarchy.group(*index);
            pen.gap();
            pen.heading(depth, group.name.as_str());
            match explained {
                Some(explained) => condition(&mut pen, depth + 1, explained),
                None => pen.line(depth + 1, ["no rule".into()]),
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
            "because": self.because(),
            "rules": rules,
        })
    }
}

/// Returns the first comparison that keeps a condition from holding, with the value it saw.
fn first_cause(explained: &Explained<'_>) -> Option<String> {
    if let Err(error) = &explained.outcome {
        return Some(error.to_string());
    }
    let (test, value, wanted) = cause(explained, true)?;
    let comparison = Condition::Test(test.clone());
    let not = if wanted { "" } else { "not " };
    Some(format!("{} is {}, the rule wants {not}{comparison}", test.path, shown(value)))
}

fn shown(value: &Value) -> String {
    if value.is_null() { "not there".to_owned() } else { shorten(&value.to_string()) }
}

/// Returns the first comparison because of which a condition is not as wanted, what it saw, and how
/// it was wanted to come out.
///
/// A term that could not be evaluated decides nothing: where the whole came out, another one did.
fn cause<'e>(explained: &'e Explained<'_>, wanted: bool) -> Option<(&'e Test, &'e Value, bool)> {
    if explained.outcome != Ok(!wanted) {
        return None;
    }
    match &explained.form {
        ExplainedForm::And(terms) | ExplainedForm::Or(terms) => {
            terms.iter().find_map(|term| cause(term, wanted))
        }
        ExplainedForm::Not(inner) => cause(inner, !wanted),
        ExplainedForm::Test(test, value) => Some((test, value, wanted)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::hierarchy::root_group;
    use crate::model::{Group, GroupId};
    use crate::rule::read_console;
    use crate::table::each_row;

    /// A pattern that uses up its step budget for the fact `f` of [`node`].
    const UNDECIDED: &str = r"f ~ '^(a|aa)+\1b'";

    fn node() -> Node {
        let fact = json!({"f": format!("{}!", "a".repeat(10_000)), "x": 1});
        Node { fact: fact.as_object().unwrap().clone(), ..Node::named("n") }
    }

    /// A group with a rule, below one with another.
    fn hierarchy(above: Option<&str>, rule: Option<&str>) -> Hierarchy {
        let group = |number: u128, name: &str, parent: GroupId, rule: Option<&str>| Group {
            id: GroupId::from_random(number),
            name: name.parse().unwrap(),
            parent,
            rule: rule.map(|it| Arc::new(read_console(it).unwrap())),
            ..root_group().unwrap()
        };
        let above = group(1, "Above", GroupId::ROOT, above);
        let group = group(2, "Group", above.id, rule);
        Hierarchy::build(vec![above, group]).unwrap()
    }

    /// Returns the membership of a node in the lower group.
    fn membership<'h>(hierarchy: &'h Hierarchy, node: &'h Node) -> Membership<'h> {
        let group = hierarchy.find(GroupId::from_random(2)).unwrap();
        Membership::of(hierarchy, group, node)
    }

    #[test]
    fn the_cause_is_a_comparison_that_decided() {
        let node = node();
        let rows = [
            (format!("{UNDECIDED} and name = zz"), "name is \"n\", the rule wants name = zz"),
            (
                format!("({UNDECIDED} or x = 2) and x = 1 and name = zz"),
                "name is \"n\", the rule wants name = zz",
            ),
            (
                format!("not ({UNDECIDED} or name = n)"),
                "name is \"n\", the rule wants not name = n",
            ),
            ("x = 2 and name = zz".to_owned(), "x is 1, the rule wants x = 2"),
            ("y = 2".to_owned(), "y is not there, the rule wants y = 2"),
        ];
        each_row(rows, |(rule, cause)| {
            let because = membership(&hierarchy(None, Some(&rule)), &node).because();
            assert_eq!(because, Some(format!("its rule does not hold: {cause}")));
        });
        let rows = [
            (format!("{UNDECIDED} or name = n"), "name is \"n\", the rule wants name = n"),
            (
                format!("not ({UNDECIDED} and name = zz)"),
                "name is \"n\", the rule wants not name = zz",
            ),
        ];
        each_row(rows, |(rule, cause)| {
            let evidence = membership(&hierarchy(None, Some(&rule)), &node).evidence();
            assert_eq!(evidence, Some(format!("its rule holds: {cause}")));
        });
        assert_eq!(membership(&hierarchy(None, Some(UNDECIDED)), &node).evidence(), None);
    }

    #[test]
    fn the_document_says_why_as_the_text_does() {
        let node = node();
        let budget = "the pattern `^(a|aa)+\\1b` used up its step budget";
        let rows = [
            (None, Some("x = 1"), json!(true), None),
            (
                None,
                None,
                json!(false),
                Some(
                    "it has no rule and no pinned nodes; only its descendants can match".to_owned(),
                ),
            ),
            (
                Some("x = 2"),
                Some("x = 1"),
                json!(false),
                Some(
                    "the rule of its ancestor Above does not hold: x is 1, the rule wants x = 2"
                        .to_owned(),
                ),
            ),
            (
                None,
                Some(UNDECIDED),
                Value::Null,
                Some(format!("its rule could not be evaluated: {budget}")),
            ),
        ];
        each_row(rows, |(above, rule, matches, because)| {
            let hierarchy = hierarchy(above, rule);
            let membership = membership(&hierarchy, &node);
            let document = membership.to_value();
            assert_eq!((&document["matches"], membership.because()), (&matches, because.clone()));
            assert_eq!(document["because"], because.map_or(Value::Null, Value::from));
        });
    }
}
