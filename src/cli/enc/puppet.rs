//! Where Puppet Server keeps what is asked for, found only when it is needed.
#![expect(clippy::disallowed_methods, reason = "Puppet's settings are a file")]

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cli::client::Identity;
use crate::config::PuppetSettings;

/// The Puppet of this machine, if there is one.
pub(super) struct Puppet(Option<PuppetSettings>);

impl Puppet {
    /// Reads Puppet's settings from a file, or from where they usually are.
    pub(super) fn find(file: Option<&Path>) -> Result<Self> {
        if let Some(file) = file {
            let text = std::fs::read_to_string(file).with_context(|| {
                format!("cannot read Puppet's settings in `{}`", file.display())
            })?;
            return Ok(Self(Some(PuppetSettings::new(file, &text))));
        }
        let usual = PuppetSettings::FILES.into_iter().find_map(|file| {
            let text = std::fs::read_to_string(file).ok()?;
            Some(PuppetSettings::new(Path::new(file), &text))
        });
        Ok(Self(usual))
    }

    /// Returns the path that a setting of Puppet's names.
    pub(super) fn path(&self, setting: &str) -> Option<PathBuf> {
        self.0.as_ref()?.path(setting)
    }

    /// Returns the directories of facts, the usual one first.
    pub(super) fn facts_directories(&self) -> Vec<PathBuf> {
        let directories = ["server_datadir", "yamldir"].map(|it| self.path(it));
        directories.into_iter().flatten().map(|it| it.join("facts")).collect()
    }

    /// Returns the directory that is ours among Puppet Server's data, which it may write to.
    pub(super) fn cache_directory(&self) -> Option<PathBuf> {
        let data = self.path("vardir")?;
        data.is_dir().then(|| data.join("clade"))
    }

    /// Returns who we are to daemons over TLS: what is configured, and for the rest Puppet Server itself.
    pub(super) fn identity(&self, configured: &Identity, servers: &[String]) -> Identity {
        let over_tls = servers.iter().any(|it| it.starts_with("https://"));
        if !over_tls {
            return configured.clone();
        }
        let pair = match (self.path("hostcert"), self.path("hostprivkey")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            // Puppet takes the name of the host; the one key that is there tells it, too.
            _ => self.only_key(),
        };
        let pair = pair.filter(|(certificate, key)| certificate.is_file() && key.is_file());
        let authority = self.path("localcacert").filter(|it| it.is_file());
        configured.or(Identity::of_files(authority, pair))
    }

    fn only_key(&self) -> Option<(PathBuf, PathBuf)> {
        let mut keys = std::fs::read_dir(self.path("privatekeydir")?).ok()?;
        let (key, None) = (keys.next()?.ok()?.path(), keys.next()) else { return None };
        Some((self.path("certdir")?.join(key.file_name()?), key))
    }
}
