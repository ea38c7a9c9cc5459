//! What a command may spend on reading a commit or a working tree.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use crate::model::{Budget, BudgetOverride};

/// Why the flag is refused where a daemon is asked.
pub(in crate::cli) const BUDGET_OF_DAEMON: &str =
    "`--commit-budget` does not go with `--server`: a daemon has a commit budget of its own";

/// What a commit or a working tree may cost to read.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct BudgetArgs {
    flags: BudgetFlags,
    is_given: bool,
}

#[derive(Clone, Debug, Default, Args)]
struct BudgetFlags {
    /// Change a limit of the commit budget, such as `groups=50000`; repeatable
    #[arg(
        long = "commit-budget",
        value_name = "NAME=NUMBER",
        env = "CLADE_COMMIT_BUDGET",
        value_delimiter = ','
    )]
    commit_budget: Vec<BudgetOverride>,
}

impl BudgetArgs {
    /// Returns what a commit may cost.
    pub(in crate::cli) fn budget(&self) -> Budget {
        Budget::DEFAULT.with(&self.flags.commit_budget)
    }

    /// Returns whether the command line gives it. In the environment it may be meant for other commands.
    pub(in crate::cli) fn is_given(&self) -> bool {
        self.is_given
    }
}

impl FromArgMatches for BudgetArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_given = matches.value_source("commit_budget") == Some(ValueSource::CommandLine);
        Ok(Self { flags: BudgetFlags::from_arg_matches(matches)?, is_given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for BudgetArgs {
    fn augment_args(command: Command) -> Command {
        BudgetFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        BudgetFlags::augment_args_for_update(command)
    }
}
