//! Rules as `PuppetDB` queries.
//!
//! A query finds exactly the nodes that a rule matches, or there is none; but for numbers in strings
//! with an exponent, of which no pattern can tell how large they are. What `PuppetDB` makes of a
//! query was learned from it: `=` is of JSON values, `~` of the text of any value, and `<` and `>`
//! put all JSON values in an order, strings before numbers before booleans before arrays before
//! objects. Where a value is missing, `~`, `<` and `>` are neither true nor false, and so is `not`
//! of them.

mod number;
mod place;

use serde_json::{Number, Value, json};

use super::array_form::to_value;
use crate::java_regex::postgres_literal;
use crate::model::{Comparison, Condition, Test};
use place::FactPlace;

/// Which entity a query is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryFormat {
    /// `nodes`
    Nodes,
    /// `inventory`
    Inventory,
}

/// A rule says what no `PuppetDB` query can.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("The rule cannot be translated because {reason}.")]
pub struct UntranslatableRule {
    /// Why not.
    pub reason: &'static str,
    /// The condition at fault, in the array form.
    pub condition: Value,
}

/// Translates a rule as [`to_query`] does; a rule that every node meets has a query all the same.
///
/// # Errors
///
/// Returns the first condition that no query can say.
pub fn to_whole_query(
    condition: &Condition,
    format: QueryFormat,
) -> Result<Value, UntranslatableRule> {
    let query = to_query(condition, format)?;
    Ok(query.unwrap_or_else(|| vec!["~", "certname", ".*"].into()))
}

/// Translates a rule to a query; `None` is a rule that every node meets.
///
/// The query finds exactly the nodes that the rule matches, but for one thing: the number of a
/// string such as `1e3`, with an exponent, is not compared.
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

/// The most conditions of a query that is sent: `PuppetDB` 7 takes 3.6 s for 500, and more than a minute for 6,000.
const SENT_CONDITIONS: usize = 500;

/// Translates a rule to a query that leaves out no node that the rule matches; none where there is no
/// such query but the one for all nodes, or it has too many conditions to be sent.
pub fn to_covering_query(condition: &Condition, format: QueryFormat) -> Option<Value> {
    // Numbers in strings with an exponent are not found.
    if compares_numbers(condition) {
        return None;
    }
    let query = to_query(condition, format).ok().flatten()?;
    (count_conditions(&query) <= SENT_CONDITIONS).then_some(query)
}

/// Returns how many comparisons a query has, in subqueries as well.
fn count_conditions(query: &Value) -> usize {
    let Some([operator, terms @ ..]) = query.as_array().map(Vec::as_slice) else { return 0 };
    match operator.as_str() {
        Some("=" | "~" | "~>" | "<" | "<=" | ">" | ">=") => 1,
        _ => terms.iter().map(count_conditions).sum(),
    }
}

fn compares_numbers(condition: &Condition) -> bool {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().any(compares_numbers),
        Condition::Not(inner) => compares_numbers(inner),
        Condition::Test(test) => matches!(test.comparison, Comparison::Number(_)),
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
    // What is asked of a fact by `["fact", name]` is whether it is among those with the value.
    let path = terms.first().and_then(Value::as_str).filter(|path| *path != "certname");
    match operator.as_str() {
        Some("and" | "or" | "not") => terms.iter().any(may_be_unknown),
        // Paths of plain keys are asked for in one object, others step by step.
        Some("=") => path.is_some_and(|path| path.contains(['"', '['])),
        Some("~" | "<" | ">" | ">=") => path.is_some(),
        _ => false,
    }
}

