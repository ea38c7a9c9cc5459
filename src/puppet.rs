//! Puppet code, as far as class catalogues need it: the headers of classes, and types.
//!
//! This reads code; it does not judge it. What Puppet itself would refuse may be read here, but a
//! file whose quotes or brackets do not close is a fault: classes could hide in it.

mod class;
mod data_type;
mod fault;
mod lex;
mod literal;
mod published;
mod site;
mod verdict;

pub use class::{Code, Default, Parameter, PuppetClass, read};
pub use data_type::{Argument, DataType};
pub use fault::CodeFault;
pub use published::{Published, read_published};
pub use site::{environment_settings, missing_modules};
pub use verdict::{Aliases, TextOf, TypeFault, as_written, fault_of, has_type};

#[cfg(test)]
mod tests;
