//! Reports as JUnit XML: a suite a file, a case a finding, a passing case for a clean file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::details::details;
use super::{Diagnostic, Report, Severity, visible};

pub(super) fn render(report: &Report) -> String {
    let mut junit = quick_junit::Report::new("clade validate");
    junit.set_time(Duration::ZERO);
    let mut by_file: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for finding in &report.diagnostics {
        by_file.entry(finding.place.file.as_ref()).or_default().push(finding);
    }
    let read: BTreeSet<&str> = report.files.iter().map(AsRef::as_ref).collect();
    // A finding may be about what was not read, such as the commit as a whole.
    let others = by_file.keys().copied().filter(|it| !read.contains(it));
    let files: Vec<&str> = others.chain(report.files.iter().map(AsRef::as_ref)).collect();
    for file in files {
        let findings = by_file.get(file).into_iter().flatten();
        let mut cases: Vec<TestCase> = findings.map(|it| case(it, &report.prefix)).collect();
        if cases.is_empty() {
            let mut clean = TestCase::new("valid", TestCaseStatus::success());
            clean.set_classname(visible(file).as_ref());
            clean.set_time(Duration::ZERO);
            cases.push(clean);
        }
        let mut suite = TestSuite::new(visible(file).as_ref());
        suite.set_time(Duration::ZERO);
        suite.add_test_cases(cases);
        junit.add_test_suite(suite);
    }
    // Strings without the characters that XML does not have always serialise.
    let text = junit.to_string().unwrap_or_default();
    format!("{}\n", text.trim_end())
}

fn case(diagnostic: &Diagnostic, prefix: &str) -> TestCase {
    let place = &diagnostic.place;
    let (file, message) = (visible(&place.file), visible(&diagnostic.message));
    let at = format!("{prefix}{file}:{}:{}", place.span.start.line, place.span.start.column);
    let text = format!("{at} {message}{}", details(diagnostic, prefix));
    // A warning does not fail a run, so its case passes and says what was found.
    let mut case = match diagnostic.severity {
        Severity::Error => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(message.as_ref());
            status.set_type(diagnostic.kind.as_str());
            status.set_description(text);
            TestCase::new(diagnostic.kind.as_str(), status)
        }
        Severity::Warning => {
            let mut case = TestCase::new(diagnostic.kind.as_str(), TestCaseStatus::success());
            case.set_system_out(format!("warning: {text}"));
            case
        }
    };
    case.set_classname(file.as_ref());
    case.set_time(Duration::ZERO);
    case
}
