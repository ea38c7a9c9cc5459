use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::document::Position;

const WEB: &str = "name: Web\nparent: Productoin\nclasses:\n  ntp: {}\n  ntp: {x: \"日本\"}\n";

/// The place of a piece of text in the file of the tests.
fn place(piece: &str, nth: usize) -> Place {
    let offset = WEB.match_indices(piece).nth(nth).unwrap().0;
    let position = |offset: usize| {
        let before = WEB.get(..offset).unwrap();
        Position {
            offset: u32::try_from(offset).unwrap(),
            line: u32::try_from(before.matches('\n').count() + 1).unwrap(),
            column: u32::try_from(before.rsplit('\n').next().unwrap().chars().count() + 1).unwrap(),
        }
    };
    let span = Span { start: position(offset), end: position(offset + piece.len()) };
    Place { file: "groups/web.yaml".into(), span }
}

fn report() -> Report {
    let elsewhere = Place { file: "nodes/big file.yaml".into(), span: Span::START };
    Report {
        commit: None,
        groups: 2,
        diagnostics: [
            Diagnostic::new(
                Kind::MissingParent,
                place("Productoin", 0),
                "the parent `Productoin` does not exist",
            )
            .in_group("Web")
            .with_help("did you mean `Production`?"),
            Diagnostic::new(Kind::DuplicateKey, place("ntp", 1), "key `ntp` is set twice")
                .with_help("keep one of the two")
                .with_related(place("ntp", 0), "first set here"),
            Diagnostic::new(Kind::SuspiciousRule, place("日本", 0), "odd: 100%, \u{1b}[31mred")
                .with_related(elsewhere.clone(), "and here"),
            Diagnostic::new(
                Kind::FileTooLarge,
                elsewhere,
                "the file has 2000000 bytes, 1048576 are allowed",
            ),
        ]
        .map(Arc::new)
        .into(),
        files: ["clade.yaml", "groups/web.yaml", "nodes/big file.yaml"].map(Arc::from).to_vec(),
        prefix: String::new(),
        sources: BTreeMap::from([(Arc::from("groups/web.yaml"), WEB.to_owned())]),
    }
}

#[test]
fn people_see_the_lines_with_what_is_wrong_underlined() {
    insta::assert_snapshot!(report().render(Format::Human, Colour::Plain));
}

#[test]
fn an_empty_report_says_so() {
    let empty = Report { diagnostics: Vec::new(), ..report() };
    insta::assert_snapshot!(empty.render(Format::Human, Colour::Plain), @"no findings in 2 groups, 3 files");
    assert_eq!(empty.render(Format::Github, Colour::Plain), "");
    assert_eq!(empty.render(Format::Gitlab, Colour::Plain), "[]\n");
}

#[test]
fn colours_are_escapes_around_the_same_text() {
    let coloured = report().render(Format::Human, Colour::Ansi);
    assert!(coloured.contains("\u{1b}["));
    assert!(!coloured.contains("\u{1b}[31mred"), "the file's own escapes are not let through");
}

#[test]
fn long_lines_are_not_shown() {
    let mut report = report();
    let long = format!("{WEB}{}", "x".repeat(2000)).replace('\n', " ");
    report.sources.insert(Arc::from("groups/web.yaml"), long);
    assert!(!report.render(Format::Human, Colour::Plain).contains("xxx"));
}

#[test]
fn json_has_the_same_keys_always() {
    insta::assert_snapshot!(report().render(Format::Json, Colour::Plain));
}

