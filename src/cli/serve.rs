//! `clade serve`

mod allocator;
mod arguments;
mod descriptors;
mod ending;
mod files;
mod layers;
mod reload;
mod sources;
mod start;

use std::ffi::OsString;

use anyhow::Result;

pub(super) use arguments::{EncFacts, Serve};
pub(super) use layers::FILE;

use super::Exit;
use super::output::Output;

impl Serve {
    /// Runs the daemon; `arguments` are those of the whole program, which are read once more when
    /// the settings file is known.
    pub(super) fn run(self, arguments: &[OsString], output: &mut Output) -> Result<Exit> {
        let layered = layers::apply(&self, arguments)?;
        if layered.serve.check {
            // What would go wrong at the start goes wrong here.
            start::prepare(&layered.serve)?;
            output.data(&layered.shown)?;
            return Ok(Exit::Fine);
        }
        allocator::set(arguments);
        let layering = layers::Layering::new(self, arguments, layered.shown);
        start::run(layered.serve, layering)
    }
}