fn test_query(test: &Test, format: QueryFormat) -> Result<Option<Value>, &'static str> {
    let comparison = &test.comparison;
    if comparison.operand().contains('\0') {
        return Err("PuppetDB has no U+0000");
    }
    let Some(place) = FactPlace::of(&test.path)? else { return name_query(comparison) };
    let nodes_have = match (format, place.fact()) {
        (QueryFormat::Nodes, Some(fact)) => simple_query(&json!(["fact", fact]), comparison)?,
        _ => None,
    };
    if nodes_have.is_some() {
        return Ok(nodes_have);
    }
    let path = place.to_path()?;
    let mut terms = match (simple_query(&path, comparison)?, comparison) {
        (Some(query), _) => vec![query],
        (None, Comparison::Finds(pattern)) => {
            // Only in strings: they come before the numbers, and an empty array before them.
            let found = json!(["~", path, pattern.to_postgres()?]);
            vec![found, json!([">=", path, ""]), json!(["<", path, f64::MIN])]
        }
        (None, _) => {
            let element = equality(&"value".into(), comparison.operand());
            let element = json!(["and", ["~>", "path", place.to_elements()], element]);
            let found = json!(["extract", "certname", ["select_fact_contents", element]]);
            vec![json!(["in", "certname", found]), place::is_array(&path)]
        }
    };
    terms.extend(place.guards()?);
    let query = join("and", terms);
    Ok(match format {
        QueryFormat::Nodes => query.as_ref().map(within),
        QueryFormat::Inventory => query,
    })
}

/// Asks for what one operator of `PuppetDB` finds, of a fact or in the inventory; none is what takes
/// several.
fn simple_query(path: &Value, comparison: &Comparison) -> Result<Option<Value>, &'static str> {
    Ok(match comparison {
        Comparison::Equals(text) => Some(equality(path, text)),
        Comparison::Number { .. } => Some(json!(["~", path, number_pattern(comparison)?])),
        Comparison::Finds(_) | Comparison::Contains(_) => None,
    })
}

fn name_query(comparison: &Comparison) -> Result<Option<Value>, &'static str> {
    Ok(Some(match comparison {
        Comparison::Equals(text) => json!(["=", "certname", text]),
        Comparison::Finds(pattern) if pattern.as_str() == ".*" => return Ok(None),
        Comparison::Finds(pattern) => json!(["~", "certname", pattern.to_postgres()?]),
        Comparison::Contains(_) => return Err("a name is not an array"),
        Comparison::Number(_) => json!(["~", "certname", number_pattern(comparison)?]),
    }))
}

