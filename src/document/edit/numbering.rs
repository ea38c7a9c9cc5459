//! Values as numbers, so that long lists are compared quickly.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::same::{float_bits, same};

/// A value that is equal to those that read the same.
struct SameValue<'v>(&'v Value);

impl PartialEq for SameValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(self.0, other.0)
    }
}

impl Eq for SameValue<'_> {}

impl Hash for SameValue<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self.0 {
            Value::Null => 0_u8.hash(hasher),
            Value::Bool(it) => it.hash(hasher),
            Value::Number(number) => match float_bits(number.as_str()) {
                Some(bits) => bits.hash(hasher),
                None => number.as_str().hash(hasher),
            },
            Value::String(text) => text.hash(hasher),
            Value::Array(elements) => {
                elements.len().hash(hasher);
                for it in elements {
                    Self::of(it).hash(hasher);
                }
            }
            Value::Object(fields) => {
                // The order of keys does not matter.
                let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, it) in entries {
                    (key, Self::of(it)).hash(hasher);
                }
            }
        }
    }
}

impl<'v> SameValue<'v> {
    const fn of(value: &'v Value) -> Self {
        Self(value)
    }
}

/// Returns a number for each element of two lists: values that read the same have the same one.
pub(super) fn numbered(old: &[Value], new: &[Value]) -> (Vec<usize>, Vec<usize>) {
    let mut numbers = HashMap::new();
    let mut number = |value| {
        let next = numbers.len();
        *numbers.entry(SameValue(value)).or_insert(next)
    };
    (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_str};

    use super::*;

    #[test]
    fn values_that_read_the_same_have_one_number() {
        let list: Vec<Value> = from_str(
            r#"[1, 1.0, 1.00, "1", 1e2, 100.0, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}, [1.0], [1.00], null]"#,
        )
        .unwrap();
        let (found, _) = numbered(&list, &[]);
        assert_eq!(found, [0, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 7]);
    }
}
