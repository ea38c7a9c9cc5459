//! Pinned nodes, in the shape the console gives them.
//!
//! Nodes P pinned to a group with rule R are `["or", R, ["=", "name", P1], …]`,
//! without a rule `["or", ["=", "name", P1], …]`.

use std::sync::Arc;

use crate::model::{Comparison, Condition, Path, Test};

/// Joins a rule with the pinned nodes; `None` if there is neither.
pub fn with_pins(rule: Option<Condition>, pinned: &[Arc<str>]) -> Option<Condition> {
    if pinned.is_empty() {
        return rule;
    }
    let pins = pinned.iter().map(|name| pin_of(Arc::clone(name)));
    Some(Condition::Or(rule.into_iter().chain(pins).collect()))
}

/// Returns the term that pins a node.
pub fn pin_of(name: Arc<str>) -> Condition {
    Condition::Test(Test { path: Path::Name, comparison: Comparison::Equals(name) })
}

/// Returns the terms at the top of a rule, of whatever shape it is, and the nodes that others of them pin.
pub fn split_terms(rule: &Condition) -> (Vec<&Condition>, Vec<&Arc<str>>) {
    let Condition::Or(terms) = rule else { return (vec![rule], Vec::new()) };
    let own = terms.iter().filter(|it| pinned(it).is_none()).collect();
    (own, terms.iter().filter_map(pinned).collect())
}

/// Takes a rule of the console's shape apart into the rule proper and the pinned nodes.
///
/// Any other rule is returned as it is, without pinned nodes; so [`with_pins`] of the parts
/// is always the rule again.
pub fn split_pins(rule: Condition) -> (Option<Condition>, Vec<Arc<str>>) {
    let Condition::Or(terms) = rule else { return (Some(rule), Vec::new()) };
    let own = usize::from(terms.first().and_then(pin).is_none());
    let pinned: Option<Vec<Arc<str>>> = terms.iter().skip(own).map(pin).collect();
    match pinned {
        Some(pinned) if !pinned.is_empty() => (terms.into_iter().take(own).next(), pinned),
        _ => (Some(Condition::Or(terms)), Vec::new()),
    }
}

/// Returns the parts that [`split_pins`] takes a rule apart into.
pub fn parts(rule: &Condition) -> (Option<&Condition>, Vec<&Arc<str>>) {
    let Condition::Or(terms) = rule else { return (Some(rule), Vec::new()) };
    let own = terms.first().filter(|it| pinned(it).is_none());
    let names: Option<Vec<&Arc<str>>> =
        terms.iter().skip(usize::from(own.is_some())).map(pinned).collect();
    match names {
        Some(names) if !names.is_empty() => (own, names),
        _ => (Some(rule), Vec::new()),
    }
}

/// Returns the last so many nodes that [`with_pins`] joined a rule with.
pub fn joined_pins(rule: &Condition, count: usize) -> impl Iterator<Item = &Arc<str>> {
    let terms = match rule {
        Condition::Or(terms) => terms.as_slice(),
        _ => &[],
    };
    terms.iter().skip(terms.len().saturating_sub(count)).filter_map(pinned)
}

/// Returns whether a rule is another one that pins more nodes: a pin to a group whose rule is
/// `name = a` alone gives a rule in which `a` looks like a pinned node, too.
pub fn is_with_more_pins(rule: &Condition, before: &Condition) -> bool {
    let Condition::Or(terms) = rule else { return false };
    let more = |rest: &[Condition]| !rest.is_empty() && rest.iter().all(|it| pinned(it).is_some());
    terms.split_first().is_some_and(|(first, rest)| first == before && more(rest))
}

/// Returns a rule of another shape without the terms at its top that name some nodes, and which those are; `None` if
/// there is none. The rule is none if nothing is left of it.
pub fn without_names<'r>(
    rule: &'r Condition,
    is_gone: impl Fn(&str) -> bool,
) -> Option<(Option<Condition>, Vec<&'r Arc<str>>)> {
    let Condition::Or(terms) = rule else { return None };
    let named = |it: &&'r Condition| pinned(it).filter(|name| is_gone(name));
    let gone: Vec<&Arc<str>> = terms.iter().filter_map(|it| named(&it)).collect();
    let left = terms.iter().filter(|it| named(it).is_none()).cloned();
    let left: Vec<Condition> = left.collect();
    let rule = (!left.is_empty()).then_some(Condition::Or(left));
    (!gone.is_empty()).then_some((rule, gone))
}

