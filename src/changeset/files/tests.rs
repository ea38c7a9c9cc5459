use std::cell::Cell;
use std::fmt::Write as _;

use super::*;
use crate::changeset::context::PathKind;
use crate::hierarchy::Estate;
use crate::table::each_row;
use crate::validation::{Checked, Search, validate};

/// A repository in memory.
struct FilesInMemory {
    texts: BTreeMap<String, String>,
    checked: Checked,
    reads: Cell<usize>,
}

impl FilesInMemory {
    fn new(texts: &[(&str, &str)]) -> Self {
        let texts: BTreeMap<String, String> =
            texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let source = |(path, text): (&String, &String)| SourceFile {
            path: path.as_str().into(),
            content: SourceContent::Bytes(text.as_bytes().into()),
        };
        let files: Vec<SourceFile> = texts.iter().map(source).collect();
        let checked = validate(&files, Search::Decisive);
        assert!(checked.is_valid(), "{:?}", checked.diagnostics);
        Self { texts, checked, reads: Cell::new(0) }
    }

    fn estate(&self) -> &Estate {
        self.checked.estate.as_ref().unwrap()
    }

    fn group(&self, name: &str) -> Group {
        let mut groups = self.estate().hierarchy.groups();
        groups.find(|it| it.name.as_str() == name).unwrap().clone()
    }

    /// Returns what a write changes.
    fn after(&self, written: Vec<Group>, removed: &[&str]) -> BTreeMap<String, Option<String>> {
        let read = |path: &str| {
            self.reads.set(self.reads.get() + 1);
            self.texts.get(path).cloned()
        };
        let names = |directory: &str| {
            let above = if directory.is_empty() { String::new() } else { format!("{directory}/") };
            let inside = self.texts.keys().filter_map(|it| it.strip_prefix(&above));
            let entries: BTreeMap<&str, PathKind> = inside
                .map(|it| match it.split_once('/') {
                    Some((name, _)) => (name, PathKind::Directory),
                    None => (it, PathKind::File),
                })
                .collect();
            entries.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
        };
        let context = WriteContext {
            estate: self.estate(),
            origins: &self.checked.origins,
            layout: self.checked.layout(),
            read: &read,
            names: &names,
            serial: &|_| None,
        };
        let removed = removed.iter().map(|it| self.group(it).id).collect();
        let all = GroupChanges { written, removed };
        let new = all.tree(&self.estate().hierarchy).unwrap();
        changes(&context, &all, &new).unwrap()
    }
}

fn described(mut group: Group, text: &str) -> Group {
    group.description = Some(text.into());
    group
}

/// Returns a new group; the number makes its id.
fn fresh(number: u8, name: &str, parent: GroupId) -> Group {
    let id: GroupId = format!("0000000{number}-0000-4000-8000-000000000000").parse().unwrap();
    let body = serde_json::json!({"id": id, "name": name, "parent": parent, "classes": {}});
    Group { id, ..crate::changeset::read_group(&body).unwrap() }
}

#[test]
fn many_groups_of_a_file_are_edited_in_one_go() {
    let mut before = String::from("name: Top  # of all\n");
    for number in 0..200 {
        write!(before, "---\n# {number}\nname: G{number}  # its name\nparent: Top\n").unwrap();
    }
    let files = FilesInMemory::new(&[("groups/all.yaml", &before)]);
    let written: Vec<Group> =
        (0..200).map(|it| described(files.group(&format!("G{it}")), "new")).collect();
    let found = files.after(written, &[]);
    let after = before.replace("  # its name\n", "  # its name\ndescription: new\n");
    assert_eq!(found["groups/all.yaml"].as_deref(), Some(after.as_str()));
    // Once to edit, and once to see whether it changed.
    assert_eq!(files.reads.get(), 2);
    // The new name of a parent stands in all of its children.
    let mut top = files.group("Top");
    top.name = "New".parse().unwrap();
    let id = top.id;
    let found = files.after(vec![top], &[]);
    let after = before.replace("parent: Top", "parent: New");
    let after =
        after.replace("name: Top  # of all\n", &format!("name: New  # of all\nid: \"{id}\"\n"));
    assert_eq!(found["groups/all.yaml"].as_deref(), Some(after.as_str()));
}

#[test]
fn groups_of_a_file_are_edited_and_removed_together() {
    let text = "# all\nname: A\n---\n# of B\nname: B\n---\nname: C # c\n---\nname: D\n";
    let files = FilesInMemory::new(&[("groups/all.yaml", text), ("groups/e.yaml", "name: E\n")]);
    let found = files.after(vec![described(files.group("C"), "new")], &["A", "B", "E"]);
    assert_eq!(
        found["groups/all.yaml"].as_deref(),
        Some("# all\nname: C # c\ndescription: new\n---\nname: D\n")
    );
    assert_eq!(found["groups/e.yaml"], None);
    let found = files.after(Vec::new(), &["A", "B", "C", "D"]);
    assert_eq!(found, BTreeMap::from([("groups/all.yaml".to_owned(), None)]));
}

