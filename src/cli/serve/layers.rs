//! The effective settings of the daemon: flags over environment over file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, Command, FromArgMatches as _};

use super::ServeSettings;
use crate::cli::command_line::CommandLine;
use crate::cli::settings::{self, FileOf, SettingsFile};
use crate::config::without_secrets;
use crate::diagnostic::closest;
use crate::git::Remote;

/// The settings file.
pub(in crate::cli) const FILE: FileOf = FileOf { command: "serve", without: &["config", "check"] };

/// The effective settings.
pub(super) struct EffectiveSettings {
    pub(super) serve: ServeSettings,
    /// The same for people, without secrets.
    pub(super) shown: String,
    values: SettingValues,
}

/// The values of settings by their names, as they are written, with their secrets.
type SettingValues = BTreeMap<String, Vec<OsString>>;

/// What the settings come from, to reload them.
pub(super) struct Layering {
    first: ServeSettings,
    line: CommandLine,
    /// What the daemon was started with, which is in force until it ends.
    started: SettingValues,
}

impl Layering {
    pub(super) fn new(
        first: ServeSettings,
        line: &CommandLine,
        layered: &EffectiveSettings,
    ) -> Self {
        Self { first, line: line.clone(), started: layered.values.clone() }
    }

    /// Reads the settings, and returns them with the names of those that are not as at the start.
    pub(super) fn reload(&self) -> Result<(ServeSettings, Vec<String>)> {
        let EffectiveSettings { serve, values, .. } = apply(&self.first, &self.line)?;
        let names: BTreeSet<&String> = self.started.keys().chain(values.keys()).collect();
        let changed = names.into_iter().filter(|it| self.started.get(*it) != values.get(*it));
        let changed = changed.cloned().collect();
        Ok((serve, changed))
    }
}

/// Puts the settings file, if there is one, under the flags and the environment.
pub(super) fn apply(first: &ServeSettings, line: &CommandLine) -> Result<EffectiveSettings> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    check_environment(line.definition(), names)?;
    let file = match &first.config {
        None => SettingsFile::none(FILE),
        Some(path) => SettingsFile::read(FILE, path, line.definition())?,
    };
    let layered = file.layer(line)?;
    let serve = ServeSettings::from_arg_matches(&layered.matches)?;
    let shown = show(line.definition(), &layered, &file);
    Ok(EffectiveSettings { serve, shown, values: values_of(line.definition(), &layered) })
}

/// Refuses variables that look like settings and are not.
fn check_environment(definition: &Command, names: impl Iterator<Item = String>) -> Result<()> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for command in definition.get_subcommands() {
        let variables = command.get_arguments().filter_map(Arg::get_env);
        known.extend(variables.filter_map(|it| it.to_str()).map(str::to_owned));
    }
    for name in names {
        let is_ours = name.starts_with("CLADE_") && !is_service_link(&name);
        if !is_ours || known.contains(&name) {
            continue;
        }
        let help = closest(&name, known.iter().map(String::as_str));
        let help = help.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        bail!("unknown setting: the variable `{name}`{help}");
    }
    Ok(())
}

/// Returns whether Kubernetes made a variable for a service that is called `clade…`.
fn is_service_link(name: &str) -> bool {
    name.contains("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || {
        let (_, port) = name.split_once("_PORT").unwrap_or_default();
        name.ends_with("_PORT") || port.starts_with('_')
    }
}

/// Returns the values of all settings that have some.
fn values_of(definition: &Command, layered: &settings::LayeredMatches) -> SettingValues {
    let value = |arg: Arg| {
        let raw = layered.matches.get_raw(arg.get_id().as_str())?;
        Some((arg.get_long()?.to_owned(), raw.map(ToOwned::to_owned).collect()))
    };
    FILE.settable(definition).into_iter().filter_map(value).collect()
}

