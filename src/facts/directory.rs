//! Directories of facts files.
#![expect(clippy::disallowed_methods, reason = "facts are files")]

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;

use super::cache::read_cached;
use super::file::{FILE_BYTES, read_file};
use super::read::{NodeFacts, read_facts};
use super::source::{Listed, ListedNode, NodeSource, NodeSourceError, RowRoom, Unlimited};
use super::text::{WantedFacts, read_wanted};
use super::trusted::with_trusted_data;
use crate::model::{Map, Node, Value, map_memory, remove_marks, value_memory};

/// The endings of facts files. Of files that are equally new, that with the first of these counts.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// What stands before the ending of a file with the trusted data of a node.
const TRUSTED: &str = ".trusted";

/// The most files that are in memory at once.
const FILES_AT_ONCE: usize = 512;

/// Reads a file; none if it is absent.
pub type ReadFile = fn(&Path) -> Result<Option<Vec<u8>>, String>;

/// A directory of facts files, `<certname>.json`, `.yaml` or `.yml`.
#[derive(Clone, Debug)]
pub struct FactsDirectory {
    path: PathBuf,
    read: ReadFile,
    absence: Absence,
}

/// What the absence of a directory means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// An error: a volume that is not mounted must not look like nodes without facts.
    Error,
    /// That there are no facts yet.
    NoFacts,
}

/// The files of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryListing {
    /// The facts files, one for each node.
    pub files: Vec<PathBuf>,
    /// The files with trusted data of a node that has no facts file, with the certname of the node. No node has these
    /// data.
    pub trusted_without_facts: Vec<(PathBuf, String)>,
}

/// Facts cannot be read from files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsFileError {
    /// A file of a node.
    #[error("cannot use the facts in `{}`: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There was no memory for what a file of a node has.
    #[error("cannot read the facts in `{}`: there is no memory for them now", .0.display())]
    NoRoom(PathBuf),
    /// The directory.
    #[error("cannot read the facts directory `{}`: {reason}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory has no facts files.
    #[error("there are no facts files in `{}`: `<certname>.json` or `.yaml`", .0.display())]
    Empty(PathBuf),
}

