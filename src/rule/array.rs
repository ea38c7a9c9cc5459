//! The array form of rules, as the classifier API has it.

use serde_json::Value;

use super::array_form::to_value;
use super::comparison::{ComparisonOperator, OPERATORS, shorten};
use super::console::{read_console, read_console_within};
use super::depth::{TOO_DEEP, TOO_DEEP_HELP, is_too_deep};
use super::fault::{RuleFault, RuleFaultKind};
use super::source::{RulePart, RuleSource};
use crate::model::{Comparison, Condition, Path, Segment, Test, shared_path, shared_text};

/// How deep conditions may be nested.
const DEPTH_LIMIT: usize = 64;

/// The longest text that is read as a rule only to say how it is written in the array form, in bytes.
const TEXT_IN_HELP: usize = 1000;

/// Reads a rule in the array form, or in the console's notation if it is a string.
///
/// # Errors
///
/// Returns every fault of the rule, in the order of the text.
pub fn read(rule: &Value) -> Result<Condition, Vec<RuleFault>> {
    read_within(rule, usize::MAX)
}

/// Reads a rule of at most so many comparisons, as [`read`] does. In the array form each is a value of its own, which
/// is counted before it is made; of a string, no more are made than this.
///
/// # Errors
///
/// Returns every fault of the rule; one of the kind [`RuleFaultKind::Size`] for a string with more comparisons.
pub fn read_within<S: RuleSource>(rule: &S, most: usize) -> Result<Condition, Vec<RuleFault>> {
    if let RulePart::Text(text) = rule.part() {
        return read_console_within(text, most);
    }
    let mut reader = ArrayReader { faults: Vec::new(), element: Vec::new() };
    let condition = reader.condition(rule);
    match condition {
        Some(condition) if reader.faults.is_empty() => Ok(condition),
        _ => Err(reader.faults),
    }
}

struct ArrayReader {
    faults: Vec<RuleFault>,
    element: Vec<usize>,
}

impl ArrayReader {
    fn fault<T>(&mut self, message: impl Into<String>, help: Option<String>) -> Option<T> {
        self.faults.push(RuleFault {
            kind: RuleFaultKind::Grammar,
            element: self.element.clone(),
            characters: None,
            message: message.into(),
            help,
        });
        None
    }

