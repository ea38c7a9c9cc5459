//! Every kind of finding has a page, and every page shows the program's output.

use std::collections::BTreeSet;

use clade::internals::diagnostic::{Kind, Severity};

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
    for kind in Kind::ALL {
        let text = std::fs::read_to_string(page(kind.as_str())).unwrap();
        let article = match kind.severity() {
            Severity::Error => "An error: ",
            Severity::Warning => "A warning: ",
        };
        assert!(text.starts_with(&format!("# `{kind}`\n\n{article}")), "{kind}");
        assert!(kind.page().ends_with(&format!("docs/reference/diagnostics/{kind}.md")));
    }
}

#[test]
fn the_index_lists_every_kind() {
    let text = std::fs::read_to_string(page("README")).unwrap();
    let (start, end) = ("|---|---|---|\n", "\n\n");
    let (head, rest) = text.split_once(start).unwrap();
    let (rows, tail) = rest.split_once(end).unwrap_or((rest.trim_end(), ""));
    let row = |kind: &Kind| {
        let mut summary = kind.summary().to_owned();
        summary[..1].make_ascii_lowercase();
        format!("| [`{kind}`]({kind}.md) | {} | {summary} |", kind.severity())
    };
    let expected: Vec<String> = Kind::ALL.iter().map(row).collect();
    let expected = expected.join("\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let end = if tail.is_empty() { "\n" } else { end };
        std::fs::write(page("README"), format!("{head}{start}{expected}{end}{tail}")).unwrap();
    } else {
        assert_eq!(rows, expected, "run with UPDATE_DOCS=1 and read the difference");
    }
}

#[test]
fn the_scaffold_writes_a_check_its_kind_and_its_page() {
    let copy = tempfile::tempdir().unwrap();
    let checks = "src/validation/checks.rs";
    for file in ["src/diagnostic/kind.rs", checks] {
        let path = copy.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(root().join(file), path).unwrap();
    }
    for directory in ["src/validation/checks", "docs/reference/diagnostics"] {
        std::fs::create_dir_all(copy.path().join(directory)).unwrap();
    }
    let scaffold = |name: &str| {
        let mut command = std::process::Command::new(root().join("tests/scaffold/new-diagnostic"));
        // Without cargo, which would format all of it.
        command.arg(name).arg(copy.path()).env("PATH", "/usr/bin:/bin").output().unwrap()
    };
    let output = scaffold("unused-example");
    assert!(output.status.success(), "{output:?}");
    let read = |file: &str| std::fs::read_to_string(copy.path().join(file)).unwrap();
    let kinds = read("src/diagnostic/kind.rs");
    let added = "    UnusedExample = \"unused-example\", Warning;\n}\n";
    assert!(kinds.contains(added), "{kinds}");
    for file in ["src/diagnostic/kind.rs", checks, "src/validation/checks/unused_example.rs"] {
        syn::parse_file(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    assert!(read(checks).contains("\nmod unused_example;\n"));
    assert_eq!(read(checks).matches("    unused_example::CHECK,\n").count(), 1);
    let page = read("docs/reference/diagnostics/unused-example.md");
    assert!(page.starts_with("# `unused-example`\n\nA warning: "), "{page}");
    assert!(example(&page).is_some(), "{page}");
    for name in ["unused-example", "Unused", "a--b", ""] {
        assert_eq!(
            scaffold(name).status.code(),
            Some(if name.is_empty() { 1 } else { 2 }),
            "{name}"
        );
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
        // Some findings need nodes.
        let has_facts = directory.path().join("facts").is_dir();
        let nodes: &[&str] = if has_facts { &["--facts", "facts"] } else { &[] };
        let validate = [&["validate", "."], nodes].concat();
        let output = clade(&validate).current_dir(directory.path()).output().unwrap();
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

#[test]
fn every_page_is_printed_offline() {
    let list = clade(&["lint"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    for (kind, line) in Kind::ALL.iter().zip(list.lines()) {
        assert!(line.starts_with(&format!("{kind} ")) && line.ends_with(kind.summary()), "{line}");
        let printed = clade(&["lint", "--explain", kind.as_str()]).output().unwrap();
        let text = std::fs::read_to_string(page(kind.as_str())).unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), text, "{kind}");
    }
    assert_eq!(list.lines().count(), Kind::ALL.len());
    for (name, said) in [
        (
            "schema-violatoin",
            "error: unknown kind `schema-violatoin`: did you mean `schema-violation`?\n",
        ),
        ("x", "error: unknown kind `x`: `clade lint` lists the kinds\n"),
    ] {
        let failed = clade(&["lint", "--explain", name]).output().unwrap();
        assert_eq!(failed.status.code(), Some(2));
        assert_eq!(String::from_utf8(failed.stderr).unwrap(), said);
    }
}

#[test]
fn a_finding_in_a_file_with_windows_line_ends_shows_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let groups = directory.path().join("groups");
    std::fs::create_dir(&groups).unwrap();
    std::fs::write(groups.join("a.yaml"), "name: A\r\nclasses: []\r\n").unwrap();
    let done = crate::program::run(&["validate", directory.path().to_str().unwrap()]);
    assert_eq!(done.status, 1);
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains("2 | classes: []"), "{said}");
}
