//! The lines of the log: what an event quotes of a repository or a request stays within its line.

use std::io::{self, Write};

use super::LogFormat;
use crate::diagnostic::{visible, visible_up_to};

/// The most characters of a line for people.
const LONGEST: usize = 4_000;

/// Writes an event a line to stderr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    format: LogFormat,
}

impl Lines {
    pub(super) fn new(format: LogFormat) -> Self {
        Self { format }
    }
}

/// Returns the line of an event.
fn line(event: &str, format: LogFormat) -> String {
    let event = event.strip_suffix('\n').unwrap_or(event);
    let mut line = match format {
        LogFormat::Text => visible_up_to(event, LONGEST),
        // A JSON object that is cut is none.
        LogFormat::Json => visible(event).into_owned(),
    };
    line.push('\n');
    line
}

impl Write for Lines {
    /// Takes an event as a whole, as the subscriber writes it.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        io::stderr().lock().write_all(line(&text, self.format).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let text = |event: &str| line(event, LogFormat::Text);
        assert_eq!(text("a\n::error::b\u{1b}[0m\n"), "a\u{fffd}::error::b\u{fffd}[0m\n");
        assert_eq!(text(&"x".repeat(900_000)).chars().count(), LONGEST + 2);
        assert_eq!(line("{\"a\":\"\u{202e}\"}\n", LogFormat::Json), "{\"a\":\"\u{fffd}\"}\n");
    }
}
