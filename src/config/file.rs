//! The settings file of `clade serve`: the names of its flags as keys.

use serde_json::Value;

use crate::diagnostic::closest;
use crate::document::{self, Content, FaultKind, Limits, Node};

/// A setting that a file may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSetting {
    /// The name of the flag.
    pub name: String,
    /// What it takes.
    pub takes: Takes,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// True or false.
    Switch,
    /// A string.
    One,
    /// A duration, as a string.
    Duration,
    /// A string, or a list of them.
    Many,
    /// Names with numbers: a mapping, or a list of `NAME=NUMBER`.
    Pairs,
}

/// A setting that a file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSetting {
    /// The name of the flag.
    pub name: String,
    /// Its values, as flags would have them.
    pub values: Vec<String>,
    /// The line of the value, from 1.
    pub line: u32,
    /// Its column, from 1.
    pub column: u32,
}

/// A settings file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SettingsError {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
}

impl SettingsError {
    fn at(span: document::Span, message: impl Into<String>) -> Self {
        Self { line: span.start.line, column: span.start.column, message: message.into() }
    }
}

/// Reads a settings file; `_` in a key is as good as `-`. `foreign` says where a key belongs that is not known here.
///
/// # Errors
///
/// Returns the first thing that is wrong with it.
pub fn read_settings(
    bytes: &[u8],
    known: &[KnownSetting],
    foreign: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<FileSetting>, SettingsError> {
    let contents = document::read(bytes, &Limits::DEFAULT);
    let fault = contents.faults.into_iter().find(|it| it.kind != FaultKind::AmbiguousScalar);
    if let Some(fault) = fault {
        return Err(SettingsError::at(fault.span, fault.message));
    }
    if let Some(second) = contents.documents.get(1) {
        return Err(SettingsError::at(
            second.span,
            "the settings are one document, here is another",
        ));
    }
    let Some(document) = contents.documents.first().filter(|it| !it.is_null()) else {
        return Ok(Vec::new());
    };
    if !matches!(document.content, Content::Mapping(_)) {
        let message = format!("settings: expected a mapping, found {}", document.type_name());
        return Err(SettingsError::at(document.span, message));
    }
    document
        .entries()
        .iter()
        .map(|entry| {
            let name = entry.key.replace('_', "-");
            let Some(setting) = known.iter().find(|it| it.name == name) else {
                let similar = || closest(&name, known.iter().map(|it| it.name.as_str()));
                let similar = || similar().map(|it| format!("did you mean `{it}`?"));
                let help = foreign(&entry.key).or_else(similar);
                let help = help.map(|it| format!("; {it}")).unwrap_or_default();
                let message = format!("unknown setting `{}`{help}", entry.key);
                return Err(SettingsError::at(entry.key_span, message));
            };
            let values = values(&entry.value, setting)?;
            let start = entry.value.span.start;
            Ok(FileSetting { name, values, line: start.line, column: start.column })
        })
        .collect()
}

fn values(node: &Node, setting: &KnownSetting) -> Result<Vec<String>, SettingsError> {
    let name = &setting.name;
    let text = |node: &Node| match node.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => {
            let (found, help) = (node.type_name(), string_help(node, setting.takes));
            let message = format!("`{name}`: expected a string, found {found}{help}");
            Err(SettingsError::at(node.span, message))
        }
    };
    match (setting.takes, &node.content) {
        (Takes::Switch, _) => match node.to_value().as_bool() {
            Some(value) => Ok(vec![value.to_string()]),
            None => Err(SettingsError::at(node.span, format!("`{name}` must be true or false"))),
        },
        (Takes::Many | Takes::Pairs, Content::Sequence(items)) => items.iter().map(text).collect(),
        (Takes::Pairs, Content::Mapping(entries)) => entries
            .iter()
            .map(|entry| match &entry.value.content {
                Content::Scalar(Value::Number(number)) => Ok(format!("{}={number}", entry.key)),
                _ => {
                    let message = format!(
                        "expected a number for `{}`, found {}",
                        entry.key,
                        entry.value.type_name()
                    );
                    Err(SettingsError::at(entry.value.span, message))
                }
            })
            .collect(),
        _ => Ok(vec![text(node)?]),
    }
}