impl FactsDirectory {
    /// Returns a directory that must be there when facts are read.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: read_if_present, absence: Absence::Error }
    }

    /// Accepts the absence of the directory: Puppet Server makes its own when the first agent asks.
    #[must_use]
    pub fn or_absent(self) -> Self {
        Self { absence: Absence::NoFacts, ..self }
    }

    /// Reads files by a function.
    #[must_use]
    pub fn read_by(self, read: ReadFile) -> Self {
        Self { read, ..self }
    }

    /// Returns the facts of a node, and the trusted data that its file has beside them. Of several files the
    /// newest counts.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory or a file cannot be read, or the file is half written or has the
    /// facts of another node.
    pub fn facts(
        &self,
        certname: &str,
        room: &dyn RowRoom,
    ) -> Result<Option<NodeFacts>, FactsFileError> {
        Ok(newest_within(std::slice::from_ref(self), certname, room)?.map(|(_, facts)| facts))
    }

    /// Returns the facts files that a node has here, and an error for each that cannot be examined.
    fn files_of(&self, certname: &str) -> Vec<Result<FactsFile<'_>, FactsFileError>> {
        if certname.is_empty() || certname.starts_with('.') || certname.contains(['/', '\\', '\0'])
        {
            return Vec::new();
        }
        let file = |ending: &&str| {
            let path = self.path.join(format!("{certname}.{ending}"));
            match described(&path) {
                Ok((modified, bytes)) => {
                    Some(Ok(FactsFile { path, modified, bytes, directory: self }))
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => Some(Err(FactsFileError::File { path, reason: error.to_string() })),
            }
        };
        ENDINGS.iter().filter_map(file).collect()
    }

    /// Returns an error if the directory is not there and must be, or cannot be examined.
    fn check_presence(&self) -> Result<(), FactsFileError> {
        match std::fs::metadata(&self.path) {
            Err(error) if self.absence == Absence::Error || error.kind() != ErrorKind::NotFound => {
                Err(self.unreadable(&error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the facts files of all nodes: of several for one node, the one that [`Self::facts`] reads.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory cannot be read, or has no facts files.
    pub fn files(&self) -> Result<Vec<PathBuf>, FactsFileError> {
        self.listing().map(|it| it.files)
    }

    /// Returns the facts files of all nodes as [`Self::files`], and the files that are left out.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Self::files`] does.
    pub fn listing(&self) -> Result<DirectoryListing, FactsFileError> {
        let mut found: HashMap<OsString, usize> = HashMap::new();
        let mut trusted: Vec<(PathBuf, String)> = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(|error| self.unreadable(&error))? {
            let path = entry.map_err(|error| self.unreadable(&error))?.path();
            if let Some((certname, rank)) = node_of_file(&path) {
                match found.entry(certname) {
                    Entry::Vacant(entry) => {
                        entry.insert(rank);
                    }
                    Entry::Occupied(mut entry) => {
                        let newest = self.newest(entry.key(), [*entry.get(), rank]);
                        entry.insert(newest);
                    }
                }
            } else if let Some(certname) = node_of_trusted_data(&path) {
                trusted.push((path, certname));
            }
        }
        if found.is_empty() {
            return Err(FactsFileError::Empty(self.path.clone()));
        }
        let known: HashSet<OsString> = found.keys().cloned().collect();
        let mut files: Vec<PathBuf> =
            found.into_iter().map(|(certname, rank)| self.file(&certname, rank)).collect();
        files.sort();
        trusted.retain(|(_, certname)| !known.contains(OsStr::new(certname)));
        trusted.sort();
        Ok(DirectoryListing { files, trusted_without_facts: trusted })
    }

    /// Returns the path of a node's file with one of the endings.
    fn file(&self, certname: &OsStr, rank: usize) -> PathBuf {
        let mut name = certname.to_owned();
        name.push(".");
        name.push(ENDINGS.get(rank).copied().unwrap_or_default());
        self.path.join(name)
    }

    /// Returns which of two endings the file has that [`Self::facts`] reads.
    fn newest(&self, certname: &OsStr, mut ranks: [usize; 2]) -> usize {
        ranks.sort_by_key(|rank| (Reverse(modified(&self.file(certname, *rank)).ok()), *rank));
        let [newest, _] = ranks;
        newest
    }

    fn unreadable(&self, error: &std::io::Error) -> FactsFileError {
        FactsFileError::Directory { path: self.path.clone(), reason: error.to_string() }
    }
}

impl NodeSource for FactsDirectory {
    /// Nothing in the files is trusted: agents fill them.
    fn node(&self, certname: &str, room: &dyn RowRoom) -> Result<Option<Node>, NodeSourceError> {
        let facts = self.facts(certname, room).map_err(|error| {
            NodeSourceError::Unreadable(match error {
                FactsFileError::NoRoom(_) => return NodeSourceError::NoRoom,
                FactsFileError::File { reason, .. } => reason,
                FactsFileError::Directory { path, reason } => format!(
                    "the directory `{}` of `--facts-dir` cannot be read: {reason}",
                    path.display()
                ),
                error @ FactsFileError::Empty(_) => error.to_string(),
            })
        })?;
        Ok(facts.map(|NodeFacts { fact, .. }| {
            let mut node = Node { fact, ..Node::named(certname.to_owned()) };
            remove_marks(&mut node);
            node
        }))
    }

    /// Reads every file, with the trusted data beside it.
    fn list(
        &self,
        _: Option<&Value>,
        each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
    ) -> Result<usize, NodeSourceError> {
        let files = self.files().map_err(|error| NodeSourceError::Unreadable(error.to_string()))?;
        Ok(list_files(&files, WantedFacts::All, &mut |mut listed| {
            if let Ok(listed) = &mut listed {
                remove_marks(&mut listed.node);
            }
            each(listed)
        }))
    }
}

/// Reads what is wanted of facts files, each with the trusted data beside it, until `each` stops it. Returns how many it
/// has read.
pub fn list_files(
    files: &[PathBuf],
    wanted: WantedFacts<'_>,
    each: &mut dyn FnMut(Listed) -> ControlFlow<()>,
) -> usize {
    let (mut count, mut named) = (0, NamedInside::default());
    for some in files.chunks(FILES_AT_ONCE) {
        let read: Vec<Listed> = some.par_iter().map(|path| listed(path, wanted)).collect();
        count += some.len();
        for (path, listed) in some.iter().zip(read) {
            let listed = listed.and_then(|it| named.check(path, it));
            if each(listed).is_break() {
                return count;
            }
        }
    }
    count
}

/// The files whose node has another name than they, by the name in them.
#[derive(Default)]
struct NamedInside<'p>(HashMap<String, &'p Path>);

impl<'p> NamedInside<'p> {
    /// Returns a node unless a file before has the same one: which of the two files is right only people know.
    fn check(&mut self, path: &'p Path, listed: ListedNode) -> Listed {
        let name = &listed.node.name;
        if path.file_stem().is_some_and(|stem| stem == OsStr::new(name)) {
            return Ok(listed);
        }
        match self.0.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(path);
                Ok(listed)
            }
            Entry::Occupied(before) => Err(same_node(path, name, before.get())),
        }
    }
}

/// A facts file of a node.
struct FactsFile<'d> {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
    directory: &'d FactsDirectory,
}

