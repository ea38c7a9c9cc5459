//! The commands: one file each.
#![expect(clippy::disallowed_methods, reason = "commands read files and the environment")]

mod blame;
mod check_head;
mod classes;
mod classify;
mod client;
mod command_line;
mod completions;
mod diff;
mod enc;
mod examples;
mod exit;
mod export;
mod fmt;
mod history;
mod import;
mod init;
mod lint;
mod man;
mod masks;
mod meant_word;
mod node;
mod node_list;
mod nodes;
mod operate;
mod output;
mod page;
mod progress;
mod query;
mod repository;
mod rewrite;
mod schema;
mod serve;
mod settings;
mod shell;
mod size_limit;
mod status;
mod test;
mod translate;
mod tree;
mod uncommitted;
mod validate;
mod values;
mod why;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use enc::fuzz_answer;
pub use exit::Exit;

use command_line::CommandLine;
use output::Output;

/// GitOps node classifier for Puppet and OpenVox
#[derive(Debug, Parser)]
#[command(
    name = "clade",
    version,
    after_help = "Exit status: 0 success; 1 findings (validation errors, failed tests, a conflict); 2 the command could not run."
)]
struct Cli<C: Subcommand> {
    #[command(subcommand)]
    command: C,
}

/// The command that Puppet Server starts for each run of an agent: its definition takes a tenth of the time
/// that all take to make.
#[derive(Debug, Subcommand)]
enum EncAlone {
    Enc(Box<enc::EncSettings>),
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::InitCommand),
    Serve(Box<serve::ServeSettings>),
    Validate(validate::ValidateCommand),
    Test(test::TestCommand),
    Classify(classify::ClassifyCommand),
    Explain(tree::ExplainCommand),
    Blame(blame::BlameCommand),
    History(history::HistoryCommand),
    Nodes(node_list::NodesCommand),
    Query(query::QueryCommand),
    Diff(Box<diff::DiffCommand>),
    Enc(Box<enc::EncSettings>),
    Import(import::ImportCommand),
    Export(export::ExportCommand),
    Fmt(fmt::FmtCommand),
    Classes(classes::ClassesCommand),
    Translate(translate::TranslateCommand),
    Status(status::StatusCommand),
    Why(why::WhyCommand),
    Wait(why::WaitCommand),
    Reconcile(operate::ReconcileCommand),
    Pin(operate::PinCommand),
    Resume(operate::ResumeCommand),
    Lint(lint::LintCommand),
    Schema(schema::SchemaCommand),
    Completions(completions::CompletionsCommand),
    Man(man::ManCommand),
    CheckHead(check_head::CheckHeadCommand),
}

/// Runs the program with its arguments.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if !serve::starts_daemon(&arguments) {
        return run_command(arguments, None);
    }
    serve::run_caught(arguments, run_command).unwrap_or_else(|error| {
        Output::new().error(&error);
        Exit::Failed
    })
}

fn run_command(arguments: Vec<OsString>, signals: Option<serve::CaughtSignals>) -> Exit {
    let mut output = Output::new();
    let line = CommandLine::new(definition_for(&arguments), arguments);
    let cli = match parse(&line) {
        Ok(cli) => cli,
        Err(error) => return without_command(&line, &error, &mut output),
    };
    match cli.command.run(&line, signals, &mut output) {
        Ok(exit) => exit,
        Err(error) if output::is_broken_pipe(&error) => Exit::Fine,
        Err(error) => {
            output.error(&error);
            Exit::Failed
        }
    }
}

/// Ends where the command line names no command to run: with help, or with what is wrong with it.
fn without_command(line: &CommandLine, error: &clap::Error, output: &mut Output) -> Exit {
    let note = settings::variable_at_fault(line, error);
    let note = note.map(|it| format!("the value is that of the variable `{it}`"));
    let note = note.or_else(|| meant_word::note(line, error));
    if error.use_stderr() && is_enc(line.arguments()) {
        let reason = [Some(settings::in_one_line(error)), note].into_iter().flatten();
        let reason = reason.collect::<Vec<_>>().join("; ");
        return enc::refuse(&anyhow::Error::msg(reason), output);
    }
    let unmet = settings::unmet(line);
    if !unmet.is_empty() {
        output.error(&anyhow::Error::msg(unmet.join("; ")));
        return Exit::Failed;
    }
    // Help and version are data; everything else goes to stderr.
    let printed = error.print().map_err(anyhow::Error::from);
    let is_lost = printed.is_err_and(|it| !output::is_broken_pipe(&it));
    if let Some(note) = note {
        output.note(&format!("note: {note}"));
    }
    if error.use_stderr() || is_lost { Exit::Failed } else { Exit::Fine }
}

