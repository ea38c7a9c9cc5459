#![expect(clippy::disallowed_methods, reason = "tests damage the files of objects")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::git::Repository;
use crate::model::{BlobId, Budget, CommitId, Meter};

/// A repository whose objects are all loose: two commits with `groups/a.yaml`.
struct World {
    directory: tempfile::TempDir,
    head: Oid,
    tree: Oid,
    blob: Oid,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let blob = git.blob(b"name: A\n").unwrap();
        let tree = |name: &str, id, mode| {
            let mut tree = git.treebuilder(None).unwrap();
            tree.insert(name, id, mode).unwrap();
            tree.write().unwrap()
        };
        let tree = tree("groups", tree("a.yaml", blob, 0o100_644), 0o040_000);
        let who = git2::Signature::now("a", "a@example.com").unwrap();
        let commit = |message: &str| {
            let parent = git.head().ok().map(|it| it.peel_to_commit().unwrap());
            let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
            let tree = git.find_tree(tree).unwrap();
            git.commit(Some("HEAD"), &who, &who, message, &tree, &parents).unwrap()
        };
        commit("first");
        let head = commit("second");
        Self { directory, head, tree, blob }
    }

    fn file(&self, id: Oid) -> PathBuf {
        let name = id.to_string();
        let (first, rest) = name.split_at_checked(2).unwrap();
        self.directory.path().join("objects").join(first).join(rest)
    }

    fn write(&self, id: Oid, bytes: &[u8]) {
        let file = self.file(id);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(file, bytes).unwrap();
    }

    /// Reads everything, and returns the first error.
    fn read(&self) -> Result<(), String> {
        read_all(self.directory.path(), self.head, self.blob)
    }
}

fn abbreviated(id: Oid) -> String {
    id.to_string().chars().take(9).collect()
}

fn read_all(directory: &Path, head: Oid, blob: Oid) -> Result<(), String> {
    let repository = Repository::discover(directory).map_err(|it| it.to_string())?;
    let commit = CommitId::from_bytes(bytes(head));
    let blob = BlobId::from_bytes(bytes(blob));
    let fail = |error: &dyn std::fmt::Display| error.to_string();
    let abbreviated = abbreviated(head);
    repository.log(commit, 9).map_err(|it| fail(&it))?;
    if repository.resolve(&abbreviated) != Ok(commit) {
        return Err(format!("{abbreviated} is not resolved"));
    }
    let meter = Meter::new(Budget::DEFAULT);
    repository.files(commit, "", &meter).map_err(|it| fail(&it))?;
    if repository.blob_size(blob).map_err(|it| fail(&it))? != 8 {
        return Err("a size is wrong".to_owned());
    }
    repository.blob(blob).map(drop).map_err(|it| fail(&it))
}

/// Fails where it does not end: libgit2 inflates some files for ever.
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_mins(1)).unwrap_or_else(|_| panic!("{what}: it hangs"))
}

#[test]
fn a_damaged_loose_object_is_an_error_wherever_it_is_read() {
    let world = std::sync::Arc::new(World::new());
    assert_eq!(world.read(), Ok(()));
    let other = fs::read(world.file(world.blob)).unwrap();
    for (what, id) in [("commit", world.head), ("tree", world.tree), ("blob", world.blob)] {
        let good = fs::read(world.file(id)).unwrap();
        let mut damaged: Vec<(String, Vec<u8>)> = (0..good.len())
            .map(|length| (format!("{what} of {length} bytes"), good[..length].to_vec()))
            .collect();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            world.write(id, &bytes);
            let shared = std::sync::Arc::clone(&world);
            // Some bits mean nothing; what is read has the right hash.
            ends("another byte", move || shared.read().ok());
        }
        damaged.push((format!("{what} of zeros"), vec![0; good.len()]));
        damaged.push((format!("{what} of garbage"), b"\x35garbage garbage".to_vec()));
        damaged.push((format!("{what} with more"), [&*good, b"x"].concat()));
        if id != world.blob {
            damaged.push((format!("{what} that is a blob"), other.clone()));
        }
        for (what, bytes) in damaged {
            world.write(id, &bytes);
            let shared = std::sync::Arc::clone(&world);
            let read = ends(&what, move || shared.read());
            assert!(read.is_err(), "{what}");
        }
        world.write(id, &good);
        assert_eq!(world.read(), Ok(()));
    }
    // The largest size that a header can have: nothing is allocated for it.
    for size in ["7", "9", "99999999999", "18446744073709551615"] {
        let mut file = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut file, format!("blob {size}\0name: A\n").as_bytes()).unwrap();
        world.write(world.blob, &file.finish().unwrap());
        let shared = std::sync::Arc::clone(&world);
        assert!(ends(size, move || shared.read()).is_err(), "{size}");
    }
}

