//! Values as numbers, to tell many apart.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hashbrown::HashMap;
use serde_json::Value;

use super::value::same;

/// Numbers different values from 0 in the order in which they come.
#[derive(Debug, Default)]
pub struct ValueNumbers<'v> {
    known: HashMap<u64, Vec<(usize, &'v Value)>>,
    count: usize,
}

impl<'v> ValueNumbers<'v> {
    /// Returns how many different values there are so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of a value: equal for values that are the [`same`].
    pub fn number(&mut self, value: &'v Value) -> usize {
        let alike = self.known.entry(fingerprint(value)).or_default();
        let number = alike.iter().find(|(_, it)| same(it, value)).map(|(number, _)| *number);
        number.unwrap_or_else(|| {
            alike.push((self.count, value));
            self.count += 1;
            self.count - 1
        })
    }
}

/// Returns a number that is the same for values that are the [`same`].
pub fn fingerprint(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| !number.is_i64()) {
            Some(number) => number.to_bits().hash(&mut hasher),
            None => number.as_i64().hash(&mut hasher),
        },
        Value::Array(elements) => {
            elements.len().hash(&mut hasher);
            for element in elements {
                fingerprint(element).hash(&mut hasher);
            }
        }
        // Their order does not matter.
        Value::Object(map) => {
            let of = |(key, value): (&String, &Value)| {
                let mut hasher = DefaultHasher::new();
                key.hash(&mut hasher);
                fingerprint(value).hash(&mut hasher);
                hasher.finish()
            };
            map.iter().map(of).fold(0, u64::wrapping_add).hash(&mut hasher);
        }
        Value::String(text) => text.hash(&mut hasher),
        Value::Bool(bool) => bool.hash(&mut hasher),
        Value::Null => {}
    }
    hasher.finish()
}
