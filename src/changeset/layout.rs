//! Which file each group is written to.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use super::taken_paths::folded;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Group, GroupId};

/// How long the path of a directory of groups may be, in bytes: so many groups as a commit may have, each with a path
/// of this length, stay within its budget of path bytes.
const LONGEST_DIRECTORY: usize = 1_000;

/// How many directories lie within each other: half of what a commit may have.
const DEEPEST_DIRECTORY: usize = 64;

/// Returns whether groups may be in a directory: neither its path nor how deep it is comes near the budget of commits.
fn is_within_budget(directory: &str) -> bool {
    directory.len() <= LONGEST_DIRECTORY && directory.split('/').count() <= DEEPEST_DIRECTORY
}

/// Returns the file of each group, in directories that follow the hierarchy: a group is
/// `<parent's directory>/<name>.yaml`, its children are in `<parent's directory>/<name>/`. Groups that are nested so
/// deep that this path would be too long are at the top.
pub fn files(hierarchy: &Hierarchy) -> Vec<(PathBuf, GroupIndex)> {
    // As file systems compare them, which may not tell upper from lower case.
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut directories: HashMap<GroupIndex, PathBuf> = HashMap::new();
    let mut files = Vec::new();
    for index in hierarchy.indexes() {
        let group = hierarchy.group(index);
        let parent = hierarchy.parent(index).and_then(|parent| directories.get(&parent)).cloned();
        let parent = parent.unwrap_or_default();
        let file = |stem: &String| parent.join(format!("{stem}.yaml"));
        let stems = stems(group);
        let compared = |stem: &String| folded(&file(stem).to_string_lossy());
        let free = stems.iter().find(|stem| !taken.contains(&compared(stem)));
        let stem = free.cloned().unwrap_or_else(|| group.id.to_string());
        taken.insert(compared(&stem));
        files.push((file(&stem), index));
        // The children of the root group are at the top.
        let below = if group.id == GroupId::ROOT { PathBuf::new() } else { parent.join(&stem) };
        let is_short = is_within_budget(&below.to_string_lossy());
        directories.insert(index, if is_short { below } else { PathBuf::new() });
    }
    files
}

/// Returns the file of a new group, beside those that are there: in the directory that belongs to
/// the file of its parent, or at the top for a child of the root group.
///
/// `is_taken` says of a path whether a file or a directory is there, `is_file` whether no directory can be.
pub(super) fn path_of(
    group: &Group,
    parent_file: Option<&str>,
    top: &str,
    is_taken: &dyn Fn(&str) -> bool,
    is_file: &dyn Fn(&str) -> bool,
) -> String {
    let own = parent_file
        .and_then(|it| it.strip_suffix(".yaml").or_else(|| it.strip_suffix(".yml")))
        .unwrap_or(top);
    // A file may have the name of the directory: `web.yaml` is in the way of the children of `web.yaml.yaml`.
    let apart = format!("{own}-{}", head(group.parent));
    let is_inside = |it: &&str| it.strip_prefix(top).is_some_and(|below| below.starts_with('/'));
    let mut directories =
        [own, &apart].into_iter().filter(|it| is_inside(it) && is_within_budget(it));
    // The directory of all groups is what it is: groups beside it would not be read.
    let can_be = |directory: &&str| {
        let ends = directory.match_indices('/').map(|(at, _)| at).chain([directory.len()]);
        let ends = ends.filter(|at| *at > top.len());
        ends.filter_map(|at| directory.get(..at)).all(|it| !is_file(it))
    };
    let directory = directories.find(can_be).unwrap_or(top);
    let mut paths = stems(group).into_iter().map(|stem| format!("{directory}/{stem}.yaml"));
    paths.find(|path| !is_taken(path)).unwrap_or_else(|| format!("{directory}/{}.yaml", group.id))
}

/// Returns what the file of a group may be named for, the best first.
fn stems(group: &Group) -> Vec<String> {
    let (stem, id) = (file_name(group.name.as_str()), group.id.to_string());
    if stem.is_empty() {
        return vec![id];
    }
    let second = format!("{stem}-{}", head(group.id));
    vec![stem, second, id]
}

/// Returns the first part of an id.
fn head(id: GroupId) -> String {
    let id = id.to_string();
    id.split('-').next().unwrap_or_default().to_owned()
}

