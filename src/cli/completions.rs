//! `clade completions`

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use super::Exit;
use super::output::Output;

/// Print a shell completion script
#[derive(Debug, Args)]
pub(super) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    /// Writes the completion script for the commands of `definition`.
    pub(super) fn run(self, definition: &Command, output: &mut Output) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut shown(definition), "clade", &mut script);
        output.data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Fine)
    }
}

/// Returns the commands that people type: `clap_complete` also lists those that the help hides.
fn shown(definition: &Command) -> Command {
    let commands = definition.get_subcommands().filter(|it| !it.is_hide_set()).cloned();
    let version = definition.get_version().unwrap_or_default().to_owned();
    Command::new("clade")
        .version(version)
        .args(definition.get_arguments().cloned())
        .subcommands(commands)
}

#[cfg(test)]
mod tests {
    use clap::{Command, ValueEnum as _};
    use clap_complete::Shell;

    use super::shown;
    use crate::cli::command;

    #[test]
    fn hidden_commands_are_not_completed() {
        let definition = command();
        let hidden: Vec<&str> = definition
            .get_subcommands()
            .filter(|it| it.is_hide_set())
            .map(Command::get_name)
            .collect();
        assert!(!hidden.is_empty());
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut shown(&definition), "clade", &mut script);
            let script = String::from_utf8(script).unwrap();
            for expected in ["validate", "version", "commit-budget"] {
                assert!(script.contains(expected), "{shell}: {expected}");
            }
            for name in &hidden {
                let name = name.replace('-', "__");
                let plain = script.replace('-', "__");
                assert!(!plain.contains(&name), "{shell} completes `{name}`");
            }
        }
    }
}
