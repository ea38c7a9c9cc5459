//! Reading a rule never panics; what is read is written and read back the same.
#![no_main]

use clade::rule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(condition) = rule::read_console(text) {
        let again = rule::read_console(&condition.to_string()).expect("what is written is read");
        assert_eq!(rule::to_value(&again), rule::to_value(&condition));
    }
});
