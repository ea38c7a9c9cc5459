//! A state that is compared, loaded and validated.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::range::NamedRevision;
use crate::cli::repository::{BudgetArgs, LoadedRepository, RepositoryArgs};
use crate::diagnostic::Place;
use crate::impact::Side;
use crate::model::CommitId;

/// One of the two states, with its name.
pub(super) struct LoadedSide {
    pub(super) name: String,
    loaded: LoadedRepository,
    node_origins: BTreeMap<String, Place>,
}

impl LoadedSide {
    pub(super) fn load(
        directory: PathBuf,
        named: NamedRevision,
        budget: BudgetArgs,
    ) -> Result<Self> {
        let NamedRevision { name, revision } = named;
        let directory = Some(directory).filter(|it| it.as_os_str() != ".");
        let repository = RepositoryArgs { directory, rev: revision, budget };
        let loaded = repository.load()?;
        if let (None, Some(error)) = (&loaded.checked.estate, loaded.first_error()) {
            let help = match loaded.meant() {
                Some(meant) => meant.help_with_flag(),
                None => format!("see `clade validate{}`", repository.words()),
            };
            bail!("`{name}` is not valid, so no node can be classified there: {error}; {help}");
        }
        let node_origins = loaded.checked.node_origins();
        Ok(Self { name, loaded, node_origins })
    }

    pub(super) fn side(&self) -> Result<Side<'_>> {
        let checked = &self.loaded.checked;
        let estate = checked.estate.as_ref().context("the repository is not valid")?;
        Ok(Side { estate, origins: &checked.origins, node_origins: &self.node_origins })
    }

    pub(super) fn to_value(&self) -> Value {
        json!({"revision": self.name, "commit": self.commit().map(|it| it.to_string())})
    }

    /// Returns the commit; none for the files as they are.
    pub(super) fn commit(&self) -> Option<CommitId> {
        self.loaded.commit
    }

    /// Returns the content of a file.
    pub(super) fn text(&self, path: &str) -> Option<&[u8]> {
        self.loaded.text(path)
    }
}
