//! `examples/ci`: every script is run, every workflow file checked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::git::server::{Request, Server, has_git};
use crate::program::{Done, root};

const GOOD: &str = "name: Web\nrule: name ~ web\n";
const BAD: &str = "name: Web\nparent: Wbe\n";
const TEST: &str = "- name: t\n  node: web1\n  expect: {groups: [\"Web\"]}\n";

/// A directory with a work tree and a bare repository it pushes to.
pub(crate) struct Site(tempfile::TempDir);

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        let path = site.0.path().to_owned();
        let git = |arguments: &[&str]| site.git(&path, arguments);
        git(&["init", "-q", "--bare", "-b", "main", "groups.git"]);
        git(&["clone", "-q", "groups.git", "work"]);
        site.git(&site.work(), &["checkout", "-q", "-b", "main"]);
        site
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    pub(crate) fn command(&self, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        let clade = Path::new(env!("CARGO_BIN_EXE_clade")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        command
            .current_dir(directory)
            .stdin(Stdio::null())
            .env("PATH", format!("{}:{path}", clade.display()))
            .env("HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.com");
        command
    }

    fn run(&self, program: &str, directory: &Path, arguments: &[&str]) -> Done {
        self.command(program, directory).args(arguments).output().unwrap().into()
    }

    pub(crate) fn git(&self, directory: &Path, arguments: &[&str]) -> Done {
        let done = self.run("git", directory, arguments);
        assert_eq!(done.status, 0, "git {arguments:?}: {}", done.stderr);
        done
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            self.write(path, content);
        }
        self.git(&self.work(), &["add", "-A"]);
        self.git(&self.work(), &["commit", "-q", "-m", "change"]);
        self.git(&self.work(), &["rev-parse", "HEAD"]).stdout.trim().to_owned()
    }

    pub(crate) fn push(&self, refspec: &str) -> Done {
        self.run("git", &self.work(), &["push", "-q", "origin", refspec])
    }

    fn tip(&self) -> String {
        let git = self.0.path().join("groups.git");
        self.git(&git, &["rev-parse", "main"]).stdout.trim().to_owned()
    }
}

fn script(name: &str) -> PathBuf {
    root().join("examples/ci").join(name)
}

#[test]
fn a_bare_repository_takes_good_pushes_and_refuses_bad_ones() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let hook = site.0.path().join("groups.git/hooks/pre-receive");
    std::fs::copy(script("hooks/pre-receive"), &hook).unwrap();

    let good = site.commit(&[("groups/web.yaml", GOOD), ("tests/t.yaml", TEST)]);
    let pushed = site.push("main");
    assert_eq!((pushed.status, site.tip()), (0, good.clone()), "{}", pushed.stderr);

    site.commit(&[("groups/web.yaml", BAD)]);
    let refused = site.push("main");
    assert_eq!((refused.status, site.tip()), (1, good.clone()), "{}", refused.stderr);
    for said in [
        "error[missing-parent]",
        "groups/web.yaml:2:9",
        "did you mean `Web`?",
        "The push to main is refused",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    // Another branch is work in progress.
    assert_eq!(site.push("main:refs/heads/draft").status, 0);
    assert_eq!(site.push(":refs/heads/draft").status, 0);

    site.commit(&[("groups/web.yaml", "name: Web\nrule: name ~ mail\n")]);
    let refused = site.push("main");
    assert_eq!((refused.status, site.tip()), (1, good), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("name is \"web1\", the rule wants name ~ mail"),
        "{}",
        refused.stderr
    );

    let mended = site.commit(&[("groups/web.yaml", GOOD)]);
    assert_eq!((site.push("main").status, site.tip()), (0, mended));
}

#[test]
fn the_hook_guards_the_branch_and_directory_of_its_settings() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let bare = site.0.path().join("groups.git");
    std::fs::copy(script("hooks/pre-receive"), bare.join("hooks/pre-receive")).unwrap();
    site.git(&bare, &["config", "clade.branch", "live"]);
    site.git(&bare, &["config", "clade.path", "estate"]);
    site.commit(&[("estate/groups/web.yaml", BAD), ("groups/other.yaml", "- [")]);
    assert_eq!(site.push("main").status, 0);
    assert_eq!(site.push("main:live").status, 1);
    site.commit(&[("estate/groups/web.yaml", GOOD)]);
    let pushed = site.push("main:live");
    assert_eq!(pushed.status, 0, "{}", pushed.stderr);
}

