//! The password file of PostgreSQL, checked before the daemon starts: the library ignores one that other users may read,
//! and the server then refuses a user without a password.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::store::StoreLocation;

/// The variable that names the file in the place of `~/.pgpass`.
const VARIABLE: &str = "PGPASSFILE";

/// Refuses a file that the environment names and that is ignored; one in the home directory may be for other programs.
pub(super) fn check(store: Option<&StoreLocation>) -> Result<()> {
    let Some(StoreLocation::Postgres(url)) = store else { return Ok(()) };
    if url.has_password() || std::env::var_os("PGPASSWORD").is_some() {
        return Ok(());
    }
    let usual = std::env::home_dir().map(|it| it.join(".pgpass")).filter(|it| it.exists());
    let usual = usual.map(|it| (why_ignored(&it), it));
    // An empty one names no file, as for psql.
    let named = std::env::var_os(VARIABLE).filter(|it| !it.is_empty());
    if let Some(path) = named.map(PathBuf::from) {
        let Some(reason) = why_ignored(&path) else { return Ok(()) };
        let reason = format!("the password file `{}` of `{VARIABLE}` {reason}", path.display());
        // The library reads the usual one then.
        if !matches!(usual, Some((None, _))) {
            bail!(reason);
        }
        tracing::warn!("{reason}");
    } else if let Some((Some(reason), path)) = usual {
        tracing::warn!("the password file `{}` {reason}", path.display());
    }
    Ok(())
}

/// Returns why a file is ignored and what to do, as the end of a sentence about it.
fn why_ignored(path: &Path) -> Option<String> {
    const OTHERWISE: &str = "or write the password into the URL of `CLADE_STORE`";
    // A pipe would be read here in the place of the library.
    let mode = match std::fs::metadata(path).and_then(|it| match it.is_file() {
        true => File::open(path)?.metadata(),
        false => Ok(it),
    }) {
        Ok(metadata) => metadata.permissions().mode() & 0o777,
        Err(error) => {
            return Some(format!("cannot be read ({error}): correct the path, {OTHERWISE}"));
        }
    };
    // A volume of Kubernetes with `fsGroup` has such files, whatever mode it is given. The library looks at modes on Linux alone.
    (cfg!(target_os = "linux") && mode & 0o077 != 0).then(|| {
        format!("is ignored, since its group or others may use it (mode {mode:03o}): `chmod 600` it, {OTHERWISE}")
    })
}
