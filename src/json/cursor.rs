//! A place in a JSON text, which only goes forward.

use std::borrow::Cow;

use serde_json::Value;

use super::marks::SpecialBytes;
use super::scan::{self, DEPTH, Quoted};

/// A place in a JSON text. Each step returns `None` if it declines the text; then no other may follow.
#[derive(Clone, Debug)]
pub struct Cursor<'b> {
    text: &'b str,
    at: usize,
    depth: u32,
    special: SpecialBytes,
}

impl<'b> Cursor<'b> {
    /// Returns the start of a text.
    pub fn new(text: &'b str) -> Self {
        Self { text, at: 0, depth: 0, special: SpecialBytes::first(text.as_bytes()) }
    }

    /// Returns how many bytes stand before the place.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the text from a position up to the place.
    pub fn since(&self, start: usize) -> Option<&'b str> {
        self.text.get(start..self.at)
    }

    /// Returns the byte at the place.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Returns whether nothing but blanks follows.
    pub fn is_at_end(&self) -> bool {
        scan::blanks(self.text.as_bytes(), self.at) == self.text.len()
    }

    #[inline]
    fn blanks(&mut self) {
        self.at = scan::blanks(self.text.as_bytes(), self.at);
    }

    /// Opens the object that follows; returns whether it has an entry.
    #[inline]
    pub fn open_object(&mut self) -> Option<bool> {
        self.blanks();
        if self.peek()? != b'{' {
            return None;
        }
        self.enter(b'}')
    }

    /// Opens the list at the place; returns whether it has an element.
    #[inline]
    pub fn open_list(&mut self) -> Option<bool> {
        self.enter(b']')
    }

    /// Goes behind the bracket that opens; returns whether something is in there.
    #[inline]
    fn enter(&mut self, end: u8) -> Option<bool> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        self.blanks();
        if self.peek()? == end {
            self.at += 1;
            self.depth -= 1;
            return Some(false);
        }
        Some(true)
    }

    /// Goes on behind an entry of an object; returns whether there is another.
    #[inline]
    pub fn next_entry(&mut self) -> Option<bool> {
        self.next(b'}')
    }

    /// Goes on behind an element of a list; returns whether there is another.
    #[inline]
    pub fn next_element(&mut self) -> Option<bool> {
        self.next(b']')
    }

    #[inline]
    fn next(&mut self, end: u8) -> Option<bool> {
        self.blanks();
        let found = self.peek()?;
        self.at += 1;
        if found == b',' {
            self.blanks();
            return Some(true);
        }
        self.depth -= 1;
        (found == end).then_some(false)
    }

    /// Takes a key, and goes to its value.
    #[inline]
    pub fn key(&mut self) -> Option<&'b str> {
        let start = self.at + 1;
        let (end, value) = scan::key(self.text.as_bytes(), self.at, &mut self.special)?;
        self.at = value;
        self.text.get(start..end)
    }

    /// Takes a string.
    #[inline]
    pub fn string(&mut self) -> Option<Cow<'b, str>> {
        let start = self.at;
        let Quoted { end, is_plain } =
            scan::string(self.text.as_bytes(), start, &mut self.special)?;
        self.at = end + 1;
        if is_plain {
            return self.text.get(start + 1..end).map(Cow::Borrowed);
        }
        // Only with its quotes it is a value.
        let text: String = serde_json::from_str(self.text.get(start..=end)?).ok()?;
        Some(Cow::Owned(text))
    }

    /// Takes `null`.
    pub fn null(&mut self) -> Option<()> {
        self.at = scan::word(self.text.as_bytes(), self.at, b"null")?;
        Some(())
    }

    /// Skips a value.
    #[inline]
    pub fn skip(&mut self) -> Option<()> {
        self.at = scan::value(self.text.as_bytes(), self.at, self.depth, &mut self.special)?;
        Some(())
    }

    /// Takes a value, as the JSON library reads it.
    pub fn value(&mut self) -> Option<Value> {
        let start = self.at;
        self.skip()?;
        self.value_since(start)
    }

    /// Returns the value from a position up to the place, as the JSON library reads it.
    pub fn value_since(&self, start: usize) -> Option<Value> {
        serde_json::from_str(self.since(start)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn steps_of_all_kinds_go_on_where_the_one_before_ended() {
        for length in 0..150 {
            let (long, escaped) = ("x".repeat(length), format!("{}\"", "y".repeat(length)));
            let expected = json!({
                long.as_str(): long, "whole": [escaped, {"in": long}], "escaped": escaped, "skipped": {"in": escaped},
                "last": "z",
            });
            for text in [expected.to_string(), format!("{expected:#}")] {
                let mut cursor = Cursor::new(&text);
                let mut seen = Map::new();
                let mut more = cursor.open_object().unwrap();
                while more {
                    let key = cursor.key().unwrap().to_owned();
                    let start = cursor.position();
                    let value = match key.as_str() {
                        "whole" => cursor.value().unwrap(),
                        "skipped" => {
                            cursor.skip().unwrap();
                            cursor.value_since(start).unwrap()
                        }
                        _ => cursor.string().unwrap().into(),
                    };
                    seen.insert(key, value);
                    more = cursor.next_entry().unwrap();
                }
                assert!(cursor.is_at_end());
                assert_eq!(Value::Object(seen), expected, "{text}");
            }
        }
    }
}
