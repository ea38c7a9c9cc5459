//! The settings file of `clade serve`: the flags' names as keys.

use crate::diagnostic::closest;
use crate::document::{self, FaultKind, Limits, Node};

/// The settings that a file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeFile {
    /// `repo`
    pub repo: Option<String>,
    /// `branch`
    pub branch: Option<String>,
    /// `path`
    pub path: Option<String>,
    /// `listen`
    pub listen: Option<String>,
    /// `data-dir`
    pub data_dir: Option<String>,
    /// `interval`
    pub interval: Option<String>,
    /// `allow-anonymous`
    pub allow_anonymous: Option<bool>,
}

/// A settings file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SettingsError {
    line: u32,
    column: u32,
    message: String,
}

const KEYS: &[&str] =
    &["repo", "branch", "path", "listen", "data-dir", "interval", "allow-anonymous"];

impl ServeFile {
    /// Reads a settings file; `_` in a key is as good as `-`.
    ///
    /// # Errors
    ///
    /// Returns the first thing that is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, SettingsError> {
        let contents = document::read(bytes, &Limits::DEFAULT);
        let at = |span: document::Span, message: String| SettingsError {
            line: span.start.line,
            column: span.start.column,
            message,
        };
        let fault = contents.faults.into_iter().find(|it| it.kind != FaultKind::AmbiguousScalar);
        if let Some(fault) = fault {
            return Err(at(fault.span, fault.message));
        }
        let mut settings = Self::default();
        let Some(document) = contents.documents.first().filter(|it| !it.is_null()) else {
            return Ok(settings);
        };
        if !matches!(document.content, document::Content::Mapping(_)) {
            return Err(at(
                document.span,
                format!("the settings must be a mapping, here is {}", document.sort()),
            ));
        }
        for entry in document.entries() {
            let key = entry.key.replace('_', "-");
            let text = |node: &Node| {
                let message = || format!("`{key}` must be a string, here is {}", node.sort());
                node.as_str().map(str::to_owned).ok_or_else(|| at(node.span, message()))
            };
            match key.as_str() {
                "repo" => settings.repo = Some(text(&entry.value)?),
                "branch" => settings.branch = Some(text(&entry.value)?),
                "path" => settings.path = Some(text(&entry.value)?),
                "listen" => settings.listen = Some(text(&entry.value)?),
                "data-dir" => settings.data_dir = Some(text(&entry.value)?),
                "interval" => settings.interval = Some(text(&entry.value)?),
                "allow-anonymous" => {
                    let value = entry.value.to_value().as_bool();
                    let message = || "`allow-anonymous` must be true or false".to_owned();
                    settings.allow_anonymous =
                        Some(value.ok_or_else(|| at(entry.value.span, message()))?);
                }
                _ => {
                    let help = match closest(&key, KEYS.iter().copied()) {
                        Some(similar) => format!("; did you mean `{similar}`?"),
                        None => String::new(),
                    };
                    let message = format!("unknown setting `{}`{help}", entry.key);
                    return Err(at(entry.key_span, message));
                }
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_the_names_of_the_flags() {
        let read = ServeFile::read(b"repo: /srv/groups.git\ndata_dir: /var/lib/clade\ninterval: 30s\nallow-anonymous: true\n");
        let expected = ServeFile {
            repo: Some("/srv/groups.git".to_owned()),
            data_dir: Some("/var/lib/clade".to_owned()),
            interval: Some("30s".to_owned()),
            allow_anonymous: Some(true),
            ..ServeFile::default()
        };
        assert_eq!(read, Ok(expected));
        assert_eq!(ServeFile::read(b"# nothing\n"), Ok(ServeFile::default()));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, message) in [
            ("listn: x\n", "line 1, column 1: unknown setting `listn`; did you mean `listen`?"),
            ("repo: 5\n", "line 1, column 7: `repo` must be a string, here is a number"),
            ("- x\n", "line 1, column 1: the settings must be a mapping, here is a list"),
            ("repo: [\n", "line 2, column 1:"),
        ] {
            let error = ServeFile::read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
