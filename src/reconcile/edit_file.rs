//! The edits of groups, in a file: a restart need not walk through the history again.
//!
//! What is read must be what was written: a wrong serial number would be taken for the right one until the group is edited
//! again. So the file has a digest of its content, and one that does not fit it is not read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use crate::config::{Durability, read_at_most, replace_file};
use crate::history::History;
use crate::model::{CommitId, hex};

/// The name of the file in the data directory.
const FILE: &str = "edits.json";

/// How large the file is at most that is read.
const MOST_BYTES: u64 = 1 << 30;

/// The file with the edits of groups.
#[derive(Debug)]
pub(super) struct EditFile {
    file: PathBuf,
}

/// The whole file.
#[derive(Serialize, Deserialize)]
struct SealedEdits {
    /// The SHA-256 of the text of the history.
    sha256: String,
    history: Box<RawValue>,
}

/// What wrote a file: another version may read documents or count edits otherwise.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " with removals");

/// The edits up to a commit.
#[derive(Serialize, Deserialize)]
struct SavedEdits {
    /// [`VERSION`].
    version: String,
    /// The directory of the groups in the repository.
    path: String,
    commit: CommitId,
    groups: Arc<History>,
}

impl EditFile {
    /// Returns the file in a data directory.
    pub(super) fn new(data: &Path) -> Self {
        Self { file: data.join(FILE) }
    }

    /// Returns what an earlier run of this version wrote about the groups in a directory of the repository, and up to which
    /// commit; none if the file has nothing of that, or is damaged.
    pub(super) fn load(&self, path: &str) -> Option<(CommitId, Arc<History>)> {
        let file = self.file.display();
        let bytes = match read_at_most(&self.file, MOST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(%file, %error, "the file cannot be read: the edits of groups are counted again");
                return None;
            }
        };
        let Some(saved) = unseal(&bytes) else {
            tracing::warn!(%file, "the file is damaged, or of another version: the edits of groups are counted again");
            return None;
        };
        let fits = saved.version == VERSION && saved.path == path;
        fits.then_some((saved.commit, saved.groups))
    }

    /// Writes the edits up to a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(super) fn save(
        &self,
        path: &str,
        commit: CommitId,
        groups: Arc<History>,
    ) -> io::Result<()> {
        let version = VERSION.to_owned();
        let bytes = seal(&SavedEdits { version, path: path.to_owned(), commit, groups })?;
        // One that a crash cut short is not read.
        replace_file(&self.file, &bytes, Durability::Unsynced)
    }
}

fn seal(saved: &SavedEdits) -> io::Result<Vec<u8>> {
    let history = to_raw_value(saved)?;
    let sha256 = digest(&history);
    Ok(serde_json::to_vec(&SealedEdits { sha256, history })?)
}

/// Returns what was sealed; none if it is anything else.
fn unseal(bytes: &[u8]) -> Option<SavedEdits> {
    let sealed: SealedEdits = serde_json::from_slice(bytes).ok()?;
    let is_whole = digest(&sealed.history) == sealed.sha256;
    is_whole.then(|| serde_json::from_str(sealed.history.get()).ok())?
}

fn digest(history: &RawValue) -> String {
    hex(&Sha256::digest(history.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_in_a_bit_or_is_cut_is_not_read() {
        let groups = serde_json::json!({
            "groups": {"aaaaaaaa-0000-4000-8000-000000000001": {
                "digest": [1, 2], "edit": {"serial": 12, "time": "2024-01-01T00:02:00Z"},
            }},
            "catalogues": null,
        });
        let saved = SavedEdits {
            version: "1".to_owned(),
            path: "p".to_owned(),
            commit: CommitId::from_bytes([7; 20]),
            groups: serde_json::from_value(groups).unwrap(),
        };
        let whole = seal(&saved).unwrap();
        let read = unseal(&whole).unwrap();
        assert_eq!(
            (read.version, read.path, read.commit, read.groups),
            (saved.version, saved.path, saved.commit, saved.groups)
        );
        for at in 0..whole.len() {
            assert!(unseal(&whole[..at]).is_none(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                assert!(unseal(&damaged).is_none(), "bit {bit} of {at}");
            }
        }
        assert!(unseal(&[&whole[..], b"0"].concat()).is_none());
    }
}
