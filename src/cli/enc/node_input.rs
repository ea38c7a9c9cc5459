//! What Puppet Server knows of a node before it asks: its facts, and what its certificate proves.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::arguments::EncSettings;
use super::input::read_if_there;
use super::puppet::Puppet;
use crate::cli::serve::EncFacts;
use crate::config::read_certificate;
use crate::facts::{CertificateFacts, ExtensionNames, FactsDirectory, newest_facts, trusted_data};
use crate::model::{Map, Node, Value};

/// What a request says of a node.
pub(super) struct NodeInput {
    fact: Option<Map<String, Value>>,
    trusted: Map<String, Value>,
    sources: InputSources,
}

/// The files that say it.
#[derive(Default)]
pub(super) struct InputSources {
    pub(super) facts: Option<PathBuf>,
    pub(super) certificate: Option<PathBuf>,
}

impl NodeInput {
    /// Reads the facts and the certificate.
    ///
    /// A file that is absent says nothing of the node. One that cannot be used is an error, since without it the node would
    /// be another one, with another answer.
    pub(super) fn gather(enc: &EncSettings, puppet: &Puppet) -> Result<Self> {
        let (facts, fact) = facts(enc, puppet)?.unzip();
        if fact.is_none() && enc.facts == EncFacts::Required {
            bail!("there are no facts of `{}` yet, and they are required", enc.node);
        }
        let (path, certificate) = certificate(enc, puppet)?.unzip();
        let sources = InputSources { facts, certificate: path };
        Ok(Self { fact, trusted: trusted_data(&enc.node, certificate), sources })
    }

    /// Writes the body of a request. Without facts the daemon uses those that it has.
    pub(super) fn body(&self) -> String {
        match &self.fact {
            Some(fact) => json!({"fact": fact, "trusted": self.trusted}).to_string(),
            None => self.text_without_facts(),
        }
    }

    /// Writes the same without the facts, if there are any.
    pub(super) fn bare_body(&self) -> Option<String> {
        self.fact.is_some().then(|| self.text_without_facts())
    }

    fn text_without_facts(&self) -> String {
        json!({"trusted": self.trusted}).to_string()
    }

    /// Returns the node, and the files that say what it is.
    pub(super) fn into_node(self, name: &str) -> (Node, InputSources) {
        let Self { fact, trusted, sources } = self;
        (Node { name: name.to_owned(), fact: fact.unwrap_or_default(), trusted }, sources)
    }
}

/// Reads the facts of a node; one that never sent any has no file.
fn facts(enc: &EncSettings, puppet: &Puppet) -> Result<Option<(PathBuf, Map<String, Value>)>> {
    let directories = match &enc.facts_dir {
        Some(directory) => vec![FactsDirectory::new(directory.clone())],
        None => puppet
            .facts_directories()
            .into_iter()
            .map(|it| FactsDirectory::new(it).or_absent())
            .collect(),
    };
    let as_root = |path: &Path| read_if_there(path).map_err(|error| error.to_string());
    let directories: Vec<_> = directories.into_iter().map(|it| it.read_by(as_root)).collect();
    let found = newest_facts(&directories, &enc.node)?;
    // Agents fill these files, so trusted data in them prove nothing.
    Ok(found.map(|(path, facts)| (path, facts.fact)))
}

/// Reads what the signed certificate of a node says; only Puppet's authority has it.
fn certificate(enc: &EncSettings, puppet: &Puppet) -> Result<Option<(PathBuf, CertificateFacts)>> {
    let Some(directory) = enc.signed_dir.clone().or_else(|| puppet.path("signeddir")) else {
        return Ok(None);
    };
    let path = directory.join(format!("{}.pem", enc.node));
    let what = || format!("cannot use the certificate in `{}`", path.display());
    let Some(bytes) = read_if_there(&path).with_context(what)? else { return Ok(None) };
    let der = read_certificate(&bytes).with_context(what)?;
    let Some(read) = CertificateFacts::read(&der, &extension_names(enc, puppet)?) else {
        bail!("{}: its common name cannot be read", what());
    };
    if read.certname != enc.node {
        bail!("{}: it belongs to `{}`", what(), read.certname.escape_debug());
    }
    Ok(Some((path, read)))
}

fn extension_names(enc: &EncSettings, puppet: &Puppet) -> Result<ExtensionNames> {
    let path: Option<PathBuf> =
        enc.oid_mapping_file.clone().or_else(|| puppet.path("trusted_oid_mapping_file"));
    let Some(path) = path else { return Ok(ExtensionNames::default()) };
    let what = || format!("cannot use the names of extensions in `{}`", path.display());
    match read_if_there(&path).with_context(what)? {
        Some(bytes) => ExtensionNames::read(&bytes).with_context(what),
        None => Ok(ExtensionNames::default()),
    }
}
