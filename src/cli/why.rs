//! `clade why` and `clade wait`: what became of a commit.
#![expect(clippy::disallowed_methods, reason = "waiting takes time")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use percent_encoding::utf8_percent_encode;

use super::Exit;
use super::client::{AnswerFormat, DaemonArgs, Document, error_kind};
use super::output::Output;
use super::status::describe_repository;
use super::uncommitted;
use crate::client::Client;
use crate::config::parse_duration;
use crate::diagnostic::{visible, visible_up_to};
use crate::git::{OpenError, Repository};
use crate::http::types::{Commit, CommitState, Condition, ErrorKind, Finding, Status};
use crate::model::{CommitId, URL_PATH};

/// How long one question may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a daemon may take at least to answer, however short a wait is.
const SHORTEST: Duration = Duration::from_secs(2);

/// The longest text of a commit or a finding that is shown.
const LONGEST: usize = 4_000;

/// How often a daemon is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Show what became of a commit: live, replaced, rejected with its findings, superseded, not seen yet
#[derive(Debug, Args)]
pub(super) struct WhyCommand {
    /// The commit: any revision of the repository in the working directory; outside a repository the daemon resolves it, but for a search of messages (`:/text`)
    commit: String,
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Wait until a commit answers
///
/// Exit status: 0 it does; 1 it never will; 2 the daemon cannot be reached; 3 timeout.
#[derive(Debug, Args)]
pub(super) struct WaitCommand {
    /// The commit: any revision of the repository in the working directory; outside a repository the daemon resolves it, but for a search of messages (`:/text`)
    commit: String,
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The timeout
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    timeout: Duration,
}

/// What the daemon knows of a commit.
enum CommitAnswer {
    NotSeen,
    Known(Box<Document<Commit>>),
}

impl CommitAnswer {
    fn ask(daemon: &Client, commit: &str) -> Result<Self> {
        let revision = utf8_percent_encode(commit, URL_PATH);
        let reply = daemon.get_json(&format!("/controller/commits/{revision}"))?;
        if error_kind(&reply) == Some(ErrorKind::UnknownCommit) {
            return Ok(Self::NotSeen);
        }
        Ok(Self::Known(Box::new(Document::of(reply, daemon)?)))
    }

    /// Says what is known of the commit; nothing of one that the daemon does not have.
    fn describe(&self) -> String {
        match self {
            Self::NotSeen => String::new(),
            Self::Known(commit) => describe(&commit.read),
        }
    }