/// Attributes and links of a push hide nothing from the hook.
#[test]
fn a_push_cannot_hide_files_from_the_hook() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let bare = site.0.path().join("groups.git");
    std::fs::copy(script("hooks/pre-receive"), bare.join("hooks/pre-receive")).unwrap();
    site.commit(&[("groups/web.yaml", GOOD)]);
    assert_eq!(site.push("main").status, 0);
    let refused = |what: &str| {
        let before = site.tip();
        let pushed = site.push("main");
        assert_eq!((pushed.status, site.tip()), (1, before), "{what}: {}", pushed.stderr);
        site.git(&site.work(), &["reset", "-q", "--hard", "origin/main"]);
        pushed.stderr
    };
    for attributes in [
        "* export-ignore",
        "*.yaml working-tree-encoding=ISO-8859-1",
        "*.yaml filter=none ident eol=crlf",
    ] {
        let attributes = format!("{attributes}\n");
        site.commit(&[(".gitattributes", &attributes), ("groups/bad.yaml", BAD)]);
        let said = refused(&attributes);
        assert!(said.contains("groups/bad.yaml:2:9"), "{said}");
    }
    // Links lead nowhere: neither to a good estate elsewhere, nor out of the facts of a test.
    let elsewhere = site.0.path().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join("groups")).unwrap();
    std::fs::write(elsewhere.join("groups/web.yaml"), GOOD).unwrap();
    site.git(&bare, &["config", "clade.path", "estate"]);
    std::os::unix::fs::symlink(&elsewhere, site.work().join("estate")).unwrap();
    site.commit(&[]);
    refused("a linked path");
    let secret = site.0.path().join("secret.json");
    std::fs::write(&secret, "{\"password\": \"hunter2\"}").unwrap();
    site.write("estate/facts/web1.json", "");
    std::fs::remove_file(site.work().join("estate/facts/web1.json")).unwrap();
    std::os::unix::fs::symlink(&secret, site.work().join("estate/facts/web1.json")).unwrap();
    let test =
        "- name: t\n  node: web1\n  facts_file: ../facts/web1.json\n  expect: {groups: [Web]}\n";
    site.commit(&[("estate/groups/web.yaml", GOOD), ("estate/tests/t.yaml", test)]);
    assert!(!refused("a linked facts file").contains("hunter2"));
}

fn check(site: &Site, forge: &str, base: &str) -> Done {
    let script = script("check.sh");
    site.run("sh", &site.work(), &[script.to_str().unwrap(), forge, base])
}

#[test]
fn a_change_is_checked_and_reported() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let facts = "{\"os\": {\"family\": \"Debian\"}}";
    let base = site.commit(&[
        ("groups/web.yaml", GOOD),
        ("tests/t.yaml", TEST),
        ("facts/web1.json", facts),
        ("facts/db1.json", facts),
    ]);
    site.commit(&[("groups/web.yaml", "name: Web\nrule: name ~ web or name ~ db\n")]);
    let report = |name: &str| std::fs::read_to_string(site.work().join(name)).unwrap();
    let good = check(&site, "github", &base);
    assert_eq!(good.status, 0, "{}{}", good.stdout, good.stderr);
    let comment = report("clade-diff.md");
    assert!(
        comment.starts_with("<!-- clade-diff -->\n### Classification: 1 of 2 nodes change\n"),
        "{comment}"
    );
    assert!(report("clade-tests.xml").contains(r#"tests="1" skipped="0" failures="0""#));

    site.commit(&[("tests/t.yaml", "- {name: t, node: mail1, expect: {groups: [Web]}}\n")]);
    let failed = check(&site, "plain", &base);
    assert_eq!(failed.status, 1);
    assert!(failed.stdout.contains("test t ... FAILED"), "{}", failed.stdout);
    assert!(report("clade-diff.md").contains("1 of 2 nodes change"));

    site.commit(&[("groups/web.yaml", BAD)]);
    let invalid = check(&site, "github", &base);
    assert_eq!(invalid.status, 1);
    let annotation = "::error file=groups/web.yaml,line=2,";
    assert!(invalid.stdout.starts_with(annotation), "{}", invalid.stdout);
    assert!(
        report("clade-diff.md")
            .starts_with("<!-- clade-diff -->\n### Classification: the change is not valid\n")
    );
    assert_eq!(check(&site, "gitlab", &base).status, 1);
    let quality: Value = serde_json::from_str(&report("clade-quality.json")).unwrap();
    assert_eq!(quality[0]["location"]["path"], "groups/web.yaml");

    site.commit(&[("groups/web.yaml", GOOD)]);
    assert_eq!(check(&site, "plain", "nope").status, 2);
    assert_eq!(check(&site, "cvs", &base).status, 2);
}

#[test]
fn a_check_says_once_what_is_wrong_with_its_arguments() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    site.commit(&[("groups/web.yaml", GOOD), ("facts/web1.json", "{}")]);
    let unknown = check(&site, "plain", "nope");
    let said = unknown.stderr.matches("`nope` is not a commit").count();
    assert_eq!((unknown.status, said), (2, 1), "{}", unknown.stderr);
    let usage = check(&site, "plain", "");
    let expected = "usage: check.sh github|gitlab|plain BASE\n";
    assert_eq!((usage.status, &*usage.stderr), (2, expected));
}

