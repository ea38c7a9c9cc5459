//! Object ids of git, apart from each other and from other text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::hex::digits;

/// A string is not a full object id of git.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a full object id: 40 lowercase hexadecimal digits")]
pub struct ObjectIdError(String);

macro_rules! object_id {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 20]);

        impl $name {
            /// Wraps the 20 bytes of an id.
            pub fn from_bytes(bytes: [u8; 20]) -> Self {
                Self(bytes)
            }

            /// Returns the 20 bytes of the id.
            pub fn as_bytes(&self) -> &[u8; 20] {
                &self.0
            }

            /// Returns the id as it is written: 40 lowercase hexadecimal digits.
            pub fn to_hex(self) -> [u8; 40] {
                hex(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                std::str::from_utf8(&self.to_hex()).map_or(Err(fmt::Error), |it| f.pad(it))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ObjectIdError;

            fn from_str(text: &str) -> Result<Self, ObjectIdError> {
                parse(text).map(Self).ok_or_else(|| ObjectIdError(text.to_owned()))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

object_id! {
    /// The full id of a commit.
    CommitId
}
object_id! {
    /// The full id of a file's content in git.
    BlobId
}

fn hex(bytes: [u8; 20]) -> [u8; 40] {
    let mut text = [0; 40];
    for (pair, byte) in text.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = digits(byte);
    }
    text
}

fn parse(text: &str) -> Option<[u8; 20]> {
    if text.len() != 40 {
        return None;
    }
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

fn digit(ascii: u8) -> Option<u8> {
    match ascii {
        b'0'..=b'9' => Some(ascii - b'0'),
        b'a'..=b'f' => Some(ascii - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_full_ids_only() {
        let text = "132f4e71d0c5e0f6b8a79d3c4e5f60718293a4b5";
        let id: CommitId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        for wrong in ["", "132f4e71", &text.to_uppercase(), &format!("{text}0"), &"é".repeat(20)] {
            assert!(wrong.parse::<CommitId>().is_err(), "{wrong}");
        }
    }
}
