//! From the files of one commit to an estate, and everything that is wrong with them.
//!
//! Files are read one by one ([`read_file`], which can be kept as long as the file does not
//! change), then checked together ([`check`]). No check stops at the first finding.

mod catalogue;
mod certname;
mod checked;
mod checks;
mod class_pattern;
mod commit;
mod comparisons;
mod consequence;
mod daemon_settings;
mod dollar;
mod element;
mod evidence;
mod fault_spans;
mod file_cost;
mod file_list;
mod file_reader;
mod gather;
mod group;
mod group_keys;
mod group_places;
mod group_spans;
mod incomplete;
mod incremental;
mod individual;
mod layout;
mod lint;
mod node_estate;
mod overlap;
mod own_schemas;
mod parents;
mod partial_group;
mod places;
mod reading;
mod rule;
mod schema_bundle;
mod schema_check;
mod schema_settings;
mod search;
mod settings;
mod silence;
mod source;
mod span_list;
mod test_case;
mod tree;
mod typed_rule;
mod unread;
mod validate;
mod yaml_fault;

pub use checked::Checked;
pub use commit::{misplaced_entry, no_groups, too_large};
pub use comparisons::comparison_places;
#[cfg(test)]
pub use daemon_settings::DAEMON_SETTINGS;
pub use group::{GroupFile, ParentName};
pub use group_places::ValuePlaces;
pub use layout::{Layout, Strictness, is_yaml};
pub use node_estate::node_estate;
pub use overlap::ShownAlarms;
pub use own_schemas::OwnSchemas;
pub use reading::{FileReading, read_file, read_file_within};
pub use schema_bundle::bundle;
pub use schema_settings::SchemaSettings;
pub use search::Search;
pub use settings::{SETTINGS_KEYS, read_layout};
pub use source::{FileKind, SourceContent, SourceFile};
pub use test_case::{Expectation, TestCase};
pub use typed_rule::{RULE_BYTES, TYPED_RULE, TypedRule};
pub use unread::{unread, unread_tests};
pub use validate::{Commit, check, validate, validate_within};

#[cfg(test)]
mod tests;
