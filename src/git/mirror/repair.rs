//! Repairs the files of a mirror that a crash or a person damaged.
//!
//! Objects need the network, so they are kept whatever else is damaged. The configuration is written
//! again, `HEAD` and refs are restored from what is left; the next fetch restores the rest. Damaged files
//! are moved to `damaged/` inside the mirror.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::io;
use std::path::{Path, PathBuf};

use git2::Reference;

use crate::config::replace_with;
use crate::git::refs::WATCHED;
use crate::git::regular_file::{is_dangling, is_irregular, read_regular};
use crate::git::remote::Remote;

/// The setting in the mirror's configuration that names its remote.
const SETTING: &str = "clade.remote";

/// The file in the mirror that names its remote as well, for when the configuration is damaged.
const IDENTITY: &str = "clade-remote";

/// Where damaged files are moved to.
const DAMAGED: &str = "damaged";

/// How many such directories there are at most: `damaged`, `damaged-2` and so on.
const MOST_DAMAGED: usize = 100;

/// Files of a mirror that are read or written: a pipe in the place of one is waited for, and a directory is in the way.
const FILES: [&str; 11] = [
    IDENTITY,
    "clade-remote.new",
    "clade-source-ends",
    "clade-source-ends.new",
    "config.new",
    "HEAD.new",
    "packed-refs.new",
    "shallow",
    "info/grafts",
    "objects/info/alternates",
    "objects/info/commit-graph",
];

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

/// Returns whether a directory holds a mirror of the remote that can be opened.
pub(super) fn is_mirror_of(repository: &Path, remote: &Remote) -> bool {
    let is_of = configured(repository).is_some_and(|of| of == remote.address());
    is_of && git2::Repository::open_bare(repository).is_ok()
}

/// Returns whether a directory holds a mirror of the remote, which may have to be repaired.
pub(super) fn belongs_to(repository: &Path, remote: &Remote) -> bool {
    let is_it = |of: String| of == remote.address();
    noted(repository).is_some_and(is_it) || configured(repository).is_some_and(is_it)
}

/// Returns the address of the remote whose mirror a directory holds, as far as it can be read.
pub(super) fn noted_address(repository: &Path) -> Option<String> {
    configured(repository).or_else(|| noted(repository))
}

/// Names the remote of a mirror, in a file of its own and in the configuration.
pub(super) fn note_remote(repository: &Path, remote: &Remote) -> io::Result<()> {
    let address = remote.address();
    replace(&repository.join(IDENTITY), address.as_bytes())?;
    let fresh = repository.join("config.new");
    std::fs::write(&fresh, CONFIG)?;
    let settings = git2::Config::open(&fresh);
    let written = settings.and_then(|mut it| it.set_str(SETTING, &address));
    written.map_err(|error| io::Error::other(error.message().to_owned()))?;
    replace_with(&repository.join("config"), &fresh)
}

/// Repairs what can be repaired, if it is a mirror of the remote; any other one is left as it is.
pub(super) fn repair(repository: &Path, remote: &Remote) -> io::Result<()> {
    if !belongs_to(repository, remote) {
        return Ok(());
    }
    let address = remote.address();
    let is_noted = noted(repository).is_some_and(|of| of == address);
    let is_configured = configured(repository).is_some_and(|of| of == address);
    for name in FILES {
        let path = repository.join(name);
        if is_irregular(&path) || is_dangling(&path) {
            put_aside(repository, Path::new(name))?;
        }
    }
    // Where one names another remote, it was damaged or edited: they are written together.
    if !is_configured {
        put_aside(repository, Path::new("config"))?;
        note_remote(repository, remote)?;
    } else if !is_noted {
        // So does an older version leave it.
        replace(&repository.join(IDENTITY), address.as_bytes())?;
    }
    if repository.join("refs").is_file() {
        put_aside(repository, Path::new("refs"))?;
    }
    std::fs::create_dir_all(repository.join("refs"))?;
    let loose = loose_refs(repository)?;
    for name in &loose {
        if !read(&repository.join(name))?.is_some_and(|it| is_reference(&it)) {
            put_aside(repository, Path::new(name))?;
        }
    }
    repair_packed_refs(repository)?;
    if !read(&repository.join("HEAD"))?.is_some_and(|it| is_reference(&it)) {
        put_aside(repository, Path::new("HEAD"))?;
        let watched = loose.iter().find(|it| it.starts_with(WATCHED));
        let target = watched.map_or("refs/heads/main", String::as_str);
        replace(&repository.join("HEAD"), format!("ref: {target}\n").as_bytes())?;
    }
    // Such as a format of the future.
    if git2::Repository::open_bare(repository).is_err() {
        put_aside(repository, Path::new("config"))?;
        note_remote(repository, remote)?;
    }
    Ok(())
}

