//! Every kind of finding has a page, and every page shows the program's output.

use std::collections::BTreeSet;

use clade::diagnostic::{Kind, Severity};

use crate::program::{clade, root};

fn page(kind: &str) -> std::path::PathBuf {
    root().join(format!("docs/reference/diagnostics/{kind}.md"))
}

#[test]
fn every_kind_has_a_page_and_every_page_a_kind() {
    let directory = root().join("docs/reference/diagnostics");
    let pages: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "README")
        .collect();
    let kinds: BTreeSet<String> = Kind::ALL.iter().map(ToString::to_string).collect();
    assert_eq!(pages, kinds);
    let index = std::fs::read_to_string(page("README")).unwrap();
    for kind in Kind::ALL {
        let text = std::fs::read_to_string(page(kind.as_str())).unwrap();
        let article = match kind.severity() {
            Severity::Error => "An error: ",
            Severity::Warning => "A warning: ",
        };
        assert!(text.starts_with(&format!("# `{kind}`\n\n{article}")), "{kind}");
        assert!(
            index.contains(&format!("[`{kind}`]({kind}.md) | {} |", kind.severity())),
            "{kind}"
        );
        assert!(kind.page().ends_with(&format!("docs/reference/diagnostics/{kind}.md")));
    }
}

/// The example of a page: its files, and the output that it shows.
struct Example {
    files: Vec<(String, String)>,
    printed: String,
}

fn example(text: &str) -> Option<Example> {
    let mut files = Vec::new();
    for part in text.split("<!-- file: ").skip(1) {
        let (path, rest) = part.split_once(" -->\n```yaml\n").unwrap();
        files.push((path.to_owned(), rest.split_once("```").unwrap().0.to_owned()));
    }
    let printed = text.split_once("```text\n")?.1.split_once("```").unwrap().0.to_owned();
    Some(Example { files, printed })
}

#[test]
fn every_page_shows_what_is_really_printed() {
    let mut shown = 0;
    for kind in Kind::ALL {
        let path = page(kind.as_str());
        let text = std::fs::read_to_string(&path).unwrap();
        let Some(example) = example(&text) else { continue };
        let directory = tempfile::tempdir().unwrap();
        for (file, content) in &example.files {
            let file = directory.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        let output = clade(&["validate", "."]).current_dir(directory.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains(&format!("[{kind}]")), "{kind} is not found: {printed}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let old = format!("```text\n{}```", example.printed);
            std::fs::write(&path, text.replace(&old, &format!("```text\n{printed}```"))).unwrap();
        } else {
            assert_eq!(
                example.printed, printed,
                "{kind}: run with UPDATE_DOCS=1 and read the difference"
            );
        }
        shown += 1;
    }
    assert!(shown >= 17, "the examples are there");
}
