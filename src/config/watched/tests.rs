#![expect(clippy::disallowed_methods, reason = "files are written")]

use super::*;

type Text = WatchedFiles<String, String>;

fn open(path: &Path, ending: FileEnd) -> Text {
    let file = WatchedFile { path: path.to_owned(), ending };
    Text::open(vec![file], |contents| {
        let text = String::from_utf8(contents.concat()).unwrap();
        if text.contains("broken") { Err("it is broken".to_owned()) } else { Ok(text) }
    })
    .unwrap()
}

/// Compares twice, far enough apart by the clock of the test.
fn settled(watched: &Text, cause: ReloadCause) -> Result<Reloaded, String> {
    let now = Instant::now();
    let first = watched.reload_at(cause, now).map_err(|it| it.to_string())?;
    assert_eq!(first, Reloaded::Pending);
    assert_eq!(watched.reload_at(cause, now).ok(), Some(Reloaded::Pending));
    later(watched, cause)
}

/// Compares when what was seen until now has stayed the same for long enough.
fn later(watched: &Text, cause: ReloadCause) -> Result<Reloaded, String> {
    watched.reload_at(cause, Instant::now() + SETTLE).map_err(|it| it.to_string())
}

fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

#[test]
fn a_change_is_loaded_when_it_is_stable_and_complete() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "- a\n").unwrap();
    let watched = open(&path, FileEnd::DocumentEnd);
    assert_eq!(watched.reload(ReloadCause::Poll).unwrap(), Reloaded::Unchanged);

    // In place, without an ending: never, unless the operator declares it.
    std::fs::write(&path, "- a\n- b\n").unwrap();
    let error = settled(&watched, ReloadCause::Poll).unwrap_err();
    assert!(error.contains("was rewritten in place") && error.contains("`...`"), "{error}");
    assert_eq!(**watched.load(), "- a\n");
    assert_eq!(later(&watched, ReloadCause::Declared), Ok(Reloaded::Loaded));
    assert_eq!(**watched.load(), "- a\n- b\n");

    // Replaced: yes. In place with an ending: yes.
    for (text, write) in [
        ("- c\n", replace as fn(&Path, &str)),
        ("- d\n...\n", |path, text| std::fs::write(path, text).unwrap()),
        ("- e\n...", |path, text| std::fs::write(path, text).unwrap()),
    ] {
        write(&path, text);
        assert_eq!(settled(&watched, ReloadCause::Poll), Ok(Reloaded::Loaded), "{text}");
        assert_eq!(**watched.load(), text);
    }
    // A file that closed with its ending has to close with it, replaced or not.
    replace(&path, "- f\n");
    let error = settled(&watched, ReloadCause::Poll).unwrap_err();
    assert!(error.contains("does not close as the one before did"), "{error}");
    assert!(!error.contains("renaming"), "{error}");
    assert_eq!(**watched.load(), "- e\n...");
}

/// File systems give the number of a removed file to the next one.
#[test]
fn a_file_that_is_replaced_twice_is_another_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "- 0\n").unwrap();
    let watched = open(&path, FileEnd::DocumentEnd);
    for round in 1..8 {
        // What cannot be used is not loaded.
        replace(&path, "broken\n");
        settled(&watched, ReloadCause::Poll).unwrap_err();
        let text = format!("- {round}\n");
        replace(&path, &text);
        assert_eq!(settled(&watched, ReloadCause::Poll), Ok(Reloaded::Loaded), "{round}");
        assert_eq!(**watched.load(), text);
    }
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a\n").unwrap();
    let watched = open(&path, FileEnd::Format);
    let mut now = Instant::now();
    for text in ["b", "bb", "bbb"] {
        std::fs::write(&path, text).unwrap();
        let reloaded = watched.reload_at(ReloadCause::Poll, now).unwrap();
        assert_eq!(reloaded, Reloaded::Pending, "{text}");
        now += SETTLE;
    }
    assert_eq!(watched.reload_at(ReloadCause::Poll, now).unwrap(), Reloaded::Loaded);
    assert_eq!(**watched.load(), "bbb");
}

#[test]
fn a_change_is_seen_whatever_its_modification_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a").unwrap();
    let watched = open(&path, FileEnd::Format);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, "b").unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(settled(&watched, ReloadCause::Poll), Ok(Reloaded::Loaded));
    assert_eq!(**watched.load(), "b");
}

#[test]
fn a_failed_reload_is_retried_and_leaves_what_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a\n").unwrap();
    let watched = open(&path, FileEnd::LineEnd);
    replace(&path, "broken\n");
    assert_eq!(settled(&watched, ReloadCause::Poll), Err("it is broken".to_owned()));
    assert_eq!(later(&watched, ReloadCause::Poll), Err("it is broken".to_owned()));
    std::fs::remove_file(&path).unwrap();
    let error = watched.reload(ReloadCause::Poll).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert_eq!(**watched.load(), "a\n");
    // The first half of a secret, with a new inode or not, is not a secret.
    std::fs::write(&path, "sec").unwrap();
    settled(&watched, ReloadCause::Poll).unwrap_err();
    std::fs::write(&path, "secret\n").unwrap();
    assert_eq!(settled(&watched, ReloadCause::Poll), Ok(Reloaded::Loaded));
}
