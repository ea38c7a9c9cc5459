//! What a Puppet Server says of the classes of an environment: `/puppet/v3/environment_classes`.

use std::borrow::Cow;

use serde_json::Value;

use super::{DataType, Default, Parameter, PuppetClass};

/// The classes of an environment, and the files that the server could not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The classes, each with the path of its file.
    pub classes: Vec<(String, PuppetClass)>,
    /// The files that could not be read, with what is wrong with them. Their classes are missing.
    pub broken: Vec<(String, String)>,
}

/// Reads the answer of a Puppet Server; `None` if it is not a list of classes.
pub fn read_published(answer: &Value) -> Option<Published> {
    let mut published = Published { classes: Vec::new(), broken: Vec::new() };
    for file in answer.get("files")?.as_array()? {
        let path = file.get("path")?.as_str()?;
        if let Some(reason) = file.get("error").and_then(Value::as_str) {
            published.broken.push((path.to_owned(), reason.to_owned()));
        }
        for class in file.get("classes").and_then(Value::as_array).into_iter().flatten() {
            let parameters = class.get("params")?.as_array()?.iter().map(parameter);
            let class = PuppetClass {
                name: class.get("name")?.as_str()?.to_owned(),
                line: 1,
                parameters: parameters.collect::<Option<_>>()?,
            };
            published.classes.push((path.to_owned(), class));
        }
    }
    Some(published)
}

fn parameter(parameter: &Value) -> Option<Parameter> {
    let text = |key: &str| parameter.get(key).and_then(Value::as_str);
    let default = match (parameter.get("default_literal"), text("default_source")) {
        (Some(value), _) => Default::Value(value.clone()),
        (None, Some("undef")) => Default::Value(Value::Null),
        (None, Some(code)) => Default::Code(code.to_owned()),
        (None, None) => Default::Required,
    };
    let data_type = text("type").and_then(|it| as_in_manifests(it).parse::<DataType>().ok());
    Some(Parameter { name: text("name")?.to_owned(), data_type, default })
}

/// Returns a type that Puppet printed as manifests have it. In single quotes it prints a backslash as it is, and not twice.
fn as_in_manifests(printed: &str) -> Cow<'_, str> {
    if !printed.contains('\\') {
        return Cow::Borrowed(printed);
    }
    let mut text = String::new();
    let mut quote = None;
    let mut characters = printed.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\'' | '"' | '/', None) => quote = Some(character),
            ('\\', Some('\'')) => {
                // What stands behind it is printed as it is, but for the end of the text.
                match characters.next() {
                    Some('\'') => text.push_str("\\'"),
                    Some('\\') => text.push_str("\\\\\\\\"),
                    Some(other) => {
                        text.push_str("\\\\");
                        text.push(other);
                    }
                    None => text.push('\\'),
                }
                continue;
            }
            ('\\', Some(_)) => {
                text.push('\\');
                text.extend(characters.next());
                continue;
            }
            (closing, Some(open)) if closing == open => quote = None,
            _ => {}
        }
        text.push(character);
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::table::each_row;

    #[test]
    fn an_invalid_list_of_classes_is_not_read_in_part() {
        for answer in [
            json!(null),
            json!({"classes": []}),
            json!({"files": {}}),
            json!({"files": [{"classes": []}]}),
            json!({"files": [{"path": "a.pp", "classes": [{"name": "a"}]}]}),
            json!({"files": [{"path": "a.pp", "classes": [{"params": []}]}]}),
            json!({"files": [{"path": "a.pp", "classes": [{"name": "a", "params": [{"type": "String"}]}]}]}),
        ] {
            assert_eq!(read_published(&answer), None, "{answer}");
        }
    }

    #[test]
    fn a_printed_type_has_its_backslashes_once() {
        let rows = [
            (r"Enum['a', 'b']", r"Enum['a', 'b']"),
            // Printed by Puppet 7.23 for `a\b`, `\srv`, `\\srv`, `it's` and a line break.
            (r"Enum['a\b']", r"Enum['a\\b']"),
            (r"Enum['\srv', 'x']", r"Enum['\\srv', 'x']"),
            (r"Enum['\\srv']", r"Enum['\\\\srv']"),
            (r"Enum['it\'s']", r"Enum['it\'s']"),
            (r#"Enum["a\n", 'b\c']"#, r#"Enum["a\n", 'b\\c']"#),
            (r"Pattern[/\A'\d\/'/]", r"Pattern[/\A'\d\/'/]"),
        ];
        each_row(rows, |(printed, text)| assert_eq!(as_in_manifests(printed), text));
    }

    #[test]
    fn files_are_read_with_what_is_wrong_with_them() {
        let answer = json!({"files": [
            {"path": "a.pp", "classes": [{"name": "a", "params": [
                {"name": "one"},
                {"name": "two", "default_source": "undef"},
                {"name": "three", "default_source": "$b", "type": "Foo["},
            ]}]},
            {"path": "b.pp", "error": "no"},
        ]});
        let published = read_published(&answer).unwrap();
        assert_eq!(published.broken, [("b.pp".to_owned(), "no".to_owned())]);
        let parameters = &published.classes[0].1.parameters;
        let defaults: Vec<&Default> = parameters.iter().map(|it| &it.default).collect();
        let code = Default::Code("$b".to_owned());
        assert_eq!(defaults, [&Default::Required, &Default::Value(Value::Null), &code]);
        assert_eq!(parameters[2].data_type, None);
    }
}
