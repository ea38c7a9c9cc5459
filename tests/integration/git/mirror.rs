//! The mirror: the refs that it follows, the faults that it survives, the remotes that it refuses.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use clade::internals::git::{
    FetchError, FetchFailure, Fetched, Mirror, MirrorError, MirrorOptions, Remote, Scheme,
};
use clade::internals::model::CommitId;

use super::meter;
use crate::repository::{Origin, Put};

fn open(data: &Path, origin: &Origin) -> Mirror {
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    Mirror::open(data, remote, MirrorOptions::default()).unwrap()
}

fn id(text: &str) -> CommitId {
    text.parse().unwrap()
}

fn fetched_main(head: &str) -> Fetched {
    fetched("refs/heads/main", head)
}

fn fetched(branch: &str, head: &str) -> Fetched {
    Fetched { branch: branch.to_owned(), head: id(head) }
}

#[test]
fn a_history_with_a_malformed_commit_is_followed() {
    let (origin, first) = Origin::with_a_commit();
    let git = git2::Repository::open_bare(origin.path()).unwrap();
    let tree = git.find_commit(first.parse().unwrap()).unwrap().tree_id();
    let commit = |parent: &str, who: &str| {
        let text =
            format!("tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nimported\n");
        git.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap().to_string()
    };
    let malformed = commit(&first, "Ada a@example.com 1400000000 +0000");
    let head = commit(&malformed, "Ada <a@example.com> 1700000000 +0000");
    assert!(
        git.find_commit(malformed.parse().unwrap()).is_err(),
        "libgit2 reads it: the test is moot"
    );
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    origin.set("main", &head);
    assert_eq!(mirror.fetch(None), Ok(fetched_main(&head)));
    let in_place = clade::internals::git::Repository::discover(&origin.path()).unwrap();
    for repository in [mirror.repository().unwrap(), in_place] {
        let is_ancestor = |old: &str, new: &str| repository.is_ancestor(id(old), id(new)).unwrap();
        assert!(is_ancestor(&first, &head) && is_ancestor(&malformed, &head));
        assert!(!is_ancestor(&head, &first) && !is_ancestor(&head, &malformed));
    }
}

#[test]
fn a_history_that_was_cut_is_followed() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    std::fs::write(origin.path().join("shallow"), format!("{second}\n")).unwrap();
    let object = origin.path().join("objects").join(&first[..2]).join(&first[2..]);
    std::fs::remove_file(object).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.fetch(None), Ok(fetched_main(&second)));
    let third = origin.commit("main", &[("a", Put::File("b"))]);
    assert_eq!(mirror.fetch(None), Ok(fetched_main(&third)));
    let in_place = clade::internals::git::Repository::discover(&origin.path()).unwrap();
    for repository in [mirror.repository().unwrap(), in_place] {
        assert!(repository.is_ancestor(id(&second), id(&third)).unwrap());
    }
}

/// Fetches, and everything again if that meets damage, as the daemon does.
fn fetch_mended(mirror: &Mirror) -> Result<Fetched, FetchError> {
    mirror.fetch(None).or_else(|error| match error.failure {
        FetchFailure::CorruptObjects => mirror.renew(None, &[]),
        _ => Err(error),
    })
}

#[test]
fn a_file_in_place_of_a_directory_does_not_end_the_start() {
    let (origin, first) = Origin::with_a_commit();
    for name in ["mirror.git", "mirror.git/objects", "mirror.git/objects/pack", "mirror.git/refs"] {
        for in_the_way in ["mirror.git.new", "mirror.git.broken", "mirror.git/joining"] {
            let data = tempfile::tempdir().unwrap();
            let mirror = open(data.path(), &origin);
            mirror.fetch(None).unwrap();
            drop(mirror);
            let other = data.path().join(in_the_way);
            std::fs::write(other, "").unwrap();
            let path = data.path().join(name);
            std::fs::remove_dir_all(&path).unwrap();
            std::fs::write(&path, "").unwrap();
            let mirror = open(data.path(), &origin);
            assert_eq!(fetch_mended(&mirror), Ok(fetched_main(&first)), "{name} {in_the_way}");
        }
    }
}