    /// Reads the element at `index` of the present array with `read`.
    fn at<T>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.element.push(index);
        let result = read(self);
        self.element.pop();
        result
    }

    fn condition<S: RuleSource>(&mut self, rule: &S) -> Option<Condition> {
        let RulePart::List(parts) = rule.part() else {
            let text = rule.part().text().filter(|it| it.len() <= TEXT_IN_HELP);
            let written = text.and_then(|it| read_console(it).ok());
            let help = match written {
                Some(condition) => format!("inside of a list write {}", to_value(&condition)),
                None => "a condition is a list such as [\"=\", [\"fact\", \"os\", \"family\"], \"Debian\"]"
                    .to_owned(),
            };
            return self.fault("a condition must be a list", Some(help));
        };
        if self.element.len() >= DEPTH_LIMIT {
            return self.fault(format!("conditions are nested over {DEPTH_LIMIT} deep"), None);
        }
        let Some((head, rest)) = parts.split_first() else {
            return self.fault("a condition must not be empty", None);
        };
        let RulePart::Text(head) = head.part() else {
            let help = format!("start with `and`, `or`, `not` or an operator: {OPERATORS}");
            return self
                .at(0, |it| it.fault("a condition must start with an operator", Some(help)));
        };
        match head {
            "and" => self.terms(head, rest).map(Condition::And),
            "or" => self.terms(head, rest).map(Condition::Or),
            "not" => {
                let [inner] = rest else {
                    let message = format!("`not` takes one condition, found {}", rest.len());
                    let help =
                        (rest.len() > 1).then(|| "join them: [\"not\", [\"and\", …]]".to_owned());
                    return self.fault(message, help);
                };
                let inner = self.at(1, |it| it.condition(inner))?;
                Some(Condition::Not(Box::new(inner)))
            }
            operator => self.test(operator, rest),
        }
    }

    fn terms<S: RuleSource>(&mut self, operator: &str, terms: &[S]) -> Option<Vec<Condition>> {
        if terms.is_empty() {
            return self.fault(format!("`{operator}` needs at least one condition"), None);
        }
        let read: Vec<Option<Condition>> = terms
            .iter()
            .enumerate()
            .map(|(index, term)| self.at(index + 1, |it| it.condition(term)))
            .collect();
        read.into_iter().collect()
    }

    fn test<S: RuleSource>(&mut self, written: &str, rest: &[S]) -> Option<Condition> {
        // The operator comes first: with another one the shape may be meant otherwise.
        let Some(operator) = ComparisonOperator::parse(written) else {
            let second = rest.first().and_then(|it| it.part().text());
            let help = match second.filter(|it| ComparisonOperator::parse(it).is_some()) {
                Some(second) => format!("the operator comes first: [\"{second}\", path, value]"),
                None => operator_help(written),
            };
            let message = format!("`{}` is not an operator", shorten(written));
            return self.at(0, |it| it.fault(message, Some(help)));
        };
        let [path, operand] = rest else {
            let message = format!(
                "`{written}` takes a path and a value, found {}",
                if rest.len() == 1 {
                    "one element".to_owned()
                } else {
                    format!("{} elements", rest.len())
                }
            );
            return self.fault(message, None);
        };
        let path = self.at(1, |it| it.path(path));
        let comparison = self.at(2, |it| it.operand(operator, operand));
        Some(Condition::Test(Test { path: path?, comparison: comparison? }))
    }

    fn operand<S: RuleSource>(
        &mut self,
        operator: ComparisonOperator,
        operand: &S,
    ) -> Option<Comparison> {
        let text = match operand.part() {
            RulePart::Text(text) => text,
            other => {
                let help = match other {
                    RulePart::Scalar(it) if !it.is_null() => {
                        Some(format!("write it in quotes: \"{it}\""))
                    }
                    _ => None,
                };
                return self.fault("the value of a comparison must be a string", help);
            }
        };
        match operator.comparison(text) {
            Ok(comparison) => Some(comparison),
            Err(fault) => {
                self.faults.push(RuleFault { element: self.element.clone(), ..fault });
                None
            }
        }
    }

    fn path<S: RuleSource>(&mut self, path: &S) -> Option<Path> {
        match path.part() {
            RulePart::Text("name") => Some(Path::Name),
            RulePart::Text(other) => Some(Path::Bare(other.into())),
            RulePart::List([]) => self.fault("a path must not be empty", None),
            RulePart::List(segments) if is_too_deep(segments.len()) => {
                self.fault(TOO_DEEP, Some(TOO_DEEP_HELP.to_owned()))
            }
            RulePart::List(segments) => self.segments(segments),
            RulePart::Scalar(_) | RulePart::Mapping => self.fault(
                "a path must be `name` or a list such as [\"fact\", \"os\", \"family\"]",
                None,
            ),
        }
    }

    fn segments<S: RuleSource>(&mut self, segments: &[S]) -> Option<Path> {
        let read: Vec<Option<Segment>> = segments
            .iter()
            .enumerate()
            .map(|(index, segment)| self.at(index, |it| it.segment(index, segment)))
            .collect();
        let read: Option<Vec<Segment>> = read.into_iter().collect();
        read.map(|it| Path::Segments(shared_path(&it)))
    }

    fn segment<S: RuleSource>(&mut self, index: usize, segment: &S) -> Option<Segment> {
        match (index, segment.part()) {
            (0, RulePart::Text(root)) => match root {
                "fact" | "facts" | "trusted" | "name" => Some(Segment::Key(shared_text(root))),
                other => {
                    let mut words = other.split_whitespace();
                    let help = match words.next() {
                        Some(root @ ("fact" | "facts" | "trusted"))
                            if words.clone().count() > 0 =>
                        {
                            let keys = std::iter::once(root).chain(words);
                            let keys: Vec<String> = keys.map(|it| format!("\"{it}\"")).collect();
                            format!("write the keys one by one: [{}]", shorten(&keys.join(", ")))
                        }
                        _ => format!("for a fact write [\"fact\", \"{}\", …]", shorten(other)),
                    };
                    let message = format!(
                        "a path starts with `fact`, `trusted` or `name`, not with `{}`",
                        shorten(other)
                    );
                    self.fault(message, Some(help))
                }
            },
            (0, _) => self.fault("a path starts with `fact`, `trusted` or `name`", None),
            (_, RulePart::Text(key)) => Some(Segment::Key(shared_text(key))),
            (_, RulePart::Scalar(Value::Number(number))) => match number.as_u64() {
                Some(index) => Some(Segment::Index(index)),
                None => self.fault("an index into a list is a whole number from 0", None),
            },
            _ => self.fault("a path consists of strings and whole numbers", None),
        }
    }
}

