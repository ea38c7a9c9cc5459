//! What is compiled from made files, in the process of the bench.

use std::sync::Arc;

use clade::internals::hierarchy::Estate;
use clade::internals::model::{Budget, Meter};
use clade::internals::snapshot::Snapshot;
use clade::internals::validation::{Search, SourceContent, SourceFile, validate_within};

/// Validates files within a budget.
pub fn estate(files: Vec<(String, String)>, budget: Budget) -> Estate {
    let files: Vec<SourceFile> = files
        .into_iter()
        .map(|(path, text)| SourceFile {
            path: path.into(),
            content: SourceContent::Bytes(text.into_bytes().into()),
        })
        .collect();
    validate_within(&files, Search::Decisive, &Arc::new(Meter::new(budget))).estate.unwrap()
}

/// Compiles an estate.
pub fn snapshot(estate: Estate) -> Snapshot {
    let commit = "0123456789012345678901234567890123456789".parse().unwrap();
    Snapshot::new(commit, estate, Arc::default(), Vec::new())
}
