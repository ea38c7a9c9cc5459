//! The threat model: every test that it names exists.

use std::path::Path;

use crate::program::root;

/// Returns the text of every Rust file below a directory.
fn sources(directory: &Path, text: &mut String) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            *text += &std::fs::read_to_string(&path).unwrap();
        }
    }
}

/// Returns the cells of each row below a header whose last cell is "shown by".
fn rows(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if !line.starts_with('|') {
            inside = false;
        } else if line.ends_with("| shown by |") {
            inside = true;
        } else if inside && !line.starts_with("|---") {
            let last = line.trim_end_matches('|').rsplit('|').next().unwrap();
            let names = last.split('`').skip(1).step_by(2).collect();
            rows.push((line, names));
        }
    }
    rows
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut text = String::new();
    sources(&root().join("tests"), &mut text);
    sources(&root().join("src"), &mut text);
    let page = std::fs::read_to_string(root().join("docs/guides/security.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() > 20, "the tables are there: {}", rows.len());
    for (row, names) in rows {
        for name in names {
            let found = if name.contains("::") {
                text.contains(&format!("\"{name}\""))
            } else {
                text.contains(&format!("fn {name}("))
            };
            assert!(found, "no test `{name}`, named in the row: {row}");
        }
    }
}
