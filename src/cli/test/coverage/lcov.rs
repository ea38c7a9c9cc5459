//! Coverage in the format of lcov, which forges and editors read.
//!
//! A group is a function, a comparison has two branches, and a line is hit as often as the most used of what
//! stands on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{Coverage, CoveredGroup};

/// What stands in one file.
#[derive(Default)]
struct FileRecord<'c> {
    groups: Vec<&'c CoveredGroup>,
    /// The hits of each line.
    lines: BTreeMap<u32, usize>,
    /// The outcomes of comparisons by line: how often each held, how often it did not.
    branches: BTreeMap<u32, Vec<[usize; 2]>>,
}

/// Writes a tracefile; `path_of` returns where a file of the repository is.
pub(in crate::cli::test) fn write(coverage: &Coverage, path_of: &dyn Fn(&str) -> String) -> String {
    let mut files: BTreeMap<&str, FileRecord<'_>> = BTreeMap::new();
    for group in &coverage.groups {
        let file = files.entry(&group.place.file).or_default();
        file.groups.push(group);
        let hits = group.tests.or_else(|| group.values.iter().map(|it| it.tests).max());
        file.hit(group.place.span.start.line, hits.unwrap_or_default());
        for condition in &group.conditions {
            let line = condition.place.span.start.line;
            file.hit(line, condition.held + condition.failed);
            let outcomes = [condition.held, condition.failed];
            file.branches.entry(line).or_default().push(outcomes);
        }
        for value in &group.values {
            file.hit(value.place.span.start.line, value.tests);
        }
    }
    let mut text = String::new();
    for (path, file) in &files {
        file.write(&path_of(path), &mut text);
    }
    text
}

impl FileRecord<'_> {
    fn hit(&mut self, line: u32, hits: usize) {
        let most = self.lines.entry(line).or_default();
        *most = hits.max(*most);
    }

    fn write(&self, path: &str, text: &mut String) {
        let mut line = |it: String| {
            text.push_str(&it);
            text.push('\n');
        };
        line("TN:".to_owned());
        line(format!("SF:{}", one_line(path)));
        let functions = self.functions();
        for (name, at, _) in &functions {
            line(format!("FN:{at},{name}"));
        }
        for (name, _, hits) in &functions {
            line(format!("FNDA:{hits},{name}"));
        }
        line(format!("FNF:{}", functions.len()));
        line(format!("FNH:{}", functions.iter().filter(|it| it.2 > 0).count()));
        let mut outcomes = [0, 0];
        for (at, conditions) in &self.branches {
            for (block, [held, failed]) in conditions.iter().enumerate() {
                for (branch, hits) in [held, failed].into_iter().enumerate() {
                    outcomes[0] += 1;
                    outcomes[1] += usize::from(*hits > 0);
                    let mut taken = String::from("-");
                    if held + failed > 0 {
                        taken.clear();
                        let _infallible = write!(taken, "{hits}");
                    }
                    line(format!("BRDA:{at},{block},{branch},{taken}"));
                }
            }
        }
        line(format!("BRF:{}", outcomes[0]));
        line(format!("BRH:{}", outcomes[1]));
        for (at, hits) in &self.lines {
            line(format!("DA:{at},{hits}"));
        }
        line(format!("LF:{}", self.lines.len()));
        line(format!("LH:{}", self.lines.values().filter(|it| **it > 0).count()));
        line("end_of_record".to_owned());
    }

    /// Returns the groups with their lines and hits. Names are made unique, as those of functions are.
    fn functions(&self) -> Vec<(String, u32, usize)> {
        let mut names = BTreeSet::new();
        let mut functions = Vec::new();
        for group in &self.groups {
            let Some(hits) = group.tests else { continue };
            let line = group.place.span.start.line;
            let mut name = one_line(&group.name);
            if !names.insert(name.clone()) {
                let _infallible = write!(name, " (line {line})");
            }
            functions.push((name, line, hits));
        }
        functions
    }
}

/// Returns a text without what would end its line, or its field.
fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() || it == ',' { ' ' } else { it }).collect()
}
