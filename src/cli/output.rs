//! Data on stdout, all else on stderr.

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write as _};

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use super::page::Page;
use crate::diagnostic::{Colour, Diagnostic, annotate, visible_up_to};
use crate::document::{ValueLayout, write};

/// The most characters of a line on stderr.
const LONGEST: usize = 4_000;

/// How data are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DataFormat {
    /// JSON
    Json,
    /// YAML, which readers of versions 1.1 and 1.2 read alike
    Yaml,
}

impl DataFormat {
    /// Writes data over several lines.
    pub(super) fn write(self, value: &Value) -> String {
        match self {
            Self::Json => format!("{value:#}\n"),
            Self::Yaml => write(value, &|_| ValueLayout::Block),
        }
    }
}

/// Where a command writes.
#[derive(Debug)]
pub(super) struct Output {
    colour: Colour,
}

impl Output {
    pub(super) fn new() -> Self {
        Self { colour: colour_of(io::stdout().is_terminal()) }
    }

    /// Returns whether data have colours.
    pub(super) fn colour(&self) -> Colour {
        self.colour
    }

    /// Returns how wide text for people may be, and its colours.
    pub(super) fn page(&self) -> Page {
        Page { width: width(), colour: self.colour }
    }

    /// Writes data. A reader that goes, as `head` does, has read enough: the exit status still says what was found.
    pub(super) fn data(&mut self, text: &str) -> Result<()> {
        read_enough(self.data_in_full(text))
    }

    /// Writes data, for commands that have nothing more to do when the reader goes.
    #[expect(clippy::unused_self, reason = "without output it writes nothing")]
    pub(super) fn data_in_full(&mut self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// Writes data while they are made.
    #[expect(clippy::unused_self, reason = "without output it writes nothing")]
    pub(super) fn data_in_parts(
        &mut self,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<()> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let written = write(&mut stdout).and_then(|()| stdout.flush());
        read_enough(written.map_err(anyhow::Error::from))
    }

    /// Writes JSON over several lines, while it is made.
    pub(super) fn json(&mut self, data: &impl Serialize) -> Result<()> {
        self.data_in_parts(|to| {
            serde_json::to_writer_pretty(&mut *to, data)?;
            to.write_all(b"\n")
        })
    }

    /// Writes a line for people: a break of lines in a name or value begins no other one.
    #[expect(clippy::unused_self, reason = "without output it writes nothing")]
    pub(super) fn note(&mut self, text: &str) {
        // A closed stderr cannot be reported.
        let _gone = writeln!(io::stderr().lock(), "{}", visible_up_to(text, LONGEST));
    }

    /// Writes several lines for people, whose parts from elsewhere are known to have no breaks.
    pub(super) fn notes(&mut self, text: &str) {
        for line in text.lines() {
            self.note(line);
        }
    }

    /// Writes what was found in a text, with the lines that it is about.
    #[expect(clippy::unused_self, reason = "without output it writes nothing")]
    pub(super) fn findings(&mut self, text: &str, name: &str, diagnostics: &[Diagnostic]) {
        let colour = colour_of(io::stderr().is_terminal());
        let written = annotate(text, name, diagnostics, colour);
        let _gone = write!(io::stderr().lock(), "{written}");
    }

    /// Writes an error with its causes on one line.
    pub(super) fn error(&mut self, error: &anyhow::Error) {
        self.note(&format!("error: {}", one_line(error)));
    }
}

/// Returns the width of the terminal, or the one that `COLUMNS` names; none where text goes elsewhere.
fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    columns.or_else(|| terminal().filter(|_| io::stdout().is_terminal()))
}

/// Returns the colours of text for a terminal, or for something else.
fn colour_of(is_terminal: bool) -> Colour {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
    if wanted && is_terminal { Colour::Ansi } else { Colour::Plain }
}

/// Writes an error with its causes on one line.
pub(super) fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").replace(['\n', '\r'], " ")
}

/// Takes what a reader that has gone did not take for written.
fn read_enough(written: Result<()>) -> Result<()> {
    written.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Returns whether the reader of our output has gone, which is not an error.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(ErrorKind::BrokenPipe)
}
