//! Files that look as if they were meant, and are not read.
//!
//! A control repository has much YAML beside that of Clade. So a file elsewhere is only named if it
//! says what a group or a test says, and one in a directory of Clade if its name is nearly right.

use std::sync::Arc;

use super::layout::{Layout, below, is_yaml};
use super::{FileKind, SourceContent, SourceFile};
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::document::{self, Content, Limits, Node, Span};

/// Why a file may be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnreadReason {
    /// Its name is that of the settings, but for the ending or case.
    Settings,
    /// It stands where such files are, but its name does not end in `.yaml`.
    Ending(FileKind),
    /// It stands elsewhere, and is meant if it says what such a file says.
    Elsewhere(FileKind),
}

impl Layout {
    /// Returns whether a file is not read, but may be meant by its path; what it says may decide.
    pub fn may_be_meant(&self, path: &str) -> bool {
        self.suspicion(path).is_some()
    }

    fn suspicion(&self, path: &str) -> Option<UnreadReason> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let ending = FileExtension::of(name)?;
        if directory.is_empty() {
            if word(name).trim_start_matches('.').eq_ignore_ascii_case("clade") {
                return Some(UnreadReason::Settings);
            }
            let is_of_others = name.starts_with('.') || ending == FileExtension::Odd;
            return (!is_of_others).then_some(UnreadReason::Elsewhere(FileKind::Groups));
        }
        let found = self.innermost(|it| below(path, it).is_some());
        if let Some((kind, below)) = found.and_then(|(it, kind)| Some((kind, below(path, it)?))) {
            let is_deeper = kind == FileKind::Environment && below.contains('/');
            return match (kind, ending) {
                // `environments/production/` may be a whole environment of Puppet.
                _ if is_deeper
                    && below.matches('/').count() == 1
                    && ending != FileExtension::Odd =>
                {
                    Some(UnreadReason::Elsewhere(kind))
                }
                _ if is_deeper => None,
                (_, FileExtension::Yaml) => None,
                // Facts of tests are JSON as often as not.
                (FileKind::Tests, FileExtension::Json) => Some(UnreadReason::Elsewhere(kind)),
                (_, FileExtension::Json | FileExtension::Odd) => Some(UnreadReason::Ending(kind)),
            };
        }
        let mut parts = self.parts().into_iter();
        let (_, kind) = parts.find(|(part, _)| is_below_like(path, part))?;
        (ending != FileExtension::Odd).then_some(UnreadReason::Elsewhere(kind))
    }

    /// Returns whether a directory may hold files that may be meant.
    pub fn may_hold_meant(&self, directory: &str) -> bool {
        self.parts().into_iter().any(|(part, kind)| {
            let inside = below(directory, part);
            part == directory
                || below(part, directory).is_some()
                || is_below_like(&format!("{directory}/"), part)
                || inside.is_some_and(|it| kind != FileKind::Environment || !it.contains('/'))
        })
    }

    fn directory_of(&self, kind: FileKind) -> &str {
        let mut parts = self.parts().into_iter();
        parts.find(|(_, it)| *it == kind).map_or("", |(part, _)| part)
    }
}

/// Returns the name of a file without its ending.
fn word(name: &str) -> &str {
    let stem = name.strip_suffix(".txt").unwrap_or(name);
    stem.rsplit_once('.').map_or(stem, |(word, _)| word)
}

/// How the name of a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileExtension {
    Yaml,
    Json,
    /// Nearly as those of YAML: `.YAML`, `.yaml.txt`.
    Odd,
}

impl FileExtension {
    fn of(name: &str) -> Option<Self> {
        if is_yaml(name) {
            return Some(Self::Yaml);
        }
        let lower = name.to_ascii_lowercase();
        if matches!(name.rsplit_once('.'), Some((_, "json"))) {
            return Some(Self::Json);
        }
        let odd = [".yaml", ".yml", ".json", ".yaml.txt", ".yml.txt", ".ymal", ".yalm"];
        odd.iter().any(|it| lower.ends_with(it)).then_some(Self::Odd)
    }
}

/// Returns whether a path lies below a directory that is nearly called like another: `Groups`,
/// `group`.
fn is_below_like(path: &str, directory: &str) -> bool {
    let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
    let path = if above.is_empty() { Some(path) } else { below(path, above) };
    let Some((first, _)) = path.and_then(|it| it.split_once('/')) else { return false };
    let fold = |text: &str| text.to_ascii_lowercase().trim_end_matches('s').to_owned();
    first != name && fold(first) == fold(name)
}

