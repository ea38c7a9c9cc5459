//! Reading a file never panics, and its places lie within it.
#![no_main]

use clade::document::{Limits, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for fault in read(bytes, &Limits::DEFAULT).faults {
        assert!(fault.span.start <= fault.span.end);
        assert!(fault.span.end.offset as usize <= bytes.len());
    }
});
