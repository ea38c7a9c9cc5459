//! `clade why` and `clade wait`: what became of a commit.
#![expect(clippy::disallowed_methods, reason = "waiting takes time")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::Exit;
use super::client::{AnswerFormat, DaemonArgs};
use super::output::Output;
use crate::client::{Client, JsonReply};
use crate::diagnostic::visible_up_to;
use crate::git::Repository;
use crate::model::CommitId;

/// What a revision keeps as it is in a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'/');

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest text of a commit or a finding that is shown.
const LONGEST: usize = 4_000;

/// How often a daemon is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Say what became of a commit: live, replaced, rejected with its findings, superseded, not seen yet
#[derive(Debug, Args)]
pub(super) struct Why {
    /// The commit: anything that `git rev-parse` understands in the repository of the working directory; where there is none, the daemon resolves it, which searches no messages (`:/text`)
    commit: String,
    #[command(flatten)]
    daemon: DaemonArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Wait until a commit answers: 0 it does, 1 it never will, 2 the daemon could not be asked, 3 time is up
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The commit: anything that `git rev-parse` understands in the repository of the working directory; where there is none, the daemon resolves it, which searches no messages (`:/text`)
    commit: String,
    #[command(flatten)]
    daemon: DaemonArgs,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = super::duration)]
    timeout: Duration,
}

/// What the daemon knows of a commit.
enum Answer {
    NotSeen,
    Known(Value),
}

impl Answer {
    fn ask(daemon: &Client, commit: &str) -> Result<Self> {
        let revision = utf8_percent_encode(commit, PLAIN);
        let said = daemon.get_json(&format!("/controller/commits/{revision}"))?;
        if said.kind() == Some("unknown-commit") {
            return Ok(Self::NotSeen);
        }
        Ok(Self::Known(said.document()?))
    }

    fn state(&self) -> &str {
        match self {
            Self::NotSeen => "not-seen",
            Self::Known(document) => text(document, "state"),
        }
    }
}

fn text<'a>(document: &'a Value, key: &str) -> &'a str {
    document.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the commit that a revision means here: in the repository of the working directory if there is
/// one, so that `HEAD` is the caller's own commit. Without one, the daemon resolves it.
pub(super) fn resolve(revision: &str, output: &mut Output) -> Result<String> {
    // A full id needs no repository.
    if revision.parse::<CommitId>().is_ok() {
        return Ok(revision.to_owned());
    }
    let Ok(repository) = Repository::discover(Path::new(".")) else {
        return Ok(revision.to_owned());
    };
    let commit = repository.resolve_searching(revision).map_err(|error| {
        anyhow!("{error} in the working directory; give a full commit id to ask for one that is not here")
    })?;
    output.note(&format!("{revision} is {commit}"));
    Ok(commit.to_string())
}

/// Refuses a name that neither side knows; only an id can be of a commit that is still to come.
fn check_seen(answer: &Answer, revision: &str, daemon: &Client) -> Result<()> {
    if matches!(answer, Answer::NotSeen) && !may_be_id(revision) {
        bail!("unknown revision `{revision}` at `{}`; give a commit id", daemon.name());
    }
    Ok(())
}

/// Returns whether a text is a commit id, or one cut short as `git` and pipelines do. `dead` and
/// `feature` are words: a short id has a digit.
fn may_be_id(text: &str) -> bool {
    let is_hex = text.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex && (text.len() == 40 || text.len() >= 7 && text.bytes().any(|it| it.is_ascii_digit()))
}

impl Why {
    pub(super) fn run(mut self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(PATIENCE, output)?;
        self.commit = resolve(&self.commit, output)?;
        let answer = Answer::ask(&daemon, &self.commit)?;
        check_seen(&answer, &self.commit, &daemon)?;
        let written = match (&answer, self.format) {
            (Answer::Known(document), AnswerFormat::Json) => format!("{document:#}\n"),
            (Answer::NotSeen, AnswerFormat::Json) => {
                let document = serde_json::json!({"commit": self.commit, "state": "not-seen"});
                format!("{document:#}\n")
            }
            (Answer::Known(document), AnswerFormat::Human) => describe(document),
            (Answer::NotSeen, AnswerFormat::Human) => not_seen(&daemon, &self.commit),
        };
        output.data(&written)?;
        Ok(if answer.state() == "rejected" { Exit::Findings } else { Exit::Fine })
    }
}

