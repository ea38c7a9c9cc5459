//! Keeping what is mentioned of JSON text.

use serde_json::{Map, Value};

use super::tree::{KeptElements, PathTree, Want};
use crate::json::Cursor;
use crate::model::{MASKED, STORED_PATHS};

/// What is kept of a value; the outer `None` declines the text.
type KeptValue = Option<Option<Value>>;

impl PathTree {
    pub(super) fn keep_text(&self, text: &str) -> Result<Map<String, Value>, serde_json::Error> {
        if let Some(kept) = self.scan(text) {
            return Ok(kept);
        }
        let whole: Map<String, Value> = serde_json::from_str(text)?;
        Ok(self.keep_map(&whole))
    }

    /// Returns what is kept of an object; `None` if the text must be read in full.
    fn scan(&self, text: &str) -> Option<Map<String, Value>> {
        let mut cursor = Cursor::new(text);
        let kept = self.scan_object(&mut cursor)?;
        cursor.is_at_end().then_some(kept)
    }

    fn scan_object(&self, cursor: &mut Cursor<'_>) -> Option<Map<String, Value>> {
        let mut found: Vec<Option<Value>> = vec![None; self.keys.len()];
        let mut more = cursor.open_object()?;
        while more {
            let key = cursor.key()?;
            if key == STORED_PATHS {
                return None;
            }
            let key = self.key(key);
            let entry = key.and_then(|at| Some((found.get_mut(at)?, &self.keys.get(at)?.1)));
            match entry {
                // The last of several entries of one key stays.
                Some((found, tree)) => *found = tree.scan_value(cursor, tree.want)?,
                None => cursor.skip()?,
            }
            more = cursor.next_entry()?;
        }
        let kept = self.keys.iter().zip(found);
        Some(kept.filter_map(|((key, _), it)| Some((key.as_ref().to_owned(), it?))).collect())
    }

    fn scan_value(&self, cursor: &mut Cursor<'_>, want: Want) -> KeptValue {
        Some(match cursor.peek()? {
            _ if want == Want::Whole => Some(cursor.value()?).filter(|it| !it.is_null()),
            b'"' if want != Want::Below => Some(Value::String(cursor.string()?.into_owned())),
            b'{' => want.object(self.scan_object(cursor)?),
            b'[' => self.scan_list(cursor, want)?,
            // Else it would look as if nothing was there.
            b'"' => (cursor.string()? == MASKED).then(|| MASKED.into()),
            b'n' => {
                cursor.skip()?;
                None
            }
            _ if want == Want::Below => {
                cursor.skip()?;
                None
            }
            _ => Some(cursor.value()?),
        })
    }

    fn scan_list(&self, cursor: &mut Cursor<'_>, want: Want) -> KeptValue {
        let mut kept = KeptElements::default();
        let mut wanted = self.each_element(want);
        let mut more = cursor.open_list()?;
        while more {
            let element = match wanted.next().flatten() {
                Some((tree, want)) => tree.scan_value(cursor, want)?,
                None => {
                    cursor.skip()?;
                    None
                }
            };
            kept.pass(element);
            more = cursor.next_element()?;
        }
        Some(kept.list(want))
    }
}
