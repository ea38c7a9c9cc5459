//! Running this program under callgrind, and reading what it counted.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::MEASURED;
use crate::counts::{Count, Unit};
use crate::rows::{ALLOCATIONS, BYTES, INSTRUCTIONS, Sizes};

/// A core with 32 KiB for data and 1 MiB behind.
const CACHES: [&str; 5] = [
    "--cache-sim=yes",
    "--branch-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=1048576,16,64",
];

/// How much is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Instructions.
    Instructions,
    /// Simulated misses of caches and branches too, which takes twice as long.
    Misses,
}

/// Counts all rows; `None` where there is no valgrind.
pub fn count(sizes: Sizes, depth: Depth) -> Result<Option<Vec<Count>>, String> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: needs valgrind");
        return Ok(None);
    }
    let failed = |why: std::io::Error| why.to_string();
    let here = std::env::current_exe().map_err(failed)?;
    let directory = here.with_file_name(format!("callgrind-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let counts = run(&here, &directory, sizes, depth);
    std::fs::remove_dir_all(&directory).map_err(failed)?;
    counts.map(Some)
}

fn run(here: &Path, directory: &Path, sizes: Sizes, depth: Depth) -> Result<Vec<Count>, String> {
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--quiet",
        "--toggle-collect=*::counted_row",
        "--dump-after=*::counted_row",
    ]);
    if depth == Depth::Misses {
        command.args(CACHES);
    }
    command.arg(format!("--callgrind-out-file={}/out", directory.display()));
    command.arg(here).arg(MEASURED);
    if sizes == Sizes::Large {
        command.arg("large");
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(|why| why.to_string())?;
    if !output.status.success() {
        return Err(format!("callgrind: {}", output.status));
    }
    // What was counted is dumped in the order of the rows.
    let mut dumps = 0;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| row(line, directory, &mut dumps))
        .collect()
}

/// Reads a row that the program printed: its unit, the divisor or the count, its name.
fn row(line: &str, directory: &Path, dumps: &mut u32) -> Result<Count, String> {
    let unexpected = || format!("unexpected line of the program: {line}");
    let mut parts = line.splitn(3, ' ');
    let (Some(unit), Some(number), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(unexpected());
    };
    let number: f64 = number.parse().map_err(|_| unexpected())?;
    let of = match unit {
        ALLOCATIONS => Unit::Allocations,
        BYTES => Unit::Bytes,
        INSTRUCTIONS => {
            *dumps += 1;
            let per_one = |it: f64| rounded(it / number);
            let Totals { instructions, misses } = totals(&directory.join(format!("out.{dumps}")))?;
            let [level1, level2, branches] =
                misses.map_or([None; 3], |it| it.map(|it| Some(per_one(it))));
            let (name, count) = (name.to_owned(), per_one(instructions));
            return Ok(Count {
                name,
                count,
                of: Unit::Instructions,
                level1,
                level2,
                branches,
                why: String::new(),
            });
        }
        _ => return Err(unexpected()),
    };
    Ok(Count {
        name: name.to_owned(),
        count: number,
        of,
        level1: None,
        level2: None,
        branches: None,
        why: String::new(),
    })
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// What a dump counts.
struct Totals {
    instructions: f64,
    /// Of the first and second level of caches, and of branches.
    misses: Option<[f64; 3]>,
}

fn totals(dump: &Path) -> Result<Totals, String> {
    let text = std::fs::read_to_string(dump).map_err(|why| format!("{}: {why}", dump.display()))?;
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().split_whitespace()
    };
    let events: Vec<(&str, f64)> =
        field("events:").zip(field("totals:").map(|it| it.parse().unwrap_or(0.0))).collect();
    let sum = |names: &[&str]| {
        events.iter().filter(|(name, _)| names.contains(name)).map(|it| it.1).sum()
    };
    let misses =
        [sum(&["I1mr", "D1mr", "D1mw"]), sum(&["ILmr", "DLmr", "DLmw"]), sum(&["Bcm", "Bim"])];
    Ok(Totals { instructions: sum(&["Ir"]), misses: (events.len() > 1).then_some(misses) })
}
