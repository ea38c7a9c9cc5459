//! A commit that is built from the one before is the one that is built of all files.

use std::collections::BTreeMap;
use std::sync::Arc;

use clade::internals::classification::Version;
use clade::internals::hierarchy::{Estate, GroupIndex, Hierarchy};
use clade::internals::mentioned::MentionedPaths;
use clade::internals::model::{Budget, CommitId, Meter};
use clade::internals::snapshot::{Index, LiveSnapshot, Snapshot};
use clade::internals::validation::{Checked, Search, SourceFile, read_file, validate};
use fastrand::Rng;

use super::changing_world::{Change, Repository, node};
use super::{matches, plainly, quickly};

/// How often something was changed, and how often the result was built from the commit before.
#[derive(Debug, Default)]
struct Tally(BTreeMap<Change, [usize; 2]>);

fn of(checked: &Checked) -> Estate {
    checked.estate.clone().unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

fn snapshot_of(checked: &Checked, before: Option<&Snapshot>) -> Snapshot {
    let commit: CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
    let (estate, origins) = (of(checked), Arc::clone(&checked.origins));
    let found = checked.diagnostics.clone();
    match before {
        Some(before) => before.amended(commit, estate, origins, found),
        None => Snapshot::new(commit, estate, origins, found),
    }
}

fn compare_trees(one: &Hierarchy, other: &Hierarchy) {
    assert!(one.groups().eq(other.groups()));
    let places = |of: &Hierarchy| -> Vec<(Option<GroupIndex>, GroupIndex, Option<GroupIndex>)> {
        let place = |it| (of.parent(it), of.end(it), of.find(of.group(it).id));
        of.indexes().map(place).collect()
    };
    assert_eq!(places(one), places(other));
}

fn compare_answers(snapshot: &Snapshot, whole: &Estate, rng: &mut Rng) {
    let index = Index::new(&whole.hierarchy);
    let live = LiveSnapshot::new(Arc::new(snapshot.clone()));
    for _ in 0..5 {
        let node = node(rng);
        let groups = matches(&snapshot.estate, snapshot.index(), &node).unwrap();
        assert_eq!(groups, matches(whole, &index, &node).unwrap());
        for version in [Version::V1, Version::V2] {
            assert_eq!(quickly(&live, &node, version), plainly(whole, &node, version));
        }
    }
}

/// What a walk met.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    warnings: usize,
    /// How often the mentioned paths were taken from the snapshot before.
    kept_paths: usize,
}

/// Changes a repository so many times, each time from the last valid commit.
fn walk(seed: u64, steps: usize, tally: &mut Tally) -> Met {
    let mut rng = Rng::with_seed(seed);
    let mut repository = Repository::new(&mut rng, seed % 2 == 1);
    let mut before = validate(&repository.files(), Search::Decisive);
    let mut snapshot = snapshot_of(&before, None);
    let mut met = Met::default();
    for _ in 0..steps {
        let mut next = repository.clone();
        let change = next.change(&mut rng);
        if rng.u8(..4) == 0 {
            next.change(&mut rng);
        }
        let (changed, removed) = next.differing(&repository);
        let layout = before.layout();
        let read = |it: &SourceFile| Some(Arc::new(read_file(it, layout.kind_of(it)?)));
        let changed: Vec<_> = changed.iter().filter_map(read).collect();
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        let all = validate(&next.files(), Search::Decisive);
        let again = before.incremental(&changed, &removed, &Meter::new(Budget::DEFAULT));
        let counts = tally.0.entry(change).or_default();
        if !all.is_valid() {
            assert!(again.is_none(), "{change:?}: {:?}", all.diagnostics);
            continue;
        }
        counts[0] += 1;
        counts[1] += usize::from(again.is_some());
        assert!(again.is_none() || next.has_others_of(&repository), "{change:?}");
        let checked = again.unwrap_or_else(|| all.clone());
        assert_eq!(checked.diagnostics, all.diagnostics, "{change:?}");
        assert_eq!((&checked.origins, checked.groups), (&all.origins, all.groups));
        assert!(checked.files().eq(all.files()));
        let whole = of(&all);
        compare_trees(&of(&checked).hierarchy, &whole.hierarchy);
        let paths = Arc::clone(snapshot.mentioned());
        // What was built otherwise is a base like others.
        snapshot = snapshot_of(&checked, Some(&snapshot).filter(|_| rng.u8(..20) > 0));
        compare_answers(&snapshot, &whole, &mut rng);
        assert_eq!(**snapshot.mentioned(), MentionedPaths::of(&whole), "{change:?}");
        met.kept_paths += usize::from(Arc::ptr_eq(snapshot.mentioned(), &paths));
        met.warnings += all.diagnostics.len();
        (repository, before) = (next, checked);
    }
    met
}

#[test]
fn what_a_commit_does_not_change_need_not_be_built_again() {
    let mut tally = Tally::default();
    let met: Vec<Met> = (0..4).map(|seed| walk(seed, 75, &mut tally)).collect();
    assert!(met.iter().map(|it| it.warnings).sum::<usize>() > 2_000, "{met:?}");
    let kept: usize = met.iter().map(|it| it.kept_paths).sum();
    assert!((50..250).contains(&kept), "{met:?}");
    for change in [
        Change::Edit,
        Change::Create,
        Change::Delete,
        Change::Rename,
        Change::RenameWithChildren,
        Change::Environment,
        Change::Move,
        Change::MoveFile,
        Change::Id,
        Change::EditRoot,
    ] {
        let [valid, short] = tally.0.get(&change).copied().unwrap_or_default();
        assert!(valid > 4 && short * 10 > valid * 6, "{change:?}: {short} of {valid} in {tally:?}");
    }
}
