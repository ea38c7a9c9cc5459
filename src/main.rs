//! The `clade` program.

use std::process::ExitCode;

/// glibc keeps much of what was freed by one of many threads: after large requests the daemon would
/// hold several times the memory that it needs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    clade::cli::run(std::env::args_os()).into()
}
