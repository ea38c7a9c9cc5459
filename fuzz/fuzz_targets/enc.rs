//! What `clade enc` hands to Puppet has classes and parameters; all else is an error.
#![no_main]

use clade::internals::document::{Limits, read};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: (bool, &str)| {
    let (is_fine, text) = input;
    let status = if is_fine { 200 } else { 500 };
    let Some(document) = clade::internals::cli::fuzz_answer(status, text) else { return };
    assert!(is_fine, "an error became an answer");
    let value: Value = serde_json::from_str(&document).unwrap_or_else(|_| {
        let contents = read(document.as_bytes(), &Limits::DEFAULT);
        contents.documents.first().expect("there is a document").to_value()
    });
    for key in ["classes", "parameters"] {
        assert!(value[key].is_object(), "{document:?}");
    }
});
