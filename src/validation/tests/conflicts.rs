//! Checking again after a change finds what checking everything finds, groups that could conflict
//! included.

use std::fmt::Write as _;
use std::sync::Arc;

use fastrand::Rng;

use super::*;
use crate::classification::Evidence;
use crate::model::{Budget, Meter};
use crate::rule::Solver;
use crate::validation::overlap::{self, ShownAlarms};
use crate::validation::places::Places;

const GROUPS: usize = 12;

/// Writes a group of few paths and values, so that many conflict by chance.
fn text(number: usize, rng: &mut Rng) -> String {
    let mut text = format!("name: G{number}\n");
    if number > 2 && !number.is_multiple_of(4) {
        writeln!(text, "parent: G{}", number / 4).unwrap();
    }
    let test = |rng: &mut Rng| match rng.u8(..5) {
        0 => format!("name ~ '^{}'", rng.choice(["a", "ab", "b"]).unwrap()),
        1 => format!("size >= {}", rng.u8(..3)),
        2 => format!("size < {}", rng.u8(..3)),
        3 => format!("not role = r{}", rng.u8(..2)),
        _ => format!("role = r{}", rng.u8(..2)),
    };
    if rng.u8(..5) > 0 {
        let joint = rng.choice([" and ", " or "]).unwrap();
        let tests: Vec<String> = (0..rng.usize(1..3)).map(|_| test(rng)).collect();
        writeln!(text, "rule: \"{}\"", tests.join(joint)).unwrap();
    }
    if rng.u8(..4) == 0 {
        writeln!(text, "pinned: [n{}]", rng.u8(..3)).unwrap();
    }
    if rng.bool() {
        text.push_str("# clade: ignore potential-conflict\n");
    }
    let value = |rng: &mut Rng| rng.choice(["1", "2", "null", "[1]"]).unwrap();
    text.push_str("classes:\n  a:\n");
    if rng.u8(..5) == 0 {
        text.push_str("    # clade: ignore potential-conflict\n");
    }
    if rng.bool() {
        writeln!(text, "    p: {}", value(rng)).unwrap();
    }
    if rng.bool() {
        writeln!(text, "    q: {}", value(rng)).unwrap();
    }
    if rng.bool() {
        writeln!(text, "variables: {{v: {}}}", value(rng)).unwrap();
    }
    text
}

fn file(number: usize, rng: &mut Rng) -> SourceFile {
    let content = SourceContent::Bytes(text(number, rng).into_bytes().into());
    SourceFile { path: format!("groups/{number:02}.yaml").into(), content }
}

/// Returns every pair of groups that could conflict, as it is reported.
fn conflicts(checked: &Checked) -> Vec<Diagnostic> {
    let estate = checked.estate.as_ref().unwrap();
    let places = Places { origins: &checked.origins, readings: &checked.readings, all: None };
    let warn = Strictness::Warn;
    overlap::check(estate, places, warn, &Evidence::default(), ShownAlarms::All, Solver::default())
}

#[test]
fn conflicts_are_the_same_after_changes_that_are_checked_by_themselves() {
    let (mut alarms, mut changes) = (0, 0);
    for seed in 0..8 {
        let mut rng = Rng::with_seed(seed);
        let mut files: Vec<SourceFile> = (0..GROUPS).map(|it| file(it, &mut rng)).collect();
        let mut before = validate(&files, Search::Decisive);
        for _ in 0..40 {
            let mut readings = Vec::new();
            for _ in 0..rng.usize(1..3) {
                let number = rng.usize(..GROUPS);
                files[number] = file(number, &mut rng);
                readings.retain(|it: &Arc<FileReading>| it.path != files[number].path);
                readings.push(Arc::new(read_file(&files[number], FileKind::Groups)));
            }
            let again = before.incremental(&readings, &[], &Meter::new(Budget::DEFAULT));
            let again = again.expect("no name, environment or parent changes");
            let all = validate(&files, Search::Decisive);
            let found = conflicts(&all);
            assert_eq!(conflicts(&again), found, "seed {seed}");
            assert_eq!(again.diagnostics, all.diagnostics, "seed {seed}");
            alarms += found.len();
            changes += 1;
            before = again;
        }
    }
    // The worlds have something to compare.
    assert!(alarms > changes, "{alarms} in {changes}");
}

#[test]
fn a_commit_that_conflicts_may_not_be_checked_by_itself_where_they_are_errors() {
    let mut rng = Rng::with_seed(1);
    let settings = SourceFile {
        path: "clade.yaml".into(),
        content: SourceContent::Bytes((*b"policy: {potential_conflicts: error}\n").into()),
    };
    let quiet = SourceFile {
        path: "groups/00.yaml".into(),
        content: SourceContent::Bytes((*b"name: G0\n").into()),
    };
    let before = validate(&[settings, quiet], Search::Decisive);
    assert!(before.is_valid(), "{:?}", before.diagnostics);
    let changed = Arc::new(read_file(&file(0, &mut rng), FileKind::Groups));
    assert!(before.incremental(&[changed], &[], &Meter::new(Budget::DEFAULT)).is_none());
}