#[test]
fn the_mirror_of_a_former_remote_is_taken_back() {
    let origins = ["a", "b", "c"].map(|name| {
        let (origin, _) = Origin::with_a_commit();
        let head = origin.commit("main", &[(name, Put::File(name))]);
        (origin, head)
    });
    let [(a, at_a), (b, at_b), (c, _)] = &origins;
    let data = tempfile::tempdir().unwrap();
    open(data.path(), a).fetch(None).unwrap();
    let has = |origin: &Origin, commit: &str| {
        let mirror = open(data.path(), origin);
        mirror.repository().unwrap().commit(id(commit)).is_ok()
    };
    // Such as one whose URL is mistyped.
    assert!(!has(b, at_b));
    assert!(has(a, at_a), "what was fetched of the first remote");
    open(data.path(), b).fetch(None).unwrap();
    for _ in 0..2 {
        assert!(has(a, at_a) && has(b, at_b), "both stay");
    }
    let names = || {
        let entries = std::fs::read_dir(data.path()).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|it| it.starts_with("mirror")).collect();
        names.sort();
        names
    };
    let kept_of_a = names()[1].clone();
    assert!(kept_of_a.starts_with("mirror.git.of-"), "{kept_of_a}");
    // A crash between the two renames.
    std::fs::rename(data.path().join("mirror.git"), data.path().join("mirror.git.moved")).unwrap();
    assert!(has(a, at_a));
    std::fs::remove_dir_all(data.path().join("mirror.git.moved")).unwrap();
    open(data.path(), b).fetch(None).unwrap();
    open(data.path(), c).fetch(None).unwrap();
    assert_eq!(names().len(), 2, "of two others the last is kept: {:?}", names());
    assert!(has(b, at_b) && !has(a, at_a));
}

/// Opens the mirror of an origin and fetches, which must end.
fn reopen(data: &Path, origin: &Origin) -> Fetched {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (data, remote) = (data.to_owned(), Remote::parse(origin.path().to_str().unwrap()).unwrap());
    std::thread::spawn(move || {
        let mirror = Mirror::open(&data, remote, MirrorOptions::default()).unwrap();
        let fetched = mirror.fetch(None).unwrap();
        drop(mirror);
        sender.send(fetched)
    });
    let fetched = receiver.recv_timeout(std::time::Duration::from_mins(1));
    fetched.unwrap_or_else(|error| panic!("the start does not end: {error}"))
}

#[test]
fn what_stands_in_place_of_the_lock_is_an_error_at_once() {
    let (origin, _) = Origin::with_a_commit();
    for kind in ["pipe", "socket", "directory"] {
        let data = tempfile::tempdir().unwrap();
        let lock = data.path().join("lock");
        match kind {
            "pipe" => assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success()),
            "socket" => drop(std::os::unix::net::UnixListener::bind(&lock).unwrap()),
            _ => std::fs::create_dir(&lock).unwrap(),
        }
        let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
        let opened = Mirror::open(data.path(), remote, MirrorOptions::default());
        let error = std::error::Error::source(&opened.unwrap_err()).unwrap().to_string();
        assert_eq!(error, format!("`{}` is not a regular file: remove it", lock.display()));
    }
}

