//! Rules as PuppetDB queries.
//!
//! A query finds exactly the nodes that a rule matches, or there is none. What PuppetDB makes of a
//! query was learned from it: `=` is of JSON values, `~` of the text of any value, and `<` and `>`
//! put all JSON values in an order, strings before numbers before booleans before arrays before
//! objects. Where a value is missing, `~`, `<` and `>` are neither true nor false, and so is `not`
//! of them.

mod number;
mod place;

use serde_json::{Number, Value, json};

use super::array::to_value;
use super::regex::postgres_literal;
use crate::model::{Comparison, Condition, Test};
use place::Place;

/// Which entity a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryFormat {
    /// `nodes`
    Nodes,
    /// `inventory`
    Inventory,
}

/// A rule says what no PuppetDB query can.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("The rule cannot be translated because {reason}.")]
pub struct UntranslatableRule {
    /// Why not.
    pub reason: &'static str,
    /// The condition at fault, in the array form.
    pub condition: Value,
}

/// Translates a rule to a query; `None` is a rule that every node meets.
///
/// The text of a number in `=` is searched for, since 5 and 5.0 are one number to `PuppetDB`; a
/// boolean is asked for as text and as JSON value.
///
/// # Errors
///
/// Returns the first condition that no query can say.
pub fn to_query(
    condition: &Condition,
    format: QueryFormat,
) -> Result<Option<Value>, UntranslatableRule> {
    let untranslatable = |reason| UntranslatableRule { reason, condition: to_value(condition) };
    match condition {
        Condition::And(terms) => {
            let mut queries = Vec::new();
            for term in terms {
                queries.extend(to_query(term, format)?);
            }
            Ok(join("and", queries))
        }
        Condition::Or(terms) => {
            let mut queries = Vec::new();
            for term in terms {
                match to_query(term, format)? {
                    Some(query) => queries.push(query),
                    None => return Ok(None),
                }
            }
            Ok(join("or", queries))
        }
        Condition::Not(inner) => match to_query(inner, format)? {
            Some(query) if may_be_unknown(&query) => Ok(Some(json!(["not", within(&query)]))),
            Some(query) => Ok(Some(json!(["not", query]))),
            None => Err(untranslatable("no node can meet it")),
        },
        Condition::Test(test) => test_query(test, format).map_err(untranslatable),
    }
}

fn join(operator: &str, mut queries: Vec<Value>) -> Option<Value> {
    if queries.len() < 2 {
        return queries.pop();
    }
    Some(std::iter::once(operator.into()).chain(queries).collect())
}

/// Asks for the nodes that a query of the inventory finds; of a node it is either true or false.
fn within(inventory: &Value) -> Value {
    json!(["in", "certname", ["extract", "certname", ["select_inventory", inventory]]])
}

/// Returns whether a query can be neither true nor false of a node.
fn may_be_unknown(query: &Value) -> bool {
    let Some([operator, terms @ ..]) = query.as_array().map(Vec::as_slice) else { return false };
    match operator.as_str() {
        Some("and" | "or" | "not") => terms.iter().any(may_be_unknown),
        // What is asked of a fact by `["fact", name]` is whether it is among those with the value.
        Some("~" | "<" | ">") => {
            terms.first().and_then(Value::as_str).is_some_and(|path| path != "certname")
        }
        _ => false,
    }
}

fn test_query(test: &Test, format: QueryFormat) -> Result<Option<Value>, &'static str> {
    if test.comparison.operand().contains('\0') {
        return Err("PuppetDB has no U+0000");
    }
    let place = match Place::of(&test.path)? {
        None => return name_query(&test.comparison),
        Some(place) => place,
    };
    if let Comparison::Contains(text) = &test.comparison {
        let path = place.to_elements();
        let element = json!(["and", ["~>", "path", path], equality(&"value".into(), text)]);
        let found = json!(["extract", "certname", ["select_fact_contents", element]]);
        let guards = place.guard(vec![place.is_array(format)?], format)?;
        return Ok(Some(json!(["and", ["in", "certname", found], guards])));
    }
    let path = place.to_path(format)?;
    let terms = match &test.comparison {
        Comparison::Equals(text) => vec![equality(&path, text)],
        // Only in strings, which come before the numbers.
        Comparison::Finds(pattern) => {
            vec![json!(["~", path, pattern.to_postgres()?]), json!(["<", path, f64::MIN])]
        }
        comparison => vec![json!(["~", path, number_pattern(comparison)?])],
    };
    place.guard(terms, format).map(Some)
}

