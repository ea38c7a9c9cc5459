//! From commits to snapshots.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clade::internals::git::Verification;
use clade::internals::model::Budget;
use clade::internals::reconcile::{Controller, Policy, Settings, Target};
use clade::internals::telemetry::Metrics;
use git2::{IndexEntry, IndexTime, Repository, Signature, Time};

use super::world::{Scale, estates};
use super::{median, row, seconds};

const GROUPS: usize = 10_000;

/// A fleet's worth of groups, more than the default limits admit.
const MANY_GROUPS: usize = 100_000;

/// A bare repository with one branch.
struct Branch {
    repository: Repository,
    files: Vec<(String, String)>,
}

impl Branch {
    fn new(directory: &Path, groups: usize) -> Self {
        let repository = Repository::init_bare(directory).unwrap();
        let branch = Self { repository, files: estates::files(Scale::of(groups), 1) };
        let mut index = git2::Index::new().unwrap();
        for (path, text) in &branch.files {
            index.add(&branch.entry(path, text)).unwrap();
        }
        branch.commit(index);
        branch.pack(directory);
        branch
    }

    /// Packs all objects, as fetched repositories have them.
    fn pack(&self, directory: &Path) {
        let objects = directory.join("objects");
        let mut packer = self.repository.packbuilder().unwrap();
        let mut walk = self.repository.revwalk().unwrap();
        walk.push_head().unwrap();
        packer.insert_walk(&mut walk).unwrap();
        packer.write(&objects.join("pack"), 0).unwrap();
        for entry in objects.read_dir().unwrap().map(Result::unwrap) {
            if entry.file_name().len() == 2 {
                std::fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }

    fn entry(&self, path: &str, text: &str) -> IndexEntry {
        let id = self.repository.blob(text.as_bytes()).unwrap();
        let time = IndexTime::new(0, 0);
        IndexEntry {
            ctime: time,
            mtime: time,
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        }
    }

    fn commit(&self, mut index: git2::Index) -> String {
        let tree = index.write_tree_to(&self.repository).unwrap();
        let tree = self.repository.find_tree(tree).unwrap();
        let who = Signature::new("a", "a@example.com", &Time::new(0, 0)).unwrap();
        let parent = self.repository.head().ok().map(|it| it.peel_to_commit().unwrap());
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        self.repository.commit(Some("HEAD"), &who, &who, "x", &tree, &parents).unwrap().to_string()
    }

    /// Changes one group's file: by turns its description, its values, and its rule or pinned nodes.
    fn change(&self, number: usize) -> String {
        let tree = self.repository.head().unwrap().peel_to_tree().unwrap();
        let mut index = git2::Index::new().unwrap();
        index.read_tree(&tree).unwrap();
        let (path, text) = &self.files[number * 37 % self.files.len()];
        let text = match number % 3 {
            0 => format!("{text}description: changed {number}\n"),
            1 => {
                let class = format!("classes:\n  profile::changed: {{number: {number}}}\n");
                text.replace("classes:\n", &class)
            }
            _ if text.contains("pinned:\n") => {
                text.replace("pinned:\n", &format!("pinned:\n  - new-{number}.example.com\n"))
            }
            _ => text
                .replace("rule: ", &format!("# changed {number}\nrule: "))
                .replace("role-", "new-"),
        };
        assert_ne!(text, self.files[number * 37 % self.files.len()].1);
        index.add(&self.entry(path, &text)).unwrap();
        self.commit(index)
    }
}

fn follow(directory: &Path, budget: Budget) -> Arc<Controller> {
    let settings = Settings {
        target: Target::Local(directory.to_owned()),
        transport: Box::default(),
        address: String::new(),
        branch: None,
        path: ".".to_owned(),
        interval: Duration::from_hours(1),
        data: None,
        policy: Policy::default(),
        budget,
        snapshot_cache: 64 << 20,
        verification: Verification::default(),
        reporting: None,
    };
    Controller::start(settings, Arc::new(Metrics::default())).unwrap()
}

pub(super) fn measure() {
    let directory = tempfile::tempdir().unwrap();
    let branch = Branch::new(directory.path(), GROUPS);
    let parse = || {
        let began = Instant::now();
        for (_, text) in &branch.files {
            black_box(serde_yaml::from_str::<serde_yaml::Value>(text).unwrap());
        }
        began.elapsed()
    };
    let full = || {
        let began = Instant::now();
        let controller = follow(directory.path(), Budget::DEFAULT);
        assert!(controller.snapshot().is_ok());
        let took = began.elapsed();
        drop(controller);
        took
    };
    let turns: Vec<[Duration; 2]> = (0..super::FEW_ROUNDS).map(|_| [parse(), full()]).collect();
    let [parsed, full] = [0, 1].map(|it| median(turns.iter().map(|turn| turn[it]).collect()));
    // A machine that becomes faster or slower does so for both of a turn.
    let mut ratios: Vec<f64> = turns.iter().map(|it| seconds(it[1]) / seconds(it[0])).collect();
    ratios.sort_by(f64::total_cmp);
    let controller = follow(directory.path(), Budget::DEFAULT);
    let changes: Vec<Duration> = (0..27)
        .map(|number| {
            let commit = branch.change(number);
            let began = Instant::now();
            black_box(controller.snapshot_at(&commit).unwrap());
            began.elapsed()
        })
        .collect();
    let kinds =
        [0, 1, 2].map(|kind| median(changes.iter().skip(kind).step_by(3).copied().collect()));
    eprintln!("description {:?}, values {:?}, rule {:?}", kinds[0], kinds[1], kinds[2]);
    let changed = median(changes);
    eprintln!("full {full:?}, parsing {parsed:?}, one file {changed:?}");
    row(
        "P11",
        "full snapshot build from git ÷ YAML-parsing the same 10k files on one thread",
        &format!("{:.2}", ratios[ratios.len() / 2]),
        "≤ 1.7",
        "≤ 1.3",
    );
    row(
        "P12",
        "rebuild after one file of 10k changed ÷ full build",
        &format!("{:.3}", seconds(changed) / seconds(full)),
        "≤ 0.05",
        "≤ 0.01",
    );
}

/// Measures builds of more groups than most have.
pub(super) fn measure_many() {
    let directory = tempfile::tempdir().unwrap();
    let branch = Branch::new(directory.path(), MANY_GROUPS);
    let texts: usize = branch.files.iter().map(|(_, text)| text.len()).sum();
    drop(branch);
    let before = super::resident();
    let build = || {
        let began = Instant::now();
        let controller = follow(directory.path(), super::generous());
        assert!(controller.snapshot().is_ok());
        (began.elapsed(), controller)
    };
    let (first, controller) = build();
    let bytes = super::resident() - before;
    drop(controller);
    let times = (0..4).map(|_| build().0).chain([first]).collect();
    let groups = MANY_GROUPS as f64;
    row(
        "P16",
        "full build of 100k groups: seconds; resident bytes a group after the first, beside its text",
        &format!(
            "{:.2} / {:.0} (texts {:.0})",
            seconds(median(times)),
            bytes / groups - texts as f64 / groups,
            texts as f64 / groups
        ),
        "",
        "≤ 4 / 500",
    );
}