#[test]
fn github_gets_errors_first_and_escaped() {
    insta::assert_snapshot!(report().render(Format::Github, Colour::Plain), @r"
    ::error file=groups/web.yaml,line=2,endLine=2,col=9,endColumn=19,title=missing-parent::the parent `Productoin` does not exist%0Ahelp: did you mean `Production`?
    ::error file=groups/web.yaml,line=5,endLine=5,col=3,endColumn=6,title=duplicate-key::key `ntp` is set twice%0Agroups/web.yaml:4:3: first set here%0Ahelp: keep one of the two
    ::error file=nodes/big file.yaml,line=1,endLine=1,col=1,endColumn=1,title=file-too-large::the file has 2000000 bytes, 1048576 are allowed
    ::warning file=groups/web.yaml,line=5,endLine=5,col=13,endColumn=15,title=suspicious-rule::odd: 100%25, �[31mred%0Anodes/big file.yaml:1:1: and here
    ");
}

#[test]
fn gitlab_fingerprints_are_unique_and_do_not_hang_on_the_line() {
    let fingerprints = |report: &Report| -> Vec<String> {
        let text = report.render(Format::Gitlab, Colour::Plain);
        let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
        findings.iter().map(|it| it["fingerprint"].as_str().unwrap().to_owned()).collect()
    };
    let text = report().render(Format::Gitlab, Colour::Plain);
    let findings: Vec<Value> = serde_json::from_str(&text).unwrap();
    let others: Vec<&Value> = findings.iter().filter_map(|it| it.get("other_locations")).collect();
    assert_eq!(
        json!(others),
        json!([
            [{"path": "groups/web.yaml", "lines": {"begin": 4, "end": 4}}],
            [{"path": "nodes/big file.yaml", "lines": {"begin": 1, "end": 1}}],
        ])
    );
    let mut moved = report();
    for diagnostic in &mut moved.diagnostics {
        Arc::make_mut(diagnostic).place.span.start.line += 7;
    }
    assert_eq!(fingerprints(&report()), fingerprints(&moved));
    let mut twice = report();
    twice.diagnostics.push(Arc::clone(&twice.diagnostics[0]));
    let mut all = fingerprints(&twice);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 5);
}

/// Consumers that match findings of two runs by fingerprints must not merge findings of one.
#[test]
fn fingerprints_of_sarif_tell_findings_apart_that_say_the_same() {
    let mut twice = report();
    let mut again = (*twice.diagnostics[0]).clone();
    again.place.span.start.line += 7;
    twice.diagnostics.push(again.into());
    let log: Value = serde_json::from_str(&twice.render(Format::Sarif, Colour::Plain)).unwrap();
    let of = |it: &Value| it["partialFingerprints"]["clade/v1"].as_str().unwrap().to_owned();
    let mut all: Vec<String> =
        log["runs"][0]["results"].as_array().unwrap().iter().map(of).collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!((all.len(), count), (5, 5));
}

#[test]
fn sarif_names_rules_and_regions() {
    let text = report().render(Format::Sarif, Colour::Plain);
    let log: Value = serde_json::from_str(&text).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Kind::ALL.len());
    for result in run["results"].as_array().unwrap() {
        let rule = &run["tool"]["driver"]["rules"]
            [usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    insta::assert_snapshot!(format!("{:#}", run["results"][1]));
    assert_eq!(
        run["results"][2]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "nodes/big%20file.yaml"
    );
    let mut odd = report();
    for diagnostic in &mut odd.diagnostics {
        Arc::make_mut(diagnostic).place.file = r"a\b|c^d[e]/f+g@h.yaml".into();
    }
    let log: Value = serde_json::from_str(&odd.render(Format::Sarif, Colour::Plain)).unwrap();
    assert_eq!(
        log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "a%5Cb%7Cc%5Ed%5Be%5D/f+g@h.yaml"
    );
    let below = Report { prefix: "50% #1/".to_owned(), ..report() };
    let log: Value = serde_json::from_str(&below.render(Format::Sarif, Colour::Plain)).unwrap();
    let location = &log["runs"][0]["results"][2]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "50%25%20%231/nodes/big%20file.yaml");
}

#[test]
fn junit_has_a_suite_a_file() {
    insta::assert_snapshot!(report().render(Format::Junit, Colour::Plain));
}

#[test]
fn paths_get_the_prefix_for_tools_only() {
    let prefixed = Report { prefix: "estate/".to_owned(), ..report() };
    assert!(
        prefixed
            .render(Format::Github, Colour::Plain)
            .starts_with("::error file=estate/groups/web.yaml,")
    );
    assert!(prefixed.render(Format::Json, Colour::Plain).contains("\"file\": \"groups/web.yaml\""));
}