/// Returns the remote that the configuration names.
fn noted(repository: &Path) -> Option<String> {
    String::from_utf8(read_regular(&repository.join(IDENTITY)).ok()?).ok()
}

fn configured(repository: &Path) -> Option<String> {
    let path = repository.join("config");
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    git2::Config::open(&path).ok()?.get_string(SETTING).ok()
}

/// Drops lines of `packed-refs` that are damaged, and the lines that belong to them.
fn repair_packed_refs(repository: &Path) -> io::Result<()> {
    let path = repository.join("packed-refs");
    let Some(bytes) = read(&path)? else { return Ok(()) };
    let mut good = Vec::new();
    let mut is_kept = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        is_kept = match line.split_first() {
            Some((b'#', _)) => true,
            // What the tag in the line before leads to.
            Some((b'^', id)) => is_kept && is_id(id.trim_ascii_end()),
            _ => is_packed(line),
        };
        if is_kept {
            good.extend_from_slice(line);
        }
    }
    if good == bytes {
        return Ok(());
    }
    put_aside(repository, Path::new("packed-refs"))?;
    replace(&path, &good)
}

/// Returns whether a line is whole: an id, a space, and the name of a ref.
fn is_packed(line: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b"\n") else { return false };
    let Some((id, name)) = line.split_at_checked(40) else { return false };
    let name = name.strip_prefix(b" ").and_then(|it| std::str::from_utf8(it).ok());
    is_id(id) && name.is_some_and(Reference::is_valid_name)
}

/// Returns whether a file says what a ref leads to.
fn is_reference(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_end();
    match bytes.strip_prefix(b"ref:") {
        Some(name) => std::str::from_utf8(name.trim_ascii()).is_ok_and(Reference::is_valid_name),
        None => is_id(bytes),
    }
}

fn is_id(bytes: &[u8]) -> bool {
    bytes.len() == 40 && bytes.iter().all(u8::is_ascii_hexdigit)
}

/// Returns the names of the refs that have a file of their own.
fn loose_refs(repository: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("refs")];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(repository.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                waiting.push(path);
            } else if let Some(name) = path.to_str() {
                found.push(name.to_owned());
            }
        }
    }
    // The watched ref may have been another one before a crash; which one does not matter then.
    found.sort();
    Ok(found)
}

/// Reads a file; what is not a file is as one with a text that git does not write. Reading a pipe would wait.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if path.metadata().is_ok_and(|it| !it.is_file()) {
        return Ok(Some(vec![0]));
    }
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves a damaged file aside, and logs where. What was moved before may be in the way: then it goes to the next
/// directory.
fn put_aside(repository: &Path, name: &Path) -> io::Result<()> {
    let path = repository.join(name);
    if path.symlink_metadata().is_err() {
        tracing::error!(file = %path.display(), "a file of the mirror is missing");
        return Ok(());
    }
    let mut number = 1;
    let aside = loop {
        let root = if number == 1 { DAMAGED.to_owned() } else { format!("{DAMAGED}-{number}") };
        let aside = repository.join(root).join(name);
        match move_to(&path, &aside) {
            Ok(()) => break aside,
            Err(error) if is_of_place(&error) && number < MOST_DAMAGED => number += 1,
            Err(error) => return Err(error),
        }
    };
    tracing::error!(
        file = %path.display(),
        moved_to = %aside.display(),
        "a file of the mirror is damaged; it is moved aside and restored as far as possible"
    );
    Ok(())
}

fn move_to(path: &Path, aside: &Path) -> io::Result<()> {
    if let Some(directory) = aside.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::rename(path, aside)
}

/// Returns whether a file stands where a directory is wanted, or the other way round.
pub(super) fn is_of_place(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory};

    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty | IsADirectory | NotADirectory)
}

