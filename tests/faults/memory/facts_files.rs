//! Nodes whose facts are in large files of `--facts-dir`, asked about at once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::process_peak;
use crate::hub::Hub;
use crate::program::Daemon;

/// How many nodes have a file of each form.
const NODES: usize = 16;

/// How many facts a file has.
const FACTS: usize = 30_000;

/// A daemon that reads facts files, with the files of many nodes.
pub(super) struct FactsFiles {
    daemon: Daemon,
    _hub: Hub,
    _files: tempfile::TempDir,
}

impl FactsFiles {
    pub(super) fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let (mut json, mut yaml) = ("{\"n\":0".to_owned(), "n: 0\n".to_owned());
        for number in 0..FACTS {
            write!(json, ",\"fact_{number}\":{{\"a\":\"text\"}}").unwrap();
            writeln!(yaml, "fact_{number}:\n  a: text").unwrap();
        }
        json.push('}');
        for node in 0..NODES {
            std::fs::write(files.path().join(format!("json{node}.json")), &json).unwrap();
            std::fs::write(files.path().join(format!("yaml{node}.yaml")), &yaml).unwrap();
        }
        let group = "name: Asked\nrule: 'fact.fact_7.a = text'\nclasses: {asked: {}}\n";
        let hub = Hub::new(&[("groups/asked.yaml", group)]);
        let daemon = hub.serve(&["--facts-dir", files.path().to_str().unwrap()]);
        daemon.wait_until("a commit answers", |it| it.get("/readyz").status == 200);
        Self { daemon, _hub: hub, _files: files }
    }

    /// Asks for all nodes at once and returns how many answers there are of each status; those with 200 are right.
    pub(super) fn ask(&self) -> BTreeMap<u16, usize> {
        let names =
            ["json", "yaml"].into_iter().flat_map(|form| (0..NODES).map(move |it| (form, it)));
        let daemon = &self.daemon;
        let mut statuses = BTreeMap::new();
        std::thread::scope(|scope| {
            let asked: Vec<_> = names
                .map(|(form, node)| scope.spawn(move || daemon.get(&format!("/enc/{form}{node}"))))
                .collect();
            for answer in asked.into_iter().map(|it| it.join().unwrap()) {
                let is_right = answer.status == 503 || answer.body.contains("asked");
                assert!(is_right, "{}: {}", answer.status, answer.body);
                *statuses.entry(answer.status).or_default() += 1;
            }
        });
        statuses
    }

    /// Returns the peak memory of the daemon in MiB.
    pub(super) fn peak_mib(&self) -> u64 {
        process_peak(self.daemon.id())
    }
}
