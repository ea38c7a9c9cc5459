//! Commands whose output people share mask what a daemon masks.

use serde_json::json;

use super::readers::{SECRET, facts, repository, trusted};
use crate::enc::servers::Stub;
use crate::program::run;
use crate::table::each_row;

#[test]
fn commands_show_no_masked_value_unless_they_answer_for_a_node() {
    let (repository, base) = repository();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (file, proved) = (at("w1.json"), at("w1.trusted.json"));
    std::fs::write(&file, json!({"fact": facts()}).to_string()).unwrap();
    std::fs::write(&proved, trusted().to_string()).unwrap();
    let inventory = json!([{"certname": "w1", "facts": facts(), "trusted": trusted()}]).to_string();
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", inventory.len());
    let puppetdb = Stub::saying(format!("{head}\r\n\r\n{inventory}").leak());
    let (path, facts) = (repository.text_path(), at(""));
    let of_node = ["--facts", &file, "--trusted", &proved];
    let diff = ["diff", &base, "HEAD", "--repo", &path];
    let explain = ["explain", "w1", &path];
    let blame = ["blame", "w1", "--repo", &path];
    let rows: [(&[&str], &[&str], bool); 15] = [
        (&diff, &["--facts", &facts], true),
        (&diff, &["--facts", &facts, "--format", "markdown"], true),
        (&diff, &["--facts", &facts, "--format", "json"], true),
        (&diff, &["--facts", &facts, "--format", "yaml"], true),
        (&diff, &["--puppetdb", &puppetdb.url, "--format", "markdown"], true),
        (&diff, &["--facts", &facts, "--mask", "none"], false),
        (&explain, &of_node, true),
        (&[&explain[..], &of_node].concat(), &["--all"], true),
        (&[&explain[..], &of_node].concat(), &["--group", "matched"], true),
        (&[&explain[..], &of_node].concat(), &["--group", "matched", "--format", "json"], true),
        (&[&explain[..], &of_node].concat(), &["--format", "json"], true),
        (&[&explain[..], &of_node].concat(), &["--mask", "none"], false),
        (&blame, &of_node, true),
        (&[&blame[..], &of_node].concat(), &["--format", "json"], true),
        (&["classify", "w1", &path], &of_node, false),
    ];
    each_row(rows, |(command, more, is_masked)| {
        let done = run(&[command, more].concat());
        assert_eq!(done.status, 0, "{}", done.stderr);
        let written = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(written.contains(SECRET), !is_masked, "{written}");
        assert_eq!(written.contains("[masked]"), is_masked, "{written}");
    });
}

#[test]
fn a_change_from_one_secret_to_another_is_in_the_report() {
    let (repository, base) = repository();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("w1.json"), json!({"fact": facts()}).to_string()).unwrap();
    let done = run(&[
        "diff",
        &base,
        "HEAD",
        "--repo",
        &repository.text_path(),
        "--facts",
        directory.path().to_str().unwrap(),
    ]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let changed = done.stdout.lines().find(|it| it.contains("db::password"));
    let expected = "db::password  \"[masked]\" -> \"[masked]\"  <- web: classes, variables changed (groups/web.yaml:6)";
    assert_eq!(changed.map(str::trim), Some(expected), "{}", done.stdout);
}