impl FactsFile<'_> {
    /// Reads the facts of a node, if the file is still there and there is room for them.
    fn read(
        &self,
        certname: &str,
        room: &dyn RowRoom,
    ) -> Result<Option<NodeFacts>, FactsFileError> {
        let unusable = |reason| FactsFileError::File { path: self.path.clone(), reason };
        // One that is too long is an error of its own.
        let announced = usize::try_from(self.bytes.min(FILE_BYTES)).unwrap_or(usize::MAX);
        if !room.admits_bytes(announced) {
            return Err(FactsFileError::NoRoom(self.path.clone()));
        }
        let Some(bytes) = (self.directory.read)(&self.path).map_err(unusable)? else {
            return Ok(None);
        };
        // The file may be another one by now.
        let is_longer = bytes.len() > announced;
        if (is_longer && !room.admits_bytes(bytes.len())) || !room.admits_document(&bytes) {
            return Err(FactsFileError::NoRoom(self.path.clone()));
        }
        read_cached(&bytes, certname).map(Some).map_err(|error| unusable(error.to_string()))
    }
}

/// Returns the facts of a node as [`FactsDirectory::facts`], with the path of their file: the newest one in any of the
/// directories. A Puppet Server whose format of facts was changed leaves the old files where they are.
///
/// # Errors
///
/// Returns an error as [`FactsDirectory::facts`] does; one of a directory only where no other has the file: it may be
/// left over.
pub fn newest_facts(
    directories: &[FactsDirectory],
    certname: &str,
) -> Result<Option<(PathBuf, NodeFacts)>, FactsFileError> {
    newest_within(directories, certname, &Unlimited)
}

fn newest_within(
    directories: &[FactsDirectory],
    certname: &str,
    room: &dyn RowRoom,
) -> Result<Option<(PathBuf, NodeFacts)>, FactsFileError> {
    let (mut files, mut unknown) = (Vec::new(), None);
    for file in directories.iter().flat_map(|it| it.files_of(certname)) {
        match file {
            Ok(file) => files.push(file),
            Err(error) => unknown = unknown.or(Some(error)),
        }
    }
    // Of files that are equally new the first counts.
    files.sort_by_key(|it| Reverse(it.modified));
    for file in files {
        if let Some(facts) = file.read(certname, room)? {
            return Ok(Some((file.path, facts)));
        }
    }
    unknown.map_or(Ok(()), Err)?;
    directories.iter().try_for_each(FactsDirectory::check_presence)?;
    Ok(None)
}

/// Returns when a file was written.
fn modified(path: &Path) -> std::io::Result<SystemTime> {
    Ok(described(path)?.0)
}

/// Returns when a file was written and how many bytes it has.
fn described(path: &Path) -> std::io::Result<(SystemTime, u64)> {
    let found = std::fs::metadata(path)?;
    Ok((found.modified()?, found.len()))
}

/// Returns the certname that the name of a facts file has, and where its ending stands in the order of the look-up; `None`
/// for other files, trusted data among them.
fn node_of_file(path: &Path) -> Option<(OsString, usize)> {
    let (stem, ending) = (path.file_stem()?, path.extension()?);
    let rank = ENDINGS.iter().position(|it| ending == *it)?;
    let certname = stem.to_string_lossy();
    let is_other = certname.starts_with('.') || certname.ends_with(TRUSTED);
    (!is_other).then(|| (stem.to_owned(), rank))
}

/// Returns the certname of the node whose trusted data a file has by its name.
fn node_of_trusted_data(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_string_lossy();
    ENDINGS.iter().find(|it| path.extension().is_some_and(|ending| ending == **it))?;
    let certname = stem.strip_suffix(TRUSTED)?;
    (!certname.is_empty() && !certname.starts_with('.')).then(|| certname.to_owned())
}

