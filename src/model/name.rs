//! Names, each with its own grammar.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::shared_text;

/// A string is not a name of the wanted sort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {sort}: {reason}")]
pub struct NameError {
    name: String,
    sort: &'static str,
    reason: &'static str,
}

impl NameError {
    /// Returns what is wrong with the name, without the name.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

macro_rules! name {
    ($(#[doc = $doc:literal])+ $name:ident, $sort:literal, $normalise:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the part of a text that is the name, or what is wrong with it.
            pub(crate) fn normalised(text: &str) -> Result<&str, &'static str> {
                let normalise: fn(&str) -> Result<&str, &'static str> = $normalise;
                normalise(text)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                match Self::normalised(text) {
                    Ok(name) => Ok(Self(shared_text(name))),
                    Err(reason) => Err(NameError { name: text.to_owned(), sort: $sort, reason }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// The name of a node group: any text that is not blank, of at most 1,024 characters.
    GroupName, "a group name", |text| {
        if text.trim().is_empty() {
            Err("it is blank")
        } else if text.chars().any(char::is_control) {
            Err("it has a control character")
        } else if is_long(text) {
            Err("it is longer than 1,024 characters")
        } else {
            Ok(text)
        }
    }
}

impl GroupName {
    /// How Puppet Enterprise calls the root group.
    pub const ROOT: &'static str = "All Nodes";
}

name! {
    /// The name of a Puppet environment: ASCII letters, digits and underscores (Puppet's `\\A\\w+\\z`);
    /// or `agent-specified`, which leaves the choice to the agent.
    EnvironmentName, "an environment name", |text| match text {
        "agent-specified" => Ok(text),
        "" => Err("it is empty, which Puppet takes for an environment without any class"),
        _ if text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') => Ok(text),
        _ => Err("Puppet allows ASCII letters, digits and underscores"),
    }
}

/// Why `agent-specified` cannot be made, removed or described.
pub const AGENT_SPECIFIED: &str =
    "`agent-specified` is not an environment: it leaves the choice to the agent";

impl EnvironmentName {
    /// Returns whether the choice is left to the agent.
    pub fn is_agent_specified(&self) -> bool {
        self.as_str() == "agent-specified"
    }
}

name! {
    /// The name of a Puppet class, such as `profile::base`.
    ///
    /// A class name is one or more segments joined by `::`. A segment starts with a
    /// lowercase ASCII letter and goes on with lowercase letters, digits and
    /// underscores. A leading `::` is accepted and dropped, so that two spellings of
    /// the same class compare equal.
    ///
    /// ```
    /// use clade::ClassName;
    ///
    /// let name: ClassName = "::profile::base".parse()?;
    /// assert_eq!(name.as_str(), "profile::base");
    /// assert!("profile::Base".parse::<ClassName>().is_err());
    /// # Ok::<(), clade::NameError>(())
    /// ```
    ClassName, "a class name", |text| {
        let name = text.strip_prefix("::").unwrap_or(text);
        if is_long(name) {
            Err("it is longer than 1,024 characters")
        } else if is_class_name(name) {
            Ok(name)
        } else {
            Err("its segments start with a lowercase letter and go on with lowercase letters, digits and underscores")
        }
    }
}

name! {
    /// The name of a class parameter or config-data key: what every reader of the ENC document
    /// takes as a key.
    Key, "a key", key
}

name! {
    /// The name of a top-scope variable that Puppet lets an ENC set.
    VariableName, "a variable name", |text| match text {
        "facts" | "server_facts" | "module_name" => Err("Puppet reserves it and fails the run"),
        "" => Err("it is empty"),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err("Puppet reserves numbers for regular expression captures and fails the run")
        }
        _ => key(text),
    }
}

/// Checks that a group can set a variable of a valid name. `name` and `title` are valid names all the same: what
/// earlier versions stored of nodes has them.
///
/// # Errors
///
/// Returns why no group can set it.
pub fn check_settable_variable(text: &str) -> Result<(), NameError> {
    if !matches!(text, "name" | "title") {
        return Ok(());
    }
    let reason = "Puppet reserves it and fails the run";
    Err(NameError { name: text.to_owned(), sort: "a variable name", reason })
}

/// Checks that a Puppet class can have a parameter of a name. Puppet fails the run for others, but for `name`, which
/// it accepts for every class although no class can declare it.
///
/// # Errors
///
/// Returns why no class can have one.
pub fn check_parameter_name(text: &str) -> Result<(), NameError> {
    let starts_well = text.starts_with(|it: char| it.is_ascii_lowercase() || it == '_');
    let is_word = text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let reason = match text {
        "title" => "Puppet reserves it",
        _ if starts_well && is_word => return Ok(()),
        _ => {
            "its name starts with a lowercase letter or `_` and goes on with letters, digits and `_`"
        }
    };
    Err(NameError { name: text.to_owned(), sort: "a parameter that a class can have", reason })
}

/// The longest key, in characters, that YAML 1.1 readers take in flow style.
const KEY_LIMIT: usize = 1024;

fn key(text: &str) -> Result<&str, &'static str> {
    if text == "<<" {
        Err("YAML readers take it for a merge, even in quotes")
    } else if is_long(text) {
        Err("it is longer than 1,024 characters")
    } else {
        Ok(text)
    }
}

/// Returns whether a name is of segments with `::` between them. It takes one pass: a name is read for each class of
/// each group.
fn is_class_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let mut is_begun = false;
    while let Some(byte) = bytes.next() {
        is_begun = match byte {
            b'a'..=b'z' => true,
            b'0'..=b'9' | b'_' if is_begun => true,
            b':' if is_begun && bytes.next() == Some(b':') => false,
            _ => return false,
        };
    }
    is_begun
}

/// Returns whether a name is longer than YAML readers take keys.
fn is_long(name: &str) -> bool {
    name.len() > KEY_LIMIT && name.chars().nth(KEY_LIMIT).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts<N: FromStr>(accepted: &[&str], rejected: &[&str]) {
        for text in accepted {
            assert!(text.parse::<N>().is_ok(), "{text:?} should be accepted");
        }
        for text in rejected {
            assert!(text.parse::<N>().is_err(), "{text:?} should be rejected");
        }
    }

    #[test]
    fn group_names_are_any_visible_text() {
        verdicts::<GroupName>(
            &["All Nodes", "ウェブ", "a/b"],
            &["", "  ", "a\nb", &"x".repeat(1025)],
        );
    }

    #[test]
    fn environment_names_follow_puppet() {
        verdicts::<EnvironmentName>(
            &["production", "feature_1", "1", "agent-specified", "JIRA_123", "Production", "_a"],
            &["", "my-env", "a b", "prod\n", "é", "Agent-Specified"],
        );
    }

    #[test]
    fn class_names_follow_puppet() {
        verdicts::<ClassName>(
            &["ntp", "profile::base", "::ntp", "a1_b::c"],
            &[
                "", "::", "Ntp", "ntp::", "1ntp", "a:", ":a", "a:b", "a:::b", "a::::b", "::::a",
                "_a",
            ],
        );
        assert_eq!("::ntp".parse::<ClassName>().unwrap().as_str(), "ntp");
    }

    #[test]
    fn variable_names_avoid_what_puppet_fails_on() {
        verdicts::<VariableName>(
            &["ntp_servers", "trusted", "log-level", "a1", "1a"],
            &["facts", "server_facts", "module_name", "0", "42", "", "<<", &"x".repeat(1025)],
        );
        for name in ["name", "title"] {
            assert!(name.parse::<VariableName>().is_ok(), "{name} is in what was stored");
            assert!(check_settable_variable(name).is_err(), "{name}");
        }
        assert_eq!(check_settable_variable("names"), Ok(()));
    }

    /// What Puppet 7.23 does with each was tried.
    #[test]
    fn parameter_names_are_those_that_a_class_can_have() {
        for name in ["port", "_p", "aB_1", "name", "noop", "facts"] {
            assert_eq!(check_parameter_name(name), Ok(()), "{name}");
        }
        for name in ["title", "", "x y", "Port", "a::b", "0", "1a", "é", "p-q", "p.q"] {
            assert!(check_parameter_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn keys_are_what_yaml_readers_take() {
        verdicts::<Key>(&["", "é".repeat(1024).as_str(), "<"], &["<<", &"é".repeat(1025)]);
    }
}
