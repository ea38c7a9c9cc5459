//! Joining packs: every fetch that brings something leaves one.
//!
//! Small packs are joined until each is at least twice as large as all smaller ones together, so
//! that their number grows with the logarithm of what is fetched and an object is copied that often.
//! Nothing is dropped: packs that have been joined stay for a while, so that readers that have them
//! open can go on, and are removed only if the pack into which they were joined is whole.
#![expect(clippy::disallowed_methods, reason = "packs are files, and their age is measured")]

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Mirror;
use super::parts::JoinedPack;
use crate::git::object_guard::guard;
use crate::git::pack_index::{self, Damage, Depth};

/// How many packs lie there at most before some are joined.
const MOST: usize = 24;

/// How long packs stay that have been joined; who reads opens a repository for less.
const GRACE: Duration = Duration::from_mins(2);

/// A pack, by its index.
#[derive(Debug)]
struct Pack {
    index: PathBuf,
    bytes: u64,
}

/// Packs could not be joined; all of them are as they were.
#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    /// By the system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// By what they hold.
    #[error("the packs cannot be joined: {0}")]
    Packs(String),
    /// One is damaged.
    #[error("the pack of `{}` is damaged: {damage}", .index.display())]
    Damaged {
        /// Its index.
        index: PathBuf,
        /// What is wrong.
        damage: Damage,
    },
}

impl Mirror {
    /// Joins packs if there are many; returns how many were joined. Blocking, at times for seconds;
    /// everything else may go on meanwhile.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be read or the new one cannot be written.
    pub fn join_packs(&self) -> Result<usize, TidyError> {
        self.join_packs_over(MOST, GRACE)
    }

    fn join_packs_over(&self, most: usize, grace: Duration) -> Result<usize, TidyError> {
        let mut joined = self.joined.0.lock();
        let removed = self.remove_joined(&mut joined, grace);
        let count = self.join_small(&mut joined, most)?;
        removed?;
        Ok(count)
    }

    /// Removes packs that were joined long ago. One that cannot be removed now is tried again the next time; one whose
    /// objects are not in another pack any more counts as one that was not joined.
    fn remove_joined(&self, joined: &mut Vec<JoinedPack>, grace: Duration) -> io::Result<()> {
        let (mut removed, mut has_removed) = (Ok(()), false);
        let mut checked = BTreeMap::new();
        joined.retain(|it| {
            if it.since.elapsed() < grace {
                return true;
            }
            let is_whole = checked.entry(it.into.clone()).or_insert_with_key(|into| is_whole(into));
            if !*is_whole {
                return false;
            }
            has_removed = true;
            match remove(&it.index) {
                Ok(()) => false,
                Err(error) => {
                    removed = Err(error);
                    true
                }
            }
        });
        if has_removed {
            // After the removal: a push that begins before it may still open them.
            self.close_push_repository();
        }
        removed
    }

    fn join_small(&self, joined: &mut Vec<JoinedPack>, most: usize) -> Result<usize, TidyError> {
        let repository = self.directory.repository();
        let before: HashSet<&PathBuf> = joined.iter().map(|it| &it.index).collect();
        let mut packs = packs(&repository.join("objects/pack"))?;
        packs.retain(|it| !before.contains(&it.index));
        let small = if packs.len() > most { prefix(&mut packs) } else { &[] };
        if small.len() < 2 {
            return Ok(0);
        }
        let small = match whole(small) {
            // The rest is joined the next time.
            Err(TidyError::Damaged { index, damage }) => {
                let replaced = pack_index::replace(&index, &damage);
                self.close_push_repository();
                replaced?;
                return Ok(0);
            }
            whole => whole?,
        };
        if small.len() < 2 {
            return Ok(0);
        }
        let into = join(&repository, &small)?;
        self.close_push_repository();
        let since = Instant::now();
        // A pack has the name of its content: one that was joined from the others before is written again as it is.
        let others = small.iter().map(|it| &it.index).filter(|it| **it != into);
        joined.retain(|it| it.index != into);
        joined.extend(others.map(|it| JoinedPack { index: it.clone(), into: into.clone(), since }));
        Ok(small.len())
    }
}