    /// Returns what became of the commit, if the daemon has it.
    fn state(&self) -> Option<CommitState> {
        match self {
            Self::NotSeen => None,
            Self::Known(commit) => Some(commit.read.state),
        }
    }
}

/// Returns the commit that a revision means here: in the repository of the working directory if there is
/// one, so that `HEAD` is the caller's own commit. Without one, the daemon resolves it.
pub(super) fn resolve(revision: &str, output: &mut Output) -> Result<String> {
    if revision.trim().is_empty() {
        bail!("expected a commit, such as its id or the name of a branch, found nothing");
    }
    // A full id needs no repository.
    if revision.parse::<CommitId>().is_ok() {
        return Ok(revision.to_owned());
    }
    let repository = match Repository::discover(Path::new(".")) {
        Ok(repository) => repository,
        Err(OpenError::NotARepository(_)) => {
            if revision.starts_with("HEAD") || revision.starts_with('@') {
                output.note(&format!(
                    "note: the daemon says what `{revision}` is, since the working directory is in no git repository"
                ));
            }
            return Ok(revision.to_owned());
        }
        // The daemon would take `HEAD` for its own.
        Err(error) => return Err(error.into()),
    };
    let commit = repository.resolve_searching(revision).map_err(|error| {
        anyhow!("{error} in the working directory; give a full commit id to ask for one that is not here")
    })?;
    output.note(&format!("{revision} is {commit}"));
    // Those who changed a file may take this commit for the change.
    if matches!(revision, "HEAD" | "@")
        && let Some(note) = uncommitted::note(&repository)
    {
        output.note(&note);
    }
    Ok(commit.to_string())
}

/// Refuses a name that neither side knows; only an id can be of a commit that is still to come.
fn check_seen(answer: &CommitAnswer, revision: &str, daemon: &Client) -> Result<()> {
    if matches!(answer, CommitAnswer::NotSeen) && !may_be_id(revision) {
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

impl WhyCommand {
    pub(super) fn run(mut self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(TIMEOUT, output)?;
        self.commit = resolve(&self.commit, output)?;
        let answer = CommitAnswer::ask(&daemon, &self.commit)?;
        check_seen(&answer, &self.commit, &daemon)?;
        let written = match (&answer, self.format) {
            (CommitAnswer::Known(commit), AnswerFormat::Json) => format!("{:#}\n", commit.sent),
            (CommitAnswer::NotSeen, AnswerFormat::Json) => {
                let document = serde_json::json!({"commit": self.commit, "state": "not-seen"});
                format!("{document:#}\n")
            }
            (CommitAnswer::Known(commit), AnswerFormat::Human) => describe(&commit.read),
            (CommitAnswer::NotSeen, AnswerFormat::Human) => not_seen(&daemon, &self.commit),
        };
        output.data(&written)?;
        let is_rejected = matches!(answer.state(), Some(CommitState::Rejected { .. }));
        Ok(if is_rejected { Exit::Findings } else { Exit::Fine })
    }
}

/// Says what a commit is and what became of it, with what is wrong in it.
fn describe(commit: &Commit) -> String {
    let shown = |text: &str| visible_up_to(text, LONGEST);
    let mut written = format!(
        "{} {} ({})\n{}\n",
        commit.commit,
        shown(&commit.subject),
        shown(&commit.author),
        shown(&commit.message),
    );
    written.push_str(&findings(&commit.diagnostics));
    written
}

/// Writes findings, one a line; one about the whole commit has no place.
pub(super) fn findings(findings: &[Finding]) -> String {
    let shown = |text: &str| visible_up_to(text, LONGEST);
    let mut written = String::new();
    for finding in findings {
        if let Some(file) = &finding.file {
            let (line, column) = (finding.line.unwrap_or(0), finding.column.unwrap_or(0));
            // A string takes all that is written to it.
            write!(written, "{}:{line}:{column}: ", shown(file)).ok();
        }
        match &finding.kind {
            Some(kind) => write!(written, "{}[{}]", shown(&finding.severity), shown(kind)).ok(),
            None => write!(written, "{}", shown(&finding.severity)).ok(),
        };
        writeln!(written, ": {}", shown(&finding.message)).ok();
    }
    written
}

/// A commit that the mirror does not have: what stands in the way of seeing it is worth knowing.
fn not_seen(daemon: &Client, commit: &str) -> String {
    let mut written = format!("{commit}\nnot seen yet: the daemon has not fetched such a commit\n");
    let status = daemon.get_json("/controller/status").map_err(anyhow::Error::from);
    let status = status.and_then(|reply| Document::<Status>::of(reply, daemon));
    let Ok(Document { read: status, .. }) = status else { return written };
    // The commit may be of another repository or branch.
    let followed = describe_repository(&status.repository);
    writeln!(written, "the daemon follows {}", visible_up_to(&followed, LONGEST)).ok();
    if let Some(contact) = status.remote.last_contact {
        writeln!(written, "the branch was last seen at {contact}").ok();
    }
    for Condition { kind, message, .. } in &status.conditions {
        if kind != "Ready" {
            writeln!(written, "{}: {}", visible(kind), visible_up_to(message, LONGEST)).ok();
        }
    }
    written
}

impl WaitCommand {
    pub(super) fn run(mut self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(self.timeout.clamp(SHORTEST, TIMEOUT), output)?;
        self.commit = resolve(&self.commit, output)?;
        let began = Instant::now();
        let mut is_asked = false;
        loop {
            let answer = CommitAnswer::ask(&daemon, &self.commit)?;
            check_seen(&answer, &self.commit, &daemon)?;
            let state = answer.state();
            // Those were never built here. Whether they are valid does not change.
            if !is_asked
                && matches!(state, Some(CommitState::Older | CommitState::Superseded { .. }))
            {
                let is_invalid = is_invalid(&daemon, &answer);
                is_asked = is_invalid.is_some();
                if is_invalid == Some(true) {
                    output.notes(&answer.describe());
                    return Ok(Exit::Findings);
                }
            }
            let end = match state {
                // What was live was live; what came after it is another question.
                Some(CommitState::Live { .. } | CommitState::Replaced { .. }) => Some(Exit::Fine),
                Some(CommitState::Rejected { .. }) => Some(Exit::Findings),
                // The daemon answers with a newer commit that contains it.
                Some(CommitState::Superseded { by, .. }) if is_asked => {
                    superseded(&daemon, by, output)?
                }
                _ => None,
            };
            if let Some(exit) = end {
                output.notes(&answer.describe());
                return Ok(exit);
            }
            if began.elapsed() >= self.timeout {
                let said = match &answer {
                    CommitAnswer::Known(commit) => describe(&commit.read),
                    CommitAnswer::NotSeen => not_seen(&daemon, &self.commit),
                };
                output.notes(&format!("{said}it does not answer after {:?}", self.timeout));
                return Ok(Exit::TimedOut);
            }
            std::thread::sleep(PAUSE.min(self.timeout.saturating_sub(began.elapsed())));
        }
    }
}

/// Returns whether a commit that the daemon did not build never answers since it is not valid, or not signed as it must
/// be; none where the daemon does not say so now. It finds out when it is asked for an answer from the commit.
fn is_invalid(daemon: &Client, answer: &CommitAnswer) -> Option<bool> {
    let CommitAnswer::Known(commit) = answer else { return None };
    if !commit.read.valid {
        return Some(true);
    }
    let path = format!("/v1/groups?limit=0&commit={}", commit.read.commit);
    let reply = daemon.get_json(&path).ok()?;
    let is_of_the_moment = reply.status.is_server_error();
    (!is_of_the_moment).then(|| error_kind(&reply) == Some(ErrorKind::InvalidCommit))
}

/// A commit that was overtaken answers as soon as the one that overtook it does. Where that is rejected, so is all that came
/// with it until a later commit is live.
fn superseded(daemon: &Client, by: CommitId, output: &mut Output) -> Result<Option<Exit>> {
    let answer = CommitAnswer::ask(daemon, &by.to_string())?;
    Ok(match answer.state() {
        Some(CommitState::Live { .. } | CommitState::Replaced { .. }) => Some(Exit::Fine),
        Some(CommitState::Rejected { .. }) => {
            output.notes(&answer.describe());
            Some(Exit::Findings)
        }
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