/// The base of such a change has no valid groups, so it classifies no node: the change is good all the same.
#[test]
fn a_change_that_mends_a_branch_or_brings_the_first_groups_passes() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let facts = ("facts/web1.json", "{}");
    let without_groups = site.commit(&[("README.md", "Ours.\n"), facts]);
    let broken = site.commit(&[("groups/web.yaml", BAD)]);
    let report = || std::fs::read_to_string(site.work().join("clade-diff.md")).unwrap();
    let not_valid = |base: &str| {
        format!(
            "<!-- clade-diff -->\n### Classification: the base is not valid\n\n\
             What differs cannot be shown: `{base}` is not valid, so it classifies no node. The log of the\n\
             pipeline has its findings. After the merge every node gets what this change says.\n"
        )
    };
    site.commit(&[("groups/web.yaml", GOOD), ("tests/t.yaml", TEST)]);
    for (base, finding) in
        [(&without_groups, "error[no-groups]"), (&broken, "error[missing-parent]")]
    {
        for forge in ["github", "gitlab", "plain"] {
            let done = check(&site, forge, base);
            assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
            assert!(done.stderr.contains(finding), "{}", done.stderr);
            assert_eq!(report(), not_valid(base));
        }
    }
    // A test that fails still counts.
    site.commit(&[("tests/t.yaml", "- {name: t, node: mail1, expect: {groups: [Web]}}\n")]);
    assert_eq!((check(&site, "plain", &broken).status, report()), (1, not_valid(&broken)));
}

/// What keeps the comparison from running is never taken for a base that is not valid.
#[test]
fn a_comparison_that_cannot_run_is_said_in_the_report() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let base = site.commit(&[("groups/web.yaml", GOOD), ("facts/web1.json", "{}")]);
    let report = || std::fs::read_to_string(site.work().join("clade-diff.md")).unwrap();
    let not_compared = "<!-- clade-diff -->\n### Classification: not compared\n\n\
                        The comparison could not run; the log of the pipeline says why.\n";
    assert_eq!((check(&site, "plain", "nope").status, &*report()), (2, not_compared));
    site.write("facts/half.json", "{");
    let unreadable = check(&site, "plain", &base);
    assert_eq!(unreadable.status, 2, "{}", unreadable.stderr);
    assert!(report().contains("1 facts file could not be read"), "{}", report());
    std::fs::remove_dir_all(site.work().join("facts")).unwrap();
    assert_eq!((check(&site, "plain", &base).status, &*report()), (2, not_compared));
}

/// How a forge lists comments.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CommentList {
    #[default]
    InPages,
    /// As Gitea: with each answer all of them.
    Whole,
}

/// A forge that keeps comments: those of others cannot be changed.
#[derive(Clone, Default)]
struct Forge(Arc<Mutex<Vec<(bool, String)>>>, CommentList);

