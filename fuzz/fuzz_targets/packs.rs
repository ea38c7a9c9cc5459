//! Joining packs never panics, whatever lies in the directory: what is there stays.
//! The input is the length of the index in four bytes, the index, and the pack.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, rest)) = bytes.split_first_chunk::<4>() else { return };
    let length = (u32::from_le_bytes(*head) as usize).min(rest.len());
    let (index, pack) = rest.split_at(length);
    let directory = tempfile::tempdir_in("/dev/shm").expect("there is a disk in memory");
    git2::Repository::init_bare(directory.path()).expect("it is empty");
    let packs = directory.path().join("objects/pack");
    let name = packs.join("pack-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    fs::write(name.with_extension("idx"), index).expect("there is room");
    fs::write(name.with_extension("pack"), pack).expect("there is room");
    let _ = clade::internals::git::fuzz_join(directory.path());
    assert_eq!(fs::read(name.with_extension("pack")).expect("it stays"), pack);
});
