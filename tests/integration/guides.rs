//! The guides: every block of commands is run as a reader pastes it, on a machine of its own, and prints what the
//! page shows.

mod machine;
mod page;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::root;
use crate::readme::updating;

pub(crate) use machine::Machine;
pub(crate) use page::can_be_pasted;
use page::{Block, Fate, Part, is_as_shown, parts};

/// The page that the test with the real Puppet Server runs.
pub(crate) const PUPPET_SERVER: &str = "docs/guides/puppet-server.md";

/// All output is one stream, as on a terminal. A command that fails says so behind the mark.
const PRELUDE: &str = "exec 2>&1
set -o pipefail
cd \"$HOME\"
trap 'printf \"\\003%s\\003%s\\003\" \"$?\" \"$BASH_COMMAND\"' ERR
";

/// What a block did.
struct Outcome {
    printed: String,
    status: i32,
    /// Commands that failed, with their status.
    failed: Vec<String>,
}

/// Runs blocks in one shell, each unchanged from the page.
fn run(mut shell: Command, blocks: &[&Block]) -> Vec<Outcome> {
    let mut script = PRELUDE.to_owned();
    for block in blocks {
        script = script + "printf '\\001'\n" + &block.code + "\nprintf '\\002%s' \"$?\"\n";
    }
    let done = shell
        .args(["-c", &script])
        .env("HOME", "/home/ada")
        .envs(["AUTHOR", "COMMITTER"].into_iter().flat_map(|who| {
            [
                (format!("GIT_{who}_NAME"), "Ada"),
                (format!("GIT_{who}_EMAIL"), "ada@example.com"),
                (format!("GIT_{who}_DATE"), "2026-11-02T09:00:00Z"),
            ]
        }))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let outcomes: Vec<Outcome> = text.split('\u{1}').skip(1).filter_map(outcome).collect();
    assert_eq!(
        outcomes.len(),
        blocks.len(),
        "the shell ended early: {text}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    outcomes
}

/// Reads what a block left; none if the shell ended in it.
fn outcome(text: &str) -> Option<Outcome> {
    let (printed, status) = text.rsplit_once('\u{2}')?;
    let mut pieces = printed.split('\u{3}');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    let mut failed = Vec::new();
    while let (Some(status), Some(command)) = (pieces.next(), pieces.next()) {
        failed.push(format!("`{command}` ends with {status}"));
        plain += pieces.next().unwrap_or_default();
    }
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
    let printed = time.replace_all(&plain, "2026-11-02T09:00:00Z").into_owned();
    Some(Outcome { printed, status: status.parse().unwrap(), failed })
}

/// Names a page as people do.
fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Runs a page in a shell and compares what it prints.
pub(crate) fn check(path: &Path, shell: Command) {
    let name = name(path);
    let page = std::fs::read_to_string(path).unwrap();
    let parts = parts(&page).unwrap_or_else(|error| panic!("{name}: {error}"));
    let blocks: Vec<&Block> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Run(block) if !matches!(block.fate, Fate::NotRun(_)) => Some(block),
            _ => None,
        })
        .collect();
    if let Some(missing) = missing(&blocks) {
        eprintln!("skipped: needs {missing}");
        return;
    }
    let mut outcomes = run(shell, &blocks).into_iter();
    let (mut updated, mut printed) = (String::new(), String::new());
    for part in &parts {
        match part {
            Part::Text(text) => updated += text,
            Part::Run(block) => {
                updated += &block.text;
                if let Fate::NotRun(why) = &block.fate {
                    eprintln!(
                        "{name}: not run: {why}: {}",
                        block.code.lines().next().unwrap_or_default()
                    );
                    continue;
                }
                let outcome = outcomes.next().unwrap();
                judge(&name, block, &outcome);
                printed = outcome.printed;
            }
            Part::Output(text) => {
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let [first, shown @ .., last] = lines.as_slice() else { panic!("{name}: {text}") };
                let shown = shown.concat();
                if is_as_shown(&shown, &printed) {
                    updated += text;
                    continue;
                }
                assert!(
                    updating(),
                    "{name} shows:\n{shown}and it is:\n{printed}run with UPDATE_DOCS=1 and read the difference"
                );
                if !printed.is_empty() && !printed.ends_with('\n') {
                    printed.push('\n');
                }
                updated = updated + first + &printed + last;
            }
        }
    }
    if updating() {
        std::fs::write(path, updated).unwrap();
    }
}

