//! What a commit leads to, read without what it says of people and times: libgit2 refuses a commit with a malformed author,
//! and old imports have such commits.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use git2::{ErrorClass, ErrorCode, Odb, Oid, Repository};

use super::regular_file::read_regular_within;

/// The file of a repository that names commits whose parents it lacks. A remote learns of it where something is fetched.
pub(super) const SHALLOW: &str = "shallow";

/// How large such a file is at most: it has a line for each commit where the history ends.
pub(super) const SHALLOW_BYTES: u64 = 64 << 20;

/// Returns the commits that a file names as [`SHALLOW`] does; none if there is no such file.
///
/// # Errors
///
/// Returns an error if it cannot be read.
pub(super) fn commits_in(file: &Path) -> io::Result<BTreeSet<Oid>> {
    let bytes = match read_regular_within(file, SHALLOW_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    Ok(text.lines().filter_map(|it| Oid::from_str(it).ok()).collect())
}

/// The tree and the parents of a commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommitLinks {
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
}

impl CommitLinks {
    /// Reads a commit of a repository; one where a shallow repository ends has no parents.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read, or does not begin as a commit.
    pub(super) fn find(
        repository: &Repository,
        database: &Odb<'_>,
        id: Oid,
    ) -> Result<Self, git2::Error> {
        match repository.find_commit(id) {
            Ok(commit) => {
                Ok(Self { tree: commit.tree_id(), parents: commit.parent_ids().collect() })
            }
            Err(_) => Self::read(database, id),
        }
    }

    /// Reads a commit as it was written.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be read, or does not begin as a commit.
    pub(super) fn read(database: &Odb<'_>, id: Oid) -> Result<Self, git2::Error> {
        let commit = database.read(id)?;
        Self::parse(commit.data()).ok_or_else(|| {
            let message = format!("the commit {id} is damaged: it names no tree");
            git2::Error::new(ErrorCode::GenericError, ErrorClass::Odb, message)
        })
    }

    /// Reads the first lines of a commit; none if they are not those of one.
    fn parse(content: &[u8]) -> Option<Self> {
        let mut lines = content.split(|it| *it == b'\n');
        let id = |line: &[u8], name: &str| {
            let text = std::str::from_utf8(line.strip_prefix(name.as_bytes())?).ok()?;
            Oid::from_str(text).ok().filter(|_| text.len() == 40)
        };
        let tree = id(lines.next()?, "tree ")?;
        let mut parents = Vec::new();
        for line in lines.take_while(|it| it.starts_with(b"parent ")) {
            parents.push(id(line, "parent ")?);
        }
        Some(Self { tree, parents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_say_what_a_commit_leads_to() {
        let [a, b, c] = ["a", "b", "c"].map(|it| it.repeat(40));
        let oid = |it: &str| Oid::from_str(it).unwrap();
        let links = |text: String| {
            let links = CommitLinks::parse(text.as_bytes())?;
            Some((links.tree, links.parents))
        };
        assert_eq!(links(format!("tree {a}\nauthor x\nparent {b}\n")), Some((oid(&a), vec![])));
        let two = format!("tree {a}\nparent {b}\nparent {c}\nauthor <\n\nparent {a}\n");
        assert_eq!(links(two), Some((oid(&a), vec![oid(&b), oid(&c)])));
        assert_eq!(links(format!("tree {a}")), Some((oid(&a), vec![])));
        for wrong in
            ["", "tree", "tree abc\n", &format!("tree {a}\nparent abc\n"), &format!("{a}\n")]
        {
            assert_eq!(links(wrong.to_owned()), None, "{wrong}");
        }
    }
}
