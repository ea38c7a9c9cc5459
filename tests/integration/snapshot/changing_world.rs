//! A repository that changes: groups say something else, come, go, get other names and move.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clade::internals::model::Node;
use clade::internals::validation::{SourceContent, SourceFile};
use fastrand::Rng;

const POLICY: &str = "policy: {missing_referents: warn, potential_conflicts: off, redundant_values: warn, repeated_rules: warn, untested_groups: warn, too_many_pins: warn, max_pins: 1, catalogue_mismatches: warn}\n";
const CATALOGUE: &str = "classes:\n  a: {parameters: {p: 1, q: null}, types: {p: Integer}}\n  b: {parameters: {p: 1}}\n  c:\n";
const SCHEMAS: &str = "schemas: {group: schemas/group.json}\n";
const SCHEMA: &str = r#"{"properties": {"description": {"enum": ["good"]}}}"#;

/// A group as it is written.
#[derive(Clone)]
struct Document {
    /// A number that no other group has.
    key: usize,
    name: String,
    environment: &'static str,
    id: Option<String>,
    /// How it names its parent: the line.
    parent: String,
    body: String,
}

impl Document {
    fn text(&self) -> String {
        let id = self.id.as_ref().map(|it| format!("id: {it}\n")).unwrap_or_default();
        let Self { name, environment, parent, body, .. } = self;
        format!("name: {name}\n{id}environment: {environment}\n{parent}{body}")
    }
}

/// What a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    Edit,
    Create,
    Delete,
    Rename,
    RenameWithChildren,
    Environment,
    Move,
    MoveFile,
    Id,
    Many,
    Invalid,
    Root,
    EditRoot,
    Settings,
}

const CHANGES: &[Change] = &[
    Change::Edit,
    Change::Create,
    Change::Create,
    Change::Delete,
    Change::Delete,
    Change::Rename,
    Change::RenameWithChildren,
    Change::RenameWithChildren,
    Change::Environment,
    Change::Move,
    Change::Move,
    Change::MoveFile,
    Change::Id,
    Change::EditRoot,
];

const ROOT: &str = "groups/root.yaml";
const ROOT_ID: &str = "00000000-0000-4000-8000-000000000000";

/// A repository, by file.
#[derive(Clone)]
pub(super) struct Repository {
    groups: BTreeMap<String, Vec<Document>>,
    others: BTreeMap<String, String>,
    next: usize,
}

impl Repository {
    pub(super) fn new(rng: &mut Rng, puts_facts: bool) -> Self {
        let puts_facts = if puts_facts { "interpolate: true\n" } else { "" };
        let others = [
            ("clade.yaml", format!("{POLICY}{SCHEMAS}{puts_facts}")),
            ("schemas/group.json", SCHEMA.to_owned()),
            ("environments/production.yaml", CATALOGUE.to_owned()),
            (ROOT, format!("name: All Nodes\nid: {ROOT_ID}\n")),
            // A default that differs is a finding, too.
            ("environments/dev.yaml", CATALOGUE.replace("q: null", "q: 2")),
            ("nodes/n1.yaml", "variables: {w: '${fact0} ${a b}'}\n".to_owned()),
            (
                "tests/t.yaml",
                "- {name: t, node: n, expect: {groups: [Group 1, Group 2]}}\n".to_owned(),
            ),
        ];
        let others = others.map(|(path, text)| (path.to_owned(), text)).into();
        let mut it = Self { groups: BTreeMap::new(), others, next: 0 };
        for _ in 0..25 {
            it.create(rng, true);
        }
        it
    }

    pub(super) fn files(&self) -> Vec<SourceFile> {
        self.texts().into_iter().map(source_file).collect()
    }

    fn texts(&self) -> BTreeMap<String, String> {
        let groups = self.groups.iter().map(|(path, documents)| {
            let texts: Vec<String> = documents.iter().map(Document::text).collect();
            (path.clone(), texts.join("---\n"))
        });
        groups.chain(self.others.clone()).collect()
    }

    /// Returns the files that are other than before, and the paths of those that are gone.
    pub(super) fn differing(&self, before: &Self) -> (Vec<SourceFile>, Vec<String>) {
        let (old, new) = (before.texts(), self.texts());
        let gone = old.keys().filter(|it| !new.contains_key(*it)).cloned().collect();
        let changed = new.into_iter().filter(|(path, text)| old.get(path) != Some(text));
        (changed.map(source_file).collect(), gone)
    }

    /// Returns whether only files of groups differ.
    pub(super) fn has_others_of(&self, before: &Self) -> bool {
        let of_no_group = |it: &Self| {
            let mut others = it.others.clone();
            others.remove(ROOT);
            others
        };
        of_no_group(self) == of_no_group(before)
    }