fn read_if_present(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a facts file in any form, and the trusted data beside it.
fn listed(path: &Path, wanted: WantedFacts<'_>) -> Listed {
    let (read, memory) = any_form(path, wanted)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let trusted = ENDINGS
        .iter()
        .map(|ending| path.with_file_name(format!("{stem}{TRUSTED}.{ending}")))
        // A link that leads nowhere is not the same as no file.
        .filter(|it| it.symlink_metadata().is_ok())
        .min_by_key(|it| Reverse(modified(it).ok()));
    let trusted = trusted.as_deref().map(trusted_data_of).transpose()?;
    let name = match read.name {
        Some(name) if name != stem => name_beside(path, name)?,
        _ => stem,
    };
    let node = Node { name, fact: read.fact, ..Node::default() };
    // As the daemon completes what it keeps of nodes, and not what it is sent.
    let node = with_trusted_data(node, trusted, read.trusted).with_certname();
    Ok(ListedNode { node, memory, seen: None })
}

/// Returns the certname that a file of another name has in it, unless the node has a file of its own: then it is a copy
/// whose name in it was not changed.
fn name_beside(path: &Path, name: String) -> Result<String, String> {
    let mut own = ENDINGS.iter().map(|ending| path.with_file_name(format!("{name}.{ending}")));
    let shown = path.display();
    if name.is_empty() {
        return Err(format!("`{shown}` has an empty `name`: correct it, or remove it"));
    }
    match own.find(|it| it.exists()) {
        None => Ok(name),
        Some(own) => Err(same_node(path, &name, &own)),
    }
}

/// Says that two files have the facts of one node.
fn same_node(path: &Path, name: &str, other: &Path) -> String {
    format!(
        "`{}` holds the facts of `{name}`, as `{}` does: correct the `name` in it, or remove the file",
        path.display(),
        other.display()
    )
}

fn trusted_data_of(path: &Path) -> Result<Map<String, Value>, String> {
    let (read, _) = any_form(path, WantedFacts::All)?;
    Ok(read.trusted.unwrap_or(read.fact))
}

/// Reads a facts file; returns about how many bytes of memory its facts take, too.
fn any_form(path: &Path, wanted: WantedFacts<'_>) -> Result<(NodeFacts, usize), String> {
    let fail =
        |error: &dyn std::fmt::Display| format!("`{}` cannot be read: {error}", path.display());
    let bytes = read_file(path).map_err(|error| fail(&error))?;
    if let WantedFacts::Some(keep) = wanted
        && let Some(facts) = read_wanted(&bytes, keep)
    {
        let memory = map_memory(&facts.fact) + facts.trusted.as_ref().map_or(0, map_memory);
        return Ok((facts, memory));
    }
    let facts = read_facts(&bytes).map_err(|error| fail(&error))?;
    Ok((facts, value_memory(&bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Unlimited;

    fn directory(files: &[(&str, &str)]) -> (tempfile::TempDir, FactsDirectory) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let facts = FactsDirectory::new(directory.path().to_owned());
        (directory, facts)
    }

    #[test]
    fn facts_are_found_by_certname_and_trusted_data_are_not_taken_from_them() {
        let (_kept, facts) = directory(&[
            ("web1.yaml", "a: 1\n"),
            ("web2.yml", "a: 2\n"),
            ("web3.json", r#"{"fact": {"a": 3}, "trusted": {"certname": "forged"}}"#),
        ]);
        for (name, a) in [("web1", 1), ("web2", 2), ("web3", 3)] {
            let node = facts.node(name, &Unlimited).unwrap().unwrap();
            assert_eq!(Value::from(node.fact), json!({"a": a}), "{name}");
            assert!(node.trusted.is_empty(), "{name}");
        }
        for name in ["web4", "", ".", "..", "../web1", "a/b", "web1\0"] {
            assert_eq!(facts.node(name, &Unlimited), Ok(None), "{name}");
        }
    }

    /// Sets how many days after 1970 files were written.
    fn set_days(directory: &tempfile::TempDir, days: &[(&str, u64)]) {
        for (name, day) in days {
            let file = std::fs::File::options().write(true).open(directory.path().join(name));
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_hours(24 * day);
            file.unwrap().set_modified(time).unwrap();
        }
    }

    #[test]
    fn of_several_files_of_a_node_the_newest_counts() {
        let (kept, facts) = directory(&[
            ("web1.json", r#"{"a": "json"}"#),
            ("web1.yaml", "a: yaml\n"),
            ("web1.yml", "a: yml\n"),
        ]);
        for (days, expected) in
            [([1, 2, 3], "yml"), ([1, 3, 2], "yaml"), ([3, 2, 1], "json"), ([2, 2, 2], "json")]
        {
            let [json, yaml, yml] = days;
            set_days(&kept, &[("web1.json", json), ("web1.yaml", yaml), ("web1.yml", yml)]);
            let node = facts.node("web1", &Unlimited).unwrap().unwrap();
            assert_eq!(node.fact["a"], json!(expected), "{days:?}");
            let file = kept.path().join(format!("web1.{expected}"));
            assert_eq!(facts.files().unwrap(), [file], "{days:?}");
        }
        // One that cannot be used is an error, though there is an older one.
        set_days(&kept, &[("web1.yaml", 5)]);
        std::fs::write(kept.path().join("web1.json"), "{").unwrap();
        assert!(matches!(facts.facts("web1", &Unlimited), Err(FactsFileError::File { .. })));
    }

    #[test]
    fn a_directory_that_is_none_keeps_no_facts_of_another_from_being_read() {
        let (kept, facts) = directory(&[("web1.json", r#"{"a": 1}"#), ("left-over", "")]);
        let path = kept.path().join("left-over");
        let left_over = FactsDirectory::new(path.clone()).or_absent();
        for both in [[left_over.clone(), facts.clone()], [facts.clone(), left_over.clone()]] {
            let (_, found) = newest_facts(&both, "web1").unwrap().unwrap();
            assert_eq!(found.fact["a"], json!(1));
            let error = newest_facts(&both, "web2").unwrap_err();
            let first = path.join("web2.json");
            assert!(
                matches!(&error, FactsFileError::File { path, .. } if *path == first),
                "{error}"
            );
        }
    }

    #[test]
    fn an_absent_directory_is_an_error_unless_it_may_be_absent() {
        let directory = tempfile::tempdir().unwrap();
        let absent = FactsDirectory::new(directory.path().join("absent"));
        let error = absent.facts("web1", &Unlimited).unwrap_err();
        assert!(matches!(error, FactsFileError::Directory { .. }), "{error}");
        assert_eq!(absent.or_absent().facts("web1", &Unlimited), Ok(None));
    }

    #[test]
    fn marks_of_the_store_in_a_file_are_texts() {
        let text = r#"{"a": ["[masked]"], "[stored paths]": []}"#;
        let (_kept, facts) = directory(&[("web1.json", text)]);
        let expected = json!({"a": ["[[masked]]"], "[[stored paths]]": []});
        let node = facts.node("web1", &Unlimited).unwrap().unwrap();
        assert_eq!(Value::from(node.fact), expected);
        let counted = facts.list(None, &mut |it| {
            assert_eq!(Value::from(it.unwrap().node.fact), expected);
            ControlFlow::Continue(())
        });
        assert_eq!(counted, Ok(1));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_an_error() {
        let (_kept, facts) = directory(&[
            ("web1.json", "{\"a\": "),
            ("web2.json", r#"{"name": "web1", "values": {}}"#),
        ]);
        for (name, reason) in
            [("web1", "line 1, column 6: "), ("web2", "the file holds the facts of `web1`")]
        {
            match facts.facts(name, &Unlimited).unwrap_err() {
                FactsFileError::File { reason: found, .. } => {
                    assert!(found.starts_with(reason), "{found}");
                }
                other => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_list_has_every_node_with_the_trusted_data_beside_its_facts() {
        let (_kept, facts) = directory(&[
            ("web1.yaml", "a: 1\n"),
            ("web1.trusted.yaml", "extensions: {pp_role: web}\n"),
            ("web2.json", "{"),
            ("README", "no facts"),
        ]);
        let mut listed = Vec::new();
        let each = &mut |it| {
            listed.push(it);
            ControlFlow::Continue(())
        };
        assert_eq!(facts.list(None, each), Ok(2));
        let web1 = listed[0].as_ref().unwrap();
        assert_eq!(
            Value::from(web1.node.trusted.clone()),
            json!({
                "extensions": {"pp_role": "web"}, "authenticated": "remote", "certname": "web1",
                "hostname": "web1", "domain": null,
            })
        );
        assert!(web1.memory > 300);
        assert!(listed[1].as_ref().unwrap_err().contains("web2.json` cannot be read: "));
    }

    #[test]
    fn a_node_has_one_file_and_only_the_end_of_a_name_says_that_it_is_trusted_data() {
        let (kept, facts) = directory(&[
            ("web1.json", r#"{"a": "json"}"#),
            ("web1.yaml", "a: yaml\n"),
            ("web1.yml", "a: yml\n"),
            ("web1.trusted.yml", "extensions: {}\n"),
            ("web2.yml", "a: yml\n"),
            ("web2.yaml", "a: yaml\n"),
            ("web3.yml", "a: yml\n"),
            ("web4.trusted.example.com.json", r#"{"a": "json"}"#),
            ("web4.trusted.example.com.trusted.json", "{}"),
            ("trusted.json", r#"{"a": "json"}"#),
            ("db1.corp.trusted.json", "{}"),
            (".trusted.json", "{}"),
            (".hidden.json", "{}"),
            (".hidden.trusted.json", "{}"),
        ]);
        let names = ["web1.json", "web1.yaml", "web1.yml", "web2.yml", "web2.yaml"];
        set_days(&kept, &names.map(|name| (name, 1)));
        let expected = [
            ("trusted", "json"),
            ("web1", "json"),
            ("web2", "yaml"),
            ("web3", "yml"),
            ("web4.trusted.example.com", "json"),
        ];
        let files = expected.map(|(name, ending)| kept.path().join(format!("{name}.{ending}")));
        let listing = facts.listing().unwrap();
        assert_eq!(listing.files, files);
        assert_eq!(
            listing.trusted_without_facts,
            [(kept.path().join("db1.corp.trusted.json"), "db1.corp".to_owned())]
        );
        let mut listed = Vec::new();
        let count = facts.list(None, &mut |it| {
            listed.push(it.unwrap().node);
            ControlFlow::Continue(())
        });
        assert_eq!(count, Ok(expected.len()));
        for (node, (name, ending)) in listed.iter().zip(expected) {
            assert_eq!((&*node.name, &node.fact["a"]), (name, &json!(ending)));
            // As the daemon, which looks up one node.
            let one = facts.node(name, &Unlimited).unwrap().unwrap();
            assert_eq!(one.fact, node.fact, "{name}");
        }
    }

    /// Returns what is listed of each file: the node, or why there is none.
    fn all_of(facts: &FactsDirectory) -> Vec<Listed> {
        let mut listed = Vec::new();
        facts
            .list(None, &mut |it| {
                listed.push(it);
                ControlFlow::Continue(())
            })
            .unwrap();
        listed
    }

    #[test]
    fn a_node_is_listed_once_whatever_its_files_are_called() {
        let (kept, facts) = directory(&[
            ("new.json", r#"{"name": "web1", "values": {"a": 1}}"#),
            ("old.json", r#"{"name": "web1", "values": {"a": 2}}"#),
            ("other.json", r#"{"name": "web2", "values": {"a": 3}}"#),
        ]);
        let listed = all_of(&facts);
        let names: Vec<Result<&str, &str>> = listed
            .iter()
            .map(|it| it.as_ref().map(|it| it.node.name.as_str()).map_err(String::as_str))
            .collect();
        let path = |name: &str| kept.path().join(name).display().to_string();
        let same = format!(
            "`{}` holds the facts of `web1`, as `{}` does: correct the `name` in it, or remove the file",
            path("old.json"),
            path("new.json")
        );
        assert_eq!(names, [Ok("web1"), Err(same.as_str()), Ok("web2")]);
    }

    #[test]
    fn trusted_data_are_those_of_the_newest_file_that_is_there() {
        let (kept, facts) = directory(&[
            ("web1.json", "{}"),
            ("web1.trusted.json", r#"{"extensions": {"pp_role": "json"}}"#),
            ("web1.trusted.yaml", "extensions: {pp_role: yaml}\n"),
        ]);
        for (days, expected) in [([1, 2], "yaml"), ([2, 1], "json"), ([1, 1], "json")] {
            let [json, yaml] = days;
            set_days(&kept, &[("web1.trusted.json", json), ("web1.trusted.yaml", yaml)]);
            let listed = all_of(&facts).remove(0).unwrap();
            let role = &listed.node.trusted["extensions"]["pp_role"];
            assert_eq!(role, &json!(expected), "{days:?}");
        }
        for ending in ["json", "yaml"] {
            std::fs::remove_file(kept.path().join(format!("web1.trusted.{ending}"))).unwrap();
        }
        let link = kept.path().join("web1.trusted.json");
        std::os::unix::fs::symlink(kept.path().join("gone"), &link).unwrap();
        let error = all_of(&facts).remove(0).unwrap_err();
        assert!(error.starts_with(&format!("`{}` cannot be read: ", link.display())), "{error}");
    }
}
