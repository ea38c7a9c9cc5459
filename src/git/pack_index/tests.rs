use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;
use crate::table::each_row;

/// A bare repository with one pack, and the index of that.
fn repository() -> (tempfile::TempDir, git2::Repository, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let repository = git2::Repository::init_bare(directory.path()).unwrap();
    let packs = directory.path().join("objects/pack");
    {
        let mut builder = repository.packbuilder().unwrap();
        for number in 0..40 {
            let blob = repository.blob(format!("name: G{number}\n").as_bytes()).unwrap();
            builder.insert_object(blob, None).unwrap();
        }
        builder.write(&packs, 0o644).unwrap();
    }
    // What is read has to come from the pack.
    for entry in fs::read_dir(directory.path().join("objects")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().len() == 2 {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let mut paths = fs::read_dir(packs).unwrap().map(|it| it.unwrap().path());
    let index = paths.find(|it| it.extension().unwrap() == "idx").unwrap();
    (directory, repository, index)
}

fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Writes the hash at the end of an index again: the damage is deliberate.
fn seal(bytes: &mut [u8]) {
    let (content, hash) = bytes.split_at_mut(bytes.len() - HASH);
    hash.copy_from_slice(&Sha1::digest(content));
}

/// The offset of the first object's offset in an index.
const OFFSETS: usize = 8 + 4 * 256 + 40 * (HASH + 4);

#[test]
fn an_index_is_checked_before_libgit2_maps_it() {
    type Change = fn(&mut Vec<u8>);
    let table: &[(&str, Change)] = &[
        ("the index does not begin as one of version 2", |it| it[7] = 1),
        ("the fan-out table of the index decreases", |it| it[8] = 0xff),
        ("the index has another number of objects than the pack", |it| it[8 + 4 * 255] = 1),
        ("the names in the index are not in order", |it| it[8 + 4 * 256 + HASH] = 0),
        ("an offset in the index is past the end of the pack", |it| it[OFFSETS] = 0x7f),
        ("an offset in the index is past the end of the pack", |it| it[OFFSETS] = 0x80),
        ("an offset in the index is past the end of the pack", |it| {
            it[OFFSETS..OFFSETS + 4].fill(0);
        }),
        ("the index is cut short or too long", |it| it.extend([0; 4])),
        ("the index is cut short or too long", |it| it.truncate(OFFSETS)),
        ("failed to fill whole buffer", |it| it.truncate(500)),
        ("failed to fill whole buffer", Vec::clear),
        ("the index is of another pack", |it| {
            let at = it.len() - 2 * HASH;
            it[at] ^= 1;
            seal(it);
        }),
        ("the index does not have the hash at its end", |it| it[OFFSETS - 1] ^= 1),
    ];
    each_row(table, |(expected, change)| {
        let (_directory, _repository, index) = repository();
        check(&index, Depth::Everything).unwrap();
        damage(&index, change);
        assert_eq!(check(&index, Depth::Index).unwrap_err().to_string(), *expected);
    });
}

#[test]
fn a_long_offset_is_followed() {
    let (_directory, _repository, index) = repository();
    damage(&index, |it| {
        let offset: [u8; 4] = it[OFFSETS..OFFSETS + 4].try_into().unwrap();
        it[OFFSETS..OFFSETS + 4].copy_from_slice(&LONG.to_be_bytes());
        let at = OFFSETS + 40 * 4;
        it.splice(at..at, [[0; 4], offset].concat());
        seal(it);
    });
    check(&index, Depth::Index).unwrap();
    damage(&index, |it| {
        it[OFFSETS + 40 * 4] = 0xff;
        seal(it);
    });
    assert!(check(&index, Depth::Index).is_err());
}

#[test]
fn a_damaged_index_is_written_again_from_its_pack() {
    let (directory, _, index) = repository();
    let whole = fs::read(&index).unwrap();
    damage(&index, |it| it[OFFSETS] = 0x7f);
    let damaged = fs::read(&index).unwrap();
    check_all(&directory.path().join("objects/pack")).unwrap();
    assert_eq!(fs::read(&index).unwrap(), whole);
    assert_eq!(fs::read(index.with_extension("idx.broken")).unwrap(), damaged);
    let blob = git2::Oid::hash_object(git2::ObjectType::Blob, b"name: G7\n").unwrap();
    let repository = git2::Repository::open_bare(directory.path()).unwrap();
    assert_eq!(repository.find_blob(blob).unwrap().content(), b"name: G7\n");
}

#[test]
fn a_damaged_pack_is_put_aside_with_its_index() {
    let (directory, _, index) = repository();
    let pack = index.with_extension("pack");
    damage(&pack, |it| it.truncate(it.len() - 30));
    check_all(&directory.path().join("objects/pack")).unwrap();
    assert!(!index.exists() && !pack.exists());
    assert!(index.with_extension("idx.broken").exists());
    assert!(pack.with_extension("pack.broken").exists());
    let blob = git2::Oid::hash_object(git2::ObjectType::Blob, b"name: G7\n").unwrap();
    let repository = git2::Repository::open_bare(directory.path()).unwrap();
    assert!(repository.find_blob(blob).is_err());
}

#[test]
fn a_missing_index_is_written_from_its_pack() {
    let (directory, _, index) = repository();
    let packs = directory.path().join("objects/pack");
    let whole = fs::read(&index).unwrap();
    fs::remove_file(&index).unwrap();
    check_all(&packs).unwrap();
    assert_eq!(fs::read(&index).unwrap(), whole);
    // A pack may have another name than that of its content.
    fs::remove_file(&index).unwrap();
    let other = packs.join("pack-other.pack");
    fs::rename(index.with_extension("pack"), &other).unwrap();
    check_all(&packs).unwrap();
    assert_eq!(fs::read(&index).unwrap(), whole);
    assert!(!other.exists() && index.with_extension("pack").exists());
    fs::write(&other, "PACK and what follows").unwrap();
    check_all(&packs).unwrap();
    assert!(!other.exists() && other.with_extension("pack.broken").exists());
}

#[test]
fn what_cannot_be_read_or_written_now_is_left_as_it_is() {
    let (directory, _, index) = repository();
    let packs = directory.path().join("objects/pack");
    let pack = index.with_extension("pack");
    let (content, whole) = (fs::read(&pack).unwrap(), fs::read(&index).unwrap());
    // Reading it fails, as on a bad disk, and for root, too.
    fs::remove_file(&pack).unwrap();
    fs::create_dir(&pack).unwrap();
    check_all(&packs).unwrap();
    assert!(pack.is_dir());
    assert_eq!(fs::read(&index).unwrap(), whole);
    fs::remove_dir(&pack).unwrap();
    fs::write(&pack, content).unwrap();
    // A directory and a link to nothing in place of the index are put aside.
    fs::remove_file(&index).unwrap();
    fs::create_dir_all(index.join("x")).unwrap();
    check_all(&packs).unwrap();
    assert_eq!(fs::read(&index).unwrap(), whole);
    fs::remove_file(&index).unwrap();
    std::os::unix::fs::symlink("/absent/absent", &index).unwrap();
    check_all(&packs).unwrap();
    assert!(!index.is_symlink());
    assert_eq!(fs::read(&index).unwrap(), whole);
    // What was put aside before is in the way.
    fs::create_dir_all(index.with_extension("idx.broken").join("x")).unwrap();
    fs::write(&index, "").unwrap();
    check_all(&packs).unwrap();
    assert_eq!(fs::read(&index).unwrap(), whole);
}

#[test]
fn a_damaged_index_of_several_packs_is_put_aside() {
    let (directory, _, _index) = repository();
    let packs = directory.path().join("objects/pack");
    let joint = packs.join("multi-pack-index");
    fs::write(&joint, b"MIDX and what follows, without a hash").unwrap();
    check_all(&packs).unwrap();
    assert!(!joint.exists() && joint.with_extension("broken").exists());
    let blob = git2::Oid::hash_object(git2::ObjectType::Blob, b"name: G7\n").unwrap();
    let repository = git2::Repository::open_bare(directory.path()).unwrap();
    assert!(repository.find_blob(blob).is_ok());
}

#[test]
fn a_byte_in_the_middle_of_a_pack_is_found_before_it_is_copied() {
    let (_directory, _, index) = repository();
    damage(&index.with_extension("pack"), |it| {
        let middle = it.len() / 2;
        it[middle] ^= 1;
    });
    check(&index, Depth::Index).unwrap();
    assert!(check(&index, Depth::Everything).is_err());
}

#[test]
fn a_damaged_index_of_others_is_found_and_left_as_it_is() {
    let (directory, _repository, index) = repository();
    let objects = directory.path().join("objects");
    let found = || first_damaged(std::iter::once(objects.as_path()));
    let whole = fs::read(&index).unwrap();
    assert_eq!(found(), None);
    assert_eq!(found(), None, "once more, as it was found");
    damage(&index, |it| it[OFFSETS] = 0x7f);
    let damaged = fs::read(&index).unwrap();
    let said = found().unwrap();
    assert!(said.contains("past the end of the pack") && said.contains("git index-pack"), "{said}");
    assert_eq!(fs::read(&index).unwrap(), damaged);
    damage(&index, |it| it.truncate(500));
    let said = found().unwrap();
    assert!(said.contains("cut short") && said.contains("git index-pack"), "{said}");
    damage(&index, |it| *it = whole);
    assert_eq!(found(), None);
    // One of version 1, and one without its pack, are for libgit2 to judge.
    damage(&index, |it| it[0] = 0);
    assert_eq!(found(), None);

    let joint = objects.join("pack/multi-pack-index");
    let mut content = b"MIDX and what follows".to_vec();
    content.extend([0; HASH]);
    seal(&mut content);
    fs::write(&joint, &content).unwrap();
    assert_eq!(found(), None);
    content[5] ^= 1;
    fs::write(&joint, &content).unwrap();
    assert!(found().unwrap().contains("git multi-pack-index write"));
    fs::write(&joint, "short").unwrap();
    assert!(found().unwrap().contains("cut short"));
}

#[test]
fn the_index_of_a_damaged_pack_of_others_is_not_to_be_removed() {
    let (directory, _repository, index) = repository();
    damage(&index.with_extension("pack"), |it| it[0] = b'X');
    let objects = directory.path().join("objects");
    let said = first_damaged(std::iter::once(objects.as_path())).unwrap();
    assert!(said.contains("does not begin as one") && said.contains("restore it"), "{said}");
    assert!(!said.contains("remove"), "{said}");
}
