//! The files and directories of Puppet Server, found by Puppet's settings.
#![expect(clippy::disallowed_methods, reason = "Puppet's settings are a file")]

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::client::Identity;
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

    /// Returns the credentials for daemons over TLS: those that are configured, and for the rest Puppet's
    /// own; and why Puppet's own certificate is not used, if it exists and cannot be read.
    pub(super) fn identity(
        &self,
        configured: &Identity,
        servers: &[String],
    ) -> (Identity, Option<String>) {
        let over_tls = servers.iter().any(|it| it.starts_with("https://"));
        if !over_tls {
            return (configured.clone(), None);
        }
        let authority = self.path("localcacert").filter(|it| it.is_file());
        let (pair, unusable) = match self.pair() {
            Ok(pair) => (pair, None),
            Err(Unusable { path, error }) => {
                let reason = format!(
                    "cannot read Puppet's own key and certificate in `{}`: {error}; continuing without them: run as the user of Puppet Server, or use --tls-cert and --tls-key",
                    path.display()
                );
                (None, Some(reason).filter(|_| !configured.has_certificate()))
            }
        };
        (configured.or(Identity::of_files(authority, pair)), unusable)
    }

    /// Returns the certificate and the key of Puppet Server, if it has both.
    fn pair(&self) -> Result<Option<(PathBuf, PathBuf)>, Unusable> {
        let pair = match (self.path("hostcert"), self.path("hostprivkey")) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            // Puppet takes the name of the host; the one key that is there tells it, too.
            _ => self.only_key()?,
        };
        let Some((certificate, key)) = pair else { return Ok(None) };
        Ok((is_file(&certificate)? && is_file(&key)?).then_some((certificate, key)))
    }

    fn only_key(&self) -> Result<Option<(PathBuf, PathBuf)>, Unusable> {
        let (Some(keys), Some(certificates)) = (self.path("privatekeydir"), self.path("certdir"))
        else {
            return Ok(None);
        };
        let unusable = |error| Unusable { path: keys.clone(), error };
        let mut entries = match std::fs::read_dir(&keys) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(unusable)?,
        };
        let (Some(first), None) = (entries.next(), entries.next()) else { return Ok(None) };
        let key = first.map_err(unusable)?.path();
        Ok(key.file_name().map(|name| (certificates.join(name), key.clone())))
    }
}

/// What is there and cannot be used.
struct Unusable {
    path: PathBuf,
    error: std::io::Error,
}

/// Returns whether a file is there; to be kept from finding that out is not the same as its absence.
fn is_file(path: &Path) -> Result<bool, Unusable> {
    match std::fs::File::open(path).and_then(|it| it.metadata()) {
        Ok(metadata) => Ok(metadata.is_file()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Unusable { path: path.to_owned(), error }),
    }
}
