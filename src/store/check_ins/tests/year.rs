//! A year of a fleet that changes every day.

use super::history::{ask, node, rule, snapshot};
use super::*;

const DAY: i64 = 86_400;

/// How many nodes there are at a time; each day one of them is replaced.
const NODES: i64 = 24;

#[test]
fn the_files_are_as_large_after_a_year_as_after_half_of_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nodes.sqlite");
    let day = |days: u64| Duration::from_hours(24 * days);
    let limits = StoreLimits { forget_after: day(30), history: day(90), ..LIMITS };
    let store = limited(Some(&path), limits);
    // Each commit gives other classes, and is live for five days.
    let commits: Vec<Arc<_>> =
        (1..=7).map(|it| snapshot(it, &[rule("Debian"), rule(&it.to_string())])).collect();
    let mut sizes = Vec::new();
    for today in 0..365 {
        let commit = &commits[usize::try_from(today / 5 % 7).unwrap()];
        for number in today..today + NODES {
            let family = if (number + today) % 9 == 0 { "Suse" } else { "Debian" };
            // Some KB that no other day and no other node has.
            let noise: Vec<i64> = (0..400).map(|it| (it + number * 31 + today) * 48_271).collect();
            let facts = json!({"os": {"family": family}, "noise": noise});
            ask(&store, today * DAY + number, commit, &node(&format!("n{number:03}"), &facts));
        }
        store.0.writer.take_turn().unwrap();
        store.0.writer.forget(Timestamp::from_second((today + 1) * DAY).unwrap());
        let sizes_of_files = std::fs::read_dir(directory.path()).unwrap();
        sizes.push(sizes_of_files.map(|it| it.unwrap().metadata().unwrap().len()).sum::<u64>());
    }
    let most = |days: std::ops::Range<usize>| *sizes[days].iter().max().unwrap();
    let (half, whole) = (most(120..180), most(300..365));
    println!("{half} bytes at the most from day 120 to 180, {whole} from day 300 to 365");
    assert!(whole * 10 <= half * 11, "{sizes:?}");
    // Nodes are known for 30 days after they were seen last, and changes for 90.
    let known = names(&store);
    assert_eq!((known.first().unwrap().as_str(), known.len()), ("n335", 53));
    let first = store.history("n364", 1000, None).unwrap().pop().unwrap();
    let oldest = Timestamp::from_second((365 - 90) * DAY).unwrap();
    assert!(first.time >= oldest, "{first:?}");
}