/// Writes the effective settings as a settings file, each with where it comes from.
fn show(definition: &Command, layered: &settings::LayeredMatches, file: &SettingsFile) -> String {
    let mut text = String::new();
    for arg in FILE.settable(definition) {
        let (id, Some(name)) = (arg.get_id().as_str(), arg.get_long()) else { continue };
        let Some(raw) = layered.matches.get_raw(id) else { continue };
        let values: Vec<String> = raw.map(|it| it.to_string_lossy().into_owned()).collect();
        let source = file.source(layered, &arg);
        let shown: Vec<String> = values.iter().map(|value| masked(name, value)).collect();
        let value = match (arg.get_action(), shown.as_slice()) {
            (ArgAction::SetTrue, [one]) => one.clone(),
            (ArgAction::Append, _) => serde_json::json!(shown).to_string(),
            (_, all) => serde_json::Value::from(all.join(" ")).to_string(),
        };
        // A string takes whatever is written to it.
        writeln!(text, "{name}: {value}  # {source}").ok();
    }
    text
}

/// Returns a value without its secrets.
fn masked(name: &str, value: &str) -> String {
    match name {
        "repo" => Remote::parse(value).map_or_else(|_| "…".to_owned(), |it| it.to_string()),
        // A URL may lack its scheme, by mistake or as proxies may.
        "forge-url" | "git-proxy" | "public-url" | "puppet-server" | "puppetdb" => {
            without_secrets(value)
        }
        _ if value.contains("://") => without_secrets(value),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;
    use crate::validation::DAEMON_SETTINGS;

    #[test]
    fn validation_knows_the_settings_of_the_daemon() {
        let definition = crate::cli::command();
        let settings = FILE.settable(&definition);
        let mut names: Vec<&str> = settings.iter().filter_map(Arg::get_long).collect();
        names.sort_unstable();
        assert_eq!(names, DAEMON_SETTINGS);
    }

    #[test]
    fn a_misspelt_variable_is_an_unknown_setting() {
        let check = |names: &[&str]| {
            let names = names.iter().map(|it| (*it).to_owned());
            check_environment(&crate::cli::command(), names).map_err(|it| it.to_string())
        };
        assert_eq!(check(&["CLADE_REPO", "CLADE_LOG", "PATH", "OTHER_REPO"]), Ok(()));
        assert_eq!(
            check(&["CLADE_REPOO"]),
            Err("unknown setting: the variable `CLADE_REPOO`; did you mean `CLADE_REPO`?"
                .to_owned())
        );
        let links = [
            "CLADE_SERVICE_HOST",
            "CLADE_SERVICE_PORT",
            "CLADE_SERVICE_PORT_HTTP",
            "CLADE_PORT",
            "CLADE_PORT_4433_TCP_ADDR",
            "CLADE_ADMIN_SERVICE_HOST",
        ];
        assert_eq!(check(&links), Ok(()));
    }

    #[test]
    fn secrets_in_urls_are_masked() {
        let rows = [
            ("repo", "https://u:secret@host/x", "https://host/x"),
            ("repo", "gopher://u:secret@host/x", "…"),
            ("git-proxy", "http://u:secret@proxy:3128", "http://proxy:3128"),
            ("git-proxy", "none", "none"),
            ("git-proxy", "u:secret@proxy:3128", "proxy:3128"),
            ("git-proxy", "proxy:3128", "proxy:3128"),
            ("store", "postgres://clade:secret@db/clade", "postgres://db/clade"),
            ("store", "postgres://clade:se/cr@et@db/clade", "postgres://db/clade"),
            (
                "store",
                "postgres://db/clade?user=u&password=secret&sslmode=require",
                "postgres://db/clade?user=u&password=…&sslmode=require",
            ),
            ("store", "sqlite:/srv/a@b", "sqlite:/srv/a@b"),
            ("store", "file", "file"),
            ("puppetdb", "https://u:secret@db:8081", "https://db:8081"),
            ("puppetdb", "u:secret@db:8081/?token=secret", "db:8081/?token=…"),
            ("puppetdb", "https://db:8081/?key=secret", "https://db:8081/?key=…"),
            ("puppet-server", "https://u:secret@p:8140/", "https://p:8140/"),
            (
                "forge-url",
                "http://u:secret@f/api?private_token=secret",
                "http://f/api?private_token=…",
            ),
            ("public-url", "https://u:secret@clade/x", "https://clade/x"),
            ("path", "a@b", "a@b"),
        ];
        each_row(rows, |(name, value, shown)| {
            assert_eq!(masked(name, value), shown);
        });
    }
}
