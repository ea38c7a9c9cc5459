//! Stored nodes on their way to an examination.

use crate::mentioned::MentionedPaths;
use crate::model::{Node, Value};
use crate::store::StoreError;

/// A node of the fleet, with at least the facts and trusted data that rules mention.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::http) enum FleetNode {
    /// It has facts.
    Known(Node),
    /// It has checked in without facts.
    Bare(Node),
}

/// A stored node.
pub(in crate::http) trait FleetRow: Send {
    /// Reads the node, on any thread; none if it was forgotten.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be examined.
    fn decode(self, paths: &MentionedPaths) -> Result<Option<FleetNode>, StoreError>;
}

/// A node that has nothing but what is mentioned.
pub(super) type RestrictedRow = Result<FleetNode, StoreError>;

impl FleetRow for RestrictedRow {
    fn decode(self, _: &MentionedPaths) -> Result<Option<FleetNode>, StoreError> {
        self.map(Some)
    }
}

/// Takes a batch of rows.
pub(in crate::http) type UseRows<'u, R> = &'u mut dyn FnMut(Vec<R>);

/// How many rows are examined together at most.
const ROWS: usize = 512;

/// How many bytes they take together; one row may take more.
const BYTES: usize = 8 << 20;

/// What one value takes beside its text, in bytes.
const VALUE: usize = 300;

/// Restricted rows that wait until there are enough of them.
pub(super) struct RowBatch<'u> {
    rows: Vec<RestrictedRow>,
    /// About how many bytes the nodes take.
    bytes: usize,
    each: UseRows<'u, RestrictedRow>,
}

impl<'u> RowBatch<'u> {
    pub(super) fn new(each: UseRows<'u, RestrictedRow>) -> Self {
        Self { rows: Vec::new(), bytes: 0, each }
    }

    pub(super) fn push(&mut self, row: RestrictedRow) {
        if let Ok(FleetNode::Known(node) | FleetNode::Bare(node)) = &row {
            let values = node.fact.values().chain(node.trusted.values());
            self.bytes += values.map(bytes_of).sum::<usize>();
        }
        self.rows.push(row);
        if self.rows.len() == ROWS || self.bytes > BYTES {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        (self.each)(std::mem::take(&mut self.rows));
        self.bytes = 0;
    }
}

/// Returns about how many bytes a value takes.
fn bytes_of(value: &Value) -> usize {
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(bytes_of).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| key.len() + bytes_of(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
