//! Findings of all sources in one list.

use std::cmp::Ordering;
use std::sync::Arc;

use super::checks::Finding;
use super::file_list::FileList;
use super::silence::Silence;
use crate::diagnostic::{Diagnostic, Severity};

pub(super) fn are_warnings(diagnostics: &[Arc<Diagnostic>]) -> bool {
    diagnostics.iter().all(|it| it.severity != Severity::Error)
}

/// Sorts by place; what is said of the commit as a whole comes last.
pub(super) fn sort(diagnostics: &mut [Arc<Diagnostic>]) {
    diagnostics.sort_by(|a, b| order(a, b));
}

fn order(a: &Diagnostic, b: &Diagnostic) -> Ordering {
    let is_of_commit = |it: &Diagnostic| &*it.place.file == ".";
    (is_of_commit(a), &a.place, a.severity, a.kind, &a.message).cmp(&(
        is_of_commit(b),
        &b.place,
        b.severity,
        b.kind,
        &b.message,
    ))
}

/// Sorts findings as they are shown. Those that a commit keeps of another stay in order, so that little is left to
/// sort when all are put together.
pub(super) fn sort_findings(findings: &mut [Finding]) {
    findings.sort_by(|a, b| order(&a.diagnostic, &b.diagnostic));
}

/// Puts together what was found, in order and without what comments silence.
pub(super) fn gather(
    readings: &FileList,
    findings: &[Finding],
    others: &[Arc<Diagnostic>],
) -> Vec<Arc<Diagnostic>> {
    let of_files = readings.remarked().iter().flat_map(|it| &it.diagnostics);
    let of_groups = findings.iter().map(|it| &it.diagnostic);
    let all = of_files.chain(of_groups).chain(others);
    let silence = Silence::of(readings);
    let mut shown: Vec<Arc<Diagnostic>> = all.filter(|it| !silence.hides(it)).cloned().collect();
    sort(&mut shown);
    shown
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::diagnostic::{Kind, Place};
    use crate::document::{Position, Span};
    use crate::hierarchy::Hierarchy;
    use crate::validation::checks::CHECKS;
    use crate::validation::{Search, SourceContent, SourceFile, validate};

    /// Reads files of which some silence a kind of warning on their second line.
    fn readings(paths: &[String]) -> FileList {
        let file = |(at, path): (usize, &String)| {
            let comment = if at % 2 == 0 { "# clade: ignore suspicious-rule" } else { "#" };
            // The rule is a finding of the file by itself.
            let text = format!("{comment}\nname: G{at}\nrule: [\"=\", [fact, osfamily], x]\n");
            SourceFile {
                path: path.as_str().into(),
                content: SourceContent::Bytes(text.into_bytes().into()),
            }
        };
        let files: Vec<SourceFile> = paths.iter().enumerate().map(file).collect();
        validate(&files, Search::Decisive).readings
    }

    fn random_finding(random: &mut Rng, files: &[&str]) -> Diagnostic {
        let file = files[random.usize(..files.len())];
        let kind = [Kind::SuspiciousRule, Kind::NeverMatches, Kind::MissingParent];
        let start = Position { offset: 0, line: random.u32(1..4), column: random.u32(1..3) };
        let place = Place { file: file.into(), span: Span { start, end: start } };
        let message = random.u8(..4).to_string();
        Diagnostic::new(kind[random.usize(..kind.len())], place, message)
    }

    /// Returns whether a comment of any file silences a finding, of all files and not of those that have some.
    fn is_silenced(readings: &FileList, found: &Diagnostic) -> bool {
        let of_file = readings.iter().filter(|it| it.path == found.place.file);
        let mut above =
            of_file.flat_map(|it| &it.ignores).filter(|it| it.line == found.place.span.start.line);
        above.any(|it| it.kinds.iter().any(|it| it == found.kind.as_str()))
    }

    #[test]
    fn findings_are_in_the_order_of_comparing_them_and_without_what_is_silenced() {
        let mut random = Rng::with_seed(21);
        let paths: Vec<String> =
            ["a", "a-b", "a/b", "ab", "b"].iter().map(|it| format!("groups/{it}.yaml")).collect();
        let readings = readings(&paths);
        let root = Hierarchy::build(Vec::new()).unwrap().indexes().next().unwrap();
        assert_eq!(readings.iter().count(), paths.len());
        // Files that were read, in another order than theirs; some that were not, and the commit.
        let mut files: Vec<&str> = paths.iter().map(String::as_str).rev().collect();
        files.extend([".", "-", "environments/x.yaml", "groups/a.yml", "groups/aa", "zz"]);
        let mut silenced = 0;
        for _ in 0..500 {
            let count = random.usize(..30);
            let mut all: Vec<Arc<Diagnostic>> =
                (0..count).map(|_| Arc::new(random_finding(&mut random, &files))).collect();
            let finding = |diagnostic: &Arc<Diagnostic>| Finding {
                scope: CHECKS[0].scope,
                group: root,
                diagnostic: Arc::clone(diagnostic),
            };
            let (of_groups, others) = all.split_at(count / 2);
            let mut findings: Vec<Finding> = of_groups.iter().map(finding).collect();
            if random.bool() {
                sort_findings(&mut findings);
            }
            let gathered = gather(&readings, &findings, others);
            let in_files = readings.iter().flat_map(|it| it.diagnostics.clone());
            all.splice(0..0, in_files);
            let before = all.len();
            all.retain(|it| it.severity != Severity::Warning || !is_silenced(&readings, it));
            silenced += before - all.len();
            sort(&mut all);
            assert_eq!(gathered, all);
        }
        assert!(silenced > 100, "{silenced}");
    }
}