#[test]
fn new_groups_get_files_that_no_directory_and_no_file_is_in_the_way_of() {
    let files = FilesInMemory::new(&[
        ("groups/web.yaml", "name: web\n"),
        ("groups/web.yaml.yaml", "name: web.yaml\n"),
        ("groups/site.yaml/x.yaml", "name: X\n"),
        ("groups/db", "a note\n"),
        ("groups/db.yaml", "name: db\n"),
    ]);
    let (web, db) = (files.group("web.yaml").id, files.group("db").id);
    let site = fresh(1, "site", GroupId::ROOT);
    let parents = [site.id, web, db];
    let kids = parents
        .iter()
        .zip(2..)
        .map(|(parent, number)| fresh(number, &format!("kid {number}"), *parent));
    let found = files.after([site.clone()].into_iter().chain(kids).collect(), &[]);
    let paths: Vec<&str> = found.keys().map(String::as_str).collect();
    let (web, db) = (web.to_string(), db.to_string());
    let expected = [
        format!("groups/db-{}/kid-4.yaml", db.get(..8).unwrap()),
        "groups/site-00000001.yaml".to_owned(),
        "groups/site-00000001/kid-2.yaml".to_owned(),
        format!("groups/web.yaml-{}/kid-3.yaml", web.get(..8).unwrap()),
    ];
    assert_eq!(paths, expected);
}

#[test]
fn a_parent_is_named_by_id_where_its_name_is_not_unique() {
    let files = FilesInMemory::new(&[
        ("groups/a.yaml", "name: A\nenvironment: one\n"),
        ("groups/b.yaml", "name: A\nenvironment: two\n"),
        ("groups/c.yaml", "name: C\n"),
    ]);
    let [a, c] = ["A", "C"].map(|it| files.group(it).id);
    let found = files.after(vec![fresh(1, "under a", a), fresh(2, "under c", c)], &[]);
    let text = |name: &str| {
        let texts = found.values().flatten();
        texts.filter(|it| it.contains(&format!("name: {name}\n"))).collect::<Vec<_>>()
    };
    assert!(text("under a")[0].contains(&format!("parent: {a}\n")), "{found:?}");
    assert!(text("under c")[0].contains("parent: C\n"), "{found:?}");
}

#[test]
fn a_parent_whose_name_reads_as_an_id_stays_the_parent() {
    let name = "00000001-0000-4000-8000-000000000000";
    let (parent, child) = (format!("name: {name}\n"), format!("name: A\nparent: {name}\n"));
    let files = FilesInMemory::new(&[("groups/p.yaml", &parent), ("groups/a.yaml", &child)]);
    let top = files.group(name);
    let by_id = format!("name: A\nparent: \"{}\"\n", top.id);
    // A group comes whose id the parent is named by.
    let found = files.after(vec![fresh(1, "B", GroupId::ROOT)], &[]);
    assert_eq!(found["groups/a.yaml"].as_deref(), Some(by_id.as_str()));
    // The parent gets another name.
    let found = files.after(vec![Group { name: "New".parse().unwrap(), ..top }], &[]);
    assert_eq!(found["groups/a.yaml"].as_deref(), Some("name: A\nparent: New\n"));
    // An edit of the child alone keeps how it names its parent.
    let found = files.after(vec![described(files.group("A"), "new")], &[]);
    let edited = format!("name: A\ndescription: new\nparent: {name}\n");
    assert_eq!(found["groups/a.yaml"].as_deref(), Some(edited.as_str()));
}

#[test]
fn characters_that_end_a_line_for_ruby_alone_are_written_as_escapes() {
    let rows = [
        ("groups/new.yaml", "name: Old\n"),
        ("groups/plain.yaml", "name: Old\ndescription: before\n"),
        ("groups/single.yaml", "name: Old\ndescription: 'before'\n"),
        ("groups/double.yaml", "name: Old\ndescription: \"before\"\n"),
        ("groups/lines.yaml", "name: Old\ndescription: |\n  before\n  and after\n"),
        ("groups/folded.yaml", "name: Old\ndescription: >\n  before\n  and after\n"),
        ("groups/flow.yaml", "{\"name\": \"Old\", \"description\": \"before\"}\n"),
    ];
    let text = "a\u{2028}b\u{2029}c\nd\u{85}";
    each_row(rows, |(path, before)| {
        let files = FilesInMemory::new(&[(path, before)]);
        let new = described(fresh(1, "New", GroupId::ROOT), text);
        let found = files.after(vec![described(files.group("Old"), text), new], &[]);
        let written: Vec<(&str, &str)> =
            found.iter().filter_map(|(path, it)| Some((path.as_str(), it.as_deref()?))).collect();
        assert_eq!(written.len(), 2);
        // It panics at a finding.
        let after = FilesInMemory::new(&written);
        for name in ["Old", "New"] {
            assert_eq!(after.group(name).description.as_deref(), Some(text));
        }
    });
}

#[test]
fn a_new_file_is_not_the_same_as_another_to_a_file_system() {
    let there = [
        ("groups/Web.yaml", "name: Web\n---\nname: Site\n"),
        ("groups/e\u{301}.yaml", "name: Accent\n"),
        ("groups/web/Kid.yaml", "name: Old kid\n"),
    ];
    let files = FilesInMemory::new(&there);
    let web = files.group("Web").id;
    let rows = [
        ("web", GroupId::ROOT, "groups/web-00000001.yaml"),
        ("WEB", GroupId::ROOT, "groups/web-00000001.yaml"),
        ("\u{e9}", GroupId::ROOT, "groups/\u{e9}-00000001.yaml"),
        ("e", GroupId::ROOT, "groups/e.yaml"),
        ("kid", web, "groups/Web/kid-00000001.yaml"),
        ("other", web, "groups/Web/other.yaml"),
    ];
    each_row(rows, |(name, parent, path)| {
        let found = files.after(vec![fresh(1, name, parent)], &[]);
        assert_eq!(found.keys().collect::<Vec<_>>(), [path]);
    });
}
