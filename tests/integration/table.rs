//! Tables in tests: a row that fails hides no other.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Checks every row, then fails with all that failed.
#[track_caller]
pub(crate) fn each_row<R: Debug>(rows: impl IntoIterator<Item = R>, mut check: impl FnMut(R)) {
    let (mut failed, mut number) = (Vec::new(), 0);
    for row in rows {
        number += 1;
        let shown = format!("{row:?}");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(row))) {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("panicked");
            failed.push(format!("row {number}, {shown}:\n{message}"));
        }
    }
    assert!(number > 0, "the table has no rows");
    assert!(
        failed.is_empty(),
        "{} of {number} rows failed\n\n{}",
        failed.len(),
        failed.join("\n\n")
    );
}