impl Forge {
    fn answer(&self, request: &Request, token: &str) -> Vec<u8> {
        let mut comments = self.0.lock().unwrap();
        let said = |line: &str, body: &Value| {
            let body = body.to_string();
            let length = body.len();
            format!(
                "HTTP/1.1 {line}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .into_bytes()
        };
        if !request.headers.values().any(|it| it == token) {
            return said("401 Unauthorized", &json!({"message": "no"}));
        }
        let body = || -> String {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            body["body"].as_str().unwrap().to_owned()
        };
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let id = path.rsplit('/').next().unwrap().parse::<usize>().ok();
        match (request.method.as_str(), id) {
            ("GET", None) => {
                let page: usize = query.rsplit("page=").next().unwrap().parse().unwrap();
                let all = comments.iter().enumerate();
                let all = all.map(|(id, (_, body))| json!({"id": id, "body": body}));
                match self.1 {
                    CommentList::InPages => {
                        said("200 OK", &all.skip((page - 1) * 100).take(100).collect())
                    }
                    CommentList::Whole => said("200 OK", &all.collect()),
                }
            }
            ("POST", None) => {
                comments.push((true, body()));
                said("201 Created", &json!({"id": comments.len() - 1}))
            }
            ("PATCH" | "PUT", Some(id)) if comments[id].0 => {
                comments[id].1 = body();
                said("200 OK", &json!({"id": id}))
            }
            _ => said("403 Forbidden", &json!({"message": "not yours"})),
        }
    }

    fn own(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|it| it.0).map(|it| it.1.clone()).collect()
    }
}

fn has_jq() -> bool {
    let there = ["curl", "jq"].iter().all(|it| Command::new(it).arg("--version").output().is_ok());
    if !there {
        eprintln!("skipped: needs curl and jq");
    }
    there
}

#[test]
fn a_report_is_one_comment_that_is_updated() {
    if !has_jq() || !has_git() {
        return;
    }
    let site = Site::new();
    for (forge_name, token, variables) in [
        (
            "github",
            "Bearer secret",
            [
                ("GITHUB_REPOSITORY", "ada/groups"),
                ("PULL_REQUEST", "7"),
                ("GITHUB_TOKEN", "secret"),
            ],
        ),
        (
            "gitlab",
            "secret",
            [
                ("CI_PROJECT_ID", "5"),
                ("CI_MERGE_REQUEST_IID", "7"),
                ("CLADE_GITLAB_TOKEN", "secret"),
            ],
        ),
    ] {
        let forge = Forge::default();
        // More than a page of others, one of whom quotes the marker.
        let others = (0..120).map(|it| (false, format!("comment {it}")));
        *forge.0.lock().unwrap() = others.collect();
        forge.0.lock().unwrap()[3].1 = "<!-- clade-diff -->\nwhat is this?".to_owned();
        let answering = forge.clone();
        let server = Server::http(move |request| answering.answer(request, token));
        let url = format!("http://127.0.0.1:{}", server.port);
        let post = |report: &str| {
            site.write("clade-diff.md", report);
            let mut command = site.command("sh", &site.work());
            command.arg(script("comment.sh")).args([forge_name, "clade-diff.md"]);
            command.env("GITHUB_API_URL", &url).env("CI_API_V4_URL", &url).env("no_proxy", "*");
            command.envs(variables);
            Done::from(command.output().unwrap())
        };
        let first = "<!-- clade-diff -->\n### 1 of 2 nodes change \"é\" `$x` \\\n";
        let posted = post(first);
        assert_eq!(
            (posted.status, posted.stdout.as_str()),
            (0, "posted comment 120\n"),
            "{}",
            posted.stderr
        );
        assert_eq!(forge.own(), [first]);
        let second = format!("<!-- clade-diff -->\n{}", "| a row |\n".repeat(6000));
        let updated = post(&second);
        assert_eq!(
            (updated.status, updated.stdout.as_str()),
            (0, "updated comment 120\n"),
            "{}",
            updated.stderr
        );
        assert_eq!(forge.own(), [second]);
    }
}

/// Runs the script that comments a pull request of GitHub with `clade-diff.md`.
fn comment_on_github(site: &Site, server: &Server) -> Done {
    let mut command = site.command("sh", &site.work());
    command.arg(script("comment.sh")).args(["github", "clade-diff.md"]);
    command.env("GITHUB_API_URL", format!("http://127.0.0.1:{}", server.port));
    command.env("no_proxy", "*").env("GITHUB_REPOSITORY", "ada/groups");
    command.env("PULL_REQUEST", "7").env("GITHUB_TOKEN", "secret");
    command.output().unwrap().into()
}

