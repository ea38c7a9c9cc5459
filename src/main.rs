//! The `clade` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    clade::cli::run(std::env::args_os()).into()
}
