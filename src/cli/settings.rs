//! A settings file under the flags and the environment, each setting read by the same parser.
//!
//! What a file says is put among the flags where neither a flag nor a variable says it, and the
//! command line is read once more: so there is one list of settings, one order of precedence, and one
//! set of messages, and what settings demand of each other holds wherever each comes from.

mod relations;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

pub(super) use relations::without_relations;
use relations::{faults, present};

use super::command_line::CommandLine;
use crate::config::{FileSetting, KnownSetting, Takes, read_bounded, read_settings};
use crate::validation::SETTINGS_KEYS;

/// The command that a settings file is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileOf {
    /// Its name.
    pub(super) command: &'static str,
    /// The flags that are no settings.
    pub(super) without: &'static [&'static str],
}

/// What a settings file says.
#[derive(Debug)]
pub(super) struct SettingsFile {
    of: FileOf,
    path: Option<PathBuf>,
    settings: Vec<FileSetting>,
}

impl FileOf {
    /// Returns the flags that may stand in the file.
    pub(super) fn settable(self, definition: &Command) -> Vec<Arg> {
        let Some(command) = definition.find_subcommand(self.command) else { return Vec::new() };
        let is_setting = |it: &&Arg| {
            let id = it.get_id().as_str();
            it.get_long().is_some() && id != "help" && !self.without.contains(&id)
        };
        command.get_arguments().filter(is_setting).cloned().collect()
    }

    fn known(self, definition: &Command) -> Vec<KnownSetting> {
        let of = |arg: &Arg| {
            let takes = match arg.get_action() {
                ArgAction::SetTrue => Takes::Switch,
                ArgAction::Append if has_pairs(arg) => Takes::Pairs,
                ArgAction::Append => Takes::Many,
                _ if has_value_named(arg, |it| it == "DURATION") => Takes::Duration,
                _ => Takes::One,
            };
            Some(KnownSetting { name: arg.get_long()?.to_owned(), takes })
        };
        self.settable(definition).iter().filter_map(of).collect()
    }
}

/// Returns whether a flag takes names with numbers.
fn has_pairs(arg: &Arg) -> bool {
    has_value_named(arg, |it| it.contains('='))
}

fn has_value_named(arg: &Arg, is_named: impl Fn(&str) -> bool) -> bool {
    arg.get_value_names().unwrap_or_default().iter().any(|it| is_named(it.as_str()))
}

/// Says of a key of a group repository's settings that it belongs in another file, which may have the same name.
fn of_repository(key: &str) -> Option<String> {
    SETTINGS_KEYS.contains(&key).then(|| {
        "it belongs in the `clade.yaml` of the group repository, which is another file".to_owned()
    })
}

impl SettingsFile {
    /// Where there is no file.
    pub(super) fn none(of: FileOf) -> Self {
        Self { of, path: None, settings: Vec::new() }
    }

    /// Reads a file.
    pub(super) fn read(of: FileOf, path: &Path, definition: &Command) -> Result<Self> {
        let bytes = read_bounded(path)
            .with_context(|| format!("cannot read the settings in `{}`", path.display()))?;
        let settings =
            read_settings(&bytes, &of.known(definition), &of_repository).map_err(|error| {
                anyhow!("{}:{}:{}: {}", path.display(), error.line, error.column, error.message)
            })?;
        Ok(Self { of, path: Some(path.to_owned()), settings })
    }

    /// Parses the command line with what the file says.
    pub(super) fn layer(&self, line: &CommandLine) -> Result<LayeredMatches> {
        let (command, arguments) = (line.definition(), line.arguments());
        let name = self.of.command;
        let given = of_command(without_relations_of(command.clone(), name), arguments, name)
            .map_err(|error| anyhow!("{}", message(&error)))?;
        let all = self.among(line, &given);
        let error = match of_command(command.clone(), &all, name) {
            Ok(matches) => return Ok(LayeredMatches { matches, given }),
            Err(error) => error,
        };
        let definitions = command.find_subcommand(name).context("the command is gone")?;
        let present = present(definitions, &given, &|name| self.place(name));
        let faults = faults(command, name, &all, &present);
        if faults.is_empty() {
            return Err(explain(&error, &self.settings, self.path.as_deref()));
        }
        bail!("{}", faults.join("; "))
    }

    /// Returns the arguments with the settings of the file among them.
    fn among(&self, line: &CommandLine, given: &ArgMatches) -> Vec<OsString> {
        let arguments = line.arguments();
        let is_command = |it: &OsString| *it == self.of.command;
        let at = arguments.iter().skip(1).position(is_command).map_or(1, |it| it + 2);
        let (before, after) = arguments.split_at(at.min(arguments.len()));
        let settable = self.of.settable(line.definition());
        let flags = self.settings.iter().flat_map(|setting| {
            let arg = settable.iter().find(|it| it.get_long() == Some(&setting.name));
            let is_ours = arg.is_some_and(|it| given_at(given, it).is_none());
            let is_switch = arg.is_some_and(|it| matches!(it.get_action(), ArgAction::SetTrue));
            let values = setting.values.iter().filter(move |_| is_ours);
            values.filter_map(move |value| match (is_switch, value.as_str()) {
                (true, "true") => Some(format!("--{}", setting.name)),
                (true, _) => None,
                (false, value) => Some(format!("--{}={value}", setting.name)),
            })
        });
        let flags: Vec<OsString> = flags.map(OsString::from).collect();
        [before, &flags, after].concat()
    }

