//! Has a daemon compare the nodes that it knows.

use anyhow::Result;

use crate::cli::client::{Document, error_kind};
use crate::client::{Client, ClientError};
use crate::http::types::{Diff, ErrorKind};
use crate::impact::{Impact, StateComparison};
use crate::model::CommitId;

/// What a daemon says of two states.
pub(super) enum DaemonReply {
    /// What the change does to its nodes, and why some were not compared.
    Compared(Impact, Vec<String>),
    /// It cannot compare them, and why.
    Declined(String),
}

/// Asks a daemon what a change does to its nodes; the facts stay there.
pub(super) fn ask(
    daemon: &Client,
    [old, new]: [CommitId; 2],
    comparison: &StateComparison<'_>,
) -> Result<DaemonReply> {
    let reply = match daemon.get_json(&format!("/controller/diff/{old}/{new}")) {
        Err(error @ ClientError::TooLarge { .. }) => {
            return Ok(DaemonReply::Declined(error.to_string()));
        }
        reply => reply?,
    };
    if let Some(
        ErrorKind::NotFound
        | ErrorKind::UnknownCommit
        | ErrorKind::InvalidCommit
        | ErrorKind::NoSnapshot
        | ErrorKind::PayloadTooLarge,
    ) = error_kind(&reply)
    {
        let reason = reply.document().err().map(|it| it.to_string()).unwrap_or_default();
        return Ok(DaemonReply::Declined(reason));
    }
    let Diff { impact, unreadable, .. } = Document::of(reply, daemon)?.read;
    let (groups, node_files) = (comparison.groups().to_vec(), comparison.node_files().to_vec());
    Ok(match Impact::read(groups, node_files, &impact) {
        Ok(impact) => DaemonReply::Compared(impact, unreadable),
        Err(error) => DaemonReply::Declined(error.to_string()),
    })
}
