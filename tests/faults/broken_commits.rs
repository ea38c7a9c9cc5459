//! Commits that are broken or hostile: they are rejected with their findings, or what is hostile in
//! them is not read; the commit before them answers, and the next good one is followed.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::follow::{live, wait_for};
use crate::program::{Daemon, GitRepository};
use crate::repository::{Origin, Put};
use crate::{Fault, Seen, Speed};

const REJECTED: &str =
    "the commit never answers, the status names its finding, and the next good commit is followed";

macro_rules! rejected {
    ($name:literal, $injection:literal, $kind:literal, $path:literal, $text:expr) => {
        Fault {
            name: concat!("broken-commits::", $name),
            promise: REJECTED,
            injection: $injection,
            speed: Speed::Fast,
            run: || {
                let bytes: Vec<u8> = $text.into();
                rejected($kind, $path, &bytes)
            },
        }
    };
}

pub(crate) const FAULTS: &[Fault] = &[
    rejected!(
        "alias-bomb",
        "nine levels of nine aliases each",
        "malformed-yaml",
        "groups/b.yaml",
        bomb()
    ),
    rejected!(
        "deep-flow",
        "100,000 nested lists in a rule",
        "malformed-yaml",
        "groups/b.yaml",
        format!("name: B\nrule: {}{}\n", "[".repeat(100_000), "]".repeat(100_000)).into_bytes()
    ),
    rejected!(
        "deep-block",
        "400 nested mappings in block style",
        "malformed-yaml",
        "groups/b.yaml",
        (0..400)
            .flat_map(|it| [" ".repeat(it), "a:\n".to_owned()])
            .collect::<String>()
            .into_bytes()
    ),
    rejected!(
        "duplicate-keys",
        "a class that is written twice with different parameters",
        "duplicate-key",
        "groups/b.yaml",
        b"name: B\nclasses:\n  a: {p: 1}\n  a: {p: 2}\n"
    ),
    rejected!(
        "not-utf-8",
        "Latin-1 in a name",
        "malformed-yaml",
        "groups/b.yaml",
        b"name: B\xfcro\n"
    ),
    rejected!(
        "utf-16",
        "a file in UTF-16 with its mark",
        "malformed-yaml",
        "groups/b.yaml",
        "\u{feff}name: B\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    ),
    rejected!(
        "zero-bytes",
        "a name with a zero byte",
        "malformed-yaml",
        "groups/b.yaml",
        b"name: \"B\0\"\n"
    ),
    rejected!(
        "large-file",
        "a group of 8 MiB",
        "file-too-large",
        "groups/b.yaml",
        format!("name: B\n# {}\n", "x".repeat(8 << 20)).into_bytes()
    ),
    rejected!(
        "cycle",
        "a group that is its own ancestor",
        "inheritance-cycle",
        "groups/b.yaml",
        b"name: B\nparent: C\n---\nname: C\nparent: B\n"
    ),
    rejected!(
        "tag",
        "a Ruby object as a value",
        "malformed-yaml",
        "groups/b.yaml",
        b"name: B\ndescription: !ruby/object:Gem::Installer {x: y}\n"
    ),
    rejected!(
        "settings",
        "a `clade.yaml` that is a list",
        "schema-violation",
        "clade.yaml",
        b"- groups\n"
    ),
    Fault {
        name: "broken-commits::links",
        promise: "nothing outside the tree is read: links and submodules are warnings",
        injection: "links to /etc/passwd, out of the tree, to a directory and to themselves; a submodule",
        speed: Speed::Fast,
        run: links,
    },
    Fault {
        name: "broken-commits::pattern-bomb",
        promise: "a pattern that runs out of steps is an error for its node, within a second, and others are answered",
        injection: "`^(a|aa)+\\1b` and a fact of 20,000 letters",
        speed: Speed::Fast,
        run: pattern_bomb,
    },
    Fault {
        name: "broken-commits::long-chain",
        promise: "a hierarchy as deep as it has groups is followed and answers",
        injection: "1,500 groups, each the parent of the next",
        speed: Speed::Fast,
        run: long_chain,
    },
];

fn bomb() -> Vec<u8> {
    let mut text = "name: B\nvariables:\n  a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = level - 1;
        let list = vec![format!("*a{before}"); 9].join(", ");
        writeln!(text, "  a{level}: &a{level} [{list}]").unwrap();
    }
    text.into_bytes()
}