/// Removes what stands at a path, if anything does.
fn remove(path: &Path) -> std::io::Result<()> {
    match path.symlink_metadata() {
        // It is empty, and needs no room among the open files, of which other tests may have all.
        Ok(found) if found.is_dir() => std::fs::remove_dir(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[test]
fn what_stands_in_place_of_a_file_is_put_aside_at_the_start() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = data.path().join("mirror.git");
    reopen(data.path(), &origin);
    let index = std::fs::read_dir(mirror.join("objects/pack")).unwrap().find_map(|it| {
        it.ok().map(|it| it.path()).filter(|it| it.extension().is_some_and(|it| it == "idx"))
    });
    let index = index.unwrap().strip_prefix(&mirror).unwrap().to_str().unwrap().to_owned();
    std::fs::create_dir_all(mirror.join("info")).unwrap();
    let others =
        ["objects/pack/pack-a.pack", "objects/pack/multi-pack-index", "shallow", "HEAD.new"];
    let noted = ["objects/info/alternates", "clade-remote", "config.new"];
    for name in [index.as_str()].into_iter().chain(others).chain(noted) {
        let path = mirror.join(name);
        for kind in ["a pipe", "a directory", "a link to nothing"] {
            let removed = remove(&path);
            assert!(removed.is_ok(), "before {kind} at {name}: {removed:?}");
            match kind {
                "a pipe" => {
                    let made = Command::new("mkfifo").arg(&path).status().unwrap();
                    assert!(made.success());
                }
                "a directory" => std::fs::create_dir(&path).unwrap(),
                _ => std::os::unix::fs::symlink("/absent/absent", &path).unwrap(),
            }
            std::fs::remove_file(mirror.join("HEAD")).unwrap();
            assert_eq!(reopen(data.path(), &origin), fetched_main(&first), "{name}: {kind}");
            assert!(!data.path().join("mirror.git.broken").exists(), "{name}: {kind}");
            assert!(mirror.join(&index).is_file(), "{name}: {kind}");
        }
    }
}

#[test]
fn a_branch_is_followed_wherever_it_goes() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    let main = "refs/heads/main";
    assert_eq!(mirror.fetch(None), Ok(fetched(main, &first)));
    assert_eq!(mirror.fetch(Some("main")), Ok(fetched(main, &first)));
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    assert_eq!(mirror.fetch(None), Ok(fetched(main, &second)));
    origin.set("main", &first);
    drop(mirror);
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.fetch(None), Ok(fetched(main, &first)));
    let third = origin.rewrite("main", &[("a", Put::File("b"))]);
    assert_eq!(mirror.fetch(None), Ok(fetched(main, &third)));
}

#[test]
fn a_missing_ref_is_an_error_and_changes_nothing() {
    let (origin, first) = Origin::with_a_commit();
    origin.set("live", &first);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(Some("live")).unwrap();
    origin.delete("live");
    for _ in 0..2 {
        let error = mirror.fetch(Some("live")).unwrap_err();
        assert_eq!(error.failure, FetchFailure::RefNotFound);
        let expected = format!(
            "`{}` does not have the branch `live`; it has `main`: choose it with `--branch`",
            origin.path().display()
        );
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(mirror.repository().unwrap().resolve("live").unwrap(), id(&first));
    origin.set("live", &first);
    assert_eq!(mirror.fetch(Some("live")).unwrap().head, id(&first));
}

#[test]
fn a_tag_does_not_take_the_place_of_a_branch() {
    let (origin, first) = Origin::with_a_commit();
    let side = origin.commit("side", &[("a", Put::File("a"))]);
    origin.set("live", &first);
    origin.tag("live", &side);
    origin.tag("v1", &first);
    let data = tempfile::tempdir().unwrap();
    let fetch = |name: &str| open(data.path(), &origin).fetch(Some(name));
    assert_eq!(fetch("live"), Ok(fetched("refs/heads/live", &first)));
    origin.delete("live");
    assert_eq!(fetch("live").unwrap_err().failure, FetchFailure::RefNotFound);
    assert_eq!(fetch("refs/tags/live"), Ok(fetched("refs/tags/live", &side)));
    // What was followed stays so under its short name, until another one is named whole.
    assert_eq!(fetch("v1"), Ok(fetched("refs/tags/v1", &first)));
    origin.set("v1", &side);
    for (name, expected) in [
        ("v1", fetched("refs/tags/v1", &first)),
        ("refs/tags/v1", fetched("refs/tags/v1", &first)),
        ("v1", fetched("refs/tags/v1", &first)),
        ("refs/heads/v1", fetched("refs/heads/v1", &side)),
        ("v1", fetched("refs/heads/v1", &side)),
    ] {
        assert_eq!(fetch(name), Ok(expected), "{name}");
    }
}

#[test]
fn a_fetch_that_brings_nothing_writes_no_ref() {
    use std::os::unix::fs::MetadataExt as _;
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    let files = ["HEAD", "refs/clade/watched/refs/heads/main", "refs/remotes/origin/main"];
    let inodes = || {
        let inode = |it| data.path().join("mirror.git").join(it).metadata().unwrap().ino();
        files.map(inode)
    };
    assert_eq!(mirror.fetch(Some("main")), Ok(fetched_main(&first)));
    let before = inodes();
    assert_eq!(mirror.fetch(Some("main")), Ok(fetched_main(&first)));
    assert_eq!(inodes(), before);
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    assert_eq!(mirror.fetch(Some("main")), Ok(fetched_main(&second)));
    assert_ne!(inodes(), before);
}

#[test]
fn tags_and_detached_heads_are_followed_too() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    origin.tag("v1", &first);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.fetch(Some("v1")), Ok(fetched("refs/tags/v1", &first)));
    origin.tag("v1", &second);
    assert_eq!(mirror.fetch(Some("v1")), Ok(fetched("refs/tags/v1", &second)));
    origin.git().set_head_detached(first.parse().unwrap()).unwrap();
    assert_eq!(mirror.fetch(None), Ok(fetched("HEAD", &first)));
    assert_eq!(mirror.repository().unwrap().resolve("HEAD").unwrap(), id(&first));
}

