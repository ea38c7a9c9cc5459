//! How counts went over time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::CommitNodes;
use crate::overview;
use crate::store;

/// How counts went over time, as far as this daemon saw it since it started; oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trends {
    /// By which commits nodes were answered last: every five minutes, for a day.
    pub nodes_by_commit: Vec<CommitSample>,
    /// How many check-ins were written: every minute, for four hours.
    pub check_ins: Vec<CheckInSample>,
    /// How many answers of nodes changed: each of the last 14 days that has changes, from the store.
    pub changes: Vec<DayOfChanges>,
}

/// By which commits nodes were answered last, at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommitSample {
    /// When.
    pub time: Timestamp,
    /// The five commits with most nodes.
    pub commits: Vec<CommitNodes>,
    /// The nodes of all other commits.
    pub others: u64,
}

/// How many check-ins were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckInSample {
    /// The end of the interval.
    pub time: Timestamp,
    /// How many a minute.
    pub per_minute: u64,
}

/// How many answers of nodes changed on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayOfChanges {
    /// When the day began, in UTC.
    pub day: Timestamp,
    /// How many changes, first answers not counted.
    pub changes: u64,
}

impl From<&overview::Overview> for Trends {
    fn from(overview: &overview::Overview) -> Self {
        Self {
            nodes_by_commit: overview.shares().into_iter().map(CommitSample::from).collect(),
            check_ins: overview.rates().into_iter().map(CheckInSample::from).collect(),
            changes: overview.changes().into_iter().map(DayOfChanges::from).collect(),
        }
    }
}

impl From<overview::CommitShares> for CommitSample {
    fn from(overview::CommitShares { time, commits, others }: overview::CommitShares) -> Self {
        let commits = commits.into_iter();
        let commits = commits.map(|it| CommitNodes { commit: it.commit, nodes: it.nodes });
        Self { time, commits: commits.collect(), others }
    }
}

impl From<overview::CheckInRate> for CheckInSample {
    fn from(overview::CheckInRate { time, per_minute }: overview::CheckInRate) -> Self {
        Self { time, per_minute }
    }
}

impl From<store::ChangedAnswers> for DayOfChanges {
    fn from(store::ChangedAnswers { day, changes }: store::ChangedAnswers) -> Self {
        Self { day, changes }
    }
}
