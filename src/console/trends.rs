//! How counts went over time, as graphs and as tables.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::chart::{areas, bars, spread};
use super::markup::{Markup, count};
use crate::http::types::{CommitNodes, CommitSample, Trends};
use crate::model::CommitId;

/// How many commits have an area of their own.
const COMMITS: usize = 5;

/// How many rows a table beside a graph has at most.
const ROWS: usize = 24;

/// The graphs of the first page.
#[derive(Debug)]
pub(super) struct TrendGraphs {
    pub(super) shares: SharesGraph,
    pub(super) check_ins: CountsGraph,
    pub(super) changes: CountsGraph,
}

/// Nodes by the commit that answered them last.
#[derive(Debug)]
pub(super) struct SharesGraph {
    pub(super) drawing: Markup,
    /// The commits that have an area, from below.
    pub(super) commits: Vec<CommitId>,
    pub(super) rows: Vec<SharesRow>,
}

/// The nodes of each of the commits, and of all others, at a time.
#[derive(Debug)]
pub(super) struct SharesRow {
    pub(super) time: Timestamp,
    pub(super) nodes: Vec<String>,
}

/// One number for each interval.
#[derive(Debug)]
pub(super) struct CountsGraph {
    pub(super) drawing: Markup,
    pub(super) most: String,
    pub(super) rows: Vec<(Timestamp, String)>,
}

impl TrendGraphs {
    /// Draws what was seen; the nodes are shown as they are now, too.
    pub(super) fn of(trends: Trends, now: Timestamp, commits: &[CommitNodes]) -> Self {
        let mut samples = trends.nodes_by_commit;
        samples.push(CommitSample { time: now, commits: commits.to_vec(), others: 0 });
        let changes: Vec<_> = trends.changes.iter().map(|it| (it.day, it.changes)).collect();
        let check_ins: Vec<_> =
            trends.check_ins.iter().map(|it| (it.time, it.per_minute)).collect();
        Self {
            shares: SharesGraph::of(&samples),
            check_ins: CountsGraph::of(&check_ins),
            changes: CountsGraph::of(&changes),
        }
    }
}

impl SharesGraph {
    fn of(samples: &[CommitSample]) -> Self {
        let mut most: BTreeMap<CommitId, u64> = BTreeMap::new();
        for CommitNodes { commit, nodes } in samples.iter().flat_map(|it| &it.commits) {
            let known = most.entry(*commit).or_default();
            *known = (*known).max(*nodes);
        }
        let mut commits: Vec<(CommitId, u64)> = most.into_iter().collect();
        commits.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
        let commits: Vec<CommitId> = commits.into_iter().take(COMMITS).map(|it| it.0).collect();
        let point = |sample: &CommitSample| -> Vec<u64> {
            let of = |commit: &CommitId| -> u64 {
                sample.commits.iter().filter(|it| it.commit == *commit).map(|it| it.nodes).sum()
            };
            let others = sample.commits.iter().filter(|it| !commits.contains(&it.commit));
            let others = others.map(|it| it.nodes).sum::<u64>() + sample.others;
            commits.iter().map(of).chain([others]).collect()
        };
        let points: Vec<Vec<u64>> = samples.iter().map(point).collect();
        let row = |it: &CommitSample| SharesRow {
            time: it.time,
            nodes: point(it).into_iter().map(count).collect(),
        };
        let rows = spread(samples, ROWS).into_iter().map(row).collect();
        Self { drawing: areas(&points), rows, commits }
    }
}

impl CountsGraph {
    fn of(counts: &[(Timestamp, u64)]) -> Self {
        let values: Vec<u64> = counts.iter().map(|it| it.1).collect();
        let most = values.iter().copied().max().unwrap_or_default();
        let rows = spread(counts, ROWS).into_iter().map(|&(time, it)| (time, count(it)));
        Self { drawing: bars(&values), most: count(most), rows: rows.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u8) -> CommitId {
        format!("{number:040x}").parse().unwrap()
    }

    #[test]
    fn the_commits_with_most_nodes_have_areas_and_all_nodes_are_counted() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let nodes = |number, nodes| CommitNodes { commit: commit(number), nodes };
        let before = CommitSample {
            time: at(0),
            commits: (1..=4).map(|it| nodes(it, 10)).collect(),
            others: 2,
        };
        let trends = Trends { nodes_by_commit: vec![before], ..Trends::default() };
        let now: Vec<CommitNodes> = (4..=9).map(|it| nodes(it, u64::from(it))).collect();
        let graph = TrendGraphs::of(trends, at(9), &now).shares;
        assert_eq!(graph.commits.len(), COMMITS);
        let sum = |it: &SharesRow| it.nodes.iter().map(|it| it.parse::<u64>().unwrap()).sum();
        let sums: Vec<u64> = graph.rows.iter().map(sum).collect();
        assert_eq!(sums, [42, 4 + 5 + 6 + 7 + 8 + 9]);
        assert!(graph.rows.iter().all(|it| it.nodes.len() == COMMITS + 1));
    }
}
