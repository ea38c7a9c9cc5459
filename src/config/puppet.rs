//! What Puppet's own settings say: where a Puppet Server keeps facts and certificates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The sections that count for a server, the first one first.
const SECTIONS: [&str; 3] = ["server", "master", "main"];

/// How far settings may name each other.
const DEPTH: usize = 16;

/// The directories of one way of packaging Puppet.
#[derive(Clone, Copy, Debug)]
struct Packaging {
    confdir: &'static str,
    vardir: &'static str,
    ssldir: &'static str,
    cadir: &'static str,
}

/// The packages of Puppet and OpenVox, and those of Debian.
const PACKAGINGS: [Packaging; 2] = [
    Packaging {
        confdir: "/etc/puppetlabs/puppet",
        vardir: "/opt/puppetlabs/server/data/puppetserver",
        ssldir: "/etc/puppetlabs/puppet/ssl",
        cadir: "/etc/puppetlabs/puppetserver/ca",
    },
    Packaging {
        confdir: "/etc/puppet",
        vardir: "/var/lib/puppetserver",
        ssldir: "/var/lib/puppet/ssl",
        cadir: "/etc/puppet/puppetserver/ca",
    },
];

/// The settings that follow from others.
const DERIVED: [(&str, &str); 9] = [
    ("server_datadir", "$vardir/server_data"),
    ("yamldir", "$vardir/yaml"),
    ("signeddir", "$cadir/signed"),
    ("certdir", "$ssldir/certs"),
    ("privatekeydir", "$ssldir/private_keys"),
    ("localcacert", "$certdir/ca.pem"),
    ("hostcert", "$certdir/$certname.pem"),
    ("hostprivkey", "$privatekeydir/$certname.pem"),
    ("trusted_oid_mapping_file", "$confdir/custom_trusted_oid_mapping.yaml"),
];

/// The settings of a Puppet Server, as `puppet.conf` and its packaging have them.
///
/// ```
/// use clade::internals::config::PuppetSettings;
///
/// let text = "[main]\ncertname = puppet.example.com\n[server]\nvardir = /srv/puppet\n";
/// let settings = PuppetSettings::new("/etc/puppet/puppet.conf".as_ref(), text);
/// assert_eq!(settings.path("yamldir").unwrap().to_str(), Some("/srv/puppet/yaml"));
/// assert_eq!(
///     settings.path("hostcert").unwrap().to_str(),
///     Some("/var/lib/puppet/ssl/certs/puppet.example.com.pem")
/// );
/// ```
#[derive(Clone, Debug)]
pub struct PuppetSettings {
    written: BTreeMap<String, String>,
    defaults: BTreeMap<&'static str, String>,
}

impl PuppetSettings {
    /// The places where `puppet.conf` may be.
    pub const FILES: [&str; 2] = ["/etc/puppetlabs/puppet/puppet.conf", "/etc/puppet/puppet.conf"];

    /// Reads the text of `puppet.conf`; unknown lines are ignored, as Puppet does.
    pub fn new(file: &Path, text: &str) -> Self {
        let confdir = file.parent().unwrap_or(Path::new("/"));
        let [usual, ..] = PACKAGINGS;
        let packaging =
            PACKAGINGS.into_iter().find(|it| Path::new(it.confdir) == confdir).unwrap_or(usual);
        let mut defaults: BTreeMap<&'static str, String> =
            DERIVED.map(|(name, value)| (name, value.to_owned())).into();
        defaults.insert("confdir", confdir.to_string_lossy().into_owned());
        defaults.insert("vardir", packaging.vardir.to_owned());
        defaults.insert("ssldir", packaging.ssldir.to_owned());
        defaults.insert("cadir", packaging.cadir.to_owned());
        Self { written: parse(text), defaults }
    }

    /// Returns a setting.
    pub fn get(&self, name: &str) -> Option<String> {
        self.expanded(name, DEPTH)
    }

    /// Returns a setting that is a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    fn expanded(&self, name: &str, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let value = self.written.get(name).or_else(|| self.defaults.get(name))?;
        let mut parts = value.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let (name, rest) = match part.strip_prefix('{').and_then(|it| it.split_once('}')) {
                Some(braced) => braced,
                None => part.split_at(part.find(|it| !is_word(it)).unwrap_or(part.len())),
            };
            text += &self.expanded(name, depth)?;
            text += rest;
        }
        Some(text)
    }
}

/// Returns the settings that count for a server.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut section = "main";
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = name.trim();
            continue;
        }
        let rank = SECTIONS.iter().position(|it| *it == section);
        let (Some(rank), Some((name, value))) = (rank, line.split_once('=')) else { continue };
        if line.starts_with('#') {
            continue;
        }
        // What stands in braces is about owner and mode of the file.
        let value = value.split_once(" {").map_or(value, |(path, _)| path);
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        if found.get(&name).is_none_or(|(known, _)| rank <= *known) {
            found.insert(name, (rank, value));
        }
    }
    found.into_iter().map(|(name, (_, value))| (name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_settings_of_its_own() {
        let text = "# a comment = x\nstray line\nvardir = /a\n[main]\ncertname = m\n[agent]\nvardir = /agent\n[server]\nvardir = /b { owner = puppet }\nyamldir = ${vardir}/y$certname { mode = 0750 }\n[master]\nvardir = /c\nssldir=$confdir/tls\n";
        let settings = PuppetSettings::new(Path::new("/x/puppet.conf"), text);
        for (name, value) in [
            ("vardir", Some("/b")),
            ("server_datadir", Some("/b/server_data")),
            ("yamldir", Some("/b/ym")),
            ("hostcert", Some("/x/tls/certs/m.pem")),
            ("signeddir", Some("/etc/puppetlabs/puppetserver/ca/signed")),
            ("trusted_oid_mapping_file", Some("/x/custom_trusted_oid_mapping.yaml")),
            ("nothing", None),
        ] {
            assert_eq!(settings.get(name).as_deref(), value, "{name}");
        }
    }

    #[test]
    fn every_packaging_has_its_directories() {
        for (file, datadir, key) in [
            (
                "/etc/puppetlabs/puppet/puppet.conf",
                "/opt/puppetlabs/server/data/puppetserver/server_data",
                "/etc/puppetlabs/puppet/ssl/private_keys/n.pem",
            ),
            (
                "/etc/puppet/puppet.conf",
                "/var/lib/puppetserver/server_data",
                "/var/lib/puppet/ssl/private_keys/n.pem",
            ),
        ] {
            let settings = PuppetSettings::new(Path::new(file), "certname = n\n");
            assert_eq!(settings.get("server_datadir").as_deref(), Some(datadir));
            assert_eq!(settings.get("hostprivkey").as_deref(), Some(key));
        }
    }

    #[test]
    fn settings_that_name_each_other_are_none() {
        let settings = PuppetSettings::new(Path::new("/p"), "vardir = $ssldir\nssldir = $vardir\n");
        assert_eq!(settings.get("vardir"), None);
        assert_eq!(settings.get("hostcert"), None);
    }
}