/// Says how to write a value that was meant as a string.
fn string_help(node: &Node, takes: Takes) -> &'static str {
    match node.content {
        Content::Scalar(Value::Number(_)) if takes == Takes::Duration => {
            "; write a duration with its unit, such as `30s` or `5m`"
        }
        // Helm reads YAML 1.1 and writes `writes: off` as `writes: false`.
        Content::Scalar(Value::Bool(_)) => {
            "; put it in quotes: programs that read YAML 1.1, such as Helm, take `off` for `false`, and `on` for `true`"
        }
        Content::Scalar(Value::Number(_)) => "; put it in quotes",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(key: &str) -> Option<String> {
        (key == "policy").then(|| "it belongs elsewhere".to_owned())
    }

    fn known() -> Vec<KnownSetting> {
        [
            ("repo", Takes::One),
            ("listen", Takes::One),
            ("data-dir", Takes::One),
            ("interval", Takes::Duration),
            ("fetch-refspec", Takes::Many),
            ("commit-budget", Takes::Pairs),
            ("allow-anonymous", Takes::Switch),
        ]
        .map(|(name, takes)| KnownSetting { name: name.to_owned(), takes })
        .to_vec()
    }

    #[test]
    fn settings_have_the_names_of_the_flags() {
        let text = "repo: /srv/groups.git\ndata_dir: /var/lib/clade\nallow-anonymous: true\nfetch-refspec: [a, b]\n";
        let read = read_settings(text.as_bytes(), &known(), &foreign).unwrap();
        let read: Vec<(&str, String, u32, u32)> = read
            .iter()
            .map(|it| (it.name.as_str(), it.values.join(" "), it.line, it.column))
            .collect();
        assert_eq!(
            read,
            [
                ("repo", "/srv/groups.git".to_owned(), 1, 7),
                ("data-dir", "/var/lib/clade".to_owned(), 2, 11),
                ("allow-anonymous", "true".to_owned(), 3, 18),
                ("fetch-refspec", "a b".to_owned(), 4, 16),
            ]
        );
        assert_eq!(read_settings(b"# nothing\n", &known(), &foreign), Ok(Vec::new()));
    }

    #[test]
    fn limits_are_a_mapping_or_a_list() {
        for text in
            ["commit-budget: {groups: 5, depth: 9}\n", "commit-budget: ['groups=5', 'depth=9']\n"]
        {
            let read = read_settings(text.as_bytes(), &known(), &foreign).unwrap();
            assert_eq!(read.first().unwrap().values, ["groups=5", "depth=9"]);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            (
                "commit-budget: {groups: many}\n",
                "line 1, column 25: expected a number for `groups`, found a string",
            ),
            ("listn: x\n", "line 1, column 1: unknown setting `listn`; did you mean `listen`?"),
            ("policy: {}\n", "line 1, column 1: unknown setting `policy`; it belongs elsewhere"),
            (
                "repo: 5\n",
                "line 1, column 7: `repo`: expected a string, found a number; put it in quotes",
            ),
            (
                "interval: 30\n",
                "line 1, column 11: `interval`: expected a string, found a number; write a duration with its unit, such as `30s` or `5m`",
            ),
            (
                "repo: false\n",
                "line 1, column 7: `repo`: expected a string, found a boolean; put it in quotes: programs that \
                 read YAML 1.1, such as Helm, take `off` for `false`, and `on` for `true`",
            ),
            ("repo: [a]\n", "line 1, column 7: `repo`: expected a string, found a list"),
            (
                "allow-anonymous: maybe\n",
                "line 1, column 18: `allow-anonymous` must be true or false",
            ),
            ("- x\n", "line 1, column 1: settings: expected a mapping, found a list"),
            ("repo: [\n", "line 1, column 7: the `[` that opens here is not closed"),
            ("repo: a\n---\nrepo: b\n", "line 3, column 1: the settings are one document"),
        ] {
            let error = read_settings(text.as_bytes(), &known(), &foreign).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
