//! The settings of the C library's allocator, which it reads when a program starts.
//!
//! glibc gives each of some threads an arena of its own, up to eight for each core. Two arenas, and large
//! blocks that are mapped one by one, keep half as much (`memory::whole-campaign`). What a burst of large
//! requests leaves between the memory that is still used is returned by [`trim`].

mod trim;

use std::ffi::OsString;

pub(super) use trim::keep_trimming;

/// Says that the program was started again, also where the system removes the settings, as it does from
/// programs with capabilities of their files.
#[cfg(target_env = "gnu")]
const STARTED_AGAIN: &str = "_CLADE_MALLOC";

/// The settings; `mallopt` would need unsafe code. Any of them that is set already is the operator's choice.
#[cfg(target_env = "gnu")]
const SETTINGS: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "2"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "131072"),
];

/// Starts this program once more, in the same process, with the settings. Returns where they are set,
/// where the operator chose others, and where the program cannot be started: it works without them.
#[cfg(target_env = "gnu")]
pub(super) fn set(arguments: &[OsString]) {
    use std::os::unix::process::CommandExt as _;

    let chosen = ["GLIBC_TUNABLES", "LD_PRELOAD", STARTED_AGAIN];
    let mut names = SETTINGS.iter().map(|(name, _)| *name).chain(chosen);
    let (Some((name, rest)), Ok(program)) = (arguments.split_first(), std::env::current_exe())
    else {
        return;
    };
    if names.any(|it| std::env::var_os(it).is_some()) {
        return;
    }
    // It has the process id, the descriptors and the environment that this one got: nothing of its own
    // is open yet. It returns only if it failed.
    let _failed = std::process::Command::new(program)
        .arg0(name)
        .args(rest)
        .envs(SETTINGS)
        .env(STARTED_AGAIN, "1")
        .exec();
}

/// Other C libraries have no such settings.
#[cfg(not(target_env = "gnu"))]
pub(super) fn set(_: &[OsString]) {}
