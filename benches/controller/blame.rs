//! How long `clade blame` takes over a long history.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::estate::Estate;
use crate::row;

const GROUPS: usize = 1_000;
const COMMITS: usize = 10_000;

/// How often each blame is measured.
const RUNS: usize = 5;

const FACTS: &str = r#"{"role": "r7", "os": {"family": "Debian"}}"#;

/// Blames the values of a node, in a repository and by a daemon.
pub(crate) fn blame() {
    let estate = Estate::empty();
    let files: Vec<(String, String)> = (0..GROUPS).map(|it| group(it, 0)).collect();
    estate.commit("first", &files);
    for commit in 1..COMMITS {
        // Each group is changed ten times, those of the node as well.
        estate.commit("change", &[group(commit * 7 % GROUPS, commit)]);
    }
    // As a clone has it.
    let repack = ["-C", estate.path().to_str().unwrap(), "repack", "-adq"].map(str::to_owned);
    let is_packed = Command::new("git").args(repack).status().is_ok_and(|it| it.success());
    let packed = if is_packed { "packed" } else { "loose objects" };
    let facts = estate.directory().join("facts.json");
    std::fs::write(&facts, FACTS).unwrap();
    let (mut first, mut all) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_clade"))
            .args(["blame", "web1.example.com", "--repo"])
            .arg(estate.path())
            .arg("--facts")
            .arg(&facts)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        first.push(began.elapsed());
        lines.read_to_string(&mut line).unwrap();
        assert!(child.wait().unwrap().success() && line.lines().count() > 20, "{line}");
        all.push(began.elapsed());
    }
    let what = format!("`clade blame` over {COMMITS} commits of {GROUPS} groups ({packed})");
    row(&format!("{what}: first line"), &spread(first), "1 s");
    row(&format!("{what}: all lines"), &spread(all), "20 s");
    ask_daemon(&estate);
}

fn ask_daemon(estate: &Estate) {
    let daemon = Daemon::start(estate, &[]);
    daemon.wait_for(&estate.head());
    let node = "/v1/classified/nodes/web1.example.com";
    daemon.client().post(node, &format!("{{\"fact\": {FACTS}}}"));
    let mut times: Vec<Duration> = (0..=RUNS)
        .map(|_| {
            let began = Instant::now();
            let answer = daemon.client().get("/controller/nodes/web1.example.com/blame");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer:.300}");
            began.elapsed()
        })
        .collect();
    let cold = times.remove(0);
    row("the same by a daemon, for the first time", &spread(vec![cold]), "20 s");
    row("the same by a daemon, again", &spread(times), "0.2 s");
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let seconds = |at: usize| times[at].as_secs_f64();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load = load.split(' ').next().unwrap_or_default();
    let (least, median, most) = (seconds(0), seconds(times.len() / 2), seconds(times.len() - 1));
    format!("{median:.3} s ({least:.3}–{most:.3} s, load {load})")
}

fn group(number: usize, commit: usize) -> (String, String) {
    let (role, path) = (number % 50, format!("groups/group{number:04}.yaml"));
    let text = format!(
        "name: Group {number}\nrule: role = r{role}\nclasses: {{class{number}: {{port: {commit}}}}}\n"
    );
    (path, text)
}
