//! Facts in values: what Puppet Enterprise puts into the strings of class parameters and variables.
//!
//! A string is a [`Template`]: text, and references to facts and trusted data. It is expanded last of all
//! steps, for one node; inheritance and conflicts compare what is written. The result is always one string,
//! whatever the facts say.

mod answer;
mod expand;
mod form;
mod illegal;
mod index;
mod print;
mod reference;
mod references;
mod resolve;
mod template;

pub(super) use answer::facts_in;
pub use expand::{EXPANDED_BYTES, Expander, ExpansionFault, FactSource, WithheldFacts, has_dollar};
pub use illegal::IllegalReason;
pub use reference::FactReference;
pub use references::{references_of_estate, references_of_group};
pub use template::Template;

#[cfg(test)]
mod tests;
