//! The keys of a group, and what is meant by other ones.

use super::file_reader::{COMPARED_KEYS, FileReader};
use crate::diagnostic::closest;
use crate::document::{Content, Entry, Node};

/// The keys of a group.
pub(super) const KEYS: &[&str] = &[
    "name",
    "id",
    "parent",
    "environment",
    "environment_trumps",
    "description",
    "rule",
    "pinned",
    "classes",
    "variables",
    "config_data",
];

/// What is meant by a key that a group does not have.
enum KeyMeaning {
    /// Another key.
    Key(&'static str),
    /// The key `variables`, or the parameters of a class.
    Variables,
    /// A group that stands below the key.
    Group,
    /// Several groups that stand below the key.
    Groups,
    /// Something that no key is for; with what to do.
    Other(&'static str),
}

/// Returns what is meant by a key that Puppet Enterprise, Hiera or other classifiers have.
fn meaning(entry: &Entry) -> Option<KeyMeaning> {
    let is_scalar = matches!(entry.value.content, Content::Scalar(_));
    Some(match entry.key.to_lowercase().replace('-', "_").as_str() {
        "parameters" | "params" | "vars" => KeyMeaning::Variables,
        "deleted" | "serial_number" | "last_edited" | "user_permissions" => {
            KeyMeaning::Other("the API of Puppet Enterprise adds it to a group; leave it out")
        }
        "groups" => KeyMeaning::Groups,
        "children" => KeyMeaning::Other("each child names its `parent`"),
        "match" | "matches" | "matching" | "rules" | "condition" | "conditions" => {
            KeyMeaning::Key("rule")
        }
        "nodes" | "hosts" | "pins" | "members" | "certnames" | "pinned_nodes" => {
            KeyMeaning::Key("pinned")
        }
        "hiera" | "data" | "hiera_data" => KeyMeaning::Key("config_data"),
        "env" | "environments" => KeyMeaning::Key("environment"),
        "trumps" | "environment_group" | "override" => KeyMeaning::Key("environment_trumps"),
        "uuid" => KeyMeaning::Key("id"),
        "title" | "group" | "group_name" if is_scalar => KeyMeaning::Key("name"),
        "inherits" | "inherit" | "parent_id" | "parents" => KeyMeaning::Key("parent"),
        "modules" | "roles" => KeyMeaning::Key("classes"),
        _ => {
            let is_of_group = |it: &Entry| KEYS.contains(&it.key.as_str());
            return entry.value.entries().iter().any(is_of_group).then_some(KeyMeaning::Group);
        }
    })
}

/// Returns what to do about a key that Puppet Enterprise, Hiera or other classifiers have.
pub(super) fn familiar(entry: &Entry) -> Option<String> {
    Some(match meaning(entry)? {
        KeyMeaning::Key(key) => format!("did you mean `{key}`?"),
        KeyMeaning::Variables => {
            "did you mean `variables`? parameters of a class stand in `classes`, below it"
                .to_owned()
        }
        KeyMeaning::Group if entry.value.get("name").is_some() => {
            format!("leave `{}` out, and write what is below it without indentation", entry.key)
        }
        KeyMeaning::Group => {
            format!("write `name: {}`, and what is below it without indentation", entry.key)
        }
        KeyMeaning::Groups => {
            "a document has one group; part several by lines with `---`".to_owned()
        }
        KeyMeaning::Other(help) => help.to_owned(),
    })
}

/// Returns whether an unknown key is meant to be a known one.
pub(super) fn means(entry: &Entry, key: &str) -> bool {
    let meant = || match meaning(entry) {
        Some(KeyMeaning::Key(meant)) => meant == key,
        Some(KeyMeaning::Variables) => key == "variables",
        Some(KeyMeaning::Group | KeyMeaning::Groups | KeyMeaning::Other(_)) => false,
        None => closest(&entry.key, KEYS.iter().copied()) == Some(key),
    };
    !KEYS.contains(&entry.key.as_str()) && meant()
}

/// Returns whether an unknown key, which is a finding, is where a group has its name.
pub(super) fn says_name(entry: &Entry) -> bool {
    let is_around = || matches!(meaning(entry), Some(KeyMeaning::Group | KeyMeaning::Groups));
    !KEYS.contains(&entry.key.as_str()) && (means(entry, "name") || is_around())
}

/// Returns the texts that may be meant as the name or the id of a group with errors; `read` are those of the two keys
/// whose value was read.
pub(super) fn meant_names(document: &Node, read: &[&str], reader: &FileReader) -> Box<[String]> {
    let mut texts: Vec<String> = Vec::new();
    let named = |it: &Node| ["name", "id"].map(|key| it.get(key).and_then(Node::scalar_text));
    for entry in document.entries().iter().take(COMPARED_KEYS) {
        let key = entry.key.as_str();
        if matches!(key, "name" | "id") {
            let is_lost = !read.contains(&key);
            texts.extend(is_lost.then(|| entry.value.scalar_text()).flatten());
            let inside = entry.value.elements().iter().filter(|_| is_lost);
            texts.extend(inside.filter_map(Node::scalar_text));
            texts.extend_from_slice(reader.seconds(entry));
        } else if means(entry, "name") || means(entry, "id") {
            texts.extend(entry.value.scalar_text());
        } else if says_name(entry) {
            texts.push(entry.key.clone());
            let inside = std::iter::once(&entry.value).chain(entry.value.elements());
            texts.extend(inside.flat_map(named).flatten());
        }
    }
    let others = reader.merged(document).chain(document.elements());
    texts.extend(others.flat_map(named).flatten());
    texts.into()
}
