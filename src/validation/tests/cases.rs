//! Groups as a user writes them, each followed by what validation finds in them: `cases/*.txt`.
//!
//! An empty line ends a case, `//` starts a remark. `UPDATE_DOCS=1 cargo test --lib validation::`
//! writes the findings; read the difference.
#![expect(clippy::disallowed_methods, reason = "the cases are files")]

use std::fmt::Write as _;
use std::path::Path;

use super::{checked, related};
use crate::table::each_row;

#[test]
fn the_shape_of_a_group_is_checked() {
    check("shape");
}

#[test]
fn rules_are_checked_with_the_place_of_the_fault() {
    check("rules");
}

#[test]
fn rules_that_no_node_meets_are_found_with_what_contradicts_them() {
    check("never_matches");
}

#[test]
fn paths_to_whole_mappings_and_lists_are_found() {
    check("paths");
}

#[test]
fn groups_are_checked_against_each_other() {
    check("between_groups");
}

#[test]
fn each_mistake_is_answered_with_its_place_and_what_to_do() {
    check("mistakes");
}

/// Compares every case of a file with what validation finds in its groups.
#[track_caller]
fn check(name: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/validation/tests/cases");
    let path = directory.join(name).with_extension("txt");
    let text = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let all: Vec<String> = text.split("\n\n").map(case).collect();
        std::fs::write(&path, all.join("\n")).unwrap();
        return;
    }
    each_row(text.trim_end().split("\n\n"), |expected| {
        assert_eq!(case(expected), format!("{expected}\n"));
    });
}

/// Writes a case with the findings of its groups in place of those that it has.
fn case(text: &str) -> String {
    let is_found = |line: &&str| {
        line.starts_with("=> ") || line.starts_with("   at ") || line.starts_with("   help: ")
    };
    let lines = text.lines().filter(|it| !is_found(it));
    let (mut shown, groups): (Vec<&str>, Vec<&str>) = lines.partition(|it| it.starts_with("//"));
    shown.extend(&groups);
    let (mut shown, groups) = (shown.join("\n") + "\n", groups.join("\n") + "\n");
    for found in checked(&[("groups/g.yaml", &groups)]).diagnostics {
        let (start, kind, message) = (found.place.span.start, found.kind, &found.message);
        writeln!(shown, "=> {}:{} {kind}: {message}", start.line, start.column).unwrap();
        for place in related(&found) {
            writeln!(shown, "   at {}", place.trim_start_matches("groups/g.yaml:")).unwrap();
        }
        if let Some(help) = &found.help {
            writeln!(shown, "   help: {help}").unwrap();
        }
    }
    shown
}
