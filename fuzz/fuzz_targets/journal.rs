//! Opening a journal never panics; opened once more it says the same.
#![no_main]

use std::fs;

use clade::internals::reconcile::{Event, Journal, Record, fuzz_journal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").expect("there is a disk in memory");
    fs::write(file.path(), bytes).expect("there is room");
    // A journal from the future makes opening it note when the clock was seen to be set back.
    let is_of_the_file = |record: &&Record| !matches!(record.event, Event::ClockSet { .. });
    let records = |journal: &Journal| -> Vec<Record> {
        journal.records().iter().filter(is_of_the_file).cloned().collect()
    };
    let first = records(&fuzz_journal(file.path()).expect("it can be read"));
    let second = records(&fuzz_journal(file.path()).expect("it can be read"));
    assert_eq!(first, second);
    for record in first {
        let text = serde_json::to_string(&record).expect("it is written");
        let read: Record = serde_json::from_str(&text).expect("it is read back");
        assert_eq!(read, record);
    }
});
