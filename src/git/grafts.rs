//! The file that gives commits other parents than they have. Git deprecates it, and still reads it.

use std::path::Path;

use git2::{ErrorClass, ErrorCode};

use super::regular_file::read_regular;

/// The file that names commits with the parents that they have here. Unlike with a shallow clone, a remote does not learn
/// of it.
pub(super) const GRAFTS: &str = "info/grafts";

/// How many digits the name of a commit has.
const DIGITS: usize = 40;

/// Checks the file of grafts in a directory of git: libgit2 opens no repository where it has more than names of commits, and
/// names neither the file nor a way out.
///
/// # Errors
///
/// Returns an error that names the first line that libgit2 does not read.
pub(super) fn check_grafts(directory: &Path) -> Result<(), git2::Error> {
    let path = directory.join(GRAFTS);
    // What is not there, and what may not be read, is for libgit2 to say.
    let Ok(text) = read_regular(&path) else { return Ok(()) };
    let mut lines = text.split_inclusive(|it| *it == b'\n');
    let Some(number) = lines.position(|it| !is_readable(it)) else { return Ok(()) };
    let message = format!(
        "line {} of `{}` is a comment, empty, or not ids of commits with one space between: git skips such a line, \
         and Clade does not; remove it, and end lines with LF",
        number + 1,
        path.display()
    );
    Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Repository, message))
}

/// Returns whether libgit2 reads a line: a commit, and its parents.
fn is_readable(line: &[u8]) -> bool {
    let is_id = |it: &[u8]| it.len() == DIGITS && it.iter().all(u8::is_ascii_hexdigit);
    line.strip_suffix(b"\n").unwrap_or(line).split(|it| *it == b' ').all(is_id)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "what git keeps are files")]
mod tests {
    use super::*;
    use crate::git::{OpenError, Repository};
    use crate::table::each_row;

    #[test]
    fn a_file_of_grafts_that_libgit2_does_not_read_is_named_with_its_line() {
        let (a, b) = ("a".repeat(DIGITS), "B".repeat(DIGITS));
        let rows = [
            (String::new(), None),
            (a.clone(), None),
            (format!("{a}\n{a} {b} {a}\n"), None),
            (format!("{a}\n# why\n"), Some(2)),
            (format!("\n{a}\n"), Some(1)),
            (format!("{a}\n\n"), Some(2)),
            (format!("{a}\r\n"), Some(1)),
            (format!("{a}  {b}\n"), Some(1)),
            (format!("{a} \n"), Some(1)),
            (format!("{a} {b}\n{a} bad\n"), Some(2)),
        ];
        each_row(rows, |(text, expected)| {
            let directory = tempfile::tempdir().unwrap();
            let git = git2::Repository::init_bare(directory.path()).unwrap();
            let file = git.path().join(GRAFTS);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &text).unwrap();
            let read_by_libgit2 = git2::Repository::open(directory.path()).is_ok();
            assert_eq!(read_by_libgit2, expected.is_none(), "libgit2 and {text:?}");
            match (Repository::discover(directory.path()), expected) {
                (Ok(_), None) => {}
                (Err(error @ OpenError::Unusable { .. }), Some(line)) => {
                    let named = format!("line {line} of `{}`", file.display());
                    assert!(error.to_string().contains(&named), "{error}");
                }
                (opened, _) => panic!("{text:?}: {:?}", opened.err()),
            }
        });
    }
}
