#![expect(clippy::disallowed_methods, reason = "files are written")]

use super::*;

type Text = Watched<String, String>;

fn open(path: &Path, ending: Ending) -> Text {
    let file = WatchedFile { path: path.to_owned(), ending };
    Text::open(vec![file], |contents, _| {
        let text = String::from_utf8(contents.concat()).unwrap();
        if text.contains("broken") { Err("it is broken".to_owned()) } else { Ok(text) }
    })
    .unwrap()
}

/// Looks twice, far enough apart.
fn settled(watched: &Text, cause: Cause) -> Result<Reloaded, String> {
    assert_eq!(watched.reload(cause).map_err(|it| it.to_string())?, Reloaded::Pending);
    std::thread::sleep(SETTLE);
    watched.reload(cause).map_err(|it| it.to_string())
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
    let watched = open(&path, Ending::DocumentEnd);
    assert_eq!(watched.reload(Cause::Poll).unwrap(), Reloaded::Unchanged);

    // In place, without an ending: never, unless the operator declares it.
    std::fs::write(&path, "- a\n- b\n").unwrap();
    let error = settled(&watched, Cause::Poll).unwrap_err();
    assert!(error.contains("was rewritten in place") && error.contains("`...`"), "{error}");
    assert_eq!(**watched.load(), "- a\n");
    assert_eq!(watched.reload(Cause::Declared).unwrap(), Reloaded::Loaded);
    assert_eq!(**watched.load(), "- a\n- b\n");

    // Replaced: yes. In place with an ending: yes.
    for (text, write) in [
        ("- c\n", replace as fn(&Path, &str)),
        ("- d\n...\n", |path, text| std::fs::write(path, text).unwrap()),
        ("- e\n...", |path, text| std::fs::write(path, text).unwrap()),
    ] {
        write(&path, text);
        assert_eq!(settled(&watched, Cause::Poll), Ok(Reloaded::Loaded), "{text}");
        assert_eq!(**watched.load(), text);
    }
    // A file that closed with its ending has to close with it, replaced or not.
    replace(&path, "- f\n");
    settled(&watched, Cause::Poll).unwrap_err();
    assert_eq!(**watched.load(), "- e\n...");
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a\n").unwrap();
    let watched = open(&path, Ending::Format);
    for text in ["b", "bb", "bbb"] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(watched.reload(Cause::Poll).unwrap(), Reloaded::Pending, "{text}");
        std::thread::sleep(SETTLE);
    }
    assert_eq!(watched.reload(Cause::Poll).unwrap(), Reloaded::Loaded);
    assert_eq!(**watched.load(), "bbb");
}

#[test]
fn a_change_is_seen_whatever_its_modification_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a").unwrap();
    let watched = open(&path, Ending::Format);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, "b").unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(settled(&watched, Cause::Poll), Ok(Reloaded::Loaded));
    assert_eq!(**watched.load(), "b");
}

#[test]
fn a_failed_reload_is_retried_and_leaves_what_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "a\n").unwrap();
    let watched = open(&path, Ending::LineEnd);
    replace(&path, "broken\n");
    assert_eq!(settled(&watched, Cause::Poll), Err("it is broken".to_owned()));
    assert_eq!(watched.reload(Cause::Poll).unwrap_err().to_string(), "it is broken");
    std::fs::remove_file(&path).unwrap();
    let error = watched.reload(Cause::Poll).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
    assert_eq!(**watched.load(), "a\n");
    // The first half of a secret, with a new inode or not, is not a secret.
    std::fs::write(&path, "sec").unwrap();
    settled(&watched, Cause::Poll).unwrap_err();
    std::fs::write(&path, "secret\n").unwrap();
    assert_eq!(settled(&watched, Cause::Poll), Ok(Reloaded::Loaded));
}
