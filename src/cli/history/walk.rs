//! How the answer of a node changes over the commits of a repository.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use jiff::Timestamp;

use super::{HistoryCommand, write};
use crate::cli::Exit;
use crate::cli::blame::{WalkProgress, explain_invalid, locate_for_walk};
use crate::cli::client::AnswerFormat;
use crate::cli::output::Output;
use crate::http::types::StoredChange;
use crate::reconcile::{Blame, CommittedChange};

impl HistoryCommand {
    /// Lists the commits that change what the node gets, with the facts that are given.
    pub(super) fn walk(&self, output: &mut Output) -> Result<Exit> {
        let now = Timestamp::now();
        let node = self.facts.node(&self.node, output)?;
        let shown = self.masks.masks().node(&node).into_owned();
        let (repository, directory) = locate_for_walk(self.repo.as_deref())?;
        let head = repository.resolve_searching(self.rev.as_deref().unwrap_or("HEAD"))?;
        let progress = WalkProgress::new();
        let is_wanted = || {
            progress.advance();
            true
        };
        let reads_facts = AtomicBool::new(false);
        let blame = Blame::new(&repository, &directory, self.budget.budget(), &is_wanted)
            .shown_as(&shown)
            .noting_facts(&reads_facts);
        let (mut found, mut written, mut is_cut) = (Vec::new(), Ok(()), false);
        let mut report = |change: CommittedChange| {
            is_cut |= change.is_boundary;
            if self.before.is_some_and(|it| change.commit.time >= it) {
                return ControlFlow::Continue(());
            }
            found.push(StoredChange::from(change));
            if let (AnswerFormat::Human, Some(last)) = (self.format, found.last()) {
                progress.clear();
                written = output.data_in_full(&write(std::slice::from_ref(last), now));
            }
            match written.is_err() || found.len() >= self.limit.get() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let walked = std::thread::scope(|scope| {
            if progress.is_shown() {
                let (opener, progress) = (repository.opener(), &progress);
                scope.spawn(move || progress.count(&opener, head));
            }
            blame.changes(head, &node, &mut report)
        });
        progress.clear();
        written?;
        walked.map_err(|it| explain_invalid(it, self.repo.as_deref()))?;
        match self.format {
            AnswerFormat::Json => output.json(&found)?,
            AnswerFormat::Human if found.is_empty() => {
                output.note("no commit changed the answer of the node before then");
            }
            AnswerFormat::Human => self.facts.note_absence(reads_facts.into_inner(), output),
        }
        if is_cut {
            output.note("note: the repository does not have older commits: the answer may be older than this says");
        }
        Ok(Exit::Fine)
    }
}
