//! The directory that `--path` should name where the one that it names has no groups.

use super::tree_files::is_settings;
use crate::git::TreeEntry;
use crate::validation::{Layout, is_yaml};

/// Returns what to do if a directory of a commit is that of the groups itself, or lies around the repository.
pub(super) fn help_without_groups(directory: &str, entries: &[TreeEntry]) -> Option<String> {
    let paths = || entries.iter().map(|it| &*it.path);
    meant_path(directory, paths().any(is_settings), paths()).map(|(what, path)| {
        let path = if path.is_empty() { "." } else { path.as_str() };
        format!("`{directory}` seems to be the directory {what}: name the one of the repository, `--path {path}`")
    })
}

/// Returns what a directory seems to be, and the one that was meant; the paths are from the directory.
fn meant_path<'p>(
    directory: &str,
    has_settings: bool,
    paths: impl Iterator<Item = &'p str> + Clone,
) -> Option<(&'static str, String)> {
    let groups = Layout::default().groups;
    if has_settings {
        return None;
    }
    let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
    if name == groups && paths.clone().any(is_yaml) {
        return Some(("of the groups", above.to_owned()));
    }
    let below = paths.filter_map(|path| {
        let (above, name) = path.rsplit_once('/')?;
        let is_shown = !above.split('/').any(|it| it.starts_with('.'));
        let found = match is_settings(name) {
            true => above,
            false => {
                above.strip_suffix(groups.as_str()).filter(|_| is_yaml(name))?.strip_suffix('/')?
            }
        };
        is_shown.then_some(found)
    });
    let found = below.min_by_key(|it| (it.matches('/').count(), *it))?;
    let prefix = if directory == "." { String::new() } else { format!("{directory}/") };
    Some(("around the repository", prefix + found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_the_repository_is_found_above_and_below() {
        let rows: [(&str, &[&str], Option<&str>); 9] = [
            ("groups", &["web.yaml"], Some("")),
            ("estate/groups", &["web/a.yml"], Some("estate")),
            ("groups", &["README.md"], None),
            ("groups", &["clade.yaml", "web.yaml"], None),
            (".", &["README.md", "z/groups/a.yaml", "estate/groups/b.yaml"], Some("estate")),
            (".", &["deep/down/groups/a.yaml", "x/clade.yaml"], Some("x")),
            ("infra", &["estate/groups/a.yaml"], Some("infra/estate")),
            (".", &[".cache/groups/a.yaml", "groups.yaml", "mygroups/a.yaml"], None),
            (".", &["estate/groups/README.md"], None),
        ];
        for (directory, paths, expected) in rows {
            let has_settings = paths.iter().any(|it| is_settings(it));
            let found = meant_path(directory, has_settings, paths.iter().copied());
            assert_eq!(found.map(|it| it.1).as_deref(), expected, "{directory} {paths:?}");
        }
    }
}
