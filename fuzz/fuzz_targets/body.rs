//! A body is read selectively as it is read in full, and a group of the API never panics.
#![no_main]

#[path = "../../tests/integration/snapshot/bodies.rs"]
mod bodies;

use std::cell::RefCell;

use clade::internals::snapshot::Index;
use clade::internals::validation::{Search, SourceContent, SourceFile, validate};
use libfuzzer_sys::fuzz_target;

const GROUPS: &str = r#"
name: A
rule: ["and", ["=", [fact, os, family], RedHat], ["~", [trusted, certname], web], ["<:", [fact, y], a]]
---
name: B
rule: ["or", [">", [fact, x], "5"], ["=", [trusted, extensions, pp_role], web], ["=", [fact, z, 0], b]]
"#;

fn index() -> Index {
    let content = SourceContent::Bytes(GROUPS.as_bytes().to_vec().into());
    let file = SourceFile { path: "groups/a.yaml".into(), content };
    Index::new(&validate(&[file], Search::Decisive).estate.expect("it is valid").hierarchy)
}

thread_local! {
    static INDEX: RefCell<Index> = RefCell::new(index());
}

fuzz_target!(|bytes: &[u8]| {
    INDEX.with_borrow(|index| bodies::reads_the_same(index, bytes));
    if let Ok(value) = serde_json::from_slice(bytes) {
        let _ = clade::internals::changeset::read_group(&value);
    }
    let _ = clade::internals::facts::read_facts(bytes);
});