    /// Returns where the file has a setting.
    fn place(&self, name: &str) -> Option<String> {
        let setting = self.settings.iter().find(|it| it.name == name)?;
        let file = self.path.as_deref()?.display();
        Some(format!("{file}:{}:{}", setting.line, setting.column))
    }

    /// Returns where a setting comes from, in a word.
    pub(super) fn source(&self, layered: &LayeredMatches, arg: &Arg) -> &'static str {
        match given_at(&layered.given, arg) {
            Some(ValueSource::CommandLine) => "flag",
            Some(_) => "environment",
            None if self.settings.iter().any(|it| arg.get_long() == Some(&it.name)) => "file",
            None => "default",
        }
    }
}

/// The command line with what a settings file says.
pub(super) struct LayeredMatches {
    pub(super) matches: ArgMatches,
    /// The same without the file.
    given: ArgMatches,
}

/// Returns whether a flag or a variable gives a setting.
fn given_at(given: &ArgMatches, arg: &Arg) -> Option<ValueSource> {
    given.value_source(arg.get_id().as_str()).filter(|it| *it != ValueSource::DefaultValue)
}

/// Returns a command line whose settings may stand in any combination in one command, if it has it.
pub(super) fn without_relations_of(command: Command, name: &str) -> Command {
    if command.find_subcommand(name).is_none() {
        return command;
    }
    command.mut_subcommand(name, without_relations)
}

/// Returns what flags and variables of a command without a settings file demand of each other and do
/// not get.
pub(super) fn unmet(line: &CommandLine) -> Vec<String> {
    let (command, arguments) = (line.definition(), line.arguments());
    let any = command.clone().mut_subcommands(without_relations);
    let Ok(matches) = any.try_get_matches_from(arguments) else { return Vec::new() };
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let Some(definitions) = command.find_subcommand(name) else { return Vec::new() };
    faults(command, name, arguments, &present(definitions, given, &|_| None))
}

fn of_command(
    command: Command,
    arguments: &[OsString],
    name: &str,
) -> Result<ArgMatches, clap::Error> {
    let mut matches = command.try_get_matches_from(arguments)?;
    let (_, of_name) =
        matches.remove_subcommand().filter(|(it, _)| it == name).ok_or_else(|| {
            clap::Error::raw(
                clap::error::ErrorKind::MissingSubcommand,
                "the command line cannot be read twice",
            )
        })?;
    Ok(of_name)
}

/// Says where in the file a value stands that a flag would refuse.
fn explain(error: &clap::Error, settings: &[FileSetting], file: Option<&Path>) -> anyhow::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let at_fault = settings.iter().find(|setting| {
        let flag = format!("--{}", setting.name);
        text(ContextKind::InvalidArg).is_some_and(|it| it.split(' ').next() == Some(flag.as_str()))
            && text(ContextKind::InvalidValue)
                .is_some_and(|it| setting.values.iter().any(|value| value == it))
    });
    match (at_fault, file) {
        (Some(FileSetting { name, line, column, .. }), Some(file)) => {
            let why = refusal(error);
            anyhow!("{}:{line}:{column}: `{name}`: {why}", file.display())
        }
        _ => anyhow!("{}", message(error)),
    }
}

/// Says what is wrong with a value, in the words of a file: without a flag and without a usage.
fn refusal(error: &clap::Error) -> String {
    if let Some(source) = std::error::Error::source(error) {
        return source.to_string();
    }
    match (error.get(ContextKind::ValidValue), error.get(ContextKind::InvalidValue)) {
        (Some(ContextValue::Strings(known)), Some(ContextValue::String(found))) => {
            let known: Vec<String> = known.iter().map(|it| format!("`{it}`")).collect();
            format!("expected one of {}, found `{found}`", known.join(", "))
        }
        _ => message(error),
    }
}

/// Returns the variable that has a value at fault, if no flag has it.
pub(super) fn variable_at_fault(line: &CommandLine, error: &clap::Error) -> Option<String> {
    use clap::error::ErrorKind::{InvalidValue, ValueValidation};

    let Some(ContextValue::String(at_fault)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    if !matches!(error.kind(), InvalidValue | ValueValidation) {
        return None;
    }
    let flag = at_fault.split([' ', '=']).next()?;
    let is_flag = |it: &OsString| it.to_string_lossy().split('=').next() == Some(flag);
    let mut command = line.definition();
    for word in line.arguments().iter().skip(1) {
        let Some(below) = command.find_subcommand(word) else { break };
        command = below;
    }
    let is_arg =
        |it: &&Arg| it.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long));
    let variable = command.get_arguments().find(is_arg)?.get_env()?;
    let is_of_variable =
        std::env::var_os(variable).is_some() && !line.arguments().iter().any(is_flag);
    is_of_variable.then(|| variable.to_string_lossy().into_owned())
}

/// Writes on one line what is wrong with a command line.
pub(super) fn in_one_line(error: &clap::Error) -> String {
    let message = message(error);
    let paragraphs = message.split("\n\n").map(|it| {
        let words: Vec<&str> = it.split_whitespace().collect();
        words.join(" ")
    });
    paragraphs.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("; ")
}

fn message(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    rendered.strip_prefix("error: ").unwrap_or(&rendered).trim_end().to_owned()
}