/// Returns a name without what file systems and shells stumble over.
fn file_name(name: &str) -> String {
    let mut file = String::new();
    for character in name.to_lowercase().chars() {
        if character.is_alphanumeric() || matches!(character, '_' | '.') {
            file.push(character);
        } else if !file.ends_with('-') {
            file.push('-');
        }
    }
    // The limit of most file systems is 255 bytes.
    let mut limit = file.len().min(100);
    while !file.is_char_boundary(limit) {
        limit -= 1;
    }
    file.truncate(limit);
    let name = file.trim_matches(['-', '.']);
    // The directory of its children must not have the name of another group's file.
    for ending in ["yaml", "yml"] {
        if let Some(stem) = name.strip_suffix(ending).and_then(|it| it.strip_suffix('.')) {
            return format!("{stem}-{ending}");
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of such a chain took gigabytes of memory, and no commit may have such long ones.
    #[test]
    fn a_chain_of_groups_has_short_paths() {
        let root = crate::hierarchy::root_group().unwrap();
        let id = |number| if number == 0 { GroupId::ROOT } else { GroupId::from_random(number) };
        let group = |number: u128| Group {
            id: id(number),
            // Names repeat in the environments.
            name: format!("group {}", number % 700).parse().unwrap(),
            environment: format!("e{}", number / 700).parse().unwrap(),
            parent: id(number - 1),
            ..root.clone()
        };
        let groups: Vec<Group> = (1..3_000).map(group).collect();
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut file: Option<String> = None;
        for group in &groups {
            let is_taken = |it: &str| taken.contains(it);
            let path = path_of(group, file.as_deref(), "data/groups", &is_taken, &is_taken);
            assert!(path.starts_with("data/groups/group-") && path.split('/').count() <= 65);
            assert!(taken.insert(path.clone()), "{path}");
            file = Some(path);
        }
        let files = files(&Hierarchy::build(groups).unwrap());
        let paths: BTreeSet<&PathBuf> = files.iter().map(|(path, _)| path).collect();
        assert_eq!((files.len(), paths.len()), (3_000, 3_000));
        let deepest = paths.iter().map(|it| it.components().count()).max();
        assert_eq!(deepest, Some(65));
    }

    #[test]
    fn names_become_safe_file_names() {
        for (name, file) in [
            ("PE Infrastructure", "pe-infrastructure"),
            ("a/b: c", "a-b-c"),
            ("../etc", "etc"),
            ("ウェブ", "ウェブ"),
            ("***", ""),
            (".hidden", "hidden"),
            ("web.yaml", "web-yaml"),
            ("Web.YML.", "web-yml"),
            ("yaml", "yaml"),
        ] {
            assert_eq!(file_name(name), file, "{name}");
        }
        assert!(file_name(&"é".repeat(500)).len() <= 100);
    }

    /// Returns a group with a number of one digit as its id, and that of its parent; 0 is the root.
    fn group(number: usize, name: &str, parent: usize) -> Group {
        let id = |number: usize| match number {
            0 => GroupId::ROOT,
            number => format!("{number:08}-0000-4000-8000-000000000000").parse().unwrap(),
        };
        let body = serde_json::json!({"id": id(number), "name": name, "parent": id(parent), "classes": {}});
        Group { id: id(number), ..crate::changeset::read_group(&body).unwrap() }
    }

    fn files_of(groups: Vec<Group>) -> Vec<String> {
        let hierarchy = Hierarchy::build(groups).unwrap();
        files(&hierarchy).into_iter().map(|(path, _)| path.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn no_file_has_the_name_of_a_directory() {
        let found = files_of(vec![
            group(0, "All Nodes", 0),
            group(1, "web.yaml", 0),
            group(2, "kid", 1),
            group(3, "web", 0),
            group(4, "WEB", 0),
            group(5, "kid of web", 3),
        ]);
        for file in &found {
            let directory = format!("{file}/");
            assert!(!found.iter().any(|it| it.starts_with(&directory)), "{found:?}");
        }
        assert_eq!(found.len(), 6);
        assert!(found.contains(&"web-yaml/kid.yaml".to_owned()), "{found:?}");
    }

    #[test]
    fn no_two_files_are_the_same_to_a_file_system() {
        let names = ["All Nodes", "Web", "\u{e9}", "e\u{301}", "stra\u{df}e", "STRASSE"];
        let groups = names.iter().enumerate().map(|(number, name)| group(number, name, 0));
        let found = files_of(groups.collect());
        let compared: BTreeSet<String> = found.iter().map(|it| folded(it)).collect();
        assert_eq!(compared.len(), names.len(), "{found:?}");
    }

    #[test]
    fn deep_groups_have_paths_that_can_be_opened() {
        let name = |it: usize| format!("{} {it}", "long".repeat(20));
        let groups = (1..60).map(|it| group(it, &name(it), it - 1));
        let found = files_of([group(0, "All Nodes", 0)].into_iter().chain(groups).collect());
        assert!(found.iter().all(|it| it.len() < 1700), "{found:?}");
        let unique: BTreeSet<&String> = found.iter().collect();
        assert_eq!(unique.len(), 60);
    }

    #[test]
    fn a_new_file_stands_beside_the_files_and_directories_that_are_there() {
        let there = ["g/web.yaml", "g/a.yaml", "g/site.yaml/kid.yaml", "g/blob"];
        let is_file = |path: &str| there.contains(&path);
        let is_taken = |path: &str| {
            let below = format!("{path}/");
            there.iter().any(|it| *it == path || it.starts_with(&below))
        };
        for (name, parent_file, path) in [
            ("b", None, "g/b.yaml"),
            ("a", None, "g/a-00000002.yaml"),
            // A directory has the name.
            ("site", None, "g/site-00000002.yaml"),
            ("kid", Some("g/site.yaml.yaml"), "g/site.yaml/kid-00000002.yaml"),
            // A file is where the directory would be.
            ("kid", Some("g/web.yaml.yaml"), "g/web.yaml-00000001/kid.yaml"),
            ("kid", Some("g/blob.yml"), "g/blob-00000001/kid.yaml"),
            ("kid", Some("g/blob/x/y.yaml"), "g/kid.yaml"),
        ] {
            let found = path_of(&group(2, name, 1), parent_file, "g", &is_taken, &is_file);
            assert_eq!(found, path, "{name} {parent_file:?}");
        }
    }
}