/// Checks that a block ended as its page says.
fn judge(name: &str, block: &Block, outcome: &Outcome) {
    let Outcome { printed, status, failed } = outcome;
    match block.fate {
        Fate::Exits(expected) => assert_eq!(*status, expected, "{name}: {}{printed}", block.code),
        _ => assert!(failed.is_empty(), "{name}: {}{printed}{failed:?}", block.code),
    }
    if block.fate == Fate::Given {
        eprintln!("{name}: given: {}", block.code);
    }
}

fn missing(blocks: &[&Block]) -> Option<&'static str> {
    let has = |it: &str| Command::new(it).arg("--help").output().is_ok();
    let uses = |it: &str| blocks.iter().any(|block| block.code.contains(&format!("{it} ")));
    ["curl", "openssl", "git", "helm", "jq", "ssh-keyscan", "/usr/sbin/sshd"]
        .into_iter()
        .find(|it| uses(it) && !has(it))
}

fn guides() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join("docs/guides"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
        .collect();
    found.sort();
    found
}

/// Runs a page on a machine of its own.
fn run_page(file: &str) {
    match Machine::new() {
        Ok(machine) => check(&root().join("docs/guides").join(file), machine.command("bash")),
        Err(missing) => eprintln!("skipped: needs {missing}"),
    }
}

/// One test a page, and one that no page is left out.
macro_rules! pages {
    ($($test:ident: $file:literal,)*) => {
        $(#[test]
        fn $test() {
            run_page($file);
        })*

        #[test]
        fn every_guide_is_run() {
            let mut run = vec![$(root().join("docs/guides").join($file),)* root().join(PUPPET_SERVER)];
            run.sort();
            assert_eq!(run, guides());
        }
    };
}

pages! {
    blame_runs_as_written: "blame.md",
    console_runs_as_written: "console.md",
    editors_runs_as_written: "editors.md",
    first_repository_runs_as_written: "first-repository.md",
    forge_runs_as_written: "forge.md",
    kubernetes_runs_as_written: "kubernetes.md",
    migrate_from_pe_runs_as_written: "migrate-from-pe.md",
    operations_runs_as_written: "operations.md",
    privacy_runs_as_written: "privacy.md",
    pull_requests_runs_as_written: "pull-requests.md",
    schemas_runs_as_written: "schemas.md",
    security_runs_as_written: "security.md",
    testing_runs_as_written: "testing.md",
    writes_runs_as_written: "writes.md",
}

/// A reader may follow one guide after another in one shell: none finds the files or the daemon of the one before.
#[test]
fn each_guide_has_its_own_directory_and_stops_its_daemons() {
    let directory = regex::Regex::new(r"~/([\w.-]+)").unwrap();
    let mut of_guides: Vec<(String, String)> = Vec::new();
    for path in guides().iter().filter(|it| **it != root().join(PUPPET_SERVER)) {
        let (name, page) = (name(path), std::fs::read_to_string(path).unwrap());
        let mut running = 0;
        for part in parts(&page).unwrap() {
            let Part::Run(Block { code, fate, .. }) = part else { continue };
            if matches!(fate, Fate::NotRun(_)) {
                continue;
            }
            for line in code.lines() {
                running += i32::from(line.ends_with(" &"))
                    - i32::from(line.starts_with("kill %1 && wait"));
                assert!(!line.starts_with("cd ~ ") && line != "cd ~", "{name}: {line}");
                let named = directory.captures_iter(line).map(|it| it[1].to_owned());
                of_guides.extend(named.map(|it| (it, name.clone())));
            }
        }
        assert_eq!(running, 0, "{name} leaves a daemon");
    }
    of_guides.sort();
    of_guides.dedup();
    for pair in of_guides.windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "two guides write there: {pair:?}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents =
        ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
    let others = [
        "docs/concepts.md",
        "docs/tour.md",
        "docs/status.md",
        "docs/performance.md",
        "docs/performance-history.md",
        "docs/glossary.md",
        "charts/clade/README.md",
        "examples/monitoring/README.md",
    ];
    let reference = ["http", "metrics", "settings", "conditions", "commands"]
        .map(|it| root().join(format!("docs/reference/{it}.md")));
    let all = documents.iter().chain(&others).map(|it| root().join(it));
    for path in all.chain(reference).chain(guides()) {
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let found = path.parent().unwrap().join(target);
            assert!(found.exists(), "{}: {target} leads nowhere", path.display());
        }
    }
}