#[test]
fn an_empty_repository_has_no_commit_to_follow() {
    let origin = Origin::new();
    let data = tempfile::tempdir().unwrap();
    let error = open(data.path(), &origin).fetch(None).unwrap_err();
    let expected = format!(
        "`{}` does not have `main`, which its `HEAD` names; it has no branch yet: commit the files first",
        origin.path().display()
    );
    assert_eq!((error.failure, error.to_string()), (FetchFailure::RefNotFound, expected));
}

#[test]
fn revisions_mean_what_the_remote_calls_them() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    let side = origin.commit("feature/x", &[("b", Put::File("b"))]);
    origin.tag("v1", &first);
    origin.reference("refs/pull/7/head", &side);
    origin.set(&first, &second);
    // Nor that of a part of one: which commit is meant is not for those to say who may push some branch.
    origin.set(&second[..8], &side);
    origin.tag(&first[..7], &side);
    let data = tempfile::tempdir().unwrap();
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    let refspecs = vec!["refs/pull/*/head".to_owned()];
    let options = MirrorOptions { refspecs, ..MirrorOptions::default() };
    let mirror = Mirror::open(data.path(), remote, options).unwrap();
    mirror.fetch(None).unwrap();
    let repository = mirror.repository().unwrap();
    for (revision, expected) in [
        ("main", Some(&second)),
        ("origin/main", Some(&second)),
        ("refs/heads/main", Some(&second)),
        ("refs/heads/main~1", Some(&first)),
        ("main^{commit}", Some(&second)),
        ("HEAD", Some(&second)),
        ("HEAD~1", Some(&first)),
        ("feature/x", Some(&side)),
        ("v1", Some(&first)),
        ("refs/pull/7/head", Some(&side)),
        (&first, Some(&first)),
        (&side[..12], Some(&side)),
        (&second[..7], Some(&second)),
        (&second[..8], None),
        (&format!("{}~1", &second[..8]), None),
        (&format!("refs/heads/{}", &second[..8]), Some(&side)),
        (&first[..7], None),
        ("nope", None),
    ] {
        let resolved = repository.resolve(revision).ok().map(|it| it.to_string());
        assert_eq!(resolved.as_ref(), expected, "{revision}");
    }
    origin.delete("feature/x");
    mirror.fetch(None).unwrap();
    assert!(repository.resolve("feature/x").is_err(), "what is gone is forgotten");
}

#[test]
fn a_branch_may_become_a_directory_of_branches_and_back() {
    let (origin, first) = Origin::with_a_commit();
    origin.set("a", &first);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(Some("a")).unwrap();
    origin.delete("a");
    origin.set("a/b", &first);
    assert_eq!(mirror.fetch(Some("a/b")).unwrap().head, id(&first));
    origin.delete("a/b");
    origin.set("a", &first);
    assert_eq!(mirror.fetch(Some("a")).unwrap().head, id(&first));
}

