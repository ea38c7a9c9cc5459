//! Reading a file never panics, its places lie within it, formatting keeps what it says, and a plain file is read as the
//! parser reads it.
#![no_main]

use clade::internals::changeset::ORDER;
use clade::internals::document::{Limits, format, fuzz_plain, read};
use clade::internals::validation::{FileKind, Search, SourceContent, SourceFile, read_file, validate};
use libfuzzer_sys::fuzz_target;

const FILES: [(&str, FileKind); 5] = [
    ("clade.yaml", FileKind::Settings),
    ("groups/a.yaml", FileKind::Groups),
    ("nodes/a.yaml", FileKind::Node),
    ("environments/production.yaml", FileKind::Environment),
    ("tests/a.yaml", FileKind::Tests),
];

fuzz_target!(|bytes: &[u8]| {
    fuzz_plain(bytes, &Limits::DEFAULT);
    let contents = read(bytes, &Limits::DEFAULT);
    for fault in &contents.faults {
        assert!(fault.span.start <= fault.span.end);
        assert!(fault.span.end.offset as usize <= bytes.len());
    }
    for (path, kind) in FILES {
        let content = SourceContent::Bytes(bytes.to_vec().into());
        let file = SourceFile { path: path.into(), content };
        read_file(&file, kind);
        validate(&[file], Search::Decisive);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if !contents.faults.is_empty() {
        return;
    }
    if let Ok(formatted) = format(text, ORDER) {
        // The order of keys is the house's, and matters to nothing.
        let values = |text: &str| {
            let contents = read(text.as_bytes(), &Limits::DEFAULT);
            contents.documents.iter().map(|it| it.to_value()).collect::<Vec<_>>()
        };
        assert_eq!(values(&formatted), values(text), "{text:?} became {formatted:?}");
    }
});