fn number_pattern(comparison: &Comparison) -> Result<String, &'static str> {
    let (order, number) = comparison.number().ok_or("its value is not a number")?;
    number::pattern(order, number).ok_or("its number has too many digits")
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

    /// The same query in both formats.
    fn plain(query: Value) -> (Value, Value) {
        (query.clone(), query)
    }

    /// A query of the inventory, which the other format asks for by name.
    fn wrapped(query: Value) -> (Value, Value) {
        (within(&query), query)
    }

    /// Only in strings, as a pattern finds.
    fn string(path: &str, pattern: &str) -> Value {
        json!(["and", ["~", path, pattern], [">=", path, ""], ["<", path, f64::MIN]])
    }

    /// Translates rules into both formats.
    fn assert_queries<const N: usize>(rows: [(Value, (Value, Value)); N]) {
        for (rule, (nodes, inventory)) in rows {
            assert_eq!(query(&rule, QueryFormat::Nodes), nodes, "{rule}");
            assert_eq!(query(&rule, QueryFormat::Inventory), inventory, "{rule}");
        }
    }

    #[test]
    fn conditions_on_names_become_queries() {
        assert_queries([
            (json!(["and", ["~", "name", ".*"]]), plain(Value::Null)),
            (json!(["=", "name", "a"]), plain(json!(["=", "certname", "a"]))),
            (json!(["~", "name", "^a"]), plain(json!(["~", "certname", "^a"]))),
        ]);
    }

    #[test]
    fn conditions_on_facts_become_queries() {
        assert_queries([
            (
                json!(["and", ["=", ["fact", "x"], "true"], ["~", "name", ".*"]]),
                (
                    json!(["or", ["=", ["fact", "x"], "true"], ["=", ["fact", "x"], true]]),
                    json!(["or", ["=", "facts.x", "true"], ["=", "facts.x", true]]),
                ),
            ),
            (
                json!(["=", ["fact", "x"], "-5.0"]),
                (json!(["~", ["fact", "x"], r"^\-5\.0$"]), json!(["~", "facts.x", r"^\-5\.0$"])),
            ),
            (
                json!(["not", ["=", ["fact", "os", "family"], "D"]]),
                (
                    json!(["not", within(&json!(["=", "facts.os.family", "D"]))]),
                    json!(["not", ["=", "facts.os.family", "D"]]),
                ),
            ),
            (
                json!(["not", ["~", ["fact", "os", "family"], "^D"]]),
                plain(json!(["not", within(&string("facts.os.family", "^D"))])),
            ),
            (
                json!(["=", ["trusted", "extensions", "1.3.6"], "a"]),
                wrapped(json!(["=", "trusted.extensions.\"1.3.6\"", "a"])),
            ),
        ]);
    }

    #[test]
    fn conditions_on_lists_become_queries() {
        assert_queries([
            (
                json!(["=", ["fact", "a", 0], "x"]),
                wrapped(json!([
                    "and",
                    ["=", "facts.a[0]", "x"],
                    ["and", [">", "facts.a", true], ["~", "facts.a", r"^\["]]
                ])),
            ),
            (
                json!(["<:", ["fact", "x"], "a"]),
                wrapped(json!([
                    "and",
                    [
                        "in",
                        "certname",
                        [
                            "extract",
                            "certname",
                            [
                                "select_fact_contents",
                                ["and", ["~>", "path", ["^x$", "^[0-9]+$"]], ["=", "value", "a"]]
                            ]
                        ]
                    ],
                    ["and", [">", "facts.x", true], ["~", "facts.x", r"^\["]]
                ])),
            ),
        ]);
    }

    #[test]
    fn what_puppetdb_reads_differently_is_not_translated() {
        let refused =
            |reason: &str| plain(format!("The rule cannot be translated because {reason}.").into());
        let after_quotes = "PuppetDB finds nothing at an index right after a key in quotes";
        let key = "PuppetDB cannot be asked for such a key";
        assert_queries([
            (json!(["=", ["fact", "a.b", 0], "x"]), refused(after_quotes)),
            (json!(["~", ["trusted", "extensions", "1.3.6", 0], "x"]), refused(after_quotes)),
            (json!([">", ["fact", "x", "sp ace", 2, "k"], "1"]), refused(after_quotes)),
            (json!(["<:", ["fact", "x", "a-b", 0], "x"]), refused(after_quotes)),
            (json!(["=", ["fact", "x", "a\u{2028}b"], "x"]), refused(key)),
            (json!(["=", ["fact", "x", "a\u{2029}"], "x"]), refused(key)),
            (json!(["=", ["fact", "\u{85}"], "x"]), refused(key)),
        ]);
        let rule = json!(["=", ["fact", "a.b", "c", 0], "x"]);
        let query = query(&rule, QueryFormat::Inventory);
        assert_eq!(query[1], json!(["=", "facts.\"a.b\".c[0]", "x"]));
    }

    #[test]
    fn no_query_of_too_many_conditions_is_sent() {
        let covering = |rule: &Value| {
            to_covering_query(&rule::read(rule).unwrap(), QueryFormat::Inventory).is_some()
        };
        let any = |condition: Value, count| -> Value {
            std::iter::once("or".into()).chain(vec![condition; count]).collect()
        };
        let pin = json!(["=", "name", "a"]);
        assert!(covering(&any(pin.clone(), 500)));
        assert!(!covering(&any(pin.clone(), 501)));
        assert!(!covering(&json!(["not", ["and", any(pin.clone(), 499), any(pin, 2)]])));
        // Each is three conditions to PuppetDB.
        let pattern = json!(["~", ["fact", "os", "family"], "^D"]);
        assert!(covering(&any(pattern.clone(), 166)));
        assert!(!covering(&any(pattern, 167)));
    }

    #[test]
    fn what_postgresql_reads_differently_is_not_translated() {
        assert_queries([(
            json!(["~", ["fact", "x"], r"\b"]),
            plain(json!(
                r"The rule cannot be translated because PostgreSQL has other words than `\b`."
            )),
        )]);
    }
}