#[test]
fn an_error_names_the_file() {
    let world = World::new();
    let file = world.file(world.head);
    let bytes = fs::read(&file).unwrap();
    world.write(world.head, &bytes[..20]);
    let expected = format!(
        "the commit {} cannot be read: the object file `{}` is damaged: it is cut short",
        world.head,
        fs::canonicalize(file).unwrap().display()
    );
    assert_eq!(world.read(), Err(expected));
}

#[test]
fn objects_of_alternates_are_checked_too() {
    let world = World::new();
    let borrowing = tempfile::tempdir().unwrap();
    git2::Repository::init_bare(borrowing.path()).unwrap();
    let objects = world.directory.path().join("objects");
    let alternates = borrowing.path().join("objects/info/alternates");
    fs::write(&alternates, format!("# a comment\n{}\n", objects.display())).unwrap();
    assert_eq!(read_all(borrowing.path(), world.head, world.blob), Ok(()));
    let good = fs::read(world.file(world.head)).unwrap();
    world.write(world.head, &good[..20]);
    let (path, head, blob) = (borrowing.path().to_owned(), world.head, world.blob);
    assert!(ends("an alternate", move || read_all(&path, head, blob)).is_err());
    // One that is whole is read, wherever it is.
    let name = world.head.to_string();
    let (first, rest) = name.split_at_checked(2).unwrap();
    let own = borrowing.path().join("objects").join(first);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join(rest), good).unwrap();
    let repository = Repository::discover(borrowing.path()).unwrap();
    assert!(repository.resolve(&name).is_ok());
    // An abbreviated id has libgit2 read each.
    let borrowing = borrowing.path().to_owned();
    let resolves = move || {
        let repository = Repository::discover(&borrowing).unwrap();
        repository.resolve(&abbreviated(head)).is_ok()
    };
    assert!(!ends("an abbreviated id", resolves));
}

#[test]
fn alternates_that_name_each_other_are_collected_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    let names: Vec<PathBuf> = (0..40).map(|it| root.join(format!("{it}"))).collect();
    for objects in &names {
        fs::create_dir_all(objects.join("info")).unwrap();
        let lines: Vec<_> = (0..40).map(|it| format!("../{it}/info/..\n../{it}\n")).collect();
        fs::write(objects.join("info/alternates"), lines.concat() + "/absent\n").unwrap();
    }
    let (first, expected) = (names[0].clone(), names);
    let found = ends("alternates", move || ObjectDirectories::of(&first));
    let mut found = found.unwrap();
    found.sort();
    let mut expected = expected;
    expected.sort();
    assert_eq!(found, expected);
    let many: Vec<_> =
        (0..200).map(|it| format!("{}\n", root.join(format!("x{it}")).display())).collect();
    for number in 0..200 {
        fs::create_dir_all(root.join(format!("x{number}"))).unwrap();
    }
    fs::write(root.join("0/info/alternates"), many.concat()).unwrap();
    let error = ObjectDirectories::of(&root.join("0")).unwrap_err();
    assert!(error.contains("remove lines from") && error.contains("0/info/alternates"), "{error}");
    // Lines that name nothing count as well, and those that name what is known are no more directories.
    for (lines, is_taken) in [(4000, true), (200_000, false)] {
        let names = ["/absent\n", "../0\n"].map(|it| it.repeat(lines / 2)).concat();
        fs::write(root.join("0/info/alternates"), names).unwrap();
        assert_eq!(ObjectDirectories::of(&root.join("0")).is_ok(), is_taken, "{lines}");
    }
}

#[test]
fn an_object_of_no_type_in_a_pack_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let git = git2::Repository::init_bare(directory.path()).unwrap();
    let content = b"name: A\n";
    let mut builder = git.packbuilder().unwrap();
    let blob = git.blob(content).unwrap();
    builder.insert_object(blob, None).unwrap();
    let packs = directory.path().join("objects/pack");
    builder.write(&packs, 0o644).unwrap();
    let name = blob.to_string();
    let (first, _) = name.split_at_checked(2).unwrap();
    fs::remove_dir_all(directory.path().join("objects").join(first)).unwrap();
    let files = || fs::read_dir(&packs).unwrap().map(|it| it.unwrap().path());
    let pack = files().find(|it| it.extension().is_some_and(|it| it == "pack")).unwrap();
    let whole = fs::read(&pack).unwrap();
    fs::set_permissions(&pack, fs::Permissions::from_mode(0o644)).unwrap();
    let id: BlobId = name.parse().unwrap();
    for kind in 0..8 {
        let mut bytes = whole.clone();
        bytes[12] = bytes[12] & 0x8f | kind << 4;
        fs::write(&pack, bytes).unwrap();
        let repository = Repository::discover(directory.path()).unwrap();
        let size = repository.blob_size(id);
        assert_eq!(repository.blob(id).is_ok(), kind == 3, "{kind}");
        // Those of other types are found out where they are read, those of none at once.
        assert_eq!(size.is_ok(), matches!(kind, 1..=4), "{kind}: {size:?}");
    }
}
