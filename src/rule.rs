//! The rule language: grammar, evaluation, explanation, translation.
//!
//! A rule is written in the array form of the classifier API or in the console's
//! notation; both are read into one [`Condition`](crate::model::Condition).

mod array;
mod array_form;
mod comparison;
mod console;
mod depth;
mod error;
mod evaluate;
mod exclusion;
mod explain;
mod fault;
mod lookup;
mod pins;
mod place_tree;
mod puppetdb;
mod satisfy;
mod search;
mod source;

pub use array::{read, read_within};
pub use array_form::{array_levels, to_value};
pub(crate) use console::opens_foreign_quote;
pub use console::{comparison_ranges, read_console, to_console};
pub use error::EvaluationError;
pub use evaluate::{evaluate, holds, search_steps};
pub(crate) use evaluate::{found, stands};
pub use exclusion::{Claim, Prover, decide_by_name};
pub use explain::{Explained, ExplainedForm, count_explained, explain};
pub use fault::{RuleFault, RuleFaultKind};
pub use lookup::{Actual, actual, lookup};
pub use pins::{
    is_with_more_pins, joined_pins, parts, pin_of, split_pins, split_terms, with_pins,
    without_names,
};
pub use puppetdb::{QueryFormat, to_covering_query, to_query, to_whole_query};
pub use satisfy::{Formula, Outline, Satisfiability, Solver};
pub use search::{RuleMatches, RuleSearch, SearchRange};
pub use source::{RulePart, RuleSource};
