//! Which values of facts and trusted data are neither stored, shown nor logged.
//!
//! A [`PathMask`] is the path of values; [`Masks`] are those of a daemon. What they cover is replaced by
//! [`MASKED`](crate::model::MASKED), of values and of JSON text alike; a node keeps its real values while it
//! is classified.

mod glob;
mod mask;
mod masks;
mod stored;
mod text;
mod usual;
mod value;

pub use mask::MaskSetting;
pub use masks::{DataRoot, Masks};
pub use stored::{CommitForm, StoredExtent, StoredForm};

#[cfg(test)]
mod tests;