impl Command {
    fn run(
        self,
        line: &CommandLine,
        signals: Option<serve::CaughtSignals>,
        output: &mut Output,
    ) -> anyhow::Result<Exit> {
        match self {
            Self::Init(command) => command.run(output),
            Self::Serve(command) => command.run(line, signals, output),
            Self::Validate(command) => command.run(output),
            Self::Test(command) => command.run(output),
            Self::Classify(command) => command.run(output),
            Self::Explain(command) => command.run(output),
            Self::Blame(command) => command.run(output),
            Self::History(command) => command.run(output),
            Self::Nodes(command) => command.run(output),
            Self::Query(command) => command.run(output),
            Self::Diff(command) => command.run(output),
            Self::Enc(command) => Ok(command.run(line, output)),
            Self::Import(command) => command.run(output),
            Self::Export(command) => command.run(output),
            Self::Fmt(command) => command.run(output),
            Self::Classes(command) => command.run(output),
            Self::Translate(command) => command.run(output),
            Self::Status(command) => command.run(output),
            Self::Reconcile(command) => command.run(output),
            Self::Pin(command) => command.run(output),
            Self::Resume(command) => command.run(output),
            Self::Why(command) => command.run(output),
            Self::Wait(command) => command.run(output),
            Self::Lint(command) => command.run(output),
            Self::Schema(command) => command.run(output),
            Self::Completions(command) => command.run(line.definition(), output),
            Self::Man(command) => command.run(line.definition(), output),
            Self::CheckHead(command) => command.run(output),
        }
    }
}

/// Parses the command line. Where a settings file may have what flags and variables lack, the relations
/// between settings are checked once the file is read.
fn parse(line: &CommandLine) -> Result<Cli<Command>, clap::Error> {
    let files = [serve::FILE, enc::FILE];
    let command = files.iter().fold(line.definition().clone(), |command, file| {
        settings::without_relations_of(command, file.command)
    });
    Cli::from_arg_matches(&command.try_get_matches_from(line.arguments())?)
}

/// Returns the definition that some arguments need.
fn definition_for(arguments: &[OsString]) -> clap::Command {
    match is_enc(arguments) {
        true => defined(<Cli<EncAlone> as CommandFactory>::command()),
        false => command(),
    }
}

/// Returns whether arguments are those of `clade enc`.
fn is_enc(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|it| it == enc::FILE.command)
}

/// Returns the definition of the command line, for generated documents.
pub fn command() -> clap::Command {
    defined(<Cli<Command> as CommandFactory>::command())
}

fn defined(command: clap::Command) -> clap::Command {
    without_values(examples::with_examples(command))
}

/// Keeps the values of environment variables out of the help: URLs have passwords in them.
fn without_values(command: clap::Command) -> clap::Command {
    command.mut_args(|it| it.hide_env_values(true)).mut_subcommands(without_values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_help_shows_the_value_of_a_variable() {
        let whole = command();
        let mut open = vec![&whole];
        let mut count = 0;
        while let Some(command) = open.pop() {
            for argument in command.get_arguments().filter(|it| it.get_env().is_some()) {
                assert!(argument.is_hide_env_values_set(), "{argument}");
                count += 1;
            }
            open.extend(command.get_subcommands());
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn the_command_line_is_well_defined() {
        command().debug_assert();
    }

    #[test]
    fn the_command_of_puppet_server_alone_is_that_among_all() {
        let arguments = |name: &str| ["clade", name].map(OsString::from);
        let help = |of: clap::Command| {
            of.try_get_matches_from(["clade", "enc", "--help"]).unwrap_err().to_string()
        };
        let alone = definition_for(&arguments("enc"));
        assert_eq!(alone.get_subcommands().count(), 1);
        assert_eq!(help(alone), help(command()));
        for other in ["serve", "en", "encs", "--version", "help"] {
            let all = definition_for(&arguments(other)).get_subcommands().count();
            assert_eq!(all, command().get_subcommands().count(), "{other}");
        }
    }
}
