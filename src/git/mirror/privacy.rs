//! Who else can read the data directory.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// How the names begin of what a daemon keeps in its data directory; other files are not its own.
const OURS: [&str; 7] = [
    "lock",
    "journal",
    "last-contact",
    "nodes.sqlite",
    "check-ins.redb",
    "edits.json",
    "mirror.git",
];

/// Returns whether a daemon keeps a file of this name in its data directory.
pub(super) fn is_ours(name: &str) -> bool {
    OURS.iter().any(|start| name.starts_with(start))
}

/// What every user could do with a path of another user before the daemon warns about it.
#[derive(Clone, Copy)]
enum Tolerance {
    Nothing,
    /// The names of files may be read: a volume of Kubernetes is mounted so, as a directory of root, and each file in it is
    /// the daemon's own and has a mode of its own.
    Names,
}

impl Tolerance {
    fn is_exceeded_by(self, mode: u32) -> bool {
        let harmful = match self {
            Self::Nothing => Mode::RWXO,
            Self::Names => Mode::WOTH,
        };
        Mode::from_raw_mode(mode).intersects(harmful)
    }
}

/// Takes the data directory, and what an older version made in it, away from other users. What belongs
/// to another user is left as it is, with a warning where every user can read it, or write to the directory itself.
pub(super) fn narrow(data: &Path) {
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let ours = entries.filter(|it| is_ours(&it.file_name().to_string_lossy()));
    let ours = ours.map(|it| (it.path(), Tolerance::Nothing));
    let all = std::iter::once((data.to_owned(), Tolerance::Names)).chain(ours);
    for (path, tolerance) in all {
        match narrow_one(&path, tolerance, rustix::process::geteuid().as_raw()) {
            // It may be gone; and what we cannot read is not ours.
            Ok(()) | Err(Errno::NOENT | Errno::ACCESS | Errno::LOOP) => {}
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "other users can read what the daemon keeps here");
            }
        }
    }
}

fn narrow_one(path: &Path, tolerance: Tolerance, us: u32) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened: OwnedFd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&opened)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let mode = stat.st_mode & 0o7777;
    let is_open = Mode::from_raw_mode(mode).intersects(Mode::RWXG | Mode::RWXO);
    if !matches!(kind, FileType::Directory | FileType::RegularFile) || !is_open {
        return Ok(());
    }
    let path = path.display();
    if stat.st_uid == us {
        rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode & !0o077))?;
        tracing::info!(%path, "only the user of the daemon can read this from now on; before, its mode was {mode:o}");
    } else if tolerance.is_exceeded_by(mode) {
        tracing::warn!(
            %path, owner = stat.st_uid,
            "every user can read or replace what the daemon keeps here (mode {mode:o}), and it belongs to another user: run `chmod o-rwx` as that user, or give it to the user of the daemon with `chown -R`"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_may_show_its_names() {
        let rows = [
            (0o755, true, false),
            (0o2775, true, false),
            (0o777, true, true),
            (0o1777, true, true),
            (0o770, false, false),
            (0o644, true, false),
        ];
        for (mode, file, directory) in rows {
            let got = [Tolerance::Nothing, Tolerance::Names].map(|it| it.is_exceeded_by(mode));
            assert_eq!(got, [file, directory], "{mode:o}");
        }
    }

    #[test]
    fn what_an_older_version_left_open_is_closed() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::create_dir(data.join("mirror.git")).unwrap();
        std::fs::create_dir(data.join("lost+found")).unwrap();
        let secret = directory.path().join("elsewhere");
        let files =
            ["journal", "nodes.sqlite", "nodes.sqlite-wal", "check-ins.redb", "tokens.yaml"];
        for path in files.map(|it| data.join(it)).iter().chain([&secret]) {
            std::fs::write(path, "x").unwrap();
            set(path, 0o644);
        }
        symlink(&secret, data.join("edits.json")).unwrap();
        for name in ["mirror.git", "lost+found", "."] {
            set(&data.join(name), 0o755);
        }
        narrow(&data);
        for (name, expected) in [
            (".", 0o700),
            ("mirror.git", 0o700),
            ("journal", 0o600),
            ("nodes.sqlite", 0o600),
            ("nodes.sqlite-wal", 0o600),
            ("check-ins.redb", 0o600),
            ("tokens.yaml", 0o644),
            ("lost+found", 0o755),
        ] {
            assert_eq!(mode(&data.join(name)), expected, "{name}");
        }
        assert_eq!(mode(&secret), 0o644, "links lead elsewhere");
        if rustix::process::geteuid().as_raw() != 0 || chown(&data, Some(1234), None).is_err() {
            eprintln!("skipped: needs root");
            return;
        }
        set(&data, 0o775);
        narrow(&data);
        assert_eq!(mode(&data), 0o775, "it belongs to another user");
    }
}