/// Returns the advice for what people write instead of an operator.
fn operator_help(operator: &str) -> String {
    let positive = match operator {
        "!=" => "=",
        "!~" => "~",
        "/:" => "<:",
        "==" | "eq" => return "equality is written `=`".to_owned(),
        "AND" | "OR" | "NOT" | "And" | "Or" | "Not" => {
            return format!("write it in lower case: `{}`", operator.to_lowercase());
        }
        "in" | "contains" => return "an array that contains a value is written `<:`".to_owned(),
        "=~" | "match" => return "a regular expression is written `~`".to_owned(),
        _ => return format!("the operators are `and`, `or`, `not`, {OPERATORS}"),
    };
    format!("in the array form write [\"not\", [\"{positive}\", path, value]]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_read_is_written_back_the_same() {
        for rule in [
            json!(["=", "name", "a"]),
            json!(["~", ["name"], "^a"]),
            json!(["and", ["=", ["fact", "a", 0, "b"], "1"]]),
            json!(["or", ["not", ["<:", ["trusted", "x"], "y"]], [">=", ["facts", "n"], " 5 "]]),
            json!(["=", "clientcert", "x"]),
            json!(["<", ["fact"], "nan"]),
        ] {
            assert_eq!(to_value(&read(&rule).unwrap()), rule, "{rule}");
        }
    }

    #[test]
    fn every_fault_is_found_with_its_place() {
        let faults = |rule: Value| -> Vec<String> {
            let faults = read(&rule).unwrap_err();
            faults.iter().map(|fault| format!("{:?} {}", fault.element, fault.message)).collect()
        };
        for (rule, expected) in [
            (json!([]), vec!["[] a condition must not be empty"]),
            (json!({}), vec!["[] a condition must be a list"]),
            (json!(["and"]), vec!["[] `and` needs at least one condition"]),
            (json!(["not"]), vec!["[] `not` takes one condition, found 0"]),
            (json!(["!=", "name", "x"]), vec!["[0] `!=` is not an operator"]),
            (json!(["=", "name"]), vec!["[] `=` takes a path and a value, found one element"]),
            (
                json!(["=", ["fact", "n"], 5]),
                vec!["[2] the value of a comparison must be a string"],
            ),
            (
                json!(["=", ["fact", -1], "x"]),
                vec!["[1, 1] an index into a list is a whole number from 0"],
            ),
            (
                json!(["or", ["=", ["os"], "x"], ["and", "x"], ["=", [], "x"]]),
                vec![
                    "[1, 1, 0] a path starts with `fact`, `trusted` or `name`, not with `os`",
                    "[2, 1] a condition must be a list",
                    "[3, 1] a path must not be empty",
                ],
            ),
        ] {
            assert_eq!(faults(rule.clone()), expected, "{rule}");
        }
    }

    #[test]
    fn a_bad_pattern_is_a_fault_of_its_own_kind() {
        let faults = read(&json!(["and", ["~", "name", "["]])).unwrap_err();
        assert_eq!(
            (faults[0].kind, faults[0].element.as_slice()),
            (RuleFaultKind::Pattern, &[1, 2][..])
        );
    }

    #[test]
    fn nesting_is_limited() {
        let deep = (0..100).fold(json!(["=", "name", "x"]), |inner, _| json!(["not", inner]));
        assert!(read(&deep).unwrap_err()[0].message.contains("nested over 64 deep"));
    }
}
