//! Panics of libraries that are caught where they are expected: the log does not have them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function of a library that panics on some input; returns none where it does. What it changes must not be used
/// after that.
pub fn catch<T>(call: impl FnOnce() -> T) -> Option<T> {
    EXPECTED.set(true);
    let done = catch_unwind(AssertUnwindSafe(call));
    EXPECTED.set(false);
    done.ok()
}

/// Returns whether a panic of this thread is caught by [`catch`].
pub fn is_expected() -> bool {
    EXPECTED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_expected_only_where_it_is_caught() {
        assert_eq!(catch(is_expected), Some(true));
        let caught = catch(|| std::panic::resume_unwind(Box::new(())));
        assert_eq!(caught, None::<()>);
        assert!(!is_expected());
    }
}
