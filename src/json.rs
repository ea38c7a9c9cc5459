//! JSON text, read without making anything of what is not wanted.
//!
//! What is rare, or wrong, is declined: then the text is read by the JSON library, which alone decides what
//! is an error. What is not declined means the same in both.

mod cursor;
#[expect(clippy::inline_always, reason = "reading takes a quarter longer where these are called")]
mod marks;
#[expect(clippy::inline_always, reason = "as above")]
mod scan;

pub use cursor::Cursor;

#[cfg(test)]
mod tests;
