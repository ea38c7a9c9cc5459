//! The file by which a repository reads the objects of another one in place.
#![expect(clippy::disallowed_methods, reason = "a repository is a directory on disk")]

use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// Has the repository in a directory read a directory of objects besides its own.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub(super) fn write_alternates(repository: &Path, objects: &Path) -> io::Result<()> {
    let mut line = std::path::absolute(objects)?.into_os_string().into_vec();
    line.push(b'\n');
    std::fs::write(repository.join("objects/info/alternates"), line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_repository_reads_the_objects_of_another_one_whatever_the_name_of_its_directory() {
        let base = tempfile::tempdir().unwrap();
        let of = git2::Repository::init_bare(base.path().join("of")).unwrap();
        let blob = of.blob(b"a").unwrap();
        let odd = base.path().join(std::ffi::OsStr::from_bytes(b"a b\xff"));
        std::fs::rename(base.path().join("of"), &odd).unwrap();
        let directory = base.path().join("borrows");
        git2::Repository::init_bare(&directory).unwrap();
        write_alternates(&directory, &odd.join("objects")).unwrap();
        let borrows = git2::Repository::open(&directory).unwrap();
        assert_eq!(borrows.find_blob(blob).unwrap().content(), b"a");
    }
}
