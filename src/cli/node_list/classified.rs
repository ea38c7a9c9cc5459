//! The nodes of facts files or of PuppetDB, with what a repository gives them.

use std::collections::HashMap;

use anyhow::{Result, bail};
use jiff::Timestamp;
use rayon::prelude::*;
use serde_json::{Value, json};

use super::{NodeLine, NodesCommand};
use crate::answer::AnswerRecord;
use crate::cli::Exit;
use crate::cli::client::AnswerFormat;
use crate::cli::output::Output;
use crate::cli::repository::RepositoryArgs;
use crate::hierarchy::Estate;
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, Node};
use crate::snapshot::Index;

impl NodesCommand {
    /// Classifies the nodes, and lists those that meet the conditions.
    pub(super) fn classify(&self, output: &mut Output) -> Result<Exit> {
        for (option, value) in [("--commit", &self.commit), ("--silent-for", &self.silent_for)] {
            if value.is_some() {
                bail!(
                    "`{option}` asks what a daemon answered, and here the nodes are classified now: leave it out, or \
                     ask the daemon with --server URL"
                );
            }
        }
        let (directory, rev) = (self.repo.clone(), self.rev.clone());
        let repository = RepositoryArgs { directory, rev, budget: self.budget.clone() };
        let (estate, loaded) = repository.valid()?;
        let index = Index::new(&estate.hierarchy);
        let (mut seen, mut rows) = (HashMap::new(), Vec::new());
        let mut classify_all = |nodes: &[Node]| {
            let answers: Vec<_> =
                nodes.par_iter().map(|node| answer(&estate, &index, node)).collect();
            let answered = nodes.iter().zip(answers);
            rows.extend(answered.filter_map(|(node, it)| self.row(node, &it, loaded.commit)));
        };
        let mut note = |name: &str, time: Option<Timestamp>| {
            seen.extend(time.map(|it| (name.to_owned(), it)));
        };
        let mentioned = MentionedPaths::of(&estate);
        let read = self.nodes.read_noting(&mentioned, &mut note, &mut classify_all, output)?;
        for row in &mut rows {
            row.last_seen = seen.get(&row.name).copied();
        }
        rows.sort_by(|a: &NodeLine, b: &NodeLine| a.name.cmp(&b.name));
        self.show(&rows, read.nodes, output)?;
        for bad in &read.unreadable {
            output.note(&format!("error: {bad}"));
        }
        Ok(if read.unreadable.is_empty() { Exit::Fine } else { Exit::Failed })
    }

    /// Returns the row of a node that meets the conditions.
    fn row(
        &self,
        node: &Node,
        answer: &AnswerRecord,
        commit: Option<CommitId>,
    ) -> Option<NodeLine> {
        let is =
            |wanted: &Option<String>, met: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(met);
        let environment = answer.environment();
        let groups = answer.groups();
        let is_met = is(&self.q, &|text| {
            node.name.to_ascii_lowercase().contains(&text.to_ascii_lowercase())
        }) && is(&self.group, &|wanted| {
            groups.iter().any(|it| it.name == wanted || it.id.to_string() == wanted)
        }) && is(&self.class, &|class| {
            answer.classes().any(|it| it.as_str() == class)
        }) && is(&self.environment, &|wanted| {
            environment.as_ref().is_some_and(|it| it.as_str() == wanted)
        }) && is(&self.state, &|state| answer.state().as_str() == state);
        is_met.then(|| NodeLine {
            name: node.name.clone(),
            state: Some(answer.state()),
            last_seen: None,
            commit,
            since: None,
            environment,
            groups: groups.into_iter().map(|it| it.clone().into()).collect(),
        })
    }

    fn show(&self, rows: &[NodeLine], classified: usize, output: &mut Output) -> Result<()> {
        match self.format {
            AnswerFormat::Json => {
                let nodes: Vec<Value> = rows.iter().map(NodeLine::to_value).collect();
                output.json(&json!({"total": rows.len(), "nodes": nodes}))
            }
            AnswerFormat::Human if rows.is_empty() => {
                output.note(&format!("none of {classified} nodes meets the conditions"));
                Ok(())
            }
            AnswerFormat::Human => {
                output.data(&super::write(rows, Timestamp::now(), output.page()))
            }
        }
    }
}

fn answer(estate: &Estate, index: &Index, node: &Node) -> AnswerRecord {
    let groups = index.matching(&estate.hierarchy, node);
    AnswerRecord::of_groups(estate, node, groups.as_deref())
}
