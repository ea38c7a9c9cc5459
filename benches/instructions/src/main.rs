//! How many instructions the core needs: `cargo run --profile instructions -p clade-instructions`.
//!
//! The program runs itself under callgrind, which counts exactly and simulates the caches of an AMD EPYC core,
//! and compares the counts with `counts.toml`. It fails where a count is 3 % above that file.
//!
//! - `update WHY` writes the counts into the file, with the reason for those that grew;
//! - `misses` prints the misses of simulated caches and branches too;
//! - `large` does so, and adds rows of 100,000 groups, which the file does not have and which take minutes.

#![expect(clippy::disallowed_methods, reason = "it reads and writes the files of its counts")]

mod counts;
mod rows;
mod valgrind;
#[path = "../../world/mod.rs"]
mod world;

use std::process::ExitCode;

use counts::Table;
use rows::Sizes;
use valgrind::Depth;

/// What [`rows::run`] is started with, under callgrind.
const MEASURED: &str = "--measured";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        [MEASURED] => {
            rows::run(Sizes::Checked);
            Ok(())
        }
        [MEASURED, _] => {
            rows::run(Sizes::Large);
            Ok(())
        }
        [] => check(),
        ["misses"] => print(Sizes::Checked),
        ["large"] => print(Sizes::Large),
        ["update", why] => update(why),
        _ => Err("usage: clade-instructions [misses | large | update WHY]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<(), String> {
    match valgrind::count(Sizes::Checked, Depth::Instructions)? {
        Some(counts) => Table::read()?.check(&counts),
        None => Ok(()),
    }
}

fn update(why: &str) -> Result<(), String> {
    match valgrind::count(Sizes::Checked, Depth::Misses)? {
        Some(counts) => Table::read()?.updated(counts, why).write(),
        None => Ok(()),
    }
}

fn print(sizes: Sizes) -> Result<(), String> {
    let counts = valgrind::count(sizes, Depth::Misses)?;
    counts.iter().flatten().for_each(|it| println!("{it}"));
    Ok(())
}
