//! What a difference is written from, in every format.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::side::LoadedSide;
use crate::cli::output::DataFormat;
use crate::document::write_indented;
use crate::impact::{Impact, REASONS, ReportEntry};

/// A difference, with the names of what is compared.
pub(super) struct DiffReport<'a> {
    pub(super) base: &'a LoadedSide,
    pub(super) head: &'a LoadedSide,
    pub(super) impact: &'a Impact,
    /// The facts files that cannot be read.
    pub(super) unreadable: &'a [String],
}

/// The document of `--format json`: written piece by piece, since it may be larger than the memory.
impl Serialize for DiffReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            base: Value,
            head: Value,
            #[serde(flatten)]
            impact: &'a Impact,
            unreadable: &'a [String],
        }
        let Self { base, head, impact, unreadable } = self;
        let (base, head) = (base.to_value(), head.to_value());
        Document { base, head, impact, unreadable }.serialize(serializer)
    }
}

impl DiffReport<'_> {
    /// Writes the document of `--format yaml`, piece by piece as well.
    pub(super) fn write_yaml(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let Self { base, head, impact, unreadable } = self;
        let mut write = |fields: &Value| to.write_all(DataFormat::Yaml.write(fields).as_bytes());
        write(&json!({
            "base": base.to_value(),
            "head": head.to_value(),
            "summary": impact.summary(),
            "groups": impact.groups_to_value(),
            "node_files": impact.node_files_to_value(),
        }))?;
        if impact.entries.is_empty() {
            return write(&json!({"changes": [], "unreadable": unreadable}));
        }
        to.write_all(b"changes:\n")?;
        for entry in &impact.entries {
            self.write_yaml_entry(entry, to)?;
        }
        to.write_all(DataFormat::Yaml.write(&json!({"unreadable": unreadable})).as_bytes())
    }

    fn write_yaml_entry(&self, entry: &ReportEntry, to: &mut dyn io::Write) -> io::Result<()> {
        let fields = Value::Object(self.impact.entry_to_fields(entry));
        write!(to, "  -\n{}    {REASONS}:\n", write_indented(&fields, 4))?;
        for reason in self.impact.reasons(entry) {
            write!(to, "      -\n{}", write_indented(&reason, 8))?;
        }
        Ok(())
    }
}
