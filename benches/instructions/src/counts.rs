//! The counts that are checked in.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// By what part a count may be above the table.
const TOLERANCE: f64 = 0.03;

const ABOUT: &str = "\
# What the rows of docs/performance.md cost, counted by `just instructions`. A count that is 3 % above this file fails
# CI; `just instructions update 'why it grew'` writes the file. `level1`, `level2` and `branches` are misses
# of simulated caches (32 KiB, 1 MiB) and branches, for information.

";

/// What is counted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Instructions,
    Allocations,
    Bytes,
}

/// What one row costs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub name: String,
    pub count: f64,
    pub of: Unit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level1: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level2: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<f64>,
    /// Why the count is what it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<58} {:>14.1}", self.name, self.count)?;
        [self.level1, self.level2, self.branches]
            .iter()
            .flatten()
            .try_for_each(|it| write!(f, " {it:>11.1}"))
    }
}

/// The file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The compiler that the counts belong to.
    rustc: String,
    #[serde(default)]
    row: Vec<Count>,
}

impl Table {
    pub fn read() -> Result<Self, String> {
        match std::fs::read_to_string(path()) {
            Ok(text) => {
                basic_toml::from_str(&text).map_err(|why| format!("{}: {why}", path().display()))
            }
            Err(_) => Ok(Self::default()),
        }
    }

    pub fn write(&self) -> Result<(), String> {
        let text = basic_toml::to_string(self).map_err(|why| why.to_string())?;
        std::fs::write(path(), format!("{ABOUT}{text}")).map_err(|why| why.to_string())
    }

    /// Returns the table with new counts; those that grew get the reason.
    pub fn updated(&self, counts: Vec<Count>, why: &str) -> Self {
        let row = counts.into_iter().map(|count| {
            let before = self.row.iter().find(|it| it.name == count.name);
            let why = match before {
                Some(before) if !has_grown(before, &count) => before.why.clone(),
                _ => why.to_owned(),
            };
            Count { why, ..count }
        });
        Self { rustc: rustc(), row: row.collect() }
    }

    /// Compares counts with the table.
    pub fn check(&self, counts: &[Count]) -> Result<(), String> {
        counts.iter().for_each(|it| println!("{it}"));
        if self.rustc != rustc() {
            println!(
                "skipped: needs rustc {}, to which counts.toml belongs; here it is {}",
                self.rustc,
                rustc()
            );
            return Ok(());
        }
        let mut failures: Vec<String> = Vec::new();
        for count in counts {
            match self.row.iter().find(|it| it.name == count.name) {
                None => failures.push(format!("`{}` is not in counts.toml", count.name)),
                Some(before) if has_grown(before, count) => failures.push(format!(
                    "`{}` grew by {:.1} %, from {:.1} to {:.1}",
                    count.name,
                    (count.count / before.count - 1.0) * 100.0,
                    before.count,
                    count.count
                )),
                Some(before) if has_grown(count, before) => {
                    println!(
                        "`{}` fell from {:.1} to {:.1}: `just instructions update`",
                        count.name, before.count, count.count
                    );
                }
                Some(_) => {}
            }
        }
        let gone = self.row.iter().filter(|row| counts.iter().all(|it| it.name != row.name));
        failures.extend(
            gone.map(|row| format!("`{}` is in counts.toml and was not counted", row.name)),
        );
        if failures.is_empty() {
            return Ok(());
        }
        failures.push("if that must be, say why: `just instructions update WHY`".to_owned());
        Err(failures.join("\n"))
    }
}

fn has_grown(before: &Count, count: &Count) -> bool {
    count.count > before.count * (1.0 + TOLERANCE)
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("counts.toml")
}

/// Returns the version of the compiler, as it calls itself.
fn rustc() -> String {
    let output = std::process::Command::new("rustc").arg("--version").output();
    let text =
        output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("unknown").to_owned()
}
