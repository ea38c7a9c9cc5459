//! Commits that are pushed to exhaust the daemon: each at or beyond one limit of the budget.

use std::time::Duration;

use git2::{Oid, Repository, Signature};

use super::client::{Counts, Reading, Stop, ask};
use super::site::{Site, changed};

const FILE: i32 = 0o100_644;
const DIRECTORY: i32 = 0o040_000;

/// Pushes to the branch: a commit that cannot answer, and one that reverts it.
pub(super) fn to_main(site: &Site, _client: usize, stop: &Stop) -> Counts {
    let git = Repository::open(&site.path).unwrap();
    let mut counts = Counts::default();
    for turn in 0.. {
        if stop.is_over() {
            break;
        }
        let hostile = files(&git, turn);
        push(&git, "refs/heads/main", Some(("hostile", hostile)), &[]);
        stop.sleep(Duration::from_secs(1));
        push(&git, "refs/heads/main", None, &changed(1_000 + turn));
        stop.sleep(Duration::from_secs(1));
        counts.count(200);
    }
    // In every case the branch ends with a commit that answers.
    push(&git, "refs/heads/main", None, &changed(999));
    counts
}

/// Pushes beside the branch, and reads and compares the pushed commits.
pub(super) fn beside_main(site: &Site, client: usize, stop: &Stop) -> Counts {
    let git = Repository::open(&site.path).unwrap();
    let mut counts = Counts::default();
    for turn in client.. {
        if stop.is_over() {
            break;
        }
        let hostile = if turn % 3 == 0 { files(&git, turn / 3) } else { tenth(&git, turn) };
        let name = format!("refs/heads/eve/{client}-{}", turn % 10);
        let head = push(&git, &name, Some(("hostile", hostile)), &[]);
        for path in [
            format!("/v1/groups?commit={head}&limit=1"),
            format!("/controller/diff/{}/{head}", site.commits[0]),
        ] {
            let head = format!("GET {path} HTTP/1.1\r\n");
            counts.count(ask(&site.address, stop, &head, b"", Reading::Fast));
        }
    }
    counts
}

/// Makes a commit on top of the branch, without the commits to revert.
fn push(
    git: &Repository,
    name: &str,
    put: Option<(&str, Oid)>,
    files: &[(String, String)],
) -> String {
    let author = Signature::now("Eve", "eve@example.com").unwrap();
    // A write of the daemon may come between.
    for _ in 0..100 {
        let parent = git.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap();
        let base = parent.tree().unwrap();
        let groups = git.find_tree(base.get_name("groups").unwrap().id()).unwrap();
        let mut builder = git.treebuilder(Some(&groups)).unwrap();
        builder.remove("hostile").ok();
        if let Some((name, tree)) = put {
            builder.insert(name, tree, DIRECTORY).unwrap();
        }
        let groups = builder.write().unwrap();
        let mut builder = git.treebuilder(Some(&base)).unwrap();
        builder.insert("groups", groups, DIRECTORY).unwrap();
        let base = git.find_tree(builder.write().unwrap()).unwrap();
        let mut update = git2::build::TreeUpdateBuilder::new();
        for (path, text) in files {
            update.upsert(path.as_str(), git.blob(text.as_bytes()).unwrap(), git2::FileMode::Blob);
        }
        let tree = git.find_tree(update.create_updated(git, &base).unwrap()).unwrap();
        let id = git.commit(None, &author, &author, "A commit", &tree, &[&parent]).unwrap();
        let is_main = name == "refs/heads/main";
        let pushed = if is_main {
            git.reference_matching(name, id, true, parent.id(), "push")
        } else {
            git.reference(name, id, true, "push")
        };
        if pushed.is_ok() {
            return id.to_string();
        }
    }
    panic!("others are always faster");
}

/// Makes a tree with one content under many names.
fn many(git: &Repository, text: &str, names: usize) -> Oid {
    let blob = git.blob(text.as_bytes()).unwrap();
    let mut builder = git.treebuilder(None).unwrap();
    for number in 0..names {
        builder.insert(format!("{number}.yaml"), blob, FILE).unwrap();
    }
    builder.write().unwrap()
}

/// Makes files each of which is beyond, or at, another limit.
fn files(git: &Repository, turn: usize) -> Oid {
    let ones = |count: usize| vec!["1"; count].join(",");
    match turn % 7 {
        0 => {
            let long = "d".repeat(4_000);
            let mut top = many(git, "name: B\n", 20_000);
            for _ in 0..120 {
                let mut builder = git.treebuilder(None).unwrap();
                builder.insert(&long, top, DIRECTORY).unwrap();
                top = builder.write().unwrap();
            }
            top
        }
        1 => many(git, &format!("name: B\ndescription: {}\n", "x".repeat(1_000_000)), 3_000),
        2 => many(git, &format!("name: B\nvariables: {{a: [{}]}}\n", ones(400_000)), 16),
        3 => {
            let aliases = "*a ,".repeat(20_000);
            let text = format!(
                "name: B\nvariables:\n  a: &a {}\n  b: [{aliases}0]\n",
                "x".repeat(900_000)
            );
            many(git, &text, 20)
        }
        4 => {
            let keys: Vec<String> = (0..14_000).map(|it| format!("key{it}: 1\n")).collect();
            many(git, &keys.concat(), 50)
        }
        // Just below the limit, and then not valid: the name is a duplicate.
        5 => many(git, &format!("name: B\nvariables: {{a: [{}]}}\n", ones(320_000)), 3),
        _ => {
            let term = |it: usize| format!("['~', name, 'n{it}[a-z]+x']");
            let terms: Vec<String> = (0..20_000).map(term).collect();
            many(git, &format!("name: B\nrule: [or, {}]\n", terms.join(", ")), 9)
        }
    }
}

/// Makes files at a tenth of a limit, which is what a commit beside the branch may have.
fn tenth(git: &Repository, turn: usize) -> Oid {
    let ones = |count: usize| vec!["1"; count].join(",");
    let text = match turn % 4 {
        0 => format!("name: B{turn}\nvariables: {{a: [{}]}}\n", ones(140_000)),
        1 => {
            let terms: Vec<String> =
                (0..18_000).map(|it| format!("['~', name, 'n{it}[a-z]+x']")).collect();
            format!("name: B{turn}\nrule: [or, {}]\n", terms.join(", "))
        }
        2 => format!("name: B{turn}\ndescription: {}\n", "x".repeat(1_000_000)),
        _ => {
            let groups: Vec<String> =
                (0..1_900).map(|it| format!("name: G{turn}-{it}\n")).collect();
            groups.join("---\n")
        }
    };
    many(git, &text, 1)
}
