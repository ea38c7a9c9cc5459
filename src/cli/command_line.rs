//! The command line: the arguments of the program, and the definition that parses them.

use std::ffi::OsString;

use clap::Command;

/// The arguments of the program, with the definition of all of its commands.
#[derive(Clone, Debug)]
pub(super) struct CommandLine {
    definition: Command,
    arguments: Vec<OsString>,
}

impl CommandLine {
    pub(super) fn new(definition: Command, arguments: impl IntoIterator<Item = OsString>) -> Self {
        Self { definition, arguments: arguments.into_iter().collect() }
    }

    /// Returns the definition of all commands.
    pub(super) fn definition(&self) -> &Command {
        &self.definition
    }

    /// Returns the arguments, the name of the program first.
    pub(super) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}