    fn all(&self) -> Vec<&Document> {
        self.groups.values().flatten().collect()
    }

    fn pick(&mut self, rng: &mut Rng) -> Option<&mut Document> {
        let count = self.all().len();
        let at = rng.usize(..count.max(1));
        self.groups.values_mut().flatten().nth(at)
    }

    /// Changes something; often so that it is not valid any more.
    pub(super) fn change(&mut self, rng: &mut Rng) -> Change {
        let change = match rng.u8(..60) {
            0 => Change::Many,
            1 | 2 => Change::Invalid,
            3 => Change::Root,
            4 => Change::Settings,
            _ if self.all().len() < 12 => Change::Create,
            _ => *rng.choice(CHANGES).unwrap(),
        };
        match change {
            Change::Edit => self.edit(rng),
            Change::Create => self.create(rng, false),
            Change::Delete => self.delete(rng),
            Change::Rename | Change::RenameWithChildren => self.rename(rng, change),
            Change::Environment => {
                let environment = environment(rng);
                self.pick(rng).unwrap().environment = environment;
            }
            Change::Move => {
                let parent = self.parent(rng);
                self.pick(rng).unwrap().parent = parent;
            }
            Change::MoveFile => self.move_file(rng),
            Change::Id => {
                let id = format!("00000000-0000-4000-8000-{:012}", rng.usize(1..40));
                self.pick(rng).unwrap().id = rng.bool().then_some(id);
            }
            Change::Many => {
                for _ in 0..rng.usize(20..80) {
                    self.create(rng, true);
                }
            }
            Change::Invalid => {
                let body = ["description: bad\n", "foo: 1\n", "rule: '['\n"];
                let body = (*rng.choice(body).unwrap()).to_owned();
                self.pick(rng).unwrap().body = body;
            }
            Change::Root => {
                let name = rng.choice(["All Nodes", "Group 1", "Top"]).unwrap();
                let text = format!("name: {name}\nid: {ROOT_ID}\n");
                if self.others.remove(ROOT).is_none() {
                    self.others.insert(ROOT.to_owned(), text);
                }
            }
            Change::EditRoot => {
                let body = body(rng);
                let allowed = |it: &&str| !it.starts_with("rule:") && !it.starts_with("pinned:");
                let body: Vec<&str> = body.lines().filter(allowed).collect();
                let head = format!("name: All Nodes\nid: {ROOT_ID}");
                self.others.insert(ROOT.to_owned(), format!("{head}\n{}\n", body.join("\n")));
            }
            Change::Settings => {
                let text = self.others.get_mut("tests/t.yaml").unwrap();
                *text = format!(
                    "- {{name: t, node: n, expect: {{groups: [Group {}]}}}}\n",
                    rng.u8(..9)
                );
            }
        }
        change
    }

    fn edit(&mut self, rng: &mut Rng) {
        let body = body(rng);
        self.pick(rng).unwrap().body = body;
    }

    fn create(&mut self, rng: &mut Rng, is_valid: bool) {
        let key = self.next;
        self.next += 1;
        let name = if is_valid || rng.u8(..4) > 0 { key } else { rng.usize(..=key) };
        let name = match rng.u8(..60) {
            0 if !is_valid => "All Nodes".to_owned(),
            _ => format!("Group {name}"),
        };
        let mut parent = self.parent(rng);
        if is_valid && (parent.contains("All") || parent.contains("None")) {
            parent = String::new();
        }
        let id = (rng.u8(..3) == 0).then(|| format!("00000000-0000-4000-9000-{key:012}"));
        let document =
            Document { key, name, environment: environment(rng), id, parent, body: body(rng) };
        let known = self.groups.keys().nth(rng.usize(..self.groups.len().max(1))).cloned();
        let path = known.filter(|_| rng.u8(..4) == 0);
        let path = path.unwrap_or_else(|| format!("groups/{}{key}.yaml", rng.alphabetic()));
        let documents = self.groups.entry(path).or_default();
        documents.insert(rng.usize(..=documents.len()), document);
    }

    fn delete(&mut self, rng: &mut Rng) {
        let names: Vec<String> = self.all().iter().map(|it| it.parent.clone()).collect();
        let is_parent = |it: &Document| {
            names.iter().any(|line| {
                *line == format!("parent: {}\n", it.name)
                    || it.id.as_ref().is_some_and(|id| line.contains(id))
            })
        };
        let takes_leaf = rng.u8(..5) > 0;
        let keys: Vec<usize> =
            self.all().iter().filter(|it| !takes_leaf || !is_parent(it)).map(|it| it.key).collect();
        let Some(key) = rng.choice(keys) else { return };
        for documents in self.groups.values_mut() {
            documents.retain(|it| it.key != key);
        }
        self.groups.retain(|_, documents| !documents.is_empty());
    }