fn pin(term: &Condition) -> Option<Arc<str>> {
    pinned(term).map(Arc::clone)
}

/// Returns the node that a term pins.
fn pinned(term: &Condition) -> Option<&Arc<str>> {
    match term {
        Condition::Test(Test { path: Path::Name, comparison: Comparison::Equals(name) }) => {
            Some(name)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;
    use crate::table::each_row;
    use serde_json::{Value, json};

    #[test]
    fn more_pins_are_told_from_another_rule() {
        let read = |rule: Value| rule::read(&rule).unwrap();
        let (a, b) = (json!(["=", "name", "a"]), json!(["=", "name", "b"]));
        let os = json!(["=", ["fact", "os"], "x"]);
        for (after, before, more) in [
            (json!(["or", a, b]), a.clone(), true),
            (json!(["or", os, b]), os.clone(), true),
            (json!(["or", a]), a.clone(), false),
            (json!(["or", b, a]), a.clone(), false),
            (json!(["or", a, os]), a.clone(), false),
            (json!(["or", a, ["and", b]]), a.clone(), false),
            (json!(["and", a, b]), a.clone(), false),
            (b, a, false),
        ] {
            assert_eq!(is_with_more_pins(&read(after.clone()), &read(before)), more, "{after}");
        }
    }

    #[test]
    fn names_at_the_top_of_a_rule_of_another_shape_are_taken_out() {
        let named = |name: &str| json!(["=", "name", name]);
        let os = json!(["=", ["fact", "os"], "x"]);
        for (before, after, gone) in [
            (json!(["or", named("a"), os]), json!(["or", os]), vec!["a"]),
            (json!(["or", named("b"), os, named("a")]), json!(["or", named("b"), os]), vec!["a"]),
            (json!(["or", named("a"), named("a")]), Value::Null, vec!["a", "a"]),
            (json!(["or", ["or", named("a")], os]), Value::Null, vec![]),
            (json!(["and", named("a"), os]), Value::Null, vec![]),
            (named("a"), Value::Null, vec![]),
        ] {
            let rule = rule::read(&before).unwrap();
            let found = without_names(&rule, |it| it == "a");
            let (left, names) = found.unwrap_or_default();
            assert_eq!(left.as_ref().map_or(Value::Null, rule::to_value), after, "{before}");
            assert_eq!(names.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), gone, "{before}");
        }
    }

    #[test]
    fn the_consoles_shape_is_recognised_and_made_again() {
        let rows = [
            (json!(["or", ["=", "name", "a"], ["=", "name", "b"]]), Value::Null, vec!["a", "b"]),
            (
                json!(["or", ["and", ["~", "name", "x"]], ["=", "name", "a"]]),
                json!(["and", ["~", "name", "x"]]),
                vec!["a"],
            ),
            (
                json!(["or", ["or", ["~", "name", "x"]], ["=", "name", "a"]]),
                json!(["or", ["~", "name", "x"]]),
                vec!["a"],
            ),
            (
                json!(["or", ["~", "name", "x"], ["~", "name", "y"]]),
                json!(["or", ["~", "name", "x"], ["~", "name", "y"]]),
                vec![],
            ),
            (
                json!(["or", ["and", ["~", "name", "x"]]]),
                json!(["or", ["and", ["~", "name", "x"]]]),
                vec![],
            ),
            (json!(["=", "name", "a"]), json!(["=", "name", "a"]), vec![]),
            (
                json!(["or", ["=", ["name"], "a"], ["=", "name", "b"]]),
                json!(["=", ["name"], "a"]),
                vec!["b"],
            ),
        ];
        each_row(rows, |(whole, own, pinned)| {
            let (rule, names) = split_pins(rule::read(&whole).unwrap());
            let borrowed = rule::read(&whole).unwrap();
            let (own_part, pinned_part) = parts(&borrowed);
            assert_eq!((own_part.cloned(), pinned_part), (rule.clone(), names.iter().collect()));
            assert_eq!(rule.as_ref().map_or(Value::Null, rule::to_value), own, "{whole}");
            assert_eq!(names.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), pinned, "{whole}");
            assert_eq!(rule::to_value(&with_pins(rule, &names).unwrap()), whole);
        });
    }
}
