//! Directories that are not for the data of a daemon.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::path::Path;

use super::privacy::is_ours;

/// What a directory has that a daemon has used.
const MARKS: [&str; 6] = [
    "mirror.git",
    "mirror.git.new",
    "mirror.git.broken",
    "journal",
    "nodes.sqlite",
    "check-ins.redb",
];

/// What a fresh directory has: a volume, or one in a working tree of git.
const OF_A_FRESH_ONE: [&str; 4] = ["lost+found", ".snapshot", ".snapshots", ".gitignore"];

/// Returns a file or directory of others in a directory that no daemon has used yet: the first by name.
pub fn foreign_entry(directory: &Path) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let names: Vec<String> =
        entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    if names.iter().any(|it| MARKS.contains(&it.as_str())) {
        return None;
    }
    names.into_iter().filter(|it| !is_ours(it) && !OF_A_FRESH_ONE.contains(&it.as_str())).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_foreign_until_a_daemon_has_used_it() {
        for (names, expected) in [
            (&[][..], None),
            (&["lost+found", ".snapshot", ".gitignore"], None),
            (&["lock", "nodes.sqlite-wal", "last-contact", "lost+found"], None),
            (&["tokens.yaml"], Some("tokens.yaml")),
            (&[".X11-unix"], Some(".X11-unix")),
            (&["lock", "b", "a"], Some("a")),
            (&["tokens.yaml", "journal"], None),
            (&["x", "mirror.git.broken"], None),
            (&["x", "check-ins.redb"], None),
        ] {
            let directory = tempfile::tempdir().unwrap();
            for name in names {
                std::fs::write(directory.path().join(name), "").unwrap();
            }
            assert_eq!(foreign_entry(directory.path()).as_deref(), expected, "{names:?}");
        }
        assert_eq!(foreign_entry(Path::new("/nowhere/at/all")), None);
    }
}
