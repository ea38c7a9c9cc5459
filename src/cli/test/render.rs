//! The outcome of tests, for people and programs.

use std::fmt::Write as _;
use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};

use super::super::page::paint;
use super::verdict::TestVerdict;
use crate::diagnostic::{Colour, visible};
use crate::document::quote;

/// Returns where a test is written.
fn place(verdict: &TestVerdict<'_>, prefix: &str) -> String {
    let place = &verdict.test.place;
    let file = visible(&place.file);
    format!("{prefix}{file}:{}:{}", place.span.start.line, place.span.start.column)
}

/// Returns what is wrong, a line each, with its cause below.
fn lines(verdict: &TestVerdict<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for mismatch in &verdict.mismatches {
        lines.push(visible(&mismatch.message).into_owned());
        lines.extend(mismatch.because.iter().map(|it| format!("  {}", visible(it))));
    }
    lines
}

fn counts(verdicts: &[TestVerdict<'_>]) -> (usize, usize) {
    let passed = verdicts.iter().filter(|it| it.passed()).count();
    (passed, verdicts.len() - passed)
}

pub(super) fn human(verdicts: &[TestVerdict<'_>], prefix: &str, colour: Colour) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        let word = if verdict.passed() {
            paint(colour, "32", "ok")
        } else {
            paint(colour, "31", "FAILED")
        };
        let _infallible = writeln!(text, "test {} ... {word}", visible(&verdict.test.name));
        if verdict.passed() {
            continue;
        }
        let _infallible = writeln!(text, "  at {}", place(verdict, prefix));
        for line in lines(verdict) {
            let _infallible = writeln!(text, "  {line}");
        }
        if let Some(command) = &verdict.see {
            let _infallible = writeln!(text, "  see: {}", visible(command));
        }
    }
    let _infallible = writeln!(text, "\n{}", summary(verdicts));
    text
}

/// Says how many tests passed.
pub(super) fn summary(verdicts: &[TestVerdict<'_>]) -> String {
    let (passed, failed) = counts(verdicts);
    format!("{passed} passed, {failed} failed")
}

pub(super) fn tap(verdicts: &[TestVerdict<'_>], prefix: &str) -> String {
    let mut text = format!("TAP version 14\n1..{}", verdicts.len());
    text.push_str(if verdicts.is_empty() { " # SKIP there are no tests\n" } else { "\n" });
    for (number, verdict) in verdicts.iter().enumerate() {
        // A `#` would start a directive.
        let name = visible(&verdict.test.name).replace('\\', "\\\\").replace('#', "\\#");
        let not = if verdict.passed() { "" } else { "not " };
        let _infallible = writeln!(text, "{not}ok {} - {name}", number + 1);
        if !verdict.passed() {
            let message = quote(&lines(verdict).join("\n"));
            let at = quote(&place(verdict, prefix));
            let _infallible = writeln!(text, "  ---\n  message: {message}\n  at: {at}\n  ...");
        }
    }
    text
}

pub(super) fn junit(verdicts: &[TestVerdict<'_>], prefix: &str) -> String {
    let mut report = Report::new("clade test");
    report.set_time(Duration::ZERO);
    for of_file in verdicts.chunk_by(|a, b| a.test.place.file == b.test.place.file) {
        let Some(first) = of_file.first() else { continue };
        let file = format!("{prefix}{}", visible(&first.test.place.file));
        let mut suite = TestSuite::new(file.as_str());
        suite.set_time(Duration::ZERO);
        for verdict in of_file {
            let status = match verdict.mismatches.first() {
                None => TestCaseStatus::success(),
                Some(mismatch) => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(visible(&mismatch.message).as_ref());
                    status.set_type("expectation");
                    let place = place(verdict, prefix);
                    status.set_description(format!("{place}\n{}", lines(verdict).join("\n")));
                    status
                }
            };
            let mut case = TestCase::new(visible(&verdict.test.name).as_ref(), status);
            case.set_classname(file.as_str());
            case.set_time(Duration::ZERO);
            suite.add_test_case(case);
        }
        report.add_test_suite(suite);
    }
    // Strings without the characters that XML does not have always serialise.
    let text = report.to_string().unwrap_or_default();
    format!("{}\n", text.trim_end())
}

pub(super) fn to_value(verdicts: &[TestVerdict<'_>], prefix: &str) -> Value {
    let (passed, failed) = counts(verdicts);
    let tests: Vec<_> = verdicts
        .iter()
        .map(|verdict| {
            let start = verdict.test.place.span.start;
            let mismatches = verdict.mismatches.iter();
            let mismatches: Vec<_> = mismatches
                .map(|it| json!({"message": it.message, "because": it.because}))
                .collect();
            json!({
                "name": verdict.test.name,
                "node": verdict.test.node,
                "file": format!("{prefix}{}", verdict.test.place.file),
                "line": start.line,
                "column": start.column,
                "passed": verdict.passed(),
                "faults": mismatches,
            })
        })
        .collect();
    json!({"passed": passed, "failed": failed, "tests": tests})
}