/// Names the files that look as if they were meant, and are not read.
pub fn unread(layout: &Layout, files: &[SourceFile]) -> Vec<Diagnostic> {
    reports(layout, files).map(|(_, found)| found).collect()
}

/// Names the files that look like tests, and are not read.
pub fn unread_tests(layout: &Layout, files: &[SourceFile]) -> Vec<Diagnostic> {
    let found = reports(layout, files).filter(|(kind, _)| *kind == FileKind::Tests);
    found.map(|(_, found)| found).collect()
}

fn reports<'f>(
    layout: &'f Layout,
    files: &'f [SourceFile],
) -> impl Iterator<Item = (FileKind, Diagnostic)> + 'f {
    // The one that is read where there are both.
    let mut settings = ["clade.yaml", "clade.yml"].into_iter();
    let settings = settings.find(|name| files.iter().any(|it| it.path.as_ref() == *name));
    files.iter().filter_map(move |it| report(layout, it, settings))
}

fn report(
    layout: &Layout,
    file: &SourceFile,
    settings: Option<&str>,
) -> Option<(FileKind, Diagnostic)> {
    let path = file.path.as_ref();
    let name = path.rsplit('/').next().unwrap_or(path);
    let (kind, message, help) = match layout.suspicion(path)? {
        UnreadReason::Settings if settings == Some(path) => return None,
        UnreadReason::Settings => match settings {
            Some(read) => (
                FileKind::Settings,
                format!("this file is not read: the settings are those of `{read}`"),
                format!("put both together into `{read}`"),
            ),
            None => (
                FileKind::Settings,
                "this file is not read: settings stand in `clade.yaml`".to_owned(),
                "rename it to `clade.yaml`".to_owned(),
            ),
        },
        UnreadReason::Ending(kind) => (
            kind,
            "this file is not read: its name ends neither in `.yaml` nor in `.yml`".to_owned(),
            format!("rename it to `{}.yaml`; JSON is YAML", word(name)),
        ),
        UnreadReason::Elsewhere(kind) => {
            let SourceContent::Bytes(bytes) = &file.content else { return None };
            let documents = document::read(bytes, &Limits::DEFAULT).documents;
            let found = documents.iter().find_map(|it| {
                looks_like(kind, it).then_some(kind).or_else(|| {
                    // At the top, tests may be meant as well.
                    let is_test = kind == FileKind::Groups && looks_like(FileKind::Tests, it);
                    is_test.then_some(FileKind::Tests)
                })
            })?;
            let directory = layout.directory_of(found);
            let (what, only) = match found {
                FileKind::Groups => ("a node group", "below"),
                FileKind::Node => ("the values of a node", "below"),
                FileKind::Tests => ("tests", "below"),
                FileKind::Environment => ("a class catalogue", "directly in"),
                FileKind::Settings => return None,
            };
            (
                found,
                format!(
                    "this file is not read: it looks like {what}, which stands {only} `{directory}/`"
                ),
                format!("move it to `{directory}/{}.yaml`", word(name)),
            )
        }
    };
    let place = Place { file: Arc::clone(&file.path), span: Span::START };
    Some((kind, Diagnostic::new(Kind::UnreadFile, place, message).with_help(help)))
}