fn rejected(kind: &str, path: &str, bytes: &[u8]) -> Seen {
    let repository = GitRepository::new();
    let first = repository.commit("first", &[("groups/a.yaml", "name: A\n")]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    wait_for(&daemon, &first);
    let began = Instant::now();
    let bad = commit_bytes(&repository, path, bytes);
    daemon.wait_until("the commit is rejected", |it| {
        assert_eq!(live(it), Some(first.clone()));
        it.get("/controller/status").json()["last_failed"]["commit"] == bad.as_str()
    });
    let took = began.elapsed();
    let status = daemon.get("/controller/status").json();
    let found = status["last_failed"]["diagnostics"].as_array().unwrap();
    assert!(found.iter().any(|it| it["kind"] == kind), "{found:?}");
    let asked = daemon.get(&format!("/v1/groups?commit={bad}"));
    assert_eq!((asked.status, asked.json()["kind"].as_str()), (422, Some("invalid-commit")));
    let good = repository.commit("good", &[(path, "")]);
    wait_for(&daemon, &good);
    Seen::Held(format!("`{kind}` after {} ms", took.as_millis()))
}

/// Commits one file of any bytes.
fn commit_bytes(repository: &GitRepository, path: &str, bytes: &[u8]) -> String {
    let file = repository.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, bytes).unwrap();
    let git = repository.git();
    let mut index = git.index().unwrap();
    index.add_path(std::path::Path::new(path)).unwrap();
    index.write().unwrap();
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    let parent = git.head().unwrap().peel_to_commit().unwrap();
    let ada = git2::Signature::now("Ada", "ada@example.com").unwrap();
    git.commit(Some("HEAD"), &ada, &ada, "bad", &tree, &[&parent]).unwrap().to_string()
}

fn links() -> Seen {
    let (origin, first) = Origin::with_a_commit();
    let path = origin.path();
    let daemon = Daemon::start(&["--repo", path.to_str().unwrap(), "--branch", "main"]);
    wait_for(&daemon, &first);
    let second = origin.commit(
        "main",
        &[
            ("groups/b.yaml", Put::Link("/etc/passwd")),
            ("groups/c.yaml", Put::Link("../../../../../../etc/passwd")),
            ("groups/d", Put::Link("/etc")),
            ("groups/e.yaml", Put::Link("e.yaml")),
            ("groups/f", Put::Submodule),
            ("nodes", Put::Link("/etc")),
        ],
    );
    wait_for(&daemon, &second);
    let groups = daemon.get("/v1/groups").json();
    assert_eq!(groups.as_array().unwrap().len(), 2, "the root group and one more");
    let commit = daemon.get(&format!("/controller/commits/{second}")).body;
    assert!(!commit.contains("root:x"), "{commit}");
    let warnings = commit.matches("not-a-file").count();
    assert!(warnings >= 5, "{commit}");
    Seen::Held(format!("{warnings} warnings `not-a-file`, the groups as before"))
}

fn pattern_bomb() -> Seen {
    let repository = GitRepository::new();
    let group = "name: Evil\nrule: [\"~\", [fact, x], '^(a|aa)+\\1b']\nclasses: {never: {}}\n";
    repository.commit("evil", &[("groups/evil.yaml", group)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let body = format!(r#"{{"fact": {{"x": "{}!"}}}}"#, "a".repeat(20_000));
    let began = Instant::now();
    let answer = daemon.request("POST", "/v1/classified/nodes/n", &body);
    let took = began.elapsed();
    assert_eq!(
        (answer.status, answer.json()["kind"].as_str()),
        (500, Some("rule-evaluation-error"))
    );
    assert!(took < Duration::from_secs(30), "{took:?}");
    let other = daemon.request("POST", "/v1/classified/nodes/n", r#"{"fact": {"x": "b"}}"#);
    assert_eq!(other.status, 200);
    Seen::Held(format!("500 `rule-evaluation-error` after {} ms", took.as_millis()))
}

fn long_chain() -> Seen {
    let repository = GitRepository::new();
    let mut text = "name: G0\n".to_owned();
    for number in 1..1500 {
        write!(text, "---\nname: G{number}\nparent: G{}\n", number - 1).unwrap();
    }
    text += "---\nname: Last\nparent: G1499\nrule: [\"=\", name, n]\nclasses: {last: {}}\n";
    let first = repository.commit("first", &[("groups/a.yaml", &text)]);
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    wait_for(&daemon, &first);
    let answer = daemon.get("/v1/classified/nodes/n");
    assert!(answer.body.contains("last"), "{}", answer.body);
    assert_eq!(daemon.get("/v1/groups?inherited=true").status, 200);
    Seen::Held("1,501 levels answer".to_owned())
}
