//! Words of the command line that a command does not take, and that have a place elsewhere.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::command_line::CommandLine;
use super::shell::word_of_shell;
use crate::diagnostic::Kind;

/// Says where a word belongs that the command of a line does not take.
pub(super) fn note(line: &CommandLine, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument || word.starts_with('-') {
        return None;
    }
    let shown = word_of_shell(word);
    let is_kind = Kind::ALL.iter().any(|it| it.as_str() == word);
    match line.arguments().get(1)?.to_str()? {
        "serve" => Some(format!("a flag names the repository: `clade serve --repo {shown}`")),
        "lint" if is_kind => Some(format!("a flag names the kind: `clade lint --explain {shown}`")),
        "lint" => Some(format!(
            "`clade lint` only explains kinds of findings; `clade validate {shown}` checks a repository"
        )),
        _ => None,
    }
}