    fn rename(&mut self, rng: &mut Rng, change: Change) {
        let count = self.next;
        let name = match rng.u8(..4) {
            0 => format!("Group {}", rng.usize(..count)),
            _ => format!("Renamed {}", rng.u16(..)),
        };
        let document = self.pick(rng).unwrap();
        let before = std::mem::replace(&mut document.name, name.clone());
        if change == Change::RenameWithChildren {
            let line = format!("parent: {before}\n");
            for child in self.groups.values_mut().flatten().filter(|it| it.parent == line) {
                child.parent = format!("parent: {name}\n");
            }
        }
    }

    fn move_file(&mut self, rng: &mut Rng) {
        let Some(path) = rng.choice(self.groups.keys().cloned().collect::<Vec<_>>()) else {
            return;
        };
        let documents = self.groups.remove(&path).unwrap_or_default();
        let path = format!("groups/{}/{}.yaml", rng.alphabetic(), rng.u16(..));
        self.groups.entry(path).or_default().extend(documents);
    }

    /// Names a parent: often one that is there.
    fn parent(&self, rng: &mut Rng) -> String {
        let all = self.all();
        let Some(document) = rng.choice(&all) else { return String::new() };
        let by_name = format!("parent: {}\n", document.name);
        match rng.u8(..24) {
            0..6 => String::new(),
            6 => "parent: All Nodes\n".to_owned(),
            7 => "parent: None\n".to_owned(),
            8..14 => document.id.as_ref().map_or(by_name, |id| format!("parent: {id}\n")),
            _ => by_name,
        }
    }
}

fn source_file((path, text): (String, String)) -> SourceFile {
    let content = SourceContent::Bytes(text.into_bytes().into());
    SourceFile { path: path.into(), content }
}

fn environment(rng: &mut Rng) -> &'static str {
    rng.choice(["production", "production", "dev", "test", "qa"]).unwrap()
}

/// Says what a group matches and sets.
fn body(rng: &mut Rng) -> String {
    let mut text = String::new();
    if rng.bool() {
        text.push_str("# moves what follows\n");
    }
    if rng.u8(..4) == 0 {
        text.push_str("# clade: ignore never-matches\n");
    }
    let test = |rng: &mut Rng| match rng.u8(..9) {
        7 => format!("tags <: {}", rng.u8(..3)),
        8 => format!("not tags <: {}", rng.u8(..3)),
        3 => format!("fact{} != {}", rng.u8(..2), rng.u8(..2)),
        4 => format!("trusted.certname = n{}", rng.u8(..4)),
        5 => format!("size < {}", rng.u8(..2)),
        0 => format!("name ~ 'n{}'", rng.u8(..3)),
        1 => format!("size >= {}", rng.u8(..3)),
        2 => format!("not new{} = 1", rng.u8(..3)),
        _ => format!("fact{} = {}", rng.u8(..2), rng.u8(..2)),
    };
    if rng.u8(..7) > 0 {
        let joint = rng.choice([" and ", " or "]).unwrap();
        let tests: Vec<String> = (0..rng.usize(1..3)).map(|_| test(rng)).collect();
        writeln!(text, "rule: \"{}\"", tests.join(joint)).unwrap();
    }
    if rng.u8(..3) == 0 {
        writeln!(text, "pinned: [n{}, n{}]", rng.u8(..4), rng.u8(..4)).unwrap();
    }
    text.push_str("classes:\n");
    for class in ["a", "b", "c", "d"] {
        if rng.u8(..3) == 0 {
            let values = ["1", "text", "null", "[1]", "'${new0[a]}$fact0'", "[$size]"];
            let (p, q) = (rng.choice(values).unwrap(), rng.choice(values).unwrap());
            writeln!(text, "  {class}: {{p: {p}, q: {q}}}").unwrap();
        }
    }
    text.push_str("  z:\n");
    if rng.bool() {
        writeln!(text, "variables: {{v{}: {}}}", rng.u8(..3), rng.u8(..2)).unwrap();
    }
    if rng.bool() {
        writeln!(text, "config_data: {{m: {{k{}: {}}}}}", rng.u8(..2), rng.u8(..2)).unwrap();
    }
    text
}

pub(super) fn node(rng: &mut Rng) -> Node {
    let facts = serde_json::json!({
        "fact0": rng.u8(..2).to_string(), "fact1": rng.u8(..2), "size": rng.u8(..4),
        "tags": (0..rng.u8(..3)).map(|_| rng.u8(..3).to_string()).collect::<Vec<_>>(),
        "new0": {"a": rng.u8(..2)}, "new1": 1, "new2": "0",
    });
    let mut node = Node::named(format!("n{}", rng.u8(..4)));
    node.fact = facts.as_object().cloned().unwrap();
    node
}
