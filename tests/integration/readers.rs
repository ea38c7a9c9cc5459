//! A working tree, a revision and the daemon's commit are read alike, whatever the files are called and whatever they
//! are.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use clade::internals::git::Repository;
use clade::internals::reconcile::load;
use fastrand::Rng;
use serde_json::Value;

use crate::program::{Daemon, Done, clade};

/// A working tree of git, whose commits the program of that name makes.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new() -> Self {
        let checkout = Self(tempfile::tempdir().unwrap());
        checkout.git(&["init", "-q", "-b", "main"]);
        checkout
    }

    fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(inside)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let settings = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let mut command = Command::new("git");
        command.args(settings).args(arguments).current_dir(self.0.path());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        let done = command.output().unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn write(&self, inside: impl AsRef<Path>, text: &str) {
        let path = self.path(inside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Done {
        clade(arguments).current_dir(self.0.path()).output().unwrap().into()
    }
}

/// What is found, without the order of files that are shown alike.
type Findings = BTreeSet<(String, String, String)>;

fn validated(checkout: &Checkout, more: &[&str]) -> (Value, BTreeSet<String>) {
    let done = checkout.run(&[&["validate", "--format", "json"], more].concat());
    assert!(done.status < 2, "{}", done.stderr);
    let mut report: Value = serde_json::from_str(&done.stdout).unwrap();
    let found = report["diagnostics"].as_array_mut().unwrap();
    let found = std::mem::take(found).iter().map(Value::to_string).collect();
    report["commit"] = Value::Null;
    (report, found)
}

fn findings(of_command: &BTreeSet<String>) -> Findings {
    let finding = |text: &String| {
        let found: Value = serde_json::from_str(text).unwrap();
        ["kind", "file", "message"].map(|it| found[it].as_str().unwrap().to_owned()).into()
    };
    let all = of_command.iter().map(finding);
    // What is not read is of no concern to a daemon.
    all.filter(|(_, _, message): &(_, _, String)| !message.starts_with("this file is not read"))
        .collect()
}

/// Compares what the three readers find in a directory of the last commit; returns how many findings there are.
fn compare(checkout: &Checkout, directory: &str, commit: &str) -> usize {
    let (working, of_working) = validated(checkout, &[directory]);
    let (committed, of_committed) = validated(checkout, &[directory, "--rev", "HEAD"]);
    assert_eq!(of_working, of_committed, "{}", checkout.git(&["ls-tree", "-rt", "HEAD"]));
    assert_eq!(working, committed);
    let repository = Repository::discover(checkout.0.path()).unwrap();
    let checked = load(&repository, commit.parse().unwrap(), directory).unwrap();
    let found = checked.diagnostics.iter();
    let found = found
        .map(|it| (it.kind.as_str().to_owned(), it.place.file.to_string(), it.message.clone()));
    assert_eq!(found.collect::<Findings>(), findings(&of_committed));
    assert_eq!(checked.groups, committed["groups"]);
    of_committed.len()
}

const DIRECTORIES: &[&[u8]] = &[
    b"groups",
    b"groups",
    b"groups",
    b"nodes",
    b"environments",
    b"tests",
    b"conf",
    b"Groups",
    b"group",
    b"deep",
    b".#deep",
    b".hidden",
    b"d\xff",
    b"d\xef\xbf\xbd",
    b"x.yaml",
    b"a\nb",
];

const NAMES: &[&[u8]] = &[
    b"a.yaml",
    b"b.yml",
    b".yaml",
    b".#a.yaml",
    b"x\xff.yaml",
    b"x\xfe.yaml",
    b"x\xef\xbf\xbd.yaml",
    b"bad\xff.yaml",
    b"c.json",
    b"d.YAML",
    b"clade.json",
    b"e.yaml.txt",
    b"plain",
    b"a\n::error::b.yaml",
    b"\x1b[31m.yaml",
    b" .yaml",
    b"clade.yml",
    b"s.schema.json",
];

const LAYOUTS: &[&str] = &[
    "",
    "groups: conf/groups\nnodes: conf/nodes\n",
    "groups: conf\nnodes: conf/nodes\ntests: conf/tests\n",
    "environments: groups/environments\nnodes: groups/environments/nodes\n",
    "tests: groups\nallow_empty: true\n",
    "nodes: \"a\\0b\"\n",
    "schemas: {group: groups/s.schema.json, variables: deep/s.schema.json}\n",
];

fn any<'t>(random: &mut Rng, all: &[&'t [u8]]) -> &'t OsStr {
    OsStr::from_bytes(all[random.usize(..all.len())])
}

