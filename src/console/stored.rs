//! What the store says of nodes, on pages that are shown without it while it cannot be read.

use std::borrow::Borrow;

use super::context::PageError;
use super::markup as m;
use crate::http::types::ErrorKind;

/// Why the store says nothing now, in the words of the route.
#[derive(Clone, Debug)]
pub(super) struct UnreadableStore(pub(super) String);

/// What the store says, or why it says nothing.
pub(super) type FromStore<T> = Result<T, UnreadableStore>;

/// Tells a store that cannot be read now from other errors, which are those of the page.
pub(super) fn stored<T>(found: Result<T, PageError>) -> Result<FromStore<T>, PageError> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(PageError::Api(it))
            if matches!(it.error.kind(), Some(ErrorKind::StorageFailed | ErrorKind::Busy)) =>
        {
            Ok(Err(UnreadableStore(it.error.msg)))
        }
        Err(error) => Err(error),
    }
}

/// Writes a number that may not be known.
pub(super) fn count(number: impl Borrow<Option<u64>>) -> String {
    number.borrow().map_or_else(|| "not known".to_owned(), m::count)
}
