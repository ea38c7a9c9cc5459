//! Values that differences share: the same value of ten thousand nodes is in memory once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::digest::TextDigest;
use crate::model::memory_of;

/// A value, with a digest of its text by which equal ones are found: numbers that are equal are written alike.
#[derive(Clone)]
pub struct SharedValue(Arc<DigestedValue>);

struct DigestedValue {
    value: Value,
    digest: TextDigest,
    /// About how many bytes the value takes.
    size: usize,
}

impl SharedValue {
    /// Returns what tells values apart.
    pub(super) fn digest(&self) -> TextDigest {
        self.0.digest
    }

    /// Returns about how many bytes the value takes.
    pub(super) fn size(&self) -> usize {
        self.0.size
    }
}

impl From<Value> for SharedValue {
    fn from(value: Value) -> Self {
        let (digest, size) = (TextDigest::of(&value), memory_of(&value));
        Self(Arc::new(DigestedValue { value, digest, size }))
    }
}

impl Deref for SharedValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(formatter)
    }
}

impl PartialEq for SharedValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.digest == other.0.digest
    }
}

impl<'de> Deserialize<'de> for SharedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