#[test]
fn a_forge_without_pages_of_comments_is_asked_for_them_twice_at_most() {
    if !has_jq() || !has_git() {
        return;
    }
    for others in [99, 100, 101, 200] {
        let site = Site::new();
        let forge = Forge(Arc::default(), CommentList::Whole);
        *forge.0.lock().unwrap() = vec![(false, "comment".to_owned()); others];
        let answering = forge.clone();
        let lists = Arc::<Mutex<usize>>::default();
        let counted = Arc::clone(&lists);
        let server = Server::http(move |request| {
            *counted.lock().unwrap() += usize::from(request.method == "GET");
            assert!(*counted.lock().unwrap() < 10, "the pages have no end");
            answering.answer(request, "Bearer secret")
        });
        site.write("clade-diff.md", "<!-- clade-diff -->\nreport\n");
        let done = comment_on_github(&site, &server);
        assert_eq!(done.status, 0, "{others}: {}", done.stderr);
        assert_eq!(done.stdout, format!("posted comment {others}\n"));
        assert_eq!(*lists.lock().unwrap(), if others == 100 { 2 } else { 1 });
    }
}

/// The first line of a report selects the comment that is overwritten: an empty one selects every comment.
#[test]
fn a_report_without_a_marker_overwrites_nothing() {
    if !has_jq() || !has_git() {
        return;
    }
    let site = Site::new();
    let forge = Forge::default();
    *forge.0.lock().unwrap() = vec![(true, "coverage: 97%".to_owned())];
    let answering = forge.clone();
    let server = Server::http(move |request| answering.answer(request, "Bearer secret"));
    for report in ["", "\n<!-- clade-diff -->\n", "coverage", "<!-- other -->\n", "<!-- clade-"] {
        site.write("clade-diff.md", report);
        let done = comment_on_github(&site, &server);
        assert_eq!(
            (done.status, &*done.stderr),
            (
                2,
                "comment.sh: `clade-diff.md` has no marker: expected a first line such as <!-- clade-diff -->\n"
            ),
            "{report}"
        );
        assert_eq!(forge.own(), ["coverage: 97%"]);
    }
}