#[test]
fn a_ref_whose_name_is_not_utf8_stops_no_other() {
    let (origin, first) = Origin::with_a_commit();
    let name = std::ffi::OsStr::from_bytes(b"refs/heads/\xff");
    std::fs::write(origin.path().join(name), format!("{first}\n")).unwrap();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.fetch(None).unwrap().head, id(&first));
}

#[test]
fn the_live_commit_survives_a_restart() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.live(), None);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&first)).unwrap();
    assert!(mirror.set_live(CommitId::from_bytes([9; 20])).is_err());
    // Nothing of the remote is needed, not even after it forgot the commit.
    origin.rewrite("main", &[("a", Put::File("a"))]);
    mirror.fetch(None).unwrap();
    drop(mirror);
    std::fs::remove_dir_all(origin.path()).unwrap();
    let mirror = open(data.path(), &origin);
    assert_eq!(mirror.live(), Some(id(&first)));
    assert_eq!(
        mirror.repository().unwrap().files(id(&first), "groups", &meter()).unwrap().len(),
        1
    );
    let error = mirror.fetch(None).unwrap_err();
    assert_eq!(error.failure, FetchFailure::RepositoryNotFound);
}

#[test]
fn a_mirror_has_one_owner() {
    let (origin, _) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let first = open(data.path(), &origin);
    let remote = Remote::parse(origin.path().to_str().unwrap()).unwrap();
    let second = Mirror::open(data.path(), remote, MirrorOptions::default()).unwrap_err();
    let expected =
        format!("the data directory `{}` is in use by another process, ", data.path().display());
    assert!(second.to_string().starts_with(&expected), "{second}");
    drop(first);
    open(data.path(), &origin).fetch(None).unwrap();
}

#[test]
fn what_a_crash_left_behind_is_removed() {
    let (origin, _) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    open(data.path(), &origin).fetch(None).unwrap();
    let left = [
        "config.lock",
        "packed-refs.lock",
        "refs/remotes/origin/main.lock",
        "refs/clade/watched/refs/heads/main.lock",
        "objects/pack/pack_git2_0123456789abcdef",
    ]
    .map(|name| data.path().join("mirror.git").join(name));
    for path in &left {
        std::fs::write(path, "").unwrap();
    }
    let directory = data.path().join("mirror.git/clade-0123/objects");
    std::fs::create_dir_all(&directory).unwrap();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    assert_eq!(open(data.path(), &origin).fetch(None).unwrap().head, id(&second));
    assert!(!directory.parent().unwrap().exists());
    for path in &left {
        assert!(!path.exists(), "{}", path.display());
    }
}

#[test]
fn a_branch_whose_name_is_like_that_of_a_leftover_stays() {
    let (origin, first) = Origin::with_a_commit();
    origin.set("clade-prod/main", &first);
    let data = tempfile::tempdir().unwrap();
    open(data.path(), &origin).fetch(Some("clade-prod/main")).unwrap();
    let mirror = open(data.path(), &origin);
    let repository = mirror.repository().unwrap();
    for revision in ["HEAD", "clade-prod/main"] {
        assert_eq!(repository.resolve(revision).ok(), Some(id(&first)), "{revision}");
    }
}

#[test]
fn a_lock_that_another_process_holds_is_reported() {
    let (origin, _) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    origin.commit("main", &[("a", Put::File("a"))]);
    let lock = data.path().join("mirror.git/refs/remotes/origin/main.lock");
    std::fs::write(&lock, "").unwrap();
    assert_eq!(mirror.fetch(None).unwrap_err().failure, FetchFailure::LockHeld);
    std::fs::remove_file(lock).unwrap();
    mirror.fetch(None).unwrap();
}

#[test]
fn a_damaged_mirror_is_fetched_again() {
    let (origin, first) = Origin::with_a_commit();
    for what in ["objects", "objects/pack", "refs", "HEAD"] {
        let data = tempfile::tempdir().unwrap();
        open(data.path(), &origin).fetch(None).unwrap();
        let damaged = data.path().join("mirror.git").join(what);
        if what == "HEAD" {
            std::fs::remove_file(damaged).unwrap();
        } else {
            std::fs::remove_dir_all(&damaged).unwrap();
            std::fs::create_dir(&damaged).unwrap();
        }
        let mirror = open(data.path(), &origin);
        assert_eq!(fetch_mended(&mirror).map(|it| it.head), Ok(id(&first)), "{what}");
        let files = mirror.repository().unwrap().files(id(&first), "", &meter()).unwrap();
        assert_eq!(files.len(), 1, "{what}");
    }
}

