//! Reading a pattern never panics, whatever it is; nor does looking for it.
#![no_main]

use clade::internals::java_regex::{Pattern, suspicions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (pattern, subject) = input;
    suspicions(pattern);
    if let Ok(pattern) = Pattern::parse(pattern) {
        let _ = pattern.find(subject);
    }
});