/// Puts something at a path, if its directories can be made.
fn put(checkout: &Checkout, random: &mut Rng, inside: &Path, number: usize) {
    let path = checkout.path(inside);
    if path.symlink_metadata().is_ok() || std::fs::create_dir_all(path.parent().unwrap()).is_err() {
        return;
    }
    // Every reader that sees the file says so.
    let text = format!("name: Group {number}\nodd{number}: 1\nodd{number}: 2\n");
    let nested = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(&path).output().unwrap();
        assert!(done.status.success(), "{arguments:?}");
    };
    match random.u8(..12) {
        // A lock of Emacs is left out of the working tree alone.
        0 if !inside.file_name().unwrap().as_bytes().starts_with(b".#") => {
            let target = [".", "a.yaml", "/etc", "nowhere", "groups"][random.usize(..5)];
            symlink(target, path).unwrap();
        }
        1 => {
            let done = Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(done.success());
        }
        2 => {
            std::fs::create_dir(&path).unwrap();
            let submodule = format!("160000,{},", "7".repeat(40));
            let entry = [submodule.as_bytes(), inside.as_os_str().as_bytes()].concat();
            let mut command = Command::new("git");
            command.args(["update-index", "--add", "--cacheinfo"]).arg(OsStr::from_bytes(&entry));
            // Nothing can be staged inside of another submodule.
            if !command.current_dir(checkout.0.path()).output().unwrap().status.success() {
                std::fs::remove_dir(&path).unwrap();
            }
        }
        3 => {
            std::fs::create_dir(&path).unwrap();
            nested(&["init", "-q"]);
            std::fs::write(path.join("in.yaml"), &text).unwrap();
            let ada = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
            nested(&[&ada[..], &["add", "-A"]].concat());
            nested(&[&ada[..], &["commit", "-qm", "x"]].concat());
        }
        4 => {
            // Git takes this for a directory like others.
            std::fs::create_dir_all(path.join(".git")).unwrap();
            std::fs::write(path.join("in.yaml"), &text).unwrap();
        }
        kind => {
            std::fs::write(&path, text).unwrap();
            if kind == 5 {
                let mode = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, mode).unwrap();
            }
        }
    }
}

#[test]
fn three_readers_see_the_same_files() {
    let mut most = 0;
    for seed in 0..24 {
        let (mut random, checkout) = (Rng::with_seed(seed), Checkout::new());
        let root = if seed % 4 == 3 { "est" } else { "" };
        std::fs::create_dir_all(checkout.path(root)).unwrap();
        let layout = LAYOUTS[random.usize(..LAYOUTS.len())];
        if !layout.is_empty() {
            checkout.write(Path::new(root).join("clade.yaml"), layout);
        }
        for number in 0..40 {
            let mut inside = PathBuf::from(root);
            for _ in 0..random.usize(..4) {
                inside.push(any(&mut random, DIRECTORIES));
            }
            // Sometimes what should be a directory is something else.
            let names = if random.u8(..8) == 0 { DIRECTORIES } else { NAMES };
            inside.push(any(&mut random, names));
            put(&checkout, &mut random, &inside, number);
        }
        let commit = checkout.commit();
        let directory = if root.is_empty() { "." } else { root };
        most = most.max(compare(&checkout, directory, &commit));
    }
    assert!(most > 10, "{most}");
}

