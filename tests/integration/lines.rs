//! What a commit says stays on its line in text for people: no break, escape or mark of it reaches a terminal or a
//! pipeline.

use crate::program::{Daemon, Done, GitRepository, clade};

/// A break of lines with a command to a pipeline, an escape, a control character of a byte and a mark that reverses text.
const BAD: &str = "a\n::error::b\u{1b}c\u{9b}1md\u{202e}e";

/// What the name of a group can have of that.
const NAME: &str = "::error::b\u{202e}e";

fn estate() -> GitRepository {
    let repository = GitRepository::new();
    // JSON is YAML.
    let bad = serde_json::to_string(BAD).unwrap();
    let (name, other) = (serde_json::to_string(NAME).unwrap(), format!("\"other {NAME}\""));
    let groups = format!(
        "variables: {{{bad}: {bad}, odd: {bad}}}\nclasses: {{apt: {{{bad}: {bad}}}}}\nname: {name}\n\
         rule: [or, [\"=\", [fact, {bad}], {bad}], [\"~\", [fact, x], {bad}]]\n---\n\
         name: {other}\nrule: [\"=\", [fact, x], {bad}]\nvariables: {{odd: 1}}\npinned: [n2]\n"
    );
    let tests = format!(
        "- {{name: {bad}, node: n, facts: {{{bad}: {bad}}}, expect: {{groups: [{name}, {other}, x]}}}}\n\
         - {{name: fine, node: n, facts: {{{bad}: {bad}}}, expect: {{groups: [{name}]}}}}\n"
    );
    repository.commit("first", &[("groups/z.yaml", "name: Z\n")]);
    repository.commit(
        &format!("{NAME} {BAD}"),
        &[
            (&format!("groups/{BAD}.yaml"), &groups),
            (&format!("tests/{BAD}.yaml"), &tests),
            (&format!("groups/{BAD}.json"), "{}"),
            (&format!("groups/broken {BAD}.txt"), "x"),
            ("facts/n.json", &format!("{{{bad}: {bad}}}")),
            ("facts/conflict.json", &format!("{{{bad}: {bad}, \"x\": {bad}}}")),
        ],
    );
    repository
}

/// Checks what a command wrote.
fn check(arguments: &[&str], done: &Done) {
    for text in [&done.stdout, &done.stderr] {
        let is_bad = |it: char| it != '\n' && (it.is_control() || it == '\u{202e}');
        assert!(!text.contains(is_bad), "{arguments:?}: {text:?}");
        assert!(!text.lines().any(|it| it.starts_with("::")), "{arguments:?}: {text}");
    }
}

/// Checks that a command wrote something of what it has to make visible.
fn check_shown(arguments: &[&str], done: &Done) {
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(all.contains("::error::b"), "{arguments:?} shows nothing of it: {all}");
}

#[test]
fn a_commit_writes_no_line_of_its_own() {
    let repository = estate();
    let run = |arguments: &[&str]| -> Done {
        clade(arguments).current_dir(repository.path()).output().unwrap().into()
    };
    let mut commands: Vec<&[&str]> = vec![
        &["validate"],
        &["validate", "--all"],
        &["validate", "--stats"],
        &["validate", "--facts", "facts"],
        &["test"],
        &["test", "--rev", "HEAD"],
        &["test", "--format", "tap"],
        &["test", "--coverage"],
        &["fmt", "--check"],
        &["explain", "n", "--facts", "facts/n.json"],
        &["explain", "n", "--facts", "facts/n.json", "--all"],
        &["explain", "n", "--facts", "facts/n.json", "--group", NAME],
        &["explain", "n2", "--group", NAME],
        &["explain", "conflict", "--facts", "facts/conflict.json"],
        &["diff", "HEAD~1", "HEAD", "--facts", "facts"],
        &["diff", "HEAD~1", "HEAD", "--facts", "facts", "--format", "markdown"],
        &["blame", "n", "--facts", "facts/n.json"],
    ];
    let rule = serde_json::json!(["=", ["fact", BAD], BAD]).to_string();
    let (translate, query) = (["translate", &rule], ["query", &rule, "--facts", "facts"]);
    commands.extend([&translate[..], &query]);
    for arguments in commands {
        let done = run(arguments);
        check(arguments, &done);
        check_shown(arguments, &done);
    }
    check(&["test", "--update"], &run(&["test", "--update"]));
    check(&["test", "--mutate"], &run(&["test", "--mutate"]));
}

#[test]
fn a_commit_writes_no_line_of_its_own_by_way_of_a_daemon() {
    let repository = estate();
    let daemon = Daemon::start(&["--repo", &repository.text_path()]);
    let facts = serde_json::json!({"fact": {BAD: BAD}}).to_string();
    daemon.request("POST", "/v1/classified/nodes/n", &facts);
    let server = format!("http://{}", daemon.address);
    let head = repository.git().head().unwrap().target().unwrap().to_string();
    for arguments in [
        &["explain", "n"][..],
        &["explain", "n", "--all"],
        &["blame", "n"],
        &["history", "n"],
        &["status"],
        &["nodes"],
        &["why", &head],
        &["wait", &head],
    ] {
        let arguments = [arguments, &["--server", &server]].concat();
        let done: Done = clade(&arguments).output().unwrap().into();
        check(&arguments, &done);
        // Of a commit the others show the subject, which ends before the first break.
        if matches!(arguments[0], "explain" | "blame") {
            check_shown(&arguments, &done);
        }
    }
}
