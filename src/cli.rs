//! The commands: one file each.
#![expect(clippy::disallowed_methods, reason = "commands read files and the environment")]

mod age;
mod check_head;
mod classes;
mod classify;
mod client;
mod completions;
mod diff;
mod enc;
mod export;
mod fmt;
mod import;
mod init;
mod man;
mod node;
mod nodes;
mod operate;
mod output;
mod repository;
mod schema;
mod serve;
mod settings;
mod status;
mod test;
mod translate;
mod tree;
mod validate;
mod values;
mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use enc::fuzz_answer;
use output::Output;

/// GitOps node classifier for Puppet and OpenVox
#[derive(Debug, Parser)]
#[command(
    name = "clade",
    version,
    disable_help_subcommand = true,
    after_help = "Exit status: 0 fine; 1 findings (errors in validation, failed tests, a conflict); 2 could not run."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Init),
    Serve(Box<serve::Serve>),
    Validate(validate::Validate),
    Test(test::Test),
    Classify(classify::Classify),
    Explain(tree::Explain),
    Diff(Box<diff::Diff>),
    Enc(Box<enc::Enc>),
    Import(import::Import),
    Export(export::Export),
    Fmt(fmt::Fmt),
    Classes(classes::Classes),
    Translate(translate::Translate),
    Status(status::Status),
    Why(why::Why),
    Wait(why::Wait),
    Reconcile(operate::Reconcile),
    Pin(operate::Pin),
    Resume(operate::Resume),
    Schema(schema::Schema),
    Completions(completions::Completions),
    Man(man::Man),
    CheckHead(check_head::CheckHead),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: fine.
    Fine,
    /// 1: errors in validation, failed tests, a conflict.
    Findings,
    /// 2: it could not run.
    Failed,
    /// 3: what was waited for did not happen in time.
    TimedOut,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => Self::SUCCESS,
            Exit::Findings => Self::from(1),
            Exit::Failed => Self::from(2),
            Exit::TimedOut => Self::from(3),
        }
    }
}

/// Runs the program with its arguments.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let mut output = Output::new();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let unmet = settings::unmet(&arguments);
            if !unmet.is_empty() {
                output.error(&anyhow::Error::msg(unmet.join("; ")));
                return Exit::Failed;
            }
            // Help and version are data; everything else goes to stderr.
            let printed = error.print().is_ok();
            return if error.use_stderr() || !printed { Exit::Failed } else { Exit::Fine };
        }
    };
    let done = match cli.command {
        Command::Init(command) => command.run(&mut output),
        Command::Serve(command) => command.run(&arguments, &mut output),
        Command::Validate(command) => command.run(&mut output),
        Command::Test(command) => command.run(&mut output),
        Command::Classify(command) => command.run(&mut output),
        Command::Explain(command) => command.run(&mut output),
        Command::Diff(command) => command.run(&mut output),
        Command::Enc(command) => Ok(command.run(&arguments, &mut output)),
        Command::Import(command) => command.run(&mut output),
        Command::Export(command) => command.run(&mut output),
        Command::Fmt(command) => command.run(&mut output),
        Command::Classes(command) => command.run(&mut output),
        Command::Translate(command) => command.run(&mut output),
        Command::Status(command) => command.run(&mut output),
        Command::Reconcile(command) => command.run(&mut output),
        Command::Pin(command) => command.run(&mut output),
        Command::Resume(command) => command.run(&mut output),
        Command::Why(command) => command.run(&mut output),
        Command::Wait(command) => command.run(&mut output),
        Command::Schema(command) => command.run(&mut output),
        Command::Completions(command) => command.run(&mut output),
        Command::Man(command) => command.run(&mut output),
        Command::CheckHead(command) => command.run(&mut output),
    };
    match done {
        Ok(exit) => exit,
        Err(error) if output::is_broken_pipe(&error) => Exit::Fine,
        Err(error) => {
            output.error(&error);
            Exit::Failed
        }
    }
}

/// Reads the command line. What settings demand of each other is checked where the settings file is
/// read, which may have what flags and variables lack.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    let files = [serve::FILE, enc::FILE];
    let command = files
        .iter()
        .fold(command(), |command, file| settings::without_relations_of(command, file.command));
    Cli::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// Reads a duration such as `30s` or `5m`.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("`{text}` is not a duration such as 30s, 5m, 500ms or 30d");
    // Days differ from 24 hours in calendars alone, which these durations do not follow.
    let days = text.strip_suffix('d').and_then(|it| it.parse::<u32>().ok());
    if let Some(days) = days {
        return Ok(std::time::Duration::from_hours(24 * u64::from(days)));
    }
    let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    std::time::Duration::try_from(parsed).map_err(|_| wrong())
}

/// The command that checks the head of a pull request.
const CHECK_HEAD: &str = "check-head";

/// Returns the definition of the command line, for generated documents.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_defined() {
        super::command().debug_assert();
    }
}
