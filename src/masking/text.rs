//! Masking JSON text.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::masks::{DataRoot, Masks, OpenPaths, RootMasks};
use crate::json::Cursor;
use crate::model::MASKED;

impl Masks {
    /// Returns facts or trusted data, the text of an object, as they may be stored and shown.
    pub fn text<'t>(&self, root: DataRoot, text: &'t str) -> Cow<'t, str> {
        let masks = self.root(root);
        let place = masks.start();
        if masks.is_clear(&place) {
            return Cow::Borrowed(text);
        }
        let mut rewriter =
            Rewriter { masks, cursor: Cursor::new(text), text, written: String::new(), copied: 0 };
        match rewriter.object(&place) {
            Some(()) if rewriter.cursor.is_at_end() => rewriter.finish(),
            _ => Cow::Owned(self.text_of_value(root, text)),
        }
    }

    /// Masks a text that the cursor declines.
    fn text_of_value(&self, root: DataRoot, text: &str) -> String {
        // What cannot be read cannot be masked, and must not be stored.
        let mut map: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        self.mask_map(root, &mut map, &mut |_| {});
        Value::Object(map).to_string()
    }
}

/// Copies a text, with what is masked replaced.
struct Rewriter<'m, 't> {
    masks: &'m RootMasks,
    cursor: Cursor<'t>,
    text: &'t str,
    written: String,
    /// How much of the text is written.
    copied: usize,
}

impl<'t> Rewriter<'_, 't> {
    /// Goes through an object; `None` declines the text.
    fn object(&mut self, place: &OpenPaths<'_>) -> Option<()> {
        let mut more = self.cursor.open_object()?;
        while more {
            let key = self.cursor.key()?;
            match self.masks.enter(place, key) {
                Some(place) => self.value(&place)?,
                None => self.mask()?,
            }
            more = self.cursor.next_entry()?;
        }
        Some(())
    }

    fn value(&mut self, place: &OpenPaths<'_>) -> Option<()> {
        match self.cursor.peek()? {
            b'{' if !self.masks.is_clear(place) => self.object(place),
            b'[' if !self.masks.is_clear(place) => {
                let mut more = self.cursor.open_list()?;
                while more {
                    self.value(place)?;
                    more = self.cursor.next_element()?;
                }
                Some(())
            }
            _ => self.cursor.skip(),
        }
    }

    /// Replaces the value that follows.
    fn mask(&mut self) -> Option<()> {
        let start = self.cursor.position();
        let is_null = self.cursor.peek()? == b'n';
        self.cursor.skip()?;
        if !is_null {
            self.written.push_str(self.text.get(self.copied..start)?);
            self.written.push('"');
            self.written.push_str(MASKED);
            self.written.push('"');
            self.copied = self.cursor.position();
        }
        Some(())
    }

    fn finish(mut self) -> Cow<'t, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.written.push_str(self.text.get(self.copied..).unwrap_or_default());
        Cow::Owned(self.written)
    }
}
