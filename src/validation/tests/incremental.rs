//! Each check finds after a change what it finds in all files, shown with the example of its page.

use super::super::checks::CHECKS;
use super::*;
use crate::diagnostic::{Kind, Severity};
use crate::model::{Budget, Meter};

/// Returns files in which a check finds a kind: the example on its page, or one of what the check finds
/// among the other findings of the kind.
fn example(kind: Kind) -> Vec<(String, String)> {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    let mut files = match kind {
        Kind::SchemaViolation => {
            return [
                ("clade.yaml", "policy: {require_description: true}\n"),
                ("groups/web.yaml", "name: Web\ndescription: Serves pages\n"),
            ]
            .iter()
            .map(owned)
            .collect();
        }
        Kind::SuspiciousValue => [
            ("environments/production.yaml", "name: production\n"),
            ("groups/web.yaml", "name: Web\nclasses: {}\nenvironment: produktion\n"),
        ]
        .iter()
        .map(owned)
        .collect(),
        kind => of_page(kind),
    };
    if kind.severity() == Severity::Error {
        // A commit with errors is always checked as a whole.
        files.push(owned(&("clade.yaml", "policy: {missing_referents: warn}\n")));
    }
    files
}

#[expect(clippy::disallowed_methods, reason = "the page is read as it is published")]
fn of_page(kind: Kind) -> Vec<(String, String)> {
    let page = format!("{}/docs/reference/diagnostics/{kind}.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    page.split("<!-- file: ")
        .skip(1)
        .map(|part| {
            let (path, rest) = part.split_once(" -->\n```yaml\n").unwrap();
            (path.to_owned(), rest.split_once("```").unwrap().0.to_owned())
        })
        .collect()
}

/// Leaves a group nothing but what places it in the tree.
fn bare(document: &str) -> String {
    let keys = ["name:", "id:", "parent:", "environment:"];
    let kept = document.lines().filter(|line| keys.iter().any(|key| line.starts_with(key)));
    kept.flat_map(|line| [line, "\n"]).collect()
}

fn files(texts: &[(String, String)]) -> Vec<SourceFile> {
    let file = |(path, text): &(String, String)| SourceFile {
        path: path.as_str().into(),
        content: SourceContent::Bytes(text.as_bytes().into()),
    };
    texts.iter().map(file).collect()
}

/// Checks what changed since `before`, and compares with a check of everything.
fn compare(before: &Checked, texts: &[(String, String)], changed: usize, kind: Kind) -> Checked {
    let files = files(texts);
    let all = validate(&files, Search::Decisive);
    let reading = Arc::new(read_file(&files[changed], FileKind::Groups));
    match before.incremental(&[reading], &[], &Meter::new(Budget::DEFAULT)) {
        Some(found) => {
            assert_eq!(found.diagnostics, all.diagnostics, "{kind}");
            assert!(all.is_valid(), "{kind}");
        }
        // An error makes a commit invalid, which is found out from all files.
        None => assert!(!all.is_valid() || !before.is_valid(), "{kind}"),
    }
    all
}

#[test]
fn a_file_that_can_be_taken_for_another_needs_all_files() {
    let changed = |path: &str, alike: usize| {
        // Without any group a commit is not valid.
        let mut before = vec![("groups/z.yaml".to_owned(), "name: Z\n".to_owned())];
        before.extend((0..alike).map(|it| (path.to_owned(), format!("name: A{it}\n"))));
        let before = validate(&files(&before), Search::Decisive);
        assert!(before.is_valid(), "{path}");
        let new = files(&[(path.to_owned(), "name: B\n".to_owned())]);
        let reading = Arc::new(read_file(&new[0], FileKind::Groups));
        let meter = || Meter::new(Budget::DEFAULT);
        let [written, removed] = [(&[reading][..], &[][..]), (&[][..], &[path][..])]
            .map(|(changed, removed)| before.incremental(changed, removed, &meter()).is_some());
        assert_eq!(written, removed, "{path}");
        written
    };
    assert!(changed("groups/a.yaml", 1));
    // The name of another file can be shown like these: nothing tells which of them it is, or that it is new.
    assert!(!changed("groups/\u{fffd}.yaml", 1));
    assert!(!changed("groups/a.yaml", 2));
}

#[test]
fn every_check_finds_after_a_change_what_it_finds_in_all_files() {
    for kind in CHECKS.iter().flat_map(|it| it.kinds) {
        let texts = example(*kind);
        let found = |checked: &Checked| -> Vec<Arc<Diagnostic>> {
            checked.diagnostics.iter().filter(|it| it.kind == *kind).cloned().collect()
        };
        let whole = validate(&files(&texts), Search::Decisive);
        let groups = (0..texts.len()).filter(|at| texts[*at].0.starts_with("groups/"));
        let mut differ = false;
        for at in groups {
            let documents: Vec<&str> = texts[at].1.split("---\n").collect();
            for number in 0..documents.len() {
                let document = |(at, text): (usize, &&str)| {
                    if at == number { bare(text) } else { (*text).to_owned() }
                };
                let documents: Vec<String> = documents.iter().enumerate().map(document).collect();
                let mut changed = texts.clone();
                changed[at].1 = documents.join("---\n");
                let without = compare(&whole, &changed, at, *kind);
                let with = compare(&without, &texts, at, *kind);
                differ |= found(&without) != found(&with);
            }
        }
        assert!(differ, "no change to the example of {kind} makes a difference");
    }
}

/// What a schema looks at nearly 2,000 times each: beyond half a million values a commit is too large.
#[test]
fn the_work_of_schemas_counts_for_all_groups_after_each_change() {
    let branches = vec![serde_json::json!({"$ref": "#/$defs/t"}); 990];
    let schema = serde_json::json!({
        "$defs": {"t": {"type": "integer"}},
        "properties": {"x": {"items": {"anyOf": branches}}},
    });
    let group = |number: usize, values: usize| {
        let text =
            format!("name: g{number}\nvariables: {{x: [{}]}}\n", vec!["1"; values].join(", "));
        (format!("groups/g{number}.yaml"), text)
    };
    let mut texts = vec![
        ("clade.yaml".to_owned(), "schemas: {variables: s.json}\n".to_owned()),
        ("s.json".to_owned(), schema.to_string()),
    ];
    texts.extend((0..5).map(|it| group(it, 90_000)));
    let before = validate(&files(&texts), Search::Decisive);
    assert!(before.is_valid(), "{:?}", before.diagnostics);
    let meter = Meter::new(Budget::DEFAULT);
    let incremental = |checked: &Checked, (path, text): &(String, String)| {
        let file = files(&[(path.clone(), text.clone())]).remove(0);
        checked.incremental(&[read_file(&file, FileKind::Groups).into()], &[], &meter)
    };
    // A smaller group leaves room for another one, a larger one does not.
    let added = group(5, 90_000);
    assert!(incremental(&before, &added).is_none());
    let smaller = incremental(&before, &group(4, 10)).unwrap();
    let both = incremental(&smaller, &added).unwrap();
    assert!(incremental(&both, &group(4, 90_000)).is_none());
    let removed = both.incremental(&[], &["groups/g5.yaml"], &meter).unwrap();
    assert!(incremental(&removed, &group(4, 90_000)).is_some());
    texts.push(added);
    let all = validate(&files(&texts), Search::Decisive);
    assert_eq!(all.diagnostics[0].kind, Kind::CommitTooLarge);
}
