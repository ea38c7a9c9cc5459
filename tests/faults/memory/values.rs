//! Comparisons of commits that give nodes other values, which are large.

use std::time::Duration;

use serde_json::json;

use super::client::{Counts, Reading, Stop, ask, until_admitted};
use super::process_peak;
use crate::hub::Hub;
use crate::program::Daemon;

/// How many groups have a text; a node has each of them or not.
const GROUPS: usize = 12;

const NODES: usize = 400;

/// What a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    Nothing,
    /// The texts of groups.
    Texts,
    /// What each node's own fact is put into.
    Facts,
}

fn files(changed: Changed) -> Vec<(String, String)> {
    let text = if changed == Changed::Texts { "new" } else { "old" };
    let own = if changed == Changed::Facts { "new " } else { "" };
    let texts = (0..GROUPS).map(|number| {
        let value = format!("{text}{number} {}", "x".repeat(20_000));
        let rule = format!("groups ~ \",{number},\"");
        let group = json!({"name": format!("G{number}"), "rule": rule, "variables": {format!("v{number}"): value}});
        (format!("groups/g{number}.yaml"), group.to_string())
    });
    let note = json!({
        "name": "Notes", "rule": "groups ~ \",\"",
        "variables": {"note": format!("{own}${{note}}")},
    });
    let more = [
        ("groups/notes.yaml".to_owned(), note.to_string()),
        ("clade.yaml".to_owned(), "interpolate: true\n".to_owned()),
    ];
    texts.chain(more).collect()
}

fn commit(hub: &Hub, changed: Changed) {
    let files = files(changed);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    hub.commit("Change", &files);
}

/// A daemon with a fleet, and the commits `HEAD~3` to `HEAD`.
pub(super) struct LargeValues {
    daemon: Daemon,
    _hub: Hub,
}

impl LargeValues {
    pub(super) fn new() -> Self {
        let hub = Hub::new(&[]);
        for changed in [Changed::Nothing, Changed::Texts, Changed::Nothing, Changed::Facts] {
            commit(&hub, changed);
        }
        let daemon = hub.serve(&[]);
        daemon.wait_until("a commit answers", |it| it.get("/readyz").status == 200);
        let large = Self { daemon, _hub: hub };
        for number in 0..NODES {
            let groups = (0..GROUPS).filter(|it| (number + 1) & (1 << it) != 0);
            let groups = groups.fold(String::new(), |text, it| format!("{text},{it},"));
            let note = format!("{number} {}", "y".repeat(100_000));
            let facts = json!({"groups": groups, "note": note});
            let body = json!({"name": format!("node{number}"), "facts": facts}).to_string();
            // The disk may be busy for a while.
            large.daemon.wait_until("the facts are stored", |it| {
                it.request("POST", "/api/hosts/facts", &body).status == 201
            });
        }
        large
    }

    /// Compares commits, by so many clients at once; returns how that ended.
    pub(super) fn compare(&self, range: &str, clients: usize) -> Counts {
        let stop = Stop::new(Duration::from_mins(10));
        let head = format!("GET /controller/diff/{range} HTTP/1.1\r\n");
        let mut counts = Counts::default();
        std::thread::scope(|scope| {
            let (address, stop, head) = (&self.daemon.address, &stop, &head);
            let get = move || until_admitted(stop, || ask(address, stop, head, b"", Reading::Fast));
            let readers: Vec<_> = (0..clients).map(|_| scope.spawn(get)).collect();
            for reader in readers {
                counts.count(reader.join().unwrap());
            }
        });
        counts
    }

    /// Returns the peak memory of the daemon in MiB, and begins another phase.
    pub(super) fn take_peak(&self) -> u64 {
        let peak = process_peak(self.daemon.id());
        std::fs::write(format!("/proc/{}/clear_refs", self.daemon.id()), "5").ok();
        peak
    }
}
