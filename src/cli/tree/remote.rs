//! Explanations of a daemon, by the last check-in of a node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::places::WrittenPlaces;
use crate::classification::{WithheldFacts, conclude, explanation, matches};
use crate::cli::Exit;
use crate::cli::client::{IdentityArgs, read_object, read_value};
use crate::cli::import::export::{self, Export};
use crate::cli::output::{DataFormat, Output};
use crate::client::{Client, JsonReply};
use crate::hierarchy::{Estate, Hierarchy};
use crate::http::types::{Explanation, IndividualClassification, LocatedValue};
use crate::model::{Individual, Interpolation, Node};

/// How long a daemon may take for an answer.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The explanation document of a daemon, and the groups of the commit that it comes from.
pub(super) struct RemoteExplanation {
    daemon: Client,
    /// As the daemon sent it, which may say more than this program can read.
    document: Value,
    groups: String,
}

/// Asks a daemon to explain a node by what it knows of it.
pub(super) fn ask(
    server: &str,
    identity: &IdentityArgs,
    node: &str,
    output: &mut Output,
) -> Result<RemoteExplanation> {
    let daemon = identity.client_of_first(server, TIMEOUT, output)?;
    let name = utf8_percent_encode(node, NON_ALPHANUMERIC);
    let path = format!("/v1/classified/nodes/{name}/explanation");
    let (commit, reply) = daemon.get_json_of_commit(&path)?;
    let document = reply.document()?;
    let commit = commit.context("the daemon does not say which commit answers")?;
    // The groups of the same commit, whatever answers by now.
    let groups = daemon.get_json(&format!("/v1/groups?commit={commit}"))?.document()?.to_string();
    Ok(RemoteExplanation { daemon, document, groups })
}

impl RemoteExplanation {
    /// Writes the document as the daemon sent it.
    pub(super) fn write(&self, format: DataFormat, output: &mut Output) -> Result<Exit> {
        output.data(&format.write(&self.document))?;
        let is_conflict = self.document.get("conflicts").is_some();
        Ok(if is_conflict { Exit::Findings } else { Exit::Fine })
    }

    /// Returns where the daemon says that the values of a node are written; nothing where it cannot say it.
    pub(super) fn places(&self, node: &str) -> WrittenPlaces {
        // Not the blame, which reads the whole history of each file.
        let path =
            format!("/controller/nodes/{}/values", utf8_percent_encode(node, NON_ALPHANUMERIC));
        let values = self.daemon.get_json(&path).and_then(JsonReply::document).ok();
        let values = values.and_then(|it| serde_json::from_value::<Vec<LocatedValue>>(it).ok());
        WrittenPlaces::of_daemon(&values.unwrap_or_default())
    }

    /// Returns what the document was made of, if this program makes the same document of it: what is
    /// drawn is what the daemon answers.
    pub(super) fn checked(&self) -> Result<(Estate, Node)> {
        let (mut estate, node) =
            self.parts().context("the explanation of the daemon cannot be drawn")?;
        // The document does not say whether facts are put into values.
        for interpolation in [Interpolation::Off, Interpolation::On] {
            estate.interpolation = interpolation;
            let groups = matches(&estate.hierarchy, &node)?;
            let own = explanation(&conclude(&estate, &node, &groups, WithheldFacts::Mark)?);
            if own == self.document {
                return Ok((estate, node));
            }
        }
        bail!(
            "this program and the daemon explain the node differently, as other versions or a token for some groups alone can: --format json prints the explanation of the daemon"
        );
    }

    fn parts(&self) -> Result<(Estate, Node)> {
        let Export { groups, faults, .. } = export::read(&self.groups)?;
        if let Some(fault) = faults.first() {
            bail!("{fault}");
        }
        let hierarchy =
            Hierarchy::build(groups).map_err(|_| anyhow!("its groups do not form a tree"))?;
        let Explanation { node_as_received: node, individual_classification, .. } =
            read_object(&self.document)?;
        let individual = individual(&individual_classification)?;
        let individuals = BTreeMap::from([(node.name.clone(), individual)]);
        let estate = Estate {
            hierarchy,
            individuals: Arc::new(individuals),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: Interpolation::Off,
        };
        Ok((estate, node))
    }
}

/// Returns the values that are set for the node alone, with their names checked.
fn individual(values: &IndividualClassification) -> Result<Individual> {
    Ok(Individual {
        classes: checked("classes", &values.classes)?,
        variables: checked("variables", &values.variables)?,
        config_data: checked("config_data", &values.config_data)?,
    })
}

/// Reads values with names that are valid in a group.
fn checked<T: DeserializeOwned>(what: &str, values: &impl Serialize) -> Result<T> {
    read_value(&serde_json::to_value(values)?)
        .with_context(|| format!("its `{what}` cannot be read"))
}
