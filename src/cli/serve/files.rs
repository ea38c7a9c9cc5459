//! Files of the settings that are read while the daemon runs, checked before it starts.
//!
//! What is wrong with one would show at each fetch, and for ever. Files that are watched (TLS, tokens,
//! webhook secrets) are checked where they are loaded.
#![expect(clippy::disallowed_methods, reason = "the files of the settings are checked")]

use std::path::Path;

use anyhow::{Result, bail};

use super::ServeSettings;
use crate::config::{read_authorities, read_bounded, read_secret};
use crate::git::{check_allowed_signers, check_known_hosts, check_openpgp_keys, check_private_key};

/// Refuses files that cannot be read or have nothing that can be used.
pub(super) fn check(serve: &ServeSettings) -> Result<()> {
    type Check = fn(&Path) -> Result<(), String>;
    let files: [(_, _, Check); 10] = [
        ("git-password-file", &serve.git_password_file, secret),
        ("git-token-file", &serve.git_token_file, secret),
        ("git-ca-file", &serve.git_ca_file, authorities),
        ("ssh-key-file", &serve.ssh_key_file, check_private_key),
        ("ssh-known-hosts-file", &serve.ssh_known_hosts_file, check_known_hosts),
        ("allowed-signers-file", &serve.allowed_signers_file, check_allowed_signers),
        ("openpgp-keys-file", &serve.openpgp_keys_file, check_openpgp_keys),
        ("forge-token-file", &serve.forge_token_file, secret),
        ("forge-ca-file", &serve.forge_ca_file, authorities),
        ("facts-dir", &serve.facts_dir, directory),
    ];
    for (flag, path, check) in files {
        let Some(path) = path else { continue };
        let readable = if path.is_dir() { Ok(()) } else { read_bounded(path).map(|_| ()) };
        if let Err(error) = readable {
            bail!(
                "`--{flag} {}` cannot be read ({error}): correct the path, or let the user of the daemon read it",
                path.display()
            );
        }
        if let Err(reason) = check(path) {
            bail!("`--{flag} {}` cannot be used: {reason}", path.display());
        }
    }
    Ok(())
}

fn secret(path: &Path) -> Result<(), String> {
    read_secret(path).map(|_| ()).map_err(|error| format!("it {error}"))
}

fn authorities(path: &Path) -> Result<(), String> {
    read_authorities(path).map(|_| ()).map_err(|error| format!("it {error}"))
}

fn directory(path: &Path) -> Result<(), String> {
    std::fs::read_dir(path).map(|_| ()).map_err(|error| error.to_string())
}
