//! Small sorted maps.

use std::borrow::Borrow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// A map that is made once and read often: its entries stand in order, without room to grow.
///
/// An estate has tens of thousands of maps with a handful of entries; trees would keep several
/// times their size free.
#[derive(Clone, PartialEq)]
pub struct Table<K, V>(Box<[(K, V)]>);

impl<K: Ord, V> Table<K, V> {
    /// Returns the value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_key_value(key).map(|(_, value)| value)
    }

    /// Returns the entry of a key.
    pub fn get_key_value<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        self.0.get(self.position(key)?).map(|(key, value)| (key, value))
    }

    /// Returns how many entries stand before that of a key, if the map has it.
    pub fn position<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(it, _)| it.borrow().cmp(key)).ok()
    }

    /// Returns whether the map has a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }
}

impl<K, V> Table<K, V> {
    /// Returns how many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> Entries<'_, K, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Table<K, V> {
    /// Sorts the entries; of several with one key the last stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        Self(entries.into())
    }
}

/// The entries of a [`Table`], in order.
pub type Entries<'t, K, V> =
    std::iter::Map<std::slice::Iter<'t, (K, V)>, fn(&'t (K, V)) -> (&'t K, &'t V)>;

impl<'t, K, V> IntoIterator for &'t Table<K, V> {
    type Item = (&'t K, &'t V);
    type IntoIter = Entries<'t, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Table<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for Table<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map<K, V>(std::marker::PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Map<K, V> {
            type Value = Table<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Table<K, V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(entries.into_iter().collect())
            }
        }

        deserializer.deserialize_map(Map(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_found_and_the_last_of_a_key_stays() {
        let table: Table<String, i32> = [("b", 1), ("a", 2), ("c", 3), ("b", 4)]
            .map(|(key, it)| (key.to_owned(), it))
            .into_iter()
            .collect();
        let entries: Vec<(&str, i32)> = table.iter().map(|(key, it)| (key.as_str(), *it)).collect();
        assert_eq!(entries, [("a", 2), ("b", 4), ("c", 3)]);
        assert_eq!((table.get("b"), table.get("d"), table.len()), (Some(&4), None, 3));
        assert_eq!((table.position("c"), table.position("d")), (Some(2), None));
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<Table<String, i32>>(&text).unwrap(), table);
        assert!(Table::<String, i32>::default().is_empty());
    }
}
