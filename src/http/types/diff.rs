//! What a change does to nodes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::model::CommitId;

/// What a change does to the nodes that have checked in. `schemas/diff.json` in Clade's repository has the whole schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "Map<String, Value>")]
pub struct Diff {
    /// What is compared with.
    pub base: DiffSide,
    /// What is compared.
    pub head: DiffSide,
    /// `summary`, `groups`, `node_files` and `changes`, as `impact` writes them.
    #[serde(flatten)]
    #[schema(value_type = Impact)]
    pub impact: Map<String, Value>,
    /// The nodes that were not compared, and why.
    pub unreadable: Vec<String>,
}

/// Read from a map: serde does not keep the numbers of fields that are flattened, such as `-0` and those above 64 bits.
impl TryFrom<Map<String, Value>> for Diff {
    type Error = serde_json::Error;

    fn try_from(mut impact: Map<String, Value>) -> Result<Self, Self::Error> {
        let mut take = |name| impact.shift_remove(name).unwrap_or_default();
        let [base, head, unreadable] = ["base", "head", "unreadable"].map(&mut take);
        let (base, head) = (serde_json::from_value(base)?, serde_json::from_value(head)?);
        Ok(Self { base, head, unreadable: serde_json::from_value(unreadable)?, impact })
    }
}

/// What `impact` writes of a comparison.
#[derive(ToSchema)]
#[expect(dead_code, reason = "`impact` writes these fields; this says which they are")]
pub(super) struct Impact {
    /// How many nodes change, and how.
    #[schema(value_type = Object)]
    summary: (),
    /// The groups that differ.
    #[schema(value_type = Vec<Object>)]
    groups: (),
    /// The files of nodes that differ.
    #[schema(value_type = Vec<Object>)]
    node_files: (),
    /// What changes for which nodes, and because of what.
    #[schema(value_type = Vec<Object>)]
    changes: (),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffSide {
    /// What was asked for.
    pub revision: String,
    /// The commit; null for a working tree.
    #[schema(required)]
    pub commit: Option<CommitId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_as_it_was_written() {
        let side = r#"{"revision":"a","commit":null}"#;
        let changes = "[-0,1.00,123456789012345678901234567890,1e+400]";
        let text =
            format!(r#"{{"base":{side},"head":{side},"changes":{changes},"unreadable":["n"]}}"#);
        let read: Diff = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        assert!(serde_json::from_str::<Diff>(r#"{"changes":[]}"#).is_err());
    }
}