#[test]
fn renewing_keeps_the_live_commit() {
    let (origin, first) = Origin::with_a_commit();
    let second = origin.commit("main", &[("a", Put::File("a"))]);
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&first)).unwrap();
    let before = mirror.repository().unwrap();
    assert_eq!(mirror.renew(None, &[]).unwrap().head, id(&second));
    assert_eq!(mirror.live(), Some(id(&first)));
    assert_eq!(before.files(id(&second), "", &meter()).unwrap().len(), 2, "readers read on");
    // A crash between the two renames leaves only the former mirror.
    drop(mirror);
    std::fs::remove_dir_all(data.path().join("mirror.git")).unwrap();
    assert!(open(data.path(), &origin).repository().unwrap().commit(id(&second)).is_ok());
}

#[test]
fn another_remote_never_answers_from_the_mirror_of_this_one() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch(None).unwrap();
    mirror.set_live(id(&first)).unwrap();
    drop(mirror);
    let other = Origin::new();
    let mirror = open(data.path(), &other);
    assert_eq!(mirror.live(), None);
    assert!(mirror.repository().unwrap().commit(id(&first)).is_err());
}

#[test]
fn schemes_that_are_not_allowed_are_refused() {
    let data = tempfile::tempdir().unwrap();
    for (url, allowed) in [
        ("https://host/x", true),
        ("http://host/x", false),
        ("git://host/x", false),
        ("file:///x", false),
        ("/x", true),
    ] {
        let remote = Remote::parse(url).unwrap();
        let opened = Mirror::open(data.path(), remote.clone(), MirrorOptions::default());
        match opened.map(drop) {
            Ok(()) => assert!(allowed, "{url}"),
            Err(MirrorError::SchemeNotAllowed(scheme)) => {
                assert!(!allowed && url.starts_with(scheme), "{url}");
            }
            Err(error) => panic!("{url}: {error}"),
        }
        let schemes = [Scheme::File, Scheme::Git, Scheme::Http, Scheme::Https].into();
        Mirror::open(data.path(), remote, MirrorOptions { schemes, ..MirrorOptions::default() })
            .unwrap();
    }
}

#[test]
fn a_mirror_of_another_user_opens() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    open(data.path(), &origin).fetch(None).unwrap();
    let mirror = data.path().join("mirror.git");
    if std::os::unix::fs::chown(&mirror, Some(4711), Some(4711)).is_err() {
        // Only root can give a directory away.
        return;
    }
    assert_eq!(open(data.path(), &origin).fetch(None).unwrap().head, id(&first));
}

#[test]
fn a_branch_that_moves_while_others_are_fetched_is_noticed() {
    let (origin, first) = Origin::with_a_commit();
    let data = tempfile::tempdir().unwrap();
    let mirror = open(data.path(), &origin);
    mirror.fetch_watched(None).unwrap();
    assert!(!mirror.others_moved(), "the only ref was fetched");
    assert!(!mirror.fetch_others().unwrap().watched_moved);
    // The objects arrive with other refs, so readers can ask for a commit that is not followed yet.
    let second = origin.commit("main", &[("a", Put::File("b"))]);
    assert!(mirror.fetch_others().unwrap().watched_moved);
    assert!(mirror.repository().unwrap().commit(id(&second)).is_ok());
    assert_eq!(mirror.fetch_watched(None), Ok(fetched_main(&second)));
    assert!(!mirror.others_moved());
    assert!(!mirror.fetch_others().unwrap().watched_moved);
    // Another branch is not the watched one.
    origin.set("side", &first);
    mirror.fetch_watched(None).unwrap();
    assert!(mirror.others_moved());
    assert!(!mirror.fetch_others().unwrap().watched_moved);
}
