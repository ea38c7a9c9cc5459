//! Which file each group is written to.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Group, GroupId};

/// How many directories lie within each other below that of all groups. The children of a deeper group stand beside it:
/// the paths of a chain of thousands of groups would be longer than all that is in the files.
const DEPTH: usize = 16;

/// Returns the file of each group, in directories that follow the hierarchy: a group is
/// `<parent's directory>/<name>.yaml`, its children are in `<parent's directory>/<name>/`.
pub fn files(hierarchy: &Hierarchy) -> Vec<(PathBuf, GroupIndex)> {
    // File systems may not tell upper from lower case, so names are lower case and unique.
    let mut taken: BTreeSet<PathBuf> = BTreeSet::new();
    let mut directories: HashMap<GroupIndex, PathBuf> = HashMap::new();
    let mut files = Vec::new();
    for index in hierarchy.indexes() {
        let group = hierarchy.group(index);
        let parent = hierarchy.parent(index).and_then(|parent| directories.get(&parent)).cloned();
        let parent = parent.unwrap_or_default();
        let mut stem = file_name(group.name.as_str());
        if stem.is_empty() || taken.contains(&parent.join(format!("{stem}.yaml"))) {
            let id = group.id.to_string();
            let head = id.split('-').next().unwrap_or_default();
            stem = if stem.is_empty() { id } else { format!("{stem}-{head}") };
            if taken.contains(&parent.join(format!("{stem}.yaml"))) {
                stem = group.id.to_string();
            }
        }
        let path = parent.join(format!("{stem}.yaml"));
        taken.insert(path.clone());
        // The children of the root group are at the top.
        let below = match parent.components().count() {
            _ if group.id == GroupId::ROOT => PathBuf::new(),
            DEPTH.. => parent,
            _ => parent.join(&stem),
        };
        directories.insert(index, below);
        files.push((path, index));
    }
    files
}

/// Returns the file of a new group, beside those that are there: in the directory that belongs to
/// the file of its parent, or at the top for a child of the root group.
pub(super) fn path_of(
    group: &Group,
    parent_file: Option<&str>,
    top: &str,
    is_taken: &dyn Fn(&str) -> bool,
) -> String {
    let below = parent_file
        .and_then(|it| it.strip_suffix(".yaml").or_else(|| it.strip_suffix(".yml")))
        .unwrap_or(top);
    let directories = |path: &str| path.split('/').count();
    let is_deep = directories(below) > directories(top) + DEPTH;
    let beside = below.rsplit_once('/').filter(|_| is_deep);
    let directory = beside.map_or(below, |(directory, _)| directory);
    let id = group.id.to_string();
    let head = id.split('-').next().unwrap_or_default();
    let stem = file_name(group.name.as_str());
    let stems = [stem.clone(), format!("{stem}-{head}"), id.clone()];
    let mut free =
        stems.iter().filter(|_| !stem.is_empty()).map(|stem| format!("{directory}/{stem}.yaml"));
    free.find(|path| !is_taken(path)).unwrap_or_else(|| format!("{directory}/{id}.yaml"))
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
    file.trim_matches(['-', '.']).to_owned()
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
            let path = path_of(group, file.as_deref(), "data/groups", &|it| taken.contains(it));
            assert!(path.starts_with("data/groups/group-1") && path.split('/').count() <= 19);
            assert!(taken.insert(path.clone()), "{path}");
            file = Some(path);
        }
        let files = files(&Hierarchy::build(groups).unwrap());
        let paths: BTreeSet<&PathBuf> = files.iter().map(|(path, _)| path).collect();
        assert_eq!((files.len(), paths.len()), (3_000, 3_000));
        let deepest = paths.iter().map(|it| it.components().count()).max();
        assert_eq!(deepest, Some(17));
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
        ] {
            assert_eq!(file_name(name), file, "{name}");
        }
        assert!(file_name(&"é".repeat(500)).len() <= 100);
    }
}
