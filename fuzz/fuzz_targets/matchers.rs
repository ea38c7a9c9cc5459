//! The two matchers agree wherever both may be asked: an empty look-ahead behind the pattern
//! changes no answer, but leaves only the backtracker.
#![no_main]

use clade::internals::java_regex::Pattern;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str)| {
    let (text, subject) = input;
    let (Ok(linear), Ok(backtracked)) = (Pattern::parse(text), Pattern::parse(&format!("(?:{text})(?=)"))) else {
        return;
    };
    if let (Ok(linear), Ok(backtracked)) = (linear.find(subject), backtracked.find(subject)) {
        assert_eq!(linear, backtracked, "{text:?} in {subject:?}");
    }
});
