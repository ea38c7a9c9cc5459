//! `clade serve`

mod allocator;
mod arguments;
mod controller;
mod descriptors;
mod directories;
mod early_signals;
mod ending;
mod files;
mod groups_directory;
mod layers;
mod listeners;
mod password_file;
mod prepare;
mod reload;
mod sources;
mod start;
mod store_location;
mod store_lock;
mod supervisor;

use anyhow::{Context as _, Result};

pub(super) use arguments::{EncFacts, ServeSettings};
pub(super) use early_signals::{CaughtSignals, run_caught, starts_daemon};
pub(super) use layers::FILE;

use super::Exit;
use super::command_line::CommandLine;
use super::output::Output;

impl ServeSettings {
    /// Runs the daemon; the command line is parsed once more with the settings file.
    pub(super) fn run(
        self,
        line: &CommandLine,
        signals: Option<CaughtSignals>,
        output: &mut Output,
    ) -> Result<Exit> {
        let layered = layers::apply(&self, line)?;
        if layered.serve.check {
            // What would go wrong at the start goes wrong here.
            let prepared = prepare::prepare(&layered.serve)?;
            controller::check_repository(&layered.serve, &prepared.remote)?;
            output.data(&layered.shown)?;
            for warning in prepared.access.warnings() {
                output.note(&format!("warning: {warning}"));
            }
            return Ok(Exit::Fine);
        }
        let layering = layers::Layering::new(self, line, &layered);
        start::run(layered.serve, layering, signals.context("the signals are not caught")?)
    }
}
