//! How deep a path may lead.

use crate::model::FACT_DEPTH;

/// What is wrong with a path that leads deeper than facts are read.
pub(super) const TOO_DEEP: &str = "the path has more than 200 segments behind its root";

/// What to do about it.
pub(super) const TOO_DEEP_HELP: &str =
    "facts are read 200 levels deep, so no node has a value there: shorten the path";

/// Returns whether a path with so many segments, its root among them, leads deeper than facts are read.
pub(super) fn is_too_deep(segments: usize) -> bool {
    segments > FACT_DEPTH + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_limit() {
        for text in [TOO_DEEP, TOO_DEEP_HELP] {
            assert!(text.contains(&format!(" {FACT_DEPTH} ")), "{text}");
        }
    }
}