/// Returns whether a pack that others were joined into can be read to its end.
fn is_whole(into: &Path) -> bool {
    match pack_index::check(into, Depth::Everything) {
        Ok(()) => true,
        Err(error) => {
            let index = into.display();
            tracing::error!(%index, %error, "packs were joined into one that cannot be read: they are kept, and joined again");
            false
        }
    }
}

/// Joins all packs of a bare repository, whatever they are.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz_join(repository: &Path) -> Result<(), TidyError> {
    join(repository, &whole(&packs(&repository.join("objects/pack"))?)?).map(drop)
}

/// Returns the packs of a directory that have an index.
fn packs(directory: &Path) -> io::Result<Vec<Pack>> {
    let mut packs = Vec::new();
    for entry in fs::read_dir(directory)? {
        let index = entry?.path();
        if index.extension().is_some_and(|it| it == "idx")
            && let Ok(pack) = fs::metadata(index.with_extension("pack"))
        {
            packs.push(Pack { index, bytes: pack.len() });
        }
    }
    Ok(packs)
}

/// Returns the smaller packs, up to the first that is twice as large as all before it together.
fn prefix(packs: &mut [Pack]) -> &[Pack] {
    packs.sort_by(|a, b| (a.bytes, &a.index).cmp(&(b.bytes, &b.index)));
    let mut sum = 0_u64;
    let mut count = 0;
    for (at, pack) in packs.iter().enumerate() {
        // What is joined has to grow at once, or the next fetches would join it again.
        if at >= 2 && pack.bytes >= sum.saturating_mul(2) && packs.len() - at < MOST / 2 {
            break;
        }
        sum += pack.bytes;
        count = at + 1;
    }
    packs.get(..count).unwrap_or_default()
}

/// Returns those of some packs that can be read. What cannot be read now may be whole: it stays as it is.
fn whole(packs: &[Pack]) -> Result<Vec<&Pack>, TidyError> {
    let mut whole = Vec::new();
    for pack in packs {
        match pack_index::check(&pack.index, Depth::Everything) {
            Ok(()) => whole.push(pack),
            Err(damage) if damage.is_unreadable() => {
                let (index, error) = (pack.index.display(), damage);
                tracing::warn!(%index, %error, "a pack cannot be read: it is not joined with others, correct its permissions or the disk");
            }
            Err(damage) => return Err(TidyError::Damaged { index: pack.index.clone(), damage }),
        }
    }
    Ok(whole)
}

/// Writes a pack with everything that some packs have, and returns its index.
fn join(repository: &Path, small: &[&Pack]) -> Result<PathBuf, TidyError> {
    let fail = |error: git2::Error| TidyError::Packs(error.message().to_owned());
    // An object database of these packs alone names what is in them.
    let apart = repository.join("joining");
    if apart.exists() {
        fs::remove_dir_all(&apart)?;
    }
    fs::create_dir_all(apart.join("pack"))?;
    for pack in small {
        for file in [pack.index.clone(), pack.index.with_extension("pack")] {
            if let Some(name) = file.file_name() {
                fs::hard_link(&file, apart.join("pack").join(name))?;
            }
        }
    }
    let mut objects = Vec::new();
    {
        let database = git2::Odb::new().map_err(fail)?;
        database.add_disk_alternate(&apart.to_string_lossy()).map_err(fail)?;
        database
            .foreach(|id| {
                objects.push(*id);
                true
            })
            .map_err(fail)?;
    }
    let opened = git2::Repository::open_bare(repository).and_then(guard).map_err(fail)?;
    let mut builder = opened.packbuilder().map_err(fail)?;
    // One core stays for those who ask.
    builder.set_threads(1);
    for id in objects {
        builder.insert_object(id, None).map_err(fail)?;
    }
    let directory = repository.join("objects/pack");
    builder.write(&directory, 0o444).map_err(fail)?;
    let name = builder.name().ok().flatten().map(str::to_owned);
    let name = name.ok_or_else(|| TidyError::Packs("the new pack has no name".to_owned()))?;
    for extension in ["pack", "idx"] {
        File::open(directory.join(format!("pack-{name}.{extension}")))?.sync_all()?;
    }
    File::open(&directory)?.sync_all()?;
    fs::remove_dir_all(&apart)?;
    Ok(directory.join(format!("pack-{name}.idx")))
}

