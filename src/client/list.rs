//! JSON lists that are read element by element while they arrive.
//!
//! Memory is bounded by the largest element, not by the whole list.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Uses the text of an element, or says why it cannot be used.
pub type Each<'e> = &'e mut dyn FnMut(&str) -> Result<(), String>;

/// Why a list cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ListFault {
    /// One of its elements.
    Element(String),
    /// It is not a list, or does not arrive.
    Whole(String),
}

/// Reads a list and returns how many elements it has.
///
/// # Errors
///
/// Returns an error if it is not a list, an element has more bytes than `largest` or cannot be used, or
/// the text ends early.
pub(super) fn read(text: impl Read, largest: u64, each: Each<'_>) -> Result<usize, ListFault> {
    let left = Cell::new(largest);
    let mut failure = None;
    let bounded = BufReader::new(Bounded { text, left: &left, largest });
    let mut reader = serde_json::Deserializer::from_reader(bounded);
    let elements = Elements { left: &left, largest, each, failure: &mut failure };
    let count = reader.deserialize_seq(elements);
    match (failure, count.and_then(|count| reader.end().map(|()| count))) {
        (Some(failure), _) => Err(ListFault::Element(failure)),
        (None, Ok(count)) => Ok(count),
        (None, Err(error)) if error.is_io() => {
            let is_long = error.io_error_kind() == Some(io::ErrorKind::FileTooLarge);
            let reason = format!("it broke off: {}", io::Error::from(error));
            Err(if is_long { ListFault::Element(reason) } else { ListFault::Whole(reason) })
        }
        (None, Err(error)) if error.is_eof() => {
            Err(ListFault::Whole(format!("it broke off: {error}")))
        }
        (None, Err(error)) => Err(ListFault::Whole(format!("it is not a list of JSON: {error}"))),
    }
}

/// A text with a limit of bytes, which each element resets.
struct Bounded<'c, R> {
    text: R,
    left: &'c Cell<u64>,
    largest: u64,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            let message = format!("an element has more than {} bytes", self.largest);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.text.read(buffer.get_mut(..room).unwrap_or_default())?;
        self.left.set(left.saturating_sub(bytes as u64));
        Ok(bytes)
    }
}

struct Elements<'e> {
    left: &'e Cell<u64>,
    largest: u64,
    each: Each<'e>,
    failure: &'e mut Option<String>,
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = usize;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<usize, A::Error> {
        let mut count = 0;
        loop {
            self.left.set(self.largest);
            let Some(element) = list.next_element::<Box<RawValue>>()? else { return Ok(count) };
            count += 1;
            if let Err(failure) = (self.each)(element.get()) {
                *self.failure = Some(failure);
                return Err(A::Error::custom("an element cannot be used"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let each = &mut |it: &str| {
            all.push(it.to_owned());
            (it != "null").then_some(()).ok_or_else(|| "null is not wanted".to_owned())
        };
        let count = read(text.as_bytes(), 50, each).map_err(|fault| match fault {
            ListFault::Element(reason) => format!("element: {reason}"),
            ListFault::Whole(reason) => reason,
        })?;
        assert_eq!(count, all.len());
        Ok(all)
    }

    #[test]
    fn elements_are_bounded_and_the_list_is_not() {
        assert_eq!(read_all("[]"), Ok(vec![]));
        assert_eq!(read_all(r#" [1, {"a": [2]}, "x"] "#).unwrap(), ["1", r#"{"a": [2]}"#, "\"x\""]);
        let long = vec!["12345678"; 100].join(",");
        assert_eq!(read_all(&format!("[{long}]")).unwrap().len(), 100);
        let wide = format!("[1,[{long}]]");
        let said = "element: it broke off: an element has more than 50 bytes";
        assert_eq!(read_all(&wide).unwrap_err(), said);
        for (text, error) in [
            ("[1, 2", "it broke off: EOF while parsing a list"),
            ("{}", "it is not a list of JSON: invalid type: map, expected a list"),
            ("<html>", "it is not a list of JSON: expected value"),
            ("[1] 2", "it is not a list of JSON: trailing characters"),
            ("[1, null]", "element: null is not wanted"),
        ] {
            let said = read_all(text).unwrap_err();
            assert!(said.starts_with(error), "{said}");
        }
    }
}