#[test]
fn a_name_that_is_shown_like_another_hides_no_file() {
    let checkout = Checkout::new();
    checkout.write("groups/a.yaml", "name: A\n");
    checkout.write("groups/x\u{fffd}.yaml", "name: B\n");
    checkout.write("facts/n1.json", "{\"x\": 1}");
    checkout.commit();
    let evil = OsStr::from_bytes(b"groups/x\xff.yaml");
    checkout.write(evil, "variables: {v: 1}\nname: Evil\nrule: [\"~\", name, \".\"]\n");
    checkout.commit();
    for more in [&[][..], &["--rev", "HEAD"]] {
        let done = checkout.run(&[&["validate", "."], more].concat());
        assert!(done.stdout.contains("in 3 groups, 3 files"), "{}", done.stdout);
        let done = checkout.run(&[&["export"], more].concat());
        assert!(done.stdout.contains("\"Evil\""), "{}", done.stdout);
    }
    let done = checkout.run(&["diff", "HEAD~1", "HEAD", "--facts", "facts"]);
    assert!(done.stdout.contains("1 of 1 node"), "{}", done.stdout);
    let daemon = Daemon::start(&["--repo", checkout.0.path().to_str().unwrap()]);
    assert!(daemon.get("/v1/groups").body.contains("\"Evil\""));
    // Each is written where it lies.
    assert_eq!(checkout.run(&["fmt"]).status, 0);
    let text = |name: &OsStr| std::fs::read_to_string(checkout.path(name)).unwrap();
    assert!(text(evil).starts_with("name: Evil"), "{}", text(evil));
    assert_eq!(text(OsStr::new("groups/x\u{fffd}.yaml")), "name: B\n");
}

#[test]
fn expectations_are_not_written_into_a_file_that_is_shown_like_another() {
    let checkout = Checkout::new();
    checkout.write("groups/a.yaml", "name: A\nrule: name ~ n\n");
    let test = "- {name: t, node: n, expect: {groups: []}}\n";
    let paths = [OsStr::from_bytes(b"tests/x\xff.yaml"), OsStr::from_bytes(b"tests/x\xfe.yaml")];
    checkout.write(paths[0], test);
    assert_eq!(checkout.run(&["test", "--update"]).status, 0);
    assert!(std::fs::read_to_string(checkout.path(paths[0])).unwrap().contains("groups: [\"A\"]"));
    checkout.write(paths[0], test);
    checkout.write(paths[1], test);
    let done = checkout.run(&["test", "--update"]);
    assert_eq!(done.status, 2);
    assert!(done.stderr.contains("several files are shown as `tests/x"), "{}", done.stderr);
    for path in paths {
        assert_eq!(std::fs::read_to_string(checkout.path(path)).unwrap(), test);
    }
}

#[test]
fn only_a_link_that_leads_nowhere_is_a_lock() {
    let checkout = Checkout::new();
    checkout.write("groups/a.yaml", "name: A\n");
    symlink("ada@host.1:2", checkout.path("groups/.#a.yaml")).unwrap();
    let done = checkout.run(&["validate"]);
    assert!(done.stdout.contains("no findings in 1 group, 1 file"), "{}", done.stdout);
    symlink("a.yaml", checkout.path("groups/.#b.yaml")).unwrap();
    checkout.write("groups/.#c.yaml", "name: C\n");
    checkout.write("groups/.#d/d.yaml", "name: D\n");
    let done = checkout.run(&["validate", "--format", "json"]);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let found = &report["diagnostics"];
    assert_eq!((&report["groups"], found.as_array().unwrap().len()), (&3.into(), 1), "{found}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["file"]),
        (&"not-a-file".into(), &"groups/.#b.yaml".into())
    );
}

#[test]
fn nothing_is_read_or_written_behind_a_link() {
    let checkout = Checkout::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = "variables: {secret: 1}\nname: Secret\n";
    std::fs::create_dir(outside.path().join("groups")).unwrap();
    std::fs::write(outside.path().join("groups/a.yaml"), secret).unwrap();
    symlink(outside.path(), checkout.path("conf")).unwrap();
    checkout.write("clade.yaml", "groups: conf/groups\nnodes: conf/groups\n");
    let commit = checkout.commit();
    assert_eq!(compare(&checkout, ".", &commit), 1);
    let done = checkout.run(&["validate"]);
    assert!(done.status == 1 && done.stdout.contains("no-groups"), "{}", done.stdout);
    checkout.run(&["fmt"]);
    let after = std::fs::read_to_string(outside.path().join("groups/a.yaml")).unwrap();
    assert_eq!(after, secret);
}

#[test]
fn a_directory_is_not_the_settings() {
    let checkout = Checkout::new();
    checkout.write("groups/a.yaml", "name: A\nodd: 1\n");
    checkout.write("clade.yaml/a.yaml", "name: B\n");
    let commit = checkout.commit();
    assert_eq!(compare(&checkout, ".", &commit), 1);
}