/// Says what a commit is and what became of it, with what is wrong in it.
fn describe(document: &Value) -> String {
    let shown = |key: &str| visible_up_to(text(document, key), LONGEST);
    let mut written = format!(
        "{} {} ({})\n{}\n",
        shown("commit"),
        shown("subject"),
        shown("author"),
        shown("message"),
    );
    written.push_str(&document.get("diagnostics").map(findings).unwrap_or_default());
    written
}

/// Writes findings, one a line; one about the whole commit has no place.
pub(super) fn findings(diagnostics: &Value) -> String {
    let mut written = String::new();
    for finding in diagnostics.as_array().into_iter().flatten() {
        let number = |key: &str| finding.get(key).and_then(Value::as_u64).unwrap_or_default();
        let shown = |key: &str| visible_up_to(text(finding, key), LONGEST);
        if finding.get("file").is_some_and(Value::is_string) {
            let (line, column) = (number("line"), number("column"));
            // A string takes all that is written to it.
            write!(written, "{}:{line}:{column}: ", shown("file")).ok();
        }
        match finding.get("kind").and_then(Value::as_str) {
            Some(_) => write!(written, "{}[{}]", shown("severity"), shown("kind")).ok(),
            None => write!(written, "{}", shown("severity")).ok(),
        };
        writeln!(written, ": {}", shown("message")).ok();
    }
    written
}

/// A commit that the mirror does not have: what stands in the way of seeing it is worth knowing.
fn not_seen(daemon: &Client, commit: &str) -> String {
    let mut written = format!("{commit}\nnot seen yet: the daemon has not fetched such a commit\n");
    let status = daemon.get_json("/controller/status").and_then(JsonReply::document);
    let Ok(status) = status else { return written };
    if let Some(contact) = status.pointer("/remote/last_contact").and_then(Value::as_str) {
        writeln!(written, "the branch was last seen at {contact}").ok();
    }
    for condition in status.get("conditions").and_then(Value::as_array).into_iter().flatten() {
        if text(condition, "type") != "Ready" {
            let (kind, message) = (text(condition, "type"), text(condition, "message"));
            writeln!(written, "{kind}: {message}").ok();
        }
    }
    written
}

impl Wait {
    pub(super) fn run(mut self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(PATIENCE.min(self.timeout), output)?;
        self.commit = resolve(&self.commit, output)?;
        let began = Instant::now();
        loop {
            let answer = Answer::ask(&daemon, &self.commit)?;
            check_seen(&answer, &self.commit, &daemon)?;
            let end = match answer.state() {
                // What was live was live; what came after it is another question.
                "live" | "replaced" => Some(Exit::Fine),
                "rejected" => Some(Exit::Findings),
                // The daemon answers with a newer commit that contains it.
                "superseded" => superseded(&daemon, &answer)?,
                _ => None,
            };
            if let Some(exit) = end {
                if let Answer::Known(document) = &answer {
                    output.note(&describe(document));
                }
                return Ok(exit);
            }
            if began.elapsed() >= self.timeout {
                let said = match &answer {
                    Answer::Known(document) => describe(document),
                    Answer::NotSeen => not_seen(&daemon, &self.commit),
                };
                output.note(&format!("{said}it does not answer after {:?}", self.timeout));
                return Ok(Exit::TimedOut);
            }
            std::thread::sleep(PAUSE.min(self.timeout.saturating_sub(began.elapsed())));
        }
    }
}

/// A commit that was overtaken answers as soon as the one that overtook it does.
fn superseded(daemon: &Client, answer: &Answer) -> Result<Option<Exit>> {
    let Answer::Known(document) = answer else { return Ok(None) };
    Ok(match Answer::ask(daemon, text(document, "by"))?.state() {
        "live" | "replaced" => Some(Exit::Fine),
        "rejected" => Some(Exit::Findings),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::may_be_id;

    #[test]
    fn words_of_hex_letters_are_not_ids() {
        for id in ["4709347", "a47e5f8", "a47e5f8d451a3b46b5b5d5e5affdc3b750dc2bbb"] {
            assert!(may_be_id(id), "{id}");
        }
        let letters = "abcdefabcdefabcdefabcdefabcdefabcdefabcd";
        assert!(may_be_id(letters));
        for word in ["dead", "beef", "effaced", "v99", "a47e", "HEAD", "", "12-45678"] {
            assert!(!may_be_id(word), "{word}");
        }
    }
}