/// Removes a directory with what is in it, or what stands in its place.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Writes a file whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    // With the permissions of what git writes beside it.
    std::fs::write(&new, bytes)?;
    replace_with(path, &new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn only_whole_refs_are_references() {
        for (text, expected) in [
            (format!("{ID}\n"), true),
            (ID.to_owned(), true),
            ("ref: refs/clade/watched/refs/heads/main\n".to_owned(), true),
            ("ref: \n".to_owned(), false),
            (String::new(), false),
            ("0".repeat(39), false),
            ("\0".repeat(41), false),
        ] {
            assert_eq!(is_reference(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn whole_lines_of_packed_refs_are_kept() {
        let header = "# pack-refs with: peeled fully-peeled sorted \n";
        let good = format!("{ID} refs/tags/a\n^{ID}\n");
        for (text, expected) in [
            (format!("{header}{good}"), format!("{header}{good}")),
            (format!("{header}\0\0 refs/tags/b\n^{ID}\n{good}"), format!("{header}{good}")),
            (format!("{good}{ID} refs/tags/c"), good.clone()),
            ("\0\0\0".to_owned(), String::new()),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("packed-refs");
            std::fs::write(&path, &text).unwrap();
            repair_packed_refs(directory.path()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{text:?}");
            let is_aside = directory.path().join("damaged/packed-refs").exists();
            assert_eq!(is_aside, text != expected, "{text:?}");
        }
    }

    #[test]
    fn what_was_moved_aside_before_is_not_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path();
        git2::Repository::init_bare(repository).unwrap();
        let remote = Remote::parse("https://git.example/groups").unwrap();
        note_remote(repository, &remote).unwrap();
        let write = |name: &str, text: &str| {
            let path = repository.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        // A branch `a/b`, then one `a`, and the other way round.
        for (before, name) in [("refs/tags/a/b", "refs/tags/a"), ("refs/tags/c", "refs/tags/c/d")] {
            write(&format!("damaged/{before}"), "");
            write(name, "");
            repair(repository, &remote).unwrap();
            assert!(!repository.join(name).exists(), "{name}");
            assert!(repository.join("damaged-2").join(name).exists(), "{name}");
        }
        write("refs/tags/a", "");
        repair(repository, &remote).unwrap();
        assert!(!repository.join("damaged-3").exists(), "what is of the same name is replaced");
        std::fs::remove_dir_all(repository.join("damaged")).unwrap();
        write("damaged", "a file");
        std::fs::remove_file(repository.join("HEAD")).unwrap();
        std::fs::create_dir(repository.join("HEAD")).unwrap();
        std::fs::create_dir(repository.join("packed-refs")).unwrap();
        std::os::unix::fs::symlink("/absent", repository.join("refs/tags/e")).unwrap();
        repair(repository, &remote).unwrap();
        assert!(is_mirror_of(repository, &remote));
        for name in ["HEAD", "packed-refs", "refs/tags/e"] {
            let aside = repository.join("damaged-2").join(name);
            assert!(aside.symlink_metadata().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_mirror_is_repaired_for_its_own_remote_alone() {
        let edited = "[core]\n\tbare = true\n[clade]\n\tremote = https://git.example/edited\n";
        for (name, content) in [
            ("config", ""),
            ("config", "[core\0"),
            ("config", edited),
            ("HEAD", ""),
            ("refs/clade/live", ""),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let repository = directory.path();
            git2::Repository::init_bare(repository).unwrap();
            let remote = Remote::parse("https://git.example/groups").unwrap();
            note_remote(repository, &remote).unwrap();
            assert!(is_mirror_of(repository, &remote));
            std::fs::create_dir_all(repository.join("refs/clade/watched/refs/heads")).unwrap();
            let watched = "refs/clade/watched/refs/heads/main";
            std::fs::write(repository.join(watched), ID).unwrap();
            std::fs::write(repository.join(name), content).unwrap();
            let other = Remote::parse("https://git.example/others").unwrap();
            repair(repository, &other).unwrap();
            assert!(!is_mirror_of(repository, &other), "{name}");
            assert_eq!(std::fs::read_to_string(repository.join(name)).unwrap(), content);
            repair(repository, &remote).unwrap();
            assert!(is_mirror_of(repository, &remote), "{name}");
            assert!(repository.join("damaged").join(name).exists(), "{name}");
            if name == "HEAD" {
                let head = std::fs::read_to_string(repository.join("HEAD")).unwrap();
                assert_eq!(head, format!("ref: {watched}\n"));
            }
        }
    }
}
