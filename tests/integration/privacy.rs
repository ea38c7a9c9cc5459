//! What of a node's facts is stored, shown and logged.

mod addresses;
mod commands;
mod decisions;
mod masks;
mod readers;
mod stored;

use std::path::Path;

use crate::program::GitRepository;

const ROOT: &str = "name: All Nodes\nid: 00000000-0000-4000-8000-000000000000\n";

/// Returns a repository with a group for each of some rules: `g0`, `g1` and so on.
fn repository(rules: &[&str]) -> GitRepository {
    let repository = GitRepository::new();
    commit(&repository, "rules", rules);
    repository
}

fn commit(repository: &GitRepository, message: &str, rules: &[&str]) -> String {
    let groups = rules.iter().enumerate().map(|(at, rule)| {
        let class = format!("classes: {{c{at}: {{}}}}");
        (format!("groups/g{at}.yaml"), format!("name: g{at}\nrule: '{rule}'\n{class}\n"))
    });
    let root = ("groups/all.yaml".to_owned(), ROOT.to_owned());
    let policy = ("clade.yaml".to_owned(), "policy: {missing_referents: warn}\n".to_owned());
    let files: Vec<(String, String)> = groups.chain([root, policy]).collect();
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    repository.commit(message, &files)
}

/// Returns the files below a directory that have a text in them.
fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|it| it == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}