/// Removes a pack, its index first: what is found has to be whole.
fn remove(index: &Path) -> io::Result<()> {
    for extension in ["idx", "rev", "pack"] {
        match fs::remove_file(index.with_extension(extension)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object_id::id_of;
    use crate::git::{MirrorOptions, Remote, Scheme};

    /// A repository with a commit, and a mirror that fetches it.
    struct World {
        origin: git2::Repository,
        mirror: Mirror,
        _directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let origin = git2::Repository::init_bare(directory.path().join("origin")).unwrap();
            let url = format!("file://{}", directory.path().join("origin").display());
            let remote = Remote::parse(&url).unwrap();
            let data = directory.path().join("data");
            let options =
                MirrorOptions { schemes: [Scheme::File].into(), ..MirrorOptions::default() };
            let mirror = Mirror::open(&data, remote, options).unwrap();
            Self { origin, mirror, _directory: directory }
        }

        fn commit(&self, number: usize) -> git2::Oid {
            let blob = self.origin.blob(format!("name: G{number}\n").as_bytes()).unwrap();
            let parent = self.origin.head().ok().map(|it| it.peel_to_commit().unwrap());
            let base = parent.as_ref().map(|it| it.tree().unwrap());
            let mut tree = self.origin.treebuilder(base.as_ref()).unwrap();
            tree.insert(format!("{number}.yaml"), blob, 0o100_644).unwrap();
            let tree = self.origin.find_tree(tree.write().unwrap()).unwrap();
            let who = git2::Signature::now("a", "a@example.com").unwrap();
            let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
            self.origin.commit(Some("HEAD"), &who, &who, "x", &tree, &parents).unwrap()
        }

        /// Makes one with commits that are fetched, each by itself.
        fn with_fetched(count: usize) -> Self {
            let world = Self::new();
            for number in 0..count {
                world.commit(number);
                world.mirror.fetch(None).unwrap();
            }
            world
        }

        /// Ends the mirror and opens it again, as a restart does; something happens meanwhile.
        fn reopened(self, meanwhile: impl FnOnce(&Path)) -> Self {
            let (remote, options) = (self.mirror.remote.clone(), (*self.mirror.options).clone());
            let packs = self.pack_directory();
            let Self { origin, mirror, _directory: directory } = self;
            drop(mirror);
            meanwhile(&packs);
            let mirror = Mirror::open(&directory.path().join("data"), remote, options).unwrap();
            Self { origin, mirror, _directory: directory }
        }

        fn pack_directory(&self) -> PathBuf {
            self.mirror.directory.repository().join("objects/pack")
        }

        /// Reads every commit of the origin, and its files, from the mirror alone.
        fn check_all_commits(&self) {
            let repository = self.mirror.repository().unwrap();
            let mut commits = self.origin.revwalk().unwrap();
            commits.push_head().unwrap();
            for commit in commits {
                let tree = repository.inner().find_commit(commit.unwrap()).unwrap().tree().unwrap();
                for entry in &tree {
                    assert!(entry.to_object(repository.inner()).is_ok());
                }
            }
        }

        /// Makes a commit in the mirror and pushes it; returns whether what that read from is kept.
        fn push(&self, number: usize) -> bool {
            let opened = self.mirror.repository().unwrap();
            let inner = opened.inner();
            let (branch, head) = {
                let head = self.origin.head().unwrap();
                (head.name().unwrap().to_owned(), head.target().unwrap())
            };
            let parent = inner.find_commit(head).unwrap();
            let blob = inner.blob(format!("name: P{number}\n").as_bytes()).unwrap();
            let mut tree = inner.treebuilder(Some(&parent.tree().unwrap())).unwrap();
            tree.insert(format!("p{number}.yaml"), blob, 0o100_644).unwrap();
            let tree = inner.find_tree(tree.write().unwrap()).unwrap();
            let who = git2::Signature::now("a", "a@example.com").unwrap();
            let commit = inner.commit(None, &who, &who, "x", &tree, &[&parent]).unwrap();
            self.mirror.push(&branch, id_of(commit), Some(id_of(head)), None).unwrap();
            assert_eq!(self.origin.head().unwrap().target(), Some(commit));
            self.mirror.push_repository.has_value()
        }

        fn packs(&self) -> usize {
            packs(&self.pack_directory()).unwrap().len()
        }
    }

    #[test]
    fn packs_are_joined_and_everything_is_there_before_and_after() {
        let world = World::new();
        let mut commits = Vec::new();
        let mut most = 0;
        for number in 0..60 {
            commits.push(world.commit(number));
            world.mirror.fetch(None).unwrap();
            // Who reads meanwhile has opened the repository before.
            let reader = world.mirror.repository().unwrap();
            world.mirror.join_packs_over(8, Duration::ZERO).unwrap();
            most = most.max(world.packs());
            for repository in [&reader, &world.mirror.repository().unwrap()] {
                for commit in &commits {
                    let tree = repository.inner().find_commit(*commit).unwrap().tree().unwrap();
                    for entry in &tree {
                        assert!(entry.to_object(repository.inner()).is_ok());
                    }
                }
            }
        }
        assert!(most <= 20, "{most}");
        assert!(world.packs() < 20);
    }

    #[test]
    fn what_a_push_reads_from_while_the_mirror_is_renewed_is_not_kept() {
        let world = World::with_fetched(1);
        let (repository, taken) = world.mirror.take_push_repository().unwrap();
        world.mirror.renew(None, &[]).unwrap();
        world.mirror.keep_push_repository(repository, &taken);
        assert!(!world.mirror.push_repository.has_value());
        assert!(world.push(0));
    }

    #[test]
    fn what_a_push_reads_from_while_packs_are_joined_or_removed_is_not_kept() {
        let world = World::with_fetched(5);
        for (what, joined) in [("joined", 5), ("removed", 0)] {
            let (repository, taken) = world.mirror.take_push_repository().unwrap();
            assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), joined, "{what}");
            world.mirror.keep_push_repository(repository, &taken);
            assert!(!world.mirror.push_repository.has_value(), "{what}");
        }
        assert!(world.push(0));
    }

    #[test]
    fn what_pushes_read_from_is_kept_until_packs_change() {
        let world = World::with_fetched(5);
        let is_kept = || world.mirror.push_repository.has_value();
        assert!(world.push(0));
        assert!(world.push(1), "with what the push before left");
        assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
        assert!(!is_kept(), "packs are joined");
        assert!(world.push(2));
        assert_eq!(world.mirror.join_packs_over(8, Duration::ZERO).unwrap(), 0);
        assert!(!is_kept(), "packs are removed");
        assert!(world.push(3));
        world.mirror.renew(None, &[]).unwrap();
        assert!(!is_kept(), "the mirror is another one");
        assert!(world.push(4));
        let tree = world.origin.head().unwrap().peel_to_tree().unwrap();
        assert_eq!(tree.len(), 10);
        assert!(tree.iter().all(|it| it.to_object(&world.origin).is_ok()));
    }

    #[test]
    fn what_has_been_joined_stays_for_a_while() {
        let world = World::with_fetched(5);
        assert_eq!(world.packs(), 5);
        assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
        assert_eq!(world.packs(), 6);
        // They are not joined again.
        assert_eq!(world.mirror.join_packs_over(0, GRACE).unwrap(), 0);
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 0);
        assert_eq!(world.packs(), 1);
    }

    #[test]
    fn packs_that_are_joined_again_after_a_restart_leave_the_one_that_they_are_in() {
        let world = World::with_fetched(5);
        assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
        let world = world.reopened(|_| {});
        assert_eq!(world.packs(), 6, "none was removed yet");
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 6);
        assert_eq!(world.packs(), 6, "the joined pack is the same");
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 0);
        assert_eq!(world.packs(), 1);
        world.check_all_commits();
        let world = world.reopened(|_| {});
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 0);
        world.check_all_commits();
    }

    #[test]
    fn packs_that_cannot_be_removed_are_removed_later_and_keep_no_others_from_being_joined() {
        let world = World::with_fetched(5);
        assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
        let stuck = world.mirror.joined.0.lock()[2].index.clone();
        fs::create_dir(stuck.with_extension("rev")).unwrap();
        for number in 5..9 {
            world.commit(number);
            world.mirror.fetch(None).unwrap();
        }
        assert!(world.mirror.join_packs_over(4, Duration::ZERO).is_err());
        assert_eq!(world.mirror.joined.0.lock().len(), 1 + 5, "the new ones are joined");
        world.check_all_commits();
        fs::remove_dir(stuck.with_extension("rev")).unwrap();
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 0);
        assert!(!stuck.with_extension("pack").exists());
        assert_eq!((world.packs(), world.mirror.joined.0.lock().len()), (1, 0));
        world.check_all_commits();
    }

    #[test]
    fn packs_stay_whose_joined_one_is_gone_or_damaged() {
        for is_gone in [true, false] {
            let world = World::with_fetched(5);
            assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
            let into = world.mirror.joined.0.lock()[0].into.clone();
            fs::remove_file(into.with_extension("pack")).unwrap();
            if is_gone {
                fs::remove_file(&into).unwrap();
            } else {
                fs::write(into.with_extension("pack"), "PACK").unwrap();
            }
            for _ in 0..3 {
                world.mirror.join_packs_over(4, Duration::ZERO).unwrap();
            }
            assert_eq!(world.packs(), 1, "joined again");
            world.check_all_commits();
        }
    }

    #[test]
    fn what_was_joined_in_a_mirror_is_not_removed_from_the_one_that_replaces_it() {
        let world = World::with_fetched(5);
        assert_eq!(world.mirror.join_packs_over(4, GRACE).unwrap(), 5);
        world.mirror.renew(None, &[]).unwrap();
        assert_eq!(world.mirror.joined.0.lock().len(), 0);
        world.mirror.join_packs_over(4, Duration::ZERO).unwrap();
        world.check_all_commits();
    }

    /// Fills the offsets of an index: libgit2 would follow them past the end of its map.
    fn damage(index: &Path) {
        use std::os::unix::fs::PermissionsExt as _;
        let mut bytes = fs::read(index).unwrap();
        let count = usize::from(bytes[8 + 4 * 256 - 1]);
        let offsets = 8 + 4 * 256 + count * 24;
        bytes[offsets..offsets + count * 4].fill(0x7f);
        fs::set_permissions(index, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(index, bytes).unwrap();
    }

    #[test]
    fn a_damaged_pack_is_replaced_and_the_next_time_all_are_joined() {
        let world = World::new();
        let mut commits = Vec::new();
        for number in 0..5 {
            commits.push(world.commit(number));
            world.mirror.fetch(None).unwrap();
        }
        let directory = world.pack_directory();
        damage(&packs(&directory).unwrap()[2].index);
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 0);
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 5);
        let repository = world.mirror.repository().unwrap();
        for commit in commits {
            assert!(repository.inner().find_commit(commit).unwrap().tree().is_ok());
        }
    }

    #[test]
    fn packs_that_cannot_be_read_do_not_keep_others_from_being_joined() {
        let world = World::with_fetched(5);
        let directory = world.pack_directory();
        // Before there is another one: directories are listed in any order.
        let small = packs(&directory).unwrap().pop().unwrap().index.with_extension("pack");
        fs::create_dir(directory.join("pack-z.pack")).unwrap();
        fs::write(directory.join("pack-z.idx"), "").unwrap();
        fs::copy(small, directory.join("pack-y.pack")).unwrap();
        fs::create_dir(directory.join("pack-y.idx")).unwrap();
        assert_eq!(world.mirror.join_packs_over(4, Duration::ZERO).unwrap(), 5);
        assert!(directory.join("pack-y.pack").exists(), "it is left as it is");
        assert!(world.push(0));
    }

    #[test]
    fn a_mirror_with_a_damaged_pack_is_fetched_again() {
        let world = World::with_fetched(1);
        let world = world.reopened(|directory| {
            let pack = packs(directory).unwrap();
            damage(&pack[0].index);
            fs::remove_file(pack[0].index.with_extension("pack")).unwrap();
            fs::write(pack[0].index.with_extension("pack"), "PACK").unwrap();
        });
        let last = world.commit(1);
        world.mirror.fetch(None).unwrap();
        let repository = world.mirror.repository().unwrap();
        let mut commits = repository.inner().revwalk().unwrap();
        commits.push(last).unwrap();
        assert_eq!(commits.collect::<Result<Vec<_>, _>>().unwrap().len(), 2);
    }

    #[test]
    fn a_large_pack_is_left_alone() {
        let pack = |name: &str, bytes| Pack { index: name.into(), bytes };
        let mut packs =
            [pack("a", 1000), pack("b", 10), pack("c", 12), pack("d", 5), pack("e", 40)];
        let joined: Vec<u64> = prefix(&mut packs).iter().map(|it| it.bytes).collect();
        assert_eq!(joined, [5, 10, 12, 40]);
    }
}
