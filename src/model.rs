//! Names, ids, values, nodes and groups: the words of the domain as types.
//!
//! A value of these types is valid once it exists; nothing downstream checks
//! again. Values of parameters, variables, facts and config data are any JSON
//! ([`Value`]); numbers keep the digits they were written with.

mod budget;
mod commit;
mod group;
mod hex;
mod id;
mod interpolation;
mod json_values;
mod name;
mod node;
mod number;
mod rule;
mod sent;
mod shared;
mod shared_list;
mod table;
mod url_path;
mod value;
mod value_numbers;
mod withheld;

pub use budget::{Budget, BudgetItem, BudgetOverride, Counts, Exceeded, Meter, Room, Weight};
pub use commit::{BlobId, CommitId};
pub use group::{Classes, Group, Individual};
pub(crate) use group::{shared_classes, shared_variables};
pub use hex::hex;
pub use id::{GroupId, GroupIdError};
pub use interpolation::Interpolation;
pub use json_values::{NODE_VALUES, has_more_values, map_memory, memory_of, value_memory};
pub use name::{
    AGENT_SPECIFIED, ClassName, EnvironmentName, GroupName, Key, NameError, VariableName,
    check_parameter_name, check_settable_variable,
};
pub use node::{CERTNAME, FACT_DEPTH, Node};
pub use number::Decimal;
pub(crate) use number::Positions;
pub use rule::{Comparison, Condition, NumberComparison, Order, Path, Segment, Test};
pub(crate) use rule::{is_bare_segment, write_quoted};
pub use sent::{has_mark, node_as_sent, remove_marks, texts_as_sent};
pub use serde_json::{Map, Value};
pub(crate) use shared::{shared_path, shared_text};
pub use shared_list::SharedList;
pub use table::Table;
pub use url_path::{URL_PATH, URL_SEGMENT};
pub use value::{has_exponent, is_written_as, same, text, type_name};
pub use value_numbers::{ValueNumbers, fingerprint};
pub use withheld::{
    LEFT_OUT, MASKED, STORED_PATHS, is_left_out, is_masked, is_stored, is_stored_whole,
    may_be_left_out, stored_of, whole_path,
};