/// Returns whether a document says what one of a kind says.
fn looks_like(kind: FileKind, document: &Node) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let are_known = |known: &[&str]| {
        let entries = document.entries();
        !entries.is_empty() && entries.iter().all(|it| known.contains(&it.key.as_str()))
    };
    let is_mapping = |node: &Node| matches!(node.content, Content::Mapping(_));
    match kind {
        FileKind::Groups => {
            document.get("name").is_some_and(|it| it.as_str().is_some())
                && ["parent", "rule", "pinned", "environment_trumps"].iter().any(|it| has(it))
                || (has("name") && document.get("classes").is_some_and(is_mapping))
        }
        FileKind::Node => are_known(super::individual::KEYS),
        FileKind::Environment => {
            let catalogued =
                |it: &document::Entry| it.value.get("parameters").is_some() || it.value.is_null();
            let classes = document.get("classes").map(Node::entries).unwrap_or_default();
            are_known(super::catalogue::KEYS) && classes.iter().any(catalogued)
        }
        FileKind::Tests => {
            let is_test = |it: &Node| it.get("node").is_some() && it.get("expect").is_some();
            document.elements().first().is_some_and(is_test)
        }
        FileKind::Settings => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;
    use crate::validation::{Search, read_layout, validate};

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: Arc::from(*path),
            content: SourceContent::Bytes(text.as_bytes().into()),
        };
        let files: Vec<SourceFile> = files.iter().map(file).collect();
        let (layout, _) = read_layout(&files);
        let meant: Vec<SourceFile> =
            files.iter().filter(|it| layout.may_be_meant(&it.path)).cloned().collect();
        // What is read is never said not to be.
        let checked = validate(&files, Search::Decisive);
        let found = unread(&layout, &meant);
        assert!(found.iter().all(|it| checked.reading(&it.place.file).is_none()), "{found:?}");
        for it in &meant {
            let directory = it.path.rsplit_once('/').map_or("", |(directory, _)| directory);
            assert!(directory.is_empty() || layout.may_hold_meant(directory), "{directory}");
        }
        let help = |it: &Diagnostic| it.help.clone().unwrap_or_default();
        found
            .iter()
            .map(|it| format!("{}: {} // {}", it.place.file, it.message, help(it)))
            .collect()
    }

    const GROUP: &str = "name: Web\nrule: name = x\n";
    const TEST: &str = "- {name: t, node: n, expect: {groups: []}}\n";

    /// Path, text, what is said of it.
    const MEANT: &[(&str, &str, &str)] = &[
        (
            "web.yaml",
            GROUP,
            "this file is not read: it looks like a node group, which stands below `groups/` // move it to `groups/web.yaml`",
        ),
        (
            "web.json",
            "{\"name\": \"a\", \"classes\": {}}",
            "this file is not read: it looks like a node group, which stands below `groups/` // move it to `groups/web.yaml`",
        ),
        (
            "t.yml",
            TEST,
            "this file is not read: it looks like tests, which stands below `tests/` // move it to `tests/t.yaml`",
        ),
        (
            "Groups/web.yaml",
            GROUP,
            "this file is not read: it looks like a node group, which stands below `groups/` // move it to `groups/web.yaml`",
        ),
        (
            "group/deep/web.yaml",
            GROUP,
            "this file is not read: it looks like a node group, which stands below `groups/` // move it to `groups/web.yaml`",
        ),
        (
            "test/t.yaml",
            TEST,
            "this file is not read: it looks like tests, which stands below `tests/` // move it to `tests/t.yaml`",
        ),
        (
            "node/web1.example.com.yaml",
            "variables: {a: 1}\n",
            "this file is not read: it looks like the values of a node, which stands below `nodes/` // move it to `nodes/web1.example.com.yaml`",
        ),
        (
            "environments/dev/classes.yaml",
            "classes: {a: {parameters: {}}}\n",
            "this file is not read: it looks like a class catalogue, which stands directly in `environments/` // move it to `environments/classes.yaml`",
        ),
        (
            "environments/dev/classes.yml",
            "name: dev\nclasses: {apache: , ntp: }\n",
            "this file is not read: it looks like a class catalogue, which stands directly in `environments/` // move it to `environments/classes.yaml`",
        ),
        (
            "environments/dev/classes.json",
            "{\"classes\": {\"a\": {\"parameters\": {}}}}",
            "this file is not read: it looks like a class catalogue, which stands directly in `environments/` // move it to `environments/classes.yaml`",
        ),
        (
            "groups/web.json",
            "{}",
            "this file is not read: its name ends neither in `.yaml` nor in `.yml` // rename it to `web.yaml`; JSON is YAML",
        ),
        (
            "groups/web.YAML",
            "",
            "this file is not read: its name ends neither in `.yaml` nor in `.yml` // rename it to `web.yaml`; JSON is YAML",
        ),
        (
            "groups/a/web.yaml.txt",
            GROUP,
            "this file is not read: its name ends neither in `.yaml` nor in `.yml` // rename it to `web.yaml`; JSON is YAML",
        ),
        (
            "nodes/web1.json",
            "{}",
            "this file is not read: its name ends neither in `.yaml` nor in `.yml` // rename it to `web1.yaml`; JSON is YAML",
        ),
        (
            "clade.json",
            "{}",
            "this file is not read: settings stand in `clade.yaml` // rename it to `clade.yaml`",
        ),
        (
            ".clade.yaml",
            "",
            "this file is not read: settings stand in `clade.yaml` // rename it to `clade.yaml`",
        ),
    ];

    #[test]
    fn what_looks_meant_and_is_not_read_is_named() {
        each_row(MEANT, |(path, text, expected)| {
            assert_eq!(found(&[(path, text)]), [format!("{path}: {expected}")]);
        });
        assert_eq!(
            found(&[
                ("clade.yml", ""),
                ("clade.yaml", "groups: estate/groups\n"),
                ("estate/group/a.yaml", GROUP)
            ]),
            [
                "clade.yml: this file is not read: the settings are those of `clade.yaml` // put both together into `clade.yaml`",
                "estate/group/a.yaml: this file is not read: it looks like a node group, which stands below `estate/groups/` // move it to `estate/groups/a.yaml`",
            ]
        );
    }

    /// Of two directories that lie in each other, the inner one says what a file is.
    #[test]
    fn a_directory_inside_of_another_counts() {
        let settings = "environments: e\nnodes: e/nodes\ntests: e/tests\ngroups: e/nodes/groups\n";
        let mut files = vec![("clade.yaml", settings)];
        files.extend([
            ("e/production.yaml", "classes: {apt: {parameters: {}}}\n"),
            ("e/nodes/n.yaml", "variables: {v: 1}\n"),
            ("e/nodes/groups/deep/a.yaml", GROUP),
            ("e/tests/t.yaml", TEST),
        ]);
        let source = |(path, text): &(&str, &str)| SourceFile {
            path: Arc::from(*path),
            content: SourceContent::Bytes(text.as_bytes().into()),
        };
        let sources: Vec<SourceFile> = files.iter().map(source).collect();
        let (layout, reading) = read_layout(&sources);
        assert!(reading.is_some_and(|it| it.diagnostics.is_empty()));
        let kinds: Vec<_> = sources.iter().skip(1).map(|it| layout.kind_of(it)).collect();
        let expected =
            [FileKind::Environment, FileKind::Node, FileKind::Groups, FileKind::Tests].map(Some);
        assert_eq!(kinds, expected);
        assert_eq!(found(&files), Vec::<String>::new());
        files.push(("e/tests/u.json", TEST));
        files.push(("e/nodes/m.YAML", "variables: {v: 1}\n"));
        files.push(("e/other/classes.yaml", "classes: {apt: {parameters: {}}}\n"));
        assert_eq!(found(&files).len(), 3);
    }

    #[test]
    fn what_a_repository_has_beside_is_left_alone() {
        let rows = [
            ("README.md", GROUP),
            ("Puppetfile", ""),
            ("hiera.yaml", "version: 5\n"),
            (".gitlab-ci.yml", GROUP),
            (".github/workflows/ci.yml", GROUP),
            ("data/common.yaml", GROUP),
            ("hieradata/nodes/a.yaml", GROUP),
            ("bolt-project.yaml", "name: x\nmodules: []\n"),
            ("compose.yaml", "name: x\nservices: {}\n"),
            ("common.yaml", "classes: [a]\nprofile::a: 1\n"),
            ("export.json", "[{\"name\": \"a\", \"classes\": {}}]"),
            ("facts/n.json", "{}"),
            ("tests/facts/n.json", "{\"os\": {}}"),
            ("groups/README.md", ""),
            ("groups/web.yaml.bak", GROUP),
            ("groups/web.yaml~", GROUP),
            ("groups/.gitkeep", ""),
            ("clade.example.yaml", ""),
            ("environments/production/data/common.yaml", "classes: {a: {parameters: 1}}\n"),
            ("environments/production/hiera.yaml", "version: 5\n"),
            ("environments/production/a.yaml", "classes: [a]\n"),
            ("environments/production/metadata.json", "{}"),
            ("test/fixtures.yaml", "- {name: a}\n"),
            ("groups/web.yaml", GROUP),
            ("clade.yml", ""),
            ("web.yaml", "[\n"),
            ("group/x.yaml", "a: b\n"),
        ];
        each_row(rows, |(path, text)| {
            assert_eq!(found(&[(path, text)]), Vec::<String>::new(), "{path}");
        });
    }
}
