//! A settings file under the flags and the environment, each setting read by the same parser.
//!
//! What a file says becomes the default of its flag, and the command line is read once more: so
//! there is one list of settings, one order of precedence, and one set of messages.
#![expect(clippy::disallowed_methods, reason = "settings are a file")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches};

use crate::config::{Known, Setting, Takes, read_settings};

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
    settings: Vec<Setting>,
}

impl FileOf {
    /// Returns the flags that may stand in the file.
    pub(super) fn settable(self) -> Vec<Arg> {
        let commands = super::command();
        let Some(command) = commands.find_subcommand(self.command) else { return Vec::new() };
        let is_setting = |it: &&Arg| {
            let id = it.get_id().as_str();
            it.get_long().is_some() && id != "help" && !self.without.contains(&id)
        };
        command.get_arguments().filter(is_setting).cloned().collect()
    }

    fn known(self) -> Vec<Known> {
        let of = |arg: &Arg| {
            let takes = match arg.get_action() {
                ArgAction::SetTrue => Takes::Switch,
                ArgAction::Append if has_pairs(arg) => Takes::Pairs,
                ArgAction::Append => Takes::Many,
                _ => Takes::One,
            };
            Some(Known { name: arg.get_long()?.to_owned(), takes })
        };
        self.settable().iter().filter_map(of).collect()
    }
}

/// Returns whether a flag takes names with numbers.
fn has_pairs(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|it| it.as_str().contains('='))
}

impl SettingsFile {
    /// Where there is no file.
    pub(super) fn none(of: FileOf) -> Self {
        Self { of, path: None, settings: Vec::new() }
    }

    /// Reads a file.
    pub(super) fn read(of: FileOf, path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path)
            .with_context(|| format!("cannot read the settings in `{}`", path.display()))?;
        let settings = read_settings(&bytes, &of.known()).map_err(|error| {
            anyhow!("{}:{}:{}: {}", path.display(), error.line, error.column, error.message)
        })?;
        Ok(Self { of, path: Some(path.to_owned()), settings })
    }

    /// Returns whether the file has a setting.
    pub(super) fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|it| it.name == name)
    }

    /// Reads the command line with what the file says as defaults.
    pub(super) fn matches(&self, arguments: &[OsString]) -> Result<ArgMatches> {
        let command = super::command().mut_subcommand(self.of.command, |command| {
            self.settings.iter().fold(command, |command, setting| {
                let values: Vec<OsString> = setting.values.iter().map(OsString::from).collect();
                command.mut_arg(setting.name.replace('-', "_"), |arg| arg.default_values(values))
            })
        });
        let mut matches = command
            .try_get_matches_from(arguments)
            .map_err(|error| explain(&error, &self.settings, self.path.as_deref()))?;
        match matches.remove_subcommand() {
            Some((_, matches)) => Ok(matches),
            None => bail!("the command line cannot be read twice"),
        }
    }
}

/// Says where in the file a value stands that a flag would refuse.
fn explain(error: &clap::Error, settings: &[Setting], file: Option<&Path>) -> anyhow::Error {
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
    let rendered = error.render().to_string();
    let message = rendered.strip_prefix("error: ").unwrap_or(&rendered).trim_end();
    match (at_fault, file) {
        (Some(setting), Some(file)) => {
            anyhow!("{}:{}:{}: {message}", file.display(), setting.line, setting.column)
        }
        _ => anyhow!("{message}"),
    }
}