fn name_query(comparison: &Comparison) -> Result<Option<Value>, &'static str> {
    Ok(Some(match comparison {
        Comparison::Equals(text) => json!(["=", "certname", text]),
        Comparison::Finds(pattern) if pattern.as_str() == ".*" => return Ok(None),
        Comparison::Finds(pattern) => json!(["~", "certname", pattern.to_postgres()?]),
        Comparison::Contains(_) => return Err("a name is no array"),
        comparison => json!(["~", "certname", number_pattern(comparison)?]),
    }))
}

fn number_pattern(comparison: &Comparison) -> Result<String, &'static str> {
    let Comparison::Number { order, number: Some(number), .. } = comparison else {
        return Err("its value is no number");
    };
    number::pattern(*order, number).ok_or("its number has too many digits")
}

/// Asks for a text, and for the boolean or number of the same text.
fn equality(path: &Value, text: &str) -> Value {
    let is_number = !text.contains(|it: char| it.is_ascii_whitespace())
        && serde_json::from_str::<Number>(text).is_ok();
    match text {
        "true" | "false" => json!(["or", ["=", path, text], ["=", path, text == "true"]]),
        _ if is_number => json!(["~", path, format!("^{}$", postgres_literal(text))]),
        _ => json!(["=", path, text]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;

    fn query(rule: &Value, format: QueryFormat) -> Value {
        match to_query(&rule::read(rule).unwrap(), format) {
            Ok(query) => query.unwrap_or(Value::Null),
            Err(error) => error.to_string().into(),
        }
    }

    #[test]
    fn rules_become_queries() {
        for (rule, nodes, inventory) in [
            (json!(["and", ["~", "name", ".*"]]), json!(null), json!(null)),
            (
                json!(["=", "name", "a"]),
                json!(["=", "certname", "a"]),
                json!(["=", "certname", "a"]),
            ),
            (
                json!(["and", ["=", ["fact", "x"], "true"], ["~", "name", ".*"]]),
                json!(["or", ["=", ["fact", "x"], "true"], ["=", ["fact", "x"], true]]),
                json!(["or", ["=", "facts.x", "true"], ["=", "facts.x", true]]),
            ),
            (
                json!(["not", ["~", ["fact", "os", "family"], "^D"]]),
                json!([
                    "not",
                    [
                        "in",
                        "certname",
                        [
                            "extract",
                            "certname",
                            ["select_inventory", ["~", "facts.os.family", "^D"]]
                        ]
                    ]
                ]),
                json!(["not", ["~", "facts.os.family", "^D"]]),
            ),
            (
                json!([">=", ["trusted", "extensions", "1.3.6"], "5"]),
                json!([
                    "in",
                    "certname",
                    [
                        "extract",
                        "certname",
                        ["select_inventory", [">=", "trusted.extensions.\"1.3.6\"", 5]]
                    ]
                ]),
                json!([">=", "trusted.extensions.\"1.3.6\"", 5]),
            ),
            (
                json!(["<:", ["fact", "x"], "a"]),
                json!("The rule cannot be translated because PuppetDB cannot look into arrays."),
                json!("The rule cannot be translated because PuppetDB cannot look into arrays."),
            ),
        ] {
            assert_eq!(query(&rule, QueryFormat::Nodes), nodes, "{rule}");
            assert_eq!(query(&rule, QueryFormat::Inventory), inventory, "{rule}");
        }
    }
}
