//! The `clade` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    clade::run(std::env::args_os()).into()
}