/// The files of `directory` in the example repositories, relative to it.
fn files_below(directory: &Path, root: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            files_below(&entry.path(), root, found);
        } else {
            let path = entry.path();
            found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// Whatever the checks read starts them: the directories of the default layout, and every file of the examples.
#[test]
fn a_change_of_any_file_that_is_read_starts_the_checks() {
    let schema = std::fs::read_to_string(root().join("schemas/clade.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let directories = schema["properties"].as_object().unwrap().values();
    let directories = directories.filter_map(|it| it["default"].as_str());
    let mut files: Vec<String> = directories.map(|it| format!("{it}/x.yaml")).collect();
    assert!(files.contains(&"environments/x.yaml".to_owned()), "{files:?}");
    files.extend(
        ["clade.yaml", "clade.yml", "facts/web1.yaml", "schemas/x.json"].map(str::to_owned),
    );
    for example in ["examples/fleet", "examples/first"] {
        let directory = root().join(example);
        files_below(&directory, &directory, &mut files);
    }
    let text = std::fs::read_to_string(script("github/clade.yml")).unwrap();
    let workflow: Value = serde_yaml::from_str(&text).unwrap();
    let paths: Vec<&str> = workflow["on"]["pull_request"]["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let starts = |file: &str| {
        paths.iter().any(|it| match it.strip_suffix("**") {
            Some(directory) => file.starts_with(directory),
            None => *it == file,
        })
    };
    for file in
        files.iter().map(String::as_str).chain(["ci/check.sh", ".github/workflows/clade.yml"])
    {
        assert!(starts(file), "{file} starts no check: {paths:?}");
    }
    let manifest = std::fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    let hooks: Value = serde_yaml::from_str(&manifest).unwrap();
    for (hook, ignored) in [
        ("clade-validate", &["facts/"][..]),
        ("clade-test", &[]),
        ("clade-fmt", &["facts/", "schemas/"]),
    ] {
        let entry = hooks.as_array().unwrap().iter().find(|it| it["id"] == hook).unwrap();
        let pattern = regex::Regex::new(entry["files"].as_str().unwrap()).unwrap();
        for file in &files {
            let expected = !ignored.iter().any(|it| file.starts_with(it));
            assert_eq!(pattern.is_match(file), expected, "{hook}: {file}");
        }
    }
}

/// Pipelines of changes hold no token beside scripts of the change, and name actions by digest.
#[test]
fn pipelines_show_no_token_to_the_change() {
    let read = |name: &str| std::fs::read_to_string(script(name)).unwrap();
    let github = read("github/clade.yml");
    for line in github.lines().filter(|it| it.contains("uses:")) {
        let (_, digest) = line.split_once('@').unwrap();
        let digest = digest.split(' ').next().unwrap();
        assert!(digest.len() == 40 && digest.bytes().all(|it| it.is_ascii_hexdigit()), "{line}");
    }
    let (check, comment) = github.split_once("\n  comment:\n").unwrap();
    assert!(!check.contains("TOKEN") && !check.contains(": write"), "{check}");
    assert!(comment.contains("ref: ${{ github.event.pull_request.base.sha }}"), "{comment}");
    let gitlab = read("gitlab/gitlab-ci.yml");
    assert!(!gitlab.contains("TOKEN") && !gitlab.contains("cache:"), "{gitlab}");
}

/// Returns whether a program is installed; prints a line if not.
fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: needs {program}");
    }
    there
}

#[test]
fn pipelines_fit_the_schemas_of_their_forges() {
    if !has("check-jsonschema") {
        return;
    }
    for arguments in [
        &["--builtin-schema", "vendor.github-workflows", "github/clade.yml"][..],
        &[
            "--builtin-schema",
            "vendor.gitlab-ci",
            "--data-transform",
            "gitlab-ci",
            "gitlab/gitlab-ci.yml",
        ],
    ] {
        let done = Command::new("check-jsonschema")
            .args(arguments)
            .current_dir(root().join("examples/ci"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
}

#[test]
fn pre_commit_runs_the_hooks() {
    if !has("pre-commit") || !has_git() {
        return;
    }
    let (hooks, site) = (Site::new(), Site::new());
    let manifest = std::fs::read_to_string(root().join(".pre-commit-hooks.yaml")).unwrap();
    hooks.commit(&[(".pre-commit-hooks.yaml", &manifest)]);
    let url = hooks.work().to_str().unwrap().to_owned();
    let run = |hook: &str| {
        site.run(
            "pre-commit",
            &site.work(),
            &["try-repo", &url, hook, "--all-files", "--color=never"],
        )
    };
    site.commit(&[("groups/web.yaml", GOOD), ("tests/t.yaml", TEST)]);
    for hook in ["clade-validate", "clade-test", "clade-fmt"] {
        let done = run(hook);
        assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
        assert!(done.stdout.contains("Passed"), "{}", done.stdout);
    }
    site.commit(&[("groups/web.yaml", BAD)]);
    let done = run("clade-validate");
    assert_eq!(done.status, 1);
    assert!(done.stdout.contains("error[missing-parent]"), "{}", done.stdout);
    site.commit(&[("groups/web.yaml", "name: Web\nrule: name ~ mail\n")]);
    assert!(run("clade-test").stdout.contains("1 failed"));
    site.commit(&[("groups/web.yaml", "rule:   name ~ web\nname: Web\n")]);
    let formatted = run("clade-fmt");
    assert!(formatted.stdout.contains("files were modified by this hook"), "{}", formatted.stdout);
}

/// A pull request on the example estate: the change, and the comment it gets.
#[test]
fn the_guide_shows_the_comment_that_the_command_writes() {
    if !has_git() {
        return;
    }
    let site = Site::new();
    let copy = |from: &str, to: &str| {
        let from = root().join(from);
        let to = site.work().join(to);
        assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
    };
    for part in ["clade.yaml", "groups", "nodes", "environments", "schemas"] {
        copy(&format!("examples/fleet/{part}"), part);
    }
    copy("examples/facts", "facts");
    std::fs::remove_file(site.work().join("facts/README.md")).unwrap();
    let base = site.commit(&[]);
    let guide = root().join("docs/guides/pull-requests.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let block = |mark: &str| {
        let (_, rest) = text.split_once(&format!("<!-- {mark} -->\n")).unwrap();
        let (first, rest) = rest.split_once('\n').unwrap();
        let fence = first.trim_end_matches(char::is_alphabetic);
        rest.split_once(&format!("\n{fence}\n")).unwrap().0.to_owned() + "\n"
    };
    let change = block("the change");
    let patch = site.0.path().join("change.patch");
    std::fs::write(&patch, &change).unwrap();
    site.git(&site.work(), &["apply", patch.to_str().unwrap()]);
    let done = check(&site, "plain", &base);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    let comment = std::fs::read_to_string(site.work().join("clade-diff.md")).unwrap();
    let comment = comment.replace(&base, "HEAD~1");
    let shown = block("the comment");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let fenced = |block: &str| format!("````markdown\n{block}````\n");
        std::fs::write(guide, text.replace(&fenced(&shown), &fenced(&comment))).unwrap();
    } else {
        assert_eq!(shown, comment, "run with UPDATE_DOCS=1 and read the difference");
    }
}
