//! What a URL has as it is: the unreserved characters of RFC 3986.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// What is escaped in one part of a path.
pub const URL_SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What is escaped in a path: its parts, the slashes between them kept.
pub const URL_PATH: &AsciiSet = &URL_SEGMENT.remove(b'/');
