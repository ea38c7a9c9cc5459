//! Rules as PuppetDB queries.

use serde_json::{Number, Value, json};

use super::array::to_value;
use crate::model::{Comparison, Condition, Path, Segment, Test};

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
/// A number or boolean in `=` is asked for as text and as JSON value, since rules compare text.
///
/// # Errors
///
/// Returns the first condition that no query can say.
pub fn to_query(
    condition: &Condition,
    format: QueryFormat,
) -> Result<Option<Value>, UntranslatableRule> {
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
            Some(query) => Ok(Some(json!(["not", query]))),
            None => Err(untranslatable("no node can meet it", condition)),
        },
        Condition::Test(test) => test_query(test, condition, format),
    }
}

fn untranslatable(reason: &'static str, condition: &Condition) -> UntranslatableRule {
    UntranslatableRule { reason, condition: to_value(condition) }
}

fn join(operator: &str, mut queries: Vec<Value>) -> Option<Value> {
    if queries.len() < 2 {
        return queries.pop();
    }
    Some(std::iter::once(operator.into()).chain(queries).collect())
}

fn test_query(
    test: &Test,
    condition: &Condition,
    format: QueryFormat,
) -> Result<Option<Value>, UntranslatableRule> {
    let is_name = match &test.path {
        Path::Name => true,
        Path::Segments(segments) => {
            matches!(segments.as_ref(), [Segment::Key(root)] if root.as_ref() == "name")
        }
        Path::Bare(_) => false,
    };
    let operator = test.comparison.operator();
    match &test.comparison {
        Comparison::Contains(_) => {
            Err(untranslatable("PuppetDB cannot look into arrays", condition))
        }
        Comparison::Finds(pattern) if is_name && pattern.as_str() == ".*" => Ok(None),
        Comparison::Equals(text) | Comparison::Number { operand: text, .. } if is_name => {
            match test.comparison {
                Comparison::Equals(_) => Ok(Some(json!(["=", "certname", text]))),
                _ => Err(untranslatable("PuppetDB does not compare names with numbers", condition)),
            }
        }
        Comparison::Finds(pattern) if is_name => {
            Ok(Some(json!(["~", "certname", pattern.as_str()])))
        }
        Comparison::Finds(pattern) => {
            value_query(test, condition, format, &|path| json!(["~", path, pattern.as_str()]))
                .map(Some)
        }
        Comparison::Equals(text) => {
            value_query(test, condition, format, &|path| equality(path, text)).map(Some)
        }
        Comparison::Number { operand, number: Some(_), .. } => {
            let Ok(number) = serde_json::from_str::<Number>(operand.trim()) else {
                return Err(untranslatable("the number is not written as in JSON", condition));
            };
            value_query(test, condition, format, &|path| json!([operator, path, number])).map(Some)
        }
        Comparison::Number { number: None, .. } => {
            Err(untranslatable("its value is no number", condition))
        }
    }
}

/// Asks for a text, and for the boolean or number of the same text.
fn equality(path: &Value, text: &str) -> Value {
    let scalar: Option<Value> = serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_boolean() || value.is_number());
    match scalar {
        Some(scalar) => json!(["or", ["=", path, text], ["=", path, scalar]]),
        None => json!(["=", path, text]),
    }
}

fn value_query(
    test: &Test,
    condition: &Condition,
    format: QueryFormat,
    query: &dyn Fn(&Value) -> Value,
) -> Result<Value, UntranslatableRule> {
    let Path::Segments(segments) = &test.path else {
        return Err(untranslatable("nothing is ever found at its path", condition));
    };
    let (Some((Segment::Key(root), way)), true) = (segments.split_first(), segments.len() > 1)
    else {
        return Err(untranslatable("its path leads to no single value", condition));
    };
    let entity = match root.as_ref() {
        "fact" | "facts" => "facts",
        "trusted" => "trusted",
        _ => return Err(untranslatable("nothing is ever found at its path", condition)),
    };
    if let (QueryFormat::Nodes, "facts", [Segment::Key(fact)]) = (format, entity, way) {
        return Ok(query(&json!(["fact", fact])));
    }
    let dotted = way.iter().fold(entity.to_owned(), |mut path, segment| {
        match segment {
            Segment::Index(index) => path.push_str(&["[", &index.to_string(), "]"].concat()),
            Segment::Key(key) if key.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') => {
                path.push_str(&[".", key].concat());
            }
            Segment::Key(key) => path.push_str(&[".\"", key, "\""].concat()),
        }
        path
    });
    let inventory = query(&Value::from(dotted));
    Ok(match format {
        QueryFormat::Inventory => inventory,
        QueryFormat::Nodes => {
            json!(["in", "certname", ["extract", "certname", ["select_inventory", inventory]]])
        }
    })
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
